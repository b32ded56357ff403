"""The interface of observers, which see policies and decisions but cannot change them."""

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
    """Sees the policies and decisions of a crawl.

    For the start and the end of the crawl, it connects to Scrapy's signals.
    """

    @property
    def observes_allowed(self) -> bool:
        """Whether it also sees admitted requests, which need a verdict each. It is constant."""

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Called for each new *policy*.

        It is from a fetch that took *seconds* and ended with *result*, or from the store if
        *result* is ``None``.
        """

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Called for each decision: the *verdict* of *policy* about *request* for *agents*.

        If a request is refused before there is a policy, because its URL has no origin or the
        crawl is stopping, *policy* is ``None`` and *agents* is empty. Redirects and retries are
        separate requests.
        """


class Observers:
    """The observers of one crawl. Their exceptions are logged once and do not affect the crawl."""

    def __init__(self, crawler: Crawler, observers: Iterable[Observer] = ()) -> None:
        self._crawler = crawler
        self._observers = tuple(observers)
        self._of_allowed = tuple(each for each in self._observers if each.observes_allowed)
        self._failed: set[int] = set()
        #: Whether any observer sees admitted requests.
        self.observe_allowed = bool(self._of_allowed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Call :meth:`Observer.on_policy` of all observers."""
        for observer in self._observers:
            try:
                observer.on_policy(policy, result, seconds)
            except Exception as error:
                self._report(observer, error)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Call :meth:`Observer.on_decision` of the observers of such decisions."""
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
