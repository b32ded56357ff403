"""A broad crawl: a few pages of each of many hosts.

    scrapy runspider examples/broad_crawl.py -a hosts=hosts.txt -O pages.jsonl

``hosts.txt`` has one URL on each line. Hosts that never answer do not slow down the others.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response


class BroadCrawlSpider(Spider):
    """Fetches the first pages of each host, and follows links within it."""

    name = "broad_crawl"
    custom_settings = {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "USER_AGENT": "ExampleBot/1.0 (+https://www.example.com/bot.html)",
        # As Scrapy's documentation advises for broad crawls.
        "CONCURRENT_REQUESTS": 100,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "INFO",
        # How many robots.txt files are fetched at once: most of these are of slow hosts.
        "REP_MAX_FETCHES": 200,
        # A long delay would keep the crawl from ending.
        "REP_CRAWL_DELAY_MAX": 10,
    }

    def __init__(self, hosts: str = "hosts.txt", pages: int = 5, **kwargs: Any) -> None:
        """*hosts* is a file of URLs; of each host, *pages* pages are fetched."""
        super().__init__(**kwargs)
        self._hosts = Path(hosts)
        self._left = int(pages)
        self._requested: Counter[str] = Counter()

    async def start(self) -> AsyncIterator[Request]:
        """One request for each host."""
        with self._hosts.open(encoding="utf-8") as lines:
            for line in filter(None, map(str.strip, lines)):
                yield Request(line)

    def parse(self, response: Response) -> Iterator[dict[str, Any] | Request]:
        """One item for each page, and requests for its links."""
        yield {"url": response.url, "bytes": len(response.body)}
        if not isinstance(response, HtmlResponse):
            return
        host = urlsplit(response.url).netloc
        for request in response.follow_all(css="a"):
            if urlsplit(request.url).netloc == host and self._requested[host] < self._left - 1:
                self._requested[host] += 1
                yield request
