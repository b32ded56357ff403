"""Held requests release their concurrency, and reacquire it before they continue.

Scrapy counts a request as soon as it leaves the scheduler. A request that waits for a robots.txt
counts once, and the fetch that it waits for counts again: a few hosts that do not answer could
stop a whole crawl. So a held request releases its concurrency: the limit of the downloader is
raised by one. The rules for reacquiring:

- The limit has room, and the request would start at once in its download slot. In the queue
  of the slot, it would take concurrency from requests to other hosts.
- Of each slot, the request with the highest priority goes first, and then the one that came
  first. Slots take turns.
- While a held request could continue if there were room, the downloader gets no new request from
  the scheduler. Otherwise, requests of one dead host that the scheduler hands out again and again
  would take all the room.
- Requests with ``NO_CALLBACK``, such as those of media pipelines, need no room. A component
  makes them with ``engine.download_async``, and Scrapy starts those whatever its limit is.
- If no request is in a download slot, one held request continues although there is no room: all
  active requests are in a middleware then, and may wait there for this one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

#: Seconds between two checks, while a request is held, of what Scrapy has no signal for: the start
#: of a stop, and requests that leave without having been sent.
LOOK = 0.25
# How many slots are checked in one step; the others follow in the next one.
_SLOTS = 50


class State(Enum):
    """The states of a permit.

    ::

        COUNTED --release--> RELEASED --reacquire--> RETURNING --granted--> COUNTED

    The end of the hold leads from each of them to COUNTED.
    """

    #: The request counts against CONCURRENT_REQUESTS, as usual in Scrapy.
    COUNTED = auto()
    #: It waits, and another request may be downloaded instead.
    RELEASED = auto()
    #: It could continue, and waits until there is room.
    RETURNING = auto()


@dataclass(eq=False, slots=True)
class Permit:
    """The share of one held request in the concurrency limit.

    Of one download slot, the permit with the lowest *rank* reacquires first.
    """

    rank: tuple[int, int] = (0, 0)
    state: State = State.COUNTED
    #: While it is returning: the download slot of its request, and the event that it waits for.
    slot: str | None = None
    granted: Deferred[None] = field(default_factory=Deferred)


class ConcurrencyLimit:
    """The concurrency limit of one crawl, with callbacks for when the crawl stops.

    Signals of Scrapy call :meth:`reached_downloader`, :meth:`left_downloader` and :meth:`grant`.
    """

    def __init__(self, engine: Engine, call_later: Callable[..., Any] = call_later) -> None:
        #: Called every :data:`LOOK` seconds while a request is held.
        self.on_look: list[Callable[[], None]] = []
        #: Called when the crawl is about to stop, and again if requests are held later.
        self.on_stop: list[Callable[[], None]] = []
        #: Called when held requests could continue, but there is no room.
        self.on_shortage: list[Callable[[], None]] = []
        self._engine = engine
        self._call_later = call_later
        #: The number of permits in use, and of those that are not counted.
        self._open = 0
        self._released = 0
        #: The concurrency that is withheld from new requests while held requests return.
        self._withheld = 0
        #: Permits that are returning, by download slot and in order.
        self._returning: dict[str | None, list[Permit]] = {}
        #: Requests in download slots, without those of components.
        self._in_slots: set[Request] = set()
        #: Whether a request was granted concurrency and may not have reached its slot yet.
        self._is_one_on_its_way = False
        self._is_looking = False

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

    @property
    def is_short(self) -> bool:
        """Whether a held request could continue if there were room."""
        return self._withheld > 0

    # -- permits -----------------------------------------------------------------------

    @contextmanager
    def permit(self, rank: tuple[int, int] = (0, 0)) -> Iterator[Permit]:
        """A permit for a request that is held in this context."""
        self._open += 1
        self._look_later()
        permit = Permit(rank)
        try:
            yield permit
        finally:
            if permit.state is State.RETURNING:
                # It was cancelled.
                self._forget(permit)
            self._enter(permit, State.COUNTED)
            self._open -= 1

    @contextmanager
    def released(self) -> Iterator[None]:
        """A released permit, for a robots.txt fetch that the downloader has."""
        with self.permit() as permit:
            self.release(permit)
            yield

    def release(self, permit: Permit) -> None:
        """Let another request be downloaded while the request of *permit* waits."""
        if permit.state is State.COUNTED:
            self._enter(permit, State.RELEASED)

    async def reacquire(self, permit: Permit, request: Request) -> None:
        """Return when *request* can be downloaded at once, or the crawl stops."""
        if permit.state is not State.RELEASED:
            return
        if request.callback is NO_CALLBACK:
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

    def _forget(self, permit: Permit) -> None:
        # Requests may be withheld from the downloader for this one alone.
        self._withhold(0)
        self._returning[permit.slot].remove(permit)
        if not self._returning[permit.slot]:
            del self._returning[permit.slot]
        self._call_later(0, self.grant)

    # -- what happens ------------------------------------------------------------------

    def reached_downloader(self, request: Request) -> None:
        """*request* is in a download slot."""
        if request.callback is not NO_CALLBACK:
            self._is_one_on_its_way = False
            self._in_slots.add(request)

    def left_downloader(self, request: Request) -> None:
        """*request* is no longer in a download slot."""
        self._in_slots.discard(request)
        if self._returning:
            # It is still active for a moment.
            self._call_later(0, self.grant)

    def grant(self) -> None:
        """Let held requests continue while there is room, one of each slot in turn."""
        if not self._returning:
            return
        self._withhold(0)
        granted: list[Permit] = []
        for slot in list(islice(self._returning, _SLOTS)):
            may_go_without_room = not self._in_slots and not self._is_one_on_its_way
            if not (self._has_room or may_go_without_room):
                break
            waiting = self._returning.pop(slot)
            if self._engine.slot_is_free(slot):
                self._is_one_on_its_way = True
                granted.append(waiting.pop(0))
                # At once, because it counts for the next check of the room.
                self._enter(granted[-1], State.COUNTED)
            if waiting:
                # Behind the other slots.
                self._returning[slot] = waiting
        is_free = self._engine.slot_is_free
        if not self._has_room and any(map(is_free, islice(self._returning, _SLOTS))):
            # What becomes free is for the held requests, which are all active.
            self._withhold(self._engine.concurrency - self._released)
            for callback in self.on_shortage:
                callback()
        fire(permit.granted for permit in granted)

    @property
    def _has_room(self) -> bool:
        # Both numbers include the requests that have released their concurrency.
        limit = self._engine.concurrency
        return not limit or self._engine.active_count < limit

    def _withhold(self, number: int) -> None:
        self._engine.raise_concurrency(self._withheld - number)
        self._withheld = number

    # -- looks and the stop ------------------------------------------------------------

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._call_later(LOOK, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if not self._open:
            return
        if self.is_closing:
            self._stop()
            return
        self._look_later()
        # The request was dropped or answered by another middleware, or waits in one.
        self._is_one_on_its_way = False
        self.grant()
        for callback in self.on_look:
            callback()

    def _stop(self) -> None:
        # Otherwise, the crawl could end while a request returns to the scheduler.
        self._engine.keep_open(LOOK)
        self._withhold(0)
        returning = list(chain.from_iterable(self._returning.values()))
        self._returning.clear()
        for permit in returning:
            self._enter(permit, State.COUNTED)
        fire(permit.granted for permit in returning)
        for callback in self.on_stop:
            callback()


def fire(events: Iterable[Deferred[None]]) -> None:
    """Let the requests continue that wait for *events*."""
    for event in events:
        # If it was called, its request was just cancelled.
        if not event.called:
            event.callback(None)
