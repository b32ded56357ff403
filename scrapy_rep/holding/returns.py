"""Requests that go back to the scheduler, and come again.

In the meta of a request is written what it was before, so that it survives a stop with
``JOBDIR``, a scheduler in Redis and a crash.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import Request, signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Request meta: ``dont_filter`` and priority as they were before a request went back to the
#: scheduler, and since when (seconds since the epoch) it has been held.
RETURNED = "rep_returned"
HELD_SINCE = "rep_held_since"


class Arrival(Enum):
    """How a request has come to the middleware."""

    FIRST = auto()
    #: It went back to the scheduler, which has handed it out again.
    FROM_SCHEDULER = auto()
    #: It went back to a component that asks the engine itself, such as a media pipeline, and
    #: asks again at once.
    FROM_COMPONENT = auto()


class Returns:
    """The requests of one crawl that went back."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: Those that no scheduler has taken.
        self._given_back: WeakSet[Request] = WeakSet()

    def give_back(self, request: Request, *, behind: bool) -> Request:
        """*request* as it goes back to the scheduler, which must not take it for a duplicate.

        *behind* others of its priority, one lower, as Scrapy sends back what it tries again;
        or where it was among them.
        """
        # Not from the start: most crawls give nothing back. Again and again is as once.
        self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
        priority = request.priority - behind
        request = request.replace(dont_filter=True, priority=priority, meta=meta)
        self._given_back.add(request)
        return request

    def arrival(self, request: Request) -> Arrival:
        """How *request* has come; it is as it was before it was given back."""
        if RETURNED not in request.meta:
            return Arrival.FIRST
        request.dont_filter, request.priority = request.meta.pop(RETURNED)
        if request in self._given_back:
            return Arrival.FROM_COMPONENT
        return Arrival.FROM_SCHEDULER

    def _scheduled(self, request: Request) -> None:
        self._given_back.discard(request)
