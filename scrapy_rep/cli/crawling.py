"""Crawls that subcommands run in their own process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed
from twisted.python.failure import Failure

from .errors import CommandError

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
    changed = Settings()
    changed.update(settings.copy())
    changed.setdict(_SETTINGS | changes, "cmdline")
    # The command line has a higher priority, a project a lower one.
    changed.set("LOG_LEVEL", log_level, "spider")
    outcome: Future[_T] = Future()
    why = "see its log"
    try:
        run_spider(changed, _WorkSpider, work=work, outcome=outcome)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    if not outcome.done():
        raise CommandError(f"the crawl that was to fetch it failed: {why}")
    return outcome.result()


def run_spider(settings: Settings, spider: type[Spider], **arguments: Any) -> None:
    """Run *spider* to its end. Raises what the crawl raised.

    Interrupts are left to the caller.
    """
    if is_reactor_installed() and not is_asyncio_reactor_installed():
        # The settings of the project import twisted.internet.reactor: that is its choice.
        settings.set("TWISTED_REACTOR", None, "cmdline")
    if settings.getbool("TWISTED_REACTOR_ENABLED", True):
        process = CrawlerProcess(settings)
        failures: list[Failure] = []
        process.crawl(spider, **arguments).addErrback(failures.append)
        process.start(install_signal_handlers=False)
        for failure in failures:
            failure.raiseException()
    else:
        reactorless = AsyncCrawlerProcess(settings)
        task = reactorless.crawl(spider, **arguments)
        reactorless.start(install_signal_handlers=False)
        task.result()


def header(message: Request | Response, name: str) -> str | None:
    """The value of the header *name*, if it is there."""
    value = message.headers.get(name)
    return None if value is None else value.decode("latin-1")


class _WorkSpider(Spider):
    """Does its work when it starts, and requests no page."""

    name = "robots-command"
    work: Callable[[Crawler], Awaitable[Any]]
    outcome: Future[Any]

    async def start(self) -> AsyncIterator[Any]:
        """Do the work."""
        try:
            self.outcome.set_result(await self.work(self.crawler))
        except Exception as error:
            # Scrapy would log it and go on.
            self.outcome.set_exception(error)
        # Scrapy wants a generator.
        for request in list[Any]():
            yield request
