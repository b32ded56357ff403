"""Workers that share sites: each is a crawl in a process of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from scrapy_rep.cli.servers import Asked, LoopbackServers, Site
from tests.conditions import until
from tests.integration.crawling import Crawl, Job, ok, pages, site


def agent(worker: int) -> str:
    return f"Worker{worker}"


def turn(one: Site) -> str:
    """The key of the turns at *one*."""
    return f"scrapy-rep:turn:{{{one.host}}}"


def job(worker: int, urls: list[str], loop: str, store: str, **settings: Any) -> Job:
    ours = {"REP_STORE": store, "USER_AGENT": agent(worker), **settings}
    return Job(pages(*urls), loop, settings=ours, is_patient=True)


def agents(one: Site, since: int = 0) -> set[str]:
    """Who has asked for anything, but for the first requests."""
    return {asked.headers["user-agent"] for asked in one.asked[since:]}


def begin_together(servers: LoopbackServers, jobs: list[Job]) -> list[Job]:
    """*jobs* that all begin with their pages when the last of them is there."""

    async def once_all_have_come(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != "/robots.txt":
            await until(lambda: len(agents(first)) == len(jobs))
        await site(ok())(asked, writer)

    first = servers.serve(once_all_have_come)
    return [replace(one, warm_up=[f"{first.url}/{n}"]) for n, one in enumerate(jobs)]


def run(jobs: list[Job], *steps: tuple[float, Callable[[], Any]]) -> list[Crawl]:
    """What comes of *jobs*, all at once, and of each of *steps* so many seconds later."""
    timers = [threading.Timer(after, step) for after, step in steps]
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(one.run) for one in jobs]
        for timer in timers:
            timer.start()
        crawls = [one.result() for one in running]
    for timer in timers:
        timer.join()
    return crawls


def urls_of(sites: list[Site], worker: int, each: int) -> list[str]:
    return [f"{one.url}/{worker}/{page}" for page in range(each) for one in sites]


def all_fetched_once(sites: list[Site], jobs: list[Job], crawls: list[Crawl]) -> None:
    for one, crawl in zip(jobs, crawls, strict=True):
        assert {crawl.outcome(page["url"]) for page in one.pages} == {"fetched"}
    wanted = sorted(page["url"] for one in jobs for page in one.pages)
    found = [f"{one.url}{path}" for one in sites for path in one.targets()]
    assert sorted(url for url in found if not url.endswith("/robots.txt")) == wanted
