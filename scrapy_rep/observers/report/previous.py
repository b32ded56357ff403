"""The report before this one: the page in whose place, or beside which, the new one is written.

A page ends its first lines with a snapshot, JSON on a line of its own, for the next report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from scrapy_rep.observers.report.model import CrawlReport, PreviousReport, Snapshot
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
            found = json.loads(_snapshot_line(file.readline(_MAX_SIZE) for _ in range(_MAX_LINES)))
        if found["subject"] != subject:
            return None
        return PreviousReport(float(found["made_at"]), _origins(found["origins"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # There is none, or anything else is in its place.
        return None


def _snapshot_line(lines: Iterable[str]) -> str:
    for line in lines:
        if line.startswith(_BEGIN):
            return line.strip().removeprefix(_BEGIN).removesuffix(_END)
    return ""


def _origins(found: dict[str, list[str]]) -> Snapshot:
    origins = {}
    for origin, (access, digest) in found.items():
        origins[printable(origin)] = (printable(access), printable(digest))
    return origins
