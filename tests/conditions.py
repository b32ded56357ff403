"""What tests wait for: that something has happened, not a time in which it should have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: Seconds after which it will not happen any more, on whatever machine.
HANGS = 300.0
_LOOK = 0.01


def wait_until(happened: Callable[[], bool]) -> None:
    """Return when it has *happened*."""
    deadline = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(_LOOK)


async def until(happened: Callable[[], bool]) -> None:
    """The same on an event loop of asyncio's."""
    deadline = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        await asyncio.sleep(_LOOK)
