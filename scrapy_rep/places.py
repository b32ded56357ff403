"""Places of CONCURRENT_REQUESTS, lent to pages by those who only wait.

Scrapy counts a request from the moment when it leaves the scheduler, so one that
waits for a robots.txt holds a place, and the fetch that it waits for a second: a
few hosts that do not answer stop a whole crawl. For each of them, the downloader
is told of one place more.

Scrapy says to nobody that a crawl is about to stop, and stops only when no request
is under way. As long as a place is lent, there is a look now and then, and those who
wait are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# Seconds between two looks at whether the crawl is about to stop.
LOOK = 0.25


class Places:
    """The places of one crawl, and who is to be told when it stops."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._lent = 0
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
    def lend(self) -> Iterator[None]:
        """Give one more request the chance to be downloaded, for so long."""
        self._change(1)
        if not self._looking:
            self._looking = True
            call_later(LOOK, self._look)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, places: int) -> None:
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

    def _look(self) -> None:
        self._looking = False
        if not self._lent:
            return
        if self.is_closing:
            self._hold_open()
            for callback in self._on_stop:
                callback()
            return
        self._looking = True
        call_later(LOOK, self._look)
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
