"""Turns to send requests, shared by the workers of a fleet.

Redis grants them, see :mod:`scrapy_rep.stores.redis_pacing`. While it does not work,
each worker waits as many times longer as there were workers, so that all together are
no faster than they may be.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.observers.stats import count
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import StoreError, pause
from scrapy_rep.stores.redis_pacing import RedisPacing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# Seconds after which a request that has been let go, and has not come to the
# downloader, is not waited for: another middleware has dropped or answered it.
_COMES_WITHIN = 1.0
# Seconds after an outage in which a worker also keeps the longer delay of the outage:
# others may not know yet that Redis is back. They look every five seconds at least.
_SETTLING = 10.0
# At the end of a crawl, how often there is a look at what is under way, and the
# seconds between two looks.
_LOOKS_AT_END = 20
_LOOK = 0.05


class _Step(Enum):
    """How far a turn has come."""

    ASKED_FOR = auto()
    HANDED_OUT = auto()
    #: Its request is with the downloader.
    SENT = auto()
    OVER = auto()


@dataclass(slots=True)
class _Turn:
    """A turn in one slot, from when it is asked for until Redis knows that it is over."""

    #: Seconds that sites ask for, and those that the project has for each worker.
    delay: float
    own_delay: float
    step: _Step = _Step.ASKED_FOR
    #: Fires when there is something to do before the time is over.
    woken: Deferred[None] = field(default_factory=Deferred)

    def advance(self, step: _Step) -> None:
        """Go on to *step*, and wake up who waits."""
        self.step = step
        self.wake()

    def wake(self) -> None:
        """Wait no longer."""
        woken, self.woken = self.woken, Deferred()
        woken.callback(None)


class FleetTurns:
    """Takes turns for the download slots of one crawl, one at a time for each slot.

    *hand_out* is called with a slot's key when it is its turn; it returns whether any
    request goes on by that. *is_wanted* says whether one waits for a turn still, and
    *call_next* is called when there may be another turn.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        *,
        hand_out: Callable[[str], bool],
        is_wanted: Callable[[str], bool],
        call_next: Callable[[str], None],
    ) -> None:
        self._crawler = crawler
        self._max_slots = settings.max_origins
        # Such settings are refused.
        assert settings.store.redis is not None
        self._pacing = RedisPacing(settings.store.redis)
        self._hand_out = hand_out
        self._is_wanted = is_wanted
        self._call_next = call_next
        self._turns: dict[str, _Turn] = {}
        #: When the last request of ours in each slot was over, by the processor's clock.
        self._sent_at: OrderedDict[str, float] = OrderedDict()
        # What is under way; also so that it is not garbage.
        self._under_way: set[Deferred[None]] = set()
        self._fails = False
        #: When Redis worked again after it had failed.
        self._back_at = float("-inf")
        #: Workers before Redis failed: when it is back, they are counted anew.
        self._workers_before = 1
        self._closed = False
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- turns --------------------------------------------------------------------

    def is_free(self, slot: str) -> bool:
        """Whether a turn can be taken in *slot*: there is none that is not over."""
        return slot not in self._turns

    def take(self, slot: str, delay: float, own_delay: float) -> None:
        """Take a turn in *slot*, and hand it out.

        *delay* seconds are left between any two requests of the fleet, *own_delay*
        seconds between any two of this worker.
        """
        turn = self._turns[slot] = _Turn(delay, own_delay)
        self._start(self._have(slot, turn))

    def is_handed_out(self, slot: str) -> bool:
        """Whether a turn in *slot* is that of a request which is not with the downloader yet."""
        turn = self._turns.get(slot)
        return turn is not None and turn.step is _Step.HANDED_OUT

    def reached_downloader(self, slot: str) -> None:
        """The request that the turn in *slot* was handed out to is with the downloader."""
        turn = self._turns.get(slot)
        if turn is not None and turn.step is _Step.HANDED_OUT:
            turn.advance(_Step.SENT)

    def over(self, slot: str) -> bool:
        """The request that the turn in *slot* was handed out to is over.

        ``False`` if the turn was over before: the request was late for it.
        """
        turn = self._turns.get(slot)
        if turn is None or turn.step is not _Step.SENT:
            return False
        turn.advance(_Step.OVER)
        return True

    def sent(self, slot: str, delay: float) -> None:
        """A request without a turn, such as one that need not obey, is over."""
        self._note(slot)
        self._start(self._tell(self._pacing.sent(slot, delay)))

    def note_unless_known(self, slot: str) -> None:
        """There may have been a request in *slot* just now, unless we know when it was."""
        if slot not in self._sent_at:
            self._note(slot)

    def _note(self, slot: str) -> None:
        self._sent_at.pop(slot, None)
        self._sent_at[slot] = time.monotonic()
        if len(self._sent_at) > self._max_slots:
            self._sent_at.popitem(last=False)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        doing: Deferred[None] = deferred_from_coro(work)
        self._under_way.add(doing)
        doing.addBoth(lambda _: self._under_way.discard(doing))

    async def _have(self, slot: str, turn: _Turn) -> None:
        """One turn, from the beginning to the end."""
        try:
            if not await self._granted(slot, turn):
                return
            turn.step = _Step.HANDED_OUT
            if self._hand_out(slot):
                if turn.step is _Step.HANDED_OUT:
                    await self._sleep(turn, _COMES_WITHIN)
                while turn.step is _Step.SENT and not self._closed:
                    await self._sleep(turn, None)
                self._note(slot)
            turn.step = _Step.OVER
            await self._tell(self._pacing.over(slot, turn.delay))
        finally:
            del self._turns[slot]
            if not self._closed:
                self._call_next(slot)

    async def _granted(self, slot: str, turn: _Turn) -> bool:
        """Wait for the turn; ``False`` if nobody wants it any more."""
        began = time.monotonic()
        told = False
        while self._is_wanted(slot) and not self._closed:
            now = time.monotonic()
            sent_at = self._sent_at.get(slot)
            early = (began if sent_at is None else sent_at) + self._least(turn) - now
            if early > 0:
                await self._sleep(turn, early)
                continue
            since = None if sent_at is None else now - sent_at
            try:
                count(self._crawler, "robotstxt/turn_asked_count")
                wait = await self._pacing.grant(slot, turn.delay, since, told=told)
            except Exception as error:
                was_alone = self._is_alone
                self._failed(error)
                if was_alone:
                    count(self._crawler, "robotstxt/turn_alone_count")
                    return True
                continue
            self._worked()
            if wait <= 0:
                count(self._crawler, "robotstxt/turn_count")
                return True
            told = True
            await self._sleep(turn, wait)
        return False

    async def _sleep(self, turn: _Turn, seconds: float | None) -> None:
        """Wait until *turn* is woken, for so many *seconds* at most."""
        woken = turn.woken
        timer = None if seconds is None else call_later(seconds, turn.wake)
        try:
            await maybe_deferred_to_future(woken)
        finally:
            if timer is not None:
                timer.cancel()

    async def _tell(self, telling: Coroutine[Any, Any, None]) -> None:
        try:
            await telling
        except Exception as error:
            self._failed(error)

    # -- with and without Redis ---------------------------------------------------------

    @property
    def _is_alone(self) -> bool:
        """Whether Redis does not work, or others may not know yet that it does."""
        return self._fails or time.monotonic() - self._back_at < _SETTLING

    def _least(self, turn: _Turn) -> float:
        """Seconds between two requests of this worker, whatever Redis says."""
        if not self._is_alone:
            return turn.own_delay
        workers = max(self._workers_before, self._pacing.workers)
        return max(turn.own_delay, turn.delay * workers)

    def _failed(self, error: Exception) -> None:
        if self._fails:
            return
        workers = self._pacing.workers
        # What was known before an outage that has only just ended holds still.
        self._workers_before = max(workers, self._workers_before if self._is_alone else 1)
        self._fails = True
        # Somebody is to do something about the first; the second is a bug.
        known = isinstance(error, StoreError)
        logger.warning(
            "Redis does not grant turns (%(error)s): until it does, this worker waits "
            "%(workers)d times as long as sites ask for, as one of %(workers)d workers",
            {
                "error": error if known else printable(f"{type(error).__name__}: {error}"),
                "workers": self._workers_before,
            },
            exc_info=None if known else error,
            extra={"spider": self._crawler.spider},
        )

    def _worked(self) -> None:
        if self._fails:
            self._fails = False
            self._back_at = time.monotonic()
            logger.info("Redis grants turns again", extra={"spider": self._crawler.spider})

    # -- from the beginning to the end of the crawl ---------------------------------------

    def _open(self) -> None:
        # From now on, this worker counts; nobody waits for that.
        self._start(self._be_counted())

    async def _be_counted(self) -> None:
        # If Redis does not work, that is said when a turn is asked for.
        with suppress(StoreError):
            await self._pacing.start()

    async def _close(self) -> None:
        self._closed = True
        for turn in list(self._turns.values()):
            turn.wake()
        for _ in range(_LOOKS_AT_END):
            if not self._under_way:
                break
            await pause(_LOOK)
        await self._pacing.close()
