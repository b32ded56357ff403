from __future__ import annotations

import contextlib
import json
import math
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import (
    MAX_BODIES,
    MAX_LEASE,
    UnreadableValue,
    decode,
    encode,
    key_of,
    lease_holds,
    origin_of,
    time_of,
)
from tests.stores.examples import NOON, entry, origin, outage

TIMES = st.floats(0, 253_402_300_799)
TEXTS = st.text(st.characters(codec=None), max_size=50)
COUNTS = st.integers(0, 1_000_000)
_HEADERS = st.lists(st.tuples(TEXTS, TEXTS), max_size=4).map(tuple)
RESULTS = st.builds(
    FetchResult,
    url=TEXTS,
    status=st.none() | COUNTS,
    body=st.binary(max_size=300),
    redirects=COUNTS,
    failure=st.none() | st.sampled_from(Failure),
    detail=TEXTS.map(printable),
    headers=_HEADERS,
    via=st.lists(_HEADERS, max_size=3).map(tuple),
    user_agent=TEXTS,
)
COPIES = st.builds(StoredResponse, RESULTS, TIMES, TIMES)
OUTAGES = st.builds(Outage, RESULTS, TIMES, TIMES, st.integers(1, 1_000_000))
HOSTS = st.text(st.characters(codec="ascii", exclude_characters="\\"), min_size=1, max_size=20)
ORIGINS = st.builds(Origin, st.sampled_from(["http", "https"]), HOSTS, st.integers(1, 65535))
FACTS = st.builds(CacheEntry, ORIGINS, COPIES, st.none() | OUTAGES) | st.builds(
    CacheEntry, ORIGINS, st.none(), OUTAGES
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)


def value(head: Any, bodies: bytes = b"", magic: bytes = b"rep1") -> bytes:
    line = head if isinstance(head, bytes) else json.dumps(head).encode()
    return magic + zlib.compress(line + b"\n" + bodies)


def head_of(kept: bytes) -> Any:
    return json.loads(zlib.decompress(kept[4:]).partition(b"\n")[0])


@given(FACTS)
def test_round_trip(known: CacheEntry) -> None:
    assert decode(known.origin, encode(known)) == known


def test_what_is_longer_for_its_escapes_stays_whole() -> None:
    known = outage()
    assert known.outage is not None
    result = replace(known.outage.result, detail=printable("\U000e0001" * 300))
    known = replace(known, outage=replace(known.outage, result=result))
    assert decode(known.origin, encode(known)) == known


def test_a_value_is_small() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /section%d/\n" % n for n in range(30))
    assert len(body) > 600
    assert len(encode(entry(body=body))) < 300


def test_large_bodies() -> None:
    large = entry(body=bytes(MAX_BODIES))
    assert decode(large.origin, encode(large)) == large
    with pytest.raises(ValueError, match="too large"):
        encode(entry(body=bytes(MAX_BODIES + 1)))


def test_large_headers_are_not_kept() -> None:
    known = entry()
    assert known.stored is not None
    result = replace(known.stored.result, headers=(("etag", "x" * 600_000),))
    with pytest.raises(ValueError, match="too large"):
        encode(replace(known, stored=replace(known.stored, result=result)))


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_such_times_are_not_kept(time: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(entry(at=time))


# -- values of others -----------------------------------------------------------


def refused(kept: object) -> None:
    with pytest.raises(UnreadableValue):
        decode(origin(), kept)


@given(st.binary() | st.binary().map(lambda data: b"rep1" + data))
@example(b"")
@example(b"rep1")
def test_garbage(kept: bytes) -> None:
    refused(kept)


@given(JSON, st.binary(max_size=20))
def test_other_json(head: Any, bodies: bytes) -> None:
    refused(value(head, bodies))


@given(JSON, JSON)
def test_other_facts(stored: Any, failure: Any) -> None:
    refused(value([key_of(origin()), stored, failure], b"x"))


@given(st.data())
def test_one_field_changed(data: st.DataObject) -> None:
    head = head_of(encode(outage()))
    part = data.draw(st.sampled_from(head[1:]))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(JSON)
    try:
        decoded = decode(origin(), value(head, b"User-agent: *\nDisallow: /private/\n"))
    except UnreadableValue:
        return
    # What passes is of the right types, so can be kept again.
    assert decode(origin(), encode(decoded)) == decoded


@given(st.integers(0, 200), st.integers(1, 255))
def test_one_byte_changed(position: int, difference: int) -> None:
    kept = bytearray(encode(entry()))
    position %= len(kept)
    kept[position] ^= difference
    # What is accepted had a bit changed that zlib does not look at.
    with contextlib.suppress(UnreadableValue):
        assert decode(origin(), bytes(kept)) == entry()


@pytest.mark.parametrize("kept", [None, 1, 1.5, "rep1", bytearray(b"rep1"), [b"rep1"]])
def test_other_types(kept: object) -> None:
    refused(kept)


@pytest.mark.parametrize("magic", [b"rep2", b"REP1", b"rep", b"\x80\x04"])
def test_other_versions(magic: bytes) -> None:
    refused(value(head_of(encode(entry())), magic=magic))


def test_an_old_value_is_still_read() -> None:
    # As version 1 wrote it; a version that cannot read it needs another magic.
    line = (
        b'["https://host0.example",["https://host0.example/robots.txt",200,34,0,null,'
        b'"status 200",[["etag","\\"1\\""]],false,[],"",1800000000.0,1800000000.0],null]'
    )
    assert decode(origin(), value(line, b"User-agent: *\nDisallow: /private/\n")) == entry()


@pytest.mark.parametrize(
    "more",
    [
        [[]],
        [[], "a", 1],
        [[], 1],
        ["x", "a"],
        [[[["age"]]], "a"],
        [[[["age", 1]]], "a"],
        [{}, None],
    ],
)
def test_fields_that_are_not_of_a_chain_of_redirects(more: list[Any]) -> None:
    head = head_of(encode(entry()))
    *result, fetched_at, confirmed_at = head[1]
    head[1] = [*result[:-2], *more, fetched_at, confirmed_at]
    refused(value(head, b"User-agent: *\nDisallow: /private/\n"))


def test_of_another_origin() -> None:
    with pytest.raises(UnreadableValue, match="another origin"):
        decode(origin(1), encode(entry(0)))


def test_with_something_after_it() -> None:
    refused(encode(entry()) + b"x")
    refused(value(head_of(encode(entry())), b"x" * 35))


def test_without_a_body() -> None:
    refused(value(head_of(encode(entry())), b"User-agent: *\n"))


def test_an_outage_without_an_attempt() -> None:
    head = head_of(encode(outage()))
    head[2][-1] = 0
    refused(value(head, b"User-agent: *\nDisallow: /private/\n"))


def test_cut() -> None:
    kept = encode(entry())
    for size in range(len(kept)):
        refused(kept[:size])


@pytest.mark.parametrize("time", [b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 400, b"9" * 5000])
def test_times_that_are_none(time: bytes) -> None:
    line = json.dumps(head_of(encode(entry()))).encode()
    assert line.count(b"1800000000.0") == 2
    refused(value(line.replace(b"1800000000.0", time, 1), entry().stored.result.body))  # type: ignore[union-attr]


def test_deep_nesting() -> None:
    refused(value(b"[" * 200_000))


@pytest.mark.once
def test_a_bomb_does_not_explode() -> None:
    bomb = b"rep1" + zlib.compress(bytes(400_000_000), 9)
    assert len(bomb) < 400_000
    tracemalloc.start()
    refused(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_BODIES


def test_nothing_has_power_over_a_terminal() -> None:
    head = head_of(encode(entry()))
    head[1][5] = "\x1b[2J" + "x" * 1000
    stored = decode(origin(), value(head, b"User-agent: *\nDisallow: /private/\n")).stored
    assert stored is not None
    assert stored.result.detail.startswith("\\x1b[2Jxx")
    assert len(stored.result.detail) < 220


# -- keys and times -------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://example.com:8080", "https://[::1]", "https://xn--bcher-kva.example"]
)
def test_keys(url: str) -> None:
    assert key_of(Origin.of(url)) == url
    assert origin_of(url) == Origin.of(url)


@pytest.mark.parametrize("host", ["\ud800.example", "a" * 70 + "é", "nul\0.example"])
def test_every_origin_has_a_key(host: str) -> None:
    assert key_of(Origin("http", host, 80)).isascii()


@pytest.mark.parametrize("key", ["", "x", "file:///etc", "http://a\\xe9", "http://EXAMPLE.com"])
def test_no_keys(key: str) -> None:
    assert origin_of(key) is None


def test_time_of_the_last_news() -> None:
    assert time_of(entry(at=NOON)) == NOON
    assert time_of(outage(at=NOON + 5)) == NOON + 5


def test_when_a_lease_holds() -> None:
    assert lease_holds(NOON, NOON + 30, NOON)
    assert not lease_holds(NOON, NOON + 30, NOON + 30)
    # The clock has been set back: much, or as clocks are put right all the time.
    assert not lease_holds(NOON, NOON + 30, NOON - 3600)
    assert lease_holds(NOON, NOON + 30, NOON - 1)
    assert not lease_holds(NOON, NOON + MAX_LEASE + 1, NOON)
    assert not lease_holds("x", None, NOON)
    assert not lease_holds(NOON, math.inf, NOON)
