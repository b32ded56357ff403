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

Scrapy has no signal for the start of a stop, and none for a request that leaves without having
been sent. So while a request is held, both are checked every :data:`LOOK` seconds.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from itertools import islice
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

#: Seconds between two checks of what Scrapy has no signal for.
LOOK = 0.25
# How many slots are checked in one step; the others follow in the next one.
_SLOTS = 50


class State(Enum):
    """The states of a permit.

    ::

        COUNTED --release--> RELEASED --reacquire--> RETURNING --granted--> COUNTED

    ``close`` leads from each of them to COUNTED.
    """

    #: The request counts against CONCURRENT_REQUESTS, as usual in Scrapy.
    COUNTED = auto()
    #: It waits, and another request may be downloaded instead.
    RELEASED = auto()
    #: It could continue, and waits until there is room.
    RETURNING = auto()


class Permit:
    """The share of one held request in the concurrency limit.

    Permits with a lower *rank* reacquire first, within a download slot.
    """

    def __init__(self, limit: ConcurrencyLimit, rank: tuple[int, int]) -> None:
        self.rank = rank
        self.state = State.COUNTED
        #: While it is returning: the download slot of its request, and the event that it waits for.
        self.slot: str | None = None
        self.granted: Deferred[None] = Deferred()
        self._limit = limit

    def release(self) -> None:
        """Let another request be downloaded while this one waits."""
        if self.state is State.COUNTED:
            self.enter(State.RELEASED)

    async def reacquire(self, request: Request) -> None:
        """Return when *request* may continue, or when the crawl stops."""
        if self.state is State.RELEASED:
            await self._limit.reacquire(self, request)

    def close(self) -> None:
        """The request is no longer held."""
        if self.state is State.RETURNING:
            # It was cancelled.
            self._limit.forget(self)
        self.enter(State.COUNTED)

    def enter(self, state: State) -> None:
        """Change to *state*."""
        was, self.state = self.state, state
        self._limit.change((was is State.COUNTED) - (state is State.COUNTED))


class ConcurrencyLimit:
    """The concurrency limit of one crawl, with callbacks for when the crawl stops.

    Signals of Scrapy call :meth:`reached_downloader`, :meth:`left_downloader` and :meth:`grant`.
    """

    def __init__(self, engine: Engine, call_later: Callable[..., Any] = call_later) -> None:
        self._engine = engine
        self._call_later = call_later
        #: The number of permits that are not closed, and of those that are released.
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
        self._on_look: list[Callable[[], None]] = []
        self._on_stop: list[Callable[[], None]] = []
        self._on_shortage: list[Callable[[], None]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConcurrencyLimit:
        """The concurrency limit of *crawler*, connected to its signals."""
        limit = cls(Engine(crawler))
        connect = crawler.signals.connect
        connect(limit.reached_downloader, signals.request_reached_downloader)
        connect(limit.left_downloader, signals.request_left_downloader)
        connect(limit.grant, signals.response_received)
        return limit

    # -- for others ------------------------------------------------------------------

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop and waits for its last requests."""
        return self._engine.is_closing

    @property
    def is_short(self) -> bool:
        """Whether a held request could continue if there were room."""
        return self._withheld > 0

    def on_look(self, callback: Callable[[], None]) -> None:
        """Call *callback* every :data:`LOOK` seconds while a request is held."""
        self._on_look.append(callback)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call *callback* when the crawl is about to stop, and again if requests are held later."""
        self._on_stop.append(callback)

    def on_shortage(self, callback: Callable[[], None]) -> None:
        """Call *callback* when held requests could continue, but there is no room."""
        self._on_shortage.append(callback)

    @contextmanager
    def permit(self, rank: tuple[int, int] = (0, 0)) -> Iterator[Permit]:
        """A permit for a request that is held in this context."""
        self._open += 1
        self._look_later()
        permit = Permit(self, rank)
        try:
            yield permit
        finally:
            permit.close()
            self._open -= 1

    @contextmanager
    def released(self) -> Iterator[None]:
        """A released permit, for a robots.txt fetch that the downloader has."""
        with self.permit() as permit:
            permit.release()
            yield

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

    # -- for permits -------------------------------------------------------------------

    def change(self, released: int) -> None:
        """*released* more requests have released their concurrency."""
        self._released += released
        self._engine.raise_concurrency(released)

    async def reacquire(self, permit: Permit, request: Request) -> None:
        """Grant *permit* when *request* can be downloaded at once, or the crawl stops."""
        if request.callback is NO_CALLBACK:
            permit.enter(State.COUNTED)
            return
        permit.enter(State.RETURNING)
        permit.slot = self._engine.slot_key(request)
        permit.granted = Deferred()
        insort(self._returning.setdefault(permit.slot, []), permit, key=attrgetter("rank"))
        self.grant()
        await maybe_deferred_to_future(permit.granted)

    def forget(self, permit: Permit) -> None:
        """Do not grant *permit* any more."""
        # Requests may be withheld from the downloader for this one alone.
        self._withhold(0)
        self._returning[permit.slot].remove(permit)
        if not self._returning[permit.slot]:
            del self._returning[permit.slot]
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
                granted[-1].enter(State.COUNTED)
            if waiting:
                # Behind the other slots.
                self._returning[slot] = waiting
        self._withhold_for_returning()
        _go_on(granted)

    # -- room --------------------------------------------------------------------------

    @property
    def _total(self) -> int:
        """The limit including released concurrency; 0 for a downloader without a limit."""
        return self._engine.concurrency + self._withheld

    @property
    def _has_room(self) -> bool:
        """Whether one more request may be active."""
        # Both numbers include the requests that have released their concurrency.
        return not self._total or self._engine.active_count < self._total

    def _withhold_for_returning(self) -> None:
        """Keep new requests in the scheduler while held ones could continue."""
        is_free = self._engine.slot_is_free
        if self._has_room or not any(map(is_free, islice(self._returning, _SLOTS))):
            return
        # The rest is for the held requests, which are all active.
        self._withhold(self._total - self._released)
        for callback in self._on_shortage:
            callback()

    def _withhold(self, number: int) -> None:
        self._engine.raise_concurrency(self._withheld - number)
        self._withheld = number

    # -- looks -------------------------------------------------------------------------

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
        for callback in self._on_look:
            callback()

    def _stop(self) -> None:
        # Otherwise, the crawl could end while a request returns to the scheduler.
        self._engine.keep_open(LOOK)
        self._withhold(0)
        returning = [permit for waiting in self._returning.values() for permit in waiting]
        self._returning.clear()
        for permit in returning:
            permit.enter(State.COUNTED)
        _go_on(returning)
        for callback in self._on_stop:
            callback()


def _go_on(granted: list[Permit]) -> None:
    for permit in granted:
        # If it was called, its request was just cancelled.
        if not permit.granted.called:
            permit.granted.callback(None)
