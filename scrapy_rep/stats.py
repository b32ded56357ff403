"""Scrapy's stats, as the rest of the package counts in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def count(crawler: Crawler, key: str) -> None:
    """One more of *key*, such as ``robotstxt/forbidden``, in the stats of *crawler*."""
    # Every crawler has stats before it has components.
    assert crawler.stats is not None
    crawler.stats.inc_value(key)
