"""Turns that the workers of a fleet share: a backend of the throttle that asks a store.

Here may live: what a worker says to the store and when, and what it does while the store
does not work: it waits as many times longer as there were workers, so that all together are
no faster than they may be. Here may not live: whose turn it is
(:mod:`scrapy_rep.throttling.redis`), and which request gets it
(:mod:`scrapy_rep.throttling.throttle`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_rep.observers.stats import count
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import StoreError, pause
from scrapy_rep.throttling.backend import ROUNDING, Answer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.throttling.throttle import Timer

logger = logging.getLogger(__name__)

# Seconds between two times that the store is told that a turn is not over yet.
_HOLD_EVERY = 10.0
# Seconds after an outage in which a worker also keeps the longer delay of the outage:
# others may not know yet that the store is back. They look every five seconds at least.
_SETTLING = 10.0
# At the end of a crawl, how often there is a look at what is under way, and the
# seconds between two looks.
_LOOKS_AT_END = 20
_LOOK = 0.05

_LONG_AGO = -float("inf")


class TurnStore(Protocol):
    """Grants turns to workers; see :class:`~scrapy_rep.throttling.redis.RedisTurns`.

    Methods raise :exc:`~scrapy_rep.stores.base.StoreError`.
    """

    @property
    def workers(self) -> int:
        """How many workers there were when the store was asked last."""
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

    async def over(self, site: str, delay: float) -> None:
        """The request of our turn is over."""
        ...

    async def sent(self, site: str, delay: float) -> None:
        """A request without a turn is over."""
        ...

    async def close(self) -> None:
        """Do not count as a worker any more."""
        ...


class FleetBackend:
    """A backend for one crawl of several that share *store*.

    *clock* is that of the throttle. *start* runs coroutines.
    """

    def __init__(
        self,
        crawler: Crawler,
        store: TurnStore,
        clock: Callable[[], float],
        call_later: Callable[..., Timer] = call_later,
        start: Callable[[Coroutine[Any, Any, None]], Deferred[None]] = deferred_from_coro,
    ) -> None:
        self._crawler = crawler
        self._store = store
        self._clock = clock
        self._call_later = call_later
        self._start_coroutine = start
        #: What says now and then that we hold a turn, by site.
        self._held: dict[str, Timer] = {}
        # What is under way; also so that it is not garbage.
        self._under_way: set[Deferred[None]] = set()
        self._fails = False
        self._back_at = _LONG_AGO
        self._workers_before = 1
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
            self._start(self._tell(self._store.over(site, delay)))
        elif is_granted:
            self._start(self._tell(self._store.unused(site, delay)))

    def sent_without_turn(self, site: str, delay: float) -> None:  # noqa: D102
        self._start(self._tell(self._store.sent(site, delay)))

    # -- turns ----------------------------------------------------------------------

    async def _ask(
        self, site: str, delay: float, since: float | None, again: bool, answer: Answer
    ) -> None:
        # Whoever asks while the store does not work has waited for that long already.
        was_alone = self._is_alone
        try:
            count(self._crawler, "robotstxt/turn_asked_count")
            wait = await self._store.grant(site, delay, since, told=again)
        except Exception as error:
            self._failed(error)
            if was_alone:
                count(self._crawler, "robotstxt/turn_alone_count")
            wait = 0.0 if was_alone else self._own_wait(delay, since, again=False)
            self._answer(answer, wait or None)
            return
        self._worked()
        if wait <= 0:
            count(self._crawler, "robotstxt/turn_count")
            self._hold_later(site, delay)
        self._answer(answer, None if wait <= 0 else wait)

    def _answer(self, answer: Answer, seconds: float | None) -> None:
        if not self._closed:
            answer(seconds)

    def _hold_later(self, site: str, delay: float) -> None:
        self._let_go(site)
        self._held[site] = self._call_later(_HOLD_EVERY, self._hold, site, delay)

    def _hold(self, site: str, delay: float) -> None:
        self._start(self._tell(self._store.hold(site, delay)))
        self._hold_later(site, delay)

    def _let_go(self, site: str) -> bool:
        """Hold the turn at *site* no longer; whether the store has granted one."""
        timer = self._held.pop(site, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    async def _tell(self, telling: Coroutine[Any, Any, None]) -> None:
        try:
            await telling
        except Exception as error:
            self._failed(error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        doing = self._start_coroutine(work)
        self._under_way.add(doing)
        doing.addBoth(lambda _: self._under_way.discard(doing))

    # -- with and without the store ---------------------------------------------------

    def _own_wait(self, delay: float, since: float | None, *, again: bool) -> float:
        """The seconds until this worker may go alone; from now, if nothing is known."""
        if since is None:
            since = float("inf") if again else 0.0
        wait = delay * max(self._workers_before, self._store.workers) - since
        return wait if wait > ROUNDING else 0.0

    @property
    def _is_alone(self) -> bool:
        """Whether the store does not work, or others may not know yet that it does."""
        return self._fails or self._clock() - self._back_at < _SETTLING

    def _failed(self, error: Exception) -> None:
        if self._fails:
            return
        workers = self._store.workers
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
            self._back_at = self._clock()
            logger.info("Redis grants turns again", extra={"spider": self._crawler.spider})

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
        for site in list(self._held):
            self._let_go(site)
        for _ in range(_LOOKS_AT_END):
            if not self._under_way:
                break
            await pause(_LOOK)
        await self._store.close()
