"""CacheEntry, clocks and ways to run stores, for the tests here."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin

_T = TypeVar("_T")

NOON = 1_800_000_000.0
HOUR = 3600.0
DAY = 24 * HOUR
RULES = b"User-agent: *\nDisallow: /private/\n"


class Clock:
    """What time it is, as the test says; waiting moves it on."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now
        self.pauses = 0

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """What *coroutine* returns, which must not wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value
    raise AssertionError("it waits")


def run_all(items: AsyncIterator[_T]) -> list[_T]:
    async def listed() -> list[_T]:
        return [item async for item in items]

    return run(listed())


def origin(number: int = 0) -> Origin:
    return Origin("https", f"host{number}.example", 443)


def entry(number: int = 0, at: float = NOON, body: bytes = RULES) -> CacheEntry:
    about = origin(number)
    result = FetchResult(
        about.robots_url, 200, body, detail="status 200", headers=(("etag", '"1"'),)
    )
    return CacheEntry(about, StoredResponse(result, at, at))


def outage(number: int = 0, at: float = NOON, since: float = NOON) -> CacheEntry:
    about = origin(number)
    failed = FetchResult(about.robots_url, failure=Failure.NO_ANSWER, detail="no answer")
    return CacheEntry(about, entry(number, since).stored, Outage(failed, since, at, attempts=3))


def change(path: Path, sql: str, *values: object) -> None:
    """Do *sql* to the file, as another program."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute(sql, values)
    finally:
        db.close()


def look(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What *sql* finds in the file, as another program."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def is_whole(path: Path) -> bool:
    return look(path, "PRAGMA integrity_check") == [("ok",)]
