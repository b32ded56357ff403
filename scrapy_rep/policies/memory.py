"""The memory that policies take, within a bound. Other policies are in the store only."""

from __future__ import annotations

from itertools import chain

from scrapy_rep.rep.policy import Policy

#: The most bytes of all policies in memory, by estimate.
MAX_BYTES = 20 * 2**20
# Estimated bytes of a policy, of a header, and for each byte of a file with the index of its rules.
_POLICY = 2_000
_HEADER = 200
_PARSED = 5


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
