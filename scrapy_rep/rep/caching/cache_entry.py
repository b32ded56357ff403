"""What fetches have told about one origin: the value that a store keeps.

Here may live: the entry, as they were, whoever reads them. Here may not live:
what they mean, which depends on the dialect and the settings of the crawl that
reads them (:mod:`.access`, :mod:`.freshness`).

Times are seconds since the epoch, by the clock of whoever fetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..parsing.urls import Origin
from .access import FetchResult


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer that can be used again: a file, or that there is none.

    *fetched_at* is when *result* came, *confirmed_at* when the server last
    said that it still holds (a 304), which is no earlier.
    """

    result: FetchResult
    fetched_at: float
    confirmed_at: float


@dataclass(frozen=True, slots=True)
class Outage:
    """Attempts in a row, the last of them at *last_at*, that got no usable answer.

    *since* is the time of the first one, *result* what the last one got.
    """

    result: FetchResult
    since: float
    last_at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """All that is known of the robots.txt of *origin*; at least one of both is set.

    With an *outage*, *copy* is what was there before it.
    """

    origin: Origin
    copy: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def last(self) -> FetchResult:
        """How the last fetch ended that was not just a confirmation."""
        last = self.outage or self.copy
        assert last is not None
        return last.result
