"""The hold queue: requests that wait for a policy, a turn, the end of an outage, or a Visit-time.

They wait here because the scheduler would hand them out again at once, and they release their
concurrency (see :mod:`scrapy_rep.holding.concurrency`). The queue holds REP_MAX_WAITING requests.
An origin may use half of the space that other origins leave, and at most :data:`PER_ORIGIN`
requests: so one dead host cannot fill the queue.

The queue is ordered by priority, then by arrival; requests continue in this order. If the queue
is full, a request with a higher priority displaces the last one. Displaced requests, and those
that find no room, return to the scheduler with a priority that is lower by one. If such a request
comes again and there is still no room, it is held for a moment outside the queue. That prevents a
busy loop. It is shorter if a request of the queue needs the concurrency.

When the crawl stops, all held requests return to the scheduler, which stores them with the others:
on disk, with ``JOBDIR``. The original priority and ``dont_filter`` are in their meta, so they
survive that, a scheduler in Redis, and a crash.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count as numbers
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import fire
from scrapy_rep.observers.stats import count, highest
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.holding.concurrency import ConcurrencyLimit, Permit
    from scrapy_rep.rep.parsing.urls import Origin

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Request meta key: the original ``dont_filter`` and priority of a returned request.
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

    #: It was not returned before.
    FIRST = auto()
    #: It was returned to the scheduler, which has handed it out again.
    FROM_SCHEDULER = auto()
    #: It was returned to a component that uses the engine directly, such as a media pipeline, and
    #: that repeats it at once.
    FROM_COMPONENT = auto()


class MustLeave(Exception):
    """A held request must go back to the scheduler."""


@dataclass(eq=False, slots=True)
class HeldRequest:
    """A request held since the time *since*. *permit* has its rank in the order of the queue."""

    queue: HoldQueue
    origin: Origin
    permit: Permit
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

        def bring_nothing(failure: Failure) -> None:
            failure.trap(CrawlStopping, CancelledError)  # type: ignore[no-untyped-call]

        event.addCallbacks(brought.append, bring_nothing)
        if not event.called:
            event.addCallback(lambda _: self._wake())
            await self._wait(inf)
        if not brought:
            event.cancel()
            raise MustLeave
        return brought[0]

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds*. Raises :exc:`MustLeave`."""
        await self._wait(seconds)
        if self.longest_wait < inf:
            raise MustLeave

    async def reacquire(self, request: Request) -> None:
        """Wait until there is concurrency for *request*."""
        await self.queue.limit.reacquire(self.permit, request)

    def leave(self) -> None:
        """Make the request return to the scheduler or the component it came from."""
        self.longest_wait = 0.0
        self._wake()

    async def _wait(self, seconds: float) -> None:
        limit = self.queue.limit
        if limit.is_closing or (limit.is_short and self.longest_wait < inf):
            self.longest_wait = 0.0
        if not self.longest_wait:
            return
        if self.releases:
            limit.release(self.permit)
        woken = self.woken = Deferred()
        seconds = min(seconds, self.longest_wait)
        timer = self.queue.call_later(seconds, self._wake) if seconds < inf else None
        try:
            await maybe_deferred_to_future(woken)
        finally:
            self.woken = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        woken, self.woken = self.woken, None
        if woken is not None:
            self.queue.resume(self.permit.rank, woken)


class HoldQueue:
    """The held requests of one crawl: *size* of them at most."""

    def __init__(
        self,
        crawler: Crawler,
        limit: ConcurrencyLimit,
        size: int,
        *,
        call_later: Callable[..., Any] = call_later,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.call_later = call_later
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
        #: A heap of the requests that are about to continue.
        self._resuming: list[tuple[tuple[int, int], Deferred[None]]] = []
        #: Returned requests that no scheduler has accepted.
        self._given_back: WeakSet[Request] = WeakSet()
        limit.on_stop.append(lambda: _make_leave([*self._queue, *self._outside]))
        limit.on_shortage.append(
            lambda: _make_leave([each for each in self._outside if each.longest_wait < inf])
        )
        limit.on_look.append(self._tell)

    @contextmanager
    def hold(self, origin: Origin, request: Request, arrival: Arrival) -> Iterator[HeldRequest]:
        """Hold *request*, to *origin*, in this context."""
        with self.limit.permit((-request.priority, next(self._arrivals))) as permit:
            held = HeldRequest(self, origin, permit, self._clock())
            if self._has_room_for(held):
                self._queue[held] = None
                self._of_origin.setdefault(origin, set()).add(held)
                count(self._crawler, "robotstxt/waiting_count")
                highest(self._crawler, "robotstxt/waiting_max", len(self._queue))
            else:
                self._keep_outside(held, arrival)
            try:
                yield held
            finally:
                self._exit(held)

    def resume(self, rank: tuple[int, int], woken: Deferred[None]) -> None:
        """Fire *woken* in the order of ranks, one in each iteration of the event loop.

        All requests that wait for one robots.txt may be refused at the same time. Each takes one
        or two milliseconds, which would block everything else.
        """
        if not self._resuming:
            self.call_later(0, self._resume)
        heappush(self._resuming, (rank, woken))

    def _resume(self) -> None:
        # When the crawl stops, all continue in one step.
        number = len(self._resuming) if self.limit.is_closing else 1
        resuming = [heappop(self._resuming)[1] for _ in range(number)]
        if self._resuming:
            self.call_later(0, self._resume)
        fire(resuming)

    # -- room --------------------------------------------------------------------------

    def _has_room_for(self, held: HeldRequest) -> bool:
        """Whether *held* fits in the queue, perhaps instead of the last request."""
        of_origin = self._of_origin.get(held.origin, set())
        if len(of_origin) < min(PER_ORIGIN, self._size - len(self._queue)):
            return True
        last = max(of_origin or self._queue, key=attrgetter("permit.rank"))
        if last.permit.rank[0] <= held.permit.rank[0] or last.woken is None:
            return False
        self._exit(last)
        last.leave()
        return True

    def _keep_outside(self, held: HeldRequest, arrival: Arrival) -> None:
        if arrival is Arrival.FROM_COMPONENT:
            # The component would repeat it at once. Its concurrency is not released, so the crawl
            # does not start more requests than can be held.
            held.releases = False
        else:
            held.longest_wait = 0.0 if arrival is Arrival.FIRST else _BRIEFLY
            held.releases = sum(each.releases for each in self._outside) < _BRIEF_RELEASES
        self._outside.add(held)

    def _exit(self, held: HeldRequest) -> None:
        self._outside.discard(held)
        if held in self._queue:
            del self._queue[held]
            of_origin = self._of_origin[held.origin]
            of_origin.remove(held)
            if not of_origin:
                del self._of_origin[held.origin]

    # -- to the scheduler and back, and the log --------------------------------------------

    def give_back(self, request: Request) -> Request:
        """A copy of *request* to return to the scheduler, which must not drop it as a duplicate."""
        count(self._crawler, "robotstxt/given_back_count")
        # Connected here because most crawls return no request. Repeated calls have no effect.
        self._crawler.signals.connect(self._scheduled, signals.request_scheduled)
        meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
        # Behind the others, as Scrapy's retries are. After a stop, it comes where it was.
        priority = request.priority - (not self.limit.is_closing)
        request = request.replace(dont_filter=True, priority=priority, meta=meta)
        self._given_back.add(request)
        return request

    def arrival(self, request: Request) -> Arrival:
        """Where *request* comes from. Its ``dont_filter`` and priority are restored."""
        if RETURNED not in request.meta:
            return Arrival.FIRST
        request.dont_filter, request.priority = request.meta.pop(RETURNED)
        is_components = request in self._given_back
        return Arrival.FROM_COMPONENT if is_components else Arrival.FROM_SCHEDULER

    def _scheduled(self, request: Request) -> None:
        self._given_back.discard(request)

    def _tell(self) -> None:
        """Log the number of held requests and the longest wait, if a line is due."""
        now = self._clock()
        longest = next(iter(self._queue), None)
        if longest is None or now < max(self._next_line, longest.since + _FIRST_LINE):
            return
        self._next_line = now + _NEXT_LINE
        logger.info(
            "Requests held for a robots.txt or a delay: %(requests)d "
            "(origins: %(origins)d; longest: %(seconds).0f s, %(slowest)s)",
            {
                "requests": len(self._queue),
                "origins": len(self._of_origin),
                "seconds": now - longest.since,
                "slowest": printable(str(longest.origin)),
            },
            extra={"spider": self._crawler.spider},
        )


def _make_leave(held: Iterable[HeldRequest]) -> None:
    for each in held:
        each.leave()
