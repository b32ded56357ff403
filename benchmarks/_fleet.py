"""Fleets of the example in ``examples/fleet``: real workers, real Redis servers, real sites."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._waits import FILE
from scrapy_rep.cli.demo.server import Answer, Asked, LoopbackServers, http_response
from tests.stores.redis_server import RedisServer

ROOT = Path(__file__).parents[1]
_EXAMPLE = ROOT / "examples" / "fleet"
_ROBOTS = "/robots.txt"
_PRIVATE = "/private/page"
_RULES = b"User-agent: *\nDisallow: /private/\n%s" + b"".join(
    b"Disallow: /directory-%03d/\n" % number for number in range(24)
)
# Seconds within which a fleet has fetched all, or has failed.
_PATIENCE = 600.0


@dataclass
class Sites:
    """What the sites of a fleet have been asked: for what, and when."""

    urls: list[str] = field(default_factory=list)
    asked: list[tuple[float, str]] = field(default_factory=list)

    def fetches(self) -> Counter[str]:
        """How often each robots.txt was fetched, by origin."""
        return Counter(url[: -len(_ROBOTS)] for _, url in self.asked if url.endswith(_ROBOTS))

    def pages(self) -> Counter[str]:
        """How often each page was fetched."""
        return Counter(url for _, url in self.asked if not url.endswith(_ROBOTS))

    def gaps(self, origins: list[str]) -> list[float]:
        """The seconds between any two requests that follow each other at one of *origins*."""
        times = [
            [at for at, url in self.asked if url.startswith(f"{origin}/")] for origin in origins
        ]
        return [later - at for those in times for at, later in pairwise(those)]

    def stall(self, since: float = 0.0, until: float = float("inf")) -> float:
        """The longest time, in seconds, in which no site was asked for anything.

        Of those that began between *since* and *until*.
        """
        pauses = pairwise(at for at, _ in self.asked)
        return max((later - at for at, later in pauses if since <= at < until), default=0.0)

    def seconds(self) -> float:
        """From the first request to the last one."""
        return self.asked[-1][0] - self.asked[0][0]


@dataclass
class Fleet:
    """A fleet under way: its sites, Redis servers and workers."""

    sites: Sites
    queue: RedisServer
    settings: dict[str, Any]
    store: str
    wanted: set[str]
    #: The file with the seconds that origins have waited.
    waits: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> None:
        """One worker more."""
        options = [f"-s{name}={value}" for name, value in self.settings.items()]
        worker = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "fleet", *options],
            cwd=_EXAMPLE,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", FILE: self.waits}
            | {"REDIS_URL": self.queue.url, "REP_STORE": self.store},
            stderr=subprocess.DEVNULL,
        )
        self.workers.append(worker)

    def longest_wait(self) -> float:
        """The seconds for which a worker has waited for a robots.txt, at most."""
        return max(map(float, Path(self.waits).read_text("ascii").split()))

    def ask_for(self, urls: list[str]) -> None:
        """Put *urls* where workers look for what to begin with."""
        if urls:
            with self.queue.client() as client:
                client.rpush("fleet:start_urls", *(json.dumps({"url": url}) for url in urls))

    def missing(self) -> list[str]:
        """The pages that nobody has fetched."""
        return sorted(self.wanted - set(self.sites.pages()))

    def finish(self, each_second: Callable[[], object] = lambda: None) -> None:
        """Wait until all pages have been fetched and all workers have ended."""
        deadline = time.monotonic() + _PATIENCE
        while self.missing() or any(worker.poll() is None for worker in self.workers):
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(self.missing())} pages are missing")
            if self.missing() and all(worker.poll() is not None for worker in self.workers):
                # Requests that went with a worker that was killed.
                self.ask_for(self.missing())
                self.start_worker()
            each_second()
            time.sleep(1.0)


@contextmanager
def fleet(
    store: str,
    *,
    workers: int,
    origins: int,
    pages: int,
    pause: float = 0.0,
    slow: int = 0,
    delay: float = 0.0,
    **settings: Any,
) -> Iterator[Fleet]:
    """A fleet that has just been started, with its queue in a Redis of its own.

    *store* is ``REP_STORE``; the sites answer after *pause* seconds, and the first *slow*
    of them ask for a Crawl-delay of *delay* seconds.
    """
    sites = Sites()
    with (
        tempfile.TemporaryDirectory() as directory,
        RedisServer() as queue,
        LoopbackServers() as servers,
    ):
        for number in range(origins):
            url: list[str] = []
            rules = _RULES % (b"Crawl-delay: %g\n" % delay if number < slow else b"")
            site = servers.serve(_answer(url, sites, pages, pause, rules))
            url.append(site.url)
            sites.urls.append(site.url)
        wanted = {f"{url}/{page or ''}" for url in sites.urls for page in range(pages)}
        waits = str(Path(directory, "waits"))
        running = Fleet(sites, queue, settings, store, wanted, waits)
        running.ask_for([f"{url}/" for url in sites.urls])
        for _ in range(workers):
            running.start_worker()
        try:
            yield running
        finally:
            for worker in running.workers:
                worker.kill()
                worker.wait()


def _answer(url: list[str], sites: Sites, pages: int, pause: float, rules: bytes) -> Answer:
    links = [*(f"/{number}" for number in range(1, pages)), _PRIVATE]
    body = "".join(f'<a href="{link}">{link}</a>' for link in links).encode()
    page = http_response(200, body, [("Content-Type", "text/html")])
    robots = http_response(200, rules)

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        sites.asked.append((time.monotonic(), url[0] + asked.target))
        if pause:
            await asyncio.sleep(pause)
        writer.write(robots if asked.target == _ROBOTS else page)

    return answer


def seconds_of_children() -> float:
    """CPU time of all processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
