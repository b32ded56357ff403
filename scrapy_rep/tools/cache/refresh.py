"""One robots.txt fetched now, by a crawl that does nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from twisted.python.failure import Failure

from scrapy_rep.keeper import PolicyKeeper, steady
from scrapy_rep.places import Places
from scrapy_rep.rep.facts import Facts
from scrapy_rep.rep.urls import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store, StoreError, time_of
from scrapy_rep.stores.open import open_store

# Of a project's settings, those that are about its pages and items.
_SETTINGS: dict[str, Any] = {
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "REMOTE_CONTROL_ENABLED": False,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "SPIDER_MODULES": [],
    "TELNETCONSOLE_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What was known *before* and is known *now*, and whether the store has it."""

    before: Facts | None
    now: Facts
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


class CrawlFailed(Exception):
    """The crawl ended before there was an outcome; the message says why, if it is known."""


def refresh(origin: Origin, settings: BaseSettings) -> Refreshed:
    """Fetch the robots.txt of *origin* as a crawl with *settings* would.

    Once in the life of a process: a reactor runs only once. Raises
    :exc:`CrawlFailed`, or :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    outcomes: list[Refreshed | StoreError] = []
    error = _crawl(_crawl_settings(settings), origin=origin, tell=outcomes.append)
    if not outcomes:
        raise CrawlFailed(f"{type(error).__name__}: {error}" if error else "see its log")
    if isinstance(outcomes[0], StoreError):
        raise outcomes[0]
    return outcomes[0]


def _crawl(settings: Settings, **arguments: Any) -> BaseException | None:
    """Run the spider with *arguments*, and return what the crawl raised."""
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        reactorless = AsyncCrawlerProcess(settings)
        task = reactorless.crawl(_RefreshSpider, **arguments)
        reactorless.start()
        return task.exception() if task.done() and not task.cancelled() else None
    failures: list[Failure] = []
    process = CrawlerProcess(settings)
    process.crawl(_RefreshSpider, **arguments).addErrback(failures.append)
    process.start()
    return failures[0].value if failures else None


def _crawl_settings(settings: BaseSettings) -> Settings:
    changed = Settings()
    changed.update(settings.copy())
    changed.setdict(_SETTINGS, "cmdline")
    if (settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["cmdline"]:
        changed.set("LOG_LEVEL", "WARNING", "cmdline")
    return changed


class _RefreshSpider(Spider):
    """Asks for no page: what it does is done when it starts."""

    name = "robots-cache-refresh"

    def __init__(self, origin: Origin, tell: Callable[[Refreshed | StoreError], None]) -> None:
        super().__init__()
        self._origin = origin
        self._tell = tell

    async def start(self) -> AsyncIterator[Any]:
        """Fetch the robots.txt, and tell what has come of it."""
        try:
            self._tell(await self._refresh())
        except StoreError as error:
            self._tell(error)
        no_requests: tuple[Request, ...] = ()
        for request in no_requests:
            yield request

    async def _refresh(self) -> Refreshed:
        settings = RepSettings.read(self.crawler.settings)
        store = open_store(settings.store, settings.max_origins)
        try:
            return await self._refresh_in(store, settings)
        finally:
            await store.close()

    async def _refresh_in(self, store: Store, settings: RepSettings) -> Refreshed:
        keeper = PolicyKeeper(self.crawler, settings, steady(), Places(self.crawler))
        before = await store.read(self._origin)
        policy = await keeper.refresh(self._origin, Request(self._origin.robots_url))
        now = await store.read(self._origin)
        # Somebody else may have written later news.
        kept = now is not None and time_of(now) >= time_of(policy.facts)
        return Refreshed(before, policy.facts, kept)
