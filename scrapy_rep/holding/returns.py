"""Requests that return to the scheduler, which hands them out again later.

The original priority and ``dont_filter`` of a request are in its meta, so they survive a stop with
``JOBDIR``, a scheduler in Redis and a crash.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import Request, signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Request meta keys: the original ``dont_filter`` and priority of a returned request, and the time
#: (seconds since the epoch) since which it has been held.
RETURNED = "rep_returned"
HELD_SINCE = "rep_held_since"


class Arrival(Enum):
    """Where a request at the middleware comes from."""

    #: It was not returned before.
    FIRST = auto()
    #: It was returned to the scheduler, which has handed it out again.
    FROM_SCHEDULER = auto()
    #: It was returned to a component that uses the engine directly, such as a media pipeline, and
    #: that repeats it at once.
    FROM_COMPONENT = auto()


class Returns:
    """The returned requests of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: Requests that no scheduler has accepted.
        self._given_back: WeakSet[Request] = WeakSet()

    def give_back(self, request: Request, *, behind: bool) -> Request:
        """A copy of *request* to return to the scheduler, which must not drop it as a duplicate.

        With *behind*, its priority is one lower, as for Scrapy's retries.
        """
        # Connected here because most crawls return no request. Repeated calls have no effect.
        self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
        priority = request.priority - behind
        request = request.replace(dont_filter=True, priority=priority, meta=meta)
        self._given_back.add(request)
        return request

    def arrival(self, request: Request) -> Arrival:
        """Where *request* comes from. Its ``dont_filter`` and priority are restored."""
        if RETURNED not in request.meta:
            return Arrival.FIRST
        request.dont_filter, request.priority = request.meta.pop(RETURNED)
        if request in self._given_back:
            return Arrival.FROM_COMPONENT
        return Arrival.FROM_SCHEDULER

    def _scheduled(self, request: Request) -> None:
        self._given_back.discard(request)
