"""The states of an origin's policy, and the next step from each, as pure functions.

Clocks, stores, fetches, logging and waiting requests belong elsewhere.

    unknown ──asked──> loading ──lease──> fetching ──answer──> usable, or unreachable until t
       ^                  └──stored policy──────────────────────┘
       └── the policy may not be used any more, or memory has no room for it

    usable ──due──> revalidating ──answer──> usable

A state is not stored. It is derived from the policy in memory and from the *lookup*, the task that
gets the policy of an origin, so it always agrees with both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import Lease

#: How often a lookup waits for the fetch of another worker before it fetches too.
MAX_WAITS = 3


class State(Enum):
    """The state of an origin."""

    UNKNOWN = "no valid policy, no lookup"
    LOADING = "the store is being read, requests wait"
    FETCHING = "the robots.txt is being fetched, requests wait"
    USABLE = "a valid policy, no lookup"
    REVALIDATING = "a valid policy, and a lookup for a newer one"
    UNREACHABLE = "requests are refused or held until the next attempt"


def state_of(policy: Policy | None, lookup: State | None) -> State:
    """The state of an origin with the valid *policy*, or ``None``.

    *lookup* is the state of its lookup, ``LOADING`` or ``FETCHING``; ``None`` without a lookup.
    """
    if policy is None:
        return lookup or State.UNKNOWN
    if policy.access is Access.UNREACHABLE:
        return State.UNREACHABLE
    return State.REVALIDATING if lookup else State.USABLE


@dataclass(frozen=True, slots=True)
class UseStored:
    """Use *policy* without a fetch, and release the lease *release*.

    *briefly* means only for as long as a fetch may take, because another worker is fetching.
    """

    policy: Policy
    release: Lease | None = None
    briefly: bool = False


@dataclass(frozen=True, slots=True)
class FetchWith:
    """Fetch with *lease*; ``None`` if another worker holds it for too long."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class WaitForPeer:
    """Wait for the fetch of another worker, then read the store again."""


def after_claim(
    policy: Policy | None, lease: Lease | None, waits: int
) -> UseStored | FetchWith | WaitForPeer:
    """The next step after a claim. *lease* is ``None`` if the claim was not granted.

    *policy* is the one from the newest entry, *waits* how often this lookup has already waited
    for another worker.
    """
    if policy is not None and not policy.due:
        return UseStored(policy, release=lease)
    if lease is not None:
        return FetchWith(lease)
    if policy is not None:
        return UseStored(policy, briefly=True)
    return WaitForPeer() if waits < MAX_WAITS else FetchWith(None)
