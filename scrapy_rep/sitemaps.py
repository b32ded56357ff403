"""A spider that starts from the sitemaps of robots.txt files, each fetched once."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.spiders import SitemapSpider

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import ROBOTS_TXT

logger = logging.getLogger(__name__)


class RepSitemapSpider(SitemapSpider):
    """A :class:`~scrapy.spiders.SitemapSpider` that downloads no robots.txt a second time.

    What its ``sitemap_urls`` have of robots.txt files is taken from what
    :class:`~scrapy_rep.RepMiddleware` knows, and so is fetched by its rules, once.
    All else is as in Scrapy.
    """

    async def start(self) -> AsyncIterator[Any]:
        """The requests for the first sitemaps."""
        middleware = self.crawler.get_downloader_middleware(RepMiddleware)
        for url in self.sitemap_urls:
            if middleware is None or urlsplit(url).path != ROBOTS_TXT:
                yield Request(url, self._parse_sitemap)
                continue
            policy = await middleware.policy(url)
            if policy.access is Access.UNREACHABLE:
                logger.warning(
                    "%(url)s is unreachable (%(detail)s), so its sitemaps are not known",
                    {"url": printable(url), "detail": policy.detail},
                    extra={"spider": self},
                )
            for sitemap in self._usable(policy.sitemaps, url):
                yield Request(sitemap, self._parse_sitemap)

    def _usable(self, sitemaps: tuple[str, ...], robots_url: str) -> Iterator[str]:
        """*sitemaps*, as a stranger wrote them, as URLs that can be asked for."""
        for sitemap in sitemaps:
            try:
                url = urljoin(robots_url, sitemap)
                usable = urlsplit(url).scheme in ("http", "https")
            except ValueError:
                usable = False
            if usable:
                yield url
            else:
                logger.warning(
                    "%(robots)s names a sitemap that is no URL: %(sitemap)s",
                    {"robots": printable(robots_url), "sitemap": printable(sitemap)},
                    extra={"spider": self},
                )
