"""``scrapy robots explain``: why a URL is allowed or refused, line by line."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import (
    Printer,
    Records,
    Style,
    agent_lines_as_json,
    answer,
    finding_as_json,
    span,
    verdict_as_json,
    write_json,
)
from scrapy_rep.cli.sources import Robots, Session, absolute, exit_code_for, origin_of
from scrapy_rep.rep.dialects import Precedence
from scrapy_rep.rep.lint.findings import Finding, Severity
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.rules.explain import ExplainedRule, Explanation, Fate, explain
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import plural, printable

# The text of a line has at most so many columns before what became of it.
_WIDEST_TEXT = 44
# The label of our own verdict where something else has decided.
_DECIDED_ELSEWHERE = {
    Reason.OTHER_PARSER: "by ours",
    Reason.PURPOSE: "by rules",
    Reason.VISIT_TIME: "by rules",
    Reason.OTHER_SCHEME: "by rules",
}
_SHOWN = (Severity.ERROR, Severity.WARNING)

_DESCRIPTION = """\
Shows robots.txt line by line: which lines are about us, which rule decides
(marked with >), which other rules match, and why they lose.

Exit codes: 0 allowed, 1 refused, 2 error or robots.txt unreachable"""
_EXAMPLES = """\
  scrapy robots explain https://example.com/private/page
  scrapy robots explain --brief --agent ExampleBot example.com/private/page
  scrapy robots explain --file robots.txt --dialect koster1996 /private/page"""
_CSV = ("line", "text", "fate", "length", "findings")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="URL to explain")
    parser.add_argument(
        "--brief", action="store_true", help="show only the lines that matter for this URL"
    )
    common.add(parser, "--agent", "--file", "--dialect", "--fresh")
    common.add_json(parser, "csv")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    session = Session.of(options, settings)
    url = absolute(options.url, file=options.file is not None)
    robots = session.read_file(options.file) if options.file else session.get(origin_of(url))
    explanation = None if robots.file is None else explain(robots.file, url, session.agents)
    verdict = robots.verdict(url, session.agents)
    explained = _Explained(url, session, robots, verdict, explanation)
    if options.format == "json":
        write_json(explained.as_json())
    elif options.format == "csv":
        Records("csv", _CSV).write(
            *(
                line.as_json() | {"findings": [finding.sentence for finding in line.findings]}
                for line in explained.lines()
            )
        )
    else:
        _show(explained, Printer(sys.stdout), brief=options.brief)
    return exit_code_for(robots, verdict)


class _Line(NamedTuple):
    """One line of the file: what became of it as a rule, and what is wrong with it."""

    number: int
    text: bytes
    about_us: bool
    rule: ExplainedRule | None
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "line": self.number,
            "text": self.text.decode("utf-8", "backslashreplace"),
            "fate": self.rule.fate.value if self.rule else None,
            "length": self.rule.length if self.rule else None,
            "findings": [finding_as_json(finding) for finding in self.findings],
        }


class _Explained(NamedTuple):
    """A URL, its robots.txt, and an explanation if there is a file to read."""

    url: str
    session: Session
    robots: Robots
    verdict: Verdict
    explanation: Explanation | None

    def lines(self) -> Iterator[_Line]:
        """The lines of the file, if there is one."""
        file, explanation = self.robots.file, self.explanation
        if file is None or explanation is None:
            return
        rules = {each.rule.line: each for each in explanation.rules}
        about_us = {agent.line for group in explanation.groups for agent in group}
        findings = defaultdict(list)
        for finding in file.findings:
            if finding.severity is not Severity.OK:
                findings[finding.line].append(finding)
        for line, text in enumerate(split_lines(file.body, file.dialect), 1):
            yield _Line(line, text, line in about_us, rules.get(line), tuple(findings[line]))

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        explanation = self.explanation
        groups = explanation.groups if explanation else ()
        return {
            "url": self.url,
            "agents": list(self.session.agents),
            "dialect": self.session.settings.dialect.name,
            "path": explanation.path if explanation else None,
            **verdict_as_json(self.verdict),
            **self.robots.as_json(),
            "agent": explanation.agent if explanation else None,
            "groups": [agent_lines_as_json(group) for group in groups],
            "lines": [line.as_json() for line in self.lines()],
        }


def _show(explained: _Explained, printer: Printer, *, brief: bool) -> None:
    file, verdict, explanation = explained.robots.file, explained.verdict, explained.explanation
    style = Style.GOOD if verdict.allowed else Style.BAD
    answered = printer.styled(answer(verdict.allowed), style)
    printer.line(printer.styled(printable(explained.url, most=None), Style.BOLD))
    printer.field("answer", f"{answered} to {explained.session.agent_names}")
    printer.field("because", str(verdict))
    printer.field("robots.txt", _where(explained.robots))
    if explanation is None or file is None:
        return
    printer.field("dialect", file.dialect.name)
    if explanation.path is not None:
        printer.field("compared", printable(explanation.path, most=None))
    if label := _DECIDED_ELSEWHERE.get(verdict.reason):
        ours = explanation.verdict
        words = f"{answer(ours.allowed)}; the lines below explain this answer: {ours}"
        printer.field(label, words)
    printer.line()
    lines = [
        line
        for line in explained.lines()
        if not brief or line.about_us or (line.rule and line.rule.matches)
    ]
    digits = max((len(str(line.number)) for line in lines), default=0)
    widest = max((len(printable(line.text)) for line in lines), default=0)
    first_match = file.dialect.precedence is Precedence.FIRST
    for line in lines:
        notes = list(_notes(line, explanation.winner, first_match))
        _write(line, notes, digits, min(widest, _WIDEST_TEXT), printer)
    if file.truncated:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


def _where(robots: Robots) -> str:
    name = printable(robots.result.url)
    if robots.policy is None:
        return name
    return f"{name}, {robots.result.detail}, {robots.source} ({span(robots.age)} ago)"


def _write(line: _Line, notes: list[str], digits: int, width: int, printer: Printer) -> None:
    rule = line.rule
    mark, style = " ", None
    if rule is not None and rule.fate is Fate.DECIDES:
        mark, style = ">", Style.BAD if rule.rule.refuses else Style.GOOD
    elif rule is not None and not rule.matches:
        style = Style.FAINT
    digit = printer.styled(str(line.number).rjust(digits), Style.FAINT)
    first, *others = notes or [""]
    text = printer.styled(printable(line.text).ljust(width if first else 0), style)
    printer.line(f"{mark} {digit}  {text}  {first}".rstrip())
    for note in others:
        printer.line(" " * (digits + 4 + width + 2) + note)


def _notes(line: _Line, winner: ExplainedRule | None, first_match: bool) -> Iterator[str]:
    if line.about_us:
        yield "about us"
    if line.rule is not None and (note := _fate(line.rule, winner, first_match)):
        yield note
    for finding in line.findings:
        if finding.severity in _SHOWN:
            yield f"{finding.severity.value}: {finding.sentence}"


def _fate(rule: ExplainedRule, winner: ExplainedRule | None, first_match: bool) -> str:
    size = plural(rule.length, "byte")
    length, line = (winner.length, winner.rule.line) if winner else (0, 0)
    return {
        Fate.DECIDES: f"decides: {'first rule that matches' if first_match else size}",
        Fate.SHORTER: f"matches, but {size} is less than {length}",
        Fate.TIE: f"matches, {size}, but with equal lengths Allow wins",
        Fate.LATER: f"matches, {size}, but line {line} comes first",
        Fate.ROBOTS_TXT_ITSELF: "matches, but robots.txt itself is always allowed",
        Fate.OTHER_GROUP: f"would match, {size}, but is about others",
        Fate.NO_MATCH: "does not match",
        Fate.NOT_TRIED: "not compared: too many rules contain *",
    }.get(rule.fate, "")


EXPLAIN = Subcommand(
    "explain",
    "URL [options]",
    "explain line by line why a URL is allowed or refused",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
