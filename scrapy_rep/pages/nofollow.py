"""The spider middleware that drops requests for links that are not to be followed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_base_url
from w3lib.url import safe_url_string

from scrapy_rep.observers.stats import NOT_FOLLOWED, count
from scrapy_rep.pages.html import links_not_to_follow
from scrapy_rep.pages.statements import FOLLOW, PAGE_RULES, PageRules
from scrapy_rep.settings import rels_not_followed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class NofollowMiddleware:
    """Drops the requests of a callback that are for links not to be followed.

    These are all requests from a page that is ``nofollow``, and those for URLs to which all
    links of the page have a ``rel`` of ``REP_NOFOLLOW``. :class:`scrapy_rep.Addon` enables it;
    it works where ``REP_PAGE_RULES`` is ``obey``. Requests with ``dont_obey_robotstxt`` pass.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._rels = rels_not_followed(crawler.settings)
        if not self._rels:
            raise NotConfigured
        self._crawler = crawler
        self._needles = [rel.encode() for rel in self._rels]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NofollowMiddleware:
        """Called by Scrapy."""
        return cls(crawler)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        """*result* without requests for links that are not to be followed."""
        return filter(self._filter(response), result)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """The same."""
        may_pass = self._filter(response)
        async for each in result:
            if may_pass(each):
                yield each

    def _filter(self, response: Response) -> Callable[[Any], bool]:
        """Whether a result of *response* is not a request for a link that is not to be followed."""
        rules = response.meta.get(PAGE_RULES) if response.request else None
        is_nofollow = isinstance(rules, PageRules) and not rules.allowed(FOLLOW)
        # The links are read when a first request is made.
        not_to_follow = cache(partial(self._not_to_follow, response))

        def may_pass(each: Any) -> bool:
            if not isinstance(each, Request) or each.meta.get("dont_obey_robotstxt"):
                return True
            # The page again is not a link: a retry, a form.
            if each.url == response.url:
                return True
            if not is_nofollow and _without_fragment(each.url) not in not_to_follow():
                return True
            count(self._crawler, NOT_FOLLOWED)
            logger.debug(
                "Not followed from %(page)s: %(request)s",
                {"page": response, "request": each},
                extra={"spider": self._crawler.spider},
            )
            return False

        return may_pass

    def _not_to_follow(self, response: Response) -> set[str]:
        """The URLs on the page that are not to be followed, as requests have them."""
        if not isinstance(response, HtmlResponse):
            return set()
        body = response.body.lower()
        if not any(needle in body for needle in self._needles):
            return set()
        base = get_base_url(response)

        def absolute(url: str) -> str:
            return _without_fragment(safe_url_string(urljoin(base, url.strip())))

        return links_not_to_follow(response.selector, self._rels, absolute)


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]
