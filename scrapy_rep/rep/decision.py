"""The decision about one request: admit, refuse, hold or fetch.

This is the only place where that is decided, by a pure function of a policy, a request and the
time. Clocks, waiting and the length of delays between requests belong elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .dialects import RFC9309, Dialect
from .parsing.agents import Agents
from .parsing.urls import Origin, is_robots_txt
from .policy import Policy
from .rules.verdict import Reason, Verdict, origin_or_verdict


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
    """The properties of a request that affect decisions; *held_since* in seconds of the epoch."""

    url: str
    agents: Agents
    held_since: float | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the request continue, after a delay if the site has one."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the request."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the request until a time, in seconds since the epoch, and decide again.

    *verdict* is the reason: the robots.txt is unreachable, or the site closed at this time of the
    day. It is the verdict if the request cannot be held.
    """

    until: float
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
    url, agents = request.url, request.agents
    if policy is None:
        return _decide_without_policy(url, terms)
    if not policy.allowed(url, agents):
        verdict = policy.verdict(url, agents, now)
        if policy.defers:
            return _hold(policy.until, verdict, request, terms, now)
        return Refuse(verdict)
    objection = policy.objection(url, agents, now)
    if objection is None:
        return Admit()
    if objection.reason is Reason.VISIT_TIME and terms.until_open:
        seconds = policy.pace(agents).seconds_until_open(now)
        # A hold that ends before the site opens would end with a refusal.
        if seconds <= terms.max_wait:
            return _hold(now + seconds, objection, request, terms, now)
    return Refuse(objection)


def verdict_now(policy: Policy, url: str, agents: Agents, terms: CrawlTerms, now: float) -> Verdict:
    """The verdict about a request for *url* by *agents* at time *now*.

    A request that would be held until the site opens counts as allowed. A request that would be
    held because its origin is unreachable counts as refused.
    """
    decision = decide(policy, RequestFacts(url, agents), terms, now)
    if isinstance(decision, Refuse):
        return decision.verdict
    if isinstance(decision, Hold) and decision.verdict.reason is Reason.UNREACHABLE:
        return decision.verdict
    return policy.verdict(url, agents, now)


def _decide_without_policy(url: str, terms: CrawlTerms) -> Decision:
    origin = origin_or_verdict(url)
    if isinstance(origin, Verdict):
        return Admit() if origin.allowed else Refuse(origin)
    # RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
    return Admit() if is_robots_txt(url, terms.dialect) else Fetch(origin)


def _hold(
    until: float, verdict: Verdict, request: RequestFacts, terms: CrawlTerms, now: float
) -> Hold | Refuse:
    # The clock may have been set back since an earlier run of the crawl.
    since = now if request.held_since is None else min(request.held_since, now)
    end = since + terms.max_wait
    return Hold(min(until, end), verdict) if now < end else Refuse(verdict)
