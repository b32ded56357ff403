"""Log lines and stats about robots.txt files: fetched, stored, parsed, unreachable."""

from __future__ import annotations

import logging
from collections.abc import Callable

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
        entry, was_outage = policy.entry, before is not None and before.outage is not None
        was_confirmed = (
            entry.outage is None and entry.stored is not None and entry.stored.result is not result
        )
        what = "confirmed_count" if was_confirmed else f"access_count/{access.value}"
        self._count(what, policy.origin)
        if not policy.origin.refuses:
            return
        if entry.outage is not None:
            self._log(
                logging.DEBUG if was_outage else logging.WARNING,
                "Cannot reach %(url)s (%(detail)s). %(so)s. Will retry on the next request after "
                "%(delay).0f s.",
                policy.origin,
                detail=entry.outage.result.detail,
                so=self._consequence(policy),
                delay=retry_at(entry.outage, self._bounds) - entry.outage.last_at,
            )
        elif was_outage:
            self._log(logging.INFO, "Reached %(url)s again", policy.origin)

    def _consequence(self, policy: Policy) -> str:
        """The consequence of an outage for the pages of the origin."""
        if policy.access is Access.UNREACHABLE:
            return _REFUSED[self._settings.when_unreachable]
        return _GIVEN_UP if policy.stored is None else _COPY_IN_USE

    def on_stored(self, policy: Policy) -> None:
        """Called when *policy* came from the store, without a fetch."""
        self._count("store_count", policy.origin)
        if policy.access is Access.UNREACHABLE and policy.origin.refuses:
            now = self._clock()
            self._log(
                logging.WARNING,
                "Could not reach %(url)s %(age).0f s ago (%(detail)s). %(so)s. Will retry on the "
                "next request after %(left).0f s.",
                policy.origin,
                age=now - policy.fetched_at,
                detail=policy.detail,
                so=self._consequence(policy),
                left=policy.until - now,
            )

    def on_parsed(self, origin: Origin, result: FetchResult) -> None:
        """Called when the body of *result*, the robots.txt of *origin*, was parsed."""
        size = self._settings.max_size
        if result.cut or len(result.body) > size:
            self._count("truncated_count", origin)
            message = "%(url)s has more than %(size)d bytes. The rest is ignored (REP_MAX_SIZE)."
            self._log(logging.INFO, message, origin, size=size)
        if result.body.lstrip()[:20].lower().startswith(_HTML_STARTS):
            self._count("html_count", origin)
            self._log(
                logging.WARNING,
                "%(url)s is an HTML page. All pages of this origin are allowed, unless the page "
                "contains lines that are rules.",
                origin,
            )

    def on_exception(self, origin: Origin, error: Exception) -> None:
        """Called when a fetch failed with *error*, raised by code outside of Scrapy."""
        message = "The robots.txt request %(url)s raised an exception"
        self._log(logging.DEBUG, message, origin, error)

    def on_bug(self, origin: Origin) -> None:
        """Log the exception that is being handled as a bug in this package."""
        message = (
            "Cannot get the robots.txt of %(origin)s because of a bug in scrapy-rep. All its pages "
            "are refused until the next attempt. Please report this traceback."
        )
        self._log(logging.ERROR, message, origin, True, origin=printable(str(origin)))

    def _count(self, what: str, origin: Origin) -> None:
        count(self._crawler, f"{origin.stats}/{what}")

    def _log(
        self,
        level: int,
        message: str,
        about: Origin,
        exc_info: Exception | bool | None = None,
        **values: object,
    ) -> None:
        values["url"] = printable(about.robots_url)
        extra = {"spider": self._crawler.spider}
        logger.log(level, message, values, exc_info=exc_info, extra=extra)
