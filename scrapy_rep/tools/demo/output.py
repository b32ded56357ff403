"""Text of the demo for people: progress while it runs, and tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from scrapy_rep.tools.demo.crawl import Outcome
from scrapy_rep.tools.demo.results import page_url
from scrapy_rep.tools.demo.serving import ServedSite

# Plain progress lines of a big crawl, at most.
_MAX_LINES = 40
# Seconds between two states of the counter.
_REDRAW = 0.1


class Printer:
    """Writes lines to a text stream, and a last line that can be replaced on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoding = out.encoding or "utf-8"
        #: Whether somebody watches.
        self.live = out.isatty()
        self._pending = 0

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

    def _encodable(self, text: str) -> str:
        # Terminals and pipes that know only ASCII exist.
        return text.encode(self._encoding, "backslashreplace").decode(self._encoding)


class Progress:
    """Counts pages, and says so for each origin when it is through."""

    def __init__(self, sites: Sequence[ServedSite], printer: Printer) -> None:
        self._printer = printer
        self._site_of = {page_url(site, page): site for site in sites for page in site.site.pages}
        self._open = {site.server.url: len(site.site.pages) for site in sites}
        self._outcomes: dict[str, list[Outcome]] = {site.server.url: [] for site in sites}
        self._pages = 0
        self._finished = 0
        self._every = -(-len(sites) // _MAX_LINES)
        self._started = time.monotonic()
        self._redraw_at = 0.0

    def seen(self, url: str, outcome: Outcome) -> None:
        """There is an *outcome* for the page at *url*."""
        site = self._site_of[url]
        origin = site.server.url
        self._pages += 1
        self._open[origin] -= 1
        self._outcomes[origin].append(outcome)
        if self._open[origin] == 0:
            self._finished += 1
            if self._every == 1:
                self._printer.line(self._site_line(site, self._outcomes[origin]))
            elif not self._printer.live and self._finished % self._every == 0:
                self._printer.line(self._count())
        if time.monotonic() >= self._redraw_at:
            self._redraw_at = time.monotonic() + _REDRAW
            self._printer.status(self._count())

    def _site_line(self, site: ServedSite, outcomes: Sequence[Outcome]) -> str:
        fetched = sum(outcome.status is not None for outcome in outcomes)
        refused = sum(outcome.verdict is not None for outcome in outcomes)
        return (
            f"{self._seconds()}  {self._finished:2}/{len(self._open)}  {site.server.url:<24}"
            f"  {fetched} fetched, {refused} refused  {site.site.name}"
        )

    def _count(self) -> str:
        return (
            f"{self._seconds()}  {self._finished}/{len(self._open)} origins, "
            f"{self._pages}/{len(self._site_of)} pages"
        )

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._started:5.1f} s"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], widest: int = 34) -> list[str]:
    """Lines with columns as wide as they need to be, up to *widest*; numbers to the right."""
    cut = [[_cut(cell, widest) for cell in row] for row in (header, *rows)]
    columns = list(zip(*cut, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(cell.isdecimal() for cell in column[1:]) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cut
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
