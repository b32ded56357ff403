"""Crawl-delay over several crawls of one machine. The gaps are those that servers see.

They count from the end of a download, so a busy machine can only make them longer.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from scrapy_rep.cli.servers import Asked, LoopbackServers, Site
from scrapy_rep.throttling.memory import PROCESS
from tests import forking
from tests.conditions import until, wait_until
from tests.integration import crawl_process
from tests.integration.crawling import PAGE, ROOT, Job, ok, pages, paths, site
from tests.integration.fleets import all_fetched_once, job, run, urls_of
from tests.integration.in_process import ScriptedSpider, crawl, robots_count
from tests.integration.paces import asking, together
from tests.integration.sharing import total

DELAY = 0.5


def page_gaps(one: Site) -> list[float]:
    """The seconds between two requests for pages, and before the first from a robots.txt."""
    times = [(asked.at, asked.target == "/robots.txt") for asked in one.asked]
    return [
        later - earlier for (earlier, _), (later, is_robots) in pairwise(times) if not is_robots
    ]


@pytest_twisted.ensureDeferred
async def test_two_spiders_of_a_process_share_the_delay(servers: LoopbackServers) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            # Who asks for it later knows of no delay, and may ask just before a page of the other.
            await until(lambda: robots_count(one) == 2)
        await site(asking(f"Crawl-delay: {DELAY}"))(asked, writer)

    one = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        assert await together(spider, paths(one, 12)) == [200] * 12

    await gatherResults([Deferred.fromCoroutine(crawl(script)) for _ in range(2)])
    # Each has a store of its own in memory, and so its own robots.txt.
    assert robots_count(one) == 2
    assert len(page_gaps(one)) == 24
    assert min(page_gaps(one)) >= DELAY - 0.005


@pytest.mark.parametrize(("pacing", "is_shared"), [(None, True), ("local", False)])
@pytest_twisted.ensureDeferred
async def test_a_crawl_by_itself_shares_nothing(
    servers: LoopbackServers, pacing: str | None, is_shared: bool
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))

    async def script(spider: ScriptedSpider) -> None:
        assert await together(spider, paths(one, 3)) == [200] * 3

    await crawl(script, {"REP_PACING": pacing})
    assert min(page_gaps(one)) >= 0.1 - 0.005
    assert (one.host in PROCESS) is is_shared


@pytest.mark.once
@pytest.mark.parametrize(("crawls", "each"), [(2, 12), (8, 3)])
def test_processes_that_share_a_store_share_the_delay(
    servers: LoopbackServers, tmp_path: Path, loop: str, crawls: int, each: int
) -> None:
    one, other = servers.serve(site(asking(f"Crawl-delay: {DELAY}"))), servers.serve(site(ok()))
    store = f"sqlite:///{tmp_path / 'robots.sqlite'}"
    jobs = [job(n, urls_of([one, other], n, each), loop, store) for n in range(crawls)]
    results = run(jobs)
    all_fetched_once([one, other], jobs, results)
    # They share the robots.txt too.
    assert robots_count(one) == 1
    assert len(page_gaps(one)) == 24
    assert min(page_gaps(one)) >= DELAY - 0.005
    assert total(results, "turn_count") == 24
    assert total(results, "turn_alone_count") == 0
    # Nobody asks all the time.
    assert total(results, "turn_asked_count") <= 24 * 2 * crawls


@pytest.mark.once
def test_a_crawl_that_is_killed_holds_up_nobody(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(asking(f"Crawl-delay: {DELAY}"))
        elif asked.target == "/hangs":
            await asyncio.sleep(1000)
        else:
            writer.write(PAGE)

    one, ready = servers.serve(answer), servers.serve(site(ok()))
    store = {"REP_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with TemporaryFile() as stdin, TemporaryFile() as output:
        stdin.write(json.dumps(vars(Job(pages(f"{one.url}/hangs"), loop, settings=store))).encode())
        stdin.seek(0)
        streams = [stdin.fileno(), output.fileno(), output.fileno()]
        killed = forking.start(crawl_process.main, cwd=ROOT, streams=streams)
    wait_until(lambda: "/hangs" in one.targets())
    assert killed.pid is not None
    warm_up = [f"{ready.url}/"]
    other = Job(pages(*paths(one, 4)), loop, settings=store, warm_up=warm_up, is_patient=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(other.run)
        wait_until(lambda: "/" in ready.targets())
        os.kill(killed.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        result = running.result()
    forking.end_of(killed, 60)
    assert {result.outcome(url) for url in paths(one, 4)} == {"fetched"}
    # Its turn would be over in 1000 s, and nobody would hear of it for 30.
    assert one.asked[2].at - killed_at < 25
    assert min(page_gaps(one)) >= DELAY - 0.005
