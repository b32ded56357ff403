"""``scrapy robots explain``: why a URL is allowed or refused, line by line."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FAILED, FINE, WRONG
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import (
    Printer,
    Style,
    agent_lines_as_json,
    answer,
    finding_as_json,
    span,
    verdict_as_json,
    write_json,
)
from scrapy_rep.cli.sources import Robots, Session, absolute, origin_of
from scrapy_rep.rep.dialects import Precedence
from scrapy_rep.rep.lint.findings import Finding, Severity
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.rules.explain import ExplainedRule, Explanation, Fate, explain
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

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
Shows the robots.txt with line numbers, and what became of each line when the URL
was asked about: which user-agent lines are about us, which rule decides (marked
with > and in colour), which others match and how many bytes of them, and why
they lost:

  - another one that matches has more bytes (RFC 9309, section 2.2.2);
  - of as many bytes, an allow wins over a disallow;
  - an earlier one says the same, or, in the dialects koster1996 and koster1994,
    is the first that matches;
  - the group is about others.

A line that is ignored, or does something else than it seems to, says why: see
"scrapy robots lint".

The robots.txt is fetched as a crawl would, or taken from the store, as "scrapy
robots check" does. It is read by scrapy-rep in any case; where the project has
another ROBOTSTXT_PARSER, what that says stands beside it. URL may be a path that
starts with / where there is a --file; without a scheme, https is meant.

--json writes one object: url, agents, dialect, path (as it is compared), what
"check" says of the URL, agent (whose groups count), groups (lists of user-agent
lines), and lines, each with line, text, fate (null for a line that is no rule of a
group; decides, shorter, tie, later, robots-txt-itself, other-group, no-match,
not-about-us, not-tried), length in bytes of what matches, and findings.

Exit codes: 0 allowed; 1 refused; 2 robots.txt could not be fetched, or usage.

examples:
  scrapy robots explain https://example.com/private/page
  scrapy robots explain --brief --agent ExampleBot example.com/private/page
  scrapy robots explain --file robots.txt --dialect koster1996 /private/page"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="what to explain")
    parser.add_argument(
        "--brief", action="store_true", help="leave out lines that have no part in it"
    )
    common.add_all(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    session = Session.of(options, settings)
    url = absolute(options.url)
    robots = session.read_file(options.file) if options.file else session.get(origin_of(url))
    explanation = None if robots.file is None else explain(robots.file, url, session.agents)
    explained = _Explained(url, session, robots, explanation)
    if options.json:
        write_json(_as_json(explained))
    else:
        _show(explained, Printer(sys.stdout), brief=options.brief)
    verdict = explained.verdict
    if robots.unreachable or verdict.reason is Reason.INVALID_URL:
        return FAILED
    return FINE if verdict.allowed else WRONG


@dataclass(frozen=True, slots=True)
class _Explained:
    """A URL, its robots.txt, and an explanation if there is a file to read."""

    url: str
    session: Session
    robots: Robots
    explanation: Explanation | None

    @property
    def verdict(self) -> Verdict:
        """What applies to a crawl."""
        return self.robots.verdict(self.url, self.session.agents)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file: what became of it as a rule, and what is wrong with it."""

    number: int
    text: bytes
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
    for number, text in enumerate(split_lines(robots.body, robots.dialect), 1):
        found = tuple(findings[number])
        yield _Line(number, text, number in about_us, rules.get(number), found)


def _as_json(explained: _Explained) -> dict[str, Any]:
    file, explanation = explained.robots.file, explained.explanation
    value = {
        "url": explained.url,
        "agents": list(explained.session.agents),
        "dialect": explained.session.dialect.name,
        "path": explanation.path if explanation else None,
        **verdict_as_json(explained.verdict),
        **explained.robots.as_json(),
        "agent": explanation.agent if explanation else None,
        "groups": [],
        "lines": [],
    }
    if explanation is not None and file is not None:
        value["groups"] = [agent_lines_as_json(group) for group in explanation.groups]
        value["lines"] = [_line_as_json(line) for line in _lines(file, explanation)]
    return value


def _line_as_json(line: _Line) -> dict[str, Any]:
    return {
        "line": line.number,
        "text": line.text.decode("utf-8", "backslashreplace"),
        "fate": line.rule.fate.value if line.rule else None,
        "length": line.rule.length if line.rule else None,
        "findings": [finding_as_json(finding) for finding in line.findings],
    }


# -- text ----------------------------------------------------------------------------


def _show(explained: _Explained, printer: Printer, *, brief: bool) -> None:
    file, verdict, session = explained.robots.file, explained.verdict, explained.session
    style = Style.GOOD if verdict.allowed else Style.BAD
    answered = printer.styled(answer(verdict.allowed), style)
    printer.line(printer.styled(printable(explained.url, most=None), Style.BOLD))
    printer.line(f"  answer      {answered} to {session.agent_names}")
    printer.line(f"  because     {verdict}")
    printer.line(f"  robots.txt  {_where(explained.robots)}")
    explanation = explained.explanation
    if explanation is None or file is None:
        return
    printer.line(f"  dialect     {session.dialect.name}")
    if explanation.path is not None:
        printer.line(f"  compared    {printable(explanation.path, most=None)}")
    if label := _DECIDED_ELSEWHERE.get(verdict.reason):
        ours = explanation.verdict
        words = f"{answer(ours.allowed)}; what follows is about this reading: {ours}"
        printer.line(f"  {label:<10}  {words}")
    printer.line()
    lines = [
        line
        for line in _lines(file, explanation)
        if not brief or line.about_us or (line.rule and line.rule.matches)
    ]
    _Writer(printer, explanation, session.dialect.precedence is Precedence.FIRST).write(lines)
    if file.truncated:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


def _where(robots: Robots) -> str:
    name = printable(robots.url)
    if robots.policy is None:
        return name
    return f"{name}, {robots.policy.detail}, {robots.source.value} ({span(robots.age)} ago)"


class _Writer:
    """Writes lines of the file, and beside each what became of it."""

    def __init__(self, printer: Printer, explanation: Explanation, first_match: bool) -> None:
        self._printer = printer
        self._winner = explanation.winner
        self._first_match = first_match

    def write(self, lines: list[_Line]) -> None:
        """Write *lines*."""
        digits = max((len(str(line.number)) for line in lines), default=0)
        widest = max((len(printable(line.text)) for line in lines), default=0)
        for line in lines:
            self._write(line, digits, min(widest, _WIDEST_TEXT))

    def _write(self, line: _Line, digits: int, width: int) -> None:
        rule = line.rule
        decides = rule is not None and rule.fate is Fate.DECIDES
        number = str(line.number).rjust(digits)
        head = f"{'>' if decides else ' '} {self._printer.styled(number, Style.FAINT)}  "
        text = printable(line.text)
        first, *others = list(self._notes(line)) or [""]
        padded = text.ljust(width) if first else text
        if rule is not None and decides:
            padded = self._printer.styled(padded, Style.BAD if rule.rule.refuses else Style.GOOD)
        elif rule is not None and not rule.matches:
            padded = self._printer.styled(padded, Style.FAINT)
        self._printer.line(f"{head}{padded}  {first}".rstrip())
        for note in others:
            self._printer.line(" " * (digits + 4 + width + 2) + note)

    def _notes(self, line: _Line) -> Iterator[str]:
        if line.about_us:
            yield "about us"
        if line.rule is not None and (note := self._fate(line.rule)):
            yield note
        for finding in line.findings:
            if finding.severity in _SHOWN:
                yield f"{finding.severity.value}: {finding.sentence}"

    def _fate(self, rule: ExplainedRule) -> str:
        size = f"{rule.length} byte{'' if rule.length == 1 else 's'}"
        length, line = (self._winner.length, self._winner.rule.line) if self._winner else (0, 0)
        return {
            Fate.DECIDES: f"decides: {'the first that matches' if self._first_match else size}",
            Fate.SHORTER: f"matches, but {size} is less than {length}",
            Fate.TIE: f"matches, {size}, but of equals the one that allows wins",
            Fate.LATER: f"matches, {size}, but line {line} came first",
            Fate.ROBOTS_TXT_ITSELF: "matches, but robots.txt itself is always allowed",
            Fate.OTHER_GROUP: f"would match, {size}, but is about others",
            Fate.NO_MATCH: "does not match",
            Fate.NOT_TRIED: "was not compared: too many rules have *",
        }.get(rule.fate, "")


EXPLAIN = Subcommand(
    "explain",
    "URL [options]",
    "why a URL is allowed or refused, line by line",
    _DESCRIPTION,
    _add_options,
    _run,
)
