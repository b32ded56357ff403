"""From a report to one HTML page that stands for itself.

The template engine escapes all that the page shows, or writes it as JSON that no HTML can hide
in: the script makes text of that, never markup. The page's policy forbids all but its own script
and style, which it names by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from scrapy_rep import __version__
from scrapy_rep.observers.report import diagnosis
from scrapy_rep.observers.report.model import CrawlReport, Event, LineReport, OriginReport
from scrapy_rep.observers.report.previous import snapshot
from scrapy_rep.observers.report.words import REASONS, access_meanings, moment

_TEMPLATES = "template"
#: The columns of the table, and their values for an origin.
_COLUMNS: dict[str, Callable[[OriginReport], object]] = {
    "origin": lambda origin: origin.origin,
    "access": lambda origin: origin.access,
    "freshness": lambda origin: origin.freshness,
    "status": lambda origin: origin.status,
    "allowed": lambda origin: origin.decisions and origin.decisions.allowed,
    "refused": lambda origin: origin.decisions and origin.decisions.refused,
    "fetches": lambda origin: origin.fetch_count,
    "lines": lambda origin: origin.file and len(origin.file.lines) + origin.file.lines_left_out,
    "errors": lambda origin: origin.file and origin.file.errors,
    "warnings": lambda origin: origin.file and origin.file.warnings,
    "disagreements": lambda origin: origin.disagreement_count,
}


def write_page(path: Path, report: CrawlReport) -> int:
    """Write *report* to *path*, as a whole or not at all, and return its bytes."""
    # Beside it, because to rename is atomic within a file system only.
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(render(report))
        size = temporary.stat().st_size
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return size


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["moment"] = moment
    return environment


def render(report: CrawlReport) -> Iterator[str]:
    """The page of *report*, piece by piece."""
    by_refused = sorted(report.origins, key=lambda origin: -origin.refused)
    report = replace(report, origins=tuple(by_refused))
    style, script = _asset("page.css"), _asset("page.js")
    columns, found = _columns(report), Counter(origin.access for origin in report.origins)
    meanings = access_meanings(report.when_unreachable)
    template = _environment().get_template("page.html")
    stream = template.stream(
        report=report,
        diagnosis=diagnosis,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        snapshot=snapshot(report),
        positions={origin.origin: n for n, origin in enumerate(report.origins)},
        totals=_totals(report),
        outcomes={outcome: found[outcome] for outcome in meanings if found[outcome]},
        access_meanings=meanings,
        reasons=REASONS,
        columns=columns,
        rows=[[_COLUMNS[name](origin) for name in columns] for origin in report.origins],
        details=_details,
    )
    stream.enable_buffering(200)
    return stream


def _asset(name: str) -> str:
    return (files(__package__) / _TEMPLATES / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing but what is in the page."""
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _totals(report: CrawlReport) -> dict[str, int]:
    origins = report.origins
    totals = {"origins": len(origins)}
    if report.decisions is not None:
        totals["requests allowed"] = report.decisions.allowed
        totals["requests refused"] = report.decisions.refused
        totals["robots.txt fetches"] = sum(origin.fetch_count for origin in origins)
    shown = [origin.file for origin in origins if origin.file]
    totals["errors in files"] = sum(file.errors for file in shown)
    totals["warnings in files"] = sum(file.warnings for file in shown)
    if disagreements := sum(origin.disagreement_count for origin in origins):
        totals["disagreements"] = disagreements
    return totals


def _columns(report: CrawlReport) -> dict[str, str]:
    """The names of columns for which something is known, and what these are of."""
    known = dict.fromkeys(("allowed", "refused", "fetches"), report.decisions is not None)
    known["freshness"] = any(origin.freshness for origin in report.origins)
    known["disagreements"] = any(origin.disagreement_count for origin in report.origins)
    return {
        name: "text" if name in ("origin", "access", "freshness") else "number"
        for name in _COLUMNS
        if known.get(name, True)
    }


def _details(origin: OriginReport) -> dict[str, Any]:
    """All that the table does not show of *origin*, as short as JSON can be."""
    file = origin.file
    return {
        "details": origin.details,
        "reasons": origin.reasons,
        "notes": origin.notes,
        "lines": [_line(line) for line in file.lines] if file else None,
        "more": file.lines_left_out if file else 0,
        "refused": origin.refused_urls,
        "refusedCount": origin.refused_url_count,
        "events": [_event(event) for event in origin.events],
        "eventCount": origin.event_count,
        "disagreements": origin.disagreements,
        "disagreementCount": origin.disagreement_count,
    }


def _line(line: LineReport) -> object:
    """Most lines are just their text."""
    if not (line.findings or line.allowed or line.refused):
        return line.text
    findings = [(severity.value, sentence) for severity, sentence in line.findings]
    return line.text, findings, line.allowed, line.refused


def _event(event: Event) -> tuple[str, str, str]:
    seconds = "" if event.seconds is None else f"{event.seconds:.2f} s"
    return f"{moment(event.at)} UTC", event.what, seconds
