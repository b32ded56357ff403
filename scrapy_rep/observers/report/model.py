"""What a report shows, whether it is about a crawl or a store.

Values only. All text in them is safe to show: it went through
:func:`~scrapy_rep.rep.text.printable`. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class RefusedURL:
    """A URL that was refused, the line that did it (0 for none), and that rule or why."""

    url: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class News:
    """A fetch of *seconds*, or, without these, what the store had. It *failed* if the
    robots.txt is unreachable since."""

    at: float
    what: str
    seconds: float | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class OutageReport:
    """Fetches that failed in a row, and why the last one did."""

    since: float
    attempts: int
    cause: str


@dataclass(frozen=True, slots=True)
class Disagreement:
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


@dataclass(frozen=True, slots=True)
class Decisions:
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


@dataclass(frozen=True, slots=True)
class OriginReport:
    """All that there is to show of one origin.

    *access* is the value of an :class:`~scrapy_rep.Access`, or :data:`UNKNOWN`.
    *details* are names and values of what else is known. *reasons* are sentences about
    why all URLs were refused. There may be more news, disagreements and refused URLs
    than are here. *notes* are sentences about what is not shown.
    """

    origin: str
    access: str
    status: int | None
    details: tuple[tuple[str, str], ...]
    file: FileReport | None = None
    #: A hash of the bytes of the robots.txt whose rules apply; empty if there are none.
    digest: str = ""
    outage: OutageReport | None = None
    #: Where the origin stands by the clock; ``None`` if that was not asked.
    standing: str | None = None
    #: ``None`` where nobody counted.
    decisions: Decisions | None = None
    reasons: tuple[str, ...] = ()
    refused_urls: tuple[RefusedURL, ...] = ()
    refused_url_count: int = 0
    fetch_count: int = 0
    news: tuple[News, ...] = ()
    news_count: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    disagreement_count: int = 0
    notes: tuple[str, ...] = ()


#: What the next report compares with: by origin, its access and the digest of its file.
Snapshot = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PreviousReport:
    """What the report before this one knew."""

    made_at: float
    origins: Snapshot


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A whole page. *subject* is the crawl or the store that it is about.

    *decisions* and *refusals*, by the value of the :class:`~scrapy_rep.Reason`, are
    of all requests of a crawl, those to origins that are not listed as well. *notes*
    are sentences about what is not shown. *facts* are names and values: agents, settings,
    versions.
    """

    subject: str
    made_at: float
    origins: tuple[OriginReport, ...]
    #: ``None`` for a store.
    began_at: float | None = None
    decisions: Decisions | None = None
    refusals: tuple[tuple[str, int], ...] = ()
    #: The slowest first.
    slow_sites: tuple[SlowSite, ...] = ()
    #: A value of :class:`~scrapy_rep.rep.dialects.WhenUnreachable`.
    when_unreachable: str = "disallow"
    #: ``None`` if there is none.
    previous: PreviousReport | None = None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
