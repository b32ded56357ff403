"""The earlier versions of a robots.txt."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.caching.freshness import update
from scrapy_rep.rep.dialects import Access
from scrapy_rep.stores.base import UnreadableValue, decode, encode
from scrapy_rep.stores.history import MAX_EARLIER, copies_of, has_changed, remember
from tests.stores.examples import NOON, outage
from tests.stores.examples import entry as an_entry


def answered(body: bytes, at: float = NOON, status: int = 200) -> CacheEntry:
    known = an_entry(body=body)
    assert known.stored is not None
    result = replace(known.stored.result, body=body, status=status)
    return CacheEntry(known.origin, StoredResponse(result, at, at))


def history(*bodies: bytes, most: int = 5) -> CacheEntry:
    """The entry after fetches that got these *bodies*, one each second."""
    known: CacheEntry | None = None
    for number, body in enumerate(bodies):
        entry = answered(body, NOON + number)
        assert entry.stored is not None
        # As in a crawl: what is known after a fetch knows nothing of earlier versions.
        after = update(known, entry.origin, entry.stored.result, Access.SUCCESSFUL, NOON + number)
        known = remember(known, after, most)
    assert known is not None
    return known


def bodies(entry: CacheEntry) -> list[bytes]:
    return [stored.result.body for stored in copies_of(entry)]


def test_versions_that_differ_are_kept_the_newest_first() -> None:
    entry = history(b"a", b"a", b"b", b"b", b"c", b"a")
    assert bodies(entry) == [b"a", b"c", b"b", b"a"]
    assert [stored.fetched_at - NOON for stored in copies_of(entry)] == [5, 4, 3, 1]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_so_many_are_kept(most: int) -> None:
    kept = bodies(history(b"a", b"b", b"c", b"d", b"e", most=most))
    assert kept == [b"e", b"d", b"c", b"b", b"a"][: most + 1]


def test_they_take_a_bounded_place() -> None:
    noise = random.Random(5)
    entry = history(*(noise.randbytes(100_000) for _ in range(5)))
    assert sum(map(len, entry.earlier)) <= MAX_EARLIER
    assert len(copies_of(entry)) == 3


def test_they_are_written_and_read_with_the_entry() -> None:
    entry = history(b"a", b"b", b"\xff\0")
    assert decode(entry.origin, encode(entry)) == entry
    failed = remember(entry, CacheEntry(entry.origin, entry.stored, outage().outage), 5)
    assert decode(entry.origin, encode(failed)) == failed
    assert bodies(failed) == [b"\xff\0", b"b", b"a"]


def test_an_entry_without_them_is_written_as_ever() -> None:
    entry = answered(b"a")
    assert b"[5" not in encode(entry)
    assert decode(entry.origin, encode(entry)).earlier == ()


def test_one_that_cannot_be_read_is_left_out() -> None:
    entry = history(b"a", b"b", b"c")
    damaged = replace(entry, earlier=(b"rep1 damaged", *entry.earlier[1:]))
    assert bodies(damaged) == [b"c", b"a"]
    with pytest.raises(UnreadableValue):
        decode(entry.origin, encode(entry)[:-1])


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ((b"a", 200), (b"a", 200), False),
        ((b"a", 200), (b"b", 200), True),
        ((b"a", 200), (b"", 404), True),
        ((b"", 404), (b"a", 200), True),
        ((b"", 404), (b"", 410), False),
        ((b"", 404), (b"x", 403), False),
    ],
)
def test_what_is_a_change(old: tuple[bytes, int], new: tuple[bytes, int], changed: bool) -> None:
    before, after = answered(old[0], status=old[1]), answered(new[0], status=new[1])
    assert has_changed(before, after) is changed
    assert len(copies_of(remember(before, after, 5))) == 1 + changed


def test_an_answer_with_a_failure_is_not_a_file() -> None:
    result = FetchResult("https://example.com/robots.txt", None)
    assert not StoredResponse(result, NOON, NOON).is_file


def test_without_both_there_is_no_change() -> None:
    assert not has_changed(None, answered(b"a"))
    unreachable = CacheEntry(answered(b"a").origin, outage=outage().outage)
    assert not has_changed(unreachable, answered(b"a"))
    assert not has_changed(answered(b"a"), unreachable)
    assert remember(None, answered(b"a"), 5) == answered(b"a")
