"""Policies as a policy cache makes them, without one."""

from __future__ import annotations

from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import RFC9309, Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

NOON = 1_800_000_000.0


def with_rules(body: bytes, site: str = "https://example.com", *, cut: bool = False) -> Policy:
    """That of *site*, whose robots.txt is *body*."""
    origin = Origin.of(f"{site}/")
    stored = StoredResponse(FetchResult(origin.robots_url, 200, body, cut=cut), NOON, NOON)
    return Policy(
        origin=origin,
        access=Access.SUCCESSFUL,
        dialect=RFC9309,
        rules=RobotsTxt.parse(body),
        entry=CacheEntry(origin, stored),
        stored=stored,
        until=NOON + 60,
    )


def unreachable(site: str = "https://example.com") -> Policy:
    """That of *site*, which does not answer."""
    origin = Origin.of(f"{site}/")
    result = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER)
    return Policy(
        origin=origin,
        access=Access.UNREACHABLE,
        dialect=RFC9309,
        rules=None,
        entry=CacheEntry(origin, outage=Outage(result, NOON, NOON, 1)),
        stored=None,
        until=NOON + 60,
    )
