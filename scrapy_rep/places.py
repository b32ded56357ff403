"""Places of CONCURRENT_REQUESTS, lent to pages by those who only wait.

Scrapy counts a request from the moment when it leaves the scheduler, so one that
waits for a robots.txt holds a place, and the fetch that it waits for a second: a
few hosts that do not answer stop a whole crawl. For each of them, the downloader
is told of one place more. Who has waited long enough takes his place back before he
goes on, or more requests would be under way than CONCURRENT_REQUESTS says.

Scrapy says to nobody that a crawl is about to stop, and stops only when no request
is under way. As long as a place is lent, there is a look now and then, and those who
wait are told.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# Seconds between two looks at whether the crawl is about to stop.
LOOK = 0.25
# Seconds after which somebody gets a place although none is free.
_STUCK = 5.0


class Loan:
    """A place that is lent."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._is_over = False

    async def take_back(self) -> None:
        """End the loan, and wait until there is a place. At once when the crawl stops."""
        if not self._is_over:
            self._is_over = True
            await self._places.take_back()

    def end(self) -> None:
        """End the loan, for somebody who needs no place any more."""
        if not self._is_over:
            self._is_over = True
            self._places.change(-1)


class Places:
    """The places of one crawl, and who is to be told when it stops."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._lent = 0
        #: Those who have lent their places and want them back.
        self._returning: deque[Deferred[None]] = deque()
        self._admitted_at = 0.0
        self._looking = False
        self._on_look: list[Callable[[], None]] = []
        self._on_stop: list[Callable[[], None]] = []

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop, and waits for requests under way."""
        engine: Any = self._crawler.engine
        slot = self._engine_slot
        return not engine.running or bool(slot is not None and slot.closing)

    def on_look(self, callback: Callable[[], None]) -> None:
        """Call *callback* every :data:`LOOK` seconds while a place is lent."""
        self._on_look.append(callback)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call *callback* when the crawl is about to stop.

        Once more for each time that a place is lent after that.
        """
        self._on_stop.append(callback)

    @contextmanager
    def lend(self) -> Iterator[Loan]:
        """Give one more request the chance to be downloaded, until the loan is over."""
        self.change(1)
        loan = Loan(self)
        self._keep_looking()
        try:
            yield loan
        finally:
            loan.end()

    async def take_back(self) -> None:
        """Wait for a place of one's own, or until the crawl stops."""
        self.change(-1)
        if self._free >= 0 and not self._returning:
            return
        mine: Deferred[None] = Deferred(self._returning.remove)
        if not self._returning:
            self._admitted_at = time.monotonic()
            connect = self._crawler.signals.connect
            connect(self._admit, signals.response_received)
            connect(self._admit_soon, signals.request_left_downloader)
        self._returning.append(mine)
        self._keep_looking()
        await maybe_deferred_to_future(mine)

    @property
    def _free(self) -> float:
        """How many more requests may be under way by CONCURRENT_REQUESTS.

        Without those that lend their places, and those that wait to have theirs back.
        """
        engine: Any = self._crawler.engine
        total = getattr(engine.downloader, "total_concurrency", 0)
        # Both have what is lent in them.
        if not total:
            return float("inf")
        return float(total - len(engine.downloader.active) + len(self._returning))

    def _admit_soon(self) -> None:
        if self._returning:
            # What has left the downloader is under way still, for a moment.
            call_later(0, self._admit)

    def _admit(self) -> None:
        """Let those go on who wait for a place, first come, first served."""
        while self._returning and (self._free >= 1 or self.is_closing or self._is_stuck):
            self._admitted_at = time.monotonic()
            self._returning.popleft().callback(None)

    @property
    def _is_stuck(self) -> bool:
        """Whether nobody has got a place for long.

        All of those under way may wait for one that waits here: one that another
        middleware asks for, say, while it has theirs.
        """
        return time.monotonic() - self._admitted_at > _STUCK

    def change(self, places: int) -> None:
        """Lend so many places more."""
        self._lent += places
        engine: Any = self._crawler.engine
        downloader = engine.downloader
        # A downloader that is not Scrapy's may have no such number; 0 is no limit.
        if getattr(downloader, "total_concurrency", 0):
            downloader.total_concurrency += places
            slot = self._engine_slot
            if slot is not None:
                # Or the engine looks for the next request only every five seconds.
                slot.nextcall.schedule()

    @property
    def _engine_slot(self) -> Any:
        return getattr(self._crawler.engine, "_slot", None)

    def _keep_looking(self) -> None:
        if not self._looking:
            self._looking = True
            call_later(LOOK, self._look)

    def _look(self) -> None:
        self._looking = False
        self._admit()
        if not self._lent and not self._returning:
            return
        if self.is_closing:
            self._hold_open()
            for callback in self._on_stop:
                callback()
            return
        self._keep_looking()
        for callback in self._on_look:
            callback()

    def _hold_open(self) -> None:
        """Let the crawl end only after the next look.

        Between two turns of a request that is given back, none is under way, and
        a crawl that waits for the last one would end.
        """
        slot = self._engine_slot
        if slot is not None:
            holder = Request("data:,")
            slot.add_request(holder)
            call_later(LOOK, slot.remove_request, holder)
