"""The file ``/.well-known/tdmrep.json``: which paths of an origin are reserved.

TDM Reservation Protocol, "TDM File on the Origin Server": "an array of JSON objects; each
object represents a rule". "The most specific match is the first in sequence." ``location`` is
matched as a path of robots.txt is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.pages.statements import REFUSED_BY_TDM, Source, Stated, Statement, TdmPolicy
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.directives.purposes import canonical_purpose
from scrapy_rep.rep.parsing.agents import Agents
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin, canonical_patterns, path_to_match
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.matching import MOST_PIECES, pattern_matches
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import PageRuleMode

if TYPE_CHECKING:
    from scrapy_rep.settings import RepSettings
    from scrapy_rep.tokens import AgentTokens

TDMREP_JSON = "/.well-known/tdmrep.json"  #: Where the file of an origin is.
MAX_RULES = 1000  #: Rules of one file that are read; the documents know of a handful.
# A boolean in JSON is a mistake that leaves no doubt; so is a number in quotes.
_ALLOWS = {"0": True, "1": False, "false": True, "true": False}


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


class TdmRule(NamedTuple):
    """One rule of the file: its location in the form that is compared, and what it states."""

    pattern: str
    stated: tuple[Stated, ...]


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

    def stated(self, url: str) -> tuple[Stated, ...]:
        """What the first rule whose location matches *url*, absolute or a path, states."""
        try:
            path = path_to_match(url, RFC9309)
        except InvalidURL:
            return ()
        return next((each.stated for each in self.rules if pattern_matches(each.pattern, path)), ())


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
            yield TdmRule(pattern, tuple(_stated(number, location, value)))


def _stated(number: int, location: str, value: dict[str, object]) -> Iterator[Stated]:
    allows = _ALLOWS.get(str(value["tdm-reservation"]).lower())
    # If it is invalid, it is unset.
    if allows is not None:
        name = f"tdmrep.json, rule {number} for {printable(location)}: tdm-reservation"
        text = f"{name}: {int(not allows)}"
        yield Statement(Source.TDM_FILE, text, REFUSED_BY_TDM, allows, is_tdm=True)
    yield from TdmPolicy.read(value.get("tdm-policy"))


def asks_for_tdm_file(settings: RepSettings) -> bool:
    """Whether the crawl fetches tdmrep.json files."""
    if settings.page_rules is PageRuleMode.OFF:
        return False
    if settings.tdm_file is not None:
        return settings.tdm_file
    return not REFUSED_BY_TDM.isdisjoint(map(canonical_purpose, settings.honoured.purposes))


class TdmFiles:
    """The tdmrep.json files of one crawl; *usable* and *get* are those of its policy cache.

    A file that robots.txt refuses is not fetched. "Failure to provide access to such a
    representation implies that the origin server does not implement this protocol."
    """

    def __init__(
        self,
        usable: Callable[[Origin, Request], Policy | None],
        get: Callable[[Origin, Request], Deferred[Policy]],
        tokens: AgentTokens,
    ) -> None:
        self._usable = usable
        self._get = get
        self._tokens = tokens

    def knows(self, policy: Policy, request: Request) -> bool:
        """Whether its file need not be fetched first for *request*, by its *policy*."""
        origin = self._origin(policy, request)
        return origin is None or self._usable(origin, request) is not None

    def get(self, policy: Policy, request: Request) -> Deferred[Policy]:
        """Fires when the file of the site of *policy* is known, fetched for *request*.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        origin = self._origin(policy, request)
        return succeed(policy) if origin is None else self._get(origin, request)

    def stated(self, policy: Policy | None, request: Request) -> tuple[Stated, ...]:
        """What the file of the site of *policy* states about *request*."""
        origin = self._origin(policy, request)
        found = self._usable(origin, request) if origin is not None else None
        file = found.rules if found is not None else None
        return file.stated(request.url) if isinstance(file, TdmFile) else ()

    def _origin(self, policy: Policy | None, request: Request) -> TdmOrigin | None:
        """``None`` where the file is not to be fetched."""
        if policy is None:
            return None
        origin = TdmOrigin.beside(policy.origin)
        allowed = policy.allowed(origin.robots_url, self._tokens.of(request))
        return origin if allowed else None
