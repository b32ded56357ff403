"""What the demo says while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from scrapy_rep.cli.console import Printer
from scrapy_rep.cli.demo.crawl import Outcome
from scrapy_rep.cli.demo.results import page_url
from scrapy_rep.cli.demo.serving import ServedSite

# Plain progress lines of a big crawl, at most.
_MAX_LINES = 40
# Seconds between two states of the counter.
_REDRAW = 0.1


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
