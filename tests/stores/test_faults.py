"""What goes wrong with files and processes, with real files and processes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.open import StoreSpec, open_store_with_breaker
from scrapy_rep.stores.sqlite import SqliteStore
from scrapy_rep.stores.sqlite_file import MIGRATIONS
from tests.conditions import HANGS
from tests.stores.examples import HOUR, Clock, change, entry, is_whole, look, origin, run, run_all
from tests.stores.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
LEASE = 30.0
SUFFIXES = ("", "-wal", "-shm")

needs_posix = pytest.mark.skipif(os.name != "posix", reason="processes are forked")


def process(*arguments: object, before: tuple[str, ...] = ()) -> Any:
    """What ``tests.stores.processes`` prints for *arguments*."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "tests.stores.processes", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[CircuitBreaker]:
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    yield store
    run(store.close())


def goes_on(store: CircuitBreaker, log: pytest.LogCaptureFixture, *, works: bool) -> str:
    """A crawl with *store* goes on, with one warning at most: what it says."""
    begun = time.monotonic()
    for number in range(100, 150):
        lease = run(store.claim(origin(number), LEASE)).lease
        assert lease is not None
        run(store.write(entry(number), lease))
        known = run(store.read(origin(number)))
        assert known == (entry(number) if works else None)
    # A lock is waited for once, not each time.
    assert time.monotonic() - begun < 20
    assert store.works is works
    warnings = [record.getMessage() for record in log.records]
    assert len(warnings) == 1, warnings
    return warnings[0]


# -- processes ------------------------------------------------------------------


@needs_posix
@pytest.mark.once
def test_killed_while_it_writes(tmp_path: Path) -> None:
    found = process("kill", tmp_path, 200)
    assert found["problems"] == []
    assert found["commits"] >= 200


@needs_posix
def test_one_lease_at_a_time_whoever_asks(tmp_path: Path) -> None:
    found = process("contend", tmp_path, 4, 200, 50)
    assert found["claims"] == 800
    assert found["granted"] + found.get("refused", 0) == 800
    assert found["granted"] > 100
    assert "held by two" not in found
    assert "crashed" not in found
    assert found["known"] == 50
    assert found["leases left"] == 0
    assert found["whole"]


@pytest.mark.once
@needs_posix
@pytest.mark.parametrize(("origins", "granted"), [(50, 100), (2, 2)])
def test_one_lease_at_a_time_in_redis(
    tmp_path: Path, fresh_redis: RedisServer, origins: int, granted: int
) -> None:
    found = process("contend", tmp_path, 4, 200, origins, fresh_redis.patient_url)
    assert found["claims"] == 800
    assert found["granted"] + found.get("refused", 0) == 800
    assert found["granted"] > granted
    assert "held by two" not in found
    assert "crashed" not in found
    assert found["known"] == origins
    assert found["leases left"] == 0


@needs_posix
def test_few_origins_for_many(tmp_path: Path) -> None:
    found = process("contend", tmp_path, 4, 200, 2)
    assert found["refused"] > 50
    assert "held by two" not in found
    assert "crashed" not in found


@needs_posix
def test_two_claim_at_once(tmp_path: Path) -> None:
    assert process("race", tmp_path, 200) == [1] * 200


def claim_and_die(path: Path) -> None:
    """Claim the first origin in a process that ends with the lease in hand."""
    code = (
        "import os, sys\n"
        "from scrapy_rep.stores.sqlite import SqliteStore\n"
        "from tests.stores.examples import *\n"
        "run(SqliteStore(sys.argv[1], Clock()).claim(origin(), 30))\n"
        "os._exit(9)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )


@needs_posix
def test_the_lease_of_a_process_that_died_is_free_at_once(path: Path, clock: Clock) -> None:
    claim_and_die(path)
    store = SqliteStore(path, clock)
    run(store.wait_for_update(origin(), 100, clock.pause))
    assert clock.pauses == 0
    assert run(store.claim(origin(), LEASE)).lease is not None


def test_a_lease_expires_whose_holder_is_out_of_sight(path: Path, clock: Clock) -> None:
    claim_and_die(path)
    # As of a process in another container.
    change(path, "UPDATE leases SET token = 'a 1 2 elsewhere'")
    store = SqliteStore(path, clock)
    assert run(store.claim(origin(), LEASE)).lease is None
    run(store.wait_for_update(origin(), 100, clock.pause))
    assert clock.now == pytest.approx(Clock().now + 30, abs=1)
    assert run(store.claim(origin(), LEASE)).lease is not None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the file in a transaction that does not end."""
    code = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('BEGIN EXCLUSIVE')\n"
        "print('.', flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, str(path)]
    # At the end, Popen closes its standard input, which ends it.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        assert other.stdout.read(1) == b"."
        yield


@pytest.mark.parametrize("opened", [True, False])
def test_locked_by_another_process(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, opened: bool
) -> None:
    if opened:
        run(store.write(entry()))
    with locked(path):
        assert "another process has locked it" in goes_on(store, caplog, works=False)
    clock.now += 30
    run(store.write(entry()))
    assert run(store.read(origin())) == entry()
    assert store.works


# -- places where nothing can be written ----------------------------------------


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Not root, whom permissions do not concern."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that everybody can reach."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o777)
    yield directory
    directory.chmod(0o777)
    shutil.rmtree(directory)


@needs_posix
@pytest.mark.parametrize("there", [False, True])
def test_a_directory_that_is_read_only(
    open_directory: Path, clock: Clock, caplog: pytest.LogCaptureFixture, there: bool
) -> None:
    path = open_directory / "robots.sqlite"
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    with nobody():
        if there:
            run(store.write(entry()))
            run(store.close())
    open_directory.chmod(0o555)
    with nobody():
        said = goes_on(store, caplog, works=False)
        assert f"{path}: " in said
        assert "let this user write the file and its directory" in said
    open_directory.chmod(0o777)
    clock.now += 30
    with nobody():
        run(store.write(entry()))
        assert store.works
        run(store.close())


@needs_posix
def test_a_file_that_is_read_only(
    open_directory: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    path = open_directory / "robots.sqlite"
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    run(store.write(entry()))
    run(store.close())
    path.chmod(0o444)
    with nobody():
        assert "let this user write the file" in goes_on(store, caplog, works=False)


def below_a_file(directory: Path) -> Path:
    (directory / "file").write_text("", "utf-8")
    return directory / "file" / "rep" / "robots.sqlite"


@pytest.mark.parametrize(
    "place", [below_a_file, lambda _: Path("/proc/rep/robots.sqlite"), lambda directory: directory]
)
def test_a_place_for_no_file(
    tmp_path: Path,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    place: Callable[[Path], Path],
) -> None:
    path = place(tmp_path)
    if path.is_relative_to("/proc") and not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    said = goes_on(store, caplog, works=False)
    assert f"{path}: " in said
    assert "or set REP_STORE to another file" in said


# -- no room --------------------------------------------------------------------


@needs_posix
def test_a_quota_on_the_size_of_a_file(path: Path) -> None:
    found = process("fill", path, 1_000_000)
    assert found["granted"] == 500
    assert 10 < found["kept"] < 400
    assert not found["works"]
    assert len(found["warnings"]) == 1
    assert "look at the disk, its free space and quotas" in found["warnings"][0]
    # What was kept is there still, and there is room again.
    assert is_whole(path)
    assert process("fill", path, 0)["kept"] == 500


def test_a_full_disk(tmp_path: Path) -> None:
    """On a small file system of its own, in a name space of its own."""
    mount = f"mount -t tmpfs -o size=1m none {tmp_path}"
    if (
        os.name != "posix"
        or subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("nothing can be mounted here")
    script = f'{mount} && echo kept > {tmp_path}/other && exec "$@"'
    before = ("unshare", "-rm", "sh", "-c", script, "sh")
    found = process("fill", tmp_path / "robots.sqlite", 0, before=before)
    assert found["granted"] == 500
    assert 10 < found["kept"] < 400
    assert not found["works"]
    assert len(found["warnings"]) == 1
    assert "free some space on the disk, or raise the quota" in found["warnings"][0]


# -- damage ---------------------------------------------------------------------


def truncate(path: Path, share: float) -> None:
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))


def garble(path: Path, start: int, size: int) -> None:
    """Overwrite, and not replace: whoever has the file open sees it."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(random.Random(1).randbytes(size))


def header_only(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100)


def replace_by_text(path: Path) -> None:
    path.write_text("User-agent: *\nDisallow: /\n" * 1000, "utf-8")


#: By the first bytes, the file is still ours.
OURS: dict[str, Callable[[Path], None]] = {
    "half": lambda path: truncate(path, 0.5),
    "header only": header_only,
    "garbage in the schema": lambda path: garble(path, 100, 3996),
    "garbage after the header": lambda path: garble(path, 4096, path.stat().st_size),
}
#: Nothing says that it ever was.
ANYBODYS: dict[str, Callable[[Path], None]] = {
    "garbage": lambda path: garble(path, 0, path.stat().st_size),
    "long garbage": lambda path: garble(path, 0, 5 * path.stat().st_size),
    "a text": replace_by_text,
    "garbage in the header": lambda path: garble(path, 0, 100),
    "a database": lambda path: change(path, "PRAGMA application_id = 1"),
}
DAMAGES = {**OURS, **{name: ANYBODYS[name] for name in ANYBODYS if name != "a database"}}
#: How a store begins, and how no sound one goes on.
DAMAGED = b"SQLite format 3\0".ljust(68, b"\xff") + b"REP\x01"


def fill(path: Path, clock: Clock) -> None:
    store = SqliteStore(path, clock)
    for number in range(100):
        run(store.write(entry(number, body=random.Random(number).randbytes(1000))))
    run(store.close())


@pytest.mark.parametrize("damage", OURS)
def test_damaged_files(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    fill(path, clock)
    OURS[damage](path)
    damaged = path.read_bytes()
    said = goes_on(store, caplog, works=True)
    aside = path.with_name("robots.sqlite.damaged-20270115T080000Z")
    assert said.startswith(f"{path} was damaged (")
    assert f"renamed to {aside.name}" in said
    assert aside.read_bytes() == damaged
    run(store.close())
    assert len(run_all(SqliteStore(path, clock).origins())) == 50
    assert is_whole(path)


@pytest.mark.parametrize("damage", ANYBODYS)
def test_what_is_not_a_store_is_left_alone(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    fill(path, clock)
    ANYBODYS[damage](path)
    before = path.read_bytes()
    # No crawl starts with it.
    with pytest.raises(ConfigurationError, match=f"^{path}: this is not a store"):
        open_store_with_breaker(StoreSpec(in_memory=False, path=path), 10)
    # And none that has started goes on with it.
    assert "left alone: set REP_STORE to another file" in goes_on(store, caplog, works=False)
    run(store.close())
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*damaged*"))


@needs_posix
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_left_alone(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    before = path.stat()
    with pytest.raises(ConfigurationError, match=f"^{path}: this is not a store"):
        open_store_with_breaker(StoreSpec(in_memory=False, path=path), 10)
    assert path.stat().st_ino == before.st_ino


@needs_posix
@pytest.mark.parametrize("damage", OURS)
def test_nothing_is_renamed_through_a_link(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    other = path.with_name("other.sqlite")
    fill(other, clock)
    OURS[damage](other)
    path.symlink_to(other)
    before = other.read_bytes()
    assert "because a symbolic link leads to it" in goes_on(store, caplog, works=False)
    assert other.read_bytes() == before
    assert not list(path.parent.glob("*damaged*"))


@needs_posix
def test_no_text_is_written_to_through_a_link(path: Path) -> None:
    notes = path.with_name("notes.txt")
    notes.write_text("Buy milk.", "utf-8")
    path.symlink_to(notes)
    with pytest.raises(ConfigurationError, match=f"^{path}: this is not a store"):
        open_store_with_breaker(StoreSpec(in_memory=False, path=path), 10)
    assert notes.read_text("utf-8") == "Buy milk."


@pytest.mark.parametrize("damage", OURS)
def test_damaged_files_that_are_left_alone(path: Path, clock: Clock, damage: str) -> None:
    fill(path, clock)
    OURS[damage](path)
    damaged = path.read_bytes()
    store = SqliteStore(path, clock, sets_aside=False)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"a crawl would begin a new one"):
            run_all(store.origins())
    run(store.close())
    assert path.read_bytes() == damaged
    assert not list(path.parent.glob("*damaged*"))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_while_it_is_open(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    fill(path, clock)
    assert run(store.read(origin(1))) is not None
    DAMAGES[damage](path)
    # It is found out when what is damaged has to be read again: now, or when the
    # file is opened the next time. Until then, all that is read is right.
    for turn in range(2):
        for number in range(100):
            known = run(store.read(origin(number)))
            body = random.Random(number).randbytes(1000)
            assert known in (None, entry(number, body=body))
            lease = run(store.claim(origin(1000 * turn + number), LEASE)).lease
            assert lease is not None
            run(store.write(entry(1000 * turn + number, body=body), lease))
        assert store.works
        run(store.close())
    assert len(caplog.records) == 1
    assert " was damaged (" in caplog.text
    assert is_whole(path)


def test_a_table_is_missing(
    path: Path, store: CircuitBreaker, caplog: pytest.LogCaptureFixture
) -> None:
    run(store.write(entry()))
    change(path, "DROP TABLE leases")
    assert "was damaged (no such table: leases)" in goes_on(store, caplog, works=True)


@pytest.mark.parametrize("opened", [False, True])
def test_an_emptied_file(
    path: Path, store: CircuitBreaker, clock: Clock, caplog: pytest.LogCaptureFixture, opened: bool
) -> None:
    fill(path, clock)
    if opened:
        assert run(store.read(origin(1))) is not None
    truncate(path, 0)
    for number in range(100, 150):
        assert run(store.claim(origin(number), LEASE)).lease is not None
        run(store.write(entry(number)))
    # That is how a new one looks, too.
    assert store.works
    assert len(caplog.records) <= opened
    assert run(store.read(origin(100))) == entry(100)
    run(store.close())
    assert is_whole(path)


def test_nothing_set_aside_is_lost(path: Path, clock: Clock) -> None:
    contents = []
    for number in range(4):
        for suffix in SUFFIXES[: number + 1]:
            path.with_name(path.name + suffix).write_bytes(DAMAGED + b"%d" % number)
        contents.append(DAMAGED + b"%d" % number)
        store = SqliteStore(path, clock)
        run(store.write(entry(number)))
        run(store.close())
    names = [found.name for found in path.parent.iterdir()]
    names = sorted(name for name in names if re.search(r"Z(-\d)?$", name))
    stamp = "robots.sqlite.damaged-20270115T080000Z"
    assert names == [stamp, *(f"{stamp}-{number}" for number in (2, 3, 4))]
    assert [(path.parent / name).read_bytes() for name in names] == contents


def test_the_log_goes_with_the_file(path: Path, clock: Clock) -> None:
    fill(path, clock)
    other, store = SqliteStore(path, clock), SqliteStore(path, clock)
    run(other.write(entry()))
    log = path.with_name("robots.sqlite-wal").read_bytes()
    assert log
    garble(path, 0, path.stat().st_size)
    run(store.write(entry(1)))
    (aside,) = path.parent.glob("*.damaged-*-wal")
    assert aside.read_bytes() == log
    # The other one finds out by itself, and does not hurt the new one.
    run(other.write(entry(2)))
    run(other.close())
    run(store.write(entry(3)))
    run(store.close())
    assert len(list(path.parent.glob("*.damaged-*Z"))) == 1
    assert set(run_all(SqliteStore(path, clock).origins())) == {origin(1), origin(2), origin(3)}
    assert is_whole(path)


@pytest.mark.once
@needs_posix
@pytest.mark.parametrize("turn", range(5))
def test_all_find_the_damage_at_once(tmp_path: Path, turn: int) -> None:
    path = tmp_path / "robots.sqlite"
    path.write_bytes(DAMAGED * 100)
    found = process("set-aside", tmp_path, 4)
    assert found["statuses"] == [0] * 4
    # Renamed once, and nothing that anybody wrote to the new one is lost.
    assert len([name for name in found["files"] if re.search(r"damaged-\d+T\d+Z$", name)]) == 1
    assert found["known"] == 80
    assert found["whole"]


def test_a_directory_in_which_nothing_can_be_renamed(
    open_directory: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    path = open_directory / "robots.sqlite"
    path.write_bytes(DAMAGED * 100)
    path.chmod(0o666)
    open_directory.chmod(0o555)
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    with nobody():
        assert "let this user write the file and its directory" in goes_on(
            store, caplog, works=False
        )
    assert path.read_bytes() == DAMAGED * 100


def test_of_a_newer_version(
    path: Path, store: CircuitBreaker, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    fill(path, clock)
    change(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    assert "newer scrapy-rep" in goes_on(store, caplog, works=False)
    assert path.read_bytes() == before


# -- time -----------------------------------------------------------------------


def test_the_clock_is_set_back_an_hour(path: Path, clock: Clock) -> None:
    fill(path, clock)
    gone, store = SqliteStore(path, clock), SqliteStore(path, clock)
    run(gone.claim(origin(0), LEASE))
    clock.now -= HOUR
    claim = run(store.claim(origin(0), LEASE))
    # Nobody waits an hour for the lease; what was known is known.
    assert claim.lease is not None
    assert claim.entry is not None
    run(store.write(entry(0, clock.now), claim.lease))
    assert run(store.read(origin(0))) == entry(0, clock.now)


# -- other programs -------------------------------------------------------------


def test_text_of_others_has_no_power(
    path: Path, store: CircuitBreaker, caplog: pytest.LogCaptureFixture
) -> None:
    odd = Origin("http", "\x1b[2J.example", 80)
    result = FetchResult(odd.robots_url, 200)
    run(store.write(CacheEntry(odd, StoredResponse(result, 1.0, 1.0))))
    change(path, "UPDATE entry SET value = x'00'")
    assert run(store.read(odd)) is None
    assert "\\x1b[2J.example" in caplog.text
    assert "\x1b" not in caplog.text
    assert look(path, "SELECT * FROM entry") == []
