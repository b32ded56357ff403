"""The one queue of requests that wait: for a policy, a turn, an outage to end, a site to open.

They wait here, not in the scheduler, which would hand them out again at once, and release
their concurrency (see :mod:`scrapy_rep.holding.concurrency`). The queue holds REP_MAX_WAITING
requests. An origin may have half of what the others leave of it, and :data:`PER_ORIGIN` at
most: one dead host with a deep queue never uses all of it.

The queue is ordered by priority, then by arrival: so requests go on that could go on at the
same time. Where it is full, a request with a higher priority displaces the last one. What is
displaced, and what does not find room, goes back to the scheduler, one lower in priority.
Handed out again while there still is no room, a request is held for a moment outside of the
queue, so that nobody spins; shorter if a request of the queue needs its concurrency.

When the crawl stops, all go back to the scheduler, which stores them with the
others: on disk, with ``JOBDIR``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count as numbers
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.returns import Arrival, Returns
from scrapy_rep.observers.stats import count, highest
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.holding.concurrency import ConcurrencyLimit, Permit
    from scrapy_rep.rep.parsing.urls import Origin

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: How many requests are held for one origin. Each makes every round of the garbage collector
#: longer, and a round stops everybody: with 2,500, a quarter of a second.
PER_ORIGIN = 256
# Seconds for which a request is held that does not find room, and was tried before.
_BRIEFLY = 0.25
# How many of these release their concurrency. Schedulers hand out requests for a dead host
# again and again, among the others: a few of them must not take concurrency from these.
_BRIEF_RELEASES = 16
# A request waits for so many seconds before a line in the log says so, and so many lie between
# two such lines: nobody is to take a crawl that waits for a dead one.
_FIRST_LINE = 10.0
_NEXT_LINE = 60.0


class MustLeave(Exception):
    """A held request must go back to the scheduler."""


class HeldRequest:
    """A request that waits since then. *permit* has its rank in the order of the queue."""

    def __init__(self, queue: HoldQueue, origin: Origin, permit: Permit, since: float) -> None:
        self.origin = origin
        self.permit = permit
        self.since = since
        #: Whether its concurrency is released while it waits.
        self.releases = True
        #: It waits each time for so many seconds at most, and must leave then.
        self.longest_wait = inf
        #: Fires when it goes on; ``None`` if it does not wait.
        self.woken: Deferred[None] | None = None
        self._queue = queue

    async def wait(self, event: Deferred[_T]) -> _T:
        """What *event* brings. It is cancelled if the request must leave before that.

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
        """Wait for so many *seconds*. Raises :exc:`MustLeave`."""
        await self._wait(seconds)
        if self.longest_wait < inf:
            raise MustLeave

    def leave(self) -> None:
        """Have the request go back to where it came from."""
        self.longest_wait = 0.0
        self._wake()

    async def _wait(self, seconds: float) -> None:
        limit = self._queue.limit
        if limit.is_closing or (limit.is_short and self.longest_wait < inf):
            self.longest_wait = 0.0
        if not self.longest_wait:
            return
        if self.releases:
            self.permit.release()
        woken = self.woken = Deferred()
        seconds = min(seconds, self.longest_wait)
        timer = self._queue.call_later(seconds, self._wake) if seconds < inf else None
        try:
            await maybe_deferred_to_future(woken)
        finally:
            self.woken = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        woken, self.woken = self.woken, None
        if woken is not None:
            self._queue.resume(self.permit.rank, woken)


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
        self.returns = Returns(crawler)
        self._clock = clock
        self._next_line = 0.0
        self._crawler = crawler
        self._size = size
        self._arrivals = numbers()
        #: The queue in the order of arrival, and the part of each origin.
        self._queue: dict[HeldRequest, None] = {}
        self._of_origin: dict[Origin, set[HeldRequest]] = {}
        #: Those that found no room in it, and wait all the same.
        self._outside: set[HeldRequest] = set()
        #: Those that are woken: a heap.
        self._resuming: list[tuple[tuple[int, int], Deferred[None]]] = []
        limit.on_stop(lambda: _make_leave([*self._queue, *self._outside]))
        limit.on_shortage(lambda: _make_leave([e for e in self._outside if e.longest_wait < inf]))
        limit.on_look(self._tell)

    @contextmanager
    def hold(self, origin: Origin, request: Request, arrival: Arrival) -> Iterator[HeldRequest]:
        """For as long as *request*, to *origin*, is held."""
        with self.limit.permit((-request.priority, next(self._arrivals))) as permit:
            held = HeldRequest(self, origin, permit, self._clock())
            if self._has_room(held) or self._displace_for(held):
                self._enter(held)
            else:
                self._keep_outside(held, arrival)
            try:
                yield held
            finally:
                self._exit(held)

    def give_back(self, request: Request) -> Request:
        """*request* as the scheduler is to have it: to keep it, or to hand it out later."""
        count(self._crawler, "robotstxt/given_back_count")
        return self.returns.give_back(request, behind=not self.limit.is_closing)

    def resume(self, rank: tuple[int, int], woken: Deferred[None]) -> None:
        """Fire *woken*: in the order of ranks, and one in each step of the loop.

        All requests that have waited for one robots.txt may be refused at once. Each takes
        a millisecond or two, and nobody else would go on meanwhile.
        """
        if not self._resuming:
            self.call_later(0, self._resume)
        heappush(self._resuming, (rank, woken))

    def _resume(self) -> None:
        # A stop is not to take a step for each request.
        number = len(self._resuming) if self.limit.is_closing else 1
        resuming = [heappop(self._resuming)[1] for _ in range(number)]
        if self._resuming:
            self.call_later(0, self._resume)
        for woken in resuming:
            # Else its request was cancelled.
            if not woken.called:
                woken.callback(None)

    # -- room --------------------------------------------------------------------------

    def _has_room(self, held: HeldRequest) -> bool:
        of_origin = len(self._of_origin.get(held.origin, ()))
        return of_origin < min(PER_ORIGIN, self._size - len(self._queue))

    def _displace_for(self, held: HeldRequest) -> bool:
        """Whether *held* has a higher priority than the last one, which leaves for it."""
        others = self._of_origin.get(held.origin, self._queue)
        last = max(others, key=attrgetter("permit.rank"))
        if last.permit.rank[0] <= held.permit.rank[0] or last.woken is None:
            return False
        self._exit(last)
        last.leave()
        return True

    def _enter(self, held: HeldRequest) -> None:
        self._queue[held] = None
        self._of_origin.setdefault(held.origin, set()).add(held)
        count(self._crawler, "robotstxt/waiting_count")
        highest(self._crawler, "robotstxt/waiting_max", len(self._queue))

    def _exit(self, held: HeldRequest) -> None:
        self._outside.discard(held)
        if held in self._queue:
            del self._queue[held]
            of_origin = self._of_origin[held.origin]
            of_origin.remove(held)
            if not of_origin:
                del self._of_origin[held.origin]

    def _keep_outside(self, held: HeldRequest, arrival: Arrival) -> None:
        if arrival is Arrival.FROM_COMPONENT:
            # The component would ask again at once. Its concurrency is not released: that
            # keeps the crawl from asking for more than can wait.
            held.releases = False
        else:
            held.longest_wait = 0.0 if arrival is Arrival.FIRST else _BRIEFLY
            held.releases = sum(each.releases for each in self._outside) < _BRIEF_RELEASES
        self._outside.add(held)

    def _tell(self) -> None:
        """Write the line about the request that has waited for longest, if it is time to."""
        now = self._clock()
        longest = next(iter(self._queue), None)
        if longest is None or now < max(self._next_line, longest.since + _FIRST_LINE):
            return
        self._next_line = now + _NEXT_LINE
        logger.info(
            "Requests held for a robots.txt or their turn: %(requests)d "
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
