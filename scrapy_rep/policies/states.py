"""The states of an origin's policy, and what follows from each.

Here may live: pure functions that decide what the policy cache does next. Here may not live:
clocks, stores, fetches, logging, and whoever waits.

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


def state_of(policy: Policy | None, lookup: State | None) -> State:
    """The state of an origin whose policy that may be used is *policy*.

    *lookup* says what its lookup does: ``LOADING`` or ``FETCHING``; ``None`` without one.
    """
    if policy is None:
        return lookup or State.UNKNOWN
    if policy.access is Access.UNREACHABLE:
        return State.UNREACHABLE
    return State.REVALIDATING if lookup else State.USABLE


# -- what a lookup does next ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class UseStored:
    """Use *policy*. No fetch is needed, so give *release* back.

    *briefly*: only for as long as a fetch may take, because somebody else is fetching.
    """

    policy: Policy
    release: Lease | None = None
    briefly: bool = False


@dataclass(frozen=True, slots=True)
class FetchWith:
    """Fetch with *lease*; ``None`` where somebody else holds it and does not get done."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class WaitForPeer:
    """Wait until the fetch of somebody else is over, and look into the store again."""


def after_claim(
    policy: Policy | None, lease: Lease | None, waits: int
) -> UseStored | FetchWith | WaitForPeer:
    """What to do when a lease was asked for, and *lease* was granted or, if ``None``, not.

    *policy* is made of the newest entry, *waits* how often this lookup has waited for
    somebody else.
    """
    if policy is not None and not policy.due:
        return UseStored(policy, release=lease)
    if lease is not None:
        return FetchWith(lease)
    if policy is not None:
        return UseStored(policy, briefly=True)
    return WaitForPeer() if waits < MAX_WAITS else FetchWith(None)


def lease_seconds(fetch_timeout: float) -> float:
    """For how long to lease an origin: as long as a fetch may take, with its time in queues."""
    return min(2 * fetch_timeout, MAX_LEASE)
