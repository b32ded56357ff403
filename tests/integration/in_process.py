"""Crawls in this process, whose spider does what a test says, at the time that it says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import scrapy
from scrapy import Request
from scrapy.crawler import Crawler, CrawlerRunner

from scrapy_rep import RepMiddleware, RobotsForbidden, Verdict
from scrapy_rep.cli.servers import Site

SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
NOON = 1_800_000_000.0
HOUR = 3600.0


class Clock:
    """What time it is, as the test says."""

    now = NOON

    def __call__(self) -> float:
        return self.now


class TimedMiddleware(RepMiddleware):
    """Ours, with the clock of the spider."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TimedMiddleware:
        assert isinstance(crawler.spider, ScriptedSpider)
        return cls(crawler, crawler.spider.clock)


class ScriptedSpider(scrapy.Spider):
    """Does what a test tells it to, inside a crawl."""

    name = "scripted"
    clock: Clock
    script: Callable[[ScriptedSpider], Awaitable[None]]

    async def start(self) -> AsyncIterator[Request]:
        await self.script(self)
        no_requests: list[Request] = []
        for request in no_requests:
            yield request

    async def ask(self, url: str, **options: Any) -> Verdict | int:
        """The status of *url*, or the verdict that refuses it."""
        engine = self.crawler.engine
        assert engine is not None
        try:
            response = await engine.download_async(Request(url, **options))
        except RobotsForbidden as forbidden:
            return forbidden.verdict
        return response.status


async def crawl(
    script: Callable[[ScriptedSpider], Awaitable[None]],
    settings: dict[str, Any] | None = None,
    **spider: Any,
) -> Crawler:
    """A crawl that runs *script*; what it raises, this raises."""
    raised: list[Exception] = []

    async def checked(spider: ScriptedSpider) -> None:
        try:
            await script(spider)
        except Exception as error:
            raised.append(error)

    runner = CrawlerRunner(
        {
            "ROBOTSTXT_OBEY": True,
            "REP_STORE": "memory",
            "DOWNLOADER_MIDDLEWARES": {SCRAPYS: None, TimedMiddleware: 100},
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            **(settings or {}),
        }
    )
    crawler = runner.create_crawler(ScriptedSpider)
    await runner.crawl(crawler, script=checked, clock=Clock(), **spider)
    if raised:
        raise raised[0]
    return crawler


def stat(crawler: Crawler, name: str) -> Any:
    assert crawler.stats is not None
    return crawler.stats.get_value(name)


def robots_count(site: Site) -> int:
    return site.targets().count("/robots.txt")


def beside(*middlewares: type) -> dict[str, Any]:
    """Settings of a project with these middlewares, near the downloader."""
    return {
        "DOWNLOADER_MIDDLEWARES": {SCRAPYS: None, TimedMiddleware: 100}
        | dict.fromkeys(middlewares, 895)
    }
