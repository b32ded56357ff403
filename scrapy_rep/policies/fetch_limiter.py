"""Limits how many robots.txt fetches run at the same time.

CONCURRENT_REQUESTS fetches run at once. A slow fetch only waits for its server and costs almost
nothing, so it lets the next one start, up to REP_MAX_FETCHES in total. So hosts that do not answer
do not block the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

# A fetch that takes more seconds than this is slow.
_SOON = 0.25


class FetchLimiter:
    """Allows *at_once* fetches that are not slow, and *in_all* including the slow ones."""

    def __init__(self, at_once: int, in_all: int) -> None:
        # CONCURRENT_REQUESTS = 0, or less, means no limit.
        self._at_once = DeferredSemaphore(at_once if at_once > 0 else in_all)
        self._in_all = DeferredSemaphore(in_all)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait until a fetch may run; use it around the fetch. First come, first served."""
        with ExitStack() as running, ExitStack() as quick:
            await maybe_deferred_to_future(self._in_all.acquire())
            running.callback(self._in_all.release)
            await maybe_deferred_to_future(self._at_once.acquire())
            quick.callback(self._at_once.release)
            timer = call_later(_SOON, quick.close)
            running.callback(timer.cancel)
            yield
