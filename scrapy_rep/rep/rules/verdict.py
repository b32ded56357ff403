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
    """The reason for a verdict."""

    RULE = "rule"  #: A rule of our group decides: :attr:`Verdict.rule`.
    #: Too many rules with ``*`` may match: trying them would take too long.
    MATCHING_LIMIT = "matching-limit"
    NO_RULE = "no-rule"  #: No rule of our group matches.
    NO_GROUP = "no-group"  #: The file has neither a group for us nor one for ``*``.
    ROBOTS_TXT_ITSELF = "robots-txt-itself"  #: The URL is the URL of the robots.txt.
    UNAVAILABLE = "unavailable"  #: The robots.txt is unavailable (RFC 9309 §2.3.1.3).
    UNREACHABLE = "unreachable"  #: The robots.txt is unreachable (RFC 9309 §2.3.1.4).
    DISALLOWED = "disallowed"  #: The HTTP status of the robots.txt disallows everything.
    OTHER_PARSER = "other-parser"  #: An external parser decided; the line is unknown.
    UNREADABLE = "unreadable"  #: No parser could read the robots.txt.
    INVALID_URL = "invalid-url"  #: The URL has no origin.
    OTHER_SCHEME = "other-scheme"  #: URLs of this scheme have no robots.txt.
    PURPOSE = "purpose"  #: The site refuses every purpose of the crawl: :attr:`Verdict.record`.
    #: The page itself refuses every purpose of the crawl, by a header or a meta tag, or the site
    #: does so in its tdmrep.json.
    RESERVED = "reserved"
    VISIT_TIME = "visit-time"  #: The site allows visits only at other times of the day.


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be accessed, and why.

    *rule* or *record* decided, or neither; :attr:`line` is its line. *group* contains the
    user-agent lines that make it apply to us. *merged* says that it applies to us only because
    another record, such as Crawl-delay, between our user-agent lines and others does not end
    the group (RFC 9309 §2.2.4). *sent_as* is set if the download handler may send another URL
    and that URL decided. *age* is the age of the cached robots.txt in seconds; *detail* adds to
    *reason*. All text is safe to print.
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
        """The line that decided, counted from 1; 0 if no line decided."""
        decided = self.rule or self.record
        return decided.line if decided else 0

    def __str__(self) -> str:
        answer = "allowed" if self.allowed else "disallowed"
        sent_as = f"; the request may be sent as {printable(self.sent_as)}" if self.sent_as else ""
        return f"{answer} {self._because()}{sent_as}"

    def _because(self) -> str:
        where = printable(self.origin.robots_url) if self.origin else ROBOTS_TXT[1:]
        if decided := self.rule or self.record:
            names = listed(dict.fromkeys(agent.name for agent in self.group))
            by = f'by "{decided}" (line {self.line}, group {names}) of {where}'
            if self.merged:
                by += "; a record between the user-agent lines does not end the group"
            return f"{by}; {self.detail}" if self.detail else by
        text = _SENTENCES[self.reason].format(where=where)
        return f"{text} ({self.detail})" if self.detail else text


def origin_or_verdict(url: str) -> Origin | Verdict:
    """The origin of *url*, or the verdict about a URL without an origin."""
    try:
        return Origin.of(url)
    except InvalidURL as error:
        if has_other_scheme(url):
            return Verdict(True, Reason.OTHER_SCHEME)
        return Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))


_SENTENCES = {
    Reason.MATCHING_LIMIT: (
        f"because the rules of {{where}} that may match contain more than {MOST_PIECES} *"
    ),
    Reason.NO_RULE: "because no rule for this crawler in {where} matches",
    Reason.NO_GROUP: "because {where} has no group for this crawler",
    Reason.ROBOTS_TXT_ITSELF: "because robots.txt itself is always allowed",
    Reason.UNAVAILABLE: "because {where} is unavailable",
    Reason.UNREACHABLE: "because {where} is unreachable",
    Reason.DISALLOWED: "because of the response to {where}",
    Reason.OTHER_PARSER: "by an external parser of {where}",
    Reason.UNREADABLE: "because no parser could read {where}",
    Reason.INVALID_URL: "because the URL has no robots.txt",
    Reason.OTHER_SCHEME: "because URLs of this scheme have no robots.txt",
    Reason.PURPOSE: "because {where} refuses every purpose of this crawl",
    Reason.RESERVED: "because its page rules refuse every purpose of this crawl",
    Reason.VISIT_TIME: "because {where} allows visits only at other times",
}
