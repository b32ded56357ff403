"""How much memory the policies of many origins take in one crawl.

20,000 origins on loopback addresses, one page each, with default settings and a
store in a file; compared with the same crawl that does not obey robots.txt.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from benchmarks._child import in_child
from benchmarks._crawl import memory
from benchmarks._hosts import PAGE, Hosts, Reply, address
from benchmarks._tables import Table, arguments, figure, machine, publish
from scrapy_rep.cli.servers import http_response

_ORIGINS = 20_000
#: Limits on the growth, in MB, by the size of a file in bytes.
_LIMITS = {640: 60, 5_000: 100}
#: Seconds for one crawl.
_LIMIT = 900.0


def _body(size: int) -> bytes:
    lines = b"".join(b"Disallow: /some/directory-%03d/\n" % n for n in range(size // 31 + 1))
    return (b"User-agent: *\n" + lines)[: size - 1].rpartition(b"\n")[0].ljust(
        size - 1, b"\n"
    ) + b"\n"


@dataclass(frozen=True, slots=True)
class Same:
    """All hosts answer alike."""

    robots: bytes

    def __call__(self, host: str, target: str) -> tuple[Reply, float]:
        """The answer to a request for *target*, at once."""
        return (self.robots if target == "/robots.txt" else PAGE), 0.0


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
                    came["before"] = memory("VmRSS")
                yield scrapy.Request(f"http://{address(number)}:{port}/page")

        def parse(self, response: Any) -> None:
            came["pages"] += 1

        def closed(self, reason: str) -> None:
            came["after"], came["peak"] = memory("VmRSS"), memory("VmHWM")

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
    robots = http_response(200, _body(size), [("Content-Type", "text/plain")])
    with tempfile.TemporaryDirectory() as directory, Hosts(Same(robots)) as hosts:
        settings: dict[str, Any] = {"ROBOTSTXT_OBEY": obey}
        if obey:
            settings |= {
                "ADDONS": {"scrapy_rep.Addon": 500},
                "REP_STORE": f"sqlite:///{directory}/robots.sqlite",
            }
        came = in_child(crawl, hosts.port, origins, settings, limit=_LIMIT)
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
    head = ("bytes of a file", "growth, MB", "more than without", "the same, peak", "limit")
    title = f"Memory of a crawl of {options.origins:,} origins"
    publish(options.rst, Table(title, head, tuple(rows), (machine("scrapy"),)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
