"""Turns that crawls share: a backend of the throttle that asks a store.

Here may live: what a worker says to the store and when, and what it does while the store
does not work. Here may not live: whose turn it is (:mod:`scrapy_rep.throttling.redis`,
:mod:`scrapy_rep.throttling.sqlite`), and which request gets it
(:mod:`scrapy_rep.throttling.throttle`).

While the store does not work, time at each site is divided into slots by the store's clock,
as far as the workers know it, and the workers use the slots in the order of their ranks. So
together they are no faster than one worker may be.
"""
# What methods of FleetBackend do stands in throttle.Backend.
# ruff: noqa: D102

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_rep.observers.stats import add_seconds, count, highest
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import StoreError, pause_while
from scrapy_rep.throttling.throttle import Answer, Slowed, Timer
from scrapy_rep.throttling.turns import ROUNDING, Event

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

# Seconds between two times that the store is told that a turn is not over yet.
_HOLD_EVERY = 2.0
# Seconds between two attempts to tell the store of something, and for how long: by then the
# store takes a turn for over by itself.
_TELL_EVERY = 0.2
_TELL_FOR = 6.0
# Of what is told about a turn, only the last counts.
_OF_TURN = frozenset({Event.OVER, Event.UNUSED, Event.HELD})
# Seconds after an outage in which a worker also keeps to its slots: others may not know yet
# that the store is back. They look every five seconds at least.
_SETTLING = 10.0
# Slots are longer than the delay by this factor, because requests take a while, and a worker
# may be late for its slot by this share of the delay. Else it waits for the next one.
_SLOT = 1.1
_LATE = 0.05
# Seconds between two questions of a worker that cannot know how many others there are.
_ASK_EVERY = 1.0

_ALONE = "this worker sends one request in %d delays of a site (workers: %d)"
_UNKNOWN = (
    "requests to sites that ask for a delay are held, because the number of workers is not known. "
    "To continue without it, set REP_FLEET_SIZE"
)


class TurnStore:
    """Grants turns to workers. Methods raise :exc:`~scrapy_rep.stores.base.StoreError`."""

    #: The kind of store, for people.
    name: str
    #: How many workers there were when the store was asked last; 0 if it never was.
    workers: int = 0
    #: How many of them come before this one; ``None`` where they are in no order.
    rank: int | None = None
    #: Whether another worker had the turn when :meth:`grant` returned last.
    is_held: bool = False

    @property
    def ahead(self) -> float:
        """Seconds that the clock of all workers is ahead of this one's, as far as it is known."""
        return 0.0

    async def start(self) -> None:
        """Be one of the workers from now on."""

    async def grant(
        self, site: str, delay: float, since: float = inf, *, again: bool = False
    ) -> float:
        """The seconds to wait, and then ask *again*; 0.0: it is our turn now.

        As :meth:`.throttle.Backend.ask`. The store may have forgotten the request of *since*, or
        not have been told.
        """
        raise NotImplementedError

    async def tell(self, event: Event, site: str, delay: float, ago: float = 0.0) -> None:
        """*event* has happened, so many seconds *ago*."""

    async def slowed(self) -> Mapping[str, float]:
        """The delay of each site that is slow."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do not count as a worker any more."""


@dataclass(eq=False, slots=True)
class _News:
    """What the store is told about a site, at first and again."""

    event: Event
    delay: float
    since: float
    again: Timer | None = None


@dataclass(eq=False, repr=False)
class FleetBackend:
    """A :class:`~.throttle.Backend` for one crawl of several that share *store*."""

    crawler: Crawler
    store: TurnStore
    #: That of the throttle.
    clock: Callable[[], float]
    #: There are so many workers at least.
    fleet_size: int = 0
    call_later: Callable[..., Timer] = call_later
    #: Runs coroutines.
    start: Callable[[Coroutine[Any, Any, None]], Deferred[None]] = deferred_from_coro
    #: What the store has not heard yet, and the turns that are held, by site and kind.
    _news: dict[tuple[str, str], _News] = field(default_factory=dict, init=False)
    # What is under way; also so that it is not garbage.
    _under_way: set[Deferred[None]] = field(default_factory=set, init=False)
    #: When the store failed first; ``None`` while it works.
    _failed_at: float | None = field(default=None, init=False)
    _back_at: float = field(default=-inf, init=False)
    #: How many workers there were before the outage, and our rank.
    _before: tuple[int, int | None] = field(default=(0, None), init=False)
    # Where workers are in no order, they are spread at random.
    _random: float = field(default_factory=random.random, init=False)

    def __post_init__(self) -> None:
        self.crawler.signals.connect(self._open, signals.spider_opened)
        self.crawler.signals.connect(self._close, signals.spider_closed)

    def _open(self) -> None:
        # From now on, this worker counts; nobody waits for that.
        self._run(self.store.start())

    async def _close(self) -> None:
        # The throttle has ended its turns by now.
        for key, news in list(self._news.items()):
            self._tell_now(key, news)
        await pause_while(lambda: self._under_way or self._news)
        # What is not heard by now is not told any more.
        for key in list(self._news):
            self._forget(key)
        self._count_outage()
        await self.store.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        # If the store does not work, that is said when it is asked for a turn.
        doing = self.start(work)
        self._under_way.add(doing)
        doing.addBoth(lambda _: self._under_way.discard(doing))

    # -- what the throttle asks and tells ---------------------------------------------

    def ask(self, site: str, delay: float, since: float, *, again: bool, answer: Answer) -> None:
        wait = self._own_wait(delay, since, again=again) if self._is_alone else 0.0
        if wait > 0:
            answer(wait)
        else:
            self._run(self._ask(site, delay, since, again, answer))

    async def _ask(
        self, site: str, delay: float, since: float, again: bool, answer: Answer
    ) -> None:
        count(self.crawler, "robotstxt/turn_asked_count")
        try:
            wait = await self.store.grant(site, delay, since, again=again)
        except Exception as error:
            self._failed(error)
            wait = self._own_wait(delay, since, again=again) if self._place[0] else _ASK_EVERY
            count(self.crawler, "robotstxt/turn_alone_count", not wait)
        else:
            self._worked()
            # Who asks has no turn any more, and has said how long ago its request was.
            self._forget((site, "turn"))
            count(self.crawler, "robotstxt/turn_held_count", self.store.is_held)
            highest(self.crawler, "robotstxt/turn_workers_max", self.store.workers)
            if not wait:
                count(self.crawler, "robotstxt/turn_count")
                self._tell_later((site, "turn"), _News(Event.HELD, delay, 0.0), _HOLD_EVERY)
        answer(wait)

    def slowed(self, answer: Slowed) -> None:
        async def look() -> None:
            answer(await self.store.slowed())

        self._run(look())

    def tell(self, event: Event, site: str, delay: float) -> None:
        key = site, "turn" if event in _OF_TURN else event.name
        known = self._news.get(key)
        # A turn that the store has not granted is not given back.
        if event is not Event.UNUSED or (known is not None and known.event is Event.HELD):
            self._tell_now(key, _News(event, delay, self.clock()))

    def _tell_now(self, key: tuple[str, str], news: _News) -> None:
        self._forget(key)
        self._news[key] = news
        self._run(self._say(key, news))

    async def _say(self, key: tuple[str, str], news: _News) -> None:
        """Tell the store, and again until it has heard it, or until there are other news."""
        if self._news.get(key) is not news:
            return
        is_held = news.event is Event.HELD
        ago = 0.0 if is_held else self.clock() - news.since
        is_heard = True
        try:
            await self.store.tell(news.event, key[0], news.delay, ago)
        except Exception as error:
            self._failed(error)
            is_heard = ago >= _TELL_FOR
        if self._news.get(key) is news:
            del self._news[key]
            if is_held or not is_heard:
                self._tell_later(key, news, _HOLD_EVERY if is_heard else _TELL_EVERY)

    def _tell_later(self, key: tuple[str, str], news: _News, seconds: float) -> None:
        self._news[key] = news
        news.again = self.call_later(seconds, lambda: self._run(self._say(key, news)))

    def _forget(self, key: tuple[str, str]) -> None:
        news = self._news.pop(key, None)
        if news is not None and news.again is not None:
            news.again.cancel()

    # -- with and without the store ---------------------------------------------------

    @property
    def _place(self) -> tuple[int, int | None]:
        """How many workers there are, the more if in doubt, and our rank."""
        now = self.store.workers, self.store.rank
        workers, rank = max(now, self._before, key=lambda place: place[0])
        return max(workers, self.fleet_size), rank

    @property
    def _is_alone(self) -> bool:
        """Whether the store does not work, or others may not know yet that it does."""
        return self._failed_at is not None or self.clock() - self._back_at < _SETTLING

    def _own_wait(self, delay: float, since: float, *, again: bool) -> float:
        """The seconds until this worker may go without the store; from now, if in doubt."""
        workers, rank = self._place
        if not workers:
            return 0.0
        if since == inf and not again:
            since = 0.0
        wait = max(delay - since, 0.0)
        if self._failed_at is not None:
            # Until then, the store may have granted turns to others.
            wait = max(wait, self._failed_at + delay - self.clock())
        if workers > 1:
            own = self._random * workers if rank is None else rank
            slot = delay * _SLOT
            late = (self.clock() + self.store.ahead + wait - own * slot) % (slot * workers)
            if late > delay * _LATE:
                wait += slot * workers - late
        return wait if wait > ROUNDING else 0.0

    def _failed(self, error: Exception) -> None:
        if self._failed_at is not None:
            return
        # What was known before an outage that has only just ended holds still.
        if not self._is_alone:
            self._before = 0, None
        self._before, self._failed_at = self._place, self.clock()
        workers, _ = self._place
        what = _ALONE % (workers, workers) if workers else _UNKNOWN
        # The user can mend a StoreError.
        bug = None if isinstance(error, StoreError) else error
        said = printable(f"{type(error).__name__}: {error}") if bug else error
        message = "%s does not grant turns (%s). Until it does, %s."
        spider = {"spider": self.crawler.spider}
        logger.warning(message, self.store.name, said, what, exc_info=bug, extra=spider)

    def _worked(self) -> None:
        if self._failed_at is not None:
            self._count_outage()
            self._failed_at, self._back_at = None, self.clock()
            spider = {"spider": self.crawler.spider}
            logger.info("%s grants turns again", self.store.name, extra=spider)

    def _count_outage(self) -> None:
        if self._failed_at is not None:
            seconds = self.clock() - self._failed_at
            add_seconds(self.crawler, "robotstxt/turn_outage_seconds", seconds)
