"""How long what is known of a robots.txt may be used, and what comes after.

Here may live: RFC 9309 §2.4 with RFC 9111, for how long a copy is fresh; §2.3.1.4,
what holds while a robots.txt is unreachable; what one more fetch changes in the
entry. Here may not live: clocks, waiting, and who fetches when several could.

Three questions, each a pure function: :func:`update`, what is known after a fetch;
:func:`evaluate`, what that lets a crawler do at a time; :func:`validators`, how to ask
whether it still holds. All are total: entry come from servers and stores, neither of
which is trusted, so no value in them raises, or makes anything last for good.

Times are seconds since the epoch, spans are seconds.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange, timegm
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_tz
from enum import Enum
from typing import NamedTuple

from ..dialects import Access, Dialect
from ..parsing.urls import Origin
from .access import FetchResult, Headers, access_result
from .cache_entry import CacheEntry, Outage, StoredResponse

#: Response headers, in lower case, that this file reads: those to keep of an answer.
KEPT_HEADERS = frozenset(
    {"age", "cache-control", "date", "etag", "expires", "last-modified", "retry-after", "vary"}
)
# Those that say for how long an answer may be used.
_LIFETIME_HEADERS = frozenset({"age", "cache-control", "date", "expires"})
# What is about one message and not about the file: a 304 replaces or ends it.
_ABOUT_ONE_MESSAGE = frozenset({"age", "date", "retry-after"})

#: By how much clocks of machines that share a store may differ. What is further in
#: the future was written before a clock was set back.
CLOCK_SKEW = 60.0
#: No Retry-After counts for more: one header does not shut an origin off for good.
LONGEST_RETRY_AFTER = 24 * 3600.0

# RFC 9111 §1.2.2, delta-seconds: what is too large to represent "MUST" be
# considered "to be 2147483648 (2^31)".
_LARGEST_DELTA = 2.0**31
# The shortest span there is: what a request has waited for is of use to that
# request, and a span does not get lost in the rounding of a time.
_LEAST = 0.001
# A refresh begins in the last tenth of a lifetime. It gets this many seconds, but
# not more than half of the lifetime.
_TIME_TO_REFRESH = 30.0
# More doublings than any two delays are apart.
_MOST_DOUBLINGS = 64
# Attempts are counted no further: stores have integers of 64 bits.
_MOST_ATTEMPTS = 2**31
# A server that refuses long headers would answer a plain request.
_LONGEST_VALIDATOR = 512


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a crawl sets for itself, in seconds."""

    #: ``REP_MIN_AGE``: how long a copy is used at least, whatever headers say.
    min_age: float = 300.0
    #: ``REP_MAX_AGE``: how long at most; ``None`` for what the dialect says. It
    #: wins over *min_age*.
    max_age: float | None = None
    #: ``REP_RETRY_DELAY``: from a failed attempt to the next one; doubles each time,
    retry_delay: float = 60.0
    #: ``REP_RETRY_MAX_DELAY``: up to this.
    retry_max_delay: float = 3600.0
    #: ``REP_UNREACHABLE_GRACE``: how long an origin without a copy stays refused;
    #: infinite for good; ``None`` for what the dialect says.
    grace: float | None = None
    #: When the crawl began, by the clock that gives all other times: a lifetime
    #: that is infinite means "the crawl", and does not reach back beyond it.
    started: float = 0.0


class Freshness(Enum):
    """Where an origin stands at a time, by what is known of its robots.txt."""

    #: Nothing is known.
    ABSENT = "absent"
    #: The last answer is within its lifetime.
    FRESH = "fresh"
    #: It is past its lifetime (RFC 9309 §2.4: "SHOULD NOT use").
    STALE = "stale"
    #: The robots.txt is unreachable; the copy from before goes on being used
    #: (RFC 9309 §2.4: "unless the robots.txt is unreachable").
    OUTAGE = "outage"
    #: It is unreachable, and there is no such copy (§2.3.1.4: "complete disallow").
    REFUSED = "refused"
    #: So it has been for longer than the grace (§2.3.1.4: "a reasonably long
    #: period of time"): as if there were none.
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the entry let a crawler do, from the time of judging to *until*.

    *access* is ``None`` where a request has to wait for a fetch; then *until* is
    the time of judging. Otherwise *until* is later, and is when to judge again.
    *due* says that it is time to fetch: in the background if there is an *access*.
    *copy* is the one that *access* comes from, if it comes from one.
    """

    standing: Freshness
    access: Access | None
    copy: StoredResponse | None
    until: float
    due: bool


# -- what the entry let a crawler do ------------------------------------------


def evaluate(
    entry: CacheEntry | None,
    dialect: Dialect,
    overrides: Mapping[int, Access] | None,
    bounds: Bounds,
    now: float,
) -> Evaluation:
    """What *entry* let a crawler do at time *now* (RFC 9309 §2.3.1.4, §2.4).

    *dialect* and *overrides* are those of the reader, whoever wrote the entry.
    """
    held = _held(entry.copy if entry else None, dialect, overrides, bounds, now)
    if entry is not None and entry.outage is not None:
        return _judge_outage(entry.outage, held, dialect, overrides, bounds, now)
    if held.copy is None:
        return _wait(Freshness.ABSENT, now)
    if now >= held.end:
        return _wait(Freshness.STALE, now)
    confirmed = held.copy.confirmed_at
    refresh_at = confirmed + _age_to_refresh(held.end - confirmed)
    return _use(Freshness.FRESH, held, refresh_at, now)


class _Held(NamedTuple):
    """A copy as a reader sees it: what it means, and the end of its use."""

    copy: StoredResponse | None
    access: Access | None
    end: float


_NOTHING = _Held(None, None, -math.inf)


def _held(
    copy: StoredResponse | None,
    dialect: Dialect,
    overrides: Mapping[int, Access] | None,
    bounds: Bounds,
    now: float,
) -> _Held:
    if copy is None:
        return _NOTHING
    access = access_result(copy.result, dialect, overrides)
    if access is Access.UNREACHABLE:
        # A copy to whoever wrote it (a 429, say), but not to this reader.
        return _NOTHING
    if not _is_past(copy.confirmed_at, now):
        return _Held(copy, access, -math.inf)
    return _Held(copy, access, fresh_until(copy, dialect, bounds))


def _judge_outage(
    outage: Outage,
    held: _Held,
    dialect: Dialect,
    overrides: Mapping[int, Access] | None,
    bounds: Bounds,
    now: float,
) -> Evaluation:
    due_at = retry_at(outage, bounds) if _is_past(outage.last_at, now) else -math.inf
    # That it is unreachable is known for as long as that it is not there would
    # be. If nobody has asked again since, because no crawl ran, it is not known.
    known_until = _later(due_at, _bounded(dialect.lifetime, dialect, bounds), bounds)
    # Alone a file is a cached robots.txt that RFC 9309 §2.4 lets outlive its lifetime.
    outlives = held.access is Access.SUCCESSFUL and dialect.stale_in_outage
    if outlives:
        held = held._replace(end=max(held.end, known_until))
    if now < held.end:
        return _use(Freshness.OUTAGE, held, due_at, now)
    if outlives:
        return _wait(Freshness.STALE, now)
    kept_out = Access.DISALLOWED in (
        held.access,
        access_result(outage.result, dialect, overrides),
    )
    grace = dialect.grace if bounds.grace is None else bounds.grace
    if now < known_until and not kept_out and _lasted(outage, grace):
        given_up = _Held(None, Access.UNAVAILABLE, known_until)
        return _use(Freshness.GIVEN_UP, given_up, due_at, now)
    if now >= due_at:
        return _wait(Freshness.REFUSED, now)
    return _use(Freshness.REFUSED, _Held(None, Access.UNREACHABLE, due_at), due_at, now)


def _wait(standing: Freshness, now: float) -> Evaluation:
    return Evaluation(standing, None, None, until=now, due=True)


def _use(standing: Freshness, held: _Held, due_at: float, now: float) -> Evaluation:
    copy, access, end = held
    due = now >= due_at
    return Evaluation(standing, access, copy, until=end if due else min(due_at, end), due=due)


def _is_past(time: float, now: float) -> bool:
    """Whether *time*, of something that happened, can be right. Not if it is NaN."""
    return time <= now + CLOCK_SKEW


def _lasted(outage: Outage, grace: float) -> bool:
    """Whether *outage* is known to have lasted for longer than *grace*.

    It is known from its first attempt to its last. Time in which nobody asked does
    not count: a crawl that failed once, a month ago, would allow all today. An
    outage since 1970 is none that a clock has seen.
    """
    return outage.since > 0 and outage.last_at - outage.since > grace


def _age_to_refresh(lifetime: float) -> float:
    return max(min(lifetime * 0.9, lifetime - _TIME_TO_REFRESH), lifetime / 2)


# -- how to ask, and what is known afterwards ---------------------------------


def validators(entry: CacheEntry | None) -> tuple[tuple[str, str], ...]:
    """Headers that make a request for the file conditional (RFC 9111 §4.3.1).

    Names and values; none where there is no file to be confirmed. They are for the
    URL ``entry.copy.result.url`` alone: redirects on the way know no such file.
    """
    if entry is None or entry.copy is None or not _is_file(entry.copy.result):
        return ()
    if entry.outage is not None and entry.outage.result.status == 304:
        # So has been asked, and the 304 fitted nothing (see update()).
        return ()
    headers = entry.copy.result.headers
    found = []
    etag = _first(headers, "etag")
    if etag is not None and len(etag) <= _LONGEST_VALIDATOR and _SENDABLE.fullmatch(etag):
        found.append(("If-None-Match", etag))
    modified = _first(headers, "last-modified")
    if modified is not None and _http_date(modified, entry.copy.confirmed_at) is not None:
        found.append(("If-Modified-Since", modified))
    return tuple(found)


def shared_with(entry: CacheEntry | None, user_agent: str) -> CacheEntry | None:
    """What of *entry*, which others may have written, holds for who sends *user_agent*.

    RFC 9111 §4.1: without an answer that varies by User-Agent and was sent to another one.
    """
    if entry is None or entry.copy is None or entry.copy.result.user_agent == user_agent:
        return entry
    varies_by = {
        name.strip(_BLANK).lower()
        for value in _values(entry.copy.result.headers, "vary")
        for name in value.split(",")
    }
    if varies_by.isdisjoint(("user-agent", "*")):
        return entry
    return None if entry.outage is None else replace(entry, copy=None)


def of_lifetime(headers: Headers) -> Headers:
    """Those of *headers* that say for how long an answer may be used."""
    return tuple(field for field in headers if field[0] in _LIFETIME_HEADERS)


def update(
    known: CacheEntry | None,
    origin: Origin,
    result: FetchResult,
    access: Access,
    now: float,
    *,
    conditional: bool = False,
) -> CacheEntry:
    """What is known of *origin* after a fetch ended at time *now* with *result*.

    *known* is what was before; *access* what *result* means to whoever fetched;
    *conditional* whether the request carried ``validators(known)``.
    """
    copy = known.copy if known else None
    if conditional and copy is not None and _confirms(result, copy):
        return CacheEntry(origin, _confirmed(copy, result, now))
    if access is Access.UNREACHABLE:
        return CacheEntry(origin, copy, _outage(known.outage if known else None, result, now))
    return CacheEntry(origin, StoredResponse(result, fetched_at=now, confirmed_at=now))


def _confirms(result: FetchResult, copy: StoredResponse) -> bool:
    """Whether *result* says that *copy* still holds (RFC 9111 §4.3.4)."""
    if result.status != 304 or result.failure is not None or not _is_file(copy.result):
        return False
    # RFC 9110 §8.8.1: a validator tells versions of one resource from each other.
    if result.url != copy.result.url:
        return False
    # §4.3.4: if no stored response has the validator of the 304, it "MUST NOT" be used
    # to update any. Weak and strong ones are not told apart: servers that
    # compress make one of the other.
    etag = _first(result.headers, "etag")
    if etag is not None:
        return _opaque(etag) == _opaque(_first(copy.result.headers, "etag") or "")
    modified = _first(result.headers, "last-modified")
    ours = _first(copy.result.headers, "last-modified")
    if modified is None or modified == ours:
        return True
    time = _http_date(modified, copy.confirmed_at)
    return time is not None and time == _http_date(ours or "", copy.confirmed_at)


def _confirmed(copy: StoredResponse, result: FetchResult, now: float) -> StoredResponse:
    """*copy* with the headers of the 304 *result* (RFC 9111 §3.2)."""
    gone = {name for name, _ in result.headers} | _ABOUT_ONE_MESSAGE
    headers = [field for field in copy.result.headers if field[0] not in gone]
    headers += [field for field in result.headers if field[0] in KEPT_HEADERS]
    return StoredResponse(
        # The next reader's request is compared with the one that was answered last.
        replace(copy.result, headers=tuple(headers), via=result.via, user_agent=result.user_agent),
        # Earlier than *now*, unless the clock was set back.
        fetched_at=min(copy.fetched_at, now),
        confirmed_at=now,
    )


def _outage(known: Outage | None, result: FetchResult, now: float) -> Outage:
    """The outage *known*, or a new one, with one more attempt."""
    if known is None:
        return Outage(result, since=now, last_at=now, attempts=1)
    # One that begins in the future, or before any clock, begins now.
    since = known.since if 0 < known.since <= now else now
    attempts = min(max(known.attempts, 0), _MOST_ATTEMPTS) + 1
    return Outage(result, since=since, last_at=now, attempts=attempts)


def _is_file(result: FetchResult) -> bool:
    return result.failure is None and result.status is not None and 200 <= result.status <= 299


def _opaque(etag: str) -> str:
    """RFC 9110 §8.8.3.2, weak comparison: without "W/"."""
    return etag.removeprefix("W/")


# -- how long a copy is fresh -------------------------------------------------


def fresh_until(copy: StoredResponse, dialect: Dialect, bounds: Bounds) -> float:
    """The end of the lifetime of *copy*; infinite for as long as the crawl runs."""
    return _later(copy.confirmed_at, lifetime(copy, dialect, bounds), bounds)


def lifetime(copy: StoredResponse, dialect: Dialect, bounds: Bounds) -> float:
    """How long *copy* may be used from when it was confirmed (RFC 9309 §2.4).

    What its headers grant, where *dialect* asks them and they say something, within
    *bounds*. Infinite means the crawl.
    """
    seconds = dialect.lifetime
    # The headers of a redirect that was not followed are about the redirect.
    if dialect.cache_headers and copy.result.failure is None:
        # Of a chain of redirects, the answer that is the first to be stale ends it.
        seconds = min(
            _granted(headers, copy.confirmed_at, dialect.lifetime)
            for headers in (copy.result.headers, *copy.result.via)
        )
    return _bounded(seconds, dialect, bounds)


def _bounded(seconds: float, dialect: Dialect, bounds: Bounds) -> float:
    longest = dialect.max_lifetime if bounds.max_age is None else bounds.max_age
    seconds = max(seconds, bounds.min_age)
    if longest is not None:
        seconds = min(seconds, longest)
    return max(seconds, _LEAST)


def _later(time: float, seconds: float, bounds: Bounds) -> float:
    if math.isinf(seconds):
        return math.inf if time >= bounds.started else -math.inf
    return time + seconds


def _granted(headers: Headers, received: float, default: float) -> float:
    """The lifetime that *headers*, *received* then, give (RFC 9111 §4.2), or the *default*."""
    directives = list(_directives(headers))
    # §4.2.1: "If directives conflict (e.g., both max-age and no-cache are present),
    # the most restrictive directive should be honored." A robots.txt that may not
    # be stored is kept all the same: it cannot be obeyed otherwise.
    if any(name in ("no-store", "no-cache") for name, _ in directives):
        return 0.0
    # Not s-maxage, §5.2.2.10: it is for shared caches, and a crawler's is private.
    ages = [_delta_seconds(value) for name, value in directives if name == "max-age"]
    if ages:
        return max(0.0, _agreed(ages) - _age(headers))
    dates = [_http_date(value, received) for value in _values(headers, "expires")]
    if dates:
        # RFC 9110 §6.6.1: without a Date, it is the time of receipt.
        sent = _http_date(_first(headers, "date") or "", received)
        expires = _agreed(dates) - (received if sent is None else sent)
        return max(0.0, min(expires, _LARGEST_DELTA) - _age(headers))
    return max(0.0, default - _age(headers))


def _agreed(values: Iterable[float | None]) -> float:
    """The one of *values*; 0, which is stale, if they differ or one is invalid.

    RFC 9111 §4.2.1: of several, "either the first occurrence should be used or the
    response should be considered stale"; "caches are encouraged to consider
    responses that have invalid freshness information […] to be stale".
    """
    different = set(values)
    value = different.pop()
    return 0.0 if different or value is None else value


def _age(headers: Iterable[tuple[str, str]]) -> float:
    """How old an answer was when it came (RFC 9111 §5.1): 0 if that is not known.

    What Age says, and not how long ago Date is: §4.2.3 has that for clocks that are
    "reasonably well synchronized", which those of crawled servers are not.
    """
    # §5.1: of several the first; one that is invalid "SHOULD" be ignored.
    first = (_first(headers, "age") or "").partition(",")[0]
    return _delta_seconds(first.strip()) or 0.0


# -- when to ask again --------------------------------------------------------


def retry_at(outage: Outage, bounds: Bounds) -> float:
    """When to try again after the last attempt of *outage*.

    After ``retry_delay``, doubled with each attempt, ``retry_max_delay`` at most;
    but not before what Retry-After says (RFC 9110 §10.2.3), a day at most.
    """
    doublings = min(max(outage.attempts - 1, 0), _MOST_DOUBLINGS)
    delay = min(bounds.retry_delay * 2.0**doublings, bounds.retry_max_delay)
    asked = min(_retry_after(outage), LONGEST_RETRY_AFTER)
    return outage.last_at + max(delay, asked, _LEAST)


def _retry_after(outage: Outage) -> float:
    headers = outage.result.headers
    value = _first(headers, "retry-after") or ""
    seconds = _delta_seconds(value)
    if seconds is not None:
        return seconds
    date = _http_date(value, outage.last_at)
    if date is None:
        return 0.0
    sent = _http_date(_first(headers, "date") or "", outage.last_at)
    return date - (outage.last_at if sent is None else sent)


# -- headers ------------------------------------------------------------------

# RFC 9110 §5.5: no controls, whose line ends would begin another header.
_SENDABLE = re.compile(r"[\x20-\x7e\xa0-\xff]+")
_DIGITS = re.compile(r"[0-9]+")
# RFC 9110 §5.6.7: IMF-fixdate (a day of one digit is common), rfc850-date and
# asctime-date. RFC 9111 §4.2: in any case; a zone other than GMT is invalid.
_HTTP_DATE = re.compile(
    r"[a-z]{3}, \d{1,2} [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt"
    r"|[a-z]{6,9}, \d\d-[a-z]{3}-\d\d \d\d:\d\d:\d\d gmt"
    r"|[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}",
    re.IGNORECASE | re.ASCII,
)
# The rfc850-date has a year of two digits.
_TWO_DIGITS = re.compile("-[0-9]{2} ")
_YEAR = 365.2425 * 24 * 3600
# RFC 5322 §3.3 has years of four digits.
_LAST_YEAR = 9999
# One member of a list (RFC 9110 §5.6.1): commas in quoted strings do not end it. A
# string that is not closed reaches to the end.
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
            yield name.strip(_BLANK).lower(), _unquoted(argument.strip(_BLANK))


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _delta_seconds(text: str) -> float | None:
    """RFC 9111 §1.2.2: a non-negative integer, in digits alone."""
    if not _DIGITS.fullmatch(text):
        return None
    # A float, which takes any number of digits: some integers may not be so long.
    return min(float(text), _LARGEST_DELTA)


def _http_date(text: str, now: float) -> float | None:
    """RFC 9110 §5.6.7, as seconds since the epoch; *now* says which century is meant."""
    if not _HTTP_DATE.fullmatch(text):
        return None
    fields = parsedate_tz(text)
    if fields is None:
        return None
    year, month, day, hour, minute, second = fields[:6]
    if _TWO_DIGITS.search(text):
        year = _year_of_two_digits(year % 100, now)
    # RFC 5322 §3.3: the second 60 is a leap second.
    if not 1 <= year <= _LAST_YEAR or hour > 23 or minute > 59 or second > 60:
        return None
    if not 1 <= day <= monthrange(year, month)[1]:
        return None
    return float(timegm((year, month, day, hour, minute, second)))


def _year_of_two_digits(digits: int, now: float) -> int:
    """The year that ends with *digits*.

    "Recipients […] MUST interpret a timestamp that appears to be more than 50 years in
    the future as representing the most recent year in the past".
    """
    this_year = 1970 + (int(now // _YEAR) if math.isfinite(now) else 0)
    past = this_year - (this_year - digits) % 100
    return past + 100 if past + 100 <= this_year + 50 else past
