"""A polite news crawler: the articles that sitemaps list as new.

    scrapy runspider examples/news.py -a sites=https://news.example -O articles.jsonl

It takes the sitemaps from each site's robots.txt, asks as ``ExampleBot-News`` or else as
``ExampleBot``, obeys the delay that a site asks for, and waits until a site is open.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from scrapy.http import Response

from scrapy_rep import RepSitemapSpider


class NewsSpider(RepSitemapSpider):
    """Fetches the articles of the last days."""

    name = "news"
    custom_settings = {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "USER_AGENT": "ExampleBot-News/1.0 (+https://www.example.com/bot.html)",
        # A site can write rules for the news crawler, or for all crawlers of this name.
        "REP_AGENT_TOKENS": ["ExampleBot-News", "ExampleBot"],
        # Requests outside the Visit-time of a site wait; those to a site that is down, too.
        "REP_VISIT_TIME": "wait",
        "REP_UNREACHABLE": "defer",
        "REP_MAX_WAIT": 6 * 3600,
        "DOWNLOAD_DELAY": 1,
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, sites: str = "", days: int = 2, **kwargs: Any) -> None:
        """*sites* are URLs with commas between them."""
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{site.rstrip('/')}/robots.txt" for site in sites.split(",")]
        self._oldest = datetime.now(timezone.utc) - timedelta(days=int(days))

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The *entries* that are new, or do not say how old they are."""
        for entry in entries:
            changed = entry.get("lastmod")
            if changed is None or datetime.fromisoformat(changed[:10] + "T00:00:00+00:00") >= (
                self._oldest
            ):
                yield entry

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """One item for each article."""
        yield {"url": response.url, "title": response.css("title::text").get()}
