"""The policies that a crawl has in memory, within a bound in number and in bytes."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy

#: Bytes that policies may take, by an estimate for each. What does not fit is in the store.
MAX_BYTES = 20 * 2**20
# Its objects.
_POLICY = 2_000
# Those of a header: a pair of texts.
_HEADER = 200
# A byte of a file that is parsed, with its share of the index over the rules.
_PARSED = 5


class PolicyMemory:
    """The policies used last: at most *max_origins*, and about *max_bytes* of memory."""

    def __init__(self, max_origins: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_origins = max_origins
        self._max_bytes = max_bytes
        #: By origin, as text: a URL begins with it, if nothing about the URL is unusual.
        #: The one used last comes last. For reading only, by who has no time for :meth:`get`.
        self.by_key: OrderedDict[str, Policy] = OrderedDict()
        #: Bytes that all of them take.
        self.taken = 0

    def get(self, origin: Origin) -> Policy | None:
        """The policy of *origin*, which counts as a use of it."""
        key = str(origin)
        policy = self.by_key.get(key)
        if policy is not None:
            self.by_key.move_to_end(key)
        return policy

    def put(self, policy: Policy) -> None:
        """Keep *policy* in place of an earlier one of its origin.

        Those not used for longest go; the last one stays, whatever it takes.
        """
        key = str(policy.origin)
        before = self.by_key.pop(key, None)
        self.taken += bytes_of(policy) - (bytes_of(before) if before else 0)
        self.by_key[key] = policy
        while self._is_full and len(self.by_key) > 1:
            _, oldest = self.by_key.popitem(last=False)
            self.taken -= bytes_of(oldest)

    @property
    def _is_full(self) -> bool:
        return len(self.by_key) > self._max_origins or self.taken > self._max_bytes


def bytes_of(policy: Policy) -> int:
    """About how many bytes *policy* takes in memory: all that a server can make longer."""
    entry = policy.entry
    per_byte = 1 if policy.rules is None else _PARSED
    taken = _POLICY + sum(map(len, entry.earlier))
    if entry.copy is not None:
        taken += _of_result(entry.copy.result, per_byte)
    if entry.outage is not None:
        taken += _of_result(entry.outage.result, 1)
    return taken


def _of_result(result: FetchResult, per_byte: int) -> int:
    fields = chain(result.headers, *result.via)
    headers = sum(_HEADER + len(name) + len(value) for name, value in fields)
    return per_byte * len(result.body) + len(result.url) + len(result.detail) + headers
