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

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

import scrapy_rep
from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Printer, Style, finding_as_json, number, write_json
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
Says what is wrong in a robots.txt, line by line: lines that are ignored, rules that
match nothing or never decide, groups that go on where they seem to end.

What is given is a file, - for standard input, or a URL, which has a scheme: then
the robots.txt of its origin is fetched now, as a crawl would, whatever the store
has.

  error    a line does not do what it says
  warning  a line likely does something else than it seems to, here or elsewhere
  note     good to know

Each line of the output has the file, the line, the severity, a sentence, and the
kind of the finding in brackets. What is in order is left out, unless --all is
given. The last line has the numbers.

--format json writes one object: name, dialect, lines (how many), findings (line,
kind, severity, sentence) and summary, a number for each severity.
--format sarif writes SARIF 2.1.0, which code-scanning tools read; notes are of
level "note" there.

Exit codes: 0 neither error nor warning; 1 an error or a warning; 2 the file cannot
be read, the robots.txt could not be fetched, there is none, or usage.

examples:
  scrapy robots lint robots.txt
  scrapy robots lint https://example.com
  scrapy robots lint --format sarif static/robots.txt > robots.sarif
  curl -s https://example.com/robots.txt | scrapy robots lint --dialect google -"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="URL|FILE", help="the robots.txt, or -")
    formats = ("text", "json", "sarif")
    parser.add_argument("--format", choices=formats, help="how to write it (text by default)")
    parser.add_argument("--all", action="store_true", help="what is in order, too")
    common.add_dialect(parser)
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    if options.json and options.format not in (None, "json"):
        message = f"--json and --format {options.format} exclude each other"
        raise UsageError(message, print_help=False)
    linted = _read(options.source, Session.of(options, settings))
    shown = [each for each in linted.findings if options.all or each.severity is not Severity.OK]
    if options.json or options.format == "json":
        write_json(_as_json(linted, shown))
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
            f"there is no {printable(robots.name)} to look at: it is "
            f"{robots.policy.access.value} ({robots.policy.detail})"
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
_SARIF_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
    Severity.OK: "none",
}
_SARIF_HELP = {
    Severity.ERROR: "The line does not do what it says.",
    Severity.WARNING: "The line likely does something else than it seems to, here or with other "
    "crawlers.",
    Severity.NOTE: "Good to know.",
    Severity.OK: "In order.",
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
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "artifacts": [{"location": location}],
                "results": [_sarif_result(finding, location) for finding in findings],
            }
        ],
    }


def _sarif_rule(kind: FindingKind) -> dict[str, Any]:
    return {
        "id": kind.value,
        "name": kind.value.title().replace("-", ""),
        "shortDescription": {"text": kind.template.replace("{}", "…")},
        "help": {"text": _SARIF_HELP[kind.severity]},
        "defaultConfiguration": {"level": _SARIF_LEVELS[kind.severity]},
    }


def _sarif_result(finding: Finding, location: dict[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": finding.kind.value,
        "ruleIndex": _KINDS[finding.kind],
        # The level is "none" for a result of a kind that is not a failure.
        "kind": "pass" if finding.severity is Severity.OK else "fail",
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": finding.sentence},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": location | {"index": 0},
                    "region": {"startLine": finding.line},
                }
            }
        ],
    }


def _uri(name: str) -> str:
    """*name* as a URI; tools look for relative ones in a checkout."""
    if is_url(name):
        return name
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


LINT = Subcommand(
    "lint",
    "URL|FILE [options]",
    "what is wrong in a robots.txt",
    _DESCRIPTION,
    _add_options,
    _run,
)
