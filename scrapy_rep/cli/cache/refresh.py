"""One robots.txt fetched now, by a crawl that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_rep.cli.crawling import crawl
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.rep.cache_entry import CacheEntry
from scrapy_rep.rep.urls import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store, time_of
from scrapy_rep.stores.open import open_store


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What was known *before* and is known *now*, and whether the store has it."""

    before: CacheEntry | None
    now: CacheEntry
    kept: bool

    @property
    def outcome(self) -> str:
        """What has come of it: new, confirmed, same, changed or unreachable."""
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


def refresh(origin: Origin, settings: BaseSettings) -> Refreshed:
    """Fetch the robots.txt of *origin* as a crawl with *settings* would.

    Once in the life of a process. Raises
    :exc:`~scrapy_rep.cli.crawling.CrawlFailed`, or
    :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    return crawl(settings, lambda crawler: _refresh(origin, crawler), {}, "WARNING")


async def _refresh(origin: Origin, crawler: Crawler) -> Refreshed:
    settings = RepSettings.read(crawler.settings)
    store = open_store(settings.store, settings.max_origins)
    try:
        return await _refresh_in(store, origin, crawler, settings)
    finally:
        await store.close()


async def _refresh_in(
    store: Store, origin: Origin, crawler: Crawler, settings: RepSettings
) -> Refreshed:
    cache = PolicyCache(crawler, settings, steady())
    before = await store.read(origin)
    policy = await cache.revalidate(origin, Request(origin.robots_url))
    now = await store.read(origin)
    # Somebody else may have written later news.
    kept = now is not None and time_of(now) >= time_of(policy.entry)
    return Refreshed(before, policy.entry, kept)
