"""A store in one SQLite file, for any number of processes on one machine.

Here may live: the SQL. What happens to the file is in ``sqlite_file.py``. Nothing here
suspends but :meth:`SqliteStore.wait_for_update`: a read takes microseconds, and a lock that
another process holds is waited for :data:`.sqlite_file.BUSY_TIMEOUT` at most.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin

from .base import KEPT_FOR, MAX_LEASE, Lease, ValueStore, key_of, lease_holds, time_of
from .processes import is_dead, this_process
from .sqlite_file import SqliteFile, transaction

# Rows to drop at a time, when the file is opened and with each so many writes: a few
# milliseconds, and more than are added.
_PRUNED = 500
_WRITES_PER_PRUNING = 16


class SqliteStore(ValueStore):
    """Cache entries and leases in the SQLite file at *path*.

    *clock* gives seconds since the epoch. A store that is damaged is renamed and a new one
    begun, if it *sets_aside* such files. Nothing is opened or made before it is used. All
    methods raise :exc:`~.base.StoreError`, and may be tried again after that.
    """

    def __init__(
        self,
        path: str | Path,
        clock: Callable[[], float] = time.time,
        *,
        sets_aside: bool = True,
    ) -> None:
        self._file = SqliteFile(path, clock, self._prune, sets_aside=sets_aside)
        self._run = self._file.run
        self.path = self._file.path
        self._writes = 0
        advice = "Check the disk, and other programs that write to this file."
        super().__init__(clock, str(self.path), advice)

    async def release(self, lease: Lease) -> None:
        self._run(lambda db: _end(db, lease))

    async def has_lease(self, origin: Origin) -> bool:
        return self._run(lambda db: _leased(db, origin, self._clock()))

    async def delete(self, origin: Origin) -> bool:
        sql = "DELETE FROM entry WHERE origin = ?"
        return self._run(lambda db: db.execute(sql, (key_of(origin),)).rowcount) > 0

    async def clear(self) -> int:
        return self._run(lambda db: db.execute("DELETE FROM entry").rowcount)

    async def close(self) -> None:
        self._file.close()

    async def _get(self, origin: Origin) -> object:
        return self._run(lambda db: _value(db, origin))

    async def _take(self, lease: Lease) -> tuple[object, bool]:
        def take(db: sqlite3.Connection) -> tuple[object, bool]:
            with transaction(db):
                now = self._clock()
                granted = not _leased(db, lease.origin, now)
                if granted:
                    # Whoever finds the lease can see if its holder has died.
                    token = f"{lease.token} {this_process()}"
                    db.execute(
                        "INSERT OR REPLACE INTO leases (origin, token, taken, until)"
                        " VALUES (?, ?, ?, ?)",
                        (key_of(lease.origin), token, now, lease.until),
                    )
                return _value(db, lease.origin), granted

        return self._run(take)

    async def _put(self, entry: CacheEntry, value: bytes, lease: Lease | None) -> None:
        def put(db: sqlite3.Connection) -> None:
            with transaction(db):
                held = lease is not None and _end(db, lease)
                # What is there and from the future is from before the clock was
                # set back, and would otherwise stay until that time comes.
                db.execute(
                    "INSERT INTO entry (origin, seen, value) VALUES (?, ?, ?)"
                    " ON CONFLICT (origin) DO UPDATE"
                    " SET seen = excluded.seen, value = excluded.value"
                    " WHERE ? OR entry.seen <= excluded.seen OR entry.seen > ?",
                    (key_of(entry.origin), time_of(entry), value, held, self._clock()),
                )
            if self._writes % _WRITES_PER_PRUNING == 0:
                self._prune(db)

        self._writes += 1
        self._run(put)

    async def _keys(self) -> list[str]:
        # Another program may have put a key of another type there.
        sql = "SELECT origin FROM entry WHERE typeof(origin) = 'text'"
        return [key for (key,) in self._run(lambda db: db.execute(sql).fetchall())]

    def _discard(self, origin: Origin, value: object) -> None:
        # Not, if somebody has written another one since.
        sql = "DELETE FROM entry WHERE origin = ? AND value = ?"
        self._run(lambda db: db.execute(sql, (key_of(origin), value)))

    def _prune(self, db: sqlite3.Connection) -> None:
        now = self._clock()
        with transaction(db):
            db.execute("DELETE FROM leases WHERE until <= ? OR taken > ?", (now, now + MAX_LEASE))
            db.execute(
                "DELETE FROM entry WHERE rowid IN"
                " (SELECT rowid FROM entry WHERE seen < ? ORDER BY seen LIMIT ?)",
                (now - KEPT_FOR, _PRUNED),
            )


def _value(db: sqlite3.Connection, origin: Origin) -> object:
    row = db.execute("SELECT value FROM entry WHERE origin = ?", (key_of(origin),)).fetchone()
    return row and row[0]


def _leased(db: sqlite3.Connection, origin: Origin, now: float) -> bool:
    sql = "SELECT taken, until, token FROM leases WHERE origin = ?"
    row = db.execute(sql, (key_of(origin),)).fetchone()
    if row is None or not lease_holds(row[0], row[1], now):
        return False
    return not is_dead(str(row[2]).partition(" ")[2])


def _end(db: sqlite3.Connection, lease: Lease) -> bool:
    sql = "DELETE FROM leases WHERE origin = ? AND token LIKE ? || ' %'"
    return db.execute(sql, (key_of(lease.origin), lease.token)).rowcount > 0
