"""Who sees what a crawl learns and decides, without a say in it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from scrapy.utils.python import global_object_name

from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.verdict import Verdict

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """Sees what a crawl learns and decides.

    What it has to do at start and at end, it connects to Scrapy's signals.
    """

    @property
    def observes_allowed(self) -> bool:
        """Whether it is also told of requests that are let through, which takes a
        verdict for each of them. It must not change."""

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


class Observers:
    """All that watch one crawl. None of them can harm it: what one raises is logged, once."""

    def __init__(self, crawler: Crawler, observers: Iterable[Observer] = ()) -> None:
        self._crawler = crawler
        self._observers = tuple(observers)
        self._of_allowed = tuple(each for each in self._observers if each.observes_allowed)
        self._failed: set[int] = set()
        #: Whether anybody is to be told of requests that are let through.
        self.observe_allowed = bool(self._of_allowed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Tell all; see :meth:`Observer.on_policy`."""
        for observer in self._observers:
            try:
                observer.on_policy(policy, result, seconds)
            except Exception as error:
                self._report(observer, error)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Tell those that it is for; see :meth:`Observer.on_decision`."""
        for observer in self._of_allowed if verdict.allowed else self._observers:
            try:
                observer.on_decision(request, policy, agents, verdict)
            except Exception as error:
                self._report(observer, error)

    def _report(self, observer: Observer, error: Exception) -> None:
        if id(observer) in self._failed:
            return
        self._failed.add(id(observer))
        logger.error(
            "%(observer)s failed (%(error)s) and may miss events. The crawl continues.",
            {
                "observer": global_object_name(type(observer)),
                "error": printable(f"{type(error).__name__}: {error}"),
            },
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )
