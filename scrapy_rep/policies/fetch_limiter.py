"""How many robots.txt fetches run at once.

As many as CONCURRENT_REQUESTS says, as long as they are answered soon. A fetch that is not
only waits for its server, costs next to nothing, and lets the next one start, up to
REP_MAX_FETCHES in all: hosts that hang do not keep the others waiting.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

# A fetch that takes longer than this, in seconds, is slow.
_SOON = 0.25


class FetchLimiter:
    """Lets *at_once* fetches run that are not slow, and *in_all* with the slow ones."""

    def __init__(self, at_once: int, in_all: int) -> None:
        # CONCURRENT_REQUESTS = 0, or less, is no limit.
        self._at_once = DeferredSemaphore(at_once if at_once > 0 else in_all)
        self._in_all = DeferredSemaphore(in_all)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """For as long as a fetch takes; the fetch that comes first runs first."""
        with ExitStack() as running, ExitStack() as quick:
            await maybe_deferred_to_future(self._in_all.acquire())
            running.callback(self._in_all.release)
            await maybe_deferred_to_future(self._at_once.acquire())
            quick.callback(self._at_once.release)
            timer = call_later(_SOON, quick.close)
            running.callback(timer.cancel)
            yield
