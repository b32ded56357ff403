"""What a report shows, whoever gathered it.

Values only. All text in them is safe to show: it went through
:func:`~scrapy_rep.rep.text.printable`. Times are seconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.rep.lint.findings import Severity

#: An origin of which it is not known what a crawl may do: it has to ask first.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LineReport:
    """One line of a robots.txt: what is wrong with it, and how often it decided."""

    text: str
    #: Severity and sentence of each; only what there is to be said.
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
    """News of a robots.txt: when, what, and the seconds that it took if it was a fetch."""

    at: float
    what: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A URL on which a second opinion differs: whether it may be accessed, by both.

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
class OriginReport:
    """All that there is to show of one origin.

    *access* is the value of an :class:`~scrapy_rep.Access`, or :data:`UNKNOWN`.
    *details* are names and values of what else is known. There may be more news and
    disagreements than are here, and more refused URLs. *notes* are sentences about
    what is not shown.
    """

    origin: str
    access: str
    status: int | None
    details: tuple[tuple[str, str], ...]
    file: FileReport | None = None
    #: Where the origin stands by the clock; ``None`` if that was not asked.
    standing: str | None = None
    #: ``None`` where nobody counted.
    decisions: Decisions | None = None
    refused_urls: tuple[RefusedURL, ...] = ()
    fetch_count: int = 0
    news: tuple[News, ...] = ()
    news_count: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    disagreement_count: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A whole page. *subject* is the crawl or the store that it is about.

    *decisions* and *refusals*, by the value of the :class:`~scrapy_rep.Reason`, are
    of all requests of a crawl, those to origins that are not listed as well. *notes*
    are sentences about what is not shown.
    """

    subject: str
    made_at: float
    origins: tuple[OriginReport, ...]
    #: ``None`` for a store.
    began_at: float | None = None
    decisions: Decisions | None = None
    refusals: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
