"""What is known, as text for people."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from scrapy_rep.cli.console import Printer, Style, aligned
from scrapy_rep.cli.known import DUE, Known, iso
from scrapy_rep.cli.wording import span
from scrapy_rep.rep.access import FetchResult
from scrapy_rep.rep.freshness import Freshness
from scrapy_rep.rep.text import printable

# Header and width of each column of the list after that of origins, and whether
# it has numbers. Fixed, so that a line can be written before the next is read.
_COLUMNS = (
    ("standing", 8, False),
    ("access", 11, False),
    ("status", 6, True),
    ("age", 7, True),
    ("left", 7, True),
    ("octets", 9, True),
)
_STYLES = {
    Freshness.FRESH.value: Style.GOOD,
    DUE: Style.GOOD,
    Freshness.STALE.value: Style.DOUBTFUL,
    Freshness.OUTAGE.value: Style.DOUBTFUL,
    Freshness.REFUSED.value: Style.BAD,
    Freshness.GIVEN_UP.value: Style.BAD,
}
# Files with more lines are not compared line by line: that takes time.
_COMPARED = 2000


# -- the list -------------------------------------------------------------------


class List:
    """A table of origins, line by line; the first column has room for *widest* characters."""

    def __init__(self, printer: Printer, widest: int) -> None:
        self._printer = printer
        self._width = max(widest, len("origin"))
        titles = [name for name, _, _ in _COLUMNS]
        rules = ["-" * width for _, width, _ in _COLUMNS]
        printer.line(printer.styled(self._line("origin", titles), Style.BOLD))
        printer.line(self._line("-" * self._width, rules))

    def add(self, known: Known) -> None:
        """Write the line of one origin."""
        cells = (
            known.standing,
            known.access or "-",
            "-" if known.last.status is None else str(known.last.status),
            span(known.age),
            span(known.left),
            "-" if known.octets is None else str(known.octets),
        )
        style = _STYLES[known.standing]
        self._printer.line(self._line(printable(str(known.entry.origin)), cells, style))

    def _line(self, origin: str, cells: Iterable[str], standing: Style | None = None) -> str:
        _, widths, numeric = zip(*_COLUMNS, strict=True)
        padded = aligned(list(cells), widths, numeric)
        if standing is not None:
            padded[0] = self._printer.styled(padded[0], standing)
        return "  ".join([origin.ljust(self._width), *padded]).rstrip()


# -- one origin -----------------------------------------------------------------


def show(known: Known, printer: Printer) -> None:
    """Write all that is *known*."""
    printer.line(printer.styled(printable(str(known.entry.origin)), Style.BOLD))
    for label, text in _fields(known):
        shown = printer.styled(text, _STYLES[text]) if label == "standing" else text
        printer.line(f"  {label:<15}  {shown}".rstrip())
    _show_file(known, printer)


def _fields(known: Known) -> Iterator[tuple[str, str]]:
    now = known.reader.now
    yield "standing", known.standing
    yield "for a crawl", known.meaning
    if known.left:
        yield "until", _moment(known.end, now)
    copy, outage = known.entry.copy, known.entry.outage
    if copy is not None:
        yield "copy", printable(copy.result.url)
        yield from _answer(copy.result)
        yield "  octets", f"{known.octets}{', cut: there was more' if copy.result.cut else ''}"
        yield "  fetched", _moment(copy.fetched_at, now)
        yield "  confirmed", _moment(copy.confirmed_at, now)
        yield "  lifetime", "the crawl" if known.lifetime is None else span(known.lifetime)
    if outage is not None:
        yield "outage", printable(outage.result.url)
        yield from _answer(outage.result)
        yield "  since", _moment(outage.since, now)
        yield "  last attempt", f"{_moment(outage.last_at, now)}, number {outage.attempts}"
        yield "  next attempt", f"from {_moment(known.retry_at or now, now)}"


def _answer(result: FetchResult) -> Iterator[tuple[str, str]]:
    if result.redirects:
        yield "  redirects", str(result.redirects)
    yield "  answer", printable(result.detail) or f"status {result.status}"
    for name, value in result.headers:
        yield f"  {printable(name)}", printable(value)


def _moment(at: float, now: float) -> str:
    relative = f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"
    return f"{iso(at)} ({relative})"


def _show_file(known: Known, printer: Printer) -> None:
    lines = known.lines()
    if not lines:
        return
    printer.line()
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        printer.line(f"{printer.styled(str(number).rjust(width), Style.FAINT)}  {line}".rstrip())
    if (known.octets or 0) > known.reader.settings.max_size:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


# -- a refresh ------------------------------------------------------------------


def show_change(before: Known | None, now: Known, headline: str, printer: Printer) -> None:
    """Write what a refresh has changed."""
    printer.line(f"{printable(str(now.entry.origin))}: {headline}")
    old = dict(_compared(before)) if before else {}
    for label, text in _compared(now):
        was = old.get(label, "-")
        printer.line(f"  {label:<9} {text}" if was == text else f"  {label:<9} {was} -> {text}")
    printer.line(f"  for a crawl: {now.meaning}")
    _show_difference(before.lines() if before else [], now.lines(), printer)


def _compared(known: Known) -> Iterator[tuple[str, str]]:
    yield "standing", known.standing
    yield "access", known.access or "-"
    yield "answer", printable(known.last.detail) or "-"
    yield "url", printable(known.last.url)
    yield "octets", "-" if known.octets is None else str(known.octets)
    yield "left", span(known.left)


def _show_difference(before: list[str], now: list[str], printer: Printer) -> None:
    if before == now:
        return
    printer.line()
    if max(len(before), len(now)) > _COMPARED:
        printer.line(f"{len(before)} lines before, {len(now)} now")
        return
    styles = {"-": Style.BAD, "+": Style.GOOD}
    difference = difflib.unified_diff(before, now, "before", "now", lineterm="")
    for line in difference:
        style = styles.get(line[:1])
        printer.line(printer.styled(line, style) if style else line)
