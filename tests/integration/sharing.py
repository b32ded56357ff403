"""Crawls in processes that share a store."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scrapy_rep.cli.servers import Answer, Asked, Site, http_response
from tests.integration.crawling import PAGE, Crawl, Job, ok, pages
from tests.integration.in_process import robots_count

ETAG = ("ETag", '"1"')


def conditional(refused: str) -> Answer:
    """A site that refuses */refused*, and says so once if it is asked by the book."""
    rules = ok(f"User-agent: *\nDisallow: /{refused}\n".encode(), ETAG)

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != "/robots.txt":
            writer.write(PAGE)
        elif asked.headers.get("if-none-match") == ETAG[1]:
            writer.write(http_response(304))
        else:
            # Long enough for both crawls to ask, if they did.
            await asyncio.sleep(0.02)
            writer.write(rules)

    return answer


def crawl(sites: list[Site], setup: str, store: str, processes: int = 1) -> list[Crawl]:
    """So many crawls of all *sites* at once; in each, every verdict is right."""
    settings: dict[str, Any] = {"REP_STORE": store, "CONCURRENT_REQUESTS": 100}
    asked = pages(*(f"{one.url}/{path}" for one in sites for path in ("even", "odd")))
    with ThreadPoolExecutor(processes) as pool:
        job = Job(asked, setup, settings=settings, is_patient=True)
        jobs = [pool.submit(job.run) for _ in range(processes)]
        crawls = [job.result() for job in jobs]
    for result in crawls:
        assert result.our_log() == []
        for number, one in enumerate(sites):
            no, yes = ("even", "odd")[:: 1 if number % 2 == 0 else -1]
            assert result.outcome(f"{one.url}/{no}") == "refused"
            assert result.outcomes[f"{one.url}/{no}"]["reason"] == "rule"
            assert result.outcome(f"{one.url}/{yes}") == "fetched"
    return crawls


def total(crawls: list[Crawl], name: str) -> int:
    return sum(int(result.stats.get(f"robotstxt/{name}", "0")) for result in crawls)


def fetches(sites: list[Site]) -> list[int]:
    return [robots_count(one) for one in sites]
