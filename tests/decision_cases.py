"""Every kind of policy and request that a decision may be about, and what is decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.decision import (
    Admit,
    CrawlTerms,
    Decision,
    Fetch,
    Refuse,
    RequestFacts,
    decide,
)
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.directives.directives import Directives, HonouredDirectives
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from tests.policy_examples import NOON, unreachable, with_rules

SITE = "https://example.com"
ORIGIN = Origin.of(f"{SITE}/")
AGENTS = ("Example",)
HOUR = 3600.0
MAX_WAIT = 2 * HOUR
#: Seconds from NOON, 08:00 UTC, until sites open at 08:30 and at 11:00.
SOON, LATER = 0.5 * HOUR, 3 * HOUR

_HONOURED = HonouredDirectives(
    frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME}), ("train-ai",)
)


def asking_for(records: str) -> Policy:
    """The policy of a site with *records* for everyone, which are all honoured."""
    policy = with_rules(f"User-agent: *\nDisallow: /no\n{records}\n".encode(), SITE)
    robots = policy.rules
    return replace(policy, robots=robots, directives=Directives.of(robots, _HONOURED))  # type: ignore[arg-type]


def answered(access: Access) -> Policy:
    """The policy of a site without rules, by the status of its robots.txt."""
    stored = StoredResponse(FetchResult(ORIGIN.robots_url, 404), NOON, NOON)
    policy = with_rules(b"", SITE)
    return replace(
        policy, access=access, rules=None, stored=stored, entry=CacheEntry(ORIGIN, stored)
    )


def when_unreachable(when: WhenUnreachable) -> Policy:
    """The policy of a site that does not answer until a minute after NOON."""
    return replace(unreachable(SITE), when_unreachable=when)


@dataclass(frozen=True)
class Case:
    """What is decided about a request for *path*, in short: see :func:`shown`."""

    policy: Policy | None
    path: str
    expected: str
    #: Seconds for which the request has been held, if it has been.
    held_for: float | None = None
    until_open: bool = False

    @property
    def url(self) -> str:
        return self.path if ":" in self.path else SITE + self.path

    @property
    def held_since(self) -> float | None:
        return None if self.held_for is None else NOON - self.held_for

    @property
    def terms(self) -> CrawlTerms:
        return CrawlTerms(max_wait=MAX_WAIT, until_open=self.until_open)

    @property
    def decision(self) -> Decision:
        facts = RequestFacts(self.url, AGENTS, self.held_since)
        return decide(self.policy, facts, self.terms, NOON)


def shown(decision: Decision) -> str:
    """*decision* as :attr:`Case.expected` has it."""
    if isinstance(decision, Admit):
        return "admit"
    if isinstance(decision, Refuse):
        assert not decision.verdict.allowed
        return f"refuse: {decision.verdict.reason.value}"
    if isinstance(decision, Fetch):
        return f"fetch {decision.origin}"
    assert not decision.verdict.allowed
    return f"hold {decision.until - NOON:g} s: {decision.verdict.reason.value}"


RULES = asking_for("")
PACED = asking_for("Crawl-delay: 5")
RATED = asking_for("Request-rate: 1/10")
OPEN = asking_for("Visit-time: 0700-0900")
OPENS_SOON = asking_for("Visit-time: 0830-0900")
OPENS_LATER = asking_for("Visit-time: 1100-1200")
NO_TRAINING = asking_for("Content-Signal: ai-train=no")
PACED_AND_CLOSED = asking_for("Crawl-delay: 5\nVisit-time: 0830-0900")
UNAVAILABLE = answered(Access.UNAVAILABLE)
DISALLOWED = answered(Access.DISALLOWED)
DOWN = when_unreachable(WhenUnreachable.DISALLOW)
DEFERRED = when_unreachable(WhenUnreachable.DEFER)
LET_THROUGH = when_unreachable(WhenUnreachable.ALLOW)

#: Policies by which a request for /yes is decided the same however long it has been held.
_SAME = {
    "unknown": (None, f"fetch {SITE}"),
    "rules": (RULES, "admit"),
    "paced": (PACED, "admit"),
    "rated": (RATED, "admit"),
    "open": (OPEN, "admit"),
    "purpose": (NO_TRAINING, "refuse: purpose"),
    "unavailable": (UNAVAILABLE, "admit"),
    "disallowed": (DISALLOWED, "refuse: disallowed"),
    "down": (DOWN, "refuse: unreachable"),
    "let through": (LET_THROUGH, "admit"),
}
#: Those by which a request for /no is: before anything else that the site asks for.
_REFUSING = (RULES, PACED, RATED, OPEN, OPENS_SOON, OPENS_LATER, NO_TRAINING, PACED_AND_CLOSED)
_ALL = (None, *_REFUSING, UNAVAILABLE, DISALLOWED, DOWN, DEFERRED, LET_THROUGH)
#: Not yet; for an hour; a moment, and not at all, before the end; since a later time, by a
#: clock that was set back.
_HELD_FOR = (None, HOUR, MAX_WAIT - 1, MAX_WAIT, -HOUR)


def _of_holding() -> Iterator[Case]:
    """Requests that may be held: as long as there is time left of MAX_WAIT, and no longer."""
    for held_for in _HELD_FOR:
        left = MAX_WAIT - max(held_for or 0.0, 0.0)
        for until_open in (False, True):
            down = f"hold {min(60.0, left):g} s: unreachable" if left else "refuse: unreachable"
            yield Case(DEFERRED, "/yes", down, held_for, until_open)
            soon = "refuse: visit-time"
            if until_open and left:
                soon = f"hold {min(SOON, left):g} s: visit-time"
            yield Case(OPENS_SOON, "/yes", soon, held_for, until_open)
            yield Case(PACED_AND_CLOSED, "/yes", soon, held_for, until_open)
            yield Case(OPENS_LATER, "/yes", "refuse: visit-time", held_for, until_open)


def _of_the_rest() -> Iterator[Case]:
    for held_for in _HELD_FOR:
        for until_open in (False, True):
            for policy, expected in _SAME.values():
                yield Case(policy, "/yes", expected, held_for, until_open)
            for policy in _REFUSING:
                yield Case(policy, "/no", "refuse: rule", held_for, until_open)
            for policy in _ALL:
                yield Case(policy, "/robots.txt", "admit", held_for, until_open)
            yield Case(None, "data:,", "admit", held_for, until_open)
            yield Case(None, "http:///no-host", "refuse: invalid-url", held_for, until_open)


CASES = [*_of_holding(), *_of_the_rest()]
