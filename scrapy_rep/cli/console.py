"""Text for people, on a terminal or in a pipe: lines, a progress line, colour, tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from enum import Enum
from typing import TextIO


class Style(Enum):
    """How something looks on a terminal; the value is what a terminal calls it."""

    GOOD = "32"
    DOUBTFUL = "33"
    BAD = "31"
    FAINT = "2"
    BOLD = "1"


def wants_colour() -> bool:
    """Whether the environment leaves colours to us (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Printer:
    """Writes lines to a text stream, and a last line that can be replaced on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoding = out.encoding or "utf-8"
        #: Whether somebody watches.
        self.live = out.isatty()
        self._coloured = self.live and wants_colour()
        self._pending = 0

    @property
    def width(self) -> int | None:
        """Columns of the terminal; ``None`` where it is none, or does not say."""
        if not self.live:
            return None
        try:
            return os.get_terminal_size(self._out.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def line(self, text: str = "") -> None:
        """Write *text* as a line of its own."""
        self.status("")
        self._out.write(self._encodable(text) + "\n")
        self._out.flush()

    def status(self, text: str) -> None:
        """Show *text* until anything else is written. On terminals only."""
        if not self.live or not (text or self._pending):
            return
        text = self._encodable(text)
        self._out.write("\r" + text.ljust(self._pending) + ("" if text else "\r"))
        self._out.flush()
        self._pending = len(text)

    def styled(self, text: str, style: Style) -> str:
        """*text* in *style*, where that shows."""
        return f"\x1b[{style.value}m{text}\x1b[0m" if self._coloured else text

    def _encodable(self, text: str) -> str:
        # Terminals and pipes that know only ASCII exist.
        return text.encode(self._encoding, "backslashreplace").decode(self._encoding)


class Columns:
    """A table that is written line by line: all columns but the last have a fixed width.

    *widths* are those of all but the last, and *numeric* the titles of those with
    numbers. On a terminal, the last one is cut at its edge, but never to less than
    *least* characters.
    """

    def __init__(
        self,
        printer: Printer,
        titles: Sequence[str],
        widths: Sequence[int],
        numeric: Collection[str] = (),
        least: int = 20,
    ) -> None:
        self._printer = printer
        self._widths = [max(pair) for pair in zip(widths, map(len, titles[:-1]), strict=True)]
        self._numeric = [title in numeric for title in titles[:-1]]
        left = (printer.width or 0) - sum(width + 2 for width in self._widths)
        self._last = max(left, least) if printer.width else None
        printer.line(printer.styled(self._joined(list(titles)), Style.BOLD))
        printer.line(self._joined(["-" * width for width in [*self._widths, len(titles[-1])]]))

    def add(self, cells: Sequence[str], style: Style | None = None) -> None:
        """Write a line; *style* is that of its first cell."""
        self._printer.line(self._joined(list(cells), style))

    def _joined(self, cells: list[str], style: Style | None = None) -> str:
        last = cells.pop()
        padded = aligned(cells, self._widths, self._numeric)
        if style is not None:
            padded[0] = self._printer.styled(padded[0], style)
        return "  ".join([*padded, _cut(last, self._last or len(last))]).rstrip()


def table(header: Sequence[str], rows: Sequence[Sequence[str]], widest: int = 34) -> list[str]:
    """Lines with columns as wide as they need to be, up to *widest*; numbers to the right."""
    cut = [[_cut(cell, widest) for cell in row] for row in (header, *rows)]
    columns = list(zip(*cut, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(cell.isdecimal() for cell in column[1:]) for column in columns]
    lines = ["  ".join(aligned(row, widths, numeric)).rstrip() for row in cut]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def aligned(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """Each of *cells* as wide as *widths* say: cut or padded, on the left if *numeric*."""
    return [
        _cut(cell, width).rjust(width) if right else _cut(cell, width).ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
