"""The summary of access results and refused requests, logged at the end of a crawl.

Its memory is bounded, regardless of the number of origins.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from operator import itemgetter
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


class Refusals:
    """How often one origin refused, and by which lines; counting starts at *count*."""

    __slots__ = ("_lines", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        #: By line, or by reason if no line decided: a text that is safe to print, and a count.
        self._lines: dict[int | Reason, tuple[str, int]] = {}

    def add(self, verdict: Verdict) -> None:
        """Count one refusal."""
        self.count += 1
        rule = verdict.rule
        key = rule.line if rule else verdict.reason
        if key in self._lines:
            text, times = self._lines[key]
            self._lines[key] = text, times + 1
        elif len(self._lines) < _MAX_LINES:
            # Not the rule: its value may be long.
            text = f'"{rule}" (line {rule.line})' if rule else verdict.reason.value
            self._lines[key] = text, 1

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The most frequent rule (with its line) or reason, and its count."""
        return max(self._lines.values(), key=itemgetter(1))


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
        self._latest: OrderedDict[Origin, Access] = OrderedDict()
        #: The access results of the other origins. These count again if they come again.
        self._earlier: Counter[Access] = Counter()
        self._reasons: Counter[Reason] = Counter()
        #: Failed fetches, by their cause.
        self._failures: Counter[str] = Counter()
        #: The slowest fetches: seconds, and the URL.
        self._slowest: list[tuple[float, str]] = []
        self._refusing: dict[Origin, Refusals] = {}
        self._excess = 0
        crawler.signals.connect(self._log, signals.spider_closed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Count the origin by its access result."""
        self._latest[policy.origin] = policy.access
        self._latest.move_to_end(policy.origin)
        if len(self._latest) > _MAX_ORIGINS:
            self._earlier[self._latest.popitem(last=False)[1]] += 1
        if result is not None:
            self._add_fetch(policy, seconds)

    def _add_fetch(self, policy: Policy, seconds: float) -> None:
        if policy.entry.outage is not None:
            cause = printable(policy.entry.outage.result.detail)
            full = len(self._failures) >= _MAX_CAUSES and cause not in self._failures
            self._failures["other causes" if full else cause] += 1
        if seconds >= _SLOW:
            slowest = [*self._slowest, (seconds, printable(policy.origin.robots_url))]
            self._slowest = sorted(slowest, reverse=True)[:_MAX_SLOWEST]

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Count a refused request."""
        self._reasons[verdict.reason] += 1
        origin = verdict.origin
        if origin is None:
            return
        if origin not in self._refusing:
            if len(self._refusing) >= _MAX_REFUSING:
                self._make_room()
            self._refusing[origin] = Refusals(self._excess)
        self._refusing[origin].add(verdict)

    def _make_room(self) -> None:
        ranked = self._ranked()
        kept = len(ranked) // 2
        self._excess = ranked[kept][1].count
        self._refusing = dict(ranked[:kept])

    def _ranked(self) -> list[tuple[Origin, Refusals]]:
        """The origins with most refusals first."""
        return sorted(self._refusing.items(), key=lambda item: item[1].count, reverse=True)

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
        ranked = self._ranked()[:_TOP]
        if ranked:
            exact = f" (counts are up to {self._excess:,} too high)" if self._excess else ""
            yield f"origins with most refusals{exact}:"
        for origin, refusals in ranked:
            text, times = refusals.most_frequent
            by = f": {text}" if times == refusals.count else f", {times:,} of them by {text}"
            yield f"{refusals.count:>8,}  {printable(str(origin))}{by}"
        yield from _slowest_sites(stats.get_value("robotstxt/slowest_sites", []))
        if self._failures:
            yield "failed fetches of robots.txt:"
        for cause, times in self._failures.most_common():
            yield f"{times:>8,}  {cause}"
        if self._slowest:
            yield "slowest fetches of robots.txt:"
        for seconds, url in self._slowest:
            yield f"{seconds:>8.1f} s  {url}"


def _slowest_sites(sites: list[dict[str, Any]]) -> Iterator[str]:
    if sites:
        yield "slowest sites, by the time that requests waited or were under way there:"
    for site in sites:
        why = f", {site['why']}" if site["why"] else ""
        yield f"{site['seconds']:>8,.0f} s  {site['site']}: {site['requests']:,} requests{why}"


def _counted(counts: Counter[Access] | Counter[Reason]) -> str:
    """The sum of *counts* and its parts, the most frequent first."""
    total = f"{sum(counts.values()):,}"
    of = ", ".join(f"{name.value} {number:,}" for name, number in counts.most_common())
    return f"{total} ({of})" if of else total
