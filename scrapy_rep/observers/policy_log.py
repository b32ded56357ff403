"""Log lines and stats about robots.txt files: fetched, stored, parsed, unreachable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from scrapy.crawler import Crawler

from scrapy_rep.observers.stats import count
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import retry_at
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# The start of an HTML page, which some servers send instead of a robots.txt.
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head")

_COPY_IN_USE = "The cached robots.txt stays in use"
_GIVEN_UP = (
    "It has been unreachable for longer than REP_UNREACHABLE_GRACE, so all pages are allowed"
)
_REFUSED = {
    WhenUnreachable.DISALLOW: "All pages of this origin are refused",
    WhenUnreachable.DEFER: "Requests for this origin are held",
    WhenUnreachable.ALLOW: "All pages of this origin are allowed (REP_UNREACHABLE)",
}
_HTML = (
    "%(url)s is an HTML page. All pages of this origin are allowed, unless the page contains "
    "lines that are rules."
)
_BUG = "Cannot get %(url)s because of a bug in scrapy-rep. %(so)s. Please report this traceback."


class PolicyLog:
    """The log lines and stats of the policy cache. *clock* returns seconds since the epoch."""

    def __init__(self, crawler: Crawler, settings: RepSettings, clock: Callable[[], float]) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        # Used for the time of a retry only, so the start does not matter.
        self._bounds = settings.bounds(started=0.0)

    def on_fetch(
        self, policy: Policy, before: CacheEntry | None, result: FetchResult, access: Access
    ) -> None:
        """Called when a fetch ended with *result* and its *access*, and led to *policy*.

        *before* is the cache entry at the start of the fetch.
        """
        origin, stored, outage = policy.origin, policy.entry.stored, policy.entry.outage
        was_outage = before is not None and before.outage is not None
        was_confirmed = outage is None and stored is not None and stored.result is not result
        self._count("confirmed_count" if was_confirmed else f"access_count/{access.value}", origin)
        if outage is not None:
            level = logging.DEBUG if was_outage else logging.WARNING
            delay = retry_at(outage, self._bounds) - outage.last_at
            what, detail = "Cannot reach %(url)s (%(detail)s)", outage.result.detail
            self._log_outage(level, what, policy, detail=detail, delay=delay)
        elif was_outage and origin.refuses:
            self._log(logging.INFO, "Reached %(url)s again", origin)

    def on_stored(self, policy: Policy) -> None:
        """Called when *policy* came from the store, without a fetch."""
        self._count("store_count", policy.origin)
        if policy.access is Access.UNREACHABLE:
            what, now = "Could not reach %(url)s %(age).0f s ago (%(detail)s)", self._clock()
            values = {"age": now - policy.fetched_at, "delay": policy.until - now}
            self._log_outage(logging.WARNING, what, policy, detail=policy.detail, **values)

    def on_parsed(self, origin: Origin, result: FetchResult) -> None:
        """Called when the body of *result*, the robots.txt of *origin*, was parsed."""
        size = self._settings.max_size
        if result.cut or len(result.body) > size:
            self._count("truncated_count", origin)
            message = "%(url)s has more than %(size)d bytes. The rest is ignored (REP_MAX_SIZE)."
            self._log(logging.INFO, message, origin, size=size)
        if result.body.lstrip()[:20].lower().startswith(_HTML_STARTS):
            self._count("html_count", origin)
            self._log(logging.WARNING, _HTML, origin)

    def on_exception(self, origin: Origin, error: Exception) -> None:
        """Called when a fetch failed with *error*, raised by code outside of Scrapy."""
        message = "The robots.txt request %(url)s raised an exception"
        self._log(logging.DEBUG, message, origin, exc_info=error)

    def on_bug(self, origin: Origin, *, copy_in_use: bool) -> None:
        """Log the exception that is being handled as a bug in this package.

        If no *copy_in_use* remains, requests get a policy that refuses.
        """
        if copy_in_use:
            so = _COPY_IN_USE if origin.refuses else "The cached tdmrep.json stays in use"
        else:
            what = _REFUSED[WhenUnreachable.DISALLOW] if origin.refuses else "It is not used"
            so = f"{what} until the next attempt"
        self._log(logging.ERROR, _BUG, origin, exc_info=True, so=so)

    def _count(self, what: str, origin: Origin) -> None:
        count(self._crawler, f"{origin.stats}/{what}")

    def _log_outage(self, level: int, what: str, policy: Policy, **values: object) -> None:
        """Log an outage with its consequence for the pages of the origin."""
        if not policy.origin.refuses:
            return
        if policy.access is Access.UNREACHABLE:
            so = _REFUSED[self._settings.when_unreachable]
        else:
            so = _GIVEN_UP if policy.stored is None else _COPY_IN_USE
        message = f"{what}. %(so)s. Will retry on the next request after %(delay).0f s."
        self._log(level, message, policy.origin, so=so, **values)

    def _log(
        self, level: int, message: str, about: Origin, *, exc_info: Any = None, **values: object
    ) -> None:
        values["url"] = printable(about.robots_url)
        extra = {"spider": self._crawler.spider}
        logger.log(level, message, values, exc_info=exc_info, extra=extra)
