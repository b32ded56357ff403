"""How much memory the policies of many origins take in one crawl.

20,000 origins on loopback addresses, one page each, with default settings and a
store in a file; compared with the same crawl that does not obey robots.txt.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks._child import in_child
from benchmarks._tables import Table, arguments, figure, machine, publish

_ORIGINS = 20_000
#: Limits on the growth, in MB, by the size of a file in octets.
_LIMITS = {640: 60, 5_000: 100}
#: Seconds for one crawl.
_LIMIT = 900.0
_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n"
    b"Connection: close\r\n\r\n<html>"
)


def _body(size: int) -> bytes:
    lines = b"".join(b"Disallow: /some/directory-%03d/\n" % n for n in range(size // 31 + 1))
    return (b"User-agent: *\n" + lines)[: size - 1].rpartition(b"\n")[0].ljust(
        size - 1, b"\n"
    ) + b"\n"


def _serve(told: Connection, size: int) -> None:
    """All addresses, one port."""
    body = _body(size)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    robots = head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            writer.write(robots if request.startswith(b"GET /robots.txt ") else _PAGE)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=1000)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


@contextmanager
def _server(size: int) -> Iterator[int]:
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=_serve, args=(theirs, size))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def _status(kind: str) -> int:
    """A figure of /proc/self/status, in octets."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition(f"{kind}:")[2].split()[0]) * 1024


def crawl(port: int, origins: int, settings: dict[str, Any]) -> dict[str, int]:
    """Crawl a page of each origin: growth of this process, peak growth, pages."""
    import scrapy
    from scrapy.crawler import AsyncCrawlerProcess

    came: dict[str, int] = {"pages": 0}

    class OneEach(scrapy.Spider):
        name = "one-each"

        async def start(self) -> AsyncIterator[scrapy.Request]:
            for number in range(origins):
                if number == 200:
                    # What a process needs once.
                    came["before"] = _status("VmRSS")
                url = f"http://127.{number // 62500 + 1}.{number // 250 % 250}.{number % 250 + 1}"
                yield scrapy.Request(f"{url}:{port}/page")

        def parse(self, response: Any) -> None:
            came["pages"] += 1

        def closed(self, reason: str) -> None:
            came["after"], came["peak"] = _status("VmRSS"), _status("VmHWM")

    process = AsyncCrawlerProcess(
        {
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
            "CONCURRENT_REQUESTS": 32,
            **settings,
        }
    )
    process.crawl(OneEach)
    process.start()
    return came


def measured(size: int, obey: bool, origins: int) -> dict[str, int]:
    """What one crawl comes to, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory, _server(size) as port:
        settings: dict[str, Any] = {"ROBOTSTXT_OBEY": obey}
        if obey:
            settings |= {
                "ADDONS": {"scrapy_rep.Addon": 500},
                "REP_STORE": f"sqlite:///{directory}/robots.sqlite",
            }
        came = in_child(crawl, port, origins, settings, limit=_LIMIT)
    assert came["pages"] == origins, came
    return came


def main() -> None:
    """Write the table."""
    parser = arguments(__doc__)
    parser.add_argument("--origins", type=int, default=_ORIGINS)
    options = parser.parse_args()
    rows, failed = [], False
    bare = measured(640, False, options.origins)
    for size, limit in _LIMITS.items():
        ours = measured(size, True, options.origins)
        growth, peak = (
            (ours[kind] - ours["before"] - bare[kind] + bare["before"]) / 1e6
            for kind in ("after", "peak")
        )
        failed |= growth > limit
        total = (ours["after"] - ours["before"]) / 1e6
        rows.append((f"{size:,}", *map(figure, (total, growth, peak)), str(limit)))
    head = ("octets of a file", "growth, MB", "more than without", "the same, peak", "limit")
    title = f"Memory of a crawl of {options.origins:,} origins"
    publish(options.rst, Table(title, head, tuple(rows), (machine("scrapy"),)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
