"""Verdicts and times in few words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy_rep.rep.text import printable
from scrapy_rep.rep.verdict import AgentLine, Reason, Verdict

_UNITS = (("d", 86400), ("h", 3600), ("min", 60))
_BECAUSE = {
    Reason.MATCHING_LIMIT: "too many rules to try",
    Reason.NO_RULE: "no rule matches",
    Reason.NO_GROUP: "no group for us",
    Reason.ROBOTS_TXT_ITSELF: "robots.txt itself",
    Reason.UNAVAILABLE: "unavailable",
    Reason.UNREACHABLE: "unreachable",
    Reason.DISALLOWED: "its answer refuses all",
    Reason.OTHER_PARSER: "by another parser",
    Reason.UNREADABLE: "no parser can read it",
    Reason.INVALID_URL: "no URL",
    Reason.OTHER_SCHEME: "no robots.txt for this scheme",
    Reason.VISIT_TIME: "visits at other times",
}


def span(seconds: float | None) -> str:
    """*seconds* in the largest unit that there are two of.

    >>> span(86400), span(90.4), span(None)
    ('24 h', '90 s', '-')
    """
    if seconds is None:
        return "-"
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def number(count: int, what: str) -> str:
    """*count* and *what* is counted.

    >>> number(1, "line"), number(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def answer(verdict: Verdict) -> str:
    """The answer in a word."""
    return "allowed" if verdict.allowed else "refused"


def because(verdict: Verdict) -> str:
    """What *verdict* rests on: the line that decides, or why none does. Safe to print."""
    if decided := verdict.rule or verdict.record:
        return str(decided)
    words = _BECAUSE[verdict.reason]
    return f"{words} ({verdict.detail})" if verdict.detail else words


def names(group: Iterable[AgentLine]) -> str:
    """Whom *group* names, safe to print; "-" where there is none."""
    return ", ".join(dict.fromkeys(printable(agent.name) for agent in group)) or "-"


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The answer, and what it rests on."""
    decided = verdict.rule or verdict.record
    return {
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "line": verdict.line or None,
        "rule": str(decided) if decided else None,
        "group": [{"name": printable(name), "line": line} for name, line in verdict.group],
        "detail": verdict.detail,
    }
