"""The results of fetches for one origin: the value in a store.

Here may not live: what they mean, which depends on the dialect and the settings of the crawl that
reads them (:mod:`.access`, :mod:`.freshness`).

Times are seconds since the epoch, by the clock of the crawl that fetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..parsing.urls import Origin
from .access import FetchResult


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer that can be used again: a file, or that there is none.

    *fetched_at* is when *result* came, *confirmed_at* when the server last sent it or
    confirmed it (a 304).
    """

    result: FetchResult
    fetched_at: float
    confirmed_at: float


@dataclass(frozen=True, slots=True)
class Outage:
    """Consecutive failed *attempts*, from *since* to *last_at*; *result* is that of the last."""

    result: FetchResult
    since: float
    last_at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The robots.txt of *origin*: a *copy*, an *outage*, or an outage after the copy."""

    origin: Origin
    copy: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def last(self) -> FetchResult:
        """The result of the last fetch that was not only a confirmation."""
        last = self.outage or self.copy
        assert last is not None
        return last.result
