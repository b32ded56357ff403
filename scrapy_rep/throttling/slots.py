"""The delays that origins ask for, kept by Scrapy's download slots."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core import downloader as scrapys_downloader
from scrapy.utils.asyncio import call_later
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from scrapy_rep.holding.concurrency import LOOK, Places
from scrapy_rep.rep.urls import InvalidURL, Origin
from scrapy_rep.settings import PacedBy

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings
    from scrapy_rep.throttling.fleet import FleetTurns

logger = logging.getLogger(__name__)

#: Request meta of Scrapy.
_SLOT = "download_slot"
_NO_AUTOTHROTTLE = "autothrottle_dont_adjust_delay"

_NEVER = float("inf")

# What slots take times from; older versions of Scrapy use time.time().
_slot_clock: Callable[[], float] = time.monotonic
if getattr(scrapys_downloader, "time", None) is time.time:
    _slot_clock = time.time


class SlotPacer:
    """Gives download slots the delays that origins ask for.

    When a request has come to its slot, whichever that is: slots may be chosen by
    anyone, are dropped when they are idle, and made anew. Two origins that share
    a slot get the longer delay.

    In a fleet, a request goes on when it is its turn among those of all workers
    besides; see :mod:`scrapy_rep.throttling.fleet`.

    A delay is counted from the end of a download, so that a server never sees two
    requests closer together, however long each took to get there.

    A request comes to its slot when it can start there at once. In the queue of the
    slot it would hold a place of CONCURRENT_REQUESTS, and a crawl that stops would
    wait for it.
    """

    def __init__(self, crawler: Crawler, settings: RepSettings, places: Places) -> None:
        self._crawler = crawler
        self._settings = settings
        #: Those who wait for their turn, by the key of their slot.
        self._lines: dict[str, _Line] = {}
        places.on_look(self._call_next_of_all)
        #: Seconds, by origin.
        self._delays: dict[str, float] = {}
        #: By the slot's key, the one not used for longest first.
        self._slots: OrderedDict[str, _PacedSlot] = OrderedDict()
        #: Requests under way that AutoThrottle is kept from.
        self._marked: set[Request] = set()
        self._started = False
        self._turns: FleetTurns | None = None
        if settings.pacing is PacedBy.FLEET:
            # With a store in Redis alone.
            from scrapy_rep.throttling.fleet import FleetTurns

            self._turns = FleetTurns(
                crawler,
                settings,
                hand_out=self._hand_out,
                is_wanted=self._is_wanted,
                call_next=self._call_next,
            )

    def keep(self, origin: str, delay: float, request: Request) -> Deferred[None] | None:
        """Leave *delay* seconds before *request*, and all that follow, to *origin*.

        Returns what fires when it is the turn of *request* to go on to the
        downloader, and is cancelled if *request* no longer waits; ``None`` where it
        may go on now.
        """
        if not self._started:
            self._start()
        self._delays[origin] = delay
        if "redirect_urls" in request.meta:
            self._leave_slot_of_redirect(request)
        key = self._key(request)
        if key is None:
            return None
        if self._turns is None:
            slot = self._slot(key)
            if slot is not None and not slot.queue:
                self._pace(key, slot, origin)
        line = self._lines.setdefault(key, _Line())
        if self._turns is None and not line.waiting and self._ready_in(key, line) <= 0:
            line.called_at = time.monotonic()
            return None
        turn = line.join(request)
        self._call_next(key)
        return turn

    def keep_fetch(self, origin: str, request: Request) -> Deferred[None] | None:
        """The same for *request*, for the robots.txt of *origin*, which goes first.

        The slot alone sees to it if there is no fleet.
        """
        key = self._key(request)
        if self._turns is None or key is None or origin not in self._delays:
            return None
        line = self._lines.setdefault(key, _Line())
        if self._turns.is_handed_out(key):
            # To a request that waits for this one.
            line.called = request
            return None
        turn = line.join(request, first=True)
        self._call_next(key)
        return turn

    def has_turn(self, request: Request) -> bool:
        """Whether it still is the turn of *request*, whose turn it was.

        A slot lets nobody go on too early.
        """
        if self._turns is None:
            return True
        key = self._key(request) or ""
        line = self._lines.get(key)
        return line is not None and line.called is request and self._turns.is_handed_out(key)

    def _ready_in(self, key: str, line: _Line) -> float:
        """Seconds until a request may go on to the slot of *key*, and start there at once.

        Infinite while one is under way there.
        """
        # Who has been called last may not have come to the slot yet, or may never come.
        awaited = line.called_at + LOOK - time.monotonic()
        slot = self._slot(key)
        if awaited > 0 or slot is None:
            return awaited
        if slot.queue or slot.transferring:
            return _NEVER
        return float(slot.lastseen + slot.delay - _slot_clock())

    def _call_next(self, key: str) -> None:
        """Let who waits for longest for the slot of *key* go on, now or when it is time."""
        line = self._lines.get(key)
        if line is None:
            return
        if self._turns is not None:
            self._call_next_in_fleet(self._turns, key, line)
            return
        if not line.waiting:
            del self._lines[key]
            return
        seconds = self._ready_in(key, line)
        if seconds <= 0:
            self._hand_out(key)
        if line.waiting and seconds != _NEVER and not line.has_timer:
            line.has_timer = True
            call_later(max(seconds, 0.0), self._time_has_come, key, line)

    def _time_has_come(self, key: str, line: _Line) -> None:
        line.has_timer = False
        self._call_next(key)

    def _call_next_in_fleet(self, turns: FleetTurns, key: str, line: _Line) -> None:
        slot = self._slot(key)
        is_awaited = time.monotonic() - line.called_at <= LOOK
        if not turns.is_free(key) or is_awaited or (slot is not None and slot.queue):
            return
        if line.waiting:
            self._take_turn(turns, key, line)
        else:
            del self._lines[key]

    def _take_turn(self, turns: FleetTurns, key: str, line: _Line) -> None:
        """Have the next request of *line* go on when it is the turn of this worker."""
        slot, paced = self._slot(key), self._slots.get(key)
        origin = _origin(next(iter(line.waiting.values()))) or ""
        delay, own_delay = self._delays.get(origin, 0.0), 0.0
        if paced is not None and paced.slot is slot:
            delay, own_delay = max(delay, paced.asked_delay), paced.own_delay
        elif slot is not None:
            own_delay = self._own_delay(key, slot)
            if slot.lastseen:
                # What came last, such as the robots.txt, came before it was paced.
                turns.note_unless_known(key)
        turns.take(key, delay, own_delay)

    def _is_wanted(self, key: str) -> bool:
        """Whether somebody waits for a turn in the slot of *key*."""
        return key in self._lines and bool(self._lines[key].waiting)

    def _hand_out(self, key: str) -> bool:
        """Let the next request go on to the slot of *key*; whether there is one."""
        if not self._is_wanted(key):
            return False
        line = self._lines[key]
        turn, line.called = next(iter(line.waiting.items()))
        del line.waiting[turn]
        line.called_at = time.monotonic()
        turn.callback(None)
        return True

    def _call_next_of_all(self) -> None:
        for key in list(self._lines):
            self._call_next(key)

    def release(self, origin: str) -> None:
        """Let the slots that *origin* was in be as they were, if no other wants it."""
        self._delays.pop(origin, None)
        for key, paced in list(self._slots.items()):
            if paced.asked.pop(origin, None) is not None:
                if paced.asked:
                    paced.apply()
                else:
                    paced.restore()
                    del self._slots[key]

    def _start(self) -> None:
        # Only now: most crawls come to no origin that asks.
        self._started = True
        if not hasattr(self._downloader, "slots"):
            logger.warning(
                "%(downloader)s has no download slots: no Crawl-delay and no Request-rate is kept",
                {"downloader": global_object_name(type(self._downloader))},
                extra={"spider": self._crawler.spider},
            )
            return
        connect = self._crawler.signals.connect
        connect(self._reached_downloader, signals.request_reached_downloader)
        connect(self._downloaded, signals.response_downloaded)
        connect(self._left_downloader, signals.request_left_downloader)

    @property
    def _downloader(self) -> Any:
        assert self._crawler.engine is not None
        return self._crawler.engine.downloader

    def _key(self, request: Request) -> str | None:
        """The key of the slot of *request*, where there are slots."""
        key_of = getattr(self._downloader, "get_slot_key", None)
        return None if key_of is None else str(key_of(request))

    def _slot(self, key: str | None) -> Any:
        return getattr(self._downloader, "slots", {}).get(key)

    def _leave_slot_of_redirect(self, request: Request) -> None:
        """Scrapy leaves a request that is redirected in the slot of the first host."""
        key_of = getattr(self._downloader, "get_slot_key", None)
        slot = request.meta.get(_SLOT)
        if slot is None or key_of is None:
            return
        if any(slot == key_of(Request(url)) for url in request.meta["redirect_urls"]):
            del request.meta[_SLOT]

    def _reached_downloader(self, request: Request) -> None:
        """*request* has a slot, and is about to be put into the queue of that."""
        key = request.meta.get(_SLOT)
        slot = self._slot(key)
        if key is None or slot is None:
            return
        line = self._lines.get(key)
        if line is not None:
            line.called_at = -_NEVER
            if self._turns is not None and line.called is request:
                self._turns.reached_downloader(key)
        if (
            self._pace(key, slot, _origin(request))
            and self._settings.autothrottle
            and not request.meta.get(_NO_AUTOTHROTTLE)
        ):
            request.meta[_NO_AUTOTHROTTLE] = True
            self._marked.add(request)

    def _pace(self, key: str, slot: Any, origin: str | None) -> bool:
        """Give *slot* the delay of *origin*, or of others in it; whether it has one then."""
        paced = self._slots.pop(key, None)
        if paced is not None and paced.slot is not slot:
            paced = None
        if origin in self._delays:
            if paced is None:
                paced = _PacedSlot(slot, self._own_delay(key, slot))
                if slot.lastseen and self._turns is None:
                    # What came last, such as the robots.txt, started before it was paced.
                    slot.lastseen = _slot_clock()
            paced.asked[origin] = self._delays[origin]
        if paced is None:
            return False
        if paced.apply():
            # Or it would wait by its delay of before; it looks again for a request.
            slot.close()
        self._slots[key] = paced
        if len(self._slots) > self._settings.max_origins:
            self._slots.popitem(last=False)
        return True

    def _end_turn(self, turns: FleetTurns, key: str, request: Request) -> None:
        """Tell the fleet that *request* has been sent, with a turn or without one."""
        line = self._lines.get(key)
        if line is not None and line.called is request and turns.over(key):
            line.called = None
        elif key in self._slots:
            turns.sent(key, self._slots[key].asked_delay)

    def _own_delay(self, key: str, slot: Any) -> float:
        """The delay of the project's settings."""
        if not self._settings.autothrottle:
            return float(slot.delay)
        own = getattr(self._downloader, "per_slot_settings", {}).get(key, {})
        return float(own.get("delay", self._settings.download_delay))

    def _downloaded(self, request: Request) -> None:
        paced = self._slots.get(request.meta.get(_SLOT, ""))
        if paced is not None:
            paced.slot.lastseen = _slot_clock()

    def _left_downloader(self, request: Request) -> None:
        key = request.meta.get(_SLOT, "")
        if self._turns is not None:
            self._end_turn(self._turns, key, request)
        self._call_next(key)
        # Or requests that are made from this one's meta would have it for good.
        if request in self._marked:
            self._marked.discard(request)
            request.meta.pop(_NO_AUTOTHROTTLE, None)


@dataclass(slots=True)
class _Line:
    """Requests that wait for their turn in one slot; which was called last, and when."""

    called: Request | None = None
    called_at: float = -_NEVER
    has_timer: bool = False
    #: By what fires when it is their turn; first in, first out.
    waiting: dict[Deferred[None], Request] = field(default_factory=dict)

    def join(self, request: Request, *, first: bool = False) -> Deferred[None]:
        """What fires when it is the turn of *request*; it may be cancelled before."""
        turn: Deferred[None] = Deferred(self.leave)
        if first:
            self.waiting = {turn: request, **self.waiting}
        else:
            self.waiting[turn] = request
        return turn

    def leave(self, turn: Deferred[None]) -> None:
        """*turn* is not waited for any more."""
        del self.waiting[turn]


def _origin(request: Request) -> str | None:
    """The origin that the slot of *request* has to be paced for."""
    if request.meta.get("dont_obey_robotstxt") and not request.url.endswith("/robots.txt"):
        return None
    with suppress(InvalidURL):
        return str(Origin.of(request.url))
    return None


class _PacedSlot:
    """A download slot that does not have its own delay."""

    def __init__(self, slot: Any, own_delay: float) -> None:
        self.slot = slot
        #: Seconds, by origin.
        self.asked: dict[str, float] = {}
        #: The delay of the project's settings.
        self.own_delay = own_delay
        self._applied = 0.0
        # "randomize_delay" is deprecated since Scrapy has "jitter".
        jitter = "jitter" if hasattr(slot, "jitter") else "randomize_delay"
        self._before = {name: getattr(slot, name) for name in ("concurrency", "delay", jitter)}
        slot.concurrency = 1
        setattr(slot, jitter, type(self._before[jitter])())

    @property
    def asked_delay(self) -> float:
        """What origins ask for, in seconds."""
        return max(self.asked.values(), default=0.0)

    def apply(self) -> bool:
        """Give the slot its delay, and return whether that is new to it.

        A longer one that somebody else gave it stays.
        """
        delay = max(self.own_delay, self.asked_delay)
        is_new = delay != self._applied or self.slot.delay < delay
        if is_new:
            self._applied = self.slot.delay = delay
        return is_new

    def restore(self) -> None:
        """Let the slot be as it was."""
        for name, value in self._before.items():
            setattr(self.slot, name, value)
