"""What page rules cost a crawl, and what they save it, in real crawls of a site on loopback.

The crawl runs in a process of its own, so that only its CPU time counts, not the site's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median
from typing import Any

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
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, http_response

#: Pages of all crawls of a kind together.
_PAGES = 10_000
_ROUNDS = 20
_SIZE = 50_000
#: CPU per page with page rules, as a multiple of without.
_MOST = 1.05
_LIMIT = 300.0
# More than the buffers of a connection on loopback take.
_LARGE = 20_000_000
_LARGE_PAGES = 20

_KINDS: dict[str, dict[str, Any]] = {
    "off": {},
    "annotate": {"REP_PAGE_RULES": "annotate"},
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

        def measure(name: str, number: int) -> float:
            urls = [f"{url}/{each * number + place}" for place in range(each)]
            settings = OURS | _KINDS[name]
            came = in_child(run_crawl, PageSpider, settings, {"urls": urls}, limit=_LIMIT)
            assert came["pages"] == each
            return float(came["seconds"]) / each * 1e6

        figures = alternating(_KINDS, measure, rounds)
    ratio = median(
        with_rules / without
        for without, with_rules in zip(figures["off"], figures["annotate"], strict=True)
    )
    without = median(figures["off"])
    rows = tuple((name, compared(median(values), without)) for name, values in figures.items())
    note = (
        f"Medians of {rounds} crawls of {each:,} HTML pages of {_SIZE // 1000} KB each, in "
        f"alternating rounds. A third of the pages has meta robots, a tenth X-Robots-Tag. All the "
        f"CPU time of the process counts. The median of the ratios of two crawls in a row is "
        f"{ratio:.3f}; at most {_MOST} is accepted."
    )
    title = "CPU time of a crawl by REP_PAGE_RULES"
    return Table(title, ("REP_PAGE_RULES", "µs per page"), rows, (note,)), ratio


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
