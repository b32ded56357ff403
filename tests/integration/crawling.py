"""Crawls in a process of their own, and answers for them to get."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_rep.cli.servers import Answer, Asked, Site, http_response
from scrapy_rep.cli.servers import hang as hang
from scrapy_rep.cli.servers import stream as stream
from tests import forking
from tests.integration import crawl_process

ROOT = Path(__file__).parents[2]

PAGE = http_response(200, b"<html>a page</html>", [("Content-Type", "text/html")])
#: Refuses what starts with "/no".
RULES = b"User-agent: *\nDisallow: /no\n"


@dataclass(frozen=True)
class Crawl:
    """What happened: outcomes by URL, stats, log lines from INFO up, and costs."""

    outcomes: dict[str, dict[str, Any]]
    stats: dict[str, str]
    log: list[str]
    memory_growth: int
    robots_bytes: int
    longest_step: float
    seconds_to_close: float

    def outcome(self, url: str) -> str:
        """``fetched``, ``refused`` or ``failed``; every page has one, once."""
        found = self.outcomes.get(url)
        assert found is not None, f"{url} was lost; log: {self.log}"
        assert found["times"] == 1
        return str(found["outcome"])

    def our_log(self) -> list[str]:
        """The log lines of this package, but for those that any crawl may have.

        They are the summary that it ends with, and what is said on a busy machine: that
        requests have waited for ten seconds.
        """
        ours = [line for line in self.log if line.split()[1].startswith("scrapy_rep")]
        of_any = {"scrapy_rep.observers.summary", "scrapy_rep.holding.hold_queue"}
        return [line for line in ours if line.split()[1] not in of_any]

    def summaries(self) -> list[str]:
        """The summaries in the log: what comes after level and logger."""
        start = "INFO scrapy_rep.observers.summary "
        return [line.removeprefix(start) for line in self.log if line.startswith(start)]


@dataclass(frozen=True)
class Job:
    """A crawl to be run."""

    pages: list[dict[str, Any]]
    setup: str
    settings: dict[str, Any] = field(default_factory=dict)
    spider: dict[str, Any] = field(default_factory=dict)
    warm_up: list[str] = field(default_factory=list)
    own_parser_fails: bool = False
    #: Bytes that no file may grow beyond, 0 for no limit.
    file_limit: int = 0
    #: Waits for who holds a lock on a busy machine, who is slow and does not hang.
    is_patient: bool = False

    def run(self) -> Crawl:
        """Run it in a process of its own."""
        process = self.start()
        assert process.returncode == 0, process.stderr[-5000:]
        return Crawl(**json.loads(process.stdout))

    def start(self) -> subprocess.CompletedProcess[str]:
        """The same, whatever comes of it."""
        return forking.run(crawl_process.main, cwd=ROOT, types=json.dumps(self.__dict__))


def pages(*urls: str, **meta: Any) -> list[dict[str, Any]]:
    """Pages of a job, all with the same *meta*."""
    return [{"url": url, "meta": meta} for url in urls]


def paths(one: Site, count: int) -> list[str]:
    """URLs of so many pages of *one*."""
    return [f"{one.url}/{number}" for number in range(count)]


def site(robots: Answer | bytes) -> Answer:
    """A site with *robots* as its robots.txt, a whole response or code, and pages elsewhere."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if not asked.target.endswith("/robots.txt"):
            writer.write(PAGE)
        elif isinstance(robots, bytes):
            writer.write(robots)
        else:
            await robots(asked, writer)

    return answer


def ok(body: bytes = RULES, *headers: tuple[str, str]) -> bytes:
    """A 200 with *body*."""
    return http_response(200, body, headers or [("Content-Type", "text/plain")])


def gzipped(body: bytes) -> bytes:
    """A 200 with *body*, gzip-encoded."""
    return ok(gzip.compress(body), ("Content-Encoding", "gzip"))


def redirect(location: str, status: int = 301) -> bytes:
    """A redirect to *location*."""
    return http_response(status, b"", [("Location", location)])


async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The connection breaks."""
    writer.transport.abort()


def drip(data: bytes, every: float) -> Answer:
    """Headers at once, then one byte at a time, for good."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(every)

    return answer
