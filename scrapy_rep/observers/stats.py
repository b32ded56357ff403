"""Functions to write Scrapy's stats."""

from __future__ import annotations

from scrapy.crawler import Crawler

#: Links that RobotsLinkFilter dropped.
DROPPED_LINKS = "robotstxt/dropped_link_count"
#: Requests that were dropped because a page says nofollow.
NOT_FOLLOWED = "robotstxt/page_rules/not_followed_count"


def count(crawler: Crawler, key: str, number: int = 1) -> None:
    """Add *number* to *key*, such as ``robotstxt/forbidden``, in the stats of *crawler*."""
    # Every crawler has stats before it has components.
    assert crawler.stats is not None
    if number:
        crawler.stats.inc_value(key, number)


def add_seconds(crawler: Crawler, key: str, seconds: float) -> None:
    """So many *seconds* more for *key*."""
    assert crawler.stats is not None
    crawler.stats.set_value(key, round(crawler.stats.get_value(key, 0.0) + seconds, 3))


def highest(crawler: Crawler, key: str, value: float) -> None:
    """Set *key* to *value* if that is higher than its current value."""
    assert crawler.stats is not None
    crawler.stats.max_value(key, value)


def observe_duration(crawler: Crawler, key: str, seconds: float) -> None:
    """Add a duration to the stats *key*/count, *key*/mean and *key*/max."""
    assert crawler.stats is not None
    number = crawler.stats.get_value(f"{key}/count", 0) + 1
    mean = crawler.stats.get_value(f"{key}/mean", 0.0)
    crawler.stats.set_value(f"{key}/count", number)
    crawler.stats.set_value(f"{key}/mean", mean + (seconds - mean) / number)
    crawler.stats.max_value(f"{key}/max", seconds)
