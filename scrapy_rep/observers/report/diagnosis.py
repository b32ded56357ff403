"""From a report to what people should look at first.

Pure functions. Each list is bounded, however many origins there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_rep.observers.report.model import CrawlReport, OriginReport, SlowSite
from scrapy_rep.observers.report.words import WHEN_UNREACHABLE, duration, moment
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.lint.findings import Severity
from scrapy_rep.rep.text import plural

#: So many of each are listed.
MAX_LISTED = 10
# A robots.txt that takes as many seconds is slow.
_SLOW_FETCH = 5.0
# The part of the crawl's time that a site may take before it is mentioned, and from how many
# seconds on.
_DOMINATES = 0.5
_LEAST_SECONDS = 5.0
# Of how many bars the time line is made.
_BARS = 48

_UNREACHABLE = Access.UNREACHABLE.value


class Item(NamedTuple):
    """Something about *origin*; *numbers* are shown in columns of their own."""

    origin: str
    text: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Concern:
    """One kind of thing that needs attention: the first *items*, of *count*.

    *access* or *column* is the filter that shows the others in the table of origins.
    """

    title: str
    count: int
    items: tuple[Item, ...]
    access: str = ""
    column: str = ""


class Span(NamedTuple):
    """Fetches between two times, and how many of these failed."""

    at: float
    fetches: int
    failed: int


# -- what needs attention ---------------------------------------------------------------


def attention(report: CrawlReport) -> list[Concern]:
    """What needs attention, the most important first; in each, those that refused most first."""
    unreachable = [each for each in report.origins if each.access == _UNREACHABLE]
    others = [each for each in report.origins if each.access != _UNREACHABLE]

    def about(
        text_of: Callable[[OriginReport], str], origins: Iterable[OriginReport]
    ) -> list[Item]:
        return [Item(each.origin, text) for each in origins if (text := text_of(each))]

    consequence = WHEN_UNREACHABLE[report.when_unreachable]
    slow = f"Fetching robots.txt took more than {_SLOW_FETCH:g} s"
    disagreements = about(_disagreements, report.origins)
    concerns = [
        _concern(f"Unreachable: {consequence}", about(_outage, unreachable), access=_UNREACHABLE),
        _concern("Every request refused", about(_refuses_all, others), column="refused"),
        _concern("Unreachable: the last copy is in use", about(_outage, others)),
        _concern("Errors in robots.txt", about(_errors, report.origins), column="errors"),
        _concern("Another parser disagrees", disagreements, column="disagreements"),
        _concern(slow, about(_slow_fetch, report.origins)),
        _concern("The delay between requests took most of the crawl", _dominating(report)),
    ]
    return [concern for concern in concerns if concern.count]


def _concern(title: str, items: list[Item], access: str = "", column: str = "") -> Concern:
    return Concern(title, len(items), tuple(items[:MAX_LISTED]), access, column)


def _outage(origin: OriginReport) -> str:
    if origin.outage is None:
        return ""
    attempts = plural(origin.outage.attempts, "attempt")
    refused = refused_count(origin)
    refusals = f"; {plural(refused, 'request')} refused" if refused else ""
    return f"{origin.outage.cause}; since {moment(origin.outage.since)} UTC, {attempts}{refusals}"


def _refuses_all(origin: OriginReport) -> str:
    if origin.decisions is None:
        return f"status {origin.status}" if origin.access == Access.DISALLOWED.value else ""
    if origin.decisions.allowed or not origin.decisions.refused:
        return ""
    causes = [rule for rule, _ in _refusing_lines(origin)] or list(origin.reasons)
    requests = plural(origin.decisions.refused, "request")
    return f"{requests}; {causes[0]}" if causes else requests


def _errors(origin: OriginReport) -> str:
    if origin.file is None or not origin.file.errors:
        return ""
    errors = plural(origin.file.errors, "error")
    for number, line in enumerate(origin.file.lines, 1):
        for severity, sentence in line.findings:
            if severity is Severity.ERROR:
                return f"{errors}; line {number}: {sentence}"
    return errors


def _disagreements(origin: OriginReport) -> str:
    if not origin.disagreements:
        return ""
    first = origin.disagreements[0]
    return (
        f"{plural(origin.disagreement_count, 'URL')}; {first.url} is {_word(first.ours)} here, "
        f"{_word(first.theirs)} by {first.parser}"
    )


def _word(allowed: bool) -> str:
    return "allowed" if allowed else "refused"


def _slow_fetch(origin: OriginReport) -> str:
    seconds = _longest_fetch(origin)
    return f"{seconds:.1f} s" if seconds >= _SLOW_FETCH else ""


def _longest_fetch(origin: OriginReport) -> float:
    # Failed fetches are said to be slow with the unreachable origins.
    return max((event.seconds or 0.0 for event in origin.events if not event.failed), default=0.0)


def _dominating(report: CrawlReport) -> list[Item]:
    lasted = report.made_at - (report.began_at or report.made_at)
    least = max(_DOMINATES * lasted, _LEAST_SECONDS)
    return [
        Item(name, f"{duration(site.seconds)} of {duration(lasted)}; asked for {site.why}")
        for site, name in _slow_sites(report)
        if site.seconds >= least
    ]


# -- tables ------------------------------------------------------------------------------


def top_rules(report: CrawlReport) -> list[Item]:
    """The lines that refused most often."""
    found = (
        (origin.origin, rule, count)
        for origin in report.origins
        for rule, count in _refusing_lines(origin)
    )
    return [
        Item(origin, rule, (f"{count:,}",))
        for origin, rule, count in nlargest(MAX_LISTED, found, key=itemgetter(2))
    ]


def _refusing_lines(origin: OriginReport) -> list[tuple[str, int]]:
    """The lines of *origin* that refused, the most frequent ones first."""
    lines = origin.file.lines if origin.file else ()
    found = (
        (f"{line.text} (line {number})", line.refused)
        for number, line in enumerate(lines, 1)
        if line.refused
    )
    return nlargest(MAX_LISTED, found, key=itemgetter(1))


def slowest_fetches(report: CrawlReport) -> list[Item]:
    """The robots.txt files that took longest to fetch."""
    timed = ((origin.origin, _longest_fetch(origin)) for origin in report.origins)
    slowest = nlargest(MAX_LISTED, timed, key=itemgetter(1))
    return [Item(origin, "", (f"{seconds:.2f} s",)) for origin, seconds in slowest if seconds]


def paced_sites(report: CrawlReport) -> list[Item]:
    """The sites at which requests waited longest."""
    return [
        Item(name, site.why, (f"{site.requests:,}", duration(site.seconds)))
        for site, name in _slow_sites(report)
    ]


def _slow_sites(report: CrawlReport) -> Iterator[tuple[SlowSite, str]]:
    """Each with the name of an origin of that host, or its own if none is listed."""
    names: dict[str, str] = {}
    for origin in report.origins:
        names.setdefault(urlsplit(origin.origin).hostname or "", origin.origin)
    for site in report.slow_sites:
        yield site, names.get(site.site, site.site)


def timeline(report: CrawlReport) -> list[Span]:
    """The fetches, in spans of equal length. Of one origin, the last ones are known."""
    events = [each for origin in report.origins for each in origin.events]
    if report.began_at is not None:
        # What the store knew may be old.
        events = [each for each in events if each.seconds is not None]
    if not events:
        return []
    first, last = min(each.at for each in events), max(each.at for each in events)
    width = (last - first) / _BARS or 1.0
    positions = [(min(int((each.at - first) / width), _BARS - 1), each.failed) for each in events]
    fetches = Counter(position for position, _ in positions)
    failed = Counter(position for position, has_failed in positions if has_failed)
    count = _BARS if last > first else 1
    return [Span(first + n * width, fetches[n], failed[n]) for n in range(count)]


# -- what is new ---------------------------------------------------------------------------


def changes(report: CrawlReport) -> list[Concern]:
    """What differs from the previous report."""
    if report.previous is None:
        return []
    before = report.previous.origins
    now = {origin.origin: origin for origin in report.origins}
    known = [(origin, *before[name]) for name, origin in now.items() if name in before]
    kinds = {
        "Access result changed": [
            Item(origin.origin, f"{access}, now {origin.access}")
            for origin, access, _ in known
            if access != origin.access
        ],
        "robots.txt changed": [
            Item(origin.origin, "")
            for origin, _, digest in known
            if digest and origin.digest not in ("", digest)
        ],
        "New": [Item(name, origin.access) for name, origin in now.items() if name not in before],
        "Not in this report": [
            Item(name, access) for name, (access, _) in before.items() if name not in now
        ],
    }
    return [_concern(title, items) for title, items in kinds.items() if items]


def refused_count(origin: OriginReport) -> int:
    """How many requests to *origin* were refused, as far as anybody counted."""
    return origin.decisions.refused if origin.decisions else 0
