"""The policies that a crawl has in memory, within a bound in number and in bytes."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain

from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy

#: The most bytes that policies may take, by estimate. Other policies are in the store only.
MAX_BYTES = 20 * 2**20
# Estimated bytes of a policy, of a header, and for each byte of a file with the index of its rules.
_POLICY = 2_000
_HEADER = 200
_PARSED = 5


class PolicyMemory:
    """The most recently used policies: at most *max_origins*, in about *max_bytes*."""

    def __init__(self, max_origins: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_origins = max_origins
        self._max_bytes = max_bytes
        #: By origin as text, with which usual URLs start. The most recently used comes last.
        #: Public for fast reads; :meth:`put` is the only way to add a policy.
        self.by_key: OrderedDict[str, Policy] = OrderedDict()
        #: The estimated bytes of all of them.
        self.taken = 0

    def get(self, origin: Origin) -> Policy | None:
        """The policy of *origin*. This counts as a use."""
        key = str(origin)
        policy = self.by_key.get(key)
        if policy is not None:
            self.by_key.move_to_end(key)
        return policy

    def put(self, policy: Policy) -> None:
        """Store *policy* and replace an earlier one of its origin.

        The least recently used policies are removed. The last one stays, whatever its size.
        """
        key = str(policy.origin)
        before = self.by_key.pop(key, None)
        self.taken += bytes_of(policy) - (bytes_of(before) if before else 0)
        self.by_key[key] = policy
        while len(self.by_key) > self._max_origins or (
            self.taken > self._max_bytes and len(self.by_key) > 1
        ):
            _, oldest = self.by_key.popitem(last=False)
            self.taken -= bytes_of(oldest)


def bytes_of(policy: Policy) -> int:
    """About how many bytes *policy* takes, including everything whose size a server controls."""
    entry = policy.entry
    taken = _POLICY + sum(map(len, entry.earlier))
    per_byte = 1 if policy.rules is None else _PARSED
    for known, factor in ((entry.stored, per_byte), (entry.outage, 1)):
        if known is not None:
            result = known.result
            taken += factor * len(result.body) + len(result.url) + len(result.detail)
            fields = chain(result.headers, *result.via)
            taken += sum(_HEADER + len(name) + len(value) for name, value in fields)
    return taken
