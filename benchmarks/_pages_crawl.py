"""One crawl of broad_crawl.py: a job as JSON on stdin, what came of it on stdout.

A process of its own, because a process has one loop and can be killed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from benchmarks._crawl import memory, outcome_of
from scrapy_rep.stores.base import pause

# Between two looks at how many requests are under way, in seconds.
_LOOK = 0.01
# Between two looks at how much memory there is, in seconds.
_SAMPLE = 0.5
# Between two SIGINT of an impatient user, in seconds.
_IMPATIENCE = 0.5


class JobSpider(scrapy.Spider):
    """Asks for the pages of its *job*, and notes what comes of each in *came*.

    Of a job: *window*, how many requests may be under way, 0 for any number; and
    *deadline*, the seconds after which the process ends as it is.
    """

    job: dict[str, Any]
    came: dict[str, Any]
    started: float
    #: When it was told to stop.
    stopped = math.nan
    settled = 0
    #: Whether a request that has been made before is dropped.
    once = True

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """All requests, in their order."""
        self.started = time.monotonic()
        self.came["memory"] = []
        self.sample()
        call_later(self.job["deadline"], self.give_up)
        for number, url in enumerate(self.urls()):
            yield scrapy.Request(
                url,
                callback=self.fetched,
                errback=self.failed,
                cb_kwargs={"number": number},
                dont_filter=not self.once,
            )
            while self.job["window"] and number - self.settled >= self.job["window"]:
                await pause(_LOOK)

    def urls(self) -> Iterator[str]:
        """What to ask for."""
        raise NotImplementedError

    def note(self, number: int, outcome: str) -> None:
        """What came of a request."""
        raise NotImplementedError

    def fetched(self, response: Response, number: int) -> None:
        """A page is there."""
        self.settle(number, "fetched")

    def failed(self, failure: Failure) -> None:
        """It is not, and will not be."""
        number = failure.request.cb_kwargs["number"]  # type: ignore[attr-defined]
        self.settle(number, outcome_of(failure))

    def settle(self, number: int, outcome: str) -> None:
        """A request is over."""
        self.settled += 1
        self.note(number, outcome)

    def sample(self) -> None:
        """Note how much memory there is, now and from time to time."""
        self.came["memory"].append(memory("VmRSS"))
        call_later(_SAMPLE, self.sample)

    def give_up(self) -> None:
        """At the deadline, tell what there is; stopping could take as long again."""
        self.came["seconds"] = time.monotonic() - self.started
        assert self.crawler.stats is not None
        self.came["stats"] = numbers(self.crawler.stats.get_stats())
        tell(self.came)
        os._exit(0)


class PagesSpider(JobSpider):
    """Asks for each of the *urls* of its job.

    Also of that: *enough*, the numbers of those after which the crawl may stop,
    none for all; and a *stop*, *stop_after* so many seconds.
    """

    name = "pages"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """All requests, in their order."""
        self.came["events"] = []
        self.missing = set(self.job["enough"])
        if self.job["stop"]:
            call_later(self.job["stop_after"], self.stop)
        async for request in super().start():
            yield request

    def urls(self) -> Iterator[str]:
        """What to ask for."""
        return iter(self.job["urls"])

    def note(self, number: int, outcome: str) -> None:
        """What came of a request, and when, by the clock and by the processor."""
        times = time.monotonic() - self.started, time.process_time()
        self.came["events"].append((number, outcome, *times))
        if self.missing:
            self.missing.discard(number)
            if not self.missing:
                self.close_spider()

    def close_spider(self) -> None:
        """The graceful stop that a spider or an extension may ask for."""
        assert self.crawler.engine is not None
        deferred_from_coro(self.crawler.engine.close_spider_async(reason="stopped"))

    def stop(self) -> None:
        """Stop as the job says."""
        self.stopped = time.monotonic()
        if self.job["stop"] == "close_spider":
            self.close_spider()
        elif self.job["stop"] == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            os.kill(os.getpid(), signal.SIGINT)
            if self.job["stop"] == "two SIGINT":
                call_later(_IMPATIENCE, os.kill, os.getpid(), signal.SIGINT)


class Errors(logging.Handler):
    """Log records that tell of an error, as lines."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep *record* if it is an error, or has an exception."""
        if record.levelno >= logging.ERROR or record.exc_info:
            line = f"{record.levelname} {record.name}: {record.getMessage()}"
            if record.exc_info:
                line += f" {record.exc_info[1]!r}"
            self.lines.append(line)


def numbers(stats: dict[str, Any]) -> dict[str, float]:
    """Those stats that are numbers."""
    return {key: value for key, value in stats.items() if isinstance(value, int | float)}


def tell(came: dict[str, Any]) -> None:
    """Write what came of the crawl."""
    json.dump(came, sys.stdout)
    sys.stdout.flush()


def run_job(spider: type[JobSpider]) -> None:
    """Run the job of stdin."""
    # Sockets, of which a crawl that lets requests wait may have many.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    job, errors = json.load(sys.stdin), Errors()
    came: dict[str, Any] = {"finished": False, "errors": errors.lines}
    # What it costs to log each page is not the question.
    logging.disable(logging.DEBUG)
    logging.getLogger().addHandler(errors)
    process = AsyncCrawlerProcess(job["settings"])
    crawler = process.create_crawler(spider)
    process.crawl(crawler, job=job, came=came)
    process.start()
    ended = time.monotonic()
    assert isinstance(crawler.spider, spider), errors.lines
    assert crawler.stats is not None
    came |= {
        "finished": True,
        "seconds": ended - crawler.spider.started,
        "seconds_to_close": ended - crawler.spider.stopped,
        "stats": numbers(crawler.stats.get_stats()),
    }
    tell(came)


if __name__ == "__main__":
    run_job(PagesSpider)
