"""For spiders: links filtered by robots.txt, and a spider that starts from its sitemaps."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.link import Link
from scrapy.spiders import SitemapSpider

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT
from scrapy_rep.rep.rules.verdict import Reason
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

# May be over by the time of the request.
_TEMPORARY = frozenset({Reason.UNREACHABLE, Reason.VISIT_TIME})


class RobotsLinkFilter:
    """Drops links that are refused, as far as that is known without waiting.

    Called with links, it returns those to keep: such as are allowed, those to
    origins whose robots.txt is not in memory, and those that are refused for the
    time being only. Without ``RepMiddleware`` it keeps all. For ``process_links``
    of a :class:`~scrapy.spiders.Rule`.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def __call__(self, links: Iterable[Link]) -> list[Link]:
        """The *links* to keep, in order."""
        middleware = self._crawler.get_downloader_middleware(RepMiddleware)
        if middleware is None:
            return list(links)
        return [link for link in links if not self._is_refused(middleware, link)]

    def _is_refused(self, middleware: RepMiddleware, link: Link) -> bool:
        verdict = middleware.known_verdict(link.url)
        if verdict is None or verdict.allowed or verdict.reason in _TEMPORARY:
            return False
        count(self._crawler, "robotstxt/dropped_link_count")
        return True


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
                    "%(robots)s names a sitemap that is not a URL: %(sitemap)s",
                    {"robots": printable(robots_url), "sitemap": printable(sitemap)},
                    extra={"spider": self},
                )
