"""What the store of a project has about origins, and what a crawl that begins now makes of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from scrapy_rep.cli.errors import CommandError
from scrapy_rep.cli.output import iso
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import (
    Bounds,
    Evaluation,
    Freshness,
    evaluate,
    lifetime,
    retry_at,
)
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.lines import split_lines, within_limit
from scrapy_rep.rep.parsing.urls import Origin, by_host
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store, time_of
from scrapy_rep.stores.open import open_store

_T = TypeVar("_T")

#: The state of an origin that is fresh, but is fetched again in the background.
DUE = "due"

_PAGES = {
    Access.SUCCESSFUL: "pages are allowed or refused by its rules",
    Access.UNAVAILABLE: "all pages are allowed",
    Access.DISALLOWED: "all pages are refused",
}
_WHILE_UNREACHABLE = {
    WhenUnreachable.DISALLOW: "all pages are refused",
    WhenUnreachable.DEFER: "requests for pages are kept",
    WhenUnreachable.ALLOW: "all pages are let through all the same",
}


def store_place(settings: RepSettings) -> str:
    """Where the store of *settings* is, or would be.

    Raises :exc:`CommandError` for a store in memory.
    """
    place = settings.store.place()
    if place is None:
        raise CommandError("REP_STORE = 'memory': nothing outlives a crawl, so nothing is kept")
    return place


def use_store(
    settings: RepSettings, use: Callable[[Store], Coroutine[Any, Any, _T]], otherwise: _T
) -> _T:
    """Return what *use* returns for the store of *settings*; *otherwise* if there is none.

    No file is created, and a file that is not a store is left alone. Raises
    :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    file = settings.store.file()
    if file is not None and not (file.exists() and file.stat().st_size):
        return otherwise

    async def opened() -> _T:
        store = open_store(settings.store, settings.max_origins, sets_aside=False)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(opened())


async def sorted_origins(store: Store) -> list[Origin]:
    """The origins in *store*, by host."""
    return sorted([origin async for origin in store.origins()], key=by_host)


@dataclass(frozen=True, slots=True)
class NewCrawl:
    """A crawl with *settings* that begins *now*, in seconds since the epoch."""

    settings: RepSettings
    now: float

    @property
    def bounds(self) -> Bounds:
        """The limits of freshness in that crawl."""
        return self.settings.bounds(started=self.now)

    async def states(self, store: Store, origins: list[Origin]) -> AsyncIterator[OriginState]:
        """The state of each of *origins* that *store* has, read one at a time."""
        for origin in origins:
            entry = await store.read(origin)
            # Another process may have deleted it by now.
            if entry is not None:
                yield self.state(entry)

    def state(self, entry: CacheEntry) -> OriginState:
        """What *entry* means to that crawl."""
        evaluation = self._evaluate(entry, self.now)
        end = evaluation.until
        if evaluation.access is not None and not evaluation.due:
            # Until then it is not even due; after that, it is used until the end.
            end = self._evaluate(entry, end).until
        return OriginState(entry, evaluation, end, self)

    def _evaluate(self, entry: CacheEntry, now: float) -> Evaluation:
        settings = self.settings
        return evaluate(entry, settings.dialect, settings.status_overrides, self.bounds, now)


@dataclass(frozen=True, slots=True)
class OriginState:
    """The cache entry of an origin, as *crawl* evaluates it, and when that *end*s."""

    entry: CacheEntry
    evaluation: Evaluation
    end: float
    crawl: NewCrawl

    @property
    def origin(self) -> str:
        """The origin, safe to print."""
        return printable(str(self.entry.origin))

    @property
    def standing(self) -> str:
        """The value of a :class:`Freshness`, or :data:`DUE`."""
        standing = self.evaluation.freshness
        if standing is Freshness.FRESH and self.evaluation.due:
            return DUE
        if standing is Freshness.ABSENT:
            # The writer could use the copy, but this crawl cannot.
            standing = Freshness.STALE
        return str(standing.value)

    @property
    def access(self) -> str | None:
        """What a crawl may do; ``None`` if it must fetch robots.txt first."""
        return self.evaluation.access.value if self.evaluation.access else None

    @property
    def last(self) -> FetchResult:
        """The result of the last fetch that did not just confirm the copy."""
        return self.entry.last

    @property
    def age(self) -> float:
        """Seconds since the copy came or was confirmed; without a copy, since the last attempt."""
        copy = self.entry.copy
        at = copy.confirmed_at if copy else time_of(self.entry)
        return max(0.0, self.crawl.now - at)

    @property
    def left(self) -> float | None:
        """Seconds until it is used no longer; ``None`` for as long as the crawl runs."""
        return None if math.isinf(self.end) else max(0.0, self.end - self.crawl.now)

    @property
    def size(self) -> int | None:
        """Bytes of the body of the copy, if there is one."""
        return len(self.entry.copy.result.body) if self.entry.copy else None

    @property
    def lifetime(self) -> float | None:
        """Seconds that the copy may be used after it was confirmed, if that is limited."""
        if self.entry.copy is None:
            return None
        seconds = lifetime(self.entry.copy, self.crawl.settings.dialect, self.crawl.bounds)
        return None if math.isinf(seconds) else seconds

    @property
    def retry_at(self) -> float | None:
        """When it is fetched again, in an outage."""
        outage = self.entry.outage
        return None if outage is None else retry_at(outage, self.crawl.bounds)

    @property
    def meaning(self) -> str:
        """What it means for the pages of the origin, in words."""
        access = self.evaluation.access
        if access is None:
            return "a page waits until robots.txt has been fetched again"
        if access is Access.UNREACHABLE:
            words = _WHILE_UNREACHABLE[self.crawl.settings.when_unreachable]
        else:
            words = _PAGES[access]
        return f"{words}; robots.txt is fetched again" if self.evaluation.due else words

    def lines(self) -> list[str]:
        """The lines of the copy, as far as a crawl reads them, safe to print."""
        if self.entry.copy is None:
            return []
        settings = self.crawl.settings
        body = within_limit(self.entry.copy.result.body, settings.max_size)
        return [printable(line) for line in split_lines(body, settings.dialect)]

    def summary(self) -> dict[str, Any]:
        """The main points, as JSON."""
        return {
            "origin": str(self.entry.origin),
            "standing": self.standing,
            "access": self.access,
            "status": self.last.status,
            "age": round(self.age, 3),
            "left": None if self.left is None else round(self.left, 3),
            "bytes": self.size,
        }

    def everything(self) -> dict[str, Any]:
        """All of it, as JSON."""
        copy, outage = self.entry.copy, self.entry.outage
        value = self.summary() | {"meaning": self.meaning, "copy": None, "outage": None}
        if copy is not None:
            value["copy"] = _result(copy.result) | {
                "fetched_at": iso(copy.fetched_at),
                "confirmed_at": iso(copy.confirmed_at),
                "lifetime": self.lifetime,
                "cut": copy.result.cut,
                "body": copy.result.body.decode("utf-8", "backslashreplace"),
            }
        if outage is not None:
            value["outage"] = _result(outage.result) | {
                "since": iso(outage.since),
                "last_at": iso(outage.last_at),
                "attempts": outage.attempts,
                "retry_at": iso(retry_at(outage, self.crawl.bounds)),
            }
        return value


def _result(result: FetchResult) -> dict[str, Any]:
    return {
        "url": result.url,
        "redirects": result.redirects,
        "status": result.status,
        "failure": result.failure.value if result.failure else None,
        "detail": result.detail,
        "headers": [list(field) for field in result.headers],
    }
