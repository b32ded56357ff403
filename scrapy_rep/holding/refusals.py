"""Held requests that are refused: one in each step of the loop.

All requests that have waited for one robots.txt may be refused at once. Each takes a
millisecond or two, and nobody else would go on meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

# Seconds between two refusals while all concurrency is used.
_PAUSE = 0.01


class RefusalQueue:
    """Gives each refusal its turn. *is_idle* says whether nobody needs the loop more."""

    def __init__(
        self, is_idle: Callable[[], bool], call_later: Callable[..., Any] = call_later
    ) -> None:
        self._is_idle = is_idle
        self._call_later = call_later
        self._turns: deque[Deferred[None]] = deque()

    async def turn(self) -> None:
        """Return when all that came before have been refused."""
        mine: Deferred[None] = Deferred()
        self._turns.append(mine)
        if len(self._turns) == 1:
            self._call_later(0, self._next)
        await maybe_deferred_to_future(mine)

    def _next(self) -> None:
        turn = self._turns[0]
        # Else its request was cancelled.
        if not turn.called:
            turn.callback(None)
        self._turns.popleft()
        if self._turns:
            self._call_later(0 if self._is_idle() else _PAUSE, self._next)
