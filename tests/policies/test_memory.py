"""The estimate of the memory that a policy takes."""

from __future__ import annotations

from dataclasses import replace

from scrapy_rep.policies.memory import bytes_of
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.policy import Policy
from tests.policy_examples import unreachable, with_rules


def policy(number: int, body: bytes = b"") -> Policy:
    return with_rules(body, f"https://{number}.example")


def with_result(known: Policy, result: FetchResult) -> Policy:
    assert known.stored is not None
    stored = replace(known.stored, result=result)
    return replace(known, stored=stored, entry=replace(known.entry, stored=stored))


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
    via = (headers[:1], headers[:2])
    assert bytes_of(with_result(known, replace(result, via=via))) == least + 3 * 4204
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


def test_earlier_copies_count() -> None:
    known = policy(1)
    earlier = replace(known, entry=replace(known.entry, earlier=(b"e" * 300, b"e" * 20)))
    assert bytes_of(earlier) == bytes_of(known) + 320
