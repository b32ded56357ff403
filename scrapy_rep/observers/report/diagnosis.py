"""From a report to what people should look at first.

Pure functions. Each list is bounded, however many origins there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_rep.observers.report.model import CrawlReport, OriginReport, SlowSite
from scrapy_rep.observers.report.words import WHEN_UNREACHABLE, moment
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.lint.findings import Severity
from scrapy_rep.rep.text import plural, printable, span

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
_WORDS = {True: "allowed", False: "refused"}


class Item(NamedTuple):
    """Something about *origin*; *numbers* are shown in columns of their own."""

    origin: str
    text: str = ""
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
    origins = report.origins
    unreachable = [each for each in origins if each.access == _UNREACHABLE]
    others = [each for each in origins if each.access != _UNREACHABLE]
    refused = f"Unreachable: {WHEN_UNREACHABLE[report.when_unreachable]}"
    slow = f"Fetching robots.txt took more than {_SLOW_FETCH:g} s"
    dominating = "The delay between requests took most of the crawl"
    return [
        *_concern(refused, _about(unreachable, _outage), access=_UNREACHABLE),
        *_concern("Every request refused", _about(others, _refuses_all), column="refused"),
        *_concern("Unreachable: the last copy is in use", _about(others, _outage)),
        *_concern("Errors in robots.txt", _about(origins, _errors), column="errors"),
        *_concern(
            "Another parser disagrees", _about(origins, _disagreements), column="disagreements"
        ),
        *_concern(slow, _about(origins, _slow_fetch)),
        *_concern(dominating, _dominating(report)),
    ]


def _concern(
    title: str, items: Iterable[Item], access: str = "", column: str = ""
) -> Iterator[Concern]:
    """The concern about *items*, if there are any."""
    if found := tuple(items):
        yield Concern(title, len(found), found[:MAX_LISTED], access, column)


def _about(
    origins: Sequence[OriginReport], text_of: Callable[[OriginReport], str]
) -> Iterator[Item]:
    """The *origins* of which there is something to say."""
    return (Item(each.origin, text) for each in origins if (text := text_of(each)))


def _outage(origin: OriginReport) -> str:
    if origin.outage is None:
        return ""
    cause, since = printable(origin.outage.result.detail), moment(origin.outage.since)
    attempts = plural(origin.outage.attempts, "attempt")
    refusals = f"; {plural(origin.refused, 'request')} refused" if origin.refused else ""
    return f"{cause}; since {since} UTC, {attempts}{refusals}"


def _refuses_all(origin: OriginReport) -> str:
    if origin.decisions is None:
        return f"status {origin.status}" if origin.access == Access.DISALLOWED.value else ""
    if origin.decisions.allowed or not origin.refused:
        return ""
    causes = [*(rule for rule, _ in _refusing_lines(origin)), *origin.reasons]
    return "; ".join([plural(origin.refused, "request"), *causes[:1]])


def _errors(origin: OriginReport) -> str:
    if origin.file is None or not origin.file.errors:
        return ""
    sentences = (
        f"; line {number}: {sentence}"
        for number, line in enumerate(origin.file.lines, 1)
        for severity, sentence in line.findings
        if severity is Severity.ERROR
    )
    return f"{plural(origin.file.errors, 'error')}{next(sentences, '')}"


def _disagreements(origin: OriginReport) -> str:
    if not origin.disagreements:
        return ""
    first, urls = origin.disagreements[0], plural(origin.disagreement_count, "URL")
    ours, theirs = _WORDS[first.ours], _WORDS[first.theirs]
    return f"{urls}; {first.url} is {ours} here, {theirs} by {first.parser}"


def _slow_fetch(origin: OriginReport) -> str:
    seconds = _longest_fetch(origin)
    return f"{seconds:.1f} s" if seconds >= _SLOW_FETCH else ""


def _longest_fetch(origin: OriginReport) -> float:
    # Failed fetches are said to be slow with the unreachable origins.
    return max((event.seconds or 0.0 for event in origin.events if not event.failed), default=0.0)


def _dominating(report: CrawlReport) -> Iterator[Item]:
    lasted = report.made_at - (report.began_at or report.made_at)
    for site, name in _slow_sites(report):
        if site.seconds >= max(_DOMINATES * lasted, _LEAST_SECONDS):
            times = f"{span(site.seconds, 1)} of {span(lasted, 1)}"
            yield Item(name, f"{times}; asked for {site.why}")


# -- tables ------------------------------------------------------------------------------


def top_rules(report: CrawlReport) -> list[Item]:
    """The lines that refused most often."""
    found = (
        (origin.origin, rule, count)
        for origin in report.origins
        for rule, count in _refusing_lines(origin)
    )
    top = nlargest(MAX_LISTED, found, key=itemgetter(2))
    return [Item(origin, rule, (f"{count:,}",)) for origin, rule, count in top]


def _refusing_lines(origin: OriginReport) -> list[tuple[str, int]]:
    """The lines of *origin* that refused, the most frequent ones first."""
    found = (
        (f"{line.text} (line {number})", line.refused)
        for number, line in enumerate(origin.file.lines if origin.file else (), 1)
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
        Item(name, site.why, (f"{site.requests:,}", span(site.seconds, 1)))
        for site, name in _slow_sites(report)
    ]


def _slow_sites(report: CrawlReport) -> Iterator[tuple[SlowSite, str]]:
    """Each with the name of an origin of that host, or its own if none is listed."""
    names: dict[str, str] = {}
    for origin in report.origins:
        names.setdefault(urlsplit(origin.origin).hostname or "", origin.origin)
    return ((site, names.get(site.site, site.site)) for site in report.slow_sites)


def timeline(report: CrawlReport) -> list[Span]:
    """The fetches, in spans of equal length. Of one origin, the last ones are known."""
    events = [
        event
        for origin in report.origins
        for event in origin.events
        # What the store knew may be old.
        if report.began_at is None or event.seconds is not None
    ]
    if not events:
        return []
    first, last = min(each.at for each in events), max(each.at for each in events)
    width = (last - first) / _BARS or 1.0
    # By the position and whether they failed.
    numbers = Counter(
        (min(int((each.at - first) / width), _BARS - 1), each.failed) for each in events
    )
    return [
        Span(first + n * width, numbers[n, False] + numbers[n, True], numbers[n, True])
        for n in range(_BARS if last > first else 1)
    ]


# -- what is new ---------------------------------------------------------------------------


def changes(report: CrawlReport) -> list[Concern]:
    """What differs from the previous report."""
    if report.previous is None:
        return []
    before = report.previous.origins
    now = {origin.origin: (origin.access, origin.digest) for origin in report.origins}
    both = [(name, *before[name], *found) for name, found in now.items() if name in before]
    accesses = (Item(name, f"{old}, now {new}") for name, old, _, new, _ in both if old != new)
    files = (Item(name) for name, _, old, _, new in both if old and new not in ("", old))
    added = (Item(name, access) for name, (access, _) in now.items() if name not in before)
    gone = (Item(name, access) for name, (access, _) in before.items() if name not in now)
    return [
        *_concern("Access result changed", accesses),
        *_concern("robots.txt changed", files),
        *_concern("New", added),
        *_concern("Not in this report", gone),
    ]
