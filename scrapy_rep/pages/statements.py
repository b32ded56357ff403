"""What a site states about the use of a page, and the verdict for each use.

All restrictions add up, whatever source they are from: draft-illyes-repext, "the implementor MUST
apply the union of all rules"; draft-ietf-aipref-vocab, "If any statement of preference indicates
that the usage is disallowed, the result is that the usage is disallowed". Only a TDM reservation
may be lifted by a more specific source: the TDM Reservation Protocol, "Processing priority".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from scrapy_rep.rep.directives.purposes import PURPOSES, purposes_of

PAGE_RULES = "rep_page_rules"  #: Request meta key: the :class:`PageRules` of the response.
FOLLOW = "follow"  #: The use of a page's links: to request them.
#: The uses that a page's rules are evaluated for. All but "follow" are purposes of a crawl.
USES = (*PURPOSES, FOLLOW)

_SEARCH = purposes_of("search")
_AI_TRAIN = purposes_of("ai-train")

#: The uses that each rule of Robots-Tag, X-Robots-Tag and meta robots refuses.
#: ``docs/purposes.rst`` says why; a test compares the two.
REFUSED_BY_RULE: Mapping[str, frozenset[str]] = {
    "noindex": _SEARCH,
    "none": _SEARCH | {FOLLOW},
    "unavailable_after": _SEARCH,
    "nosnippet": frozenset({"snippet"}),
    "noimageindex": frozenset({"images"}),
    "noarchive": frozenset({"archive"}),
    "nocache": frozenset({"archive"}),
    "nofollow": frozenset({FOLLOW}),
    "noai": _AI_TRAIN,
    "noimageai": frozenset({"ai-train-images"}),
}
#: The uses that rules with a value refuse when they have this value.
REFUSED_BY_VALUE: Mapping[tuple[str, str], frozenset[str]] = {
    ("max-snippet", "0"): frozenset({"snippet"}),
    ("max-image-preview", "none"): frozenset({"images"}),
}
#: The rules that have a value.
RULES_WITH_VALUE = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
#: Rules that restrict nothing, told apart from product tokens.
PERMISSIVE_RULES = frozenset({"all", "index", "follow"})
#: The uses that a TDM reservation refuses: training is text and data mining.
REFUSED_BY_TDM = _AI_TRAIN | {"tdm"}


class Source(Enum):
    """Where a statement stands, from the least specific to the most specific."""

    ROBOTS_TXT = "robots.txt"
    TDM_FILE = "tdmrep.json"
    HEADER = "header"
    META = "meta"


@dataclass(frozen=True, slots=True)
class Statement:
    """One rule as a site states it.

    *text* is the header, tag or line, safe to print. *uses* are those that it *allows*, or else
    refuses; it is about none if we do not know the rule or its value. *since* is the time from
    which it holds, in seconds since the epoch, ``None`` for always. *is_tdm*: of several TDM
    reservations, only the one from the most specific source holds.
    """

    source: Source
    text: str
    uses: frozenset[str] = frozenset()
    allows: bool = False
    since: float | None = None
    is_tdm: bool = False

    def __str__(self) -> str:
        return self.text


MAX_URL = 2048  #: A longer URL of a TDM policy is not kept.


class TdmPolicy(NamedTuple):
    """The URL of a TDM policy that a source names, as the site wrote it."""

    url: str

    @classmethod
    def read(cls, value: object) -> Iterator[TdmPolicy]:
        """The policy in *value*, unless that cannot be a URL."""
        url = value.strip() if isinstance(value, str) else ""
        if 0 < len(url) <= MAX_URL:
            yield cls(url)


Stated = Statement | TdmPolicy


@dataclass(frozen=True, slots=True)
class UseVerdict:
    """Whether a page may be put to a *use*, and the statement *by* which that is decided.

    A use that no statement is about is allowed, by ``None``.
    """

    use: str
    allowed: bool
    by: Statement | None = None

    def __str__(self) -> str:
        if self.by is None:
            return f"{self.use}: allowed, because nothing is stated about it"
        return f"{self.use}: {'allowed' if self.allowed else 'refused'} by {self.by}"


@dataclass(frozen=True, slots=True)
class PageRules:
    """The rules of one page.

    *statements* are all that hold for us, in the order in which they were found. *verdicts* has
    one verdict for each use. *tdm_policy* is the URL of the TDM policy, untrusted text, if TDM
    rights are reserved and the site names one.
    """

    statements: tuple[Statement, ...]
    verdicts: Mapping[str, UseVerdict]
    tdm_policy: str | None = None

    def verdict(self, use: str) -> UseVerdict:
        """The verdict for *use*."""
        return self.verdicts.get(use) or UseVerdict(use, True)

    def allowed(self, use: str) -> bool:
        """Whether the page may be put to *use*."""
        return self.verdict(use).allowed

    @property
    def refused(self) -> tuple[str, ...]:
        """The uses that are refused."""
        return tuple(use for use, verdict in self.verdicts.items() if not verdict.allowed)


def evaluate(stated: Iterable[Stated], now: float, uses: Sequence[str] = USES) -> PageRules:
    """The rules of a page for *uses* at time *now*, in seconds since the epoch.

    *stated* are from the least specific source to the most specific one.
    """
    found = tuple(stated)
    statements = tuple(dict.fromkeys(each for each in found if isinstance(each, Statement)))
    policy = next((each.url for each in reversed(found) if isinstance(each, TdmPolicy)), None)
    # "At every step, the absence of tdm-reservation MUST not reset current values."
    tdm_sources = [each.source for each in statements if each.is_tdm]
    tdm = max(tdm_sources, key=list(Source).index, default=None)
    holding = [
        each
        for each in statements
        if (each.since is None or each.since <= now) and (not each.is_tdm or each.source is tdm)
    ]
    reserved = any(each.is_tdm and not each.allows for each in holding)
    verdicts = {use: _verdict(use, holding) for use in uses}
    return PageRules(statements, verdicts, policy if reserved else None)


def _verdict(use: str, holding: Iterable[Statement]) -> UseVerdict:
    about = (each for each in holding if use in each.uses)
    # The first one that refuses, else the first one.
    by = min(about, key=attrgetter("allows"), default=None)
    return UseVerdict(use, by is None or by.allows, by)
