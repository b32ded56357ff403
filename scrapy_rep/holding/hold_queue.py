"""Requests that wait until more is known of their origin.

They wait here, not in the scheduler, which would hand them out again at once, and
lend their places (see :mod:`scrapy_rep.holding.concurrency`). There is room for REP_MAX_WAITING,
and an origin may take half of what the others leave of it, 256 at most, so that one
dead host with a deep queue never keeps others out.

What finds no place goes back to the scheduler, behind requests that have not been
tried, one lower in priority, as Scrapy sends back what it tries again. Handed out
again while there still is no place, a request is held for a moment, so that nobody
spins; for a shorter one if somebody else wants the place that it holds.

When the crawl stops, all go back to the scheduler, which keeps them where it keeps
the others: on disk, with ``JOBDIR``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.observers.stats import count, highest
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.holding.concurrency import Loan, Places
    from scrapy_rep.rep.urls import Origin

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Request meta: ``dont_filter`` and priority as they were before a request went
#: back to the scheduler, and since when (seconds since the epoch) it has been kept.
RETURNED = "rep_returned"
KEPT_SINCE = "rep_kept_since"

# Requests wait this many seconds before there is a line about it, and this many
# lie between two lines.
_FIRST_LINE = 10.0
_NEXT_LINE = 60.0

# How many may wait for one origin. Each that waits makes every round of the garbage
# collector longer, and a round stops everybody: with 2,500, a quarter of a second.
_OF_AN_ORIGIN = 256
# How many that find no room lend their places for the moment in which they are held.
_IN_DOORWAY = 16
# Seconds between two that have waited and are refused, while all places are taken.
_PAUSE = 0.01


class WaitingRoom:
    """Where requests wait; *room* of them at most."""

    def __init__(self, crawler: Crawler, places: Places, room: int) -> None:
        self._crawler = crawler
        self._places = places
        self._room = room
        self._waiting: set[Deferred[None]] = set()
        # The same for those who are held on a place.
        self._held: set[Deferred[None]] = set()
        self._taken = 0
        self._in_doorway = 0
        self._by_origin: Counter[Origin] = Counter()
        # Since when somebody has waited for each, by the processor's clock.
        self._since: dict[Origin, float] = {}
        self._refused: deque[Deferred[None]] = deque()
        self._next_line = 0.0
        self._given_back: WeakSet[Request] = WeakSet()
        places.on_stop(lambda: _wake_all(self._waiting | self._held))
        places.on_wanted(lambda: _wake_all(self._held))
        places.on_look(self._tell_progress)

    def has_place_for(self, origin: Origin) -> bool:
        """Whether another request for *origin* may wait."""
        return self._by_origin[origin] < min(_OF_AN_ORIGIN, self._room - self._taken)

    @contextmanager
    def place(self, origin: Origin) -> Iterator[Loan]:
        """For as long as a request waits; yields the loan of its place."""
        count(self._crawler, "robotstxt/waiting_count")
        if not self._taken:
            self._next_line = time.monotonic() + _FIRST_LINE
        self._taken += 1
        self._by_origin[origin] += 1
        self._since.setdefault(origin, time.monotonic())
        highest(self._crawler, "robotstxt/waiting_max", self._taken)
        try:
            with self._places.lend() as loan:
                yield loan
        finally:
            self._taken -= 1
            self._by_origin[origin] -= 1
            if not self._by_origin[origin]:
                del self._by_origin[origin], self._since[origin]

    @contextmanager
    def doorway(self, patience: float | None) -> Iterator[Loan | None]:
        """For as long as a request is held that finds no room; yields the loan of its place.

        Schedulers hand out requests for a dead host again and again, among the others. A
        few of those that have *patience*, in seconds, keep no place from these.
        """
        if not patience or self._in_doorway >= _IN_DOORWAY:
            yield None
            return
        self._in_doorway += 1
        try:
            with self._places.lend() as loan:
                yield loan
        finally:
            self._in_doorway -= 1

    async def wait(
        self,
        event: Deferred[_T],
        seconds: float | None = None,
        *,
        patience: float | None = None,
    ) -> _T | None:
        """What *event* brings; ``None`` if *seconds* are over or the crawl stops before.

        Who lends no place waits for *patience* seconds at most, and leaves when somebody
        wants his place. *event* fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        brought: list[_T] = []
        woken: Deferred[None] = Deferred()

        def bring(value: _T) -> None:
            brought.append(value)
            _wake(woken)

        def bring_nothing(failure: Failure) -> None:
            failure.trap(CrawlStopping, CancelledError)  # type: ignore[no-untyped-call]
            _wake(woken)

        event.addCallbacks(bring, bring_nothing)
        if event.called or patience == 0:
            pass
        elif patience is None:
            await _wake_up(woken, self._waiting, seconds)
        elif not self._places.are_wanted:
            await _wake_up(woken, self._held, patience)
        return brought[0] if brought else None

    async def turn_to_be_refused(self) -> None:
        """Wait until the others are refused that come before, one after the other.

        All that have waited for a robots.txt may be refused at once, which takes a
        millisecond or two for each, and nobody else would go on.
        """
        mine: Deferred[None] = Deferred()
        self._refused.append(mine)
        if len(self._refused) == 1:
            call_later(0, self._refuse)
        await maybe_deferred_to_future(mine)

    def _refuse(self) -> None:
        self._refused[0].callback(None)
        self._refused.popleft()
        if self._refused:
            is_idle = self._places.has_place or self.is_closing
            call_later(0 if is_idle else _PAUSE, self._refuse)

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop."""
        return self._places.is_closing

    def give_back(self, request: Request) -> Request:
        """*request* as the scheduler is to have it: to keep it, or to hand it out later."""
        if not self._given_back:
            signal_manager = self._crawler.signals
            signal_manager.connect(self._scheduled, signals.request_scheduled)
        count(self._crawler, "robotstxt/given_back_count")
        request = to_scheduler(request, behind=not self.is_closing)
        self._given_back.add(request)
        return request

    def has_given_back(self, request: Request) -> bool:
        """Whether this very object was given back and no scheduler has taken it: who has it
        is somebody who asks the engine by himself, and asks again at once."""
        return request in self._given_back

    def _scheduled(self, request: Request) -> None:
        self._given_back.discard(request)

    def _tell_progress(self) -> None:
        """One line now and then, so that nobody takes a crawl that waits for a dead one."""
        now = time.monotonic()
        if not self._taken or now < self._next_line:
            return
        self._next_line = now + _NEXT_LINE
        slowest = min(self._since, key=self._since.__getitem__)
        logger.info(
            "requests waiting for a robots.txt or their turn: %(requests)d (origins: %(origins)d; "
            "for longest, %(seconds).0f s: %(slowest)s)",
            {
                "requests": self._taken,
                "origins": len(self._by_origin),
                "seconds": now - self._since[slowest],
                "slowest": printable(str(slowest)),
            },
            extra={"spider": self._crawler.spider},
        )


async def _wake_up(
    waiter: Deferred[None], others: set[Deferred[None]], seconds: float | None
) -> None:
    """Wait, among *others*, until somebody wakes *waiter*, or *seconds* are over."""
    others.add(waiter)
    timer = None if seconds is None else call_later(seconds, _wake, waiter)
    try:
        await maybe_deferred_to_future(waiter)
    finally:
        others.discard(waiter)
        if timer is not None:
            timer.cancel()


def _wake_all(waiters: set[Deferred[None]]) -> None:
    for waiter in list(waiters):
        _wake(waiter)


def _wake(waiter: Deferred[None]) -> None:
    if not waiter.called:
        waiter.callback(None)


def to_scheduler(request: Request, *, behind: bool) -> Request:
    """*request* as it goes back to the scheduler, which must not take it for a duplicate.

    *behind* others of its priority, or in its place among them.
    """
    meta = {**request.meta, RETURNED: [request.dont_filter, request.priority]}
    priority = request.priority - 1 if behind else request.priority
    return request.replace(dont_filter=True, priority=priority, meta=meta)


def from_scheduler(request: Request) -> None:
    """Undo :func:`to_scheduler`."""
    request.dont_filter, request.priority = request.meta.pop(RETURNED)
