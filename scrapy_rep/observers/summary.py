"""The summary of access results and refused requests, logged at the end of a crawl.

Its memory is bounded, regardless of the number of origins.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.dialects import Access
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.verdict import Reason, Verdict

logger = logging.getLogger(__name__)

# How many origins are listed.
_TOP = 10
# The numbers are exact up to so many origins.
_MAX_ORIGINS = 10_000
_MAX_REFUSING = 2_000
# How many lines of one origin are counted separately: the first ones that refuse.
_MAX_LINES = 20


class Refusals:
    """How often one origin refused, and by which lines; counting starts at *count*."""

    __slots__ = ("_lines", "_texts", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        #: By line, or by reason if no line decided.
        self._lines: dict[int | Reason, int] = {}
        self._texts: dict[int | Reason, str] = {}

    def add(self, verdict: Verdict) -> None:
        """Count one refusal."""
        self.count += 1
        rule = verdict.rule
        key = rule.line if rule else verdict.reason
        if key in self._lines:
            self._lines[key] += 1
        elif len(self._lines) < _MAX_LINES:
            self._lines[key] = 1
            # Not the rule: its value may be long.
            self._texts[key] = f'"{rule}" (line {rule.line})' if rule else verdict.reason.value

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The most frequent rule (with its line) or reason, safe to print, and its count."""
        key, times = max(self._lines.items(), key=itemgetter(1))
        return self._texts[key], times


class Summary:
    """The summary of one crawl; a :class:`~scrapy_rep.observers.observer.Observer`.

    The origins with most refusals are found by the *space-saving* algorithm (Metwally et al.,
    2005), but half of the table is removed at once, so that an addition takes constant time. A
    new origin in a table that was once full starts with the count of the most frequent origin
    that was removed, because it may be the same one. So no origin with many refusals is missing,
    and a count may be too high by that number.
    """

    observes_allowed = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: The last access result of each origin, of the latest ones.
        self._latest: OrderedDict[Origin, Access] = OrderedDict()
        #: The access results of the other origins. These count again if they come again.
        self._earlier: Counter[Access] = Counter()
        self._reasons: Counter[Reason] = Counter()
        self._refusing: dict[Origin, Refusals] = {}
        self._excess = 0
        crawler.signals.connect(self._log, signals.spider_closed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Count the origin by its access result."""
        self._latest[policy.origin] = policy.access
        self._latest.move_to_end(policy.origin)
        if len(self._latest) > _MAX_ORIGINS:
            _, access = self._latest.popitem(last=False)
            self._earlier[access] += 1

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Count a refused request."""
        self._reasons[verdict.reason] += 1
        if verdict.origin is None:
            return
        refusals = self._refusing.get(verdict.origin)
        if refusals is None:
            if len(self._refusing) >= _MAX_REFUSING:
                self._make_room()
            refusals = self._refusing[verdict.origin] = Refusals(self._excess)
        refusals.add(verdict)

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
        outcomes = self._earlier + Counter(self._latest.values())
        about = "about " if self._earlier else ""
        yield f"origins: {about}{_counted(outcomes)}"
        yield f"requests refused: {_counted(self._reasons)}"
        ranked = self._ranked()[:_TOP]
        if ranked:
            exact = f" (counts are up to {self._excess:,} too high)" if self._excess else ""
            yield f"origins with most refusals{exact}:"
        for origin, refusals in ranked:
            text, times = refusals.most_frequent
            by = f": {text}" if times == refusals.count else f", {times:,} of them by {text}"
            yield f"{refusals.count:>8,}  {printable(str(origin))}{by}"


def _counted(counts: Mapping[Access, int] | Mapping[Reason, int]) -> str:
    """The sum of *counts* and its parts, the most frequent first."""
    total = f"{sum(counts.values()):,}"
    parts: list[tuple[Enum, int]] = sorted(counts.items(), key=lambda item: -item[1])
    of = ", ".join(f"{name.value} {number:,}" for name, number in parts)
    return f"{total} ({of})" if of else total
