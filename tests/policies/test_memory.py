"""The bounds of the policies in memory."""

from __future__ import annotations

from dataclasses import replace

from scrapy_rep.policies.memory import MAX_BYTES, PolicyMemory, bytes_of
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from tests.policy_examples import unreachable, with_rules


def policy(number: int, body: bytes = b"") -> Policy:
    return with_rules(body, f"https://{number}.example")


def with_result(known: Policy, result: FetchResult) -> Policy:
    assert known.stored is not None
    stored = replace(known.stored, result=result)
    return replace(known, stored=stored, entry=replace(known.entry, stored=stored))


def kept(memory: PolicyMemory, *policies: Policy) -> list[bool]:
    return [str(one.origin) in memory.by_key for one in policies]


def test_at_most_so_many_origins() -> None:
    memory = PolicyMemory(max_origins=2)
    first, second, third = map(policy, range(3))
    for one in (first, second, third):
        memory.put(one)
    assert kept(memory, first, second, third) == [False, True, True]
    assert memory.taken == bytes_of(second) + bytes_of(third)


def test_what_was_used_last_stays() -> None:
    memory = PolicyMemory(max_origins=2)
    first, second, third = map(policy, range(3))
    memory.put(first)
    memory.put(second)
    assert memory.get(first.origin) is first
    memory.put(third)
    assert kept(memory, first, second, third) == [True, False, True]


def test_at_most_so_many_bytes() -> None:
    large = [policy(number, b"Disallow: /x\n" * 10_000) for number in range(50)]
    memory = PolicyMemory(max_origins=1000)
    for one in large:
        memory.put(one)
    assert memory.taken == sum(map(bytes_of, memory.by_key.values())) <= MAX_BYTES
    # No more go than have to.
    assert memory.taken + bytes_of(large[0]) > MAX_BYTES
    assert kept(memory, *large[-len(memory.by_key) :]) == [True] * len(memory.by_key)


def test_a_policy_in_place_of_another_counts_once() -> None:
    memory = PolicyMemory(max_origins=10)
    memory.put(policy(1, b"Disallow: /x\n" * 1000))
    memory.put(policy(1))
    assert memory.taken == bytes_of(policy(1))
    assert len(memory.by_key) == 1


def test_the_last_one_stays_whatever_it_takes() -> None:
    memory = PolicyMemory(max_origins=10, max_bytes=1)
    memory.put(policy(1))
    memory.put(policy(2))
    assert kept(memory, policy(1), policy(2)) == [False, True]


def test_nothing_is_known_of_other_origins() -> None:
    memory = PolicyMemory(max_origins=10)
    memory.put(policy(1))
    assert memory.get(Origin.of("https://2.example/")) is None


def test_all_that_a_server_sends_counts() -> None:
    known = policy(1)
    assert known.stored is not None
    result = known.stored.result
    least = bytes_of(known)
    # Its objects, and the URL.
    assert least == 2000 + len(result.url)
    headers = (("etag", "e" * 4000),) * 3
    # With 200 bytes for each header, whatever it says.
    assert bytes_of(with_result(known, replace(result, headers=headers))) == least + 3 * 4204
    assert bytes_of(with_result(known, replace(result, detail="d" * 500))) == least + 500
    longer = replace(result, url=result.url + "u" * 500)
    assert bytes_of(with_result(known, longer)) == least + 500
    # A file takes more than its bytes: there is an index over its rules.
    assert bytes_of(with_result(known, replace(result, body=b"b" * 500))) == least + 2500
    unread = replace(known, rules=None)
    assert bytes_of(with_result(unread, replace(result, body=b"b" * 500))) == least + 500


def test_an_outage_counts_beside_the_copy() -> None:
    down = unreachable().entry.outage
    assert down is not None
    down = replace(down, result=replace(down.result, detail="d" * 500, body=b"b" * 70))
    known = policy(1, b"b" * 100)
    both = replace(known, entry=replace(known.entry, outage=down))
    assert bytes_of(both) == bytes_of(known) + len(down.result.url) + 500 + 70
