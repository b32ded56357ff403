"""Text for people, on a terminal or in a pipe: lines, progress, tables, and common words."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from io import TextIOWrapper
from itertools import chain, repeat
from typing import Any, NamedTuple, TextIO

from ..rep.lint.findings import Finding
from ..rep.parsing.agents import AgentLine
from ..rep.rules.verdict import Reason, Verdict
from ..rep.text import printable


class Style(Enum):
    """A look on a terminal; the value is its code (ECMA-48, SGR)."""

    GOOD = "32"
    DOUBTFUL = "33"
    BAD = "31"
    FAINT = "2"
    BOLD = "1"


class Printer:
    """Writes lines to *out* or standard output. On a terminal, the last can be replaced."""

    # Seconds between two changes of the last line.
    _PAUSE = 0.1

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out = out or sys.stdout
        if isinstance(out, TextIOWrapper):
            # Some terminals and pipes can only show ASCII.
            out.reconfigure(errors="backslashreplace")
        self._is_terminal = out.isatty()
        # https://no-color.org
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._coloured = self._is_terminal and not plain
        self._pending = 0
        self._next_status = 0.0

    @property
    def width(self) -> int | None:
        """Columns of the terminal; ``None`` if this is not one, or it does not say."""
        try:
            return os.get_terminal_size(self._out.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def line(self, text: str = "") -> None:
        """Write *text* and a line end."""
        self.clear()
        self._out.write(text + "\n")
        self._out.flush()

    def field(self, label: str, text: str, style: Style | None = None, width: int = 10) -> None:
        """Write *text* after its *label*."""
        self.line(f"  {label:<{width}}  {self.styled(text, style)}".rstrip())

    def status(self, text: str, done: int = 0, total: int | None = None) -> None:
        """On a terminal, show *text* until anything else is written; a bar if *total* is known."""
        if self._is_terminal and time.monotonic() >= self._next_status:
            self._next_status = time.monotonic() + self._PAUSE
            self._replace(f"{_bar(done, total)} {text}" if total else text)

    def clear(self) -> None:
        """Remove the status."""
        if self._pending:
            self._replace("")

    def _replace(self, text: str) -> None:
        self._out.write("\r" + text.ljust(self._pending) + ("" if text else "\r"))
        self._out.flush()
        self._pending = len(text)

    def styled(self, text: str, style: Style | None) -> str:
        """*text* in *style*, if the terminal can show it."""
        return f"\x1b[{style.value}m{text}\x1b[0m" if style and self._coloured else text


def _bar(done: int, total: int, width: int = 24) -> str:
    """The part of *total* that is *done*.

    >>> _bar(5, 10)
    '[############............]  50 %'
    """
    share = min(done / total, 1.0)
    return f"[{'#' * round(share * width):.<{width}}] {100 * share:3.0f} %"


# -- tables --------------------------------------------------------------------------

# Columns are not cut to less than this, however narrow a terminal is.
_LEAST = 16
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]+", re.IGNORECASE)


class Cut(Enum):
    """Where a cell is cut that is too long for a terminal."""

    NOWHERE = 0
    END = 1
    #: For URLs: they differ at their ends.
    MIDDLE = 2


class Column(NamedTuple):
    """A column of a table, with a least *width*; its cells may be *styled* as their rows.

    Where a terminal is too narrow, cells are *cut*, and what all rows share is written once:
    the cell, or the origin of URLs.
    """

    title: str
    right: bool = False
    cut: Cut = Cut.NOWHERE
    shared: bool = False
    width: int = 0
    styled: bool = False


class Table:
    """A table of *columns*, written in portions.

    On a terminal, each portion is a table. In a pipe nothing is cut, and the first rows decide
    how wide the columns are.
    """

    def __init__(self, printer: Printer, columns: Iterable[Column]) -> None:
        self._printer = printer
        self._columns = tuple(columns)
        self._widths: list[int] = []

    def write(
        self,
        rows: Sequence[Sequence[str]],
        styles: Iterable[Style | None] = (),
        notes: Iterable[Iterable[str]] = (),
    ) -> None:
        """Write *rows*, each in its style and before its *notes*; titles before the first ones."""
        columns: Sequence[Column] = self._columns
        terminal = self._printer.width
        if rows and (terminal is not None or not self._widths):
            self._widths = _widths(columns, rows)
            if terminal is not None and _excess(self._widths, terminal):
                columns, rows = self._without_shared(rows)
                self._widths = _fitted(columns, rows, terminal)
            self._write([column.title for column in columns], columns)
            # The last column is as wide as each row needs it.
            widths = [*self._widths[:-1], *_widths(columns[-1:], [])]
            self._printer.line("  ".join("-" * width for width in widths))
        every = zip(rows, chain(styles, repeat(None)), chain(notes, repeat(())), strict=False)
        for row, style, lines in every:
            self._write(row, columns, style)
            for line in lines:
                self._printer.line(f"    {line}")

    def _without_shared(
        self, rows: Sequence[Sequence[str]]
    ) -> tuple[list[Column], list[tuple[str, ...]]]:
        """Write what all *rows* share; return what is left, in columns without a least width."""
        shared, left = [], dict[Column, list[str]]()
        for column, *cells in zip(self._columns, *rows, strict=True):
            if column.shared and column.cut is not Cut.MIDDLE and len(set(cells)) == 1:
                shared.append(f"{column.title} {cells[0]}")
                continue
            origin = _common_origin(cells) if column.shared and column.cut is Cut.MIDDLE else ""
            shared += [origin] if origin else []
            texts = [cell.removeprefix(origin) or "/" for cell in cells] if origin else cells
            left[column._replace(width=0)] = texts
        if shared:
            self._printer.line(f"for all: {', '.join(shared)}")
        return list(left), list(zip(*left.values(), strict=True))

    def _write(
        self, row: Iterable[str], columns: Iterable[Column], style: Style | None = None
    ) -> None:
        cells = []
        for cell, column, width in zip(row, columns, self._widths, strict=True):
            text = cell if self._printer.width is None else _cut(cell, width, column.cut)
            text = text.rjust(width) if column.right else text.ljust(width)
            cells.append(self._printer.styled(text, style if column.styled else None))
        self._printer.line("  ".join(cells).rstrip())


def _widths(columns: Iterable[Column], rows: Iterable[Sequence[str]]) -> list[int]:
    """How wide each column needs to be."""
    cells = zip([column.title for column in columns], *rows, strict=True)
    return [max(c.width, *map(len, texts)) for c, texts in zip(columns, cells, strict=True)]


def _excess(widths: Sequence[int], terminal: int) -> int:
    """How many columns of the terminal are missing."""
    return max(0, sum(widths) + 2 * (len(widths) - 1) - terminal)


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], terminal: int) -> list[int]:
    """Widths for a terminal, but none so narrow that two different URLs look the same."""
    widths = _widths(columns, rows)
    for cut in (Cut.END, Cut.MIDDLE):
        for number, column in enumerate(columns):
            if column.cut is cut and widths[number] > _LEAST:
                fitted = max(_LEAST, widths[number] - _excess(widths, terminal))
                cells = {row[number] for row in rows}
                if cut is Cut.END or len({_cut(cell, fitted, cut) for cell in cells}) == len(cells):
                    widths[number] = fitted
    return widths


def _common_origin(urls: Iterable[str]) -> str:
    """The origin, as it is written, that all of *urls* start with; "" if there is none."""
    origins = {match[0] if (match := _ORIGIN.match(url)) else "" for url in urls}
    return origins.pop() if len(origins) == 1 else ""


def _cut(text: str, width: int, cut: Cut) -> str:
    """*text* in *width* columns.

    >>> _cut("/private/a/b/c/d/e.html", 16, Cut.MIDDLE)
    '/priv...d/e.html'
    """
    if len(text) <= width or cut is Cut.NOWHERE:
        return text
    tail = 0 if cut is Cut.END else (width - 3) * 2 // 3
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


# -- for machines ----------------------------------------------------------------------


def write_json(value: Mapping[str, Any]) -> None:
    """Write *value* to standard output as one line."""
    sys.stdout.write(json.dumps(value) + "\n")


class Records:
    """Objects with *fields*, written to standard output; *form* is "json" or "csv"."""

    def __init__(self, form: str, fields: Sequence[str]) -> None:
        self._csv = csv.writer(sys.stdout, lineterminator="\n") if form == "csv" else None
        self._fields = fields
        if self._csv is not None:
            self._csv.writerow(fields)

    def write(self, *values: Mapping[str, Any]) -> None:
        """Write objects; in CSV, what one lacks is an empty cell."""
        for value in values:
            if self._csv is None:
                write_json(value)
            else:
                self._csv.writerow([_csv_cell(value.get(field)) for field in self._fields])


def _csv_cell(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(each["name"] if isinstance(each, dict) else each for each in value)
    if isinstance(value, bool):
        value = "true" if value else "false"
    text = "" if value is None else str(value)
    # Spreadsheets run a cell that begins like this as a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


# -- words ---------------------------------------------------------------------------

_BECAUSE = {
    Reason.MATCHING_LIMIT: "too many rules to try",
    Reason.NO_RULE: "no rule matches",
    Reason.NO_GROUP: "no group applies",
    Reason.ROBOTS_TXT_ITSELF: "robots.txt itself",
    Reason.UNAVAILABLE: "unavailable",
    Reason.UNREACHABLE: "unreachable",
    Reason.DISALLOWED: "the answer refuses all",
    Reason.OTHER_PARSER: "by an external parser",
    Reason.UNREADABLE: "no parser can read it",
    Reason.INVALID_URL: "invalid URL",
    Reason.OTHER_SCHEME: "no robots.txt for this scheme",
    Reason.RESERVED: "its page rules refuse",
    Reason.VISIT_TIME: "outside of the visit time",
}


def iso(at: float) -> str:
    """The time *at*, in seconds since the epoch, as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def answer(allowed: bool) -> str:
    """The answer in one word."""
    return "allowed" if allowed else "refused"


def because(verdict: Verdict) -> str:
    """The line that decides, or why no line does. Safe to print."""
    if decided := verdict.rule or verdict.record:
        return str(decided)
    words = _BECAUSE[verdict.reason]
    return f"{words} ({verdict.detail})" if verdict.detail else words


def names(group: Iterable[AgentLine]) -> str:
    """The names in the user-agent lines of *group*, safe to print; "-" if there are none."""
    return ", ".join(dict.fromkeys(printable(agent.name) for agent in group)) or "-"


def agents_json(group: Iterable[AgentLine]) -> list[dict[str, Any]]:
    """The user-agent lines of *group*."""
    return [{"name": printable(name), "line": line} for name, line in group]


def finding_json(finding: Finding) -> dict[str, Any]:
    """What is found in a line, without the number of the line."""
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "sentence": finding.sentence,
    }
