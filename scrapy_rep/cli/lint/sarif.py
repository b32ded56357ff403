"""Findings as SARIF 2.1.0, the format of OASIS that code-scanning tools read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import scrapy_rep
from scrapy_rep.cli.sources import is_url
from scrapy_rep.rep.findings import Finding, FindingKind, Severity

_VERSION = "2.1.0"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
    Severity.OK: "none",
}
_HELP = {
    Severity.ERROR: "The line does not do what it says.",
    Severity.WARNING: "The line likely does something else than it seems to, here or with other "
    "crawlers.",
    Severity.NOTE: "Good to know.",
    Severity.OK: "In order.",
}
_KINDS = {kind: index for index, kind in enumerate(FindingKind)}


def sarif(name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """A log with one run: *findings* in the file or at the URL called *name*."""
    driver = {
        "name": "scrapy-rep",
        "version": scrapy_rep.__version__,
        "rules": [_rule(kind) for kind in FindingKind],
    }
    location = {"uri": _uri(name)}
    return {
        "$schema": _SCHEMA,
        "version": _VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                "artifacts": [{"location": location}],
                "results": [_result(finding, location) for finding in findings],
            }
        ],
    }


def _rule(kind: FindingKind) -> dict[str, Any]:
    return {
        "id": kind.value,
        "name": kind.value.title().replace("-", ""),
        "shortDescription": {"text": kind.template.replace("{}", "…")},
        "help": {"text": _HELP[kind.severity]},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
    }


def _result(finding: Finding, location: dict[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": finding.kind.value,
        "ruleIndex": _KINDS[finding.kind],
        # Of a result of a kind that is no failure, the level is "none".
        "kind": "pass" if finding.severity is Severity.OK else "fail",
        "level": _LEVELS[finding.severity],
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
    """*name* as a URI: relative ones are what tools find in a checkout."""
    if is_url(name):
        return name
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
