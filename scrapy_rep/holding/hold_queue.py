"""The hold queue: requests that wait for a policy, a turn, the end of an outage, or a Visit-time.

The scheduler would hand them out again at once. The queue holds REP_MAX_WAITING requests. An
origin may use half of the space that other origins leave, and at most :data:`PER_ORIGIN` requests:
so one dead host cannot fill the queue. Requests continue by priority, then by arrival. If the
queue is full, a request with a higher priority displaces the last one.

Displaced requests, and those that find no room, return to the scheduler with a priority that is
lower by one. If such a request comes again and there is still no room, it is held for a moment
outside the queue, which prevents a busy loop.

When the crawl stops, all held requests return to the scheduler, which stores them with the others:
on disk, with ``JOBDIR``. The original priority and ``dont_filter`` are in their meta, so they
survive that, a scheduler in Redis, and a crash.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import count as numbers
from math import inf
from operator import attrgetter
from typing import TypeVar

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit, Permit
from scrapy_rep.observers.stats import count, highest
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Request meta key: the original ``dont_filter`` and priority of a returned request, and a mark for
#: each time that it was scheduled.
RETURNED = "rep_returned"
#: The most held requests of one origin. Each makes garbage collection longer, which stops the whole
#: crawl: with 2,500 requests, for a quarter of a second.
PER_ORIGIN = 256
# Seconds for which a request is held that comes again and finds no room.
_BRIEFLY = 0.25
# How many of these release their concurrency. Schedulers hand out requests for a dead host again
# and again, and a few of them must not take concurrency from other requests.
_BRIEF_RELEASES = 16
# Seconds until the first log line about a held request, and between two such lines. They show that
# the crawl is waiting and has not stopped.
_FIRST_LINE = 10.0
_NEXT_LINE = 60.0


class Arrival(Enum):
    """Where a request at the middleware comes from."""

    FIRST = "it was not returned before"
    FROM_SCHEDULER = "it was returned to the scheduler, which has handed it out again"
    FROM_COMPONENT = "it was returned to a component, which repeats it at once by the engine"


class MustLeave(Exception):
    """A held request must go back to the scheduler."""


@dataclass(eq=False, slots=True, kw_only=True)
class HeldRequest(Permit):
    """A request held since the time *since*. Its permit has its rank in the queue."""

    queue: HoldQueue
    origin: Origin
    since: float
    #: Whether its concurrency is released while it waits.
    releases: bool = True
    #: The most seconds for which it waits at a time; then it must leave.
    longest_wait: float = inf
    #: Fires when it continues; ``None`` if it does not wait.
    woken: Deferred[None] | None = None

    async def wait(self, event: Deferred[_T]) -> _T:
        """Wait for the result of *event*, which is cancelled if the request must leave before.

        *event* fails only with :exc:`~scrapy_rep.CrawlStopping`. Raises :exc:`MustLeave`.
        """
        brought: list[_T] = []
        event.addCallbacks(brought.append, _bring_nothing)
        if not event.called:
            event.addCallback(self._wake)
            await self._wait(inf)
            event.cancel()
        if not brought:
            raise MustLeave
        return brought[0]

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds*. Raises :exc:`MustLeave`."""
        await self._wait(seconds)
        if self.longest_wait < inf:
            raise MustLeave

    def leave(self) -> None:
        """Make the request return to the scheduler or the component it came from."""
        self.longest_wait = 0.0
        self._wake()

    async def _wait(self, seconds: float) -> None:
        limit = self.queue.limit
        if limit.is_closing or (limit.withheld and self.longest_wait < inf):
            self.longest_wait = 0.0
        if not self.longest_wait:
            return
        if self.releases:
            limit.release(self)
        woken = self.woken = Deferred()
        seconds = min(seconds, self.longest_wait)
        timer = limit.call_later(seconds, self._wake) if seconds < inf else None
        try:
            await maybe_deferred_to_future(woken)
        finally:
            if timer is not None:
                timer.cancel()

    def _wake(self, _: object = None) -> None:
        if self.woken is not None:
            self.queue.limit.resume(self, self.woken)
            self.woken = None


class HoldQueue:
    """The held requests of one crawl: *size* of them at most."""

    def __init__(
        self,
        crawler: Crawler,
        limit: ConcurrencyLimit,
        size: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self._clock = clock
        self._next_line = 0.0
        self._crawler = crawler
        self._size = size
        self._arrivals = numbers()
        #: The queue in the order of arrival, and the requests of each origin.
        self._queue: dict[HeldRequest, None] = {}
        self._of_origin: dict[Origin, set[HeldRequest]] = {}
        #: Requests that found no room in the queue and wait outside it.
        self._outside: set[HeldRequest] = set()
        limit.on_look.append(self._tell)
        limit.on_shortage.append(self._make_room)
        limit.on_stop.append(self._stop)

    @contextmanager
    def hold(self, origin: Origin, request: Request, arrival: Arrival) -> Iterator[HeldRequest]:
        """Hold *request*, to *origin*, in this context."""
        rank = (-request.priority, next(self._arrivals))
        held = HeldRequest(rank, queue=self, origin=origin, since=self._clock())
        if self._has_room_for(held):
            self._queue[held] = None
            self._of_origin.setdefault(origin, set()).add(held)
            count(self._crawler, "robotstxt/waiting_count")
            highest(self._crawler, "robotstxt/waiting_max", len(self._queue))
        else:
            self._keep_outside(held, arrival)
        try:
            with self.limit.use(held):
                yield held
        finally:
            self._exit(held)

    def _has_room_for(self, held: HeldRequest) -> bool:
        """Whether *held* fits in the queue, perhaps instead of the last request."""
        of_origin = self._of_origin.get(held.origin, set())
        if len(of_origin) < min(PER_ORIGIN, self._size - len(self._queue)):
            return True
        last = max(of_origin or self._queue, key=attrgetter("rank"))
        if last.rank[0] <= held.rank[0] or last.woken is None:
            return False
        self._exit(last)
        last.leave()
        return True

    def _keep_outside(self, held: HeldRequest, arrival: Arrival) -> None:
        self._outside.add(held)
        if arrival is Arrival.FROM_COMPONENT:
            # The component would repeat it at once. Its concurrency is not released, so the crawl
            # does not start more requests than can be held.
            held.releases = False
        else:
            held.longest_wait = 0.0 if arrival is Arrival.FIRST else _BRIEFLY
            held.releases = sum(each.releases for each in self._outside) <= _BRIEF_RELEASES

    def _exit(self, held: HeldRequest) -> None:
        self._outside.discard(held)
        if held in self._queue:
            del self._queue[held]
            self._of_origin[held.origin].remove(held)
            if not self._of_origin[held.origin]:
                del self._of_origin[held.origin]

    def give_back(self, request: Request) -> Request:
        """A copy of *request* to return to the scheduler, which must not drop it as a duplicate."""
        count(self._crawler, "robotstxt/given_back_count")
        # Connected here because most crawls return no request. Repeated calls have no effect.
        self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
        # Behind the others, as Scrapy's retries are. After a stop, it comes where it was.
        priority = request.priority - (not self.limit.is_closing)
        return request.replace(dont_filter=True, priority=priority, meta=meta)

    def _scheduled(self, request: Request) -> None:
        request.meta.get(RETURNED, []).append("scheduled")

    def arrival(self, request: Request) -> Arrival:
        """Where *request* comes from. Its ``dont_filter`` and priority are restored."""
        if RETURNED not in request.meta:
            return Arrival.FIRST
        request.dont_filter, request.priority, *scheduled = request.meta.pop(RETURNED)
        return Arrival.FROM_SCHEDULER if scheduled else Arrival.FROM_COMPONENT

    def _make_room(self) -> None:
        for held in self._outside:
            if held.longest_wait < inf:
                held.leave()

    def _stop(self) -> None:
        for held in [*self._queue, *self._outside]:
            held.leave()

    def _tell(self) -> None:
        """Log the number of held requests and the longest wait, if a line is due."""
        now = self._clock()
        longest = next(iter(self._queue), None)
        if longest is None or now < max(self._next_line, longest.since + _FIRST_LINE):
            return
        self._next_line = now + _NEXT_LINE
        logger.info(
            "Requests held for a robots.txt or a delay: %d (origins: %d; longest: %.0f s, %s)",
            len(self._queue),
            len(self._of_origin),
            now - longest.since,
            printable(str(longest.origin)),
            extra={"spider": self._crawler.spider},
        )


def _bring_nothing(failure: Failure) -> None:
    failure.trap(CrawlStopping, CancelledError)  # type: ignore[no-untyped-call]
