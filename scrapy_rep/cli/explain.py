"""``scrapy robots explain``: why a URL is allowed or refused, line by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..rep.dialects import Precedence
from ..rep.lint.findings import Finding, Severity
from ..rep.parsing.lines import split_lines
from ..rep.rules import explain as rules
from ..rep.rules.explain import ExplainedRule, Explanation, Fate
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.rules.verdict import Reason, Verdict
from ..rep.text import plural, printable, span
from .options import AGENT, DIALECT, FILE, FRESH, Options, Settings, argument, format_of, subcommand
from .output import Printer, Records, Style, agents_json, answer, finding_json, write_json
from .sources import Answer, Robots, Session, absolute, origin_of

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
_FIELDS = ("line", "text", "fate", "length", "findings")
_ARGUMENTS = (
    argument("url", metavar="URL", help="URL to explain"),
    argument("--brief", action="store_true", help="show only the lines that matter for this URL"),
    *(AGENT, FILE, DIALECT, FRESH, format_of("csv")),
)


@subcommand("URL [options]", "explain line by line why a URL is allowed or refused", *_ARGUMENTS)
def explain(options: Options, settings: Settings) -> int:
    """Shows robots.txt line by line: which lines are about us, which rule decides
    (marked with >), which other rules match, and why they lose.

    Exit codes: 0 allowed, 1 refused, 2 error or robots.txt unreachable

    Examples:
      scrapy robots explain https://example.com/private/page
      scrapy robots explain --brief --agent ExampleBot example.com/private/page
      scrapy robots explain --file robots.txt --dialect koster1996 /private/page
    """
    session = Session(options, settings)
    url = absolute(options.url, file=options.file is not None)
    robots = session.read_file(options.file) if options.file else session.get(origin_of(url))
    found = robots.answer(url)
    file, explanation, lines = robots.file, None, list[_Line]()
    if file is not None:
        explanation = rules.explain(file, url, session.agents)
        lines = list(_lines(file, explanation))
    if options.format == "json":
        about = {"url": url, "agents": session.agents, "dialect": session.settings.dialect.name}
        write_json(about | _as_json(found, robots, explanation, lines))
    elif options.format == "csv":
        records = Records("csv", _FIELDS)
        for line in lines:
            sentences = [finding.sentence for finding in line.findings]
            records.write(line.as_json() | {"findings": sentences})
    else:
        printer = Printer()
        _show(url, robots, found.verdict, explanation, printer)
        if file is not None and explanation is not None:
            if options.brief:
                lines = [each for each in lines if each.about_us or each.matches]
            _show_lines(lines, explanation.winner, file, printer)
    return found.exit_code


class _Line(NamedTuple):
    """One line of the file: what became of it as a rule, and what is wrong with it."""

    number: int
    text: bytes
    about_us: bool
    rule: ExplainedRule | None
    findings: list[Finding]

    @property
    def matches(self) -> bool:
        return self.rule is not None and self.rule.matches

    def as_json(self) -> dict[str, Any]:
        return {
            "line": self.number,
            "text": self.text.decode("utf-8", "backslashreplace"),
            "fate": self.rule.fate.value if self.rule else None,
            "length": self.rule.length if self.rule else None,
            "findings": [finding_json(finding) for finding in self.findings],
        }


def _lines(file: RobotsTxt, explanation: Explanation) -> Iterator[_Line]:
    by_line = {each.rule.line: each for each in explanation.rules}
    about_us = {agent.line for group in explanation.groups for agent in group}
    findings = defaultdict[int, list[Finding]](list)
    for finding in file.findings:
        if finding.severity is not Severity.OK:
            findings[finding.line].append(finding)
    for line, text in enumerate(split_lines(file.body, file.dialect), 1):
        yield _Line(line, text, line in about_us, by_line.get(line), findings[line])


def _as_json(
    found: Answer, robots: Robots, explanation: Explanation | None, lines: list[_Line]
) -> dict[str, Any]:
    groups = explanation.groups if explanation else ()
    return {
        "path": explanation.path if explanation else None,
        **found.as_json(),
        **robots.as_json(),
        "agent": explanation.agent if explanation else None,
        "groups": [agents_json(group) for group in groups],
        "lines": [line.as_json() for line in lines],
    }


def _show(
    url: str, robots: Robots, verdict: Verdict, explanation: Explanation | None, printer: Printer
) -> None:
    """Write what stands above the lines."""
    printer.line(printer.styled(printable(url, most=None), Style.BOLD))
    style = Style.GOOD if verdict.allowed else Style.BAD
    answered = printer.styled(answer(verdict.allowed), style)
    printer.field("answer", f"{answered} to {robots.session.agent_names}")
    printer.field("because", str(verdict))
    where = printable(robots.result.url)
    if robots.policy is not None:
        where += f", {robots.result.detail}, {robots.source} ({span(robots.age)} ago)"
    printer.field("robots.txt", where)
    if explanation is None:
        return
    printer.field("dialect", robots.session.settings.dialect.name)
    if explanation.path is not None:
        printer.field("compared", printable(explanation.path, most=None))
    if label := _DECIDED_ELSEWHERE.get(verdict.reason):
        ours = explanation.verdict
        words = f"{answer(ours.allowed)}; the lines below explain this answer: {ours}"
        printer.field(label, words)
    printer.line()


def _show_lines(
    lines: list[_Line], winner: ExplainedRule | None, file: RobotsTxt, printer: Printer
) -> None:
    digits = max((len(str(line.number)) for line in lines), default=0)
    widest = max((len(printable(line.text)) for line in lines), default=0)
    width = min(widest, _WIDEST_TEXT)
    first_match = file.dialect.precedence is Precedence.FIRST
    for line in lines:
        mark, style = " ", None
        if line.rule is not None and line.rule.fate is Fate.DECIDES:
            mark, style = ">", Style.BAD if line.rule.rule.refuses else Style.GOOD
        elif line.rule is not None and not line.matches:
            style = Style.FAINT
        digit = printer.styled(str(line.number).rjust(digits), Style.FAINT)
        first, *others = [*_notes(line, winner, first_match)] or [""]
        text = printer.styled(printable(line.text).ljust(width if first else 0), style)
        printer.line(f"{mark} {digit}  {text}  {first}".rstrip())
        for note in others:
            printer.line(" " * (digits + 4 + width + 2) + note)
    if file.truncated:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


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
