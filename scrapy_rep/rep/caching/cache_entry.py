"""The results of fetches for one origin: the value in a store.

Times are seconds since the epoch, by the clock of the crawl that fetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..parsing.urls import Origin
from .access import FetchResult


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that can be reused: a robots.txt, or the absence of one.

    *fetched_at* is the time of *result*, *confirmed_at* the time when the server last sent it or
    confirmed it with a 304.
    """

    result: FetchResult
    fetched_at: float
    confirmed_at: float

    @property
    def is_file(self) -> bool:
        """Whether there was a robots.txt."""
        result = self.result
        return result.failure is None and result.status is not None and 200 <= result.status < 300

    def differs_from(self, other: StoredResponse) -> bool:
        """Whether one of both is a file that the other is not."""
        files = [each.result.body if each.is_file else None for each in (self, other)]
        return files[0] != files[1]


@dataclass(frozen=True, slots=True)
class Outage:
    """*attempts* consecutive failed fetches from *since* to *last_at*; the last had *result*."""

    result: FetchResult
    since: float
    last_at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The robots.txt of *origin*: a stored response (*stored*), an *outage*, or both."""

    origin: Origin
    stored: StoredResponse | None = None
    outage: Outage | None = None
    #: Earlier copies, the newest first, in a form that only stores read.
    earlier: tuple[bytes, ...] = ()

    @property
    def last(self) -> FetchResult:
        """The result of the last fetch, without 304 responses that only confirmed it."""
        last = self.outage or self.stored
        assert last is not None
        return last.result
