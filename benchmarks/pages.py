"""What page rules cost a crawl, and what they save it, in real crawls of a site on loopback.

The crawl runs in a process of its own, so that only its CPU time counts, not the site's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from benchmarks._child import in_child
from benchmarks._tables import (
    Table,
    alternating,
    arguments,
    compared,
    figure,
    machine,
    publish,
)
from benchmarks.crawl import OURS, PageSpider, run_crawl
from scrapy_rep import RepMiddleware
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, http_response

#: Pages of all crawls of a kind together.
_PAGES = 10_000
_ROUNDS = 10
_SIZE = 50_000
#: CPU per page with page rules, as a multiple of without.
_MOST = 1.05
_LIMIT = 300.0
# More than the buffers of a connection on loopback take.
_LARGE = 20_000_000
_LARGE_PAGES = 20

_TIMED = {
    "ROBOTSTXT_OBEY": True,
    "REP_STORE": "memory",
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "benchmarks.pages.TimedMiddleware": 100,
    },
}
_KINDS: dict[str, dict[str, Any]] = {
    "off": _TIMED,
    "annotate": _TIMED | {"REP_PAGE_RULES": "annotate"},
}
# What plugins of content management systems write into heads.
_ROBOTS = b'<meta name="robots" content="index, follow, max-image-preview:large">\n'
_HEAD = b"".join(
    b'<meta property="og:%d" content="Some text about the page">\n'
    b'<link rel="stylesheet" href="/style-%d.css">\n<script src="/script-%d.js"></script>\n'
    % (number, number, number)
    for number in range(15)
)
_PARAGRAPH = b'<p class="text">Some text with <a href="/page.html">a link</a> and more text.</p>\n'


# In the child process.


class TimedMiddleware(RepMiddleware):
    """Ours, with the CPU seconds that it spends on responses."""

    spent = 0.0

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        inner = getattr(self, "process_response", None)
        if inner is None:
            return

        def timed(request: Request, response: Response) -> Response:
            started = time.thread_time()
            try:
                result: Response = inner(request, response)
            finally:
                self.spent += time.thread_time() - started
            return result

        self.process_response = timed


class TimedSpider(PageSpider):
    """Asks for pages, and tells what the middleware has spent on them."""

    def closed(self, reason: str) -> None:
        """At the end."""
        super().closed(reason)
        # Its class comes from another import of this module.
        ours = self.crawler.get_downloader_middleware(RepMiddleware)
        self.came["spent"] = getattr(ours, "spent")  # noqa: B009


# In this process.


def page(tags: bytes, headers: list[tuple[str, str]]) -> bytes:
    """A page of :data:`_SIZE` bytes with *tags* in its head."""
    start = b"<!DOCTYPE html>\n<html><head><title>A page</title>\n%s%s</head>\n<body>\n" % (
        _HEAD,
        tags,
    )
    body = (start + _PARAGRAPH * (_SIZE // len(_PARAGRAPH)))[:_SIZE]
    return http_response(200, body, [("Content-Type", "text/html; charset=utf-8"), *headers])


def site() -> Answer:
    """A third of the pages has meta robots, a tenth a header, and the others nothing."""
    rules = http_response(200, b"User-agent: *\nDisallow: /no\n", [("Content-Type", "text/plain")])
    plain, tagged = page(b"", []), page(_ROBOTS, [])
    marked = page(b"", [("X-Robots-Tag", "noai, noarchive")])
    pages = [tagged, plain, plain, tagged, plain, plain, tagged, plain, plain, marked]

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = asked.target.rpartition("/")[2]
        writer.write(pages[int(number) % len(pages)] if number.isdigit() else rules)

    return answer


def cost_table(rounds: int) -> tuple[Table, float]:
    """CPU per page with and without page rules, and how many times the other one is."""
    each = _PAGES // rounds
    with LoopbackServers() as servers:
        url = servers.serve(site()).url

        def measure(name: str, number: int) -> tuple[float, float]:
            urls = [f"{url}/{each * number + place}" for place in range(each)]
            came = in_child(run_crawl, TimedSpider, _KINDS[name], {"urls": urls}, limit=_LIMIT)
            assert came["pages"] == each
            return came["seconds"] / each * 1e6, came["spent"] / each * 1e6

        measured = alternating(_KINDS, measure, rounds)
    figures = {name: [whole for whole, _ in values] for name, values in measured.items()}
    spent = {name: [part for _, part in values] for name, values in measured.items()}
    without = median(figures["off"])
    # The noise of whole crawls is more than what is measured, so the parts decide.
    ratio = median(whole / (whole - part) for whole, part in measured["annotate"])
    rows = tuple(
        (name, compared(median(values), without), figure(median(spent[name])))
        for name, values in figures.items()
    )
    note = (
        f"Medians of {rounds} crawls of {each:,} HTML pages of {_SIZE // 1000} KB each, in "
        f"alternating rounds. A third of the pages has meta robots, a tenth X-Robots-Tag. All the "
        f"CPU time of the process counts, and in the last column that of reading page rules. The "
        f"whole is {ratio:.3f} times what it would be without that part; at most {_MOST} is "
        f"accepted."
    )
    title = "CPU time of a crawl by REP_PAGE_RULES"
    return Table(title, ("REP_PAGE_RULES", "µs per page", "of it for rules"), rows, (note,)), ratio


def savings_table() -> Table:
    """Bytes of reserved pages that a site sends to crawls that do and do not obey."""
    return Table(
        f"Bytes that a site sends for {_LARGE_PAGES} pages of {_LARGE // 1_000_000} MB with "
        "X-Robots-Tag: noai",
        ("REP_PAGE_RULES", "MB sent"),
        tuple(_savings()),
        (
            "The crawl is for ai-train. What the server has handed to its socket counts, so what "
            "buffers hold is in it.",
            machine("Scrapy", "Twisted", "http-sf"),
        ),
    )


def _savings() -> Iterator[tuple[str, str]]:
    for mode in ("annotate", "obey"):
        sent: list[int] = []
        with LoopbackServers() as servers:
            url = servers.serve(_large_site(sent)).url
            urls = [f"{url}/{number}" for number in range(_LARGE_PAGES)]
            settings = OURS | {"REP_PAGE_RULES": mode, "REP_PURPOSES": ["ai-train"]}
            came = in_child(run_crawl, PageSpider, settings, {"urls": urls}, limit=_LIMIT)
            assert came["pages"] == (_LARGE_PAGES if mode == "annotate" else 0)
        yield mode, figure(sum(sent) / 1e6)


def _large_site(sent: list[int]) -> Answer:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {_LARGE}\r\nContent-Type: text/html\r\n"
        "X-Robots-Tag: noai\r\n\r\n"
    ).encode()
    chunk = b"x" * 100_000

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target.startswith("/."):
            writer.write(http_response(404, b"", []))
            return
        if asked.target == "/robots.txt":
            writer.write(http_response(200, b"", [("Content-Type", "text/plain")]))
            return
        writer.write(head)
        for _ in range(_LARGE // len(chunk)):
            writer.write(chunk)
            await writer.drain()
            sent.append(len(chunk))

    return answer


def main() -> None:
    """Write the tables; the exit status says whether the limit holds."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of crawls (%(default)s)")
    options = parser.parse_args()
    cost, ratio = cost_table(options.rounds)
    publish(options.rst, cost, savings_table())
    if ratio > _MOST:
        raise SystemExit(f"{ratio:.3f} is more than {_MOST}")


if __name__ == "__main__":
    main()
