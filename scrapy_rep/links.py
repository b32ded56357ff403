"""Links that robots.txt refuses, dropped before they become requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from scrapy.link import Link

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.rep.verdict import Reason
from scrapy_rep.stats import count

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

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
