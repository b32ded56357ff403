"""How long a cache entry may be used, and when to fetch again."""

from __future__ import annotations

import math
from dataclasses import replace
from email.utils import formatdate

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.caching.freshness import (
    CLOCK_SKEW,
    KEPT_HEADERS,
    LONGEST_RETRY_AFTER,
    Bounds,
    Evaluation,
    Freshness,
    evaluate,
    lifetime,
    of_lifetime,
    retry_at,
    shared_with,
    update,
    validators,
)
from scrapy_rep.rep.dialects import (
    DIALECTS,
    GOOGLE,
    KOSTER1994,
    KOSTER1996,
    RFC9309,
    Access,
    Dialect,
)
from scrapy_rep.rep.parsing.urls import Origin

ORIGIN = Origin.of("https://example.com/")
URL = ORIGIN.robots_url
# A Monday.
NOW = 1_800_000_000.0
MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR
MONTH = 31 * DAY
BOUNDS = Bounds()

Headers = tuple[tuple[str, str], ...]


def date(time: float) -> str:
    return formatdate(time, usegmt=True)


def copy(
    status: int = 200,
    age: float = 0.0,
    headers: Headers = (),
    failure: Failure | None = None,
) -> StoredResponse:
    result = FetchResult(URL, status, headers=headers, failure=failure)
    return StoredResponse(result, NOW - age, NOW - age)


def outage(
    since: float = 0.0, last: float = 0.0, attempts: int = 1, headers: Headers = ()
) -> Outage:
    """An outage that began *since* seconds ago, and was last seen *last* seconds ago."""
    return Outage(FetchResult(URL, 503, headers=headers), NOW - since, NOW - last, attempts)


def entry(stored: StoredResponse | None = None, outage: Outage | None = None) -> CacheEntry:
    return CacheEntry(ORIGIN, stored, outage)


# -- lifetime ------------------------------------------------------------------

EXPIRES_IN_AN_HOUR = (("expires", date(NOW + HOUR)),)


@pytest.mark.clause("RFC 9110 5.6.7-2", "RFC 9110 5.6.7-3")
@pytest.mark.clause(
    "Google caching-1",
    "Google caching-4",
    "Koster 1994 method-d2",
    "Koster 1996 3.4-3",
    "Koster 1996 3.4-4",
    "Koster 1996 3.4-5",
    "RFC 9110 5.6.7-1",
    "RFC 9110 6.6.1-1",
    "RFC 9111 1.2.2-1",
    "RFC 9111 1.2.2-2",
    "RFC 9111 3-4",
    "RFC 9111 3-5",
    "RFC 9111 4-2",
    "RFC 9111 4.2-2",
    "RFC 9111 4.2-5",
    "RFC 9111 4.2.1-1",
    "RFC 9111 4.2.1-2",
    "RFC 9111 4.2.1-3",
    "RFC 9111 4.2.1-4",
    "RFC 9111 4.2.1-5",
    "RFC 9111 4.2.1-6",
    "RFC 9111 4.2.2-1",
    "RFC 9111 4.2.2-2",
    "RFC 9111 4.2.3-1",
    "RFC 9111 4.2.3-2",
    "RFC 9111 5.1-1",
    "RFC 9111 5.1-2",
    "RFC 9111 5.2-1",
    "RFC 9111 5.2-2",
    "RFC 9111 5.2.2-1",
    "RFC 9111 5.2.2-4",
    "RFC 9111 5.2.2-5",
    "RFC 9111 5.2.2-9",
    "RFC 9111 5.2.2-10",
    "RFC 9111 5.2.3-1",
    "RFC 9111 5.3-1",
    "RFC 9111 5.3-2",
    "RFC 9309 2.4-2",
    "RFC 9309 2.4-3",
)
@pytest.mark.parametrize(
    ("headers", "rfc9309", "google", "koster1996"),
    [
        # What says nothing of a lifetime.
        ((), DAY, DAY, 7 * DAY),
        ((("cache-control", ""),), DAY, DAY, 7 * DAY),
        ((("cache-control", "public, must-revalidate"),), DAY, DAY, 7 * DAY),
        ((("cache-control", "s-maxage=600"),), DAY, DAY, 7 * DAY),
        ((("cache-control", 'ext="max-age=600, no-store"'),), DAY, DAY, 7 * DAY),
        ((("cache-control", "x-max-age=600"),), DAY, DAY, 7 * DAY),
        ((("cache-control", "max-age\v=600"),), DAY, DAY, 7 * DAY),
        # Not closed: what is in the string cannot be known.
        ((("cache-control", 'ext="a, max-age=600'),), DAY, DAY, 7 * DAY),
        ((("date", date(NOW - HOUR)), ("etag", '"1"')), DAY, DAY, 7 * DAY),
        # The lifetime without headers is counted from when the answer came.
        # max-age.
        ((("cache-control", "max-age=600"),), 600, 600, 600),
        ((("cache-control", "Max-Age=600"),), 600, 600, 600),
        ((("cache-control", 'max-age="600"'),), 600, 600, 600),
        ((("cache-control", "public , max-age = 600 ,,"),), 600, 600, 600),
        ((("cache-control", 'ext="a\\",b", max-age=600'),), 600, 600, 600),
        ((("cache-control", "public"), ("cache-control", "max-age=600")), 600, 600, 600),
        ((("cache-control", "s-maxage=9, max-age=600"),), 600, 600, 600),
        ((("cache-control", "max-age=600, max-age=0600"),), 600, 600, 600),
        # More than the dialect's longest, where it has one.
        ((("cache-control", "max-age=172800"),), DAY, 2 * DAY, 2 * DAY),
        ((("cache-control", "max-age=2147483647"),), DAY, 2**31 - 1, 2**31 - 1),
        ((("cache-control", "max-age=2147483649"),), DAY, 2**31, 2**31),
        ((("cache-control", "max-age=" + "9" * 5000),), DAY, 2**31, 2**31),
        # Less than REP_MIN_AGE.
        ((("cache-control", "max-age=0"),), 300, 300, 300),
        ((("cache-control", "no-cache"),), 300, 300, 300),
        ((("cache-control", "NO-STORE"),), 300, 300, 300),
        ((("cache-control", 'no-cache="set-cookie"'),), 300, 300, 300),
        ((("cache-control", "max-age=600, no-cache"),), 300, 300, 300),
        ((("cache-control", "no-store"), *EXPIRES_IN_AN_HOUR), 300, 300, 300),
        # Invalid, or several that differ: stale.
        ((("cache-control", "max-age"),), 300, 300, 300),
        ((("cache-control", "max-age="),), 300, 300, 300),
        ((("cache-control", "max-age=-1"),), 300, 300, 300),
        ((("cache-control", "max-age=+600"),), 300, 300, 300),
        ((("cache-control", "max-age=600.5"),), 300, 300, 300),
        ((("cache-control", "max-age=1e9"),), 300, 300, 300),
        ((("cache-control", "max-age=nan"),), 300, 300, 300),
        ((("cache-control", "max-age=infinity"),), 300, 300, 300),
        ((("cache-control", "max-age=1_000"),), 300, 300, 300),
        ((("cache-control", "max-age=٦٠٠"),), 300, 300, 300),
        ((("cache-control", 'max-age="600'),), 300, 300, 300),
        ((("cache-control", 'max-age="'),), 300, 300, 300),
        ((("cache-control", "max-age=600; public"),), 300, 300, 300),
        ((("cache-control", "max-age=\f600"),), 300, 300, 300),
        ((("cache-control", "max-age=600, max-age=700"),), 300, 300, 300),
        ((("cache-control", "max-age=6"), ("cache-control", "max-age=7")), 300, 300, 300),
        ((("cache-control", "max-age=600, max-age=x"),), 300, 300, 300),
        ((("cache-control", "max-age=x"), *EXPIRES_IN_AN_HOUR), 300, 300, 300),
        # Age.
        ((("cache-control", "max-age=3600"), ("age", "600")), 3000, 3000, 3000),
        ((("cache-control", "max-age=3600"), ("age", "4000")), 300, 300, 300),
        ((("cache-control", "max-age=3600"), ("age", "9" * 5000)), 300, 300, 300),
        ((("cache-control", "max-age=3600"), ("age", "600, 1")), 3000, 3000, 3000),
        ((("cache-control", "max-age=3600"), ("age", "600"), ("age", "1")), 3000, 3000, 3000),
        ((("cache-control", "max-age=3600"), ("age", "-600")), HOUR, HOUR, HOUR),
        ((("cache-control", "max-age=3600"), ("age", "old")), HOUR, HOUR, HOUR),
        ((("cache-control", "max-age=3600"), ("age", "")), HOUR, HOUR, HOUR),
        # It counts without other headers, too (RFC 9111 §5.1).
        ((("age", "86000"),), 400, 400, 7 * DAY - 86_000),
        ((("age", str(8 * 86_400)),), 300, 300, 300),
        ((("age", "600"), ("cache-control", "public")), DAY - 600, DAY - 600, 7 * DAY - 600),
        # A Date that is long ago says that clocks differ.
        ((("cache-control", "max-age=3600"), ("date", date(NOW - DAY))), HOUR, HOUR, HOUR),
        # Expires, from Date or else from when the answer came.
        (EXPIRES_IN_AN_HOUR, HOUR, HOUR, HOUR),
        ((*EXPIRES_IN_AN_HOUR, ("date", date(NOW + 600))), 3000, 3000, 3000),
        ((*EXPIRES_IN_AN_HOUR, ("date", "now")), HOUR, HOUR, HOUR),
        ((*EXPIRES_IN_AN_HOUR, ("age", "600")), 3000, 3000, 3000),
        ((*EXPIRES_IN_AN_HOUR, ("cache-control", "max-age=600")), 600, 600, 600),
        ((*EXPIRES_IN_AN_HOUR, ("cache-control", "public")), HOUR, HOUR, HOUR),
        ((*EXPIRES_IN_AN_HOUR, *EXPIRES_IN_AN_HOUR), HOUR, HOUR, HOUR),
        ((*EXPIRES_IN_AN_HOUR, ("expires", date(NOW))), 300, 300, 300),
        ((("expires", date(NOW + 2 * DAY)),), DAY, 2 * DAY, 2 * DAY),
        ((("expires", date(NOW - 1)),), 300, 300, 300),
        ((("expires", "Fri, 31 Dec 9999 23:59:59 GMT"),), DAY, 2**31, 2**31),
        ((("expires", "0"),), 300, 300, 300),
        ((("expires", "-1"),), 300, 300, 300),
        ((("expires", ""),), 300, 300, 300),
        ((("expires", "Fri, 31 Foo 2027 08:00:00 GMT"),), 300, 300, 300),
        # The three forms of a date; 1,800,000,000 is 15 January 2027, 08:00:00.
        ((("expires", "Fri, 15 Jan 2027 09:00:00 GMT"),), HOUR, HOUR, HOUR),
        ((("expires", "fri, 15 jan 2027 09:00:00 gmt"),), HOUR, HOUR, HOUR),
        ((("expires", "Friday, 15-Jan-27 09:00:00 GMT"),), HOUR, HOUR, HOUR),
        ((("expires", "Fri Jan 15 09:00:00 2027"),), HOUR, HOUR, HOUR),
        ((("expires", "Fri, 15 Jan 2027 09:00:00 EST"),), 300, 300, 300),
        # No day and no time of a calendar.
        ((("expires", "Sun, 31 Feb 2027 09:00:00 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 00 Jan 2027 09:00:00 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 25:61:61 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 24:00:00 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 09:60:00 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 09:00:61 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 0000 09:00:00 GMT"),), 300, 300, 300),
        # A leap second is one.
        ((("expires", "Fri, 15 Jan 2027 08:59:60 GMT"),), HOUR, HOUR, HOUR),
        # RFC 9110 §5.6.7: two digits of a year "that appears to be more than 50 years in the
        # future" are of the past.
        ((("expires", "Wednesday, 15-Jan-70 09:00:00 GMT"),), DAY, 43 * 365.25 * DAY, None),
        ((("expires", "Friday, 15-Jan-77 09:00:00 GMT"),), DAY, 50 * 365.25 * DAY, None),
        ((("expires", "Sunday, 15-Jan-78 09:00:00 GMT"),), 300, 300, 300),
        ((("expires", "Sunday, 15-Jan-94 09:00:00 GMT"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 09:00:00 +0100"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 2027 09:00:00"),), 300, 300, 300),
        ((("expires", "Fri, 15 Jan 99999 09:00:00 GMT"),), 300, 300, 300),
    ],
)
def test_lifetime(
    headers: Headers, rfc9309: float, google: float, koster1996: float | None
) -> None:
    found = [
        lifetime(copy(headers=headers), dialect, BOUNDS)
        for dialect in (RFC9309, GOOGLE, KOSTER1996, KOSTER1994)
    ]
    # To the consensus of 1994 there are no cache headers.
    expected = [rfc9309, google, google if koster1996 is None else koster1996, math.inf]
    # Years are not of the same length, and this is about which one it is.
    near = HOUR * 24 if koster1996 is None else 0
    assert all(a == b or abs(a - b) <= near for a, b in zip(found, expected, strict=True)), found


@pytest.mark.clause("RFC 9111 4.2.1-d2")
@pytest.mark.parametrize(
    ("on_the_way", "headers", "seconds"),
    [
        # Redirects that say nothing shorten nothing.
        ([()], (), DAY),
        ([(("date", date(NOW)),)], (("cache-control", "max-age=7200"),), 2 * HOUR),
        # The shortest lifetime of the chain.
        ([(("cache-control", "max-age=3600"),)], (), HOUR),
        ([(("cache-control", "max-age=3600"),)], (("cache-control", "max-age=7200"),), HOUR),
        ([(("cache-control", "max-age=7200"),)], (("cache-control", "max-age=3600"),), HOUR),
        ([(), (("cache-control", "max-age=3600"),), ()], (), HOUR),
        ([(("cache-control", "max-age=3600"), ("age", "600"))], (), HOUR - 600),
        ([(("age", "600"),)], (), DAY - 600),
        ([EXPIRES_IN_AN_HOUR, (("cache-control", "no-cache"),)], (), 300),
        # It is no longer than without them.
        ([(("cache-control", "max-age=172800"),)], (), DAY),
    ],
)
def test_the_lifetime_of_a_chain_of_redirects(
    on_the_way: list[Headers], headers: Headers, seconds: float
) -> None:
    result = FetchResult(URL, 200, headers=headers, via=tuple(on_the_way))
    assert lifetime(StoredResponse(result, NOW, NOW), RFC9309, BOUNDS) == seconds
    assert lifetime(StoredResponse(result, NOW, NOW), KOSTER1994, BOUNDS) == math.inf


def test_the_last_result_is_that_of_an_outage_after_the_copy() -> None:
    fetched, failing = copy(), outage()
    assert entry(fetched).last is fetched.result
    assert entry(fetched, failing).last is entry(None, failing).last is failing.result


def test_dates_with_a_year_of_two_digits_count_in_all_headers() -> None:
    day, date = "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"
    known = entry(copy(headers=(("last-modified", day),)))
    assert validators(known) == (("If-Modified-Since", day),)
    confirmation = FetchResult(URL, 304, headers=(("last-modified", date),))
    assert updated(known, confirmation, conditional=True).outage is None
    hour_later = "Sunday, 06-Nov-94 09:49:37 GMT"
    for sent in (day, date):
        expires = copy(headers=(("date", sent), ("expires", hour_later)))
        assert lifetime(expires, RFC9309, BOUNDS) == HOUR
        failing = outage(headers=(("date", sent), ("retry-after", hour_later)))
        assert retry_at(failing, BOUNDS) == failing.last_at + HOUR


def test_a_time_that_is_not_finite_has_no_century() -> None:
    expires = ("expires", "Sunday, 06-Nov-94 08:49:37 GMT")
    stored = StoredResponse(FetchResult(URL, 200, headers=(expires,)), math.inf, math.inf)
    assert lifetime(stored, RFC9309, BOUNDS) == BOUNDS.min_age


def test_vary_is_a_list_with_and_without_spaces() -> None:
    for vary in ("accept-encoding,user-agent", "accept-encoding , User-Agent"):
        known = entry(copy(headers=(("vary", vary),)))
        assert shared_with(known, "other") is None


def test_a_304_has_redirects_of_its_own() -> None:
    hour, day = (("cache-control", "max-age=3600"),), (("cache-control", "max-age=86400"),)
    known = entry(StoredResponse(FetchResult(URL, 200, headers=(ETAG,), via=(hour,)), NOW, NOW))
    confirmation = FetchResult(URL, 304, headers=(ETAG,), via=(day, ()))
    after = updated(known, confirmation, conditional=True)
    assert after.stored is not None
    assert after.stored.result.via == (day, ())
    assert lifetime(after.stored, RFC9309, BOUNDS) == DAY


def test_the_headers_that_determine_a_lifetime() -> None:
    of_the_file = (("etag", "x"), ("last-modified", "x"), ("vary", "*"), ("retry-after", "1"))
    found = (("age", "1"), ("cache-control", "no-cache"), ("date", "x"), ("expires", "0"))
    assert of_lifetime((*found[:2], *of_the_file, *found[2:])) == found


# -- Vary -----------------------------------------------------------------------


@pytest.mark.clause("RFC 9111 4.1-1", "RFC 9111 4.1-2")
@pytest.mark.parametrize(
    ("vary", "sent", "reader", "shared"),
    [
        (None, "a", "b", True),
        ("Accept-Encoding", "a", "b", True),
        ("User-Agent", "a", "a", True),
        ("User-Agent", "a", "b", False),
        ("User-Agent", "a", "A", False),
        ("accept-encoding , USER-AGENT", "a", "b", False),
        # RFC 9111 §4.1: "*" stands for anything, and so for this header, too.
        ("*", "a", "b", False),
        ("*", "a", "a", True),
        # Nobody knows what was sent.
        ("User-Agent", "", "a", False),
        ("X-User-Agent", "a", "b", True),
        # RFC 9110 §5.6.3: white space is spaces and tabs. This is another name.
        ("\xa0User-Agent", "a", "b", True),
    ],
)
def test_who_shares_an_answer(vary: str | None, sent: str, reader: str, shared: bool) -> None:
    headers = () if vary is None else (("vary", vary),)
    result = FetchResult(URL, 200, headers=headers, user_agent=sent)
    known = entry(StoredResponse(result, NOW, NOW))
    assert shared_with(known, reader) == (known if shared else None)
    # An outage does not depend on the User-Agent.
    down = replace(known, outage=outage())
    assert shared_with(down, reader) == (down if shared else entry(None, down.outage))


def test_of_several_lines_of_vary_each_counts() -> None:
    headers = (("vary", "Cookie"), ("vary", "User-Agent"))
    result = FetchResult(URL, 200, headers=headers, user_agent="a")
    assert shared_with(entry(StoredResponse(result, NOW, NOW)), "b") is None
    assert shared_with(None, "a") is None


def test_a_304_confirms_for_the_user_agent_that_asked() -> None:
    result = FetchResult(URL, 200, headers=(ETAG, ("vary", "User-Agent")), user_agent="a")
    known = entry(StoredResponse(result, NOW, NOW))
    confirmation = FetchResult(URL, 304, headers=(ETAG,), user_agent="b")
    after = updated(known, confirmation, conditional=True)
    assert after.stored is not None
    assert after.stored.result.user_agent == "b"


@pytest.mark.clause("RFC 9111 3-6", "RFC 9111 4.2.1-d1")
@pytest.mark.parametrize("status", [200, 204, 403, 404, 410, 429])
def test_headers_count_whatever_the_status(status: int) -> None:
    short = copy(status, headers=(("cache-control", "max-age=600"),))
    assert lifetime(short, RFC9309, BOUNDS) == 600


@pytest.mark.clause("RFC 9111 4.2.1-d2")
def test_headers_of_a_redirect_that_is_not_followed_do_not_count() -> None:
    for failure in (Failure.TOO_MANY_REDIRECTS, Failure.REDIRECT_TO_OTHER_SCHEME):
        looping = copy(302, headers=(("cache-control", "max-age=600"),), failure=failure)
        assert lifetime(looping, RFC9309, BOUNDS) == DAY


@pytest.mark.clause("Google caching-4", "RFC 9111 4.2.1-2", "RFC 9309 2.4-3")
@pytest.mark.parametrize(
    ("max_age_header", "min_age", "max_age", "dialect", "expected"),
    [
        (None, 300, None, RFC9309, DAY),
        (None, 300, HOUR, RFC9309, HOUR),
        # A bound is no wish: it does not lengthen.
        (None, 300, 7 * DAY, RFC9309, DAY),
        (7 * DAY, 300, 7 * DAY, RFC9309, 7 * DAY),
        (7 * DAY, 300, HOUR, GOOGLE, HOUR),
        (7 * DAY, 300, None, GOOGLE, 7 * DAY),
        (60, 300, None, GOOGLE, 300),
        (60, 0, None, GOOGLE, 60),
        # The longest wins over the shortest.
        (60, 300, 120, RFC9309, 120),
        (60, 2 * DAY, None, RFC9309, DAY),
        (60, 2 * DAY, None, GOOGLE, 2 * DAY),
        # Never so short that it is of no use to the request that waited for it.
        (0, 0, None, RFC9309, 0.001),
        (60, 300, 1e-9, RFC9309, 0.001),
        (None, 300, None, KOSTER1994, math.inf),
        (60, 300, DAY, KOSTER1994, DAY),
    ],
)
def test_bounds(
    max_age_header: float | None,
    min_age: float,
    max_age: float | None,
    dialect: Dialect,
    expected: float,
) -> None:
    headers: Headers = ()
    if max_age_header is not None:
        headers = (("cache-control", f"max-age={max_age_header:.0f}"),)
    bounds = Bounds(min_age=min_age, max_age=max_age)
    assert lifetime(copy(headers=headers), dialect, bounds) == expected


@pytest.mark.clause("RFC 9111 4.2.1-6", "RFC 9111 5.2.2-4")
@pytest.mark.parametrize(
    "headers",
    [
        (("cache-control", "no-store"),),
        (("cache-control", "max-age=600, max-age=700"),),
        (("expires", date(NOW - DAY)),),
        (("expires", "0"),),
    ],
)
def test_what_is_stale_at_once_is_used_once(headers: Headers) -> None:
    assert lifetime(copy(headers=headers), RFC9309, Bounds(min_age=0)) == 0.001


@pytest.mark.clause("RFC 9111 4.2-1", "RFC 9111 4.2.3-3")
def test_a_copy_is_fresh_from_when_it_was_confirmed() -> None:
    confirmed = StoredResponse(FetchResult(URL, 200), fetched_at=NOW - DAY, confirmed_at=NOW - HOUR)
    ends = (NOW + 23 * HOUR - 1, NOW + 23 * HOUR)
    found = [evaluate(entry(confirmed), RFC9309, None, BOUNDS, now).freshness for now in ends]
    assert found == [Freshness.FRESH, Freshness.STALE]


@pytest.mark.clause("Koster 1994 method-d2")
@pytest.mark.parametrize(
    ("age", "freshness"),
    [(0, Freshness.FRESH), (HOUR, Freshness.FRESH), (HOUR + 1, Freshness.STALE)],
)
def test_an_infinite_lifetime_is_the_crawl(age: float, freshness: Freshness) -> None:
    bounds = Bounds(started=NOW - HOUR)
    evaluation = evaluate(entry(copy(age=age)), KOSTER1994, None, bounds, NOW)
    assert evaluation.freshness is freshness
    if freshness is Freshness.FRESH:
        assert (evaluation.until, evaluation.due) == (math.inf, False)


# -- retries --------------------------------------------------------------------


@pytest.mark.clause("Google status-7", "Google status-8")
@pytest.mark.parametrize(
    ("attempts", "delay"),
    [
        (1, MINUTE),
        (2, 2 * MINUTE),
        (3, 4 * MINUTE),
        (6, 32 * MINUTE),
        (7, HOUR),
        (8, HOUR),
        (1000, HOUR),
        (10**30, HOUR),
        # From a store that is wrong.
        (0, MINUTE),
        (-(10**30), MINUTE),
    ],
)
def test_retries_are_ever_further_apart(attempts: int, delay: float) -> None:
    assert retry_at(outage(attempts=attempts), BOUNDS) == NOW + delay


@pytest.mark.parametrize(
    ("retry_delay", "retry_max_delay", "attempts", "delay"),
    [(10, 15, 1, 10), (10, 15, 2, 15), (60, 30, 1, 30), (1e-9, HOUR, 1, 0.001)],
)
def test_retry_bounds(
    retry_delay: float, retry_max_delay: float, attempts: int, delay: float
) -> None:
    bounds = Bounds(retry_delay=retry_delay, retry_max_delay=retry_max_delay)
    assert retry_at(outage(attempts=attempts), bounds) == NOW + delay


@pytest.mark.clause("Google status-8", "RFC 9110 10.2.3-1", "RFC 9110 10.2.3-2")
@pytest.mark.parametrize(
    ("headers", "attempts", "delay"),
    [
        ((("retry-after", "600"),), 1, 600),
        # Never before the back-off.
        ((("retry-after", "5"),), 1, MINUTE),
        ((("retry-after", "600"),), 9, HOUR),
        ((("retry-after", "7200"),), 9, 2 * HOUR),
        # A day at most.
        ((("retry-after", "86401"),), 1, LONGEST_RETRY_AFTER),
        ((("retry-after", "9" * 5000),), 1, LONGEST_RETRY_AFTER),
        ((("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),), 1, LONGEST_RETRY_AFTER),
        # A date, by the server's clock if it says what that is.
        ((("retry-after", date(NOW + HOUR)),), 1, HOUR),
        ((("retry-after", date(NOW)), ("date", date(NOW - HOUR))), 1, HOUR),
        ((("retry-after", date(NOW + HOUR)), ("date", "?")), 1, HOUR),
        ((("retry-after", date(NOW - HOUR)),), 1, MINUTE),
        # No such thing.
        ((("retry-after", "-600"),), 1, MINUTE),
        ((("retry-after", "inf"),), 1, MINUTE),
        ((("retry-after", "soon"),), 1, MINUTE),
        ((("retry-after", ""),), 1, MINUTE),
    ],
)
def test_retry_after(headers: Headers, attempts: int, delay: float) -> None:
    assert retry_at(outage(attempts=attempts, headers=headers), BOUNDS) == NOW + delay


# -- how to ask -----------------------------------------------------------------

ETAG = ("etag", '"v1"')
MODIFIED = ("last-modified", date(NOW - DAY))
IF_NONE_MATCH = ("If-None-Match", '"v1"')
IF_MODIFIED_SINCE = ("If-Modified-Since", date(NOW - DAY))


@pytest.mark.clause("Google location-4", "RFC 9111 4.3.1-2", "RFC 9111 4.3.1-3")
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ((), ()),
        ((ETAG,), (IF_NONE_MATCH,)),
        ((MODIFIED,), (IF_MODIFIED_SINCE,)),
        ((MODIFIED, ETAG), (IF_NONE_MATCH, IF_MODIFIED_SINCE)),
        ((("etag", ' "v1"\t'),), (IF_NONE_MATCH,)),
        ((("etag", 'W/"v1"'),), (("If-None-Match", 'W/"v1"'),)),
        # Not as it should be, but the server has it from itself.
        ((("etag", "v1"),), (("If-None-Match", "v1"),)),
        ((("etag", '"é"'),), (("If-None-Match", '"é"'),)),
        ((("etag", '"v1"\r\nCookie: a=b'),), ()),
        ((("etag", '"v1"\n'),), ()),
        ((("etag", '"\x00"'),), ()),
        ((("etag", '"\x7f"'),), ()),
        ((("etag", '"\x85"'),), ()),
        ((("etag", '"\u2028"'),), ()),
        ((("etag", '"\ud800"'),), ()),
        ((("etag", '"日本"'),), ()),
        ((("etag", ""),), ()),
        ((("etag", "x" * 512),), (("If-None-Match", "x" * 512),)),
        ((("etag", "x" * 513),), ()),
        ((("last-modified", "yesterday"),), ()),
        ((("last-modified", date(NOW) + "\r\nCookie: a=b"),), ()),
        ((("last-modified", date(NOW) + "\n"),), ()),
    ],
)
def test_validators(headers: Headers, expected: Headers) -> None:
    assert validators(entry(copy(headers=headers))) == expected


def test_only_a_file_can_be_confirmed() -> None:
    headers = (ETAG, MODIFIED)
    assert validators(entry(copy(299, headers=headers))) != ()
    for status in (199, 304, 404, 403, 500):
        assert validators(entry(copy(status, headers=headers))) == ()
    broken = copy(200, headers=headers, failure=Failure.NO_ANSWER)
    assert validators(entry(broken)) == ()
    assert (
        validators(entry(StoredResponse(FetchResult(URL, None, headers=headers), NOW, NOW))) == ()
    )
    assert validators(entry(outage=outage(headers=headers))) == ()
    assert validators(None) == ()


def test_a_file_from_before_an_outage_can_be_confirmed() -> None:
    assert validators(entry(copy(headers=(ETAG,)), outage())) == (IF_NONE_MATCH,)


@pytest.mark.clause("RFC 9111 4.3.4-1")
def test_after_a_304_that_did_not_fit_the_whole_file_is_asked_for() -> None:
    unfit = Outage(FetchResult(URL, 304), NOW, NOW, 1)
    assert validators(entry(copy(headers=(ETAG,)), unfit)) == ()


# -- what is known afterwards ---------------------------------------------------


def updated(
    known: CacheEntry | None,
    result: FetchResult,
    dialect: Dialect = RFC9309,
    conditional: bool = False,
    overrides: dict[int, Access] | None = None,
) -> CacheEntry:
    access = access_result(result, dialect, overrides)
    return update(known, ORIGIN, result, access, NOW, conditional=conditional)


@pytest.mark.clause("Draft 2019 2.3.1.3-1", "RFC 9111 3-6", "RFC 9111 4.3.3-2")
@pytest.mark.parametrize(
    "result",
    [
        FetchResult(URL, 200, b"User-agent: *\n"),
        FetchResult(URL, 404),
        FetchResult(URL, failure=Failure.TOO_MANY_REDIRECTS),
    ],
)
@pytest.mark.parametrize(
    "known",
    [None, entry(copy(age=DAY)), entry(outage=outage(DAY)), entry(copy(age=DAY), outage(HOUR))],
)
def test_an_answer_is_all_that_is_known(known: CacheEntry | None, result: FetchResult) -> None:
    assert updated(known, result) == CacheEntry(ORIGIN, StoredResponse(result, NOW, NOW))


@pytest.mark.clause("RFC 9111 3-2")
def test_an_outage_begins() -> None:
    result = FetchResult(URL, 503)
    began = Outage(result, since=NOW, last_at=NOW, attempts=1)
    assert updated(None, result) == entry(None, began)
    assert updated(entry(copy(age=DAY)), result) == entry(copy(age=DAY), began)
    # Of any kind: what it means is for each reader to say.
    assert updated(entry(copy(404)), result) == entry(copy(404), began)


def test_an_outage_goes_on() -> None:
    known = entry(copy(age=3 * DAY), outage(since=2 * DAY, last=HOUR, attempts=9))
    result = FetchResult(URL, failure=Failure.NO_ANSWER)
    expected = Outage(result, since=NOW - 2 * DAY, last_at=NOW, attempts=10)
    assert updated(known, result) == entry(copy(age=3 * DAY), expected)


@pytest.mark.parametrize("since", [NOW + DAY, math.inf, -math.inf, math.nan, 0.0, -1.0])
def test_an_outage_since_a_time_that_cannot_be_begins_now(since: float) -> None:
    known = entry(outage=Outage(FetchResult(URL, 503), since, NOW, 3))
    after = updated(known, FetchResult(URL, 503)).outage
    assert after is not None
    assert after.since == NOW


@pytest.mark.parametrize(("attempts", "after"), [(-5, 1), (0, 1), (1, 2), (10**30, 2**31 + 1)])
def test_attempts_are_numbers_that_a_store_can_keep(attempts: int, after: int) -> None:
    learned_outage = updated(entry(outage=outage(attempts=attempts)), FetchResult(URL, 503)).outage
    assert learned_outage is not None
    assert learned_outage.attempts == after


@pytest.mark.clause("RFC 9111 3-3", "RFC 9111 3.2-1", "RFC 9111 4.3.3-1", "RFC 9111 4.3.4-4")
def test_a_304_confirms_and_updates_headers() -> None:
    file = FetchResult(
        URL,
        200,
        b"User-agent: *\n",
        detail="status 200",
        headers=(
            ETAG,
            MODIFIED,
            ("cache-control", "max-age=60"),
            ("cache-control", "public"),
            ("date", date(NOW - DAY)),
            ("age", "5"),
            ("expires", date(NOW)),
            ("retry-after", "5"),
        ),
    )
    known = entry(StoredResponse(file, NOW - 2 * DAY, NOW - DAY), outage())
    answer = FetchResult(
        URL, 304, headers=(ETAG, ("cache-control", "max-age=3600"), ("set-cookie", "a=b"))
    )
    headers = (MODIFIED, ("expires", date(NOW)), ETAG, ("cache-control", "max-age=3600"))
    confirmed = StoredResponse(replace(file, headers=headers), NOW - 2 * DAY, NOW)
    assert updated(known, answer, conditional=True) == entry(confirmed)


@pytest.mark.clause("RFC 9111 3.2-1")
def test_a_304_without_headers_leaves_the_lifetime_as_it_was() -> None:
    known = entry(copy(age=DAY, headers=(ETAG, ("cache-control", "max-age=600"))))
    after = updated(known, FetchResult(URL, 304), conditional=True)
    assert after.stored is not None
    assert (after.stored.confirmed_at, lifetime(after.stored, RFC9309, BOUNDS)) == (NOW, 600)


def test_a_file_is_never_confirmed_before_it_was_fetched() -> None:
    known = entry(copy(age=-HOUR, headers=(ETAG,)))
    after = updated(known, FetchResult(URL, 304), conditional=True)
    assert after.stored is not None
    assert (after.stored.fetched_at, after.stored.confirmed_at) == (NOW, NOW)


@pytest.mark.clause("RFC 9111 4.3.4-2")
def test_a_304_with_another_last_modified_is_about_another_file() -> None:
    other = ("last-modified", date(NOW - HOUR))
    # The same time in another form.
    same = ("last-modified", "Thursday, 14-Jan-27 08:00:00 GMT")
    known = entry(copy(headers=(MODIFIED,)))
    answers: list[tuple[Headers, bool]] = [
        ((MODIFIED,), True),
        ((), True),
        ((same,), True),
        ((other,), False),
        ((("last-modified", "yesterday"),), False),
    ]
    for headers, confirms in answers:
        after = updated(known, FetchResult(URL, 304, headers=headers), conditional=True)
        assert (after.outage is None) is confirms
    # RFC 9111 §4.3.4: an entity tag, if there is one, tells more.
    known = entry(copy(headers=(ETAG, MODIFIED)))
    answers = [((ETAG, other), True), ((other,), False)]
    for headers, confirms in answers:
        after = updated(known, FetchResult(URL, 304, headers=headers), conditional=True)
        assert (after.outage is None) is confirms
    # Where the copy has none, neither is it the one that is meant.
    known = entry(copy(headers=(ETAG,)))
    after = updated(known, FetchResult(URL, 304, headers=(MODIFIED,)), conditional=True)
    assert after.outage is not None
    # One without a value is none, too.
    empty = FetchResult(URL, 304, headers=(("last-modified", ""),))
    assert updated(known, empty, conditional=True).outage is None


@pytest.mark.clause(
    "RFC 9110 8.8.3.2-1", "RFC 9111 4.3.4-1", "RFC 9111 4.3.4-2", "RFC 9111 4.3.4-3"
)
@pytest.mark.parametrize(
    ("held", "answered", "confirms"),
    [
        ((ETAG,), (), True),
        ((ETAG,), (ETAG,), True),
        ((("etag", 'W/"v1"'),), (ETAG,), True),
        ((ETAG,), (("etag", 'W/"v1"'),), True),
        ((ETAG,), (("etag", '"v2"'),), False),
        ((MODIFIED,), (), True),
        ((MODIFIED,), (ETAG,), False),
        ((MODIFIED,), (("etag", ""),), True),
    ],
)
def test_a_304_with_another_etag_is_about_another_file(
    held: Headers, answered: Headers, confirms: bool
) -> None:
    known = entry(copy(age=DAY, headers=held))
    after = updated(known, FetchResult(URL, 304, headers=answered), conditional=True)
    assert (after.outage is None) is confirms
    if not confirms:
        assert after.stored == known.stored


@pytest.mark.clause("RFC 9110 15.4.5-1", "RFC 9111 4-1")
@pytest.mark.parametrize(
    ("known", "result", "conditional"),
    [
        (entry(copy()), FetchResult(URL, 304), False),
        (entry(copy()), FetchResult("https://example.org/robots.txt", 304), True),
        (entry(copy()), FetchResult(URL, 304, failure=Failure.NO_ANSWER), True),
        (entry(copy(404)), FetchResult(URL, 304), True),
        (entry(copy(300)), FetchResult(URL, 304), True),
        (entry(copy(failure=Failure.TOO_MANY_REDIRECTS)), FetchResult(URL, 304), True),
        (entry(outage=outage()), FetchResult(URL, 304), True),
        (None, FetchResult(URL, 304), True),
    ],
    ids=["unasked", "other URL", "broken", "404", "300", "a redirect", "no copy", "nothing"],
)
def test_a_304_that_confirms_nothing(
    known: CacheEntry | None, result: FetchResult, conditional: bool
) -> None:
    after = updated(known, result, conditional=conditional)
    assert after.stored == (known.stored if known else None)
    assert after.outage is not None
    assert after.outage.result is result


def test_a_request_is_taken_for_a_plain_one_unless_told_otherwise() -> None:
    after = update(entry(copy()), ORIGIN, FetchResult(URL, 304), Access.UNREACHABLE, NOW)
    assert after.outage is not None


def test_overrides_do_not_apply_to_a_304_that_confirms() -> None:
    known = entry(copy(age=HOUR))
    after = updated(
        known, FetchResult(URL, 304), conditional=True, overrides={304: Access.DISALLOWED}
    )
    assert after == entry(replace(copy(), fetched_at=NOW - HOUR))


@pytest.mark.clause("RFC 9111 3.1-1")
def test_kept_headers_are_those_that_are_read() -> None:
    assert {"cache-control", "expires", "age", "date"} <= KEPT_HEADERS
    assert {"etag", "last-modified", "retry-after", "vary"} <= KEPT_HEADERS
    assert all(name == name.lower() for name in KEPT_HEADERS)


# -- the state table: every (what is known, what a fetch gets, how long ago) ------

# What is known when a fetch ends, before it counts.
KNOWN: dict[str, CacheEntry | None] = {
    "nothing": None,
    "fresh file": entry(copy(age=HOUR)),
    "file, near its end": entry(copy(age=23 * HOUR)),
    "stale file": entry(copy(age=25 * HOUR)),
    "fresh file, outage": entry(copy(age=HOUR), outage(10 * MINUTE, MINUTE, 3)),
    "file, outage, retry later": entry(copy(age=3 * DAY), outage(2 * DAY, 10 * MINUTE, 50)),
    "file, outage, retry now": entry(copy(age=3 * DAY), outage(2 * DAY, 2 * HOUR, 50)),
    "file, outage of a month": entry(copy(age=32 * DAY), outage(MONTH, 2 * HOUR, 700)),
    "fresh 404": entry(copy(404, age=HOUR)),
    "404, near its end": entry(copy(404, age=23 * HOUR)),
    "stale 404": entry(copy(404, age=25 * HOUR)),
    "fresh 404, outage": entry(copy(404, age=HOUR), outage(10 * MINUTE, MINUTE, 3)),
    "stale 404, outage": entry(copy(404, age=2 * DAY), outage(DAY, 2 * HOUR, 30)),
    "outage, retry later": entry(None, outage(2 * DAY, 10 * MINUTE, 50)),
    "outage, retry now": entry(None, outage(2 * DAY, 2 * HOUR, 50)),
    "outage of a month, retry later": entry(None, outage(MONTH, 10 * MINUTE, 700)),
    "outage of a month, retry now": entry(None, outage(MONTH, 2 * HOUR, 700)),
    "404, outage of a month": entry(copy(404, age=32 * DAY), outage(MONTH, 2 * HOUR, 700)),
}

# What an evaluation says, in short: freshness, access ("wait" for none), and "fetch"
# where it is time to.
KNOWN_NOW = {
    "nothing": "absent: wait, fetch",
    "fresh file": "fresh: successful",
    "file, near its end": "fresh: successful, fetch",
    "stale file": "stale: wait, fetch",
    "fresh file, outage": "outage: successful",
    "file, outage, retry later": "outage: successful",
    "file, outage, retry now": "outage: successful, fetch",
    "file, outage of a month": "outage: successful, fetch",
    "fresh 404": "fresh: unavailable",
    "404, near its end": "fresh: unavailable, fetch",
    "stale 404": "stale: wait, fetch",
    "fresh 404, outage": "outage: unavailable",
    "stale 404, outage": "refused: wait, fetch",
    "outage, retry later": "refused: unreachable",
    "outage, retry now": "refused: wait, fetch",
    "outage of a month, retry later": "given up: unavailable",
    "outage of a month, retry now": "given up: unavailable, fetch",
    "404, outage of a month": "given up: unavailable, fetch",
}

NO_ANSWER = FetchResult(URL, failure=Failure.NO_ANSWER)
RESULTS = {
    "200": FetchResult(URL, 200, b"User-agent: *\nDisallow: /a\n"),
    "304": FetchResult(URL, 304),
    "304 unasked": FetchResult(URL, 304),
    "404": FetchResult(URL, 404),
    "403": FetchResult(URL, 403),
    "429": FetchResult(URL, 429),
    "503": FetchResult(URL, 503),
    "no answer": NO_ANSWER,
    "redirects": FetchResult(URL, 302, failure=Failure.TOO_MANY_REDIRECTS),
}

AGES = {
    "just after": 1.0,
    "two hours later": 2 * HOUR,
    "near the end": 23 * HOUR + 1,
    "after the end": 24 * HOUR + 1,
    "a day after the end": 48 * HOUR,
    "a month later": MONTH,
}

# How it goes on, if nobody fetches any more.
LIVES = {
    "file": (
        "fresh: successful",
        "fresh: successful",
        "fresh: successful, fetch",
        "stale: wait, fetch",
        "stale: wait, fetch",
        "stale: wait, fetch",
    ),
    "none": (
        "fresh: unavailable",
        "fresh: unavailable",
        "fresh: unavailable, fetch",
        "stale: wait, fetch",
        "stale: wait, fetch",
        "stale: wait, fetch",
    ),
    # The file from before; not for longer than it is known that it is needed.
    "last": (
        "outage: successful",
        "outage: successful, fetch",
        "outage: successful, fetch",
        "outage: successful, fetch",
        "stale: wait, fetch",
        "stale: wait, fetch",
    ),
    # The 404 from before, an hour old.
    "was": (
        "outage: unavailable",
        "outage: unavailable, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
    ),
    # The same 23 hours old.
    "ends": (
        "outage: unavailable",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
    ),
    "shut": (
        "refused: unreachable",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
    ),
    "open": (
        "given up: unavailable",
        "given up: unavailable, fetch",
        "given up: unavailable, fetch",
        "given up: unavailable, fetch",
        "refused: wait, fetch",
        "refused: wait, fetch",
    ),
}

# fmt: off
TABLE = {
    # 304?: unasked; n.a.: no answer; more: too many redirects
    #                                  200  304  304? 404  403  429  503  n.a. more
    "nothing":                        "file shut shut none none none shut shut none",
    "fresh file":                     "file file last none none none last last none",
    "file, near its end":             "file file last none none none last last none",
    "stale file":                     "file file last none none none last last none",
    "fresh file, outage":             "file file last none none none last last none",
    "file, outage, retry later":      "file file last none none none last last none",
    "file, outage, retry now":        "file file last none none none last last none",
    "file, outage of a month":        "file file last none none none last last none",
    "fresh 404":                      "file was  was  none none none was  was  none",
    "404, near its end":              "file ends ends none none none ends ends none",
    "stale 404":                      "file shut shut none none none shut shut none",
    "fresh 404, outage":              "file was  was  none none none was  was  none",
    "stale 404, outage":              "file shut shut none none none shut shut none",
    "outage, retry later":            "file shut shut none none none shut shut none",
    "outage, retry now":              "file shut shut none none none shut shut none",
    "outage of a month, retry later": "file open open none none none open open none",
    "outage of a month, retry now":   "file open open none none none open open none",
    "404, outage of a month":         "file open open none none none open open none",
}
# fmt: on

TRANSITIONS = [
    (known, result, life)
    for known, row in TABLE.items()
    for result, life in zip(RESULTS, row.split(), strict=True)
]


def in_short(evaluation: Evaluation) -> str:
    access = evaluation.access.value if evaluation.access else "wait"
    return f"{evaluation.freshness.value}: {access}" + (", fetch" if evaluation.due else "")


def seen(
    known: CacheEntry | None,
    after: float = 0.0,
    dialect: Dialect = RFC9309,
    overrides: dict[int, Access] | None = None,
    bounds: Bounds = BOUNDS,
) -> str:
    return in_short(evaluate(known, dialect, overrides, bounds, NOW + after))


@pytest.mark.clause(
    "RFC 9111 4-3", "RFC 9111 4.2-1", "RFC 9309 2.3.1.4-3", "RFC 9309 2.3.1.4-4", "RFC 9309 2.4-d1"
)
@pytest.mark.parametrize("known", KNOWN)
def test_what_is_known_now(known: str) -> None:
    assert seen(KNOWN[known]) == KNOWN_NOW[known]


@pytest.mark.clause(
    "Draft 2019 2.3.1.3-1", "RFC 9111 4.2.4-2", "RFC 9309 2.3.1.4-3", "RFC 9309 2.4-4"
)
@pytest.mark.parametrize(("known", "result", "life"), TRANSITIONS)
def test_transition(known: str, result: str, life: str) -> None:
    after = updated(KNOWN[known], RESULTS[result], conditional=result == "304")
    assert tuple(seen(after, age) for age in AGES.values()) == LIVES[life]


def test_the_table_is_whole() -> None:
    assert TABLE.keys() == KNOWN.keys() == KNOWN_NOW.keys()
    assert {life for _, _, life in TRANSITIONS} == LIVES.keys()


@pytest.mark.parametrize("result", RESULTS)
def test_what_a_request_has_waited_for_serves_it(result: str) -> None:
    """However short lifetimes and delays are."""
    bounds = Bounds(min_age=0, max_age=1e-12, retry_delay=1e-12, retry_max_delay=1e-12)
    for known in KNOWN.values():
        after = updated(known, RESULTS[result], conditional=result == "304")
        evaluation = evaluate(after, RFC9309, None, bounds, NOW)
        assert evaluation.access is not None
        assert evaluation.until > NOW


# In the draft of 1996, 403 disallows all, and a copy lasts 7 days.
KEPT_OUT: dict[str, CacheEntry | None] = {
    "fresh 403": entry(copy(403, age=HOUR)),
    "stale 403": entry(copy(403, age=8 * DAY)),
    "fresh 403, outage": entry(copy(403, age=HOUR), outage(10 * MINUTE, MINUTE, 3)),
    "stale 403, outage": entry(copy(403, age=8 * DAY), outage(DAY, 2 * HOUR, 30)),
    # The last that was heard is to keep out.
    "403, outage of a month": entry(copy(403, age=40 * DAY), outage(MONTH, 2 * HOUR, 700)),
}


@pytest.mark.clause("Koster 1996 3.1-7")
@pytest.mark.parametrize(
    ("known", "now", "after_200", "after_403", "after_404", "after_429", "after_503"),
    [
        (
            "fresh 403",
            "fresh: disallowed",
            "fresh: successful",
            "fresh: disallowed",
            "fresh: unavailable",
            "outage: disallowed",
            "outage: disallowed",
        ),
        (
            "stale 403",
            "stale: wait, fetch",
            "fresh: successful",
            "fresh: disallowed",
            "fresh: unavailable",
            "refused: unreachable",
            "refused: unreachable",
        ),
        (
            "fresh 403, outage",
            "outage: disallowed",
            "fresh: successful",
            "fresh: disallowed",
            "fresh: unavailable",
            "outage: disallowed",
            "outage: disallowed",
        ),
        (
            "stale 403, outage",
            "refused: wait, fetch",
            "fresh: successful",
            "fresh: disallowed",
            "fresh: unavailable",
            "refused: unreachable",
            "refused: unreachable",
        ),
        (
            "403, outage of a month",
            "refused: wait, fetch",
            "fresh: successful",
            "fresh: disallowed",
            "fresh: unavailable",
            "refused: unreachable",
            "refused: unreachable",
        ),
    ],
)
def test_what_kept_crawlers_out(
    known: str,
    now: str,
    after_200: str,
    after_403: str,
    after_404: str,
    after_429: str,
    after_503: str,
) -> None:
    assert seen(KEPT_OUT[known], dialect=KOSTER1996) == now
    found = [
        seen(updated(KEPT_OUT[known], RESULTS[result], KOSTER1996), 1, KOSTER1996)
        for result in ("200", "403", "404", "429", "503")
    ]
    assert found == [after_200, after_403, after_404, after_429, after_503]


def test_an_outage_that_keeps_out_to_this_reader_is_not_given_up() -> None:
    """Its writer had ``{403: "unreachable"}``."""
    known = entry(None, Outage(FetchResult(URL, 403), NOW - MONTH, NOW, 700))
    assert seen(known, 1, RFC9309) == "given up: unavailable"
    assert seen(known, 1, KOSTER1996) == "refused: unreachable"
    assert seen(known, 1, overrides={403: Access.DISALLOWED}) == "refused: unreachable"


# -- the same entry, other readers ----------------------------------------------


@pytest.mark.parametrize(
    ("status", "rfc9309", "google"),
    [
        (200, "fresh: successful", "fresh: successful"),
        (404, "fresh: unavailable", "fresh: unavailable"),
        (429, "fresh: unavailable", "absent: wait, fetch"),
        # Whoever wrote this had overrides.
        (503, "absent: wait, fetch", "absent: wait, fetch"),
    ],
)
def test_a_copy_is_what_its_reader_says(status: int, rfc9309: str, google: str) -> None:
    assert seen(entry(copy(status)), dialect=RFC9309) == rfc9309
    assert seen(entry(copy(status)), dialect=GOOGLE) == google


def test_a_copy_that_is_none_to_its_reader_does_not_help_in_an_outage() -> None:
    known = entry(copy(429), outage())
    assert seen(known, 1, RFC9309) == "outage: unavailable"
    assert seen(known, 1, GOOGLE) == "refused: unreachable"


def test_overrides_are_those_of_the_reader() -> None:
    assert seen(entry(copy(404)), overrides={404: Access.DISALLOWED}) == "fresh: disallowed"
    assert seen(entry(copy(404)), overrides={404: Access.UNREACHABLE}) == "absent: wait, fetch"
    assert seen(entry(copy(503)), overrides={503: Access.UNAVAILABLE}) == "fresh: unavailable"


def test_facts_without_any_are_nothing() -> None:
    assert seen(entry()) == "absent: wait, fetch"


# -- when to evaluate again -----------------------------------------------------


@pytest.mark.parametrize(
    ("known", "dialect", "until"),
    [
        (entry(copy()), RFC9309, 0.9 * DAY),
        (entry(copy(age=0.9 * DAY)), RFC9309, 0.1 * DAY),
        # At least half a minute for a refresh, at most half of the lifetime.
        (entry(copy(headers=(("cache-control", "max-age=100"),))), GOOGLE, 70),
        (entry(copy(headers=(("cache-control", "max-age=40"),))), GOOGLE, 20),
        # Of an outage: the next attempt, or the end of what is used meanwhile.
        (entry(copy(age=HOUR), outage()), RFC9309, MINUTE),
        (entry(copy(404, age=DAY - 30), outage()), RFC9309, 30),
        (entry(copy(404, age=DAY - 90), outage(last=MINUTE)), RFC9309, 90),
        (entry(copy(404, age=DAY), outage()), RFC9309, MINUTE),
        (entry(copy(age=3 * DAY), outage(last=MINUTE)), RFC9309, DAY),
        (entry(None, outage()), RFC9309, MINUTE),
        (entry(None, outage(MONTH)), RFC9309, MINUTE),
        (entry(None, outage(MONTH + MINUTE, MINUTE)), RFC9309, DAY),
        # Nothing is usable.
        (None, RFC9309, 0),
        (entry(copy(age=DAY)), RFC9309, 0),
        (entry(None, outage(last=MINUTE)), RFC9309, 0),
        (entry(None, outage(MONTH + DAY + MINUTE, DAY + MINUTE)), RFC9309, 0),
        (entry(copy(age=3 * DAY), outage(last=DAY + MINUTE)), RFC9309, 0),
        (entry(copy(), outage()), KOSTER1994, MINUTE),
        (entry(copy(), outage(last=MINUTE)), KOSTER1994, math.inf),
    ],
)
def test_until(known: CacheEntry | None, dialect: Dialect, until: float) -> None:
    evaluation = evaluate(known, dialect, None, Bounds(min_age=0), NOW)
    assert evaluation.until - NOW == pytest.approx(until, abs=0.001)
    assert (evaluation.access is None) is (until == 0)


def test_the_copy_in_use() -> None:
    file, none = copy(age=HOUR), copy(404, age=HOUR)
    assert evaluate(entry(file), RFC9309, None, BOUNDS, NOW).stored is file
    assert evaluate(entry(none), RFC9309, None, BOUNDS, NOW).stored is none
    assert evaluate(entry(file, outage()), RFC9309, None, BOUNDS, NOW).stored is file
    # In use means that a request may go by it.
    assert evaluate(entry(file), RFC9309, None, BOUNDS, NOW + DAY).stored is None
    assert evaluate(entry(none, outage(MONTH)), RFC9309, None, BOUNDS, NOW + DAY).stored is None


# -- grace ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "last", "grace", "expected"),
    [
        (30 * DAY, 0, 30 * DAY, "refused: unreachable"),
        (30 * DAY + 1, 0, 30 * DAY, "given up: unavailable"),
        (HOUR + 1, 0, HOUR, "given up: unavailable"),
        # No attempt, a month ago or now, is known to be part of a longer outage.
        (0, 0, 0, "refused: unreachable"),
        (MONTH, MONTH, 30 * DAY, "refused: wait, fetch"),
        (MONTH + DAY, DAY + MINUTE + 1, 29 * DAY, "refused: wait, fetch"),
        # Known for a day after the next attempt was due, and no moment longer.
        (MONTH + DAY, DAY + MINUTE - 1, 29 * DAY, "given up: unavailable, fetch"),
        (MONTH + DAY, DAY + MINUTE, 29 * DAY, "refused: wait, fetch"),
        (1000 * DAY, 0, math.inf, "refused: unreachable"),
    ],
)
def test_grace(since: float, last: float, grace: float, expected: str) -> None:
    known = entry(None, outage(since, last))
    assert seen(known, bounds=Bounds(grace=grace)) == expected


# -- what each dialect does in an outage ------------------------------------------

WEEK = 7 * DAY


@pytest.mark.clause("Koster 1996 3.1-8", "Koster 1996 3.4-2")
@pytest.mark.parametrize(
    ("known", "rfc9309", "google", "koster1996", "koster1994"),
    [
        # A file within its lifetime, and one beyond.
        (entry(copy(age=HOUR), outage()), *["outage: successful"] * 4),
        (
            entry(copy(age=WEEK + DAY), outage(DAY)),
            "outage: successful",
            "outage: successful",
            "refused: unreachable",
            "outage: successful",
        ),
        (
            entry(copy(age=MONTH + WEEK), outage(MONTH, MINUTE, 20)),
            "outage: successful",
            "outage: successful",
            "refused: unreachable",
            "outage: successful",
        ),
        (
            entry(copy(404, WEEK + DAY), outage(DAY)),
            "refused: unreachable",
            "refused: unreachable",
            "refused: unreachable",
            "outage: unavailable",
        ),
        # Nothing, for a day and for a month.
        (entry(None, outage(DAY)), *["refused: unreachable"] * 4),
        (
            entry(None, outage(MONTH)),
            "given up: unavailable",
            "given up: unavailable",
            "refused: unreachable",
            "given up: unavailable",
        ),
    ],
)
def test_an_outage_in_each_dialect(
    known: CacheEntry, rfc9309: str, google: str, koster1996: str, koster1994: str
) -> None:
    found = [seen(known, dialect=dialect) for dialect in (RFC9309, GOOGLE, KOSTER1996, KOSTER1994)]
    assert found == [rfc9309, google, koster1996, koster1994]


def test_a_copy_is_verified_before_it_is_used_again_in_1996() -> None:
    # §3.4: robots "must periodically verify the cached copy is fresh before using its contents".
    known = entry(copy(age=WEEK + DAY), outage())
    assert seen(known, dialect=KOSTER1996) == "refused: unreachable"
    assert seen(known, MINUTE, KOSTER1996) == "refused: wait, fetch"
    assert seen(updated(known, FetchResult(URL, 200), KOSTER1996), 1, KOSTER1996) == (
        "fresh: successful"
    )


def test_who_gives_up_in_1996_has_said_when() -> None:
    known = entry(None, outage(MONTH))
    bounds = Bounds(grace=30 * DAY)
    assert seen(known, dialect=KOSTER1996, bounds=bounds) == "given up: unavailable"


def test_a_failure_of_last_month_and_one_of_today_are_an_outage_of_a_month() -> None:
    known = entry(None, outage(MONTH, MONTH))
    assert seen(updated(known, NO_ANSWER)) == "given up: unavailable"


# -- times that cannot be -------------------------------------------------------


@pytest.mark.clause("RFC 9111 4-6")
@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (entry(copy(age=-CLOCK_SKEW)), "fresh: successful"),
        (entry(copy(age=-CLOCK_SKEW - 1)), "stale: wait, fetch"),
        (entry(copy(404, age=-HOUR)), "stale: wait, fetch"),
        (entry(copy(age=-math.inf)), "stale: wait, fetch"),
        (entry(copy(age=math.inf)), "stale: wait, fetch"),
        (entry(copy(age=math.nan)), "stale: wait, fetch"),
        (entry(copy(404, age=-HOUR), outage()), "refused: unreachable"),
        # A file is a file, whenever it came.
        (entry(copy(age=-HOUR), outage()), "outage: successful"),
        # An outage that is seen in the future: time to retry, and not given up.
        (entry(None, outage(since=-HOUR, last=-HOUR)), "refused: wait, fetch"),
        (entry(None, outage(since=MONTH, last=-MONTH)), "refused: wait, fetch"),
        (entry(None, outage(since=MONTH, last=-math.inf)), "refused: wait, fetch"),
        (entry(None, outage(since=MONTH, last=math.nan)), "refused: wait, fetch"),
        (entry(None, outage(since=MONTH, last=math.inf)), "refused: wait, fetch"),
        (entry(copy(), outage(last=-HOUR)), "outage: successful, fetch"),
        (entry(copy(age=2 * DAY), outage(last=-HOUR)), "stale: wait, fetch"),
        # One since a time that cannot be is not given up.
        (entry(None, outage(since=math.inf)), "refused: unreachable"),
        (entry(None, outage(since=-math.inf)), "refused: unreachable"),
        (entry(None, outage(since=math.nan)), "refused: unreachable"),
        (entry(None, outage(since=NOW)), "refused: unreachable"),
        (entry(None, outage(since=NOW + 1)), "refused: unreachable"),
    ],
)
def test_times_that_cannot_be(known: CacheEntry, expected: str) -> None:
    assert seen(known) == expected


# -- whatever the entry ---------------------------------------------------------

TIMES = st.one_of(
    st.floats(),
    st.floats(NOW - 40 * DAY, NOW + DAY),
    st.sampled_from([NOW, NOW - DAY, NOW - MONTH, 0.0]),
)
VALUES = st.one_of(
    st.text(),
    st.text('max-age=0123456789,no-store" \\'),
    st.integers().map(str),
    st.integers().map("max-age={}".format),
    st.floats(0, 2e11).map(date),
)
HEADERS = st.lists(st.tuples(st.sampled_from(sorted(KEPT_HEADERS)), VALUES)).map(tuple)
FETCHED = st.builds(
    FetchResult,
    url=st.sampled_from([URL, "https://example.org/robots.txt"]),
    status=st.one_of(st.none(), st.sampled_from([200, 304, 403, 404, 429, 503]), st.integers()),
    failure=st.one_of(st.none(), st.sampled_from(Failure)),
    headers=HEADERS,
)
COPIES = st.builds(StoredResponse, FETCHED, fetched_at=TIMES, confirmed_at=TIMES)
OUTAGES = st.builds(Outage, FETCHED, since=TIMES, last_at=TIMES, attempts=st.integers())
FACTS = st.builds(
    CacheEntry, st.just(ORIGIN), st.one_of(st.none(), COPIES), st.one_of(st.none(), OUTAGES)
)
READERS = st.sampled_from(list(DIALECTS.values()))
SPANS = st.floats(0.001, 100 * DAY)
ALL_BOUNDS = st.builds(
    Bounds,
    min_age=SPANS,
    max_age=st.one_of(st.none(), SPANS),
    retry_delay=SPANS,
    retry_max_delay=SPANS,
    grace=st.one_of(st.none(), SPANS, st.just(math.inf)),
    started=st.floats(NOW - MONTH, NOW),
)


def is_past(known: CacheEntry) -> bool:
    """Whether *known* is of the past, as entry are while no clock is set back."""
    times = [known.stored.confirmed_at] if known.stored else []
    times += [known.outage.last_at] if known.outage else []
    return all(time <= NOW + CLOCK_SKEW for time in times)


@given(FACTS, READERS, ALL_BOUNDS)
def test_an_evaluation_is_about_now(known: CacheEntry, dialect: Dialect, bounds: Bounds) -> None:
    evaluation = evaluate(known, dialect, None, bounds, NOW)
    if evaluation.access is None:
        assert (evaluation.until, evaluation.due, evaluation.stored) == (NOW, True, None)
    else:
        assert evaluation.until > NOW


@given(FACTS, READERS, ALL_BOUNDS, st.floats(0, 1, exclude_max=True))
def test_an_evaluation_holds_until_it_says(
    known: CacheEntry, dialect: Dialect, bounds: Bounds, part: float
) -> None:
    assume(is_past(known))
    evaluation = evaluate(known, dialect, None, bounds, NOW)
    until = min(evaluation.until, NOW + 100 * MONTH)
    later = NOW + part * (until - NOW)
    if later < until:
        assert evaluate(known, dialect, None, bounds, later) == evaluation
    if evaluation.until < math.inf:
        after = evaluate(known, dialect, None, bounds, evaluation.until)
        assert evaluation.access is None or after != evaluation


@given(FACTS, READERS, ALL_BOUNDS)
def test_nothing_is_allowed_by_accident(
    known: CacheEntry, dialect: Dialect, bounds: Bounds
) -> None:
    evaluation = evaluate(known, dialect, None, bounds, NOW)
    if evaluation.access is not Access.UNAVAILABLE:
        return
    if evaluation.stored is not None:
        assert evaluation.stored is known.stored
        assert access_result(evaluation.stored.result, dialect) is Access.UNAVAILABLE
        assert evaluation.stored.confirmed_at <= NOW + CLOCK_SKEW
        seconds = lifetime(evaluation.stored, dialect, bounds)
        if math.isinf(seconds):
            assert evaluation.stored.confirmed_at >= bounds.started
        else:
            assert evaluation.stored.confirmed_at + seconds > NOW
    else:
        assert known.outage is not None
        assert evaluation.freshness is Freshness.GIVEN_UP
        grace = dialect.grace if bounds.grace is None else bounds.grace
        assert known.outage.last_at - known.outage.since > grace
        assert known.outage.last_at <= NOW + CLOCK_SKEW


@given(FACTS, READERS, ALL_BOUNDS)
def test_rules_come_from_a_file(known: CacheEntry, dialect: Dialect, bounds: Bounds) -> None:
    evaluation = evaluate(known, dialect, None, bounds, NOW)
    if evaluation.access is Access.SUCCESSFUL:
        assert evaluation.stored is not None
        assert access_result(evaluation.stored.result, dialect) is Access.SUCCESSFUL


@given(FACTS, READERS, ALL_BOUNDS)
def test_with_time_alone_nothing_becomes_usable(
    known: CacheEntry, dialect: Dialect, bounds: Bounds
) -> None:
    """What has to be waited for once stays so; what ends, ends in that or a refusal."""
    assume(is_past(known))
    now = evaluate(known, dialect, None, bounds, NOW)
    later = evaluate(known, dialect, None, bounds, NOW + HOUR)
    if now.access is None:
        assert later.access is None
    else:
        assert later.access in (now.access, Access.UNREACHABLE, None)


@given(COPIES, READERS, ALL_BOUNDS)
def test_a_lifetime_is_within_its_bounds(
    held: StoredResponse, dialect: Dialect, bounds: Bounds
) -> None:
    seconds = lifetime(held, dialect, bounds)
    assert seconds > 0
    assert seconds <= max(2.0**31, dialect.lifetime)
    if bounds.max_age is not None:
        assert seconds <= bounds.max_age
        assert seconds >= min(bounds.min_age, bounds.max_age)


@given(OUTAGES, ALL_BOUNDS)
def test_a_retry_is_soon(known: Outage, bounds: Bounds) -> None:
    delay = retry_at(replace(known, last_at=NOW), bounds) - NOW
    assert 0 < delay <= max(bounds.retry_max_delay, LONGEST_RETRY_AFTER) + 1


@pytest.mark.once
@given(FACTS)
def test_validators_are_harmless(known: CacheEntry) -> None:
    for name, value in validators(known):
        assert name in ("If-None-Match", "If-Modified-Since")
        assert all(" " <= c <= "~" or "\xa0" <= c <= "\xff" for c in value)


@pytest.mark.once
@given(st.one_of(st.none(), FACTS), FETCHED, READERS, ALL_BOUNDS, st.booleans())
def test_what_was_just_learned_is_usable(
    known: CacheEntry | None, result: FetchResult, dialect: Dialect, bounds: Bounds, asked: bool
) -> None:
    access = access_result(result, dialect)
    after = update(known, ORIGIN, result, access, NOW, conditional=asked)
    evaluation = evaluate(after, dialect, None, bounds, NOW)
    assert evaluation.access is not None
    if after.outage is None:
        assert evaluation.freshness is Freshness.FRESH
        assert after.stored is not None
        assert after.stored.confirmed_at == NOW
    else:
        assert after.stored is (known.stored if known else None)
        assert after.outage.last_at == NOW
        assert evaluation.freshness in (Freshness.OUTAGE, Freshness.REFUSED, Freshness.GIVEN_UP)
