"""Sites that ask for a delay, and how far apart their requests are."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from scrapy_rep import RepMiddleware
from scrapy_rep.cli.servers import Site
from scrapy_rep.throttling.pacing import Pacing
from scrapy_rep.throttling.throttle import Throttle
from tests.integration.crawling import ok
from tests.integration.in_process import ScriptedSpider

TOLERANCE = 0.02


def asking(record: str, agent: str = "*") -> bytes:
    return ok(f"User-agent: {agent}\n{record}\nDisallow: /no\n".encode())


def gaps(*sites: Site) -> list[float]:
    """The seconds between the requests that *sites* got, all together."""
    times = sorted(asked.at for one in sites for asked in one.asked)
    return [later - earlier for earlier, later in pairwise(times)]


def throttle_of(spider: ScriptedSpider) -> Throttle:
    middleware = spider.crawler.get_downloader_middleware(RepMiddleware)
    pacing: Pacing = vars(middleware)["_pacing"]
    return pacing.throttle


def delay_at(spider: ScriptedSpider, one: Site) -> float:
    return throttle_of(spider).delay(one.host)


async def together(spider: ScriptedSpider, urls: list[str], **options: Any) -> list[Any]:
    return await asyncio.gather(*(spider.ask(url, **options) for url in urls))
