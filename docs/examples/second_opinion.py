"""A crawl of a site on this machine, with Protego's second opinion on each decision."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

from scrapy_rep.cli.demo.server import Asked, LoopbackServers, http_response

ROBOTS_TXT = b"""\
User-agent: *
Disallow: /private/

User-agent: ExampleBot
Disallow: /news/
"""
PAGES = ["/", "/news/1", "/news/2", "/private/"]


async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The robots.txt, and a page everywhere else."""
    body = ROBOTS_TXT if asked.target == "/robots.txt" else b"A page"
    writer.write(http_response(200, body, [("Content-Type", "text/plain")]))


class ExampleSpider(scrapy.Spider):
    """Asks for all pages."""

    name = "example"
    site: str

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """All requests."""
        for page in PAGES:
            yield scrapy.Request(self.site + page)

    def parse(self, response: scrapy.http.Response) -> None:
        """Nothing to be found."""


# Of all that a crawl logs, what is from this package.
shown = logging.StreamHandler(sys.stdout)
shown.setLevel(logging.INFO)
logging.getLogger("scrapy_rep").addHandler(shown)
with LoopbackServers() as servers:
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_rep.Addon": 500},
            "USER_AGENT": "ExampleBot-News/1.0 (+https://www.example.com/bot.html)",
            "REP_COMPARE_WITH": ["scrapy.robotstxt.ProtegoRobotParser"],
            "REP_COMPARE_FEED": "stdout:",
            "REP_STORE": "memory",
            "CONCURRENT_REQUESTS": 1,
            "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(ExampleSpider, site=servers.serve(answer).url)
    process.start()
