"""The states of an origin's policy, and the next step from each, as a pure function.

    unknown ──asked──> loading ──lease──> fetching ──answer──> usable, or unreachable until t
       ^                  └──stored policy──────────────────────┘
       └── the policy may not be used any more, or memory has no room for it

    usable ──due──> revalidating ──answer──> usable

A state is not stored. It follows from the policy in memory and from the *lookup*, the task that
gets the policy of an origin. Without a valid policy, the state is unknown, or loading or fetching
if a lookup reads the store or fetches. With one, it is usable, or revalidating during a lookup;
unreachable if the policy is that of an outage, which is valid until the next attempt.
"""

from __future__ import annotations

from enum import Enum

from scrapy_rep.rep.policy import Policy

#: How often a lookup waits for the fetch of another worker before it fetches too.
MAX_WAITS = 3


class Step(Enum):
    """The next step of a lookup that has claimed the lease to fetch."""

    USE_STORED = "use the stored policy; if it is due, another worker is fetching"
    FETCH = "fetch, without a lease if another worker has held it for too long"
    WAIT_FOR_PEER = "wait for the fetch of another worker, then read the store again"


def after_claim(policy: Policy | None, waits: int, *, granted: bool) -> Step:
    """The next step after a claim that was *granted* or not.

    *policy* is the one from the newest entry, *waits* how often this lookup has already waited
    for another worker.
    """
    if policy is not None and not (policy.due and granted):
        return Step.USE_STORED
    return Step.FETCH if granted or waits >= MAX_WAITS else Step.WAIT_FOR_PEER
