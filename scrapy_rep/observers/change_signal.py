"""Sends the signal ``robots_changed``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_rep.observers.observer import Observer
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.signals import robots_changed
from scrapy_rep.stores.history import has_changed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
    from scrapy_rep.rep.dialects import Access
    from scrapy_rep.settings import RepSettings


class ChangeSignal(Observer):
    """Tells those who listen that a robots.txt is another one than before."""

    def __init__(self, crawler: Crawler, settings: RepSettings) -> None:
        self._crawler = crawler
        self._settings = settings

    def on_fetch(
        self,
        result: FetchResult,
        access: Access,
        known: CacheEntry | None,
        entry: CacheEntry,
        now: float,
    ) -> None:
        """Send the signal if *entry* has another file than *known*."""
        if known is None or known.copy is None or entry.copy is None:
            return
        if has_changed(known, entry):
            self._crawler.signals.send_catch_log(
                robots_changed,
                old=self._file(known.copy),
                new=self._file(entry.copy),
                origin=entry.origin,
            )

    def _file(self, copy: StoredResponse) -> RobotsTxt | None:
        if not copy.is_file:
            return None
        result = copy.result
        limit = result.size_to_read(self._settings.max_size)
        return RobotsTxt.parse(result.body, self._settings.dialect, max_size=limit)
