"""Cache entries, and stores that have them."""

from __future__ import annotations

import time
from pathlib import Path

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.sqlite import SqliteStore
from tests.stores.examples import DAY, HOUR, Clock, run

RULES = b"User-agent: *\nDisallow: /private/\n"
HOSTILE = b"User-agent: *\r\nDisallow: /\x1b[31m<script>\xff\n" + b"#" * 300
DEFAULT = Path(".scrapy", "rep", "robots.sqlite")


def copied(
    url: str,
    at: float,
    body: bytes = RULES,
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (),
) -> CacheEntry:
    origin = Origin.of(url)
    result = FetchResult(
        origin.robots_url, status, body, detail=f"status {status}", headers=headers
    )
    return CacheEntry(origin, StoredResponse(result, at, at))


def failing(entry: CacheEntry, since: float, last_at: float, attempts: int) -> CacheEntry:
    failed = FetchResult(entry.origin.robots_url, 503, detail="status 503")
    return CacheEntry(entry.origin, entry.stored, Outage(failed, since, last_at, attempts))


def examples(now: float) -> dict[str, CacheEntry]:
    """One origin for each freshness, in no order."""
    nothing = CacheEntry(Origin.of("https://refused.example"))
    return {
        "stale": copied("https://stale.example", now - 3 * DAY),
        "fresh": copied("https://fresh.example", now - HOUR),
        "due": copied("https://due.example", now - 23 * HOUR),
        "outage": failing(copied("https://outage.example", now - 3 * DAY), now - DAY, now, 9),
        "refused": failing(nothing, now - HOUR, now, 9),
        "given up": failing(
            CacheEntry(Origin.of("http://gone.example:8080")), now - 40 * DAY, now, 400
        ),
    }


def fill(path: Path, *known: CacheEntry, now: float | None = None) -> None:
    """Write *known* to the store at *path*, as if it were *now*."""
    store = SqliteStore(path, Clock(time.time() if now is None else now))
    for entry in known:
        run(store.write(entry))
    run(store.close())
