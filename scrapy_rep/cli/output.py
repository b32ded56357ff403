"""Text for people, on a terminal or in a pipe: lines, progress, tables, and common words."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TextIO

from scrapy_rep.rep.lint.findings import Finding
from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable


class Style(Enum):
    """A look on a terminal; the value is its code (ECMA-48, SGR)."""

    GOOD = "32"
    DOUBTFUL = "33"
    BAD = "31"
    FAINT = "2"
    BOLD = "1"


class Printer:
    """Writes lines to a text stream. On a terminal, the last line can be replaced."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoding = out.encoding or "utf-8"
        #: Whether the stream is a terminal.
        self.live = out.isatty()
        # https://no-color.org
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._coloured = self.live and not plain
        self._pending = 0

    @property
    def width(self) -> int | None:
        """Columns of the terminal; ``None`` if this is not one, or it does not say."""
        if not self.live:
            return None
        try:
            return os.get_terminal_size(self._out.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def line(self, text: str = "") -> None:
        """Write *text* and a line end."""
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

    def styled(self, text: str, style: Style | None) -> str:
        """*text* in *style*, if the terminal can show it."""
        return f"\x1b[{style.value}m{text}\x1b[0m" if style and self._coloured else text

    def _encodable(self, text: str) -> str:
        # Some terminals and pipes can only show ASCII.
        return text.encode(self._encoding, "backslashreplace").decode(self._encoding)


def write_json(value: dict[str, Any]) -> None:
    """Write *value* to standard output as one line."""
    sys.stdout.write(json.dumps(value) + "\n")


# -- progress ------------------------------------------------------------------------


class Progress:
    """One line on standard error that is replaced as work goes on, if that is a terminal."""

    # Seconds between two changes of the line.
    _PAUSE = 0.1

    def __init__(self) -> None:
        self._printer = Printer(sys.stderr)
        self._next = 0.0

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Show *text*, after a bar if *total* is known."""
        if not self._printer.live or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._PAUSE
        self._printer.status(f"{_bar(done, total)} {text}" if total else text)

    def clear(self) -> None:
        """Remove the line."""
        self._printer.status("")


def _bar(done: int, total: int, width: int = 24) -> str:
    """The part of *total* that is *done*.

    >>> _bar(5, 10)
    '[############............]  50 %'
    """
    share = min(done / total, 1.0)
    full = round(share * width)
    return f"[{'#' * full}{'.' * (width - full)}] {100 * share:3.0f} %"


# -- tables --------------------------------------------------------------------------

# The last column is not cut to less than this, however narrow a terminal is.
_LEAST_LAST = 20


class Column(NamedTuple):
    """A column: its title, its width, and whether its cells are aligned to the right.

    Without a width, which is for the last column only, cells are not padded, and cut only
    at the edge of a terminal.
    """

    title: str
    width: int | None = None
    right: bool = False


class Table:
    """A table that is written line by line, so all widths are known before the first line.

    *styled* is the number of the cell that gets the style of a line.
    """

    def __init__(
        self,
        printer: Printer,
        columns: Iterable[Column],
        *,
        styled: int = 0,
        header: Style | None = Style.BOLD,
    ) -> None:
        self._printer = printer
        self._styled = styled
        self._columns = [
            column._replace(width=column.width and max(column.width, len(column.title)))
            for column in columns
        ]
        taken = sum(column.width + 2 for column in self._columns if column.width)
        self._most = printer.width and max(printer.width - taken, _LEAST_LAST)
        titles = [column.title for column in self._columns]
        printer.line(printer.styled(self._joined(titles), header))
        printer.line("  ".join("-" * (each.width or len(each.title)) for each in self._columns))

    def add(self, cells: Sequence[str], style: Style | None = None) -> None:
        """Write a line."""
        self._printer.line(self._joined(cells, style))

    def _joined(self, cells: Sequence[str], style: Style | None = None) -> str:
        padded = [self._fitted(*pair) for pair in zip(cells, self._columns, strict=True)]
        padded[self._styled] = self._printer.styled(padded[self._styled], style)
        return "  ".join(padded).rstrip()

    def _fitted(self, cell: str, column: Column) -> str:
        cut = _cut(cell, column.width or self._most or len(cell))
        width = column.width or 0
        return cut.rjust(width) if column.right else cut.ljust(width)


def print_table(
    printer: Printer, titles: Sequence[str], rows: Sequence[Sequence[str]], widest: int
) -> None:
    """Write *rows* in columns as wide as they need to be, up to *widest*; numbers to the right."""
    columns = []
    for title, *cells in zip(titles, *rows, strict=True):
        width = min(max(map(len, (title, *cells))), widest)
        columns.append(Column(title, width, all(cell.isdecimal() for cell in cells)))
    table = Table(printer, columns, header=None)
    for row in rows:
        table.add(row)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


# -- words ---------------------------------------------------------------------------

_UNITS = (("d", 86400), ("h", 3600), ("min", 60))
_BECAUSE = {
    Reason.MATCHING_LIMIT: "too many rules to try",
    Reason.NO_RULE: "no rule matches",
    Reason.NO_GROUP: "no group for us",
    Reason.ROBOTS_TXT_ITSELF: "robots.txt itself",
    Reason.UNAVAILABLE: "unavailable",
    Reason.UNREACHABLE: "unreachable",
    Reason.DISALLOWED: "its answer refuses all",
    Reason.OTHER_PARSER: "by another parser",
    Reason.UNREADABLE: "no parser can read it",
    Reason.INVALID_URL: "no URL",
    Reason.OTHER_SCHEME: "no robots.txt for this scheme",
    Reason.RESERVED: "its page rules refuse",
    Reason.VISIT_TIME: "visits at other times",
}


def span(seconds: float | None) -> str:
    """*seconds* in the largest unit of which there are at least two.

    >>> span(86400), span(90.4), span(None)
    ('24 h', '90 s', '-')
    """
    if seconds is None:
        return "-"
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def iso(at: float) -> str:
    """The time *at*, in seconds since the epoch, as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def number(count: int, what: str) -> str:
    """*count* with a noun.

    >>> number(1, "line"), number(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


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


def agent_lines_as_json(group: Iterable[AgentLine]) -> list[dict[str, Any]]:
    """The user-agent lines of *group*."""
    return [{"name": printable(name), "line": line} for name, line in group]


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The answer, and what decided it."""
    decided = verdict.rule or verdict.record
    return {
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "line": verdict.line or None,
        "rule": str(decided) if decided else None,
        "group": agent_lines_as_json(verdict.group),
        "detail": verdict.detail,
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """What is found in a line, without the number of the line."""
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "sentence": finding.sentence,
    }
