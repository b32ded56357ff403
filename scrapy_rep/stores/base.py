"""What every store does, and the form in which stores keep entries.

A value is ``rep1`` and a zlib stream of one line of JSON and, after it, the
bodies. Nothing in it is ever executed, and whatever is wrong with one is a
:exc:`UnreadableValue`: other programs can write where a store keeps its values.
"""

from __future__ import annotations

import io
import json
import logging
import secrets
import zlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin
from scrapy_rep.rep.text import MAX_PRINTED, printable

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Bytes of all bodies of one origin together; entries with more are not kept.
MAX_BODIES = 16 * 1024 * 1024
#: Seconds that a lease lasts at most, whoever asks for how much.
MAX_LEASE = 3600.0
#: Seconds that a lease may have been taken in the future: one processor's clock to
#: another's, and a clock that is put right gently.
LEASE_CLOCK_SLACK = 5.0
#: Seconds without news of an origin after which it is forgotten. A policy in use
#: has news each time it is renewed, an outage with each attempt; the 30 days of
#: grace of an outage fit in twice.
KEPT_FOR = 60 * 86400.0

_MAGIC = b"rep1"
# Bytes of the line of JSON: two results with all the headers that servers send.
_MAX_HEAD = 512 * 1024
# The last second of the year 9999; later ones have no date.
_MAX_TIME = 253_402_300_799.0
_MAX_COUNT = 1_000_000
# Speed is worth more than the few bytes that higher levels save.
_LEVEL = 1
# Seconds between two looks at whether a lease has ended: the first, and the longest.
_FIRST_POLL = 0.05
_LONGEST_POLL = 0.25
# At the end of a crawl, the most looks at what is under way, and the seconds between two.
_LOOKS_AT_END = 20
_LOOK_AT_END = 0.05


class StoreError(Exception):
    """A store does not work; the message says which, why and what to do."""


class UnreadableValue(ValueError):
    """A kept value that is not ours, damaged, or of another version."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to fetch *origin*, until the time *until* (seconds since the epoch).

    *token* tells its holder from all others.
    """

    origin: Origin
    token: str
    until: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of an origin, and the lease that was asked for.

    No *lease*: somebody else is fetching, see :meth:`CrawlStore.wait_for_update`.
    """

    entry: CacheEntry | None
    lease: Lease | None


async def pause(seconds: float) -> None:
    """Wait, on whatever loop Scrapy runs on."""
    # Here, so that stores can be used where there is no loop and no Scrapy.
    from scrapy.utils.asyncio import call_later
    from scrapy.utils.defer import maybe_deferred_to_future
    from twisted.internet.defer import Deferred

    over: Deferred[None] = Deferred()
    timer = call_later(seconds, over.callback, None)
    try:
        await maybe_deferred_to_future(over)
    finally:
        timer.cancel()


async def pause_while(is_busy: Callable[[], object]) -> None:
    """Wait at the end of a crawl while it *is_busy*, but not for good."""
    for _ in range(_LOOKS_AT_END):
        if not is_busy():
            break
        await pause(_LOOK_AT_END)


class CrawlStore(Protocol):
    """Cache entries by origin, and leases: one fetch at a time for each origin.

    Forgets origins without news for :data:`KEPT_FOR` by itself. Any method may raise
    :exc:`StoreError`. Times are seconds.
    """

    async def read(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*."""

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        """What is known of *origin*, and in the same step a lease of *seconds* on it.

        A lease lasts :data:`MAX_LEASE` at most.
        """

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        """Keep *entry*, and in the same step end *lease*.

        Whoever does not hold a lease (any more) does not end that of another, and does not
        replace a newer entry. In place of an entry that is too large, none is kept.
        """

    async def release(self, lease: Lease) -> None:
        """End *lease*, if it is still held, without news."""

    async def has_lease(self, origin: Origin) -> bool:
        """Whether somebody has a lease on *origin*."""

    async def wait_for_update(
        self,
        origin: Origin,
        seconds: float,
        pause: Callable[[float], Awaitable[None]] = pause,
    ) -> None:
        """Return when there may be news of *origin*, after *seconds* at most.

        At once, if nobody is fetching it. *pause* waits for a number of seconds.
        """
        delay = _FIRST_POLL
        while seconds > 0 and await self.has_lease(origin):
            await pause(min(delay, seconds))
            seconds -= delay
            delay = min(2 * delay, _LONGEST_POLL)

    async def close(self) -> None:
        """Let go of files and connections. The next use opens them again."""


class Store(CrawlStore, Protocol):
    """A store that can be listed and emptied, too. Leases stay."""

    async def delete(self, origin: Origin) -> bool:
        """Forget *origin*; whether anything was known."""

    async def clear(self) -> int:
        """Forget all origins; how many that were."""

    def origins(self) -> AsyncIterator[Origin]:
        """Those of which something is known, in no order."""


class ValueStore(Store):
    """A store that keeps entries as bytes: a subclass says where, by the methods with "_".

    *clock* gives seconds since the epoch. *place* and *advice* are for the log: where a value
    is that cannot be read, and what to do about it.
    """

    def __init__(self, clock: Callable[[], float], place: str = "", advice: str = "") -> None:
        self._clock = clock
        self._place = place
        self._advice = advice
        self._mentioned_unreadable = False

    async def read(self, origin: Origin) -> CacheEntry | None:  # noqa: D102
        return self._entry(origin, await self._get(origin))

    async def claim(self, origin: Origin, seconds: float) -> Claim:  # noqa: D102
        lease = Lease(origin, secrets.token_hex(8), self._clock() + min(seconds, MAX_LEASE))
        value, granted = await self._take(lease)
        return Claim(self._entry(origin, value), lease if granted else None)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:  # noqa: D102
        try:
            value = await self._encode(entry)
        except ValueError:
            await self.delete(entry.origin)
            if lease is not None:
                await self.release(lease)
        else:
            await self._put(entry, value, lease)

    async def origins(self) -> AsyncIterator[Origin]:  # noqa: D102
        for origin in map(origin_of, await self._keys()):
            if origin is not None:
                yield origin

    @abstractmethod
    async def _get(self, origin: Origin) -> object:
        """The value of *origin*, or ``None``."""

    @abstractmethod
    async def _take(self, lease: Lease) -> tuple[object, bool]:
        """In one step: the value, and whether *lease* is granted, as nobody else has one."""

    @abstractmethod
    async def _put(self, entry: CacheEntry, value: bytes, lease: Lease | None) -> None:
        """As :meth:`write`, with the *value* of *entry*."""

    @abstractmethod
    async def _keys(self) -> Iterable[str]:
        """All keys that have a value."""

    async def _encode(self, entry: CacheEntry) -> bytes:
        return encode(entry)

    def _decode(self, origin: Origin, value: Any) -> CacheEntry:
        return decode(origin, value)

    def _discard(self, origin: Origin, value: object) -> None:
        """Called with a *value* that cannot be read."""

    def _entry(self, origin: Origin, value: object) -> CacheEntry | None:
        if value is None:
            return None
        try:
            return self._decode(origin, value)
        except UnreadableValue as error:
            if not self._mentioned_unreadable:
                self._mentioned_unreadable = True
                logger.warning(
                    "Cannot read the entry of %s in %s (%s). It is fetched again;"
                    " others like it are, too, without a warning. %s",
                    *(printable(str(origin)), self._place, error, self._advice),
                )
            self._discard(origin, value)
        return None


def key_of(origin: Origin) -> str:
    """The key under which stores keep *origin*: its URL, in ASCII whatever it is."""
    return str(origin).encode("ascii", "backslashreplace").decode("ascii")


def origin_of(key: str) -> Origin | None:
    """The origin with this *key*, if there is one."""
    try:
        origin = Origin.of(key)
    except InvalidURL:
        return None
    return origin if key_of(origin) == key else None


def time_of(entry: CacheEntry) -> float:
    """When there was news last: an answer, its confirmation, or another failure."""
    confirmed_at = entry.stored.confirmed_at if entry.stored else 0.0
    return max(confirmed_at, entry.outage.last_at if entry.outage else 0.0)


def lease_holds(taken: object, until: object, now: float) -> bool:
    """Whether a lease that was *taken* then and lasts *until* then is in force.

    Not if it was taken in the future: the clock has been set back since. Nor if
    it lasts longer than any lease may.
    """
    if not isinstance(taken, float) or not isinstance(until, float):
        return False
    return taken - LEASE_CLOCK_SLACK <= now < until and until - taken <= MAX_LEASE


# -- entry to bytes ------------------------------------------------------------


def encode(entry: CacheEntry) -> bytes:
    """*entry* as bytes.

    Raises :exc:`ValueError` for an entry that is too large to be kept.
    """
    stored, outage = entry.stored, entry.outage
    head = [
        key_of(entry.origin),
        stored and [*_fields(stored.result), stored.fetched_at, stored.confirmed_at],
        outage and [*_fields(outage.result), outage.since, outage.last_at, outage.attempts],
        # Most entries have no earlier copies.
        *([[len(each) for each in entry.earlier]] if entry.earlier else []),
    ]
    text = json.dumps(head, separators=(",", ":"), allow_nan=False, default=_as_json)
    line = text.encode("ascii")
    bodies = b"".join([*(known.result.body for known in (stored, outage) if known), *entry.earlier])
    if len(line) > _MAX_HEAD or len(bodies) > MAX_BODIES:
        raise ValueError(f"too large to be kept: {len(line)} + {len(bodies)} bytes")
    return _MAGIC + zlib.compress(b"%b\n%b" % (line, bodies), _LEVEL)


# A result is kept as the list of its fields; _result reads them.
_fields = attrgetter(*(field.name for field in fields(FetchResult)))


def _as_json(value: bytes | Failure) -> int | str:
    return len(value) if isinstance(value, bytes) else value.name


# -- bytes to entry ------------------------------------------------------------


def decode(origin: Origin, value: object) -> CacheEntry:
    """What :func:`encode` made *value* of, which must be about *origin*.

    Raises :exc:`UnreadableValue`, and nothing else, for anything else.
    """
    try:
        line, newline, content = _decompressed(value).partition(b"\n")
        _check(bool(newline) and len(line) <= _MAX_HEAD, "no head")
        about, stored, outage, *more = json.loads(line)
        _check(about == key_of(origin), "about another origin")
        _check(stored is not None or outage is not None, "no entry")
        bodies = io.BytesIO(content)
        entry = CacheEntry(
            origin,
            None if stored is None else _stored(stored, bodies),
            None if outage is None else _outage(outage, bodies),
            tuple([_body(size, bodies) for size in (more[0] if more else ())]),
        )
        _check(not bodies.read(1), "more than the bodies")
        return entry
    except UnreadableValue:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableValue(f"{type(error).__name__} in a kept value") from None


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UnreadableValue(otherwise)


def _decompressed(value: object) -> bytes:
    if not isinstance(value, bytes) or not value.startswith(_MAGIC):
        raise UnreadableValue("not a value of this version")
    decompressor = zlib.decompressobj()
    try:
        # No more than fits: a few kilobytes can stand for gigabytes.
        content = decompressor.decompress(value[len(_MAGIC) :], _MAX_HEAD + 1 + MAX_BODIES)
    except zlib.error:
        raise UnreadableValue("damaged") from None
    _check(decompressor.eof and not decompressor.unused_data, "cut, or too large")
    return content


def _stored(fields: list[Any], bodies: io.BytesIO) -> StoredResponse:
    *result, fetched_at, confirmed_at = fields
    return StoredResponse(_result(result, bodies), _time(fetched_at), _time(confirmed_at))


def _outage(fields: list[Any], bodies: io.BytesIO) -> Outage:
    *result, since, last_at, attempts = fields
    _check(attempts != 0, "no attempt")
    return Outage(_result(result, bodies), _time(since), _time(last_at), _count(attempts))


def _result(fields: list[Any], bodies: io.BytesIO) -> FetchResult:
    url, status, size, redirects, failure, detail, headers, cut, via, user_agent = fields
    # Whoever wrote it here: it is printed.
    is_safe = _is(detail, str).isprintable() and len(detail) <= MAX_PRINTED
    return FetchResult(
        _is(url, str),
        None if status is None else _count(status),
        _body(size, bodies),
        _count(redirects),
        None if failure is None else Failure[_is(failure, str)],
        detail if is_safe else printable(detail),
        _headers(headers),
        _is(cut, bool),
        tuple([_headers(each) for each in via]),
        _is(user_agent, str),
    )


def _body(size: object, bodies: io.BytesIO) -> bytes:
    body = bodies.read(_count(size, MAX_BODIES))
    _check(len(body) == size, "a body is missing")
    return body


def _headers(fields: list[Any]) -> Headers:
    return tuple([(_is(name, str), _is(content, str)) for name, content in fields])


def _is(value: object, kind: type[_T]) -> _T:
    # Not isinstance(): true is not a number.
    if type(value) is not kind:
        raise UnreadableValue(f"not of type {kind.__name__}")
    return value


def _count(value: object, at_most: int = _MAX_COUNT) -> int:
    count = _is(value, int)
    _check(0 <= count <= at_most, "not a count")
    return count


def _time(value: object) -> float:
    time = float(value if type(value) is int else _is(value, float))
    # Not true of NaN, either.
    _check(0 <= time <= _MAX_TIME, "not a time")
    return time
