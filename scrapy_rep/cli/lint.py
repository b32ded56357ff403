"""``scrapy robots lint``: what is wrong in a robots.txt."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scrapy.settings import BaseSettings

import scrapy_rep
from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import (
    Printer,
    Records,
    Style,
    finding_as_json,
    number,
    write_json,
)
from scrapy_rep.cli.sources import Session, is_url
from scrapy_rep.rep.lint.findings import Finding, FindingKind, Severity
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.text import printable

_STYLES = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.DOUBTFUL,
    Severity.NOTE: Style.FAINT,
    Severity.OK: Style.GOOD,
}
_BAD = (Severity.ERROR, Severity.WARNING)

_DESCRIPTION = """\
Finds mistakes in a robots.txt: lines that are ignored, rules that match nothing
or never decide, groups that do not end where they seem to. SOURCE is a URL of
the site, a file, or - for standard input. A URL is always fetched.

Exit codes: 0 no errors or warnings, 1 errors or warnings, 2 the file cannot be
read"""
_EXAMPLES = """\
  scrapy robots lint robots.txt
  scrapy robots lint https://example.com
  scrapy robots lint --format sarif static/robots.txt > robots.sarif"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="URL, file, or - for standard input")
    parser.add_argument("--all", action="store_true", help="show correct lines, too")
    common.add_dialect(parser)
    common.add_json(parser, "csv", "sarif")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    linted = _read(options.source, Session.of(options, settings))
    shown = [each for each in linted.findings if options.all or each.severity is not Severity.OK]
    if options.format == "json":
        write_json(_as_json(linted, shown))
    elif options.format == "csv":
        records = Records("csv", ("name", "line", "severity", "kind", "sentence"))
        for finding in shown:
            position = {"name": linted.name, "line": finding.line}
            records.write(position | finding_as_json(finding))
    elif options.format == "sarif":
        sys.stdout.write(json.dumps(_as_sarif(linted.name, shown), indent=2) + "\n")
    else:
        _show(linted, shown, Printer(sys.stdout))
    return WRONG if any(linted.count(severity) for severity in _BAD) else FINE


@dataclass(frozen=True, slots=True)
class _Linted:
    """A file and its findings, of all severities."""

    name: str
    dialect: str
    lines: int
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings have *severity*."""
        return Counter(finding.severity for finding in self.findings)[severity]


def _read(source: str, session: Session) -> _Linted:
    # The author of a file who has just changed it wants to see the new one.
    robots = replace(session, fresh=True).load(source)
    if robots.file is None:
        assert robots.policy is not None
        raise CommandError(
            f"cannot lint {printable(robots.name)}: it is {robots.policy.access.value} "
            f"({robots.policy.detail})"
        )
    lines = len(split_lines(robots.file.body, session.dialect))
    return _Linted(robots.url, session.dialect.name, lines, robots.file.findings)


# -- output --------------------------------------------------------------------------


def _show(linted: _Linted, shown: list[Finding], printer: Printer) -> None:
    name = printable(linted.name, most=None)
    for finding in shown:
        severity = printer.styled(finding.severity.value, _STYLES[finding.severity])
        kind = printer.styled(f"[{finding.kind.value}]", Style.FAINT)
        printer.line(f"{name}:{finding.line}: {severity}: {finding.sentence} {kind}")
    counts = [number(linted.count(severity), severity.value) for severity in (*_BAD, Severity.NOTE)]
    printer.line(f"{', '.join(counts)} in {number(linted.lines, 'line')} ({linted.dialect})")


def _as_json(linted: _Linted, shown: list[Finding]) -> dict[str, Any]:
    return {
        "name": linted.name,
        "dialect": linted.dialect,
        "lines": linted.lines,
        "findings": [{"line": each.line} | finding_as_json(each) for each in shown],
        "summary": {severity.value: linted.count(severity) for severity in Severity},
    }


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
_KINDS = {kind: index for index, kind in enumerate(FindingKind)}


def _as_sarif(name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """A log with one run: *findings* in the file or at the URL called *name*."""
    driver = {
        "name": "scrapy-rep",
        "version": scrapy_rep.__version__,
        "rules": [_sarif_rule(kind) for kind in FindingKind],
    }
    location = {"uri": _uri(name)}
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
        "ruleIndex": _KINDS[finding.kind],
        # The level is "none" for a result of a kind that is not a failure.
        "kind": "pass" if finding.severity is Severity.OK else "fail",
        "level": _SARIF[finding.severity][0],
        "message": {"text": finding.sentence},
        "locations": [{"physicalLocation": place}],
    }


def _uri(name: str) -> str:
    """*name* as a URI; tools look for relative ones in a checkout."""
    if is_url(name):
        return name
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


LINT = Subcommand(
    "lint",
    "SOURCE [options]",
    "find mistakes in a robots.txt",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
