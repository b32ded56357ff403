"""The states of an origin's policy, and what follows from each.

Here may live: tables and pure functions that decide what the policy cache does next. Here
may not live: clocks, stores, fetches, logging, and whoever waits.

    unknown ──asked──> loading ──lease──> fetching ──answer──> usable, or unreachable until t
       ^                  └──stored policy──────────────────────┘
       └── the policy may not be used any more, or memory has no room for it

    usable ──due──> revalidating ──answer──> usable

A state is not stored. It follows from the policy in memory and from the *lookup*, the one
task that finds out about an origin, so the two can never disagree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import MAX_LEASE, Lease

#: How often a lookup waits for somebody else's fetch before it fetches as well.
MAX_WAITS = 3


class State(Enum):
    """Where an origin stands."""

    #: No policy may be used, and no lookup is under way.
    UNKNOWN = "unknown"
    #: The store is asked; requests wait.
    LOADING = "loading"
    #: The server is asked; requests wait.
    FETCHING = "fetching"
    #: A policy may be used.
    USABLE = "usable"
    #: A policy may be used while the store or the server is asked for a newer one.
    REVALIDATING = "revalidating"
    #: No policy is known until the next attempt; requests are refused or held.
    UNREACHABLE = "unreachable"


class Known(Enum):
    """What memory has of an origin."""

    NOTHING = "nothing"
    POLICY = "policy"
    OUTAGE = "outage"


class Phase(Enum):
    """How far a lookup is."""

    LOADING = "loading"
    FETCHING = "fetching"
    #: The answer is in memory, and on its way to the store.
    WRITING = "writing"


class Action(Enum):
    """What the cache does for a request."""

    USE = "use"
    #: And start a lookup, for which no request waits.
    USE_AND_REVALIDATE = "use and revalidate"
    #: Until the lookup that is under way has a policy.
    WAIT = "wait"
    #: Start a lookup, and wait for it.
    START = "start"


_STATES: dict[tuple[Known, Phase | None], State] = {
    (Known.NOTHING, None): State.UNKNOWN,
    (Known.NOTHING, Phase.LOADING): State.LOADING,
    (Known.NOTHING, Phase.FETCHING): State.FETCHING,
    # The lifetime was over at once. Requests get the policy all the same when it is written.
    (Known.NOTHING, Phase.WRITING): State.FETCHING,
    (Known.POLICY, None): State.USABLE,
    (Known.POLICY, Phase.LOADING): State.REVALIDATING,
    (Known.POLICY, Phase.FETCHING): State.REVALIDATING,
    (Known.POLICY, Phase.WRITING): State.REVALIDATING,
    (Known.OUTAGE, None): State.UNREACHABLE,
    (Known.OUTAGE, Phase.LOADING): State.UNREACHABLE,
    (Known.OUTAGE, Phase.FETCHING): State.UNREACHABLE,
    (Known.OUTAGE, Phase.WRITING): State.UNREACHABLE,
}

_ACTIONS = {
    State.UNKNOWN: Action.START,
    State.LOADING: Action.WAIT,
    State.FETCHING: Action.WAIT,
    State.USABLE: Action.USE,
    State.REVALIDATING: Action.USE,
    State.UNREACHABLE: Action.USE,
}


def state_of(policy: Policy | None, phase: Phase | None) -> State:
    """The state of an origin whose policy that may be used is *policy*.

    *phase* is that of its lookup; ``None`` without one.
    """
    if policy is None:
        known = Known.NOTHING
    else:
        known = Known.OUTAGE if policy.access is Access.UNREACHABLE else Known.POLICY
    return _STATES[known, phase]


def action_for(policy: Policy | None, phase: Phase | None, *, is_due: bool) -> Action:
    """What a request makes the cache do; arguments as for :func:`state_of`.

    *is_due*: the time until which *policy* was to be used is over, and it may be used on, but
    it is time to fetch again.
    """
    state = state_of(policy, phase)
    if state is State.USABLE and is_due:
        return Action.USE_AND_REVALIDATE
    return _ACTIONS[state]


# -- what a lookup does next ----------------------------------------------------


class Stored(Enum):
    """What the newest entry lets the crawl do, the one in the store or in memory."""

    #: Nothing: a fetch must come first.
    NOTHING = "nothing"
    #: There is a policy, and it is time to fetch again.
    DUE = "due"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class UseStored:
    """Use the stored policy. No fetch is needed, so give *release* back.

    *briefly*: only for as long as a fetch may take, because somebody else is fetching.
    """

    release: Lease | None = None
    briefly: bool = False


@dataclass(frozen=True, slots=True)
class FetchWith:
    """Fetch with *lease*; ``None`` where somebody else holds it and does not get done."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class WaitForPeer:
    """Wait until the fetch of somebody else is over, and look into the store again."""


def stored(policy: Policy | None) -> Stored:
    """How far *policy*, made of the newest entry, can be used."""
    if policy is None:
        return Stored.NOTHING
    return Stored.DUE if policy.due else Stored.CURRENT


def after_claim(
    known: Stored, lease: Lease | None, waits: int
) -> UseStored | FetchWith | WaitForPeer:
    """What to do when a lease was asked for, and *lease* was granted or, if ``None``, not.

    *waits* is how often this lookup has waited for somebody else.
    """
    if known is Stored.CURRENT:
        return UseStored(release=lease)
    if lease is not None:
        return FetchWith(lease)
    if known is Stored.DUE:
        return UseStored(briefly=True)
    return WaitForPeer() if waits < MAX_WAITS else FetchWith(None)


def lease_seconds(fetch_timeout: float) -> float:
    """For how long to lease an origin: as long as a fetch may take, with its time in queues."""
    return min(2 * fetch_timeout, MAX_LEASE)
