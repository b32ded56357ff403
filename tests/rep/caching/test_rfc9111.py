"""What RFC 9111 says and the table of lifetimes in test_freshness.py does not show."""

from __future__ import annotations

import time

import pytest

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.caching.freshness import Bounds, Freshness, evaluate, lifetime
from scrapy_rep.rep.dialects import RFC9309, Access
from scrapy_rep.rep.parsing.urls import Origin

ORIGIN = Origin.of("https://example.com/")
# Friday, 15 January 2027, 08:00:00 GMT.
NOW = 1_800_000_000.0
HOUR = 3600.0
DAY = 24 * HOUR
BOUNDS = Bounds()


def response(*headers: tuple[str, str], age: float = 0.0) -> StoredResponse:
    result = FetchResult(ORIGIN.robots_url, 200, b"User-agent: *\n", headers=headers)
    return StoredResponse(result, NOW - age, NOW - age)


@pytest.mark.clause("RFC 9111 4.2-4")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "XYZ-14"])
def test_local_time_zones_have_no_influence(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # §4.2
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        expires = ("expires", "Fri, 15 Jan 2027 09:00:00 GMT")
        date = ("date", "Fri, 15 Jan 2027 08:30:00 GMT")
        assert lifetime(response(expires), RFC9309, BOUNDS) == HOUR
        assert lifetime(response(expires, date), RFC9309, BOUNDS) == HOUR / 2
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.clause("RFC 9111 4.2-3")
def test_times_have_more_resolution_than_dates() -> None:
    # §4.2: half a second before it ends by its date, it is fresh, and not after it.
    stored = response(("expires", "Fri, 15 Jan 2027 09:00:00 GMT"))
    assert (stored.confirmed_at, lifetime(stored, RFC9309, BOUNDS)) == (NOW, HOUR)
    entry = CacheEntry(ORIGIN, stored)
    found = [evaluate(entry, RFC9309, None, BOUNDS, NOW + HOUR + off) for off in (-0.5, 0.0, 0.5)]
    states = [evaluation.freshness for evaluation in found]
    assert states == [Freshness.FRESH, Freshness.STALE, Freshness.STALE]


@pytest.mark.clause("RFC 9111 5.2.2-3", "RFC 9111 5.2.2-7", "RFC 9111 5.2.2-8", "RFC 9111 5.4-1")
@pytest.mark.parametrize(
    "header",
    [
        ("cache-control", "private"),
        ("cache-control", 'private="set-cookie"'),
        ("cache-control", "proxy-revalidate"),
        ("cache-control", "must-understand"),
        ("cache-control", "no-transform"),
        ("cache-control", "immutable"),
        ("pragma", "no-cache"),
    ],
)
def test_directives_without_effect(header: tuple[str, str]) -> None:
    # §5.2.2, §5.4
    assert lifetime(response(header), RFC9309, BOUNDS) == DAY
    an_hour = ("cache-control", "max-age=3600")
    assert lifetime(response(header, an_hour), RFC9309, BOUNDS) == HOUR


@pytest.mark.clause("RFC 9111 4.2.4-1", "RFC 9111 5.2.2-2", "RFC 9111 5.2.2-5")
@pytest.mark.parametrize(
    "directives", ["must-revalidate", "max-age=600, must-revalidate", "no-cache", "no-store"]
)
def test_a_stale_file_is_used_in_an_outage_whatever_its_directives(directives: str) -> None:
    # RFC 9309 §2.4 against §4.2.4 and §5.2.2.
    stored = response(("cache-control", directives), age=3 * DAY)
    outage = Outage(FetchResult(ORIGIN.robots_url, 503), NOW - DAY, NOW, attempts=9)
    found = evaluate(CacheEntry(ORIGIN, stored, outage), RFC9309, None, BOUNDS, NOW)
    assert (found.freshness, found.access) == (Freshness.OUTAGE, Access.SUCCESSFUL)
    # Without the outage, nobody uses it.
    assert evaluate(CacheEntry(ORIGIN, stored), RFC9309, None, BOUNDS, NOW).access is None


@pytest.mark.clause("RFC 9110 5.6.7-2")
@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Friday, 15-Jan-27 09:00:00 GMT", HOUR),
        # A time in the past: as long as the shortest lifetime.
        ("Thursday, 15-Jan-26 09:00:00 GMT", 300),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 300),
        # In the future, as long as the longest.
        ("Saturday, 15-Jan-28 09:00:00 GMT", DAY),
    ],
)
def test_years_of_two_digits(date: str, seconds: float) -> None:
    # RFC 9110 §5.6.7
    assert lifetime(response(("expires", date)), RFC9309, BOUNDS) == seconds
