"""``scrapy robots cache refresh``: one robots.txt is fetched, and compared with the stored one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.cli.output import Printer, Style, span
from scrapy_rep.cli.store import OriginState
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import time_of
from scrapy_rep.stores.open import open_store

_HEADLINES = {
    "new": "cached now",
    "confirmed": "confirmed by the server, not changed",
    "same": "fetched again, not changed",
    "changed": "fetched again, and changed",
    "unreachable": "unreachable",
}
# Files with more lines are not compared line by line, because that takes long.
_MOST_COMPARED = 2000


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The cache entry *before* and *now*, and whether the store has the new one."""

    before: CacheEntry | None
    now: CacheEntry
    kept: bool

    @property
    def outcome(self) -> str:
        """One of the keys of :data:`_HEADLINES`."""
        copy = self.now.copy
        if self.now.outage is not None or copy is None:
            return "unreachable"
        old = self.before.copy if self.before else None
        if old is None:
            return "new"
        if copy.fetched_at < copy.confirmed_at:
            return "confirmed"
        is_same = (old.result.status, old.result.body) == (copy.result.status, copy.result.body)
        return "same" if is_same else "changed"


async def refresh(origin: Origin, crawler: Crawler) -> Refreshed:
    """Fetch the robots.txt of *origin* now, whatever the store of *crawler* has.

    Raises :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    settings = RepSettings.read(crawler.settings)
    store = open_store(settings.store, settings.max_origins)
    try:
        cache = PolicyCache(crawler, settings, steady())
        before = await store.read(origin)
        policy = await cache.revalidate(origin, Request(origin.robots_url))
        now = await store.read(origin)
    finally:
        await store.close()
    # Another process may have written a later entry.
    kept = now is not None and time_of(now) >= time_of(policy.entry)
    return Refreshed(before, policy.entry, kept)


def show_change(
    before: OriginState | None, now: OriginState, outcome: str, printer: Printer
) -> None:
    """Write what a refresh with *outcome* has changed."""
    printer.line(f"{now.origin}: {_HEADLINES[outcome]}")
    old = dict(_compared(before)) if before else {}
    for label, text in _compared(now):
        was = old.get(label, "-")
        printer.line(f"  {label:<9} {text}" if was == text else f"  {label:<9} {was} -> {text}")
    printer.line(f"  for a crawl: {now.meaning}")
    _show_difference(before.lines() if before else [], now.lines(), printer)


def _compared(state: OriginState) -> Iterator[tuple[str, str]]:
    yield "standing", state.standing
    yield "access", state.access or "-"
    yield "answer", printable(state.entry.last.detail) or "-"
    yield "url", printable(state.entry.last.url)
    yield "bytes", "-" if state.size is None else str(state.size)
    yield "left", span(state.left)


def _show_difference(before: list[str], now: list[str], printer: Printer) -> None:
    if before == now:
        return
    printer.line()
    if max(len(before), len(now)) > _MOST_COMPARED:
        printer.line(f"{len(before)} lines before, {len(now)} now")
        return
    styles = {"-": Style.BAD, "+": Style.GOOD}
    for line in difflib.unified_diff(before, now, "before", "now", lineterm=""):
        printer.line(printer.styled(line, styles.get(line[:1])))
