"""Connections for robots.txt fetches, where a download handler has a limit of its own.

The handlers for httpx and aiohttp open as many connections as CONCURRENT_REQUESTS
says. Fetches that hang would leave none for pages, so they get some of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_SCHEMES = ("http", "https")


def widen_pools(crawler: Crawler, fetches: int) -> int:
    """Make room for *fetches* more connections; before the first is open.

    Returns for how many there is room: *fetches*, or half of what a handler
    opens whose limit cannot be changed.
    """
    return min(_widen(handler, fetches) for handler in _handlers(crawler))


def _handlers(crawler: Crawler) -> list[Any]:
    downloader: Any = crawler.engine and crawler.engine.downloader
    # Scrapy tells nobody which handlers there are.
    get_handler = getattr(getattr(downloader, "handlers", None), "_get_handler", None)
    return [get_handler(scheme) if get_handler else None for scheme in _SCHEMES]


def _widen(handler: Any, fetches: int) -> int:
    pool = getattr(handler, "_pool_size_total", 0)
    if not pool or _widen_aiohttp(handler, fetches) or _widen_httpx(handler, fetches):
        return fetches
    return max(1, min(fetches, pool // 2))


def _widen_aiohttp(handler: Any, fetches: int) -> bool:
    connector: Any = getattr(getattr(handler, "_session", None), "connector", None)
    if not hasattr(connector, "_limit"):
        return False
    connector._limit += fetches  # noqa: SLF001
    return True


def _widen_httpx(handler: Any, fetches: int) -> bool:
    limits: Any = getattr(handler, "_limits", None)
    if not hasattr(limits, "max_connections") or not hasattr(handler, "_default_client"):
        return False
    handler._limits = type(limits)(  # noqa: SLF001
        max_connections=limits.max_connections + fetches,
        max_keepalive_connections=limits.max_keepalive_connections,
    )
    handler._default_client = handler._make_client()  # noqa: SLF001
    return True
