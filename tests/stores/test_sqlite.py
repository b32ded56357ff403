from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from scrapy_rep.stores import sqlite_file
from scrapy_rep.stores.base import KEPT_FOR, StoreError
from scrapy_rep.stores.sqlite import SqliteStore
from scrapy_rep.stores.sqlite_file import MIGRATIONS, is_store
from tests.stores.examples import (
    DAY,
    NOON,
    Clock,
    change,
    entry,
    is_whole,
    look,
    origin,
    outage,
    run,
    run_all,
)


@pytest.fixture
def store(path: Path, clock: Clock) -> SqliteStore:
    return SqliteStore(path, clock)


def names_in(directory: Path) -> list[str]:
    return sorted(found.name for found in directory.iterdir())


# -- the file -------------------------------------------------------------------


def test_nothing_is_made_before_it_is_used(tmp_path: Path, store: SqliteStore) -> None:
    assert names_in(tmp_path) == []
    run(store.close())
    assert names_in(tmp_path) == []


def test_its_directory_is_made(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a" / "b" / "robots.sqlite")
    run(store.write(entry()))
    run(store.close())
    assert names_in(tmp_path / "a" / "b") == ["robots.sqlite"]


def test_it_is_a_log_written_ahead(path: Path, store: SqliteStore) -> None:
    run(store.write(entry()))
    assert look(path, "PRAGMA journal_mode") == [("wal",)]
    assert names_in(path.parent) == ["robots.sqlite", "robots.sqlite-shm", "robots.sqlite-wal"]
    run(store.close())
    assert names_in(path.parent) == ["robots.sqlite"]


def test_what_is_written_outlives_it(path: Path, store: SqliteStore, clock: Clock) -> None:
    run(store.write(entry()))
    run(store.close())
    assert run(SqliteStore(path, clock).read(origin())) == entry()


def test_leases_are_shared(path: Path, store: SqliteStore, clock: Clock) -> None:
    other = SqliteStore(path, clock)
    lease = run(store.claim(origin(), 30)).lease
    assert run(other.claim(origin(), 30)).lease is None
    run(store.write(entry(), lease))
    claim = run(other.claim(origin(), 30))
    assert claim.entry == entry()
    assert claim.lease is not None


def test_a_symbolic_link_is_followed(tmp_path: Path, path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere" / "real.sqlite")
    run(SqliteStore(path).write(entry()))
    assert "real.sqlite" in names_in(tmp_path / "elsewhere")
    assert run(SqliteStore(path).read(origin())) == entry()


@pytest.mark.skipif(os.name != "posix", reason="other permissions")
def test_only_the_owner_may_read_the_files(path: Path, store: SqliteStore) -> None:
    run(store.write(entry()))
    modes = {name: (path.parent / name).stat().st_mode & 0o777 for name in names_in(path.parent)}
    assert modes == dict.fromkeys(
        ["robots.sqlite", "robots.sqlite-shm", "robots.sqlite-wal"], 0o600
    )


@pytest.mark.skipif(os.name != "posix", reason="other permissions")
def test_a_file_that_exists_keeps_its_permissions(path: Path) -> None:
    path.touch()
    path.chmod(0o664)
    store = SqliteStore(path)
    run(store.write(entry()))
    assert {(path.parent / name).stat().st_mode & 0o777 for name in names_in(path.parent)} == {
        0o664
    }
    run(store.close())


def test_a_small_row(path: Path, store: SqliteStore) -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(1000, 1040))
    assert len(body) > 600
    for number in range(2000):
        run(store.write(entry(number, body=body)))
    run(store.close())
    assert path.stat().st_size / 2000 < 600


@pytest.mark.parametrize("deleted", [True, False])
def test_deleted_or_moved_while_it_is_open(
    path: Path, store: SqliteStore, clock: Clock, deleted: bool
) -> None:
    run(store.write(entry(1)))
    if deleted:
        for name in names_in(path.parent):
            (path.parent / name).unlink()
    else:
        path.rename(path.with_name("moved.sqlite"))
    run(store.write(entry(2)))
    run(store.close())
    assert set(run_all(SqliteStore(path, clock).origins())) == {origin(2)}
    assert is_whole(path)


def test_many_origins(store: SqliteStore) -> None:
    for number in range(1234):
        run(store.write(entry(number)))
    assert set(run_all(store.origins())) == set(map(origin, range(1234)))


# -- versions -------------------------------------------------------------------


def version(path: Path) -> int:
    return int(look(path, "PRAGMA user_version")[0][0])


def test_a_new_file_has_the_newest_version(path: Path, store: SqliteStore) -> None:
    run(store.read(origin()))
    assert version(path) == len(MIGRATIONS)


def test_an_empty_file_is_a_new_one(path: Path, store: SqliteStore) -> None:
    path.touch()
    run(store.write(entry()))
    assert version(path) == len(MIGRATIONS)


LATER = (
    ("ALTER TABLE entry ADD COLUMN note TEXT NOT NULL DEFAULT ''",),
    ("CREATE TABLE more (id INTEGER PRIMARY KEY)", "INSERT INTO more VALUES (1)"),
)


def test_older_files_are_brought_up_to_date(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for newest in range(len(LATER) + 1):
        monkeypatch.setattr(sqlite_file, "MIGRATIONS", MIGRATIONS + LATER[:newest])
        run(store.write(entry(newest)))
        run(store.close())
        assert version(path) == len(MIGRATIONS) + newest
    assert len(run_all(store.origins())) == len(LATER) + 1
    assert look(path, "SELECT note FROM entry LIMIT 1") == [("",)]
    assert look(path, "SELECT * FROM more") == [(1,)]


def test_a_migration_that_fails_changes_nothing(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store.write(entry()))
    run(store.close())
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*MIGRATIONS, LATER[0], ("CREATE nonsense",)))
    with pytest.raises(StoreError, match="syntax error"):
        run(store.read(origin()))
    monkeypatch.undo()
    assert version(path) == len(MIGRATIONS)
    assert run(store.read(origin())) == entry()
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        look(path, "SELECT note FROM entry")


def test_a_newer_file_is_left_alone(path: Path, store: SqliteStore) -> None:
    run(store.write(entry()))
    run(store.close())
    change(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"newer scrapy-rep.*REP_STORE"):
            run(store.claim(origin(), 30))
    assert path.read_bytes() == before
    assert names_in(path.parent) == ["robots.sqlite"]


def test_the_file_gets_newer_while_it_is_open(path: Path, store: SqliteStore) -> None:
    run(store.write(entry()))
    change(path, "ALTER TABLE entry RENAME TO facts2")
    change(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(StoreError, match="newer scrapy-rep"):
        run(store.read(origin()))
    assert not [name for name in names_in(path.parent) if "damaged" in name]


def test_a_database_of_another_program_is_left_alone(path: Path, store: SqliteStore) -> None:
    change(path, "CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"not a store of scrapy-rep.*REP_STORE"):
        run(store.read(origin()))
    assert path.read_bytes() == before


# -- errors ---------------------------------------------------------------------


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{tmp_path}: .*REP_STORE"):
        run(SqliteStore(tmp_path).read(origin()))


def test_it_works_again_after_an_error(path: Path, store: SqliteStore) -> None:
    path.mkdir()
    with pytest.raises(StoreError):
        run(store.claim(origin(), 30))
    path.rmdir()
    assert run(store.claim(origin(), 30)).lease is not None


# -- what cannot be read --------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"rep1junk", "text", 5, 1.5, b"rep2" + bytes(50)])
def test_values_that_cannot_be_read(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    for number in range(3):
        run(store.write(entry(number)))
    change(path, "UPDATE entry SET value = ? WHERE origin != 'https://host2.example'", value)
    assert run(store.read(origin(0))) is None
    claim = run(store.claim(origin(1), 30))
    assert claim.entry is None
    assert claim.lease is not None
    assert run(store.read(origin(2))) == entry(2)
    assert look(path, "SELECT count(*) FROM entry") == [(1,)]
    assert len(caplog.records) == 1
    assert "Cannot read the entry of https://host0.example in" in caplog.text


def test_keys_that_are_none(path: Path, store: SqliteStore) -> None:
    for number in range(5):
        run(store.write(entry(number)))
    for number, key in enumerate(["'x'", "5", "CAST(x'ff00' AS TEXT)", "x'00'"]):
        change(path, f"UPDATE entry SET origin = {key} WHERE rowid = {number + 1}")
    assert run_all(store.origins()) == [origin(4)]


@pytest.mark.parametrize("until", ["'never'", "9e999", "x'00'", f"{NOON + 10 * DAY}"])
def test_leases_that_are_none(path: Path, store: SqliteStore, until: str) -> None:
    run(store.read(origin()))
    change(path, f"INSERT INTO leases VALUES ('https://host0.example', 'x', {NOON - 1}, {until})")
    assert run(store.claim(origin(), 30)).lease is not None


# -- what is of no use ----------------------------------------------------------


def test_old_rows_are_dropped_when_it_is_opened(store: SqliteStore, clock: Clock) -> None:
    for number in range(10):
        run(store.write(entry(number)))
    run(store.claim(origin(), 30))
    run(store.close())
    clock.now += KEPT_FOR + 1
    assert run_all(store.origins()) == []
    assert look(store.path, "SELECT * FROM leases") == []


def test_a_bounded_number_at_a_time(store: SqliteStore, clock: Clock) -> None:
    for number in range(1200):
        run(store.write(entry(number)))
    clock.now += KEPT_FOR + 1
    left = []
    for _ in range(4):
        run(store.close())
        run(store.read(origin()))
        left += look(store.path, "SELECT count(*) FROM entry")
    assert left == [(700,), (200,), (0,), (0,)]


def test_an_outage_is_old_when_the_last_attempt_is(store: SqliteStore, clock: Clock) -> None:
    run(store.write(entry(1, clock.now)))
    run(store.write(outage(2, at=clock.now + 40 * DAY, since=clock.now)))
    run(store.close())
    clock.now += KEPT_FOR + 1
    assert run_all(store.origins()) == [origin(2)]


def test_a_long_crawl_drops_more_than_it_adds(store: SqliteStore, clock: Clock) -> None:
    for number in range(1000):
        run(store.write(entry(number)))
    clock.now += KEPT_FOR + 1
    for number in range(1000):
        run(store.write(entry(2000 + number, clock.now)))
    assert len(run_all(store.origins())) == 1000


# -- processes ------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks(
    path: Path, store: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who holds a lock on a busy machine is slow, and does not hang.
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT", 30.0)
    run(store.write(entry(0)))
    go_on, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ours = run(store.read(origin(0))) == entry(0)
            run(store.write(entry(1)))
            os.read(go_on, 1)
            # The parent has closed its own by now.
            run(store.write(entry(2)))
            os._exit(0 if ours else 1)
        finally:
            os._exit(2)
    run(store.write(entry(3)))
    run(store.close())
    os.write(told, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert set(run_all(store.origins())) == set(map(origin, range(4)))
    assert is_whole(path)


def test_a_store_whose_process_was_killed_before_the_first_checkpoint(
    tmp_path: Path, path: Path, store: SqliteStore
) -> None:
    # All but the first page is in the log by then, the application ID too.
    run(store.write(entry()))
    left = tmp_path / "left"
    left.mkdir()
    for name in names_in(path.parent):
        if name != "left":
            shutil.copy(path.parent / name, left)
    assert b"REP\x01" not in (left / path.name).read_bytes()
    assert is_store(left / path.name)
    assert run(SqliteStore(left / path.name).read(origin())) == entry()


@pytest.mark.parametrize("sql", ["CREATE TABLE notes (text)", ""])
def test_a_database_of_another_program_is_not_a_store(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "notes.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(sql)
    assert is_store(path) is (sql == "")
