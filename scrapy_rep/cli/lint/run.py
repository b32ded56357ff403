"""``scrapy robots lint`` from start to end."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Printer, Style
from scrapy_rep.cli.ending import FINE, WRONG, Trouble, ended
from scrapy_rep.cli.lint.sarif import sarif
from scrapy_rep.cli.sources import Asking
from scrapy_rep.cli.wording import number
from scrapy_rep.rep.findings import Finding, Severity
from scrapy_rep.rep.lines import split_lines
from scrapy_rep.rep.text import printable

_STYLES = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.DOUBTFUL,
    Severity.NOTE: Style.FAINT,
    Severity.OK: Style.GOOD,
}
_BAD = (Severity.ERROR, Severity.WARNING)


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Look at the file, and return the exit code. Raises :exc:`UsageError`."""
    if options.json and options.format not in (None, "json"):
        message = f"--json and --format {options.format} exclude each other"
        raise UsageError(message, print_help=False)
    return ended("scrapy robots lint", lambda: _lint(options, settings))


@dataclass(frozen=True, slots=True)
class _Linted:
    """A file and its findings, of all severities."""

    name: str
    dialect: str
    lines: int
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are so bad."""
        return Counter(finding.severity for finding in self.findings)[severity]


def _lint(options: argparse.Namespace, settings: BaseSettings) -> int:
    linted = _read(options.source, Asking.of(options, settings))
    shown = [each for each in linted.findings if options.all or each.severity is not Severity.OK]
    kind = "json" if options.json else options.format
    if kind == "sarif":
        sys.stdout.write(json.dumps(sarif(linted.name, shown), indent=2) + "\n")
    elif kind == "json":
        sys.stdout.write(json.dumps(_as_json(linted, shown)) + "\n")
    else:
        _show(linted, shown, Printer(sys.stdout))
    return WRONG if any(linted.count(severity) for severity in _BAD) else FINE


def _read(source: str, asking: Asking) -> _Linted:
    # Whoever has just changed the file wants to see that one.
    known = replace(asking, fresh=True).look_at(source)
    if known.file is None:
        assert known.policy is not None
        name = printable(known.name)
        raise Trouble(
            f"there is no {name} to look at: it is {known.policy.access.value}"
            f" ({known.policy.detail})"
        )
    lines = len(split_lines(known.file.body, asking.dialect))
    name = known.name if known.policy is None else known.policy.url
    return _Linted(name, asking.dialect.name, lines, known.file.findings)


def _as_json(linted: _Linted, shown: list[Finding]) -> dict[str, Any]:
    return {
        "name": linted.name,
        "dialect": linted.dialect,
        "lines": linted.lines,
        "findings": [
            {
                "line": finding.line,
                "kind": finding.kind.value,
                "severity": finding.severity.value,
                "sentence": finding.sentence,
            }
            for finding in shown
        ],
        "summary": {severity.value: linted.count(severity) for severity in Severity},
    }


def _show(linted: _Linted, shown: list[Finding], printer: Printer) -> None:
    name = printable(linted.name, most=None)
    for finding in shown:
        severity = printer.styled(finding.severity.value, _STYLES[finding.severity])
        kind = printer.styled(f"[{finding.kind.value}]", Style.FAINT)
        printer.line(f"{name}:{finding.line}: {severity}: {finding.sentence} {kind}")
    counts = [
        number(linted.count(severity), severity.value)
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    ]
    printer.line(f"{', '.join(counts)} in {number(linted.lines, 'line')} ({linted.dialect})")
