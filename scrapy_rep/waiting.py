"""Requests that are kept until more is known of their origin (``REP_UNREACHABLE = "defer"``).

They wait here, not in the scheduler, which would hand them out again at once.
A request that waits does not take the place of one that could be downloaded:
for each, one more may be. When the crawl stops, they go back to the scheduler,
which keeps them where it keeps the others: on disk, with ``JOBDIR``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import Request
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# Scrapy says to nobody that a crawl is about to stop; this many seconds lie
# between two looks.
_LOOK = 0.25
#: Request meta: what ``dont_filter`` was before a request went back to the
#: scheduler, and since when (seconds since the epoch) it has been kept.
RETURNED = "rep_dont_filter"
KEPT_SINCE = "rep_kept_since"


class WaitingRoom:
    """Where requests wait; *room* of them at most."""

    def __init__(self, crawler: Crawler, room: int) -> None:
        self._crawler = crawler
        self._room = room
        self._waiting: set[Deferred[bool]] = set()
        self._taken = 0
        self._looking = False
        self._given_back: WeakSet[Request] = WeakSet()

    @property
    def is_full(self) -> bool:
        """Whether no other request may wait."""
        return self._taken >= self._room

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop, and waits for requests under way."""
        engine: Any = self._crawler.engine
        slot = self._engine_slot
        return not engine.running or bool(slot is not None and slot.closing)

    def give_back(self, request: Request) -> Request:
        """*request* as the scheduler is to have it, and keep it: the crawl stops."""
        request = to_scheduler(request)
        self._given_back.add(request)
        return request

    def has_given_back(self, request: Request) -> bool:
        """Whether this very object was given back: who has it is not the scheduler, which
        hands out nothing any more, but somebody who asks the engine by himself."""
        return request in self._given_back

    @contextmanager
    def place(self) -> Iterator[None]:
        """For as long as a request is kept, also while its robots.txt is asked for again."""
        self._taken += 1
        self._credit(1)
        try:
            yield
        finally:
            self._taken -= 1
            self._credit(-1)

    async def wait(self, seconds: float) -> bool:
        """Wait for so long. Returns ``False``, and earlier, if the crawl stops."""
        mine: Deferred[bool] = Deferred()
        self._waiting.add(mine)
        timer = call_later(seconds, self._let_go, mine, True)
        if not self._looking:
            self._looking = True
            call_later(_LOOK, self._look)
        try:
            return await maybe_deferred_to_future(mine)
        finally:
            timer.cancel()
            self._waiting.discard(mine)

    def _credit(self, places: int) -> None:
        downloader: Any = self._crawler.engine and self._crawler.engine.downloader
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

    def _hold_open(self) -> None:
        """Let the crawl end only after the next look.

        Between two turns of a request that is given back, none is under way, and
        a crawl that waits for the last one would end.
        """
        slot = self._engine_slot
        if slot is not None:
            holder = Request("data:,")
            slot.add_request(holder)
            call_later(_LOOK, slot.remove_request, holder)

    def _look(self) -> None:
        self._looking = bool(self._waiting) and not self.is_closing
        if self._looking:
            call_later(_LOOK, self._look)
            return
        if self._waiting:
            self._hold_open()
        for waiter in list(self._waiting):
            self._let_go(waiter, False)

    def _let_go(self, waiter: Deferred[bool], over: bool) -> None:
        if not waiter.called:
            waiter.callback(over)


def to_scheduler(request: Request) -> Request:
    """*request* as it goes back to the scheduler, which must not take it for a duplicate."""
    meta = {**request.meta, RETURNED: request.dont_filter}
    return request.replace(dont_filter=True, meta=meta)


def from_scheduler(request: Request) -> None:
    """Undo :func:`to_scheduler`."""
    request.dont_filter = request.meta.pop(RETURNED)
