"""A crawl in a process of its own: a job as JSON on stdin, what happened as JSON on stdout.

A process of its own, because a process has one reactor, and to see its memory.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep import RepMiddleware, RobotsForbidden, RobotsTxt
from scrapy_rep.stores import sqlite
from scrapy_rep.stores.base import pause

# Loop set-ups by name: settings that make them.
SETUPS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "reactorless": {"TWISTED_REACTOR_ENABLED": False},
}


def peak_memory() -> int:
    """The most memory this process has had so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss has in it what the parent had when it started us.
        lines = status.read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(peak) * 1024
    # Bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class JobSpider(scrapy.Spider):
    """Asks for the warm-up pages, then for all pages of the job at once."""

    name = "job"
    job: dict[str, Any]
    allowed_domains: list[str]

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> JobSpider:
        spider: JobSpider = super().from_crawler(crawler, *args, **kwargs)
        for name, value in spider.job.get("spider", {}).items():
            setattr(spider, name, value)
        spider.outcomes = {}
        spider.robots_bytes = 0
        spider.warm = len(spider.job.get("warm_up", []))
        spider.memory_before = 0
        spider.longest_step = 0.0
        crawler.signals.connect(spider.count_bytes, signals.bytes_received)
        crawler.signals.connect(spider.files_downloaded, signals.item_scraped)
        return spider

    outcomes: dict[str, dict[str, Any]]
    robots_bytes: int
    warm: int
    memory_before: int
    longest_step: float
    pages_started = 0.0
    cpu_at_start = 0.0
    # Stop when a stat has reached so much: by "close_spider" or "SIGINT".
    stop_at = 0
    stop_stat = "robotstxt/kept_count"
    stop_by = ""
    stopped_at = 0.0
    seconds_to_close = 0.0

    async def start(self) -> AsyncIterator[scrapy.Request | dict[str, Any]]:
        if self.stop_at:
            self.look_whether_to_stop()
        if self.ask_engine:
            # In a task of its own: Scrapy cancels this one when it is interrupted.
            self.asking = deferred_from_coro(self.ask())
            await pause(0.5)
        if self.files:
            yield {"file_urls": self.files}
        for url in self.consult:
            await self.ask_middleware(url)
        for url in self.job.get("warm_up", []):
            yield self.request({"url": url}, self.warmed_up)
        if not self.warm:
            for request in self.pages():
                yield request

    def warmed_up(self, response: Response) -> Iterator[scrapy.Request]:
        self.warm -= 1
        if not self.warm:
            self.tick(time.thread_time())
            self.memory_before = peak_memory()
            self.robots_bytes = 0
            yield from self.pages()

    def pages(self) -> Iterator[scrapy.Request]:
        self.pages_started = time.monotonic()
        self.cpu_at_start = time.process_time()
        for page in self.job["pages"]:
            yield self.request(page, self.fetched)

    def request(self, page: dict[str, Any], callback: Any) -> scrapy.Request:
        return scrapy.Request(
            page["url"],
            callback=callback,
            errback=self.failed,
            meta={"job_url": page["url"], "handle_httpstatus_all": True} | page.get("meta", {}),
            headers=page.get("headers"),
            dont_filter=page.get("dont_filter", True),
            priority=page.get("priority", 0),
        )

    def look_whether_to_stop(self) -> None:
        """Stop the crawl when the stat is what the job says."""
        assert self.crawler.stats is not None
        if self.crawler.stats.get_value(self.stop_stat, 0) < self.stop_at:
            call_later(0.05, self.look_whether_to_stop)
            return
        self.stopped_at = time.monotonic()
        if self.stop_by == "SIGINT":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            assert self.crawler.engine is not None
            self.closing = deferred_from_coro(
                self.crawler.engine.close_spider_async(reason="stopped")
            )

    closing: Any = None
    # Asked for by the spider itself, of the engine, before anything else.
    ask_engine = ""
    # For a media pipeline to download.
    files: tuple[str, ...] = ()
    asking: Any = None

    # What the middleware is asked about before any request.
    consult: Sequence[str] = ()

    async def ask_middleware(self, url: str) -> None:
        middleware = self.crawler.get_downloader_middleware(RepMiddleware)
        assert middleware is not None
        verdict = await middleware.verdict(url)
        assert await middleware.allowed(url) is verdict.allowed
        outcome = "allowed" if verdict.allowed else "refused"
        self.note(url, {"outcome": outcome, "reason": verdict.reason.value})

    async def ask(self) -> None:
        request = self.request({"url": self.ask_engine}, self.fetched)
        assert self.crawler.engine is not None
        try:
            response = await self.crawler.engine.download_async(request)
        except Exception:
            failure = Failure()  # type: ignore[no-untyped-call]
            failure.request = request  # type: ignore[attr-defined]
            self.failed(failure)
        else:
            self.note_response(response)

    def closed(self, reason: str) -> None:
        if self.stopped_at:
            self.seconds_to_close = time.monotonic() - self.stopped_at

    def tick(self, last: float) -> None:
        """Note how much processor time the loop has used since the *last* tick."""
        now = time.thread_time()
        self.longest_step = max(self.longest_step, now - last)
        call_later(0.002, self.tick, now)

    def count_bytes(self, data: bytes, request: scrapy.Request) -> None:
        if request.url.endswith("/robots.txt"):
            self.robots_bytes += len(data)

    def files_downloaded(self, item: dict[str, Any]) -> None:
        for file in item["files"]:
            self.note(file["url"], {"outcome": "fetched"})

    # Requests all links of a page, with the URLs of the links as job_url.
    follows_links = False

    def fetched(self, response: Response) -> Iterator[scrapy.Request] | None:
        self.note_response(response)
        if not self.follows_links:
            return None
        urls = (response.urljoin(url) for url in response.css("a::attr(href)").getall())
        return (self.request({"url": url}, self.fetched) for url in urls)

    def note_response(self, response: Response) -> None:
        outcome: dict[str, Any] = {"outcome": "fetched", "status": response.status}
        assert response.request is not None
        outcome["dont_filter"] = response.request.dont_filter
        outcome["priority"] = response.request.priority
        outcome["meta"] = sorted(key for key in response.meta if key.startswith("rep_"))
        outcome["size"] = len(response.body)
        if "rep_page_rules" in response.meta:
            rules = response.meta["rep_page_rules"]
            outcome["page_rules"] = {
                use: str(verdict) for use, verdict in rules.verdicts.items() if verdict.by
            }
        self.note(response.meta["job_url"], outcome)

    def failed(self, failure: Failure) -> None:
        error = failure.value
        outcome: dict[str, Any] = {"outcome": "failed", "text": repr(error)}
        if isinstance(error, RobotsForbidden):
            verdict = error.verdict
            outcome = {
                "outcome": "refused",
                "reason": verdict.reason.value,
                "line": verdict.line,
                "text": str(verdict),
            }
        self.note(failure.request.meta["job_url"], outcome)  # type: ignore[attr-defined]

    def note(self, url: str, outcome: dict[str, Any]) -> None:
        outcome["times"] = self.outcomes.get(url, {"times": 0})["times"] + 1
        outcome["seconds"] = time.monotonic() - self.pages_started
        outcome["cpu_seconds"] = time.process_time() - self.cpu_at_start
        self.outcomes[url] = outcome


def fail(*_: Any, **__: Any) -> None:
    """What our parser would do if it had a bug."""
    raise RuntimeError("our own parser fails")


class _Lines(logging.Handler):
    """Log records as lines, for the tests to read."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name} {record.getMessage()}")
        if record.exc_info:
            self.lines[-1] += f" {record.exc_info[1]!r}"


def main() -> None:
    """Run the job of stdin."""
    job = json.load(sys.stdin)
    if job["own_parser_fails"]:
        RobotsTxt.parse = fail  # type: ignore[method-assign, assignment]
    setup = SETUPS[job["setup"]]
    settings = {
        "LOG_LEVEL": "INFO",
        "TELNETCONSOLE_ENABLED": False,
        "ADDONS": {"scrapy_rep.Addon": 500},
        # Or one test would know what another has fetched.
        "REP_STORE": "memory",
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
        "RETRY_ENABLED": False,
        **setup,
        **job.get("settings", {}),
    }
    if job["is_patient"]:
        sqlite.BUSY_TIMEOUT = 30.0
    make = CrawlerProcess if "TWISTED_REACTOR" in setup else AsyncCrawlerProcess
    if limit := job["file_limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    process = make(settings)
    lines = _Lines()
    logging.getLogger().addHandler(lines)
    crawler = process.create_crawler(JobSpider)
    crawl = process.crawl(crawler, job=job)
    # Whoever starts crawls has to look how they end; Scrapy mentions what went
    # wrong only when that is garbage, which may be too late.
    if isinstance(crawl, Deferred):
        crawl.addErrback(lambda failure: lines.lines.append(str(failure.value)))
    process.start()
    if limit:
        # What measures coverage writes a larger one at the end.
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if not isinstance(crawl, Deferred) and crawl.exception():
        lines.lines.append(str(crawl.exception()))
    assert isinstance(crawler.spider, JobSpider), "\n".join(lines.lines)
    assert crawler.stats is not None
    result = {
        "outcomes": crawler.spider.outcomes,
        "stats": {key: str(value) for key, value in crawler.stats.get_stats().items()},
        "log": lines.lines,
        "memory_growth": peak_memory() - crawler.spider.memory_before,
        "robots_bytes": crawler.spider.robots_bytes,
        "longest_step": crawler.spider.longest_step,
        "seconds_to_close": crawler.spider.seconds_to_close,
    }
    json.dump(result, sys.stdout)
