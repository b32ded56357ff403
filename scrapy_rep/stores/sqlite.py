"""A store in one SQLite file, for any number of processes on one machine.

Here may live: the SQL. What happens to the file is in ``sqlite_file.py``. Nothing here
suspends but :meth:`SqliteStore.wait_for_update`: a read takes microseconds, and a lock that
another process holds is waited for :data:`.sqlite_file.BUSY_TIMEOUT` at most.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

from .base import (
    KEPT_FOR,
    MAX_LEASE,
    Claim,
    Lease,
    Store,
    UnreadableValue,
    decode,
    encode,
    key_of,
    lease_holds,
    origin_of,
    time_of,
)
from .processes import is_dead, this_process
from .sqlite_file import SqliteFile, transaction

logger = logging.getLogger(__name__)

# Rows to drop at a time, when the file is opened and with each so many writes: a few
# milliseconds, and more than are added.
_PRUNED = 500
_WRITES_PER_PRUNING = 16


class SqliteStore(Store):
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
        self._clock = clock
        self._file = SqliteFile(path, clock, self._prune, sets_aside=sets_aside)
        self._run = self._file.run
        self.path = self._file.path
        self._writes = 0
        self._mentioned_unreadable = False

    async def read(self, origin: Origin) -> CacheEntry | None:
        return self._decoded(origin, self._run(lambda db: _value(db, key_of(origin))))

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        key = key_of(origin)
        # Whoever finds the lease can see if its holder has died.
        token = f"{secrets.token_hex(8)} {this_process()}"
        now = self._clock()
        until = now + min(seconds, MAX_LEASE)

        def take(db: sqlite3.Connection) -> tuple[object, bool]:
            with transaction(db):
                value = _value(db, key)
                if _leased(db, key, now):
                    return value, False
                db.execute(
                    "INSERT OR REPLACE INTO leases (origin, token, taken, until)"
                    " VALUES (?, ?, ?, ?)",
                    (key, token, now, until),
                )
                return value, True

        value, taken = self._run(take)
        lease = Lease(origin, token, until) if taken else None
        return Claim(self._decoded(origin, value), lease)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        try:
            value = encode(entry)
        except ValueError:
            if lease is not None:
                await self.release(lease)
            return
        now = self._clock()
        self._writes += 1

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
                    (key_of(entry.origin), time_of(entry), value, held, now),
                )
                if self._writes % _WRITES_PER_PRUNING == 0:
                    _forget_old(db, now)

        self._run(put)

    async def release(self, lease: Lease) -> None:
        self._run(lambda db: _end(db, lease))

    async def has_lease(self, origin: Origin) -> bool:
        return self._run(lambda db: _leased(db, key_of(origin), self._clock()))

    async def delete(self, origin: Origin) -> bool:
        sql = "DELETE FROM entry WHERE origin = ?"
        return self._run(lambda db: db.execute(sql, (key_of(origin),)).rowcount) > 0

    async def clear(self) -> int:
        return self._run(lambda db: db.execute("DELETE FROM entry").rowcount)

    async def origins(self) -> AsyncIterator[Origin]:
        keys = self._run(lambda db: db.execute("SELECT origin FROM entry").fetchall())
        for (key,) in keys:
            origin = origin_of(key) if isinstance(key, str) else None
            if origin is not None:
                yield origin

    async def close(self) -> None:
        self._file.close()

    def _prune(self, db: sqlite3.Connection) -> None:
        with transaction(db):
            _forget_old(db, self._clock())

    def _decoded(self, origin: Origin, value: object) -> CacheEntry | None:
        if value is None:
            return None
        try:
            return decode(origin, value)
        except UnreadableValue as error:
            if not self._mentioned_unreadable:
                self._mentioned_unreadable = True
                logger.warning(
                    "Cannot read the entry of %(origin)s in %(path)s (%(error)s). It is deleted"
                    " and fetched again; others like it are, too, without a warning. If this"
                    " happens often, check the disk and other programs that write to this file.",
                    {"path": self.path, "origin": printable(str(origin)), "error": error},
                )
        # Not, if somebody has written another one since.
        sql = "DELETE FROM entry WHERE origin = ? AND value = ?"
        self._run(lambda db: db.execute(sql, (key_of(origin), value)))
        return None


def _value(db: sqlite3.Connection, key: str) -> object:
    row = db.execute("SELECT value FROM entry WHERE origin = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _leased(db: sqlite3.Connection, key: str, now: float) -> bool:
    sql = "SELECT taken, until, token FROM leases WHERE origin = ?"
    row = db.execute(sql, (key,)).fetchone()
    if row is None or not lease_holds(row[0], row[1], now):
        return False
    return not is_dead(str(row[2]).partition(" ")[2])


def _end(db: sqlite3.Connection, lease: Lease) -> bool:
    sql = "DELETE FROM leases WHERE origin = ? AND token = ?"
    return db.execute(sql, (key_of(lease.origin), lease.token)).rowcount > 0


def _forget_old(db: sqlite3.Connection, now: float) -> None:
    db.execute("DELETE FROM leases WHERE until <= ? OR taken > ?", (now, now + MAX_LEASE))
    sql = (
        "DELETE FROM entry WHERE rowid IN"
        " (SELECT rowid FROM entry WHERE seen < ? ORDER BY seen LIMIT ?)"
    )
    db.execute(sql, (now - KEPT_FOR, _PRUNED))
