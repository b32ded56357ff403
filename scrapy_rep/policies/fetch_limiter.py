"""How many robots.txt fetches run at once.

As many as CONCURRENT_REQUESTS says, as long as they are answered soon. A fetch that is not
only waits for its server, costs next to nothing, and lets the next one start, up to
REP_MAX_FETCHES in all: hosts that hang do not keep the others waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

# A fetch that takes longer than this, in seconds, is slow.
_SOON = 0.25


@dataclass(slots=True)
class _Fetch:
    is_slow: bool = False


class FetchLimiter:
    """Lets *at_once* fetches run that are not slow, and *in_all* with the slow ones."""

    def __init__(self, at_once: int, in_all: int) -> None:
        self._at_once = at_once
        #: How many there may be, slow or not.
        self.in_all = in_all
        self._quick = 0
        self._running = 0
        self._waiting: deque[Deferred[None]] = deque()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """For as long as a fetch takes; the fetch that comes first runs first."""
        if self._waiting or not self._has_room:
            turn: Deferred[None] = Deferred(self._waiting.remove)
            self._waiting.append(turn)
            await maybe_deferred_to_future(turn)
        else:
            self._start()
        fetch = _Fetch()
        timer = call_later(_SOON, self._slow_down, fetch)
        try:
            yield
        finally:
            timer.cancel()
            self._running -= 1
            self._slow_down(fetch)

    def _slow_down(self, fetch: _Fetch) -> None:
        """*fetch* counts no longer as one that is not slow."""
        self._quick -= not fetch.is_slow
        fetch.is_slow = True
        while self._waiting and self._has_room:
            self._start()
            self._waiting.popleft().callback(None)

    @property
    def _has_room(self) -> bool:
        return self._quick < self._at_once and self._running < self.in_all

    def _start(self) -> None:
        self._quick += 1
        self._running += 1
