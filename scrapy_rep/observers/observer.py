"""Who sees what a crawl learns and decides, without a say in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scrapy.utils.python import global_object_name

from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.caching.cache_entry import CacheEntry
    from scrapy_rep.rep.dialects import Access
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.verdict import Verdict

logger = logging.getLogger(__name__)


class Exchange(NamedTuple):
    """A request, as it was sent, and its *response*.

    *content_encoding* is a header that was taken out of the response; *is_cut* says that
    there was more of the body.
    """

    request: Request
    response: Response
    content_encoding: bytes
    is_cut: bool


class Observer:
    """Sees what a crawl learns and decides; by itself, it does nothing.

    What it has to do at start and at end, it connects to Scrapy's signals.
    """

    #: Whether it is also told of requests that are let through, which takes a verdict for
    #: each of them. It must not change.
    observes_allowed = False

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """A request of a fetch of the robots.txt of *origin* was answered."""

    def on_fetch(
        self,
        result: FetchResult,
        access: Access,
        known: CacheEntry | None,
        entry: CacheEntry,
        now: float,
    ) -> None:
        """A fetch ended at time *now* with *result*.

        That means *access*, and makes *entry* of *known*.
        """

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """*policy* is new: by a fetch that took so many *seconds* and ended with *result*,
        or from the store, where that is ``None``."""

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """*verdict* is that of *policy* for *request*, made as *agents*.

        Where a request is refused before there is a policy, because its URL has
        no origin or the crawl is stopping, that is ``None``, and *agents* empty.
        Scrapy may ask several times about what a spider asks for once: redirects
        and retries are requests of their own.
        """

    def on_exempt(self, request: Request, why: str) -> None:
        """*request* is let through without a look at any robots.txt, because of *why*.

        Only those that observe what is allowed are told: the meta key
        ``dont_obey_robotstxt``, or the value of a :class:`~scrapy_rep.Reason`.
        """


class Observers:
    """All that watch one crawl. None of them can harm it: what one raises is logged, once."""

    def __init__(self, crawler: Crawler, observers: Iterable[Observer] = ()) -> None:
        self._crawler = crawler
        self._observers = tuple(observers)
        self._of_allowed = tuple(each for each in self._observers if each.observes_allowed)
        self._failed: set[Observer] = set()
        #: Whether anybody is to be told of requests that are let through.
        self.observe_allowed = bool(self._of_allowed)

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """Tell all; see :meth:`Observer.on_answer`."""
        self._tell(self._observers, lambda each: each.on_answer(origin, exchange))

    def on_fetch(
        self,
        result: FetchResult,
        access: Access,
        known: CacheEntry | None,
        entry: CacheEntry,
        now: float,
    ) -> None:
        """Tell all; see :meth:`Observer.on_fetch`."""
        self._tell(self._observers, lambda each: each.on_fetch(result, access, known, entry, now))

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Tell all; see :meth:`Observer.on_policy`."""
        self._tell(self._observers, lambda each: each.on_policy(policy, result, seconds))

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Tell those that it is for; see :meth:`Observer.on_decision`."""
        told = self._of_allowed if verdict.allowed else self._observers
        self._tell(told, lambda each: each.on_decision(request, policy, agents, verdict))

    def on_exempt(self, request: Request, why: str) -> None:
        """Tell those that it is for; see :meth:`Observer.on_exempt`."""
        self._tell(self._of_allowed, lambda each: each.on_exempt(request, why))

    def _tell(self, observers: Iterable[Observer], call: Callable[[Observer], None]) -> None:
        for observer in observers:
            try:
                call(observer)
            except Exception as error:
                self._report(observer, error)

    def _report(self, observer: Observer, error: Exception) -> None:
        if observer in self._failed:
            return
        self._failed.add(observer)
        logger.error(
            "%(observer)s failed (%(error)s) and may miss events. The crawl continues.",
            {
                "observer": global_object_name(type(observer)),
                "error": printable(f"{type(error).__name__}: {error}"),
            },
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )
