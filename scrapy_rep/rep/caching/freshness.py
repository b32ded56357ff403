"""How long a cache entry may be used, and when to fetch again (RFC 9309 §2.3.1.4, §2.4; RFC 9111).

Entries come from servers and stores, which are not trusted: no value in them can raise an
exception here or last forever. Times are seconds since the epoch, spans are seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from email.utils import parsedate_tz
from enum import Enum

from ..dialects import Access, Dialect
from ..parsing.urls import Origin
from .access import FetchResult, Headers, Overrides, access_result
from .cache_entry import CacheEntry, Outage, StoredResponse

#: The response headers, in lower case, that this file reads.
KEPT_HEADERS = frozenset(
    {"age", "cache-control", "date", "etag", "expires", "last-modified", "retry-after", "vary"}
)
# Headers about one message, not about the file: a 304 replaces or removes them.
_ABOUT_ONE_MESSAGE = frozenset({"age", "date", "retry-after"})

#: The most seconds by which the clocks of machines that share a store may differ. A time further
#: in the future was written before a clock was set back.
CLOCK_SKEW = 60.0
#: The longest Retry-After that counts: a header must not block an origin forever.
LONGEST_RETRY_AFTER = 24 * 3600.0

# RFC 9111 §1.2.2, delta-seconds: what is too large to represent "MUST" be
# considered "to be 2147483648 (2^31)".
_LARGEST_DELTA = 2.0**31
# The shortest lifetime: a request can use the response that it has waited for, and the sum of a
# time and this value is always a later time.
_LEAST = 0.001
_MOST_ATTEMPTS = 2**31  # The count stops here: stores have integers of 64 bits.
_LONGEST_VALIDATOR = 512  # Some servers refuse a request with long headers.


@dataclass(frozen=True, slots=True)
class Bounds:
    """The settings of a crawl that bound lifetimes and retries, in seconds."""

    #: ``REP_MIN_AGE``: the shortest lifetime of a stored response, regardless of headers.
    min_age: float = 300.0
    #: ``REP_MAX_AGE``: the longest lifetime; ``None`` for the dialect's. It overrides *min_age*.
    max_age: float | None = None
    #: ``REP_RETRY_DELAY``: from the first failed attempt to the next; it doubles each time,
    retry_delay: float = 60.0
    retry_max_delay: float = 3600.0  #: ``REP_RETRY_MAX_DELAY``: up to this.
    #: ``REP_UNREACHABLE_GRACE``: how long an unreachable origin without a stored response is
    #: refused; can be infinite; ``None`` for the dialect's.
    grace: float | None = None
    #: The start of the crawl: a response with an infinite lifetime is used by one crawl only.
    started: float = 0.0


class Freshness(Enum):
    """The state of a cache entry at a time."""

    ABSENT = "absent"  #: There is no entry.
    FRESH = "fresh"  #: The last response is within its lifetime.
    STALE = "stale"  #: It is past its lifetime (RFC 9309 §2.4: "SHOULD NOT use").
    #: The robots.txt is unreachable; the earlier response is still used
    #: (RFC 9309 §2.4: "unless the robots.txt is unreachable").
    OUTAGE = "outage"
    #: It is unreachable, and there is no earlier response (§2.3.1.4: "complete disallow").
    REFUSED = "refused"
    #: It has been unreachable for longer than the grace period (§2.3.1.4: "a reasonably long
    #: period of time"), and counts as unavailable.
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a cache entry allows a crawler to do until the time *until*.

    *access* is ``None`` if a request has to wait for a fetch; then *until* is now. *stored* is the
    stored response that *access* comes from, if any. *due* says that it is time to fetch again:
    in the background, if *access* is not ``None``.
    """

    freshness: Freshness
    access: Access | None
    stored: StoredResponse | None
    until: float
    due: bool = False


def evaluate(
    entry: CacheEntry | None, dialect: Dialect, overrides: Overrides, bounds: Bounds, now: float
) -> Evaluation:
    """What *entry* allows at time *now* (RFC 9309 §2.3.1.4, §2.4).

    *dialect* and *overrides* are those of the crawl that reads the entry, not of its writer.
    """
    stored = entry.stored if entry else None
    access = access_result(stored.result, dialect, overrides) if stored else None
    if access is Access.UNREACHABLE:
        # The crawl that wrote it could use it (for example, a 429), but this crawl cannot.
        stored = access = None
    start = end = -math.inf
    if stored is not None and _is_past(stored.confirmed_at, now):
        start = stored.confirmed_at
        end = _later(start, lifetime(stored, dialect, bounds), bounds)
    if entry is not None and entry.outage is not None:
        usable = Evaluation(Freshness.OUTAGE, access, stored, end)
        last = access_result(entry.outage.result, dialect, overrides)
        return _evaluate_outage(usable, entry.outage, last, dialect, bounds, now)
    freshness = Freshness.FRESH if now < end else Freshness.STALE if stored else Freshness.ABSENT
    # A refresh begins in the last tenth of a lifetime. It gets 30 s, but at most half of the time.
    span = end - start
    refresh_at = start + max(min(span * 0.9, span - 30), span / 2)
    return _at(now, Evaluation(freshness, access, stored, end), refresh_at)


def _evaluate_outage(
    usable: Evaluation, outage: Outage, last: Access, dialect: Dialect, bounds: Bounds, now: float
) -> Evaluation:
    """The evaluation of an entry with *outage*, whose access result is *last*."""
    due_at = retry_at(outage, bounds) if _is_past(outage.last_at, now) else -math.inf
    # "Unreachable" has a lifetime, like "unavailable". After it, for example if no crawl has run
    # for a while, the state is unknown.
    known_until = _later(due_at, _bounded(dialect.lifetime, dialect, bounds), bounds)
    # RFC 9309 §2.4 lets a cached robots.txt outlive its lifetime, but not the lack of one.
    outlives = usable.access is Access.SUCCESSFUL and dialect.stale_in_outage
    if outlives:
        usable = replace(usable, until=max(usable.until, known_until))
    if now < usable.until:
        return _at(now, usable, due_at)
    if outlives:
        return _at(now, replace(usable, freshness=Freshness.STALE), due_at)
    grace = dialect.grace if bounds.grace is None else bounds.grace
    # Only the time from the first attempt to the last counts: one attempt a month ago does not
    # allow anything today. A start of 0 is not a measured time.
    lasted = outage.since > 0 and outage.last_at - outage.since > grace
    if now < known_until and lasted and Access.DISALLOWED not in (usable.access, last):
        usable = Evaluation(Freshness.GIVEN_UP, Access.UNAVAILABLE, None, known_until)
    else:
        usable = Evaluation(Freshness.REFUSED, Access.UNREACHABLE, None, due_at)
    return _at(now, usable, due_at)


def _at(now: float, usable: Evaluation, due_at: float) -> Evaluation:
    """The evaluation at *now* of what is *usable* until a time, if a fetch is due at *due_at*."""
    if now >= usable.until:
        return Evaluation(usable.freshness, None, None, until=now, due=True)
    due = now >= due_at
    until = usable.until if due else min(due_at, usable.until)
    return Evaluation(usable.freshness, usable.access, usable.stored, until, due)


def _is_past(time: float, now: float) -> bool:
    """Whether *time*, of a past event, is plausible. NaN is not."""
    return time <= now + CLOCK_SKEW


def validators(entry: CacheEntry | None) -> Headers:
    """Headers that make a request for the URL of the stored file conditional (RFC 9111 §4.3.1)."""
    if entry is None or entry.stored is None or not entry.stored.is_file:
        return ()
    if entry.outage is not None and entry.outage.result.status == 304:
        # The last request had them, and the 304 did not match the stored file (see _confirms).
        return ()
    headers = entry.stored.result.headers
    found = []
    etag = _first(headers, "etag") or ""
    if len(etag) <= _LONGEST_VALIDATOR and _SENDABLE.fullmatch(etag):
        found.append(("If-None-Match", etag))
    modified = _first(headers, "last-modified") or ""
    if _http_date(modified, entry.stored.confirmed_at) is not None:
        found.append(("If-Modified-Since", modified))
    return tuple(found)


def shared_with(entry: CacheEntry | None, user_agent: str) -> CacheEntry | None:
    """The part of *entry*, which another crawl may have written, that *user_agent* may use.

    RFC 9111 §4.1: without a response that varies by User-Agent and was sent to another one.
    """
    if entry is None or entry.stored is None or entry.stored.result.user_agent == user_agent:
        return entry
    varies_by = {
        name.strip(_BLANK).lower()
        for value in _values(entry.stored.result.headers, "vary")
        for name in value.split(",")
    }
    if varies_by.isdisjoint(("user-agent", "*")):
        return entry
    return None if entry.outage is None else replace(entry, stored=None)


def of_lifetime(headers: Headers) -> Headers:
    """The *headers* that determine the lifetime of a response."""
    names = ("age", "cache-control", "date", "expires")
    return tuple(field for field in headers if field[0] in names)


def update(
    known: CacheEntry | None,
    origin: Origin,
    result: FetchResult,
    access: Access,
    now: float,
    *,
    conditional: bool = False,
) -> CacheEntry:
    """The cache entry of *origin* after a fetch that ended at time *now* with *result*.

    *known* is the entry before the fetch, *access* the access result of *result* in this crawl.
    *conditional* says that the request had the headers of ``validators(known)``.
    """
    stored = known.stored if known else None
    if conditional and stored is not None and _confirms(result, stored):
        # RFC 9111 §3.2. shared_with() compares with the request that was answered last.
        gone = {name for name, _ in result.headers} | _ABOUT_ONE_MESSAGE
        headers = [field for field in stored.result.headers if field[0] not in gone]
        headers += [field for field in result.headers if field[0] in KEPT_HEADERS]
        confirmed = replace(
            stored.result, headers=tuple(headers), via=result.via, user_agent=result.user_agent
        )
        # Fetched earlier than *now*, unless the clock was set back.
        return CacheEntry(origin, StoredResponse(confirmed, min(stored.fetched_at, now), now))
    if access is not Access.UNREACHABLE:
        return CacheEntry(origin, StoredResponse(result, fetched_at=now, confirmed_at=now))
    since, attempts = now, 0
    if known is not None and (outage := known.outage) is not None:
        # A start in the future, or in 1970, is wrong.
        since = outage.since if 0 < outage.since <= now else now
        attempts = min(max(outage.attempts, 0), _MOST_ATTEMPTS)
    return CacheEntry(origin, stored, Outage(result, since, last_at=now, attempts=attempts + 1))


def _confirms(result: FetchResult, stored: StoredResponse) -> bool:
    """Whether *result* confirms that *stored* is still valid (RFC 9111 §4.3.4)."""
    if result.status != 304 or result.failure is not None or not stored.is_file:
        return False
    # RFC 9110 §8.8.1: a validator is about versions of one resource.
    if result.url != stored.result.url:
        return False
    # §4.3.4: if no stored response has the validator of the 304, it "MUST NOT" be used to
    # update any. RFC 9110 §8.8.3.2, weak comparison, without "W/": servers that compress make
    # strong validators weak.
    etag = _first(result.headers, "etag")
    if etag is not None:
        ours = _first(stored.result.headers, "etag") or ""
        return etag.removeprefix("W/") == ours.removeprefix("W/")
    modified = _first(result.headers, "last-modified")
    ours = _first(stored.result.headers, "last-modified") or ""
    if modified is None or modified == ours:
        return True
    time = _http_date(modified, stored.confirmed_at)
    return time is not None and time == _http_date(ours, stored.confirmed_at)


def lifetime(stored: StoredResponse, dialect: Dialect, bounds: Bounds) -> float:
    """The lifetime of *stored* after it was confirmed (RFC 9309 §2.4), within *bounds*."""
    seconds = dialect.lifetime
    # The headers of a redirect that was not followed are about the redirect.
    if dialect.cache_headers and stored.result.failure is None:
        # A chain of redirects is as fresh as its least fresh answer.
        seconds = min(
            _granted(headers, stored.confirmed_at, dialect.lifetime)
            for headers in (stored.result.headers, *stored.result.via)
        )
    return _bounded(seconds, dialect, bounds)


def _bounded(seconds: float, dialect: Dialect, bounds: Bounds) -> float:
    longest = dialect.max_lifetime if bounds.max_age is None else bounds.max_age
    seconds = max(seconds, bounds.min_age)
    return max(seconds if longest is None else min(seconds, longest), _LEAST)


def _later(time: float, seconds: float, bounds: Bounds) -> float:
    """*seconds* after *time*; without end, the end of the crawl."""
    if math.isinf(seconds):
        return math.inf if time >= bounds.started else -math.inf
    return time + seconds


def _granted(headers: Headers, received: float, default: float) -> float:
    """The lifetime by *headers*, received at *received* (RFC 9111 §4.2), or the *default*."""
    directives = list(_directives(headers))
    # §4.2.1: "If directives conflict (e.g., both max-age and no-cache are present),
    # the most restrictive directive should be honored." With no-store, a robots.txt is stored
    # all the same: otherwise it could not be obeyed.
    if any(name in ("no-store", "no-cache") for name, _ in directives):
        return 0.0
    # Not s-maxage, §5.2.2.10: it is for shared caches, and a crawler's is private.
    ages = {_delta_seconds(value) for name, value in directives if name == "max-age"}
    dates = {_http_date(value, received) for value in _values(headers, "expires")}
    seconds: float | None = default
    if different := ages or dates:
        # §4.2.1: of several, "either the first occurrence should be used or the response should
        # be considered stale"; "caches are encouraged to consider responses that have invalid
        # freshness information […] to be stale".
        seconds = next(iter(different)) if len(different) == 1 else None
    if seconds is not None and dates and not ages:
        seconds = min(seconds - _sent(headers, received), _LARGEST_DELTA)
    # §5.1: of several Age values the first; one that is invalid "SHOULD" be ignored. The Date
    # does not count: §4.2.3 has it for clocks that are "reasonably well synchronized".
    age = _delta_seconds((_first(headers, "age") or "").partition(",")[0].strip())
    return max(0.0, (seconds or 0.0) - (age or 0.0))


def _sent(headers: Headers, received: float) -> float:
    """The time of the Date header; without one, *received* (RFC 9110 §6.6.1)."""
    sent = _http_date(_first(headers, "date") or "", received)
    return received if sent is None else sent


def retry_at(outage: Outage, bounds: Bounds) -> float:
    """The time of the next attempt after the last one of *outage*.

    The delay is ``retry_delay``, doubled with each attempt, up to ``retry_max_delay``. A longer
    Retry-After (RFC 9110 §10.2.3) counts instead, up to a day.
    """
    # 64 are more than any setting of the two delays needs.
    doublings = min(max(outage.attempts - 1, 0), 64)
    delay = min(bounds.retry_delay * 2.0**doublings, bounds.retry_max_delay)
    asked = retry_after(outage.result.headers, outage.last_at)
    return outage.last_at + max(delay, min(asked, LONGEST_RETRY_AFTER), _LEAST)


def retry_after(headers: Headers, received: float) -> float:
    """The seconds of Retry-After (RFC 9110 §10.2.3) in *headers*, *received* then; 0 for none."""
    value = _first(headers, "retry-after") or ""
    seconds, date = _delta_seconds(value), _http_date(value, received)
    if date is not None:
        seconds = date - _sent(headers, received)
    return max(seconds or 0.0, 0.0)


# RFC 9110 §5.5: no controls; a line end would begin another header.
_SENDABLE = re.compile(r"[\x20-\x7e\xa0-\xff]+")
# RFC 9110 §5.6.7: IMF-fixdate (a day of one digit is common), rfc850-date and
# asctime-date. RFC 9111 §4.2: in any case; a zone other than GMT is invalid.
_HTTP_DATE = re.compile(
    r"[a-z]{3}, \d{1,2} [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt"
    r"|[a-z]{6,9}, \d\d-[a-z]{3}-(?P<year>\d\d) \d\d:\d\d:\d\d gmt"
    r"|[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}",
    re.IGNORECASE | re.ASCII,
)
_YEAR = 365.2425 * 24 * 3600
# One member of a list (RFC 9110 §5.6.1): commas in quoted strings do not end it.
_MEMBER = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))+', re.DOTALL)
_BLANK = " \t"


def _values(headers: Iterable[tuple[str, str]], name: str) -> Iterator[str]:
    return (value.strip(_BLANK) for key, value in headers if key == name)


def _first(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    return next(_values(headers, name), None)


def _directives(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The names, in lower case, and values in Cache-Control (RFC 9111 §5.2)."""
    for value in _values(headers, "cache-control"):
        for member in _MEMBER.findall(value):
            name, _, argument = member.partition("=")
            # §5.2: "recipients ought to accept both forms", token and quoted-string.
            argument = argument.strip(_BLANK)
            if argument[:1] == argument[-1:] == '"':
                argument = argument[1:-1]
            yield name.strip(_BLANK).lower(), argument


def _delta_seconds(text: str) -> float | None:
    """RFC 9111 §1.2.2: a non-negative integer, in digits alone."""
    if not (text.isascii() and text.isdigit()):
        return None
    # A float, which takes any number of digits: some integers may not be so long.
    return min(float(text), _LARGEST_DELTA)


def _http_date(text: str, now: float) -> float | None:
    """RFC 9110 §5.6.7, as seconds since the epoch; the century is the one closest to *now*."""
    match = _HTTP_DATE.fullmatch(text)
    fields = parsedate_tz(text) if match else None
    if match is None or fields is None:
        return None
    year, month, day, hour, minute, second = fields[:6]
    if match["year"]:
        # "Recipients […] MUST interpret a timestamp that appears to be more than 50 years in
        # the future as representing the most recent year in the past".
        this_year = 1970 + (int(now // _YEAR) if math.isfinite(now) else 0)
        year = this_year - (this_year - year) % 100
        year += 100 if year + 50 <= this_year else 0
    try:
        start_of_minute = datetime(year, month, day, hour, minute, tzinfo=timezone.utc)
    except ValueError:
        return None
    # RFC 5322 §3.3: the second 60 is a leap second.
    return start_of_minute.timestamp() + second if second <= 60 else None
