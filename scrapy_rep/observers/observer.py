"""The interface of observers, which see policies and decisions but cannot change them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.python import global_object_name

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Verdict
from scrapy_rep.rep.text import printable

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


class Fetched(NamedTuple):
    """A fetch that ended with *result* at time *now*.

    That means *access*, and makes *entry* of *known*.
    """

    result: FetchResult
    access: Access
    known: CacheEntry | None
    entry: CacheEntry
    now: float


class Observer:
    """Sees the policies and decisions of a crawl. The base class does nothing.

    For the start and the end of the crawl, it connects to Scrapy's signals.
    """

    #: Whether it also sees admitted requests, which need a verdict each. It is constant.
    observes_allowed = False

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """A request of a fetch of the robots.txt of *origin* was answered."""

    def on_fetch(self, fetched: Fetched) -> None:
        """A fetch of a robots.txt ended."""

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """A new *policy*, from a fetch of *seconds* with *result*; from the store if ``None``."""

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """The *verdict* of *policy* about *request* for *agents*; redirects are separate requests.

        If a request is refused before there is a policy, because its URL has no origin or the
        crawl is stopping, *policy* is ``None`` and *agents* is empty.
        """

    def on_exempt(self, request: Request, why: str) -> None:
        """A *request* was admitted without a robots.txt. Observers of admitted requests see it.

        *why* is ``dont_obey_robotstxt`` or the value of a :class:`~scrapy_rep.Reason`.
        """


class Observers:
    """The observers of one crawl. Their exceptions are logged once and do not affect the crawl."""

    def __init__(self, crawler: Crawler, observers: Iterable[Observer] = ()) -> None:
        self._crawler = crawler
        self._observers = tuple(observers)
        self._of_allowed = tuple(each for each in self._observers if each.observes_allowed)
        self._failed: set[Observer] = set()
        #: Whether any observer sees admitted requests.
        self.observe_allowed = bool(self._of_allowed)

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """Call :meth:`Observer.on_answer` of all observers."""
        self._tell(self._observers, lambda each: each.on_answer(origin, exchange))

    def on_fetch(self, fetched: Fetched) -> None:
        """Call :meth:`Observer.on_fetch` of all observers."""
        self._tell(self._observers, lambda each: each.on_fetch(fetched))

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Call :meth:`Observer.on_policy` of all observers."""
        self._tell(self._observers, lambda each: each.on_policy(policy, result, seconds))

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Call :meth:`Observer.on_decision` of the observers of such decisions."""
        told = self._of_allowed if verdict.allowed else self._observers
        self._tell(told, lambda each: each.on_decision(request, policy, agents, verdict))

    def on_exempt(self, request: Request, why: str) -> None:
        """Call :meth:`Observer.on_exempt` of the observers of admitted requests."""
        self._tell(self._of_allowed, lambda each: each.on_exempt(request, why))

    def _tell(self, observers: Iterable[Observer], call: Callable[[Observer], None]) -> None:
        for observer in observers:
            try:
                call(observer)
            except Exception as error:
                if observer in self._failed:
                    continue
                self._failed.add(observer)
                logger.error(
                    "%s failed (%s) and may miss events. The crawl continues.",
                    global_object_name(type(observer)),
                    printable(f"{type(error).__name__}: {error}"),
                    exc_info=error,
                    extra={"spider": self._crawler.spider},
                )
