"""The summary of access results and refused requests, logged at the end of a crawl.

Its memory is bounded, regardless of the number of origins.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.stats import DROPPED_LINKS, NOT_FOLLOWED
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

logger = logging.getLogger(__name__)

# How many origins are listed.
_TOP = 10
# The numbers are exact up to so many origins.
_MAX_ORIGINS = 10_000
_MAX_REFUSING = 2_000
# How many lines of one origin are counted separately: the first ones that refuse.
_MAX_LINES = 20
# Causes of failed fetches that are told apart.
_MAX_CAUSES = 20
# A fetch of so many seconds is slow; so many of them are named.
_SLOW = 1.0
_MAX_SLOWEST = 3


class Summary(Observer):
    """The summary of one crawl.

    The origins with most refusals are found by the *space-saving* algorithm (Metwally et al.,
    2005), but half of the table is removed at once, so that an addition takes constant time. A
    new origin in a table that was once full starts with the count of the most frequent origin
    that was removed, because it may be the same one. So no origin with many refusals is missing,
    and a count may be too high by that number.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: The last access result of each origin, of the latest ones.
        self._latest: dict[Origin, Access] = {}
        #: The access results of the other origins. These count again if they come again.
        self._earlier: Counter[Access] = Counter()
        self._reasons: Counter[Reason] = Counter()
        #: Failed fetches, by their cause.
        self._failures: Counter[str] = Counter()
        #: The slowest fetches: seconds, and the URL.
        self._slowest: list[tuple[float, str]] = []
        #: How often origins refused, and by which lines or for which reasons.
        self._refused: Counter[Origin] = Counter()
        self._causes: dict[Origin, Counter[str]] = {}
        self._excess = 0
        crawler.signals.connect(self._log, signals.spider_closed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Count the origin by its access result, and its fetch if it failed or was slow."""
        self._latest.pop(policy.origin, None)
        self._latest[policy.origin] = policy.access
        if len(self._latest) > _MAX_ORIGINS:
            self._earlier[self._latest.pop(next(iter(self._latest)))] += 1
        if result is not None and policy.entry.outage is not None:
            cause = printable(policy.entry.outage.result.detail)
            full = len(self._failures) >= _MAX_CAUSES and cause not in self._failures
            self._failures["other causes" if full else cause] += 1
        if result is not None and seconds >= _SLOW:
            slowest = [*self._slowest, (seconds, printable(policy.origin.robots_url))]
            self._slowest = sorted(slowest, reverse=True)[:_MAX_SLOWEST]

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Count a refused request."""
        self._reasons[verdict.reason] += 1
        origin, rule = verdict.origin, verdict.rule
        if origin is None:
            return
        if origin not in self._refused:
            if len(self._refused) >= _MAX_REFUSING:
                self._make_room()
            self._refused[origin] = self._excess
            self._causes[origin] = Counter()
        self._refused[origin] += 1
        cause = f'"{rule}" (line {rule.line})' if rule else verdict.reason.value
        if cause in self._causes[origin] or len(self._causes[origin]) < _MAX_LINES:
            self._causes[origin][cause] += 1

    def _make_room(self) -> None:
        ranked = self._refused.most_common()
        kept = len(ranked) // 2
        self._excess = ranked[kept][1]
        self._refused = Counter(dict(ranked[:kept]))
        self._causes = {origin: self._causes[origin] for origin in self._refused}

    def _log(self) -> None:
        if not self._latest and not self._reasons:
            return
        logger.info(
            "robots.txt summary:\n%(summary)s",
            {"summary": "\n".join(self._lines())},
            extra={"spider": self._crawler.spider},
        )

    def _lines(self) -> Iterator[str]:
        stats = self._crawler.stats
        assert stats is not None
        outcomes = self._earlier + Counter(self._latest.values())
        about = "about " if self._earlier else ""
        yield f"origins: {about}{_counted(outcomes)}"
        yield f"requests refused: {_counted(self._reasons)}"
        if dropped := stats.get_value(DROPPED_LINKS):
            yield f"links dropped by RobotsLinkFilter: {dropped:,}"
        if not_followed := stats.get_value(NOT_FOLLOWED):
            yield f"links not followed (nofollow): {not_followed:,}"
        exact = f" (counts are up to {self._excess:,} too high)" if self._excess else ""
        refused = map(self._refusals, self._refused.most_common(_TOP))
        yield from _section(f"origins with most refusals{exact}:", refused)
        yield from _section(
            "slowest sites, by the time that requests waited or were under way there:",
            map(_slow_site, stats.get_value("robotstxt/slowest_sites", [])),
        )
        failures = (f"{times:>8,}  {cause}" for cause, times in self._failures.most_common())
        yield from _section("failed fetches of robots.txt:", failures)
        slowest = (f"{seconds:>8.1f} s  {url}" for seconds, url in self._slowest)
        yield from _section("slowest fetches of robots.txt:", slowest)

    def _refusals(self, refused: tuple[Origin, int]) -> str:
        origin, count = refused
        [(cause, times)] = self._causes[origin].most_common(1)
        by = f": {cause}" if times == count else f", {times:,} of them by {cause}"
        return f"{count:>8,}  {printable(str(origin))}{by}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """*lines* under *title*, if there are any."""
    found = list(lines)
    return [title, *found] if found else []


def _slow_site(site: dict[str, Any]) -> str:
    why = f", {site['why']}" if site["why"] else ""
    return f"{site['seconds']:>8,.0f} s  {site['site']}: {site['requests']:,} requests{why}"


def _counted(counts: Counter[Access] | Counter[Reason]) -> str:
    """The sum of *counts* and its parts, the most frequent first."""
    total = f"{sum(counts.values()):,}"
    of = ", ".join(f"{name.value} {number:,}" for name, number in counts.most_common())
    return f"{total} ({of})" if of else total
