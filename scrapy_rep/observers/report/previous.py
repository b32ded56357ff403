"""The report before this one: the page in whose place, or beside which, the new one is written.

A page ends its first lines with a snapshot, JSON on a line of its own, for the next report.
"""

from __future__ import annotations

import json
from pathlib import Path

from scrapy_rep.observers.report.model import CrawlReport, PreviousReport
from scrapy_rep.rep.text import printable

#: How that line begins and ends.
_BEGIN = '<script type="application/json" id="snapshot">'
_END = "</script>"
# Lines before it, and bytes of it: enough for 100,000 origins.
_MAX_LINES = 1_000
_MAX_SIZE = 16 * 1024 * 1024


def snapshot(report: CrawlReport) -> dict[str, object]:
    """What the next report needs to know of *report*, as JSON."""
    origins = {origin.origin: (origin.access, origin.digest) for origin in report.origins}
    return {"subject": report.subject, "made_at": report.made_at, "origins": origins}


def read_previous(path: Path | None, subject: str) -> PreviousReport | None:
    """What the page *path* knew, if it is a report on *subject*."""
    if path is None:
        return None
    try:
        with path.open(encoding="utf-8") as file:
            lines = (file.readline(_MAX_SIZE) for _ in range(_MAX_LINES))
            line = next((line for line in lines if line.startswith(_BEGIN)), "")
        found = json.loads(line.strip().removeprefix(_BEGIN).removesuffix(_END))
        if found["subject"] != subject:
            return None
        origins = {
            printable(origin): (printable(access), printable(digest))
            for origin, (access, digest) in found["origins"].items()
        }
        return PreviousReport(float(found["made_at"]), origins)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # There is none, or anything else is in its place.
        return None
