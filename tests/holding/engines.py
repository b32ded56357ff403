"""An engine and a loop that do what a test says: for the units of ``holding/``."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Any]:
    """*test* in the loop of the reactor, or in one of its own, as for tests/mutation."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> Deferred[None] | None:
        if is_reactor_installed():
            started: Deferred[None] = deferred_from_coro(test(*args, **kwargs))
            return started
        loop = asyncio.SelectorEventLoop(_NeverIdle())
        try:
            loop.run_until_complete(test(*args, **kwargs))
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
        return None

    return run


class _NeverIdle(selectors.DefaultSelector):
    """Fails where nothing will ever happen: a change lets a request wait for ever."""

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("the test waits for ever")
        return super().select(timeout)


class Timer:
    """A call that is due."""

    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualLoop:
    """Calls what is due when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, int, Timer, Callable[..., Any], tuple[Any, ...]]] = []
        self._numbers = count()

    def call_later(self, seconds: float, called: Callable[..., Any], *args: Any) -> Timer:
        # A loop cannot wait for ever.
        assert seconds < inf
        timer = Timer()
        heappush(self._calls, (self.now + seconds, next(self._numbers), timer, called, args))
        return timer

    @property
    def is_idle(self) -> bool:
        """Whether nothing will be called."""
        return all(timer.is_cancelled for _, _, timer, _, _ in self._calls)

    async def step(self, seconds: float = 0.0) -> None:
        """Let so many seconds pass, with all that happens in them."""
        await settle()
        end = self.now + seconds
        while self._calls and self._calls[0][0] <= end:
            self.now, _, timer, called, args = heappop(self._calls)
            if not timer.is_cancelled:
                called(*args)
            await settle()
        self.now = end


async def settle() -> None:
    """Let tasks go on that can."""
    for _ in range(8):
        await asyncio.sleep(0)


class ManualEngine:
    """The facts of an engine whose downloader is limited to *concurrency* requests."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.active: set[Request] = set()
        #: Keys of download slots in which a request would not start at once.
        self.busy: set[str] = set()
        self.is_closing = False
        self.kept_open = 0.0
        self.looks_for_work = 0
        #: How many slots were looked at.
        self.slots_checked = 0

    @property
    def active_count(self) -> int:
        return len(self.active)

    @property
    def room(self) -> int:
        """How many requests the engine would take from the scheduler."""
        return self.concurrency - len(self.active)

    def raise_concurrency(self, number: int) -> None:
        # As of a downloader: one without a limit has none to raise.
        if number and self.concurrency:
            self.concurrency += number
            self.looks_for_work += 1

    def keep_open(self, seconds: float) -> None:
        self.kept_open += seconds

    def slot_key(self, request: Request) -> str:
        return request.url.split("/")[2]

    def slot_is_free(self, key: str | None) -> bool:
        self.slots_checked += 1
        return key not in self.busy
