"""An event loop whose time the test sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any


@dataclass(eq=False)
class ManualTimer:
    """What :meth:`ManualLoop.call_later` returns."""

    at: float
    number: int
    call: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class ManualLoop:
    """A clock, and calls that are due by it."""

    now: float = 1000.0
    timers: list[ManualTimer] = field(default_factory=list)
    numbers: Any = field(default_factory=count)

    def clock(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., None], *args: Any) -> ManualTimer:
        timer = ManualTimer(self.now + max(seconds, 0), next(self.numbers), lambda: call(*args))
        self.timers.append(timer)
        return timer

    @property
    def pending(self) -> list[ManualTimer]:
        return sorted(
            (timer for timer in self.timers if not timer.is_cancelled),
            key=lambda timer: (timer.at, timer.number),
        )

    def turn(self) -> None:
        """One turn of the loop: what is due, but not what becomes due by that."""
        for timer in [timer for timer in self.pending if timer.at <= self.now]:
            if not timer.is_cancelled:
                self.timers.remove(timer)
                timer.call()

    def advance(self, seconds: float) -> None:
        """Let so many *seconds* pass, and do all that is due until then."""
        until = self.now + seconds
        while self.pending and self.pending[0].at <= until:
            timer = self.pending[0]
            self.now = max(self.now, timer.at)
            self.timers.remove(timer)
            timer.call()
        self.now = until
