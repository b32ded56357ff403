"""What obeying robots.txt costs a crawl, measured in real crawls of a site on loopback.

The crawl runs in a process of its own, so that only its CPU time counts, not the
site's. One table is of a request for an origin that is known, in the middleware
alone; one is of whole crawls, in which robots.txt is fetched and read, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from random import Random
from statistics import median
from typing import Any

import scrapy
from protego import Protego
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from benchmarks._child import in_child
from benchmarks._peers import AGENT
from benchmarks._tables import (
    ROUNDS,
    Table,
    alternating,
    arguments,
    compared,
    figure,
    machine,
    medians,
    publish,
    settle,
    timed,
)
from benchmarks._workload import workload
from scrapy_rep import RepMiddleware
from scrapy_rep.cli.demo.server import Answer, Asked, LoopbackServers, http_response

_PAGES = 3_000
_RULES = 5_000
_FEW_RULES = 5
#: Of one measurement in the middleware.
REQUESTS = 2_000
#: Seconds for one crawl.
_LIMIT = 120.0

_PAGE = b"<!DOCTYPE html><title>A page</title><p>" + b"Some text. " * 100

OURS = {"ADDONS": {"scrapy_rep.Addon": 500}, "ROBOTSTXT_OBEY": True, "REP_STORE": "memory"}
_OFF = "ROBOTSTXT_OBEY = False"
_CRAWLS: dict[str, dict[str, Any]] = {
    _OFF: {"ROBOTSTXT_OBEY": False},
    "scrapy-rep": OURS,
    "Scrapy's own": {"ROBOTSTXT_OBEY": True},
}
_SETTINGS = {
    "USER_AGENT": "ExampleBot/1.0 (+https://www.example.com/bot.html)",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "HTTPPROXY_ENABLED": False,
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}


# In the child process.


class EmptyMiddleware:
    """What a downloader middleware costs that does nothing."""

    def process_request(self, request: scrapy.Request) -> None:
        """Let it through."""


class PageSpider(scrapy.Spider):
    """Asks for all of *urls*; *came* gets the number of pages and the CPU seconds."""

    name = "pages"
    urls: list[str]
    came: dict[str, float]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """All requests."""
        self.came |= {"pages": 0, "started": time.process_time()}
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response: Response) -> None:
        """Count it."""
        self.came["pages"] += 1

    def closed(self, reason: str) -> None:
        """At the end."""
        self.came["seconds"] = time.process_time() - self.came.pop("started")


class RequestSpider(scrapy.Spider):
    """Asks for one page, and with its robots.txt known measures the middleware.

    *came* gets the µs per request of ours, of an empty one and of the yardstick, by
    whether requests are allowed.
    """

    name = "requests"
    urls: list[str]
    site: str
    rules: int
    came: dict[bool, dict[str, float]]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The one request."""
        yield scrapy.Request(self.urls[0])

    def parse(self, response: Response) -> None:
        """Measure."""
        file = workload(self.rules, mixed=True)
        for allowed in (True, False):
            random = Random(self.rules)
            count = ROUNDS * REQUESTS
            urls = list(file.urls(random, count, refused=0.0 if allowed else 1.0, site=self.site))
            middlewares = {
                "ours": our_middleware(self),
                "empty": EmptyMiddleware().process_request,
                "yardstick": protegos_check(),
            }
            self.came[allowed] = micros(middlewares, urls, refused=0 if allowed else REQUESTS)


def our_middleware(spider: scrapy.Spider) -> Callable[[scrapy.Request], object]:
    """The ``process_request`` of ours in the crawl of *spider*."""
    ours = spider.crawler.get_downloader_middleware(RepMiddleware)
    assert ours is not None
    return ours.process_request


def protegos_check() -> Callable[[scrapy.Request], object]:
    """What asks Protego about a request, by a file of few rules: it tells how fast the
    machine is just now."""
    check = Protego.parse(workload(_FEW_RULES, mixed=True).body.decode()).can_fetch
    return lambda request: check(request.url, AGENT)


def micros(
    middlewares: Mapping[str, Callable[[scrapy.Request], object]], urls: list[str], refused: int
) -> dict[str, float]:
    """µs per request of each; the requests are new ones with every turn.

    There are :data:`REQUESTS` *urls* for each round. "ours" is to refuse *refused* of these.
    """
    settle()

    def measure(name: str, number: int) -> float:
        part = urls[number * REQUESTS : (number + 1) * REQUESTS]
        # A crawl's requests have a meta when they get to a middleware.
        requests = [scrapy.Request(url, meta={"depth": 1}) for url in part]
        came = timed(lambda: _refused(middlewares[name], requests))
        assert name != "ours" or came.result == refused
        return came.seconds / len(requests) * 1e6

    return medians(alternating(middlewares, measure))


def _refused(
    process_request: Callable[[scrapy.Request], object], requests: Iterable[scrapy.Request]
) -> int:
    """How many of *requests* are refused."""
    count = 0
    for request in requests:
        try:
            process_request(request)
        except IgnoreRequest:
            count += 1
    return count


def run_crawl(
    spider: type[scrapy.Spider], settings: dict[str, Any], job: dict[str, Any]
) -> dict[Any, Any]:
    """Crawl, and return what the spider has noted."""
    came = dict[Any, Any]()
    process = AsyncCrawlerProcess({**_SETTINGS, **settings})
    process.crawl(spider, came=came, **job)
    process.start()
    return came


# In this process.


def answering(robots: bytes) -> Answer:
    """A site: *robots* and, everywhere else, a page."""
    rules = http_response(200, robots, [("Content-Type", "text/plain")])
    page = http_response(200, _PAGE, [("Content-Type", "text/html")])

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(rules if asked.target == "/robots.txt" else page)

    return answer


def requests_table() -> Table:
    """Measure the middleware."""
    rows = []
    for rules in (_FEW_RULES, _RULES):
        came = _requests(rules)
        for allowed, micros in came.items():
            name = f"{rules:,} rules, {'allowed' if allowed else 'refused'}"
            rows.append((name, *_cells(micros)))
    head = ("request", "empty middleware", "scrapy-rep", "yardstick", "beyond empty")
    title = "process_request for a known origin: µs of CPU time"
    note = (
        f"Medians of {ROUNDS} alternating rounds of {REQUESTS:,} new requests each. A quarter of "
        f"the rules have * or $. Refusing includes the exception, its verdict and the log record. "
        f"The yardstick is a check by Protego of the file with {_FEW_RULES} rules, at the same "
        f"time: how fast a machine is may change from one minute to the next. In brackets, how "
        f"many times that."
    )
    return Table(title, head, tuple(rows), (note,))


def _cells(micros: Mapping[str, float]) -> tuple[str, ...]:
    empty, ours, yardstick = micros["empty"], micros["ours"], micros["yardstick"]
    return figure(empty), figure(ours), figure(yardstick), compared(ours - empty, yardstick)


def _requests(rules: int) -> dict[bool, dict[str, float]]:
    with LoopbackServers() as servers:
        file = workload(rules, mixed=True)
        site = servers.serve(answering(file.body)).url
        urls = list(file.urls(Random(0), 1, refused=0, site=site))
        job = {"urls": urls, "site": site, "rules": rules}
        return in_child(run_crawl, RequestSpider, OURS, job, limit=_LIMIT)


def crawls_table(rounds: int) -> Table:
    """Measure crawls."""
    file = workload(_RULES, mixed=True)
    with LoopbackServers() as servers:
        site = servers.serve(answering(file.body)).url

        def measure(name: str, number: int) -> float:
            urls = list(file.urls(Random(number), _PAGES, refused=0, site=site))
            job = {"urls": urls}
            came = in_child(run_crawl, PageSpider, _CRAWLS[name], job, limit=_LIMIT)
            assert came["pages"] == _PAGES
            return float(came["seconds"]) / _PAGES * 1e6

        figures = alternating(_CRAWLS, measure, rounds)
    rows = tuple(_crawl_rows(figures))
    head = ("robots.txt is obeyed by", "µs per page: median", "least", "most")
    title = (
        f"CPU time of a crawl of {_PAGES:,} pages, and how many times that of one that obeys none"
    )
    note = (
        f"Of {rounds} crawls each, in alternating rounds. The robots.txt has {_RULES:,} rules, "
        f"a quarter with * or $; all pages are allowed; all the CPU time of the process counts "
        f"from the first request to the end of the crawl, with fetching and reading robots.txt."
    )
    return Table(title, head, rows, (note, machine("Scrapy", "Twisted")))


def _crawl_rows(figures: Mapping[str, list[float]]) -> Iterator[tuple[str, ...]]:
    for name, values in figures.items():
        cells = (compared(kind(values), kind(figures[_OFF])) for kind in (median, min, max))
        yield (name, *cells)


def main() -> None:
    """Write the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of crawls (%(default)s)")
    options = parser.parse_args()
    publish(options.rst, requests_table(), crawls_table(options.rounds))


if __name__ == "__main__":
    main()
