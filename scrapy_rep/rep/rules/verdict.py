"""Whether a URL may be accessed, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..parsing.agents import AgentLine
from ..parsing.records import OtherRecord
from ..parsing.urls import ROBOTS_TXT, InvalidURL, Origin, has_other_scheme
from ..text import listed, printable
from .matching import MOST_PIECES, Rule


class Reason(Enum):
    """Why a verdict is what it is."""

    #: A rule of our group decides: :attr:`Verdict.rule`.
    RULE = "rule"
    #: It would take too long to try all rules with ``*`` that may match.
    MATCHING_LIMIT = "matching-limit"
    #: Our group has no rule that matches.
    NO_RULE = "no-rule"
    #: No group is about us or everyone.
    NO_GROUP = "no-group"
    #: The URL is that of the robots.txt.
    ROBOTS_TXT_ITSELF = "robots-txt-itself"
    #: The robots.txt is unavailable (RFC 9309 §2.3.1.3).
    UNAVAILABLE = "unavailable"
    #: The robots.txt is unreachable (RFC 9309 §2.3.1.4).
    UNREACHABLE = "unreachable"
    #: The HTTP status of the robots.txt disallows everything.
    DISALLOWED = "disallowed"
    #: An external parser decided; the line is unknown.
    OTHER_PARSER = "other-parser"
    #: There is a robots.txt that no parser could read.
    UNREADABLE = "unreadable"
    #: The URL has no origin.
    INVALID_URL = "invalid-url"
    #: URLs of this scheme have no robots.txt.
    OTHER_SCHEME = "other-scheme"
    #: The site refuses every purpose of the crawl: :attr:`Verdict.record`.
    PURPOSE = "purpose"
    #: The site asks to be visited at other times of the day.
    VISIT_TIME = "visit-time"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be accessed, and why.

    *rule* or *record* decided, or neither; *line* is its line (from 1). *group* has the
    user-agent lines by which it is about us. *merged* says that it is about us only because
    another record, such as Crawl-delay, between our user-agent lines and others does not end
    the group (RFC 9309 §2.2.4). *sent_as* is set if the download handler may send another URL,
    which decided. *age* is that of the copy of robots.txt in seconds; *detail* adds to *reason*
    for people. All text is safe to print.
    """

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    group: tuple[AgentLine, ...] = ()
    origin: Origin | None = None
    age: float | None = None
    detail: str = ""
    merged: bool = False
    record: OtherRecord | None = None
    sent_as: str = ""

    @property
    def line(self) -> int:
        """The line that decided, from 1; 0 where no line did."""
        decided = self.rule or self.record
        return decided.line if decided else 0

    def __str__(self) -> str:
        answer = "allowed" if self.allowed else "disallowed"
        sent_as = f"; it may be sent as {printable(self.sent_as)}" if self.sent_as else ""
        return f"{answer} {self._because()}{sent_as}"

    def _because(self) -> str:
        where = printable(self.origin.robots_url) if self.origin else ROBOTS_TXT[1:]
        if decided := self.rule or self.record:
            names = listed(dict.fromkeys(agent.name for agent in self.group))
            by = f'by "{decided}" (line {self.line}, group {names}) of {where}'
            return "; ".join(filter(None, (by, _MERGED if self.merged else "", self.detail)))
        text = _SENTENCES[self.reason].format(where=where)
        return f"{text} ({self.detail})" if self.detail else text


def origin_or_verdict(url: str) -> Origin | Verdict:
    """The origin of *url*, or the verdict if it has none."""
    try:
        return Origin.of(url)
    except InvalidURL as error:
        if has_other_scheme(url):
            return Verdict(True, Reason.OTHER_SCHEME)
        return Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))


_MERGED = "a record between this group's user-agent lines does not end it"

_SENTENCES = {
    Reason.MATCHING_LIMIT: (
        f"because rules of {{where}} with more than {MOST_PIECES} * may match the URL"
    ),
    Reason.NO_RULE: "because no rule of {where} for us matches",
    Reason.NO_GROUP: "because {where} has no group for us",
    Reason.ROBOTS_TXT_ITSELF: "because robots.txt itself always is",
    Reason.UNAVAILABLE: "because {where} is unavailable",
    Reason.UNREACHABLE: "because {where} is unreachable",
    Reason.DISALLOWED: "because of how {where} was answered",
    Reason.OTHER_PARSER: "by another parser's reading of {where}",
    Reason.UNREADABLE: "because no parser could read {where}",
    Reason.INVALID_URL: "because the URL has no robots.txt",
    Reason.OTHER_SCHEME: "because URLs of this scheme have no robots.txt",
    Reason.PURPOSE: "because {where} refuses every purpose of this crawl",
    Reason.VISIT_TIME: "because {where} asks for visits at other times",
}
