"""A store that does not work: the crawl goes on, and says so once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from scrapy_rep import Verdict
from scrapy_rep.cli.servers import Asked, LoopbackServers, Site, http_response
from scrapy_rep.policies.cache import steady
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.sqlite import SqliteStore
from scrapy_rep.stores.sqlite_file import MIGRATIONS
from tests.integration.crawling import RULES, Crawl, Job, ok, pages, site
from tests.integration.in_process import HOUR, NOON, ScriptedSpider, crawl, robots_count
from tests.stores.examples import change, is_whole, look, run

# Each crawl is a process, and they tell the same on every Python and Scrapy.
pytestmark = pytest.mark.once

SITES = 10
# Does not shrink when it is compressed.
LONG = RULES + b"# " + random.Random(1).randbytes(4000).hex().encode() + b"\n"


def sites_with(servers: LoopbackServers, body: bytes = RULES, count: int = SITES) -> list[Site]:
    return [servers.serve(site(ok(body))) for _ in range(count)]


def crawl_all(sites: list[Site], setup: str, path: Path, **options: Any) -> Crawl:
    """A crawl of *sites* in which no request is lost and every verdict is right."""
    asked = pages(*(f"{one.url}/{what}" for what in ("yes", "no", "no/2") for one in sites))
    settings = {"REP_STORE": f"sqlite:///{path}"}
    result = Job(asked, setup, settings=settings, **options).run()
    for one in sites:
        assert result.outcome(f"{one.url}/yes") == "fetched"
        for what in ("no", "no/2"):
            assert result.outcome(f"{one.url}/{what}") == "refused"
            assert result.outcomes[f"{one.url}/{what}"]["reason"] == "rule"
    return result


def the_warning(result: Crawl, fetches: int = SITES) -> str:
    """The only thing that was said; every robots.txt was fetched, once."""
    (line,) = result.our_log()
    assert line.startswith("WARNING scrapy_rep.stores.")
    assert result.stats["robotstxt/request_count"] == str(fetches)
    return line


GOES_ON = "Cannot use the robots.txt store: "


def test_a_place_where_no_file_can_be(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    path = tmp_path / "file" / "robots.sqlite"
    said = the_warning(crawl_all(sites_with(servers), loop, path))
    assert f"{GOES_ON}{path}: " in said
    assert "or set REP_STORE to another file" in said


def as_new(path: Path) -> None:
    """No file yet: who has locked it may be about to make one."""
    path.unlink()


@pytest.mark.parametrize("before", [as_new, lambda path: None], ids=["new", "in use"])
def test_locked_by_another_process(
    servers: LoopbackServers, tmp_path: Path, loop: str, before: Callable[[Path], None]
) -> None:
    path = tmp_path / "robots.sqlite"
    crawl_all(sites_with(servers, count=1), loop, path)
    before(path)
    sites = sites_with(servers)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE mine (a)")
        said = the_warning(crawl_all(sites, loop, path))
        other.execute("ROLLBACK")
    assert GOES_ON in said
    assert "end it if it hangs or is a shell left open in a transaction" in said


def garbage(path: Path) -> None:
    """All but the header."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(random.Random(1).randbytes(path.stat().st_size))


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [garbage, truncated])
def test_a_damaged_file_is_set_aside(
    servers: LoopbackServers, tmp_path: Path, loop: str, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "robots.sqlite"
    sites = sites_with(servers, LONG)
    crawl_all(sites, loop, path)
    damage(path)
    damaged = path.read_bytes()
    said = the_warning(crawl_all(sites, loop, path))
    (aside,) = tmp_path.glob("*.damaged-*Z")
    assert f"{path} was damaged (" in said
    assert aside.name in said
    assert aside.read_bytes() == damaged
    again = crawl_all(sites, loop, path)
    assert again.our_log() == []
    assert again.stats["robotstxt/store_count"] == str(SITES)
    assert is_whole(path)


def test_of_a_newer_version(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    path = tmp_path / "robots.sqlite"
    sites = sites_with(servers)
    crawl_all(sites, loop, path)
    change(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    said = the_warning(crawl_all(sites, loop, path))
    assert f"{GOES_ON}{path}: written by a newer scrapy-rep" in said
    assert "install that here as well" in said
    assert path.read_bytes() == before


def test_no_room(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    path = tmp_path / "robots.sqlite"
    sites = sites_with(servers, LONG, count=40)
    # Where the servers are slower than the crawl, the leases alone would fill the file.
    first = [f"{sites[0].url}/first"]
    said = the_warning(crawl_all(sites, loop, path, file_limit=100_000, warm_up=first), fetches=40)
    assert GOES_ON in said
    assert "look at the disk, its free space and quotas" in said
    # What fitted is kept, and there is room again.
    ((kept,),) = look(path, "SELECT count(*) FROM entry")
    assert 0 < kept < 40
    # Leases that could not be ended, and would be waited for.
    change(path, "DELETE FROM leases")
    again = crawl_all(sites, loop, path)
    assert again.our_log() == []
    assert again.stats["robotstxt/store_count"] == str(kept)
    assert look(path, "SELECT count(*) FROM entry") == [(40,)]


# -- time -----------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_the_clock_is_set_back_between_two_crawls(
    servers: LoopbackServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "robots.sqlite"
    one, leased = servers.serve(site(ok())), servers.serve(site(ok()))
    settings = {"REP_STORE": f"sqlite:///{path}"}

    async def before(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200

    async def after(spider: ScriptedSpider) -> None:
        spider.clock.now = NOON - HOUR
        for there in (one, leased):
            assert isinstance(await spider.ask(f"{there.url}/no"), Verdict)
            assert await spider.ask(f"{there.url}/yes") == 200

    await crawl(before, settings)
    # Of a crawl that was killed.
    gone = SqliteStore(path, lambda: NOON)
    assert run(gone.claim(Origin.of(leased.url), 30)).lease is not None
    run(gone.close())
    started = time.monotonic()
    await crawl(after, settings)
    assert time.monotonic() - started < 20
    # From the future, so not to be believed.
    assert [robots_count(one), robots_count(leased)] == [2, 1]
    assert [record for record in caplog.records if record.name.startswith("scrapy_rep")] == []


def test_a_clock_that_is_set_back_while_the_crawl_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, processor = [NOON], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: processor[0])
    clock = steady(lambda: wall[0])
    assert clock() == NOON
    wall[0] += 10
    processor[0] += 10
    assert clock() == NOON + 10
    wall[0] -= HOUR
    processor[0] += 5
    assert clock() == NOON + 15
    # Where it is set forward, or the machine has slept.
    wall[0] += 2 * HOUR
    assert clock() == NOON + 10 + HOUR


# -- the end --------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_what_a_refresh_at_the_end_brings_is_kept(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    path = tmp_path / "robots.sqlite"

    async def robots(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if robots_count(one) == 1:
            writer.write(ok(RULES, ("ETag", '"1"')))
        else:
            await asyncio.sleep(0.5)
            writer.write(http_response(304))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        for hours in (0, 22):
            spider.clock.now = NOON + hours * HOUR
            assert await spider.ask(f"{one.url}/yes") == 200

    await crawl(script, {"REP_STORE": f"sqlite:///{path}"})
    # And the file is closed: its log is gone.
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    store = SqliteStore(path)
    entry = run(store.read(Origin.of(one.url)))
    assert entry is not None
    assert entry.stored is not None
    assert entry.stored.confirmed_at == NOON + 22 * HOUR
    run(store.close())
