"""``scrapy robots lint``: what is wrong in a robots.txt."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import __version__
from ..rep.lint.findings import Finding, FindingKind, Severity
from ..rep.parsing.lines import split_lines
from ..rep.text import plural, printable
from .errors import FINE, WRONG, CommandError
from .options import DIALECT, SOURCE, Options, Settings, argument, format_of, subcommand
from .output import Printer, Records, Style, finding_json, write_json
from .sources import Session, is_url

_STYLES = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.DOUBTFUL,
    Severity.NOTE: Style.FAINT,
    Severity.OK: Style.GOOD,
}

_SUMMARY = "find mistakes in a robots.txt"
_ARGUMENTS = (
    *(SOURCE, argument("--all", action="store_true", help="show correct lines, too"), DIALECT),
    format_of("csv", "sarif"),
)


@subcommand("SOURCE [options]", _SUMMARY, *_ARGUMENTS)
def lint(options: Options, settings: Settings) -> int:
    """Finds mistakes in a robots.txt: lines that are ignored, rules that match nothing
    or never decide, groups that do not end where they seem to. SOURCE is a URL of
    the site, a file, or - for standard input. A URL is always fetched.

    Exit codes: 0 no errors or warnings, 1 errors or warnings, 2 the file cannot be
    read

    Examples:
      scrapy robots lint robots.txt
      scrapy robots lint https://example.com
      scrapy robots lint --format sarif static/robots.txt > robots.sarif
    """
    session = Session(options, settings)
    # The author of a file who has just changed it wants to see the new one.
    session.fresh = True
    robots = session.load(options.source)
    if robots.file is None:
        detail = f"({robots.result.detail})"
        raise CommandError(f"cannot lint {printable(robots.name)}: it is {robots.access} {detail}")
    name, findings = robots.result.url, robots.file.findings
    counts = Counter(finding.severity for finding in findings)
    lines = len(split_lines(robots.file.body, robots.file.dialect))
    shown = [each for each in findings if options.all or each.severity is not Severity.OK]
    if options.format == "json":
        about = {"name": name, "dialect": robots.file.dialect.name, "lines": lines}
        summary = {severity.value: counts[severity] for severity in Severity}
        write_json(about | {"findings": list(map(_finding_json, shown)), "summary": summary})
    elif options.format == "csv":
        records = Records("csv", ("name", "line", "severity", "kind", "sentence"))
        records.write(*({"name": name} | _finding_json(each) for each in shown))
    elif options.format == "sarif":
        sys.stdout.write(json.dumps(_as_sarif(name, shown), indent=2) + "\n")
    else:
        _show(printable(name, most=None), shown)
        bad = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        counted = ", ".join(plural(counts[severity], severity.value) for severity in bad)
        Printer().line(f"{counted} in {plural(lines, 'line')} ({robots.file.dialect.name})")
    return WRONG if counts[Severity.ERROR] or counts[Severity.WARNING] else FINE


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {"line": finding.line} | finding_json(finding)


def _show(name: str, shown: Iterable[Finding]) -> None:
    printer = Printer()
    for finding in shown:
        severity = printer.styled(finding.severity.value, _STYLES[finding.severity])
        kind = printer.styled(f"[{finding.kind.value}]", Style.FAINT)
        printer.line(f"{name}:{finding.line}: {severity}: {finding.sentence} {kind}")


# -- SARIF 2.1.0, the format of OASIS that code-scanning tools read ------------------

_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# By severity, the level and the help of its kinds.
_SARIF = {
    Severity.ERROR: ("error", "The line does not do what it says."),
    Severity.WARNING: ("warning", "The line may not do what it seems to, here or elsewhere."),
    Severity.NOTE: ("note", "Good to know."),
    Severity.OK: ("none", "Correct."),
}
_KINDS = list(FindingKind)


def _as_sarif(name: str, findings: Iterable[Finding]) -> dict[str, Any]:
    """A log with one run: *findings* in the file or at the URL called *name*."""
    path = Path(name)
    # Tools look for relative ones in a checkout.
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    location = {"uri": name if is_url(name) else uri}
    driver = {
        "name": "scrapy-rep",
        "version": __version__,
        "rules": [_sarif_rule(kind) for kind in _KINDS],
    }
    results = [_sarif_result(finding, location) for finding in findings]
    run = {"tool": {"driver": driver}, "artifacts": [{"location": location}], "results": results}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(kind: FindingKind) -> dict[str, Any]:
    level, text = _SARIF[kind.severity]
    return {
        "id": kind.value,
        "name": kind.value.title().replace("-", ""),
        "shortDescription": {"text": kind.template.replace("{}", "…")},
        "help": {"text": text},
        "defaultConfiguration": {"level": level},
    }


def _sarif_result(finding: Finding, location: dict[str, Any]) -> dict[str, Any]:
    artifact = location | {"index": 0}
    place = {"artifactLocation": artifact, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.kind.value,
        "ruleIndex": _KINDS.index(finding.kind),
        # The level is "none" for a result of a kind that is not a failure.
        "kind": "pass" if finding.severity is Severity.OK else "fail",
        "level": _SARIF[finding.severity][0],
        "message": {"text": finding.sentence},
        "locations": [{"physicalLocation": place}],
    }
