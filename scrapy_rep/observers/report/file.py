"""What is shown of a robots.txt: its lines, and fetches that failed."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping

from scrapy_rep.observers.report.model import FileReport, LineReport
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.lint.findings import Severity
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings

#: What all files of a page together may take, as :func:`takes` estimates it.
ROOM = 64 * 1024 * 1024
# Bytes that a line takes, however short it is.
_TAKES_PER_LINE = 60
#: How many lines of one file are shown.
MAX_LINES = 10_000

#: Instead of a file for which there is no room.
NO_ROOM = "The robots.txt is not shown: files of other origins fill the page."


def takes(result: FetchResult) -> int:
    """About how many bytes the body of *result* takes on a page."""
    lines = result.body.count(b"\n") + result.body.count(b"\r")
    return len(result.body) + _TAKES_PER_LINE * lines


def digest(result: FetchResult) -> str:
    """By which the next report sees that the body of *result* has changed."""
    return hashlib.sha256(result.body).hexdigest()[:16]


def read_file(
    result: FetchResult,
    settings: RepSettings,
    decided: Mapping[tuple[int, bool], int] | None = None,
) -> FileReport:
    """The body of *result* as a crawl with *settings* reads it.

    *decided* is how often each line has allowed (``True``) or refused.
    """
    decided = decided or {}
    limit = result.size_to_read(settings.max_size)
    robots = RobotsTxt.parse(result.body, settings.dialect, max_size=limit)
    found: dict[int, list[tuple[Severity, str]]] = defaultdict(list)
    for finding in robots.findings:
        if finding.severity is not Severity.OK:
            found[finding.line].append((finding.severity, finding.sentence))
    severities = Counter(severity for each in found.values() for severity, _ in each)
    # There may be something to say of a file without lines.
    lines = split_lines(robots.body, settings.dialect) or [b""] * len(found)
    shown = tuple(
        LineReport(
            printable(line),
            tuple(found.get(number, ())),
            allowed=decided.get((number, True), 0),
            refused=decided.get((number, False), 0),
        )
        for number, line in enumerate(lines[:MAX_LINES], 1)
    )
    left_out = max(0, len(lines) - MAX_LINES)
    return FileReport(shown, left_out, severities[Severity.ERROR], severities[Severity.WARNING])
