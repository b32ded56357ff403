"""The file ``/.well-known/tdmrep.json``: which paths of an origin are reserved.

Here may live: the syntax of the file, and which of its rules is about a URL. Here may not
live: how it is fetched.

TDM Reservation Protocol, "TDM File on the Origin Server": "an array of JSON objects; each
object represents a rule". "The most specific match is the first in sequence." ``location`` is
matched as a path of robots.txt is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from scrapy_rep.pages.statements import REFUSED_BY_TDM, Source, Statement, as_text, tdm_policy
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.agents import Agents
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin, canonical_patterns, path_to_match
from scrapy_rep.rep.rules.matching import MOST_PIECES, pattern_matches
from scrapy_rep.rep.rules.verdict import Reason, Verdict

#: Where the file of an origin is.
TDMREP_JSON = "/.well-known/tdmrep.json"
#: Rules of one file that are read; the documents know of a handful.
MAX_RULES = 1000


class TdmOrigin(Origin):
    """An origin whose file is its tdmrep.json, for what fetches and keeps robots.txt files."""

    __slots__ = ()
    stats = "tdmrep"
    refuses = False

    @classmethod
    def beside(cls, origin: Origin) -> TdmOrigin:
        """That of the same site as *origin*."""
        return cls(origin.scheme, origin.host, origin.port)

    @property
    def robots_url(self) -> str:
        """The URL of the file."""
        return str(self)

    def __str__(self) -> str:
        return f"{super().__str__()}{TDMREP_JSON}"


@dataclass(frozen=True, slots=True)
class TdmRule:
    """One rule of the file: *number* counts from 1, *pattern* is *location* in comparable form.

    *reserved* is ``None`` where tdm-reservation is invalid, and so unset.
    """

    number: int
    location: str
    pattern: str = field(repr=False)
    reserved: bool | None
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class TdmFile:
    """What a tdmrep.json says. *problem* is why it says nothing, empty if it says something."""

    rules: tuple[TdmRule, ...] = ()
    problem: str = ""

    @classmethod
    def parse(cls, body: bytes) -> TdmFile:
        """The rules in *body*, the bytes of the file. Never raises."""
        try:
            # As utf-8-sig, or a byte order mark would make the file invalid.
            values = json.loads(body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return cls(problem="It is not valid JSON in UTF-8.")
        if not isinstance(values, list):
            return cls(problem="It is not an array of rules.")
        return cls(tuple(_rules(values[:MAX_RULES])))

    def allowed(self, url: str, agents: Agents) -> bool:
        """True: the file says nothing about access."""
        return True

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The same."""
        return Verdict(True, Reason.NO_RULE)

    def rule_for(self, url: str) -> TdmRule | None:
        """The first rule whose location matches *url*, an absolute URL or a path."""
        try:
            path = path_to_match(url, RFC9309)
        except InvalidURL:
            return None
        return next((rule for rule in self.rules if pattern_matches(rule.pattern, path)), None)

    def statement(self, url: str) -> Statement | None:
        """What the file states about *url*."""
        rule = self.rule_for(url)
        if rule is None or rule.reserved is None:
            return None
        name = f"tdmrep.json, rule {rule.number} for {rule.location}"
        text = as_text(name, f"tdm-reservation: {int(rule.reserved)}")
        return Statement(Source.TDM_FILE, text, REFUSED_BY_TDM, not rule.reserved, is_tdm=True)

    def policy(self, url: str) -> str | None:
        """The URL of the TDM policy that the file names for *url*."""
        rule = self.rule_for(url)
        return rule.policy if rule is not None else None


def _rules(values: list[object]) -> Iterator[TdmRule]:
    """The rules among *values*, up to a number of ``*`` that takes a bounded time to match."""
    pieces = 0
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            continue
        location = value.get("location")
        # "In each rule, location and tdm-reservation are mandatory."
        if not isinstance(location, str) or "tdm-reservation" not in value:
            continue
        pieces += location.count("*")
        if pieces > MOST_PIECES:
            return
        raw = location.encode("utf-8", "surrogatepass").translate(None, b"\r\n").strip()
        (pattern,) = canonical_patterns([raw], RFC9309)
        # "Disallow:" without a value is no rule, and so it is here.
        if pattern:
            policy = value.get("tdm-policy")
            yield TdmRule(
                number,
                location,
                pattern,
                _reserved(value["tdm-reservation"]),
                tdm_policy(policy) if isinstance(policy, str) else None,
            )


def _reserved(value: object) -> bool | None:
    """A boolean in JSON is a mistake that leaves no doubt; so is a number in quotes."""
    return {"0": False, "1": True, "false": False, "true": True}.get(str(value).lower())
