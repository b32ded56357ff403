"""Places of CONCURRENT_REQUESTS, lent to pages by those who only wait.

Scrapy counts a request from the moment when it leaves the scheduler, so one that
waits for a robots.txt holds a place, and the fetch that it waits for a second: a
few hosts that do not answer stop a whole crawl. For each of them, the downloader
is told of one place more. Who has waited long enough takes his place back before he
goes on, or more requests would be under way than CONCURRENT_REQUESTS says. As long as
somebody finds none, none is free for requests that are still in the scheduler.

Scrapy says to nobody that a crawl is about to stop, and stops only when no request
is under way. As long as a place is lent, there is a look now and then, and those who
wait are told.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

# Seconds between two looks at whether the crawl is about to stop.
LOOK = 0.25
# Seconds after which somebody gets a place although none is free: all requests under
# way may wait for one that waits here, such as one that another middleware makes.
_STUCK = 5.0
# How many slots are looked at before others get their turn.
_SLOTS = 50


class Loan:
    """A place that is lent."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._is_over = False

    async def take_back(self, request: Request) -> None:
        """End the loan when there is a place for *request*, or the crawl stops."""
        if not self._is_over:
            await self._places.take_back(self, request)

    def end(self) -> None:
        """End the loan."""
        if not self._is_over:
            self._is_over = True
            self._places.change(-1)


class Places:
    """The places of one crawl, and who is to be told when it stops."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._engine = Engine(crawler)
        self._lent = 0
        #: Places that the downloader is not told of, for those who want theirs back.
        self._reserved = 0
        #: Those who have lent their places and want them back, by download slot.
        self._returning: dict[str, deque[tuple[Loan, Deferred[None]]]] = {}
        self._admitted_at = 0.0
        self._looking = False
        self._on_look: list[Callable[[], None]] = []
        self._on_stop: list[Callable[[], None]] = []
        self._on_wanted: list[Callable[[], None]] = []

    @property
    def are_wanted(self) -> bool:
        """Whether somebody could go on if there were a place."""
        return self._reserved > 0

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop, and waits for requests under way."""
        return self._engine.is_closing

    def on_look(self, callback: Callable[[], None]) -> None:
        """Call *callback* every :data:`LOOK` seconds while a place is lent."""
        self._on_look.append(callback)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call *callback* when the crawl is about to stop.

        Once more for each time that a place is lent after that.
        """
        self._on_stop.append(callback)

    def on_wanted(self, callback: Callable[[], None]) -> None:
        """Call *callback* when places are wanted that were not before."""
        self._on_wanted.append(callback)

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

    async def take_back(self, loan: Loan, request: Request) -> None:
        """End *loan* when *request* can be downloaded at once, or the crawl stops.

        That is when there is a place for it, and its download slot has nobody in its
        queue: there it would keep its place from requests to other hosts.
        """
        key = self._slot_key(request)
        if not self._returning and self.has_place and self._is_free(key):
            loan.end()
            return
        if not self._returning:
            self._admitted_at = time.monotonic()
            # Once in effect, and for the rest of the crawl: signals are the crawler's own, hold
            # us weakly, and come to nothing while nobody is returning.
            connect = self._crawler.signals.connect
            connect(self._admit, signals.response_received)
            connect(self._admit_soon, signals.request_left_downloader)
        mine: Deferred[None] = Deferred()
        self._returning.setdefault(key, deque()).append((loan, mine))
        if not self.are_wanted:
            self._keep_for_them()
        await maybe_deferred_to_future(mine)

    def _slot_key(self, request: Request) -> str:
        return self._engine.slot_key(request) or ""

    @property
    def has_place(self) -> bool:
        """Whether one more request may be under way than those that lend no place."""
        # Both numbers have what is lent in them.
        return not self._total or self._engine.active_count < self._total

    @property
    def _total(self) -> int:
        """All places, with those that are lent; 0 for a downloader without a limit."""
        return self._engine.total_concurrency + self._reserved

    def _is_free(self, key: str) -> bool:
        """Whether a request would start at once in the download slot of *key*."""
        return self._engine.slot_is_free(key)

    def _admit_soon(self) -> None:
        if self._returning:
            # What has left the downloader is under way still, for a moment.
            call_later(0, self._admit)

    def _admit(self) -> None:
        """Let those go on for whom there is a place: a request of each slot in turn."""
        self._reserve(0)
        is_stuck = time.monotonic() - self._admitted_at > _STUCK
        for key in list(islice(self._returning, _SLOTS)):
            if not (self.has_place or is_stuck):
                break
            waiting = self._returning.pop(key)
            if self._is_free(key) or is_stuck:
                self._let_go(waiting)
                is_stuck = False
            if waiting:
                # Behind the others.
                self._returning[key] = waiting
        self._keep_for_them()

    def _keep_for_them(self) -> None:
        """Keep what becomes free for those who could go on, if there are any."""
        if self.has_place or not any(map(self._is_free, islice(self._returning, _SLOTS))):
            return
        # What is lent are those who wait: none is left for others.
        self._reserve(self._total - self._lent)
        for callback in self._on_wanted:
            callback()

    def _reserve(self, places: int) -> None:
        """Keep so many from the downloader."""
        self._tell_downloader(self._reserved - places)
        self._reserved = places

    def _let_go(self, waiting: deque[tuple[Loan, Deferred[None]]]) -> None:
        """Let the first of those who are *waiting* go on."""
        self._admitted_at = time.monotonic()
        loan, waiter = waiting.popleft()
        # Before anybody else asks whether there is a place.
        loan.end()
        if not waiter.called:
            waiter.callback(None)

    def change(self, places: int) -> None:
        """Lend so many places more."""
        self._lent += places
        self._tell_downloader(places)

    def _tell_downloader(self, places: int) -> None:
        """Of so many places more."""
        if self._total:
            self._engine.raise_concurrency(places)

    def _keep_looking(self) -> None:
        if not self._looking:
            self._looking = True
            call_later(LOOK, self._look)

    def _look(self) -> None:
        self._looking = False
        self._admit()
        if not self._lent:
            return
        if self.is_closing:
            # Or it would end between two steps of a request that returns to the scheduler.
            self._engine.keep_open(LOOK)
            for waiting in self._returning.values():
                while waiting:
                    self._let_go(waiting)
            self._returning.clear()
            self._reserve(0)
            for callback in self._on_stop:
                callback()
            return
        self._keep_looking()
        for callback in self._on_look:
            callback()
