"""How many robots.txt fetches are under way at once.

As many as CONCURRENT_REQUESTS says, as long as they are answered soon. One that is
not only waits, costs next to nothing, and makes room for the next, up to
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

# A fetch that takes longer than this, in seconds, only waits.
_SOON = 0.25


@dataclass(slots=True)
class _Fetch:
    is_young: bool = True


class FetchLimiter:
    """Lets in *at_once* fetches that are young, and *in_all* of any age."""

    def __init__(self, at_once: int, in_all: int) -> None:
        self._at_once = at_once
        #: How many there may be of any age.
        self.in_all = in_all
        self._young = 0
        self._inside = 0
        self._queue: deque[Deferred[None]] = deque()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """For as long as a fetch takes; whoever comes first is let in first."""
        if self._queue or not self._has_room:
            turn: Deferred[None] = Deferred(self._queue.remove)
            self._queue.append(turn)
            await maybe_deferred_to_future(turn)
        else:
            self._let_in()
        fetch = _Fetch()
        aging = call_later(_SOON, self._grow_old, fetch)
        try:
            yield
        finally:
            aging.cancel()
            self._inside -= 1
            self._grow_old(fetch)

    def _grow_old(self, fetch: _Fetch) -> None:
        self._young -= fetch.is_young
        fetch.is_young = False
        self._let_others_in()

    @property
    def _has_room(self) -> bool:
        return self._young < self._at_once and self._inside < self.in_all

    def _let_in(self) -> None:
        self._young += 1
        self._inside += 1

    def _let_others_in(self) -> None:
        while self._queue and self._has_room:
            self._let_in()
            self._queue.popleft().callback(None)
