"""What to do with one request: the only place where that is decided.

Here may live: one pure function of a policy, the facts of a request and the time, and its
four answers. Here may not live: clocks, waiting, and the length of a delay between requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from .dialects import RFC9309, Dialect
from .parsing.agents import Agents
from .parsing.urls import Origin, is_robots_txt
from .policy import Policy
from .rules.verdict import Reason, Verdict, origin_or_verdict


class Why(Enum):
    """Why a request is held."""

    #: The robots.txt of its origin is unreachable, and the dialect or REP_UNREACHABLE
    #: say that requests wait for it.
    UNREACHABLE = "unreachable"
    #: The site asks to be visited at another time of the day.
    VISIT_TIME = "visit-time"


@dataclass(frozen=True, slots=True)
class CrawlTerms:
    """The settings of a crawl, as far as they decide about a request.

    *max_wait* is in seconds: no request is held for longer, whatever for. With *until_open*,
    a request outside of a site's Visit-time is held until the site opens; without, it is
    refused. *dialect* says which URL is that of a robots.txt.
    """

    dialect: Dialect = RFC9309
    max_wait: float = 3600.0
    until_open: bool = False


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What counts of a request. *held_since* is in seconds since the epoch.

    *origin* is as :func:`~.verdict.origin_or_verdict` gives it for *url*.
    """

    url: str
    agents: Agents
    origin: Origin | Verdict
    held_since: float | None = None

    @classmethod
    def of(cls, url: str, agents: Agents, held_since: float | None = None) -> RequestFacts:
        """The same, with the origin that *url* has."""
        return cls(url, agents, origin_or_verdict(url), held_since)


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the request go on; at a pace, if the site asks for a delay."""

    asks_for_delay: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the request."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the request until a time, in seconds since the epoch, and decide again."""

    until: float
    why: Why
    #: What the request comes to if it cannot be held.
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get the policy of the origin first, and decide again."""

    origin: Origin


Decision: TypeAlias = Admit | Refuse | Hold | Fetch


def decide(policy: Policy | None, request: RequestFacts, terms: CrawlTerms, now: float) -> Decision:
    """What to do with *request* at time *now*, by the *policy* of its origin.

    *policy* is one that may be used now, ``None`` where none is known. Whether it has
    expired is not asked here: one that was just fetched may be used once in any case.
    """
    if policy is None:
        return _decide_without_policy(request, terms)
    url, agents = request.url, request.agents
    if not policy.allowed(url, agents):
        verdict = policy.verdict(url, agents, now)
        if policy.defers:
            return _hold(policy.until, Why.UNREACHABLE, verdict, request, terms, now)
        return Refuse(verdict)
    objection = policy.objection(url, agents, now)
    if objection is None:
        return Admit(policy.pace(agents).delay(now) > 0)
    if objection.reason is Reason.VISIT_TIME and terms.until_open:
        seconds = policy.pace(agents).seconds_until_open(now)
        # A hold that ends before the site opens would end with a refusal.
        if seconds <= terms.max_wait:
            return _hold(now + seconds, Why.VISIT_TIME, objection, request, terms, now)
    return Refuse(objection)


def verdict_now(policy: Policy, url: str, agents: Agents, terms: CrawlTerms, now: float) -> Verdict:
    """What a request for *url* that *agents* make *now* comes to, by all that a crawl obeys.

    A request that would be held until the site opens counts as allowed; one that would be
    held while its origin is unreachable, as refused.
    """
    decision = decide(policy, RequestFacts(url, agents, policy.origin), terms, now)
    if isinstance(decision, Refuse):
        return decision.verdict
    if isinstance(decision, Hold) and decision.why is Why.UNREACHABLE:
        return decision.verdict
    return policy.verdict(url, agents, now)


def _decide_without_policy(request: RequestFacts, terms: CrawlTerms) -> Decision:
    if isinstance(request.origin, Verdict):
        return Admit() if request.origin.allowed else Refuse(request.origin)
    # RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
    if is_robots_txt(request.url, terms.dialect):
        return Admit()
    return Fetch(request.origin)


def _hold(
    until: float, why: Why, verdict: Verdict, request: RequestFacts, terms: CrawlTerms, now: float
) -> Hold | Refuse:
    # The clock may have been set back since an earlier run of the crawl.
    since = now if request.held_since is None else min(request.held_since, now)
    end = since + terms.max_wait
    return Hold(min(until, end), why, verdict) if now < end else Refuse(verdict)
