"""What a report shows, whether it is about a crawl or a store.

All text in it, except that of an outage, is safe to show: it went through
:func:`~scrapy_rep.rep.text.printable`. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_rep.rep.caching.cache_entry import Outage
from scrapy_rep.rep.lint.findings import Severity

#: The access of an origin whose robots.txt must be fetched before a crawl may do anything.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LineReport:
    """One line of a robots.txt: what is wrong with it, and how often it decided."""

    text: str
    #: Severity and sentence of each.
    findings: tuple[tuple[Severity, str], ...] = ()
    allowed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class FileReport:
    """A robots.txt, as far as it is read: its first *lines*, and how many more it has.

    *errors* and *warnings* count the findings of all its lines.
    """

    lines: tuple[LineReport, ...]
    lines_left_out: int
    errors: int
    warnings: int


class RefusedURL(NamedTuple):
    """A URL that was refused, the line that did it (0 for none), and that rule or why."""

    url: str
    line: int
    why: str


class Event(NamedTuple):
    """A fetch of *seconds*, or, without these, what the store had. It *failed* if the
    robots.txt is unreachable since."""

    at: float
    what: str
    seconds: float | None = None
    failed: bool = False


class Disagreement(NamedTuple):
    """A URL on which another parser differs: whether it may be accessed, by both.

    *line* is that of our deciding rule, 0 for none; *known_class* the class of the
    difference, empty where it is in none.
    """

    url: str
    parser: str
    ours: bool
    theirs: bool
    line: int = 0
    known_class: str = ""


class Decisions(NamedTuple):
    """How many requests were allowed and refused."""

    allowed: int
    refused: int


@dataclass(frozen=True, slots=True)
class SlowSite:
    """A host that asks for a delay: for how many *seconds* requests waited or were under way."""

    site: str
    requests: int
    seconds: float
    why: str


@dataclass(slots=True)
class OriginReport:
    """All that there is to show of one origin. A crawl fills it in as it goes on.

    *access* is the value of an :class:`~scrapy_rep.Access`, or :data:`UNKNOWN`.
    *details* are names and values of what else is known. *digest* is a hash of the robots.txt
    whose rules apply, empty if there are none. *freshness* is that of the cache entry, and
    *decisions* are ``None`` where nobody counted. *reasons* are sentences about why all URLs
    were refused. There may be more events, disagreements and refused URLs than are here.
    *notes* are sentences about what is not shown.
    """

    origin: str
    access: str = UNKNOWN
    status: int | None = None
    details: Sequence[tuple[str, str]] = ()
    file: FileReport | None = None
    digest: str = ""
    outage: Outage | None = None
    freshness: str | None = None
    decisions: Decisions | None = None
    reasons: Sequence[str] = ()
    refused_urls: list[RefusedURL] = field(default_factory=list)
    refused_url_count: int = 0
    fetch_count: int = 0
    events: list[Event] = field(default_factory=list)
    event_count: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)
    disagreement_count: int = 0
    notes: Sequence[str] = ()

    @property
    def refused(self) -> int:
        """How many requests were refused, as far as anybody counted."""
        return self.decisions.refused if self.decisions else 0


class PreviousReport(NamedTuple):
    """What the report before this one knew: by origin, its access and the digest of its file."""

    made_at: float
    origins: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A whole page. *subject* is the crawl or the store that it is about.

    Only a crawl has *began_at*, *decisions*, *refusals* by the value of the
    :class:`~scrapy_rep.Reason`, and *slow_sites*, the slowest first. They are of all its requests,
    those to origins that are not listed as well. *notes* are sentences about what is not shown.
    *when_unreachable* is a value of :class:`~scrapy_rep.rep.dialects.WhenUnreachable`.
    *facts* are names and values: agents, settings, versions.
    """

    subject: str
    made_at: float
    origins: tuple[OriginReport, ...]
    began_at: float | None = None
    decisions: Decisions | None = None
    refusals: tuple[tuple[str, int], ...] = ()
    slow_sites: tuple[SlowSite, ...] = ()
    when_unreachable: str = "disallow"
    previous: PreviousReport | None = None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
