"""Crawls that subcommands run in their own process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed
from twisted.python.failure import Failure

from scrapy_rep.cli.errors import CommandError

_T = TypeVar("_T")

# Replaces the settings of a project that are about its pages and items.
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


def with_crawler(
    settings: BaseSettings,
    work: Callable[[Crawler], Awaitable[_T]],
    changes: dict[str, Any],
    log_level: str = "ERROR",
) -> _T:
    """Return what *work* returns for the crawler of a crawl that requests no page.

    Proxies, handlers, middlewares and User-Agent are those of *settings*, a project's,
    with *changes*. The log starts at *log_level*, unless the command line says otherwise.
    Can be called once per process, because a reactor runs only once. Raises what *work*
    raises, and :exc:`CommandError` if the crawl ends without a result.
    """
    results: list[_T] = []
    errors: list[Exception] = []

    async def job(crawler: Crawler) -> None:
        try:
            results.append(await work(crawler))
        except Exception as error:
            # Scrapy would log it and go on.
            errors.append(error)

    changed = Settings()
    changed.update(settings.copy())
    changed.setdict(_SETTINGS | changes, "cmdline")
    if (settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["cmdline"]:
        changed.set("LOG_LEVEL", log_level, "cmdline")
    failure = run_spider(changed, _WorkSpider, job=job)
    if errors:
        raise errors[0]
    if not results:
        why = f"{type(failure).__name__}: {failure}" if failure else "see its log"
        raise CommandError(f"the crawl that was to fetch it failed: {why}")
    return results[0]


def run_spider(settings: Settings, spider: type[Spider], **arguments: Any) -> BaseException | None:
    """Run *spider* to its end, and return what the crawl raised.

    Interrupts are left to the caller.
    """
    if is_reactor_installed() and not is_asyncio_reactor_installed():
        # The settings of the project import twisted.internet.reactor: that is its choice.
        settings.set("TWISTED_REACTOR", None, "cmdline")
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        reactorless = AsyncCrawlerProcess(settings)
        task = reactorless.crawl(spider, **arguments)
        reactorless.start(install_signal_handlers=False)
        return task.exception() if task.done() and not task.cancelled() else None
    failures: list[Failure] = []
    process = CrawlerProcess(settings)
    process.crawl(spider, **arguments).addErrback(failures.append)
    process.start(install_signal_handlers=False)
    return failures[0].value if failures else None


class _WorkSpider(Spider):
    """Does its job when it starts, and requests no page."""

    name = "robots-command"
    job: Callable[[Crawler], Awaitable[None]]

    async def start(self) -> AsyncIterator[Any]:
        """Do the job."""
        await self.job(self.crawler)
        # Scrapy wants a generator.
        no_requests: tuple[Any, ...] = ()
        for request in no_requests:
            yield request
