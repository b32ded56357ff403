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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count as numbers
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.progress import Progress
from scrapy_rep.holding.refusals import RefusalQueue
from scrapy_rep.holding.returns import Arrival, Returns
from scrapy_rep.observers.stats import count, highest

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.holding.concurrency import ConcurrencyLimit, Permit
    from scrapy_rep.rep.parsing.urls import Origin

_T = TypeVar("_T")

#: How many requests are held for one origin. Each makes every round of the garbage collector
#: longer, and a round stops everybody: with 2,500, a quarter of a second.
PER_ORIGIN = 256
# Seconds for which a request is held that does not find room, and was tried before.
_BRIEFLY = 0.25
# How many of these release their concurrency. Schedulers hand out requests for a dead host
# again and again, among the others: a few of them must not take concurrency from these.
_BRIEF_RELEASES = 16


class HeldRequest:
    """A request that waits. *permit* has its rank in the order of the queue."""

    def __init__(self, queue: HoldQueue, origin: Origin, request: Request, permit: Permit) -> None:
        self.origin = origin
        self.rank = permit.rank
        #: Whether its concurrency is released while it waits.
        self.releases = True
        #: It waits each time for so many seconds at most, and must leave then.
        self.longest_wait: float | None = None
        #: Whether it must go back to where it came from.
        self.must_leave = False
        self._queue = queue
        self._request = request
        self._permit = permit
        self._woken: Deferred[None] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing has come yet of what it waits for."""
        return self._woken is not None

    async def wait(self, event: Deferred[_T]) -> _T | None:
        """What *event* brings; ``None`` if the request must leave before that.

        *event* fails only with :exc:`~scrapy_rep.CrawlStopping`, or is cancelled.
        """
        brought: list[_T] = []

        def bring_nothing(failure: Failure) -> None:
            failure.trap(CrawlStopping, CancelledError)  # type: ignore[no-untyped-call]

        event.addCallbacks(brought.append, bring_nothing)
        if not event.called:
            event.addCallback(lambda _: self._wake())
            await self._wait(None)
        return brought[0] if brought else None

    async def wait_for_turn(self, turn: Deferred[None]) -> bool:
        """Whether *turn* has come; if not, it is given up, and the request must leave."""
        await self.wait(turn)
        if not turn.called:
            turn.cancel()
            return False
        return True

    async def sleep(self, seconds: float) -> bool:
        """Wait for so many *seconds*; whether the request may stay after that."""
        await self._wait(seconds)
        return not self.must_leave and self.longest_wait is None

    async def reacquire(self) -> None:
        """Return when there is concurrency for the request, or the crawl stops."""
        await self._permit.reacquire(self._request)

    def leave(self) -> None:
        """Have the request go back to where it came from."""
        self.must_leave = True
        self._wake()

    async def _wait(self, seconds: float | None) -> None:
        if self.longest_wait is not None:
            seconds = self.longest_wait if seconds is None else min(seconds, self.longest_wait)
            if not seconds or self._queue.is_short:
                return
        if self.must_leave or self._queue.is_closing:
            self.must_leave = True
            return
        if self.releases:
            self._permit.release()
        woken = self._woken = Deferred()
        timer = None if seconds is None else self._queue.call_later(seconds, self._wake)
        try:
            await maybe_deferred_to_future(woken)
        finally:
            self._woken = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        woken, self._woken = self._woken, None
        if woken is not None:
            self._queue.resume(self.rank, woken)


class _Line:
    """Held requests by priority, then by arrival."""

    def __init__(self) -> None:
        self._by_priority: dict[int, dict[HeldRequest, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, held: HeldRequest) -> bool:
        return held in self._by_priority.get(-held.rank[0], ())

    def add(self, held: HeldRequest) -> None:
        self._by_priority.setdefault(-held.rank[0], {})[held] = None
        self._count += 1

    def remove(self, held: HeldRequest) -> None:
        same = self._by_priority[-held.rank[0]]
        del same[held]
        self._count -= 1
        if not same:
            del self._by_priority[-held.rank[0]]

    def last(self) -> HeldRequest:
        """The one with the lowest priority that came last."""
        return next(reversed(self._by_priority[min(self._by_priority)]))


class HoldQueue:
    """The held requests of one crawl: *size* of them at most."""

    def __init__(
        self,
        crawler: Crawler,
        limit: ConcurrencyLimit,
        size: int,
        call_later: Callable[..., Any] = call_later,
    ) -> None:
        self.call_later = call_later
        self._crawler = crawler
        self._limit = limit
        self._size = size
        self._returns = Returns(crawler)
        self.progress = Progress(crawler.spider)
        self._refusals = RefusalQueue(lambda: limit.has_room or limit.is_closing)
        self._arrivals = numbers()
        #: The queue, and the part of each origin.
        self._line = _Line()
        self._lines: dict[Origin, _Line] = {}
        #: All that are held; and those outside of the queue that are held for a moment.
        self._held: set[HeldRequest] = set()
        self._brief: set[HeldRequest] = set()
        self._resuming: list[tuple[tuple[int, int], Deferred[None]]] = []
        limit.on_stop(lambda: _make_leave(self._held))
        limit.on_shortage(lambda: _make_leave(self._brief))
        limit.on_look(lambda: self.progress.tell(len(self._line)))

    # -- in and out --------------------------------------------------------------------

    def arrival(self, request: Request) -> Arrival:
        """How *request* has come to the middleware."""
        return self._returns.arrival(request)

    @contextmanager
    def hold(self, origin: Origin, request: Request, arrival: Arrival) -> Iterator[HeldRequest]:
        """For as long as *request*, to *origin*, is held."""
        with self._limit.permit((-request.priority, next(self._arrivals))) as permit:
            held = HeldRequest(self, origin, request, permit)
            if self._find_room(held):
                self._enter(held)
            else:
                self._keep_outside(held, arrival)
            self._held.add(held)
            try:
                yield held
            finally:
                self._held.discard(held)
                self._brief.discard(held)
                self._exit(held)

    def give_back(self, request: Request) -> Request:
        """*request* as the scheduler is to have it: to keep it, or to hand it out later."""
        count(self._crawler, "robotstxt/given_back_count")
        return self._returns.give_back(request, behind=not self.is_closing)

    async def turn_to_be_refused(self) -> None:
        """Return when held requests that came before have been refused."""
        await self._refusals.turn()

    # -- for held requests ----------------------------------------------------------------

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop."""
        return self._limit.is_closing

    @property
    def is_short(self) -> bool:
        """Whether a request of the queue needs concurrency."""
        return self._limit.is_short

    def resume(self, rank: tuple[int, int], woken: Deferred[None]) -> None:
        """Fire *woken* in the next step of the loop, in the order of ranks."""
        if not self._resuming:
            self.call_later(0, self._resume)
        self._resuming.append((rank, woken))

    def _resume(self) -> None:
        resuming, self._resuming = self._resuming, []
        for _, woken in sorted(resuming, key=itemgetter(0)):
            # Else its request was cancelled.
            if not woken.called:
                woken.callback(None)

    # -- room --------------------------------------------------------------------------

    def _find_room(self, held: HeldRequest) -> bool:
        """Whether there is room for *held*, or a request that it displaces."""
        line = self._lines.get(held.origin)
        if (len(line) if line else 0) < min(PER_ORIGIN, self._size - len(self._line)):
            return True
        last = (line or self._line).last()
        if last.rank[0] <= held.rank[0] or not last.is_waiting:
            return False
        self._exit(last)
        last.leave()
        return True

    def _enter(self, held: HeldRequest) -> None:
        self._line.add(held)
        if held.origin not in self._lines:
            self._lines[held.origin] = _Line()
            self.progress.begin(held.origin)
        self._lines[held.origin].add(held)
        count(self._crawler, "robotstxt/waiting_count")
        highest(self._crawler, "robotstxt/waiting_max", len(self._line))

    def _exit(self, held: HeldRequest) -> None:
        if held not in self._line:
            return
        self._line.remove(held)
        line = self._lines[held.origin]
        line.remove(held)
        if not line:
            del self._lines[held.origin]
            self.progress.end(held.origin)

    def _keep_outside(self, held: HeldRequest, arrival: Arrival) -> None:
        if arrival is Arrival.FROM_COMPONENT:
            # The component would ask again at once. Its concurrency is not released: that
            # keeps the crawl from asking for more than can wait.
            held.releases = False
            return
        held.longest_wait = 0.0 if arrival is Arrival.FIRST else _BRIEFLY
        held.releases = sum(each.releases for each in self._brief) < _BRIEF_RELEASES
        self._brief.add(held)


def _make_leave(held: set[HeldRequest]) -> None:
    for each in list(held):
        each.leave()
