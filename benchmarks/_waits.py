"""How long the origins of a worker wait for their robots.txt: a downloader middleware."""

from __future__ import annotations

import os
import time
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import CrawlStopping, Origin, RepMiddleware

#: The file that gets a line for each origin: the seconds.
FILE = "REP_BENCHMARK_WAITS"


class Waits:
    """Before :class:`~scrapy_rep.RepMiddleware`: asks as soon as a request does."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._seen: set[Origin] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Waits:
        """Made by Scrapy."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Take the time, if it is the first one for its origin."""
        if "dont_obey_robotstxt" in request.meta:
            return
        origin = Origin.of(request.url)
        if origin not in self._seen:
            self._seen.add(origin)
            deferred_from_coro(self._wait(request.url))

    async def _wait(self, url: str) -> None:
        begun = time.monotonic()
        robots = self._crawler.get_downloader_middleware(RepMiddleware)
        assert isinstance(robots, RepMiddleware)
        try:
            await robots.policy(url)
        except CrawlStopping:
            return
        # At once: the worker may be killed.
        with Path(os.environ[FILE]).open("a", encoding="ascii") as file:
            file.write(f"{time.monotonic() - begun}\n")
