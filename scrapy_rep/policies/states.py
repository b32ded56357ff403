"""The states of an origin's policy, and the next step of a lookup, as a pure function.

============  ===================================  =============================================
state         policy in memory, and lookup         next
============  ===================================  =============================================
unknown       no valid one                         a request asks: loading
loading       none; the store is being read        stored policy: usable or unreachable;
                                                   lease or waited too often: fetching
fetching      none; robots.txt is being fetched    answer: usable; none: unreachable
usable        a valid one                          due, and a request asks: revalidating;
                                                   its time is over or no room: unknown
revalidating  a valid one, and a lookup as above   answer: usable; none: usable or unreachable
unreachable   that of an outage, until the next    it is time: unknown
              attempt
============  ===================================  =============================================

A state is not stored. It follows from the policy in memory and from the *lookup*, the task that
gets the policy of an origin, so it always agrees with both.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import Lease

#: How often a lookup waits for the fetch of another worker before it fetches too.
MAX_WAITS = 3


class UseStored(NamedTuple):
    """Use *policy* without a fetch. If it is due, another worker is fetching."""

    policy: Policy


class FetchWith(NamedTuple):
    """Fetch with *lease*; without one if another worker has held it for too long."""

    lease: Lease | None


class WaitForPeer(NamedTuple):
    """Wait for the fetch of another worker, then read the store again."""


def after_claim(
    policy: Policy | None, lease: Lease | None, waits: int
) -> UseStored | FetchWith | WaitForPeer:
    """The next step of a lookup that has claimed the lease to fetch, and got *lease* or none.

    *policy* is the one from the newest entry, *waits* how often this lookup has already waited
    for another worker.
    """
    if policy is not None and not (policy.due and lease):
        return UseStored(policy)
    return FetchWith(lease) if lease or waits >= MAX_WAITS else WaitForPeer()
