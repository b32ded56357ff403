"""One crawl of scrapys_own.py: a job as JSON on stdin, what came of it as JSON on stdout.

A process of its own, because a process has one reactor, and to see its memory.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

# What is more than this machine has would make it swap, or kill something else.
_ADDRESS_SPACE = 10 * 2**30


def memory(kind: str) -> int:
    """A figure of /proc/self/status in bytes: "VmRSS" is memory now, "VmHWM" its peak.

    Not getrusage(): its peak may be that of the process that started this one.
    """
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition(f"{kind}:")[2].split()[0]) * 1024


def outcome_of(failure: Failure) -> str:
    """What came of a request that was not answered: "refused", or that it failed."""
    error = failure.value
    refused = isinstance(error, IgnoreRequest) and "robots.txt" in str(error)
    return "refused" if refused else f"failed ({type(error).__name__})"


class _JobSpider(scrapy.Spider):
    """Asks for the pages of its job and notes what comes of each."""

    name = "job"
    job: dict[str, Any]
    came: dict[str, Any]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        self.came |= {"outcomes": {}, "memory": memory("VmRSS"), "started": time.monotonic()}
        for page in self.job["pages"]:
            await asyncio.sleep(page["after"])
            yield self.request(page)

    def request(self, page: dict[str, Any]) -> scrapy.Request:
        return scrapy.Request(
            page["url"],
            callback=self.fetched,
            errback=self.failed,
            meta=page["meta"],
            dont_filter=page["dont_filter"],
            cb_kwargs={"label": page["label"]},
        )

    def fetched(self, response: Response, label: str) -> None:
        self.came["outcomes"][label] = "fetched"

    def failed(self, failure: Failure) -> None:
        label = failure.request.cb_kwargs["label"]  # type: ignore[attr-defined]
        self.came["outcomes"][label] = outcome_of(failure)

    def closed(self, reason: str) -> None:
        self.came["memory"] = memory("VmHWM") - self.came["memory"]
        self.came["seconds"] = time.monotonic() - self.came.pop("started")


def main() -> None:
    """Run the job of stdin."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    job, came = json.load(sys.stdin), dict[str, Any]()
    process = AsyncCrawlerProcess(job["settings"])
    process.crawl(_JobSpider, job=job, came=came, **job["spider"])
    process.start()
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main()
