"""How far a long command is: one line on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time

from scrapy_rep.cli.console import Printer

# Seconds between two changes of the line.
_PAUSE = 0.1
_BAR = 24


class Progress:
    """A line that is replaced as things go on."""

    def __init__(self) -> None:
        self._printer = Printer(sys.stderr)
        self._next = 0.0

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Say *text*, with a bar where it is known of how many, *total*, so many are *done*."""
        if not self._printer.live or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE
        self._printer.status(f"{_bar(done, total)} {text}" if total else text)

    def clear(self) -> None:
        """Take the line away."""
        self._printer.status("")


def _bar(done: int, total: int) -> str:
    """A bar, of which as much is full as is done.

    >>> _bar(5, 10)
    '[############............]  50 %'
    """
    share = min(done / total, 1.0)
    full = round(share * _BAR)
    return f"[{'#' * full}{'.' * (_BAR - full)}] {100 * share:3.0f} %"
