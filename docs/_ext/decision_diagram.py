"""``.. decision-diagram::``: what becomes of a request, step by step, drawn as SVG.

Each answer in it is a verdict that the code gave for an example of its step, in the
default dialect. A reason that no example has stops the build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from access_table import rows as answers_by_access
from docutils import nodes
from scrapy import Request
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep import (
    RFC9309,
    Access,
    Addon,
    Origin,
    Policy,
    Reason,
    RepMiddleware,
    RobotsForbidden,
    RobotsTxt,
)
from scrapy_rep.parsers.external import ExternalRules
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.dialects import WhenUnreachable
from scrapy_rep.rep.directives.directives import Directives, HonouredDirectives
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.rules.matching import MOST_PIECES
from scrapy_rep.rep.rules.verdict import Verdict

_ORIGIN = Origin("https", "example.com", 443)
_PAGE = "https://example.com/page"
_AGENT = "ExampleBot"
# Eight in the morning, in UTC.
_NOW = 1_800_000_000.0
_HEEDED = HonouredDirectives(frozenset({Field.VISIT_TIME}), ("search",))

_REFUSING = b"User-agent: *\nDisallow: /\n"
_ALLOWING = b"User-agent: *\nAllow: /page\n"
_TOO_COSTLY = b"User-agent: *\nDisallow: /%b\n" % (b"*p" * (MOST_PIECES + 1))
_ABOUT_OTHERS = b"User-agent: Other\nDisallow: /\n"


@dataclass(frozen=True)
class Outcome:
    """How a request ends: ``allowed``, ``refused`` or ``held``; by what reason, and *when*."""

    answer: str
    reason: str
    when: str

    @classmethod
    def of(cls, verdict: Verdict | None, when: str) -> Outcome:
        """That of a request with *verdict*."""
        assert verdict is not None
        return cls("allowed" if verdict.allowed else "refused", verdict.reason.value, when)


@dataclass(frozen=True)
class Step:
    """A question, a few words on it, and the outcomes of requests that get no further."""

    question: str
    words: Sequence[str]
    outcomes: Sequence[Outcome]


# -- what the code says ----------------------------------------------------------------


def steps() -> Iterator[Step]:
    """All of them, in order."""
    crawler = get_crawler(settings_dict={"ADDONS": {Addon: 0}, "REP_STORE": "memory"})
    middleware = RepMiddleware(crawler)
    yield Step(
        "Does robots.txt apply?",
        ["Its meta, and the scheme of its URL."],
        [
            Outcome("allowed", "not asked", "meta has dont_obey_robotstxt"),
            Outcome.of(middleware.known_verdict("data:,"), "neither http, https nor ftp"),
        ],
    )
    yield Step(
        "Which origin?",
        ["Scheme, host and port of the URL."],
        [Outcome.of(middleware.known_verdict("http://host:port/"), "the URL has none")],
    )
    yield Step(
        "Is it the robots.txt itself?",
        ["It is always allowed."],
        [Outcome.of(_rules(_REFUSING).verdict(_ORIGIN.robots_url, _AGENT), "always")],
    )
    yield Step(
        "What was the answer to robots.txt?",
        ["Known from memory, the store or a fetch.", "What an answer means, the dialect says."],
        list(_by_access()),
    )
    protego = (
        ExternalRules(build_from_crawler(ProtegoRobotParser, crawler, body), RFC9309).verdict(
            _PAGE, _AGENT
        )
        for body in (_REFUSING, _ALLOWING)
    )
    refused_by_other, allowed_by_other = (
        Outcome.of(each, "ROBOTSTXT_PARSER says so") for each in protego
    )
    # The rules of a file for which no parser is left.
    unreadable = ExternalRules(None, RFC9309).verdict(_PAGE, _AGENT)
    yield Step(
        "Which parser reads the file?",
        ["ROBOTSTXT_PARSER; if that raises,", "REP_FALLBACK_PARSER, then this package."],
        [
            refused_by_other,
            Outcome.of(unreadable, "all of them raised"),
        ],
    )
    yield Step(
        "Which group applies?",
        ["Our product tokens, in order; else *."],
        [_by_rules(_ABOUT_OTHERS, "there is none")],
    )
    yield Step(
        "Which rule decides?",
        ["The longest path pattern that matches;", "of equal ones, the Allow."],
        [
            _by_rules(_REFUSING, "a Disallow"),
            _by_rules(_TOO_COSTLY, "too many rules with * to try"),
        ],
    )
    visit_time = _objection(b"User-agent: *\nVisit-time: 2000-2100\n")
    yield Step(
        "Do other directives refuse?",
        ["Only if REP_PURPOSES or REP_VISIT_TIME", "is set, and only for allowed pages."],
        [
            _objection(
                b"User-agent: *\nContent-Signal: search=no\n",
                "the site refuses all of REP_PURPOSES",
            ),
            replace(visit_time, when="REP_VISIT_TIME = refuse, at another hour"),
            replace(visit_time, answer="held", when="REP_VISIT_TIME = wait, at another hour"),
        ],
    )
    yield Step(
        "Verdict",
        ["It is sent, at the pace of the site."],
        [
            _by_rules(_ALLOWING, "an Allow"),
            _by_rules(b"User-agent: *\n", "no rule matches"),
            allowed_by_other,
        ],
    )
    yield Step(
        "Is the response reserved?",
        ["Only if REP_PAGE_RULES = obey.", "By headers, meta tags and tdmrep.json."],
        [Outcome.of(_of_reserved_response(), "it refuses all of REP_PURPOSES")],
    )


def _of_reserved_response() -> Verdict:
    settings = {"ADDONS": {Addon: 0}, "REP_STORE": "memory", "REP_PAGE_RULES": "obey"}
    middleware = RepMiddleware(get_crawler(settings_dict=settings | {"REP_PURPOSES": ["search"]}))
    response = Response(_PAGE, headers={"X-Robots-Tag": "noindex"})
    try:
        middleware.process_response(Request(_PAGE), response)
    except RobotsForbidden as forbidden:
        return forbidden.verdict
    raise AssertionError


def _by_access() -> Iterator[Outcome]:
    """What requests come to without a file, by the answers that mean it."""
    answers: dict[Access, list[str]] = {access: [] for access in Access}
    for answer, (access,) in answers_by_access([RFC9309]):
        answers[access].append(answer)
    yield _without_rules(Access.UNAVAILABLE, ", ".join(answers[Access.UNAVAILABLE]))
    yield _without_rules(Access.DISALLOWED, "by REP_STATUS_OVERRIDES, or in another dialect")
    yield Outcome("", "unreachable", ", ".join(answers[Access.UNREACHABLE]))
    for when in WhenUnreachable:
        default = " (default)" if when is RFC9309.when_unreachable else ""
        outcome = _without_rules(
            Access.UNREACHABLE, f"REP_UNREACHABLE = {when.value}{default}", when
        )
        yield replace(outcome, answer="held") if when is WhenUnreachable.DEFER else outcome


def _without_rules(
    access: Access, said: str, when: WhenUnreachable = RFC9309.when_unreachable
) -> Outcome:
    policy = replace(_policy(_rules(b"")), access=access, rules=None, when_unreachable=when)
    return Outcome.of(policy.verdict(_PAGE, _AGENT, _NOW), said)


def _by_rules(body: bytes, when: str) -> Outcome:
    return Outcome.of(_rules(body).verdict(_PAGE, _AGENT), when)


def _objection(body: bytes, when: str = "") -> Outcome:
    return Outcome.of(_policy(_rules(body)).objection(_PAGE, _AGENT, _NOW), when)


def _rules(body: bytes) -> RobotsTxt:
    return RobotsTxt.parse(body)


def _policy(robots: RobotsTxt) -> Policy:
    stored = StoredResponse(FetchResult(_ORIGIN.robots_url, 200, robots.body), _NOW, _NOW)
    return Policy(
        origin=_ORIGIN,
        access=Access.SUCCESSFUL,
        dialect=RFC9309,
        rules=robots,
        entry=CacheEntry(_ORIGIN, stored),
        stored=stored,
        until=_NOW + 60,
        robots=robots,
        directives=Directives.of(robots, _HEEDED),
    )


# -- drawing -----------------------------------------------------------------------------

_WIDTH, _LEFT, _RIGHT, _RIGHT_WIDTH = 720, 280, 330, 380
_LINE, _GAP, _PAD, _ROW = 17, 26, 12, 44
_STYLE = """\
.decision-diagram text {font: 12px sans-serif; fill: #222}
.decision-diagram .question {font-weight: bold; font-size: 14px}
.decision-diagram .when {font-size: 11px; fill: #444}
.decision-diagram .step {fill: #eef3f8; stroke: #4a6785}
.decision-diagram .allowed {fill: #e3f4e3; stroke: #2d7d2d}
.decision-diagram .refused {fill: #fbe5e5; stroke: #b02a2a}
.decision-diagram .held {fill: #fff3d6; stroke: #9a6b00}
.decision-diagram path {fill: none; stroke: #4a6785}"""


def draw(steps: Sequence[Step]) -> str:
    """The SVG of *steps*: questions from top to bottom, and to the right how requests end there."""
    drawn: list[str] = []
    top = 1
    for number, step in enumerate(steps):
        if number:
            drawn.append(
                f'<path d="M{_LEFT / 2} {top - _GAP} v{_GAP - 1}" marker-end="url(#tip)"/>'
            )
        height = max(len(step.outcomes) * _ROW, _LINE * (1 + len(step.words)) + 2 * _PAD)
        drawn += _drawn_step(number + 1, step, top, height)
        top += height + _GAP
    height = top - _GAP + 1
    return (
        f'<svg class="decision-diagram" role="img" aria-label="The steps of a decision, as listed '
        f'below" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="max-width: 100%" '
        f'xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style><defs><marker id="tip" '
        f'markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        f'<path d="M0 0 L6 3 L0 6"/></marker></defs>{"".join(drawn)}</svg>'
    )


def _drawn_step(number: int, step: Step, top: int, height: int) -> Iterator[str]:
    yield f'<rect class="step" x="1" y="{top}" width="{_LEFT}" height="{height}" rx="4"/>'
    yield _text("question", _PAD, top + _PAD + 12, f"{number}. {step.question}")
    for line, words in enumerate(step.words, 1):
        yield _text("words", _PAD, top + _PAD + 12 + line * _LINE, words)
    for row, outcome in enumerate(step.outcomes):
        y = top + row * _ROW
        if outcome.answer:
            yield f'<path d="M{_LEFT + 1} {y + 19} H{_RIGHT - 2}" marker-end="url(#tip)"/>'
            yield (
                f'<rect class="{outcome.answer}" x="{_RIGHT}" y="{y}" width="{_RIGHT_WIDTH}" '
                f'height="{_ROW - 6}" rx="4"/>'
            )
        title = f"{outcome.answer}: {outcome.reason}" if outcome.answer else outcome.reason
        yield _text("reason", _RIGHT + 10, y + 16, title)
        yield _text("when", _RIGHT + 10, y + 31, outcome.when)


def _text(kind: str, x: int, y: int, words: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


class DecisionDiagram(SphinxDirective):
    """The diagram, where pages are HTML."""

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        drawn = list(steps())
        reasons = {outcome.reason for step in drawn for outcome in step.outcomes}
        missing = sorted({reason.value for reason in Reason} - reasons)
        if missing:
            raise self.error(f"the diagram has no example of: {', '.join(missing)}")
        return [nodes.raw("", draw(drawn), format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("decision-diagram", DecisionDiagram)
    return {"version": "1", "parallel_read_safe": True}
