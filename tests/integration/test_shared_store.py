"""Several crawls in processes of their own, and one store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.stores.sqlite import SqliteStore
from tests.integration.sharing import conditional, crawl, fetches, total
from tests.stores.examples import DAY, is_whole, look, run, run_all

# Each crawl is a process, and they tell the same on every Python and Scrapy.
pytestmark = pytest.mark.once

HOSTS = 100


def grow_old(path: Path, seconds: float) -> None:
    """Make all that is kept as much older."""
    store = SqliteStore(path)
    for origin in run_all(store.origins()):
        claim = run(store.claim(origin, 30))
        assert claim.entry is not None
        assert claim.entry.stored is not None
        assert claim.lease is not None
        stored = claim.entry.stored
        old = replace(
            stored,
            fetched_at=stored.fetched_at - seconds,
            confirmed_at=stored.confirmed_at - seconds,
        )
        run(store.write(CacheEntry(origin, old), claim.lease))
    run(store.close())


def test_two_crawls_of_the_same_hosts(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    path = tmp_path / "robots.sqlite"
    sites = [servers.serve(conditional(("even", "odd")[number % 2])) for number in range(HOSTS)]
    both = crawl(sites, loop, f"sqlite:///{path}", processes=2)
    assert fetches(sites) == [1] * HOSTS
    assert total(both, "request_count") == HOSTS
    # The other one had all from the store.
    assert total(both, "store_count") == HOSTS
    (third,) = crawl(sites, loop, f"sqlite:///{path}")
    assert fetches(sites) == [1] * HOSTS
    assert total([third], "store_count") == HOSTS
    grow_old(path, 2 * DAY)
    (fourth,) = crawl(sites, loop, f"sqlite:///{path}")
    assert fetches(sites) == [2] * HOSTS
    assert total([fourth], "confirmed_count") == HOSTS
    assert total([fourth], "response_status_count/304") == HOSTS
    assert fourth.robots_bytes == 0
    assert is_whole(path)
    assert look(path, "SELECT count(*) FROM leases") == [(0,)]
    # Nobody has left the log behind.
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_two_crawls_refresh_at_once(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    path = tmp_path / "robots.sqlite"
    sites = [servers.serve(conditional(("even", "odd")[number % 2])) for number in range(HOSTS)]
    crawl(sites, loop, f"sqlite:///{path}")
    # In use, and due.
    grow_old(path, 0.95 * DAY)
    both = crawl(sites, loop, f"sqlite:///{path}", processes=2)
    assert fetches(sites) == [2] * HOSTS
    assert total(both, "confirmed_count") == HOSTS
    assert sum(result.robots_bytes for result in both) == 0
    assert look(path, "SELECT count(*) FROM leases") == [(0,)]
