"""Held requests release their concurrency, and reacquire it before they continue.

Scrapy counts a request as soon as it leaves the scheduler. A request that waits for a robots.txt
counts once, and the fetch that it waits for counts again: a few hosts that do not answer could
stop a whole crawl. So a held request raises the limit of the downloader by one. Then:

- It reacquires concurrency if the limit has room and it would start at once in its download slot.
  In the queue of the slot, it would take concurrency from requests to other hosts.
- Slots take turns. Of each slot, the highest priority goes first, then the first that came.
- While a held request could continue if there were room, the downloader gets no new request. The
  scheduler may hand out requests of one dead host again and again, which would take all the room.
- Requests with ``NO_CALLBACK`` need no room. Components, such as media pipelines, make them with
  ``engine.download_async``, and Scrapy starts those whatever its limit is.
- If no request is in a download slot, one held request continues although there is no room: all
  active requests are in a middleware then, and may wait there for this one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine

#: Seconds between two checks, while a request is held, of what Scrapy has no signal for: the start
#: of a stop, and requests that leave without having been sent.
LOOK = 0.25
# A granted request that is in no slot after so many looks was dropped or answered by another
# middleware, or waits in one. The first of these looks may follow the grant at once.
_LOOKS_ON_THE_WAY = 2
# How many slots are checked in one step; the others follow in the next one.
_SLOTS = 50


class State(Enum):
    """The states of a permit.

    ::

        COUNTED --release--> RELEASED --reacquire--> RETURNING --granted--> COUNTED

    The end of the hold leads from each of them to COUNTED.
    """

    COUNTED = "it counts against CONCURRENT_REQUESTS, as usual in Scrapy"
    RELEASED = "it waits, and another request may be downloaded instead"
    RETURNING = "it could continue, and waits until there is room"


@dataclass(eq=False, slots=True)
class Permit:
    """The share of one held request in the concurrency limit. The lowest *rank* goes first."""

    rank: tuple[int, int] = (0, 0)
    state: State = State.COUNTED
    #: While it is returning: the download slot of its request, and the event that it waits for.
    slot: str | None = None
    granted: Deferred[None] = field(default_factory=Deferred)


class ConcurrencyLimit:
    """The concurrency limit of one crawl. It also tells components when the crawl stops."""

    def __init__(self, engine: Engine, call_later: Callable[..., Any] = call_later) -> None:
        #: Called every :data:`LOOK` seconds while a request is held: *on_look* during the crawl,
        #: *on_stop* when it is about to stop.
        self.on_look: list[Callable[[], None]] = []
        self.on_stop: list[Callable[[], None]] = []
        #: Called when held requests could continue, but there is no room.
        self.on_shortage: list[Callable[[], None]] = []
        self.call_later = call_later
        #: The concurrency that new requests do not get, because held requests could continue.
        self.withheld = 0
        self._engine = engine
        #: The number of permits in use, and of those that are not counted.
        self._open = self._released = 0
        #: Permits that are returning, by download slot and in order.
        self._returning: dict[str | None, list[Permit]] = {}
        #: Requests in download slots, without those of components.
        self._in_slots: set[Request] = set()
        #: For so many looks, a request that was granted concurrency may be on its way to its slot.
        self._looks_on_the_way = 0
        self._is_looking = False
        #: A heap of the requests that are about to continue.
        self._resuming: list[tuple[bool, tuple[int, int], Deferred[None]]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConcurrencyLimit:
        """The concurrency limit of *crawler*, connected to its signals."""
        limit = cls(Engine(crawler))
        connect = crawler.signals.connect
        connect(limit.reached_downloader, signals.request_reached_downloader)
        connect(limit.left_downloader, signals.request_left_downloader)
        connect(limit.grant, signals.response_received)
        return limit

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop and waits for its last requests."""
        return self._engine.is_closing

    @contextmanager
    def use(self, permit: Permit) -> Iterator[Permit]:
        """Hold the request of *permit* in this context."""
        self._open += 1
        if not self._is_looking:
            self._is_looking = True
            self.call_later(LOOK, self._look)
        try:
            yield permit
        finally:
            if permit.state is State.RETURNING:
                # It was cancelled, and requests may be withheld from the downloader for it alone.
                self._withhold(0)
                self._returning[permit.slot].remove(permit)
                if not self._returning[permit.slot]:
                    del self._returning[permit.slot]
                self.call_later(0, self.grant)
            self._enter(permit, State.COUNTED)
            self._open -= 1

    @contextmanager
    def released(self) -> Iterator[None]:
        """A released permit, for a robots.txt fetch that the downloader has."""
        with self.use(Permit()) as permit:
            self.release(permit)
            yield

    def release(self, permit: Permit) -> None:
        """Let another request be downloaded while the request of *permit* waits."""
        self._enter(permit, State.RELEASED)

    async def reacquire(self, permit: Permit, request: Request) -> None:
        """Return when *request* can be downloaded at once, or the crawl stops."""
        if permit.state is State.COUNTED or request.callback is NO_CALLBACK:
            self._enter(permit, State.COUNTED)
            return
        self._enter(permit, State.RETURNING)
        permit.slot = self._engine.slot_key(request)
        permit.granted = Deferred()
        insort(self._returning.setdefault(permit.slot, []), permit, key=attrgetter("rank"))
        self.grant()
        await maybe_deferred_to_future(permit.granted)

    def _enter(self, permit: Permit, state: State) -> None:
        released = (permit.state is State.COUNTED) - (state is State.COUNTED)
        permit.state = state
        self._released += released
        self._engine.raise_concurrency(released)

    def reached_downloader(self, request: Request) -> None:
        """*request* is in a download slot."""
        if request.callback is not NO_CALLBACK:
            self._looks_on_the_way = 0
            self._in_slots.add(request)

    def left_downloader(self, request: Request) -> None:
        """*request* is no longer in a download slot."""
        self._in_slots.discard(request)
        if self._returning:
            # It is still active for a moment.
            self.call_later(0, self.grant)

    def grant(self) -> None:
        """Let held requests continue while there is room, one of each slot in turn."""
        self._withhold(0)
        for slot in list(islice(self._returning, _SLOTS)):
            may_go_without_room = not self._in_slots and not self._looks_on_the_way
            if not (self._has_room or may_go_without_room):
                break
            # If others remain in the slot, they are behind the other slots.
            waiting = self._returning.pop(slot)
            if self._engine.slot_is_free(slot):
                self._looks_on_the_way = _LOOKS_ON_THE_WAY
                self._grant(waiting.pop(0))
            if waiting:
                self._returning[slot] = waiting
        is_free = self._engine.slot_is_free
        if not self._has_room and any(map(is_free, islice(self._returning, _SLOTS))):
            # What becomes free is for the held requests, which are all active.
            self._withhold(self._engine.concurrency - self._released)
            for callback in self.on_shortage:
                callback()

    def _grant(self, permit: Permit) -> None:
        # It counts at once, for the next check of the room.
        self._enter(permit, State.COUNTED)
        self.resume(permit, permit.granted)

    @property
    def _has_room(self) -> bool:
        # Both numbers include the requests that have released their concurrency.
        limit = self._engine.concurrency
        return not limit or self._engine.active_count < limit

    def _withhold(self, number: int) -> None:
        self._engine.raise_concurrency(self.withheld - number)
        self.withheld = number

    def resume(self, permit: Permit, event: Deferred[None]) -> None:
        """Fire *event*, for which the request of *permit* waits: one in each step of the loop.

        Those that have concurrency go first, and then the lowest rank. All requests that wait for
        one robots.txt may be refused at the same time. Each takes one or two milliseconds, which
        would block everything else.
        """
        if not self._resuming:
            self.call_later(0, self._resume)
        heappush(self._resuming, (permit.state is State.RELEASED, permit.rank, event))

    def _resume(self) -> None:
        # When the crawl stops, all continue in one step.
        number = len(self._resuming) if self.is_closing else 1
        events = [heappop(self._resuming)[-1] for _ in range(number)]
        if self._resuming:
            self.call_later(0, self._resume)
        for event in events:
            # This has no effect if its request was just cancelled.
            event.callback(None)

    def _look(self) -> None:
        self._is_looking = self._open > 0
        if not self._open:
            return
        self.call_later(LOOK, self._look)
        if not self.is_closing:
            if self._looks_on_the_way:
                self._looks_on_the_way -= 1
            self.grant()
        else:
            # Otherwise, the crawl could end while a request returns to the scheduler.
            self._engine.keep_open(LOOK)
            self._withhold(0)
            for permit in chain.from_iterable(self._returning.values()):
                self._grant(permit)
            self._returning.clear()
        for callback in self.on_stop if self.is_closing else self.on_look:
            callback()
