"""A store that may fail, without harm to the crawl."""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import CancelledError

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

from .base import Claim, CrawlStore, Lease, StoreError

if TYPE_CHECKING:
    from scrapy import Spider

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Seconds for which a store that has failed is left alone.
RETRY_AFTER = 30.0


class CircuitBreaker(CrawlStore):
    """The store that *open_store* makes when it is first used.

    Raises nothing. When the store fails, or cannot be made, it is left alone for
    *retry_after* seconds and then tried again; 0 for a store that fails at once for
    as long as it does not work. Meanwhile this one is as a store that is empty and
    that nobody else uses: nothing is known, every lease is granted. Each change is
    logged once. *clock* gives seconds since the epoch, *spider* is for the log.
    """

    def __init__(
        self,
        open_store: Callable[[], CrawlStore],
        clock: Callable[[], float] = time.time,
        spider: Spider | None = None,
        retry_after: float = RETRY_AFTER,
    ) -> None:
        self._open_store = open_store
        self._clock = clock
        self._spider = spider
        self._retry_after = retry_after
        self._store: CrawlStore | None = None
        #: Whether the store worked when it was used last, and when it failed last.
        self.works = True
        self._failed_at = 0.0

    async def read(self, origin: Origin) -> CacheEntry | None:
        return await self._guard(lambda store: store.read(origin), None)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        # No store knows its token, so none takes it for one of its own.
        own = Lease(origin, secrets.token_hex(8), self._clock() + seconds)
        return await self._guard(lambda store: store.claim(origin, seconds), Claim(None, own))

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        await self._guard(lambda store: store.write(entry, lease), None)

    async def release(self, lease: Lease) -> None:
        await self._guard(lambda store: store.release(lease), None)

    async def has_lease(self, origin: Origin) -> bool:
        return await self._guard(lambda store: store.has_lease(origin), False)

    async def close(self) -> None:
        # Also one that does not work: it may hold on to something.
        if self._store is not None:
            try:
                await self._store.close()
            except Exception as error:
                self._failed(error)

    async def _guard(self, use: Callable[[CrawlStore], Awaitable[_T]], otherwise: _T) -> _T:
        """What *use* makes of the store, or *otherwise* where there is none that works."""
        # A clock that was set back must not make the wait any longer.
        if not self.works and 0 <= self._clock() - self._failed_at < self._retry_after:
            return otherwise
        try:
            if self._store is None:
                self._store = self._open_store()
            result = await use(self._store)
        except CancelledError:
            # Of whoever waited, and nothing that the store can help. An Exception,
            # to Twisted; asyncio's is none.
            raise
        except Exception as error:
            self._failed(error)
            return otherwise
        if not self.works:
            self.works = True
            logger.info("The robots.txt store works again", extra={"spider": self._spider})
        return result

    def _failed(self, error: Exception) -> None:
        if self.works:
            # The user can mend a StoreError. Anything else is a bug.
            known = isinstance(error, StoreError)
            said = error if known else printable(f"{type(error).__name__}: {error}")
            every = f"every {self._retry_after:g} s" if self._retry_after else "in the background"
            logger.warning(
                "Cannot use the robots.txt store: %(error)s. The crawl continues with the "
                "policies in memory, and tries the store again %(when)s.",
                {"error": said, "when": every},
                exc_info=None if known or isinstance(error, OSError) else error,
                extra={"spider": self._spider},
            )
        self.works, self._failed_at = False, self._clock()
