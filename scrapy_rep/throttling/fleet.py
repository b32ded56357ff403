"""Turns that crawls share: a backend of the throttle that asks a store.

Here may live: what a worker says to the store and when, and what it does while the store
does not work. Here may not live: whose turn it is (:mod:`scrapy_rep.throttling.redis`,
:mod:`scrapy_rep.throttling.sqlite`), and which request gets it
(:mod:`scrapy_rep.throttling.throttle`).

While the store does not work, time at each site is divided into slots by the store's clock,
as far as the workers know it, and the workers use the slots in the order of their ranks. So
together they are no faster than one worker may be.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_rep.observers.stats import add_seconds, count, highest
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import StoreError, pause
from scrapy_rep.throttling.backend import ROUNDING, Answer, Slowed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.throttling.throttle import Timer

logger = logging.getLogger(__name__)

# Seconds between two times that the store is told that a turn is not over yet.
_HOLD_EVERY = 2.0
# Seconds between two attempts to tell the store that a turn is over, and for how long: by
# then the store takes it for over by itself.
_SAY_EVERY = 0.2
_SAY_FOR = 6.0
# Seconds after an outage in which a worker also keeps to its slots: others may not know yet
# that the store is back. They look every five seconds at least.
_SETTLING = 10.0
# Slots are longer than the delay by this factor, because requests take a while, and a worker
# may be late for its slot by this share of the delay. Else it waits for the next one.
_SLOT = 1.1
_LATE = 0.05
# Seconds between two questions of a worker that cannot know how many others there are.
_ASK_EVERY = 1.0
# At the end of a crawl, how often there is a look at what is under way, and the
# seconds between two looks.
_LOOKS_AT_END = 20
_LOOK = 0.05

_LONG_AGO = -float("inf")

_ALONE = "this worker sends one request in %d delays of a site (workers: %d)"
_UNKNOWN = (
    "requests to sites that ask for a delay are held, because the number of workers is not known. "
    "To continue without it, set REP_FLEET_SIZE"
)

#: Says something to the store; takes how many seconds ago it was true.
_Say = Callable[[float], Coroutine[Any, Any, None]]


class TurnStore(Protocol):
    """Grants turns to workers.

    See :class:`~scrapy_rep.throttling.redis.RedisTurns` and
    :class:`~scrapy_rep.throttling.sqlite.SqliteTurns`. Methods raise
    :exc:`~scrapy_rep.stores.base.StoreError`.
    """

    @property
    def name(self) -> str:
        """The kind of store, for people."""
        ...

    @property
    def workers(self) -> int:
        """How many workers there were when the store was asked last; 0 if it never was."""
        ...

    @property
    def rank(self) -> int | None:
        """How many of them come before this one; ``None`` where they are in no order."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether another worker had the turn when :meth:`grant` returned last."""
        ...

    def now(self) -> float:
        """The time by the clock of all workers, as far as it is known."""
        ...

    async def start(self) -> None:
        """Be one of the workers from now on."""
        ...

    async def grant(
        self, site: str, delay: float, since: float | None = None, *, told: bool = False
    ) -> float:
        """The seconds to wait, and then ask again; 0.0: it is our turn now."""
        ...

    async def hold(self, site: str, delay: float) -> None:
        """Our turn is not over yet."""
        ...

    async def unused(self, site: str, delay: float) -> None:
        """We give our turn back, and have sent nothing."""
        ...

    async def over(self, site: str, delay: float, ago: float = 0.0) -> None:
        """The request of our turn is over, since *ago* seconds."""
        ...

    async def sent(self, site: str, delay: float, ago: float = 0.0) -> None:
        """A request without a turn is over, since *ago* seconds."""
        ...

    async def slow(self, site: str, delay: float) -> None:
        """All workers are to leave *delay* at *site*, by what it has answered; 0: no more."""
        ...

    async def slowed(self) -> Mapping[str, float]:
        """The delay of each site that is slow."""
        ...

    async def close(self) -> None:
        """Do not count as a worker any more."""
        ...


class FleetBackend:
    """A :class:`~.backend.Backend` for one crawl of several that share *store*.

    There are *fleet_size* workers at least. *clock* is that of the throttle. *start* runs
    coroutines.
    """

    def __init__(
        self,
        crawler: Crawler,
        store: TurnStore,
        clock: Callable[[], float],
        fleet_size: int = 0,
        call_later: Callable[..., Timer] = call_later,
        start: Callable[[Coroutine[Any, Any, None]], Deferred[None]] = deferred_from_coro,
    ) -> None:
        self._crawler = crawler
        self._store = store
        self._clock = clock
        self._fleet_size = fleet_size
        self._call_later = call_later
        self._start_coroutine = start
        #: What says now and then that we hold a turn, by site.
        self._held: dict[str, Timer] = {}
        #: What the store has not heard yet, by site and kind, and since when it is true.
        self._unsaid: dict[tuple[str, str], tuple[_Say, float]] = {}
        # What is under way; also so that it is not garbage.
        self._under_way: set[Deferred[None]] = set()
        #: When the store failed first; ``None`` while it works.
        self._failed_at: float | None = None
        self._back_at = _LONG_AGO
        #: How many workers there were before the outage, and our rank.
        self._before: tuple[int, int | None] = 0, None
        # Where workers are in no order, they are spread at random.
        self._random = random.random()
        self._closed = False
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- what the throttle asks -----------------------------------------------------

    def ask(  # noqa: D102
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        wait = self._own_wait(delay, since, again=again) if self._is_alone else 0.0
        if wait > 0:
            answer(wait)
        else:
            self._start(self._ask(site, delay, since, again, answer))

    def ended(self, site: str, delay: float, *, sent: bool) -> None:  # noqa: D102
        is_granted = self._let_go(site)
        if sent:
            self._tell(site, "turn", partial(self._store.over, site, delay))
        elif is_granted:
            self._tell(site, "turn", lambda _: self._store.unused(site, delay))

    def sent_without_turn(self, site: str, delay: float) -> None:  # noqa: D102
        self._tell(site, "request", partial(self._store.sent, site, delay))

    def slow(self, site: str, delay: float) -> None:  # noqa: D102
        self._tell(site, "slow", lambda _: self._store.slow(site, delay))

    def slowed(self, answer: Slowed) -> None:  # noqa: D102
        self._start(self._look(answer))

    async def _look(self, answer: Slowed) -> None:
        # If the store does not work, that is said when a turn is asked for.
        with suppress(Exception):
            answer(await self._store.slowed())

    # -- turns ----------------------------------------------------------------------

    async def _ask(
        self, site: str, delay: float, since: float | None, again: bool, answer: Answer
    ) -> None:
        was_alone = self._is_alone
        count(self._crawler, "robotstxt/turn_asked_count")
        try:
            wait = await self._store.grant(site, delay, since, told=again)
        except Exception as error:
            self._failed(error)
            # Whoever asks while the store does not work has waited already.
            wait = self._own_wait(delay, since, again=again or was_alone)
            if not self._place[0]:
                wait = _ASK_EVERY
            elif not wait:
                count(self._crawler, "robotstxt/turn_alone_count")
        else:
            self._worked()
            # Who asks has no turn any more, and has said how long ago its request was.
            self._unsaid.pop((site, "turn"), None)
            count(self._crawler, "robotstxt/turn_held_count", self._store.is_held)
            highest(self._crawler, "robotstxt/turn_workers_max", self._store.workers)
            if wait <= 0:
                count(self._crawler, "robotstxt/turn_count")
                self._hold_later(site, delay)
        if not self._closed:
            answer(wait if wait > 0 else None)

    def _hold_later(self, site: str, delay: float) -> None:
        self._let_go(site)
        self._held[site] = self._call_later(_HOLD_EVERY, self._hold, site, delay)

    def _hold(self, site: str, delay: float) -> None:
        self._tell(site, "turn", lambda _: self._store.hold(site, delay))
        self._hold_later(site, delay)

    def _let_go(self, site: str) -> bool:
        """Hold the turn at *site* no longer; whether the store has granted one."""
        timer = self._held.pop(site, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    def _tell(self, site: str, kind: str, say: _Say) -> None:
        """Tell the store, and again until it has heard it or something newer."""
        self._unsaid[site, kind] = say, self._clock()
        self._start(self._say((site, kind)))

    async def _say(self, key: tuple[str, str]) -> None:
        if key not in self._unsaid:
            return
        say, began = self._unsaid.pop(key)
        ago = self._clock() - began
        try:
            await say(ago)
        except Exception as error:
            self._failed(error)
            if ago < _SAY_FOR:
                self._unsaid.setdefault(key, (say, began))
                if not self._closed:
                    self._call_later(_SAY_EVERY, self._say_again, key)

    def _say_again(self, key: tuple[str, str]) -> None:
        if not self._closed:
            self._start(self._say(key))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        doing = self._start_coroutine(work)
        self._under_way.add(doing)
        doing.addBoth(lambda _: self._under_way.discard(doing))

    # -- with and without the store ---------------------------------------------------

    @property
    def _place(self) -> tuple[int, int | None]:
        """How many workers there are, the more if in doubt, and our rank."""
        now = self._store.workers, self._store.rank
        workers, rank = max(now, self._before, key=lambda place: place[0])
        return max(workers, self._fleet_size), rank

    @property
    def _is_alone(self) -> bool:
        """Whether the store does not work, or others may not know yet that it does."""
        return self._failed_at is not None or self._clock() - self._back_at < _SETTLING

    def _own_wait(self, delay: float, since: float | None, *, again: bool) -> float:
        """The seconds until this worker may go without the store; from now, if in doubt."""
        workers, rank = self._place
        if not workers:
            return 0.0
        if since is None:
            since = float("inf") if again else 0.0
        wait = max(delay - since, 0.0)
        if self._failed_at is not None:
            # Until then, the store may have granted turns to others.
            wait = max(wait, self._failed_at + delay - self._clock())
        if workers > 1:
            own = self._random * workers if rank is None else rank
            slot = delay * _SLOT
            late = (self._store.now() + wait - own * slot) % (slot * workers)
            if late > delay * _LATE:
                wait += slot * workers - late
        return wait if wait > ROUNDING else 0.0

    def _failed(self, error: Exception) -> None:
        if self._failed_at is not None:
            return
        # What was known before an outage that has only just ended holds still.
        if not self._is_alone:
            self._before = 0, None
        self._before, self._failed_at = self._place, self._clock()
        workers, _ = self._place
        # The user can mend a StoreError. Anything else is a bug.
        known = isinstance(error, StoreError)
        logger.warning(
            "%(store)s does not grant turns (%(error)s). Until it does, %(what)s.",
            {
                "store": self._store.name,
                "error": error if known else printable(f"{type(error).__name__}: {error}"),
                "what": _ALONE % (workers, workers) if workers else _UNKNOWN,
            },
            exc_info=None if known else error,
            extra={"spider": self._crawler.spider},
        )

    def _worked(self) -> None:
        if self._failed_at is not None:
            self._count_outage()
            self._failed_at, self._back_at = None, self._clock()
            logger.info(
                "%(store)s grants turns again",
                {"store": self._store.name},
                extra={"spider": self._crawler.spider},
            )

    def _count_outage(self) -> None:
        if self._failed_at is not None:
            seconds = self._clock() - self._failed_at
            add_seconds(self._crawler, "robotstxt/turn_outage_seconds", seconds)

    # -- from the beginning to the end of the crawl ---------------------------------------

    def _open(self) -> None:
        # From now on, this worker counts; nobody waits for that.
        self._start(self._be_counted())

    async def _be_counted(self) -> None:
        # If the store does not work, that is said when a turn is asked for.
        with suppress(StoreError):
            await self._store.start()

    async def _close(self) -> None:
        self._closed = True
        self._count_outage()
        for site in list(self._held):
            self._let_go(site)
        for _ in range(_LOOKS_AT_END):
            for key in list(self._unsaid):
                self._start(self._say(key))
            if not self._under_way:
                break
            await pause(_LOOK)
        await self._store.close()
