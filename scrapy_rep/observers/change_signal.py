"""Sends the signal ``robots_changed``."""

from __future__ import annotations

from scrapy.crawler import Crawler

from scrapy_rep.observers.observer import Fetched, Observer
from scrapy_rep.rep.caching.cache_entry import StoredResponse
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_changed


class ChangeSignal(Observer):
    """Tells those who listen that a robots.txt is another one than before."""

    def __init__(self, crawler: Crawler, settings: RepSettings) -> None:
        self._crawler = crawler
        self._settings = settings

    def on_fetch(self, fetched: Fetched) -> None:
        """Send the signal if there is another file now."""
        old = fetched.known.stored if fetched.known else None
        new = fetched.entry.stored
        if old is not None and new is not None and new.differs_from(old):
            self._crawler.signals.send_catch_log(
                robots_changed,
                old=self._file(old),
                new=self._file(new),
                origin=fetched.entry.origin,
            )

    def _file(self, stored: StoredResponse) -> RobotsTxt | None:
        limit = stored.result.size_to_read(self._settings.max_size)
        body, dialect = stored.result.body, self._settings.dialect
        return RobotsTxt.parse(body, dialect, max_size=limit) if stored.is_file else None
