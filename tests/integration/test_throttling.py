"""Which request goes to a throttled site next, in real crawls with a scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
import scrapy
from scrapy import Request
from scrapy.crawler import CrawlerRunner
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response

from scrapy_rep import Origin
from scrapy_rep.cli.servers import LoopbackServers, Site
from scrapy_rep.stores.sqlite import SqliteStore
from tests.conditions import until
from tests.integration.crawling import ok, site
from tests.integration.in_process import stat
from tests.integration.paces import asking

QUEUES: dict[str, dict[str, Any]] = {
    "FIFO": {
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    },
    "DownloaderAware": {
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    },
}


class UrgentSpider(scrapy.Spider):
    """Asks for many pages, and finds a more urgent one on the first; is done when that is there."""

    name = "urgent"
    start_url: str
    base: str
    count: int
    #: What the site has been asked for when the urgent page was found.
    targets: Callable[[], list[str]]
    before: list[str]

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.start_url, self.parse_start)

    def parse_start(self, response: Response) -> Iterator[Request]:
        yield Request(f"{self.base}/first", self.parse_first, priority=1)
        for number in range(self.count):
            yield Request(f"{self.base}/{number}", self.parse_page)

    async def parse_first(self, response: Response) -> AsyncIterator[Request]:
        # What finds no room returns to the scheduler, and counts again.
        await until(lambda: stat(self.crawler, "scheduler/enqueued") >= self.count + 2)
        self.before = self.targets()
        yield Request(f"{self.base}/urgent", self.parse_urgent, priority=1000)

    def parse_page(self, response: Response) -> None:
        pass

    def parse_urgent(self, response: Response) -> None:
        raise CloseSpider("seen")


async def crawl(spider: type[scrapy.Spider], settings: dict[str, Any], **options: Any) -> Any:
    runner = CrawlerRunner(
        {
            "ADDONS": {"scrapy_rep.Addon": 500},
            "ROBOTSTXT_OBEY": True,
            "REP_STORE": "memory",
            "TELNETCONSOLE_ENABLED": False,
            # So that a crawl that waits for good fails, and ends.
            "CLOSESPIDER_TIMEOUT": 300,
            **settings,
        }
    )
    crawler = runner.create_crawler(spider)
    await runner.crawl(crawler, **options)
    return crawler


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("others", [60, 300, pytest.param(3000, marks=pytest.mark.once)])
@pytest_twisted.ensureDeferred
async def test_an_urgent_request_is_among_the_next_ones(
    servers: LoopbackServers, others: int, queue: str
) -> None:
    one, start = servers.serve(site(asking("Crawl-delay: 0.5"))), servers.serve(site(ok()))
    options = {"start_url": f"{start.url}/", "base": one.url, "count": others}
    crawler = await crawl(UrgentSpider, QUEUES[queue], targets=one.targets, **options)
    assert one.targets().index("/urgent") - len(crawler.spider.before) <= 3
    # The others did wait.
    assert stat(crawler, "robotstxt/waiting_max") >= min(others, 200)


class AnswersPages:
    """Has all pages at hand, as a cache of a project's own might."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        return HtmlResponse(request.url, request=request)


class DropsPages:
    """Drops all pages."""

    def process_request(self, request: Request) -> None:
        if not request.url.endswith("/robots.txt"):
            raise IgnoreRequest("dropped")


class ReplacesPages:
    """Has each page asked for under another URL, which is answered."""

    def process_request(self, request: Request) -> Request | Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        if request.url.endswith("/other"):
            return HtmlResponse(request.url, request=request)
        return request.replace(url=f"{request.url}/other")


class PagesSpider(scrapy.Spider):
    """Asks for forty pages."""

    name = "pages"
    base: str
    over = 0

    async def start(self) -> AsyncIterator[Request]:
        for number in range(40):
            yield Request(f"{self.base}/{number}", self.parse_page, errback=self.parse_page)

    def parse_page(self, _: Any) -> None:
        self.over += 1


# Of ten hours, if each request counted as sent.
SLOW = {"REP_CRAWL_DELAY_MAX": 1000}


async def age(one: Site, path: Path) -> None:
    """Have the robots.txt in the store be one of an hour ago: the first page need not wait."""
    store = SqliteStore(path / "robots.sqlite")
    entry = await store.read(Origin.of(one.url))
    assert entry is not None
    assert entry.stored is not None
    before = entry.stored.confirmed_at - 3600
    await store.delete(entry.origin)
    stored = replace(entry.stored, fetched_at=before, confirmed_at=before)
    await store.write(replace(entry, stored=stored))
    await store.close()


async def forty(one: Site, path: Path, settings: dict[str, Any]) -> Any:
    store = {"REP_STORE": f"sqlite:///{path / 'robots.sqlite'}"}
    crawler = await crawl(PagesSpider, SLOW | store | settings, base=one.url)
    assert crawler.spider.over == 40
    return crawler


@pytest.mark.parametrize("middleware", [AnswersPages, DropsPages, ReplacesPages])
@pytest_twisted.ensureDeferred
async def test_requests_that_are_not_sent_take_no_delay(
    servers: LoopbackServers, tmp_path: Path, middleware: type
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 900")))
    own = {"DOWNLOADER_MIDDLEWARES": {middleware: 900}}
    await forty(one, tmp_path, own | {"REP_CRAWL_DELAY": False})
    await age(one, tmp_path)
    crawler = await forty(one, tmp_path, own)
    assert one.targets() == ["/robots.txt"]
    assert stat(crawler, "robotstxt/paced_count") == 1


@pytest_twisted.ensureDeferred
async def test_pages_from_scrapys_cache_take_no_delay(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 900")))
    own = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    await forty(one, tmp_path, own | {"REP_CRAWL_DELAY": False})
    assert len(one.asked) == 41
    await age(one, tmp_path)
    crawler = await forty(one, tmp_path, own)
    assert len(one.asked) == 41
    assert stat(crawler, "robotstxt/paced_count") == 1
