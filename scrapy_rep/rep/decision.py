"""The decision about one request: admit, refuse, hold or fetch.

This is the only place where that is decided, by a pure function of a policy, a request and the
time. Clocks, waiting and the length of delays between requests belong elsewhere.
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

    #: The robots.txt of its origin is unreachable, and the dialect or REP_UNREACHABLE holds
    #: requests until it is reachable.
    UNREACHABLE = "unreachable"
    #: The site allows visits only at other times of the day.
    VISIT_TIME = "visit-time"


@dataclass(frozen=True, slots=True)
class CrawlTerms:
    """The settings of a crawl that affect decisions.

    *max_wait* is the longest time, in seconds, for which a request is held. With *until_open*, a
    request outside the Visit-time of a site is held until the site opens; without it, the
    request is refused. *dialect* determines which URLs are robots.txt URLs.
    """

    dialect: Dialect = RFC9309
    max_wait: float = 3600.0
    until_open: bool = False


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The properties of a request that affect decisions.

    *origin* is the result of :func:`~.verdict.origin_or_verdict` for *url*; *held_since* is in
    seconds since the epoch.
    """

    url: str
    agents: Agents
    origin: Origin | Verdict
    held_since: float | None = None

    @classmethod
    def of(cls, url: str, agents: Agents, held_since: float | None = None) -> RequestFacts:
        """Create it with the origin of *url*."""
        return cls(url, agents, origin_or_verdict(url), held_since)


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the request continue, after a delay if the site has one."""

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
    #: The verdict if the request cannot be held.
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get the policy of the origin first, then decide again."""

    origin: Origin


Decision: TypeAlias = Admit | Refuse | Hold | Fetch


def decide(policy: Policy | None, request: RequestFacts, terms: CrawlTerms, now: float) -> Decision:
    """Decide about *request* at time *now* by the *policy* of its origin.

    *policy* is ``None`` if none is known. Its expiry is not checked here: a policy that was just
    fetched may be used once, even if it has already expired.
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
    """The verdict about a request for *url* by *agents* at time *now*.

    A request that would be held until the site opens counts as allowed. A request that would be
    held because its origin is unreachable counts as refused.
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
