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
        self._given_back: WeakSet[Request] = WeakSet()
        self._is_connected = False

    def give_back(self, request: Request, *, behind: bool) -> Request:
        """*request* as the scheduler is to have it; see :func:`to_scheduler`."""
        if not self._is_connected:
            self._is_connected = True
            self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        request = to_scheduler(request, behind=behind)
        self._given_back.add(request)
        return request

    def arrival(self, request: Request) -> Arrival:
        """How *request* has come, which is written on it no longer."""
        if RETURNED not in request.meta:
            return Arrival.FIRST
        from_scheduler(request)
        # The very object that was given back, and no scheduler has taken it.
        if request in self._given_back:
            return Arrival.FROM_COMPONENT
        return Arrival.FROM_SCHEDULER

    def _scheduled(self, request: Request) -> None:
        self._given_back.discard(request)


def to_scheduler(request: Request, *, behind: bool) -> Request:
    """*request* as it goes back to the scheduler, which must not take it for a duplicate.

    *behind* others of its priority, one lower, as Scrapy sends back what it tries again; or
    where it was among them.
    """
    meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
    priority = request.priority - 1 if behind else request.priority
    return request.replace(dont_filter=True, priority=priority, meta=meta)


def from_scheduler(request: Request) -> None:
    """Undo :func:`to_scheduler`."""
    request.dont_filter, request.priority = request.meta.pop(RETURNED)
