"""For spiders: links filtered by robots.txt, and a spider that starts from its sitemaps."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.link import Link
from scrapy.spiders import SitemapSpider

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.observers.stats import DROPPED_LINKS, NOT_FOLLOWED, count
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT
from scrapy_rep.rep.rules.verdict import Reason
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import rels_not_followed

logger = logging.getLogger(__name__)

# These reasons may no longer apply when the link is requested.
_TEMPORARY = frozenset({Reason.UNREACHABLE, Reason.VISIT_TIME})


class RobotsLinkFilter:
    """Drops links that robots.txt refuses, if the robots.txt is in memory.

    Call it with links, for example in ``process_links`` of a :class:`~scrapy.spiders.Rule`. It
    returns links that are allowed, links that are refused only temporarily, and links to origins
    whose robots.txt is not in memory. Without ``RepMiddleware``, it returns all links. If
    ``REP_PAGE_RULES`` is ``obey``, it drops links that are ``nofollow``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._drops_nofollow = "nofollow" in rels_not_followed(crawler.settings)

    def __call__(self, links: Iterable[Link]) -> list[Link]:
        """The *links* to keep, in order."""
        middleware = self._crawler.get_downloader_middleware(RepMiddleware)
        if middleware is None:
            return list(links)
        return [link for link in links if not self._is_refused(middleware, link)]

    def _is_refused(self, middleware: RepMiddleware, link: Link) -> bool:
        if link.nofollow and self._drops_nofollow:
            count(self._crawler, NOT_FOLLOWED)
            return True
        verdict = middleware.known_verdict(link.url)
        if verdict is None or verdict.allowed or verdict.reason in _TEMPORARY:
            return False
        count(self._crawler, DROPPED_LINKS)
        return True


class RepSitemapSpider(SitemapSpider):
    """A :class:`~scrapy.spiders.SitemapSpider` that does not download a robots.txt twice.

    For each robots.txt in its ``sitemap_urls``, it uses the file that
    :class:`~scrapy_rep.RepMiddleware` has fetched. Everything else is as in Scrapy.
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
                says = "Cannot reach %s (%s). Its sitemaps are not used."
                logger.warning(says, printable(url), policy.detail, extra={"spider": self})
            for sitemap in policy.sitemaps:
                if absolute := _absolute(url, sitemap):
                    yield Request(absolute, self._parse_sitemap)
                    continue
                says = "A sitemap of %s is ignored because it is not an HTTP URL: %s"
                shown = (printable(url), printable(sitemap))
                logger.warning(says, *shown, extra={"spider": self})


def _absolute(robots_url: str, sitemap: str) -> str | None:
    """The URL of the untrusted *sitemap*, if it is an HTTP URL."""
    try:
        url = urljoin(robots_url, sitemap)
        return url if urlsplit(url).scheme in ("http", "https") else None
    except ValueError:
        return None
