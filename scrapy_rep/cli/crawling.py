"""A crawl that asks for no page: what a command needs a crawler for, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed
from twisted.python.failure import Failure

_T = TypeVar("_T")

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


class CrawlFailed(Exception):
    """The crawl ended before there was an outcome; the message says why, if it is known."""


def crawl(
    settings: BaseSettings,
    work: Callable[[Crawler], Awaitable[_T]],
    changes: dict[str, Any],
    log_level: str = "ERROR",
) -> _T:
    """What *work* makes of a crawler with *settings*, a project's, and *changes* to them.

    Proxies, handlers, middlewares and User-Agent are those of the project. The log
    starts at *log_level*, unless the command line says otherwise. Once in the life of a
    process: a reactor runs only once. Raises what *work* raises, or :exc:`CrawlFailed`.
    """
    job = _Job(work)
    error = _run(_crawl_settings(settings, changes, log_level), job)
    if job.error is not None:
        raise job.error
    if not job.results:
        why = f"{type(error).__name__}: {error}" if error else "see its log"
        raise CrawlFailed(f"the crawl that was to fetch it failed: {why}")
    return job.results[0]


class _Job(Generic[_T]):
    """What is to be done, and what came of it."""

    def __init__(self, work: Callable[[Crawler], Awaitable[_T]]) -> None:
        self._work = work
        self.results: list[_T] = []
        self.error: Exception | None = None

    async def run(self, crawler: Crawler) -> None:
        """Do it. Raises nothing: Scrapy would log it, and go on."""
        try:
            self.results.append(await self._work(crawler))
        except Exception as error:
            self.error = error


def _run(settings: Settings, job: _Job[Any]) -> BaseException | None:
    """Run the spider with *job*, and return what the crawl raised.

    What an interrupt does is for whoever called to say.
    """
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        reactorless = AsyncCrawlerProcess(settings)
        task = reactorless.crawl(_WorkSpider, job=job)
        reactorless.start(install_signal_handlers=False)
        return task.exception() if task.done() and not task.cancelled() else None
    failures: list[Failure] = []
    process = CrawlerProcess(settings)
    process.crawl(_WorkSpider, job=job).addErrback(failures.append)
    process.start(install_signal_handlers=False)
    return failures[0].value if failures else None


def _crawl_settings(settings: BaseSettings, changes: dict[str, Any], log_level: str) -> Settings:
    changed = Settings()
    changed.update(settings.copy())
    changed.setdict(_SETTINGS | changes, "cmdline")
    if (settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["cmdline"]:
        changed.set("LOG_LEVEL", log_level, "cmdline")
    take_installed_reactor(changed)
    return changed


def take_installed_reactor(settings: Settings) -> None:
    """Let a crawl with *settings* run on the reactor that is installed already, if one is.

    A project whose settings import ``twisted.internet.reactor`` has chosen one.
    """
    if is_reactor_installed() and not is_asyncio_reactor_installed():
        settings.set("TWISTED_REACTOR", None, "cmdline")


class _WorkSpider(Spider):
    """Asks for no page: what it does is done when it starts."""

    name = "robots-command"

    def __init__(self, job: _Job[Any]) -> None:
        super().__init__()
        self._job = job

    async def start(self) -> AsyncIterator[Any]:
        """Do the job."""
        await self._job.run(self.crawler)
        no_requests: tuple[Request, ...] = ()
        for request in no_requests:
            yield request
