"""``scrapy robots explain`` from start to end."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Printer, Style
from scrapy_rep.cli.ending import FINE, TROUBLE, WRONG, ended
from scrapy_rep.cli.sources import Asking, Robots, absolute, origin_of
from scrapy_rep.cli.wording import answer, span, verdict_as_json
from scrapy_rep.rep.dialects import Precedence
from scrapy_rep.rep.explain import ExplainedRule, Explanation, Fate, explain
from scrapy_rep.rep.findings import Finding, Severity
from scrapy_rep.rep.lines import split_lines
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.verdict import Reason, Verdict

# Columns at most for the text of a line, before what became of it.
_WIDEST_TEXT = 44
# What our reading of the rules is called where something else has decided.
_DECIDED_ELSEWHERE = {
    Reason.OTHER_PARSER: "by ours",
    Reason.PURPOSE: "by rules",
    Reason.VISIT_TIME: "by rules",
    Reason.OTHER_SCHEME: "by rules",
}
_TOLD = (Severity.ERROR, Severity.WARNING)


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Explain the URL, and return the exit code. Raises :exc:`UsageError`."""
    return ended("scrapy robots explain", lambda: _explain(options, settings))


def _explain(options: argparse.Namespace, settings: BaseSettings) -> int:
    asking = Asking.of(options, settings)
    url = absolute(options.url)
    known = asking.read(options.file) if options.file else asking.ask(origin_of(url))
    explanation = None if known.file is None else explain(known.file, url, asking.agents)
    explained = _Explained(url, asking, known, explanation)
    if options.json:
        sys.stdout.write(json.dumps(_as_json(explained)) + "\n")
    else:
        _show(explained, Printer(sys.stdout), brief=options.brief)
    verdict = explained.verdict
    if known.unreachable or verdict.reason is Reason.INVALID_URL:
        return TROUBLE
    return FINE if verdict.allowed else WRONG


@dataclass(frozen=True, slots=True)
class _Explained:
    """What there is to show; no *explanation* where there is no file to follow."""

    url: str
    asking: Asking
    known: Robots
    explanation: Explanation | None

    @property
    def verdict(self) -> Verdict:
        """What holds for a crawl."""
        return self.known.verdict(self.url, self.asking.agents)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file: what became of it as a rule, and what is wrong with it."""

    number: int
    octets: bytes
    about_us: bool
    rule: ExplainedRule | None
    findings: tuple[Finding, ...]


def _lines(robots: RobotsTxt, explanation: Explanation) -> Iterator[_Line]:
    rules = {each.rule.line: each for each in explanation.rules}
    about_us = {agent.line for group in explanation.groups for agent in group}
    findings = defaultdict(list)
    for finding in robots.findings:
        if finding.severity is not Severity.OK:
            findings[finding.line].append(finding)
    for number, octets in enumerate(split_lines(robots.body, robots.dialect), 1):
        told = tuple(findings[number])
        yield _Line(number, octets, number in about_us, rules.get(number), told)


# -- for machines ------------------------------------------------------------------


def _as_json(explained: _Explained) -> dict[str, Any]:
    known, explanation = explained.known, explained.explanation
    value = {
        "url": explained.url,
        "agents": list(explained.asking.agents),
        "dialect": explained.asking.dialect.name,
        "path": explanation.path if explanation else None,
        **verdict_as_json(explained.verdict),
        **known.told(),
        "agent": explanation.agent if explanation else None,
        "groups": [],
        "lines": [],
    }
    if explanation is not None and known.file is not None:
        value["groups"] = [
            [{"name": printable(name), "line": line} for name, line in group]
            for group in explanation.groups
        ]
        value["lines"] = [_line_as_json(line) for line in _lines(known.file, explanation)]
    return value


def _line_as_json(line: _Line) -> dict[str, Any]:
    return {
        "line": line.number,
        "text": line.octets.decode("utf-8", "backslashreplace"),
        "fate": line.rule.fate.value if line.rule else None,
        "length": line.rule.length if line.rule else None,
        "findings": [
            {
                "kind": finding.kind.value,
                "severity": finding.severity.value,
                "sentence": finding.sentence,
            }
            for finding in line.findings
        ],
    }


# -- for people --------------------------------------------------------------------


def _show(explained: _Explained, printer: Printer, *, brief: bool) -> None:
    known, verdict, asking = explained.known, explained.verdict, explained.asking
    style = Style.GOOD if verdict.allowed else Style.BAD
    printer.line(printer.styled(printable(explained.url, most=None), Style.BOLD))
    printer.line(f"  answer      {printer.styled(answer(verdict), style)} to {asking.as_whom}")
    printer.line(f"  because     {verdict}")
    printer.line(f"  robots.txt  {_where(known)}")
    explanation = explained.explanation
    if explanation is None or known.file is None:
        return
    printer.line(f"  dialect     {asking.dialect.name}")
    if explanation.path is not None:
        printer.line(f"  compared    {printable(explanation.path, most=None)}")
    if label := _DECIDED_ELSEWHERE.get(verdict.reason):
        ours = explanation.verdict
        printer.line(f"  {label:<10}  {answer(ours)}; what follows is about this reading: {ours}")
    printer.line()
    lines = [
        line
        for line in _lines(known.file, explanation)
        if not brief or line.about_us or (line.rule and line.rule.matches)
    ]
    _Writer(printer, explanation, asking.dialect.precedence is Precedence.FIRST).write(lines)
    if known.file.truncated:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


def _where(known: Robots) -> str:
    name = printable(known.name if known.policy is None else known.policy.url)
    if known.policy is None:
        return name
    detail = known.policy.detail
    return f"{name}, {detail}, {known.source.value} ({span(known.age)} ago)"


class _Writer:
    """Writes lines of the file, and beside them what became of them."""

    def __init__(self, printer: Printer, explanation: Explanation, first_match: bool) -> None:
        self._printer = printer
        self._winner = explanation.winner
        self._first_match = first_match

    def write(self, lines: list[_Line]) -> None:
        """Write *lines*."""
        digits = max((len(str(line.number)) for line in lines), default=0)
        widest = max((len(printable(line.octets)) for line in lines), default=0)
        for line in lines:
            self._write(line, digits, min(widest, _WIDEST_TEXT))

    def _write(self, line: _Line, digits: int, width: int) -> None:
        decides = line.rule is not None and line.rule.fate is Fate.DECIDES
        number = str(line.number).rjust(digits)
        head = f"{'>' if decides else ' '} {self._printer.styled(number, Style.FAINT)}  "
        text = printable(line.octets)
        notes = list(self._notes(line))
        padded = text.ljust(width) if notes else text
        if decides:
            assert line.rule is not None
            padded = self._printer.styled(
                padded, Style.BAD if line.rule.rule.refuses else Style.GOOD
            )
        elif line.rule is not None and not line.rule.matches:
            padded = self._printer.styled(padded, Style.FAINT)
        first, *others = notes or [""]
        self._printer.line(f"{head}{padded}  {first}".rstrip())
        for note in others:
            self._printer.line(" " * (digits + 4 + width + 2) + note)

    def _notes(self, line: _Line) -> Iterator[str]:
        if line.about_us:
            yield "about us"
        if line.rule is not None and (note := self._fate(line.rule)):
            yield note
        for finding in line.findings:
            if finding.severity in _TOLD:
                yield f"{finding.severity.value}: {finding.sentence}"

    def _fate(self, rule: ExplainedRule) -> str:
        octets = f"{rule.length} octet{'' if rule.length == 1 else 's'}"
        winner = self._winner
        match rule.fate:
            case Fate.DECIDES:
                return f"decides: {'the first that matches' if self._first_match else octets}"
            case Fate.SHORTER:
                return f"matches, but {octets} is less than {winner.length}" if winner else ""
            case Fate.TIE:
                return f"matches, {octets}, but of equals the one that allows wins"
            case Fate.LATER:
                return (
                    f"matches, {octets}, but line {winner.rule.line} came first" if winner else ""
                )
            case Fate.ROBOTS_TXT_ITSELF:
                return "matches, but robots.txt itself is always allowed"
            case Fate.OTHER_GROUP:
                return f"would match, {octets}, but is about others"
            case Fate.NO_MATCH:
                return "does not match"
            case Fate.NOT_TRIED:
                return "was not compared: too many rules have *"
            case _:
                return ""
