"""A store in one SQLite file, for any number of processes on one machine.

Here may live: SQL, and what happens to the file. Nothing here suspends but
:meth:`SqliteStore.news`: a read takes microseconds, and a lock that another
process holds is waited for :data:`BUSY_TIMEOUT` at most.

What is written is there after ``kill -9``. After a power cut the last writes may
be lost, but no others, and the file is whole (write-ahead log, synchronous=NORMAL).
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sqlite3
import stat
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

from .base import (
    KEPT_FOR,
    MAX_LEASE,
    Claim,
    Lease,
    StoreError,
    UnreadableValue,
    decode,
    encode,
    key_of,
    lease_holds,
    origin_of,
    pause,
    time_of,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Seconds that a lock of another process is waited for. The event loop stands still.
BUSY_TIMEOUT = 0.25

#: What makes a file of version N one of version N + 1. Never change one: add.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE entry (origin TEXT PRIMARY KEY NOT NULL,"
        " seen REAL NOT NULL, value BLOB NOT NULL)",
        "CREATE INDEX facts_seen ON entry (seen)",
        "CREATE TABLE leases (origin TEXT PRIMARY KEY NOT NULL, token TEXT NOT NULL,"
        " taken REAL NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    ),
)
# Fails where a table or a column is missing.
_USED = (
    "SELECT origin, seen, value FROM entry LIMIT 0",
    "SELECT origin, token, taken, until FROM leases LIMIT 0",
)
# "REP" and a version that never changed: the file is ours.
_APPLICATION_ID = 0x52455001
# https://www.sqlite.org/fileformat2.html, "The Database Header": how every file begins,
# and where the ID stands.
_MAGIC = b"SQLite format 3\0"
_ID_AT = 68
# Bytes that the log keeps of the disk when it has been written back.
_LOG_SIZE = 4 * 1024 * 1024
# Rows to drop at a time, when the file is opened: a few milliseconds.
_PRUNED = 500
# Each so many writes, so many rows are dropped with one: more than are added.
_WRITES_PER_PRUNING = 16
_PRUNED_PER_WRITE = 32
# Rows to read at a time, where all are read.
_PAGE = 500
# Seconds between looks at whether a lease has ended: the first, and the longest.
_FIRST_POLL = 0.05
_LONGEST_POLL = 0.5

# What a person can do, by what SQLite says.
_ADVICE = {
    "locked": f"another process has locked it for more than {BUSY_TIMEOUT:g} s: "
    "end it if it hangs or is a shell left open in a transaction",
    "readonly": "let this user write the file and its directory",
    "full": "free some space on the disk, or raise the quota",
    "disk I/O": "look at the disk, its free space and quotas",
    "unable to open": "let this user write the file and its directory, or set REP_STORE "
    "to another file",
    # Where damaged files are not set aside.
    "not a database": "the file is damaged; a crawl would begin a new one",
    "malformed": "the file is damaged; a crawl would begin a new one",
}

# A connection must not be carried over a fork, not even to be closed: SQLite would
# take the parent's locks for the child's own.
_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


class SqliteStore:
    """CacheEntry and leases in the SQLite file at *path*; a :class:`~.base.Store`.

    *clock* gives seconds since the epoch; *pause* waits for a number of seconds. A store
    that is damaged is renamed and a new one begun, if it *sets_aside*
    such files. Nothing is opened or made before it is used. All methods raise
    :exc:`~.base.StoreError`, and may be tried again after that.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = pause,
        *,
        sets_aside: bool = True,
    ) -> None:
        # SQLite puts its other files beside the real one.
        self.path = Path(os.path.realpath(path))
        self._is_link = Path(path).is_symlink()
        self._clock = clock
        self._pause = pause
        self._sets_aside = sets_aside
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        #: That of the last file that was a store and not damaged.
        self._sound: tuple[int, int] | None = None
        self._writes = 0
        self._mentioned_unreadable = False
        _STORES.add(self)

    # -- the store ----------------------------------------------------------------

    async def read(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*."""
        key = key_of(origin)
        return self._decoded(origin, self._run(lambda db: _value(db, key)))

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        """What is known of *origin*, and a lease of *seconds* unless one is in force."""
        key = key_of(origin)
        token = secrets.token_hex(8)
        now = self._clock()
        until = now + min(seconds, MAX_LEASE)

        def take(db: sqlite3.Connection) -> tuple[object, bool]:
            with _transaction(db):
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
        """Keep *entry*, and end *lease*; see :meth:`.base.Store.write`."""
        try:
            value = encode(entry)
        except ValueError:
            if lease is not None:
                await self.release(lease)
            return
        key = key_of(entry.origin)
        now = self._clock()
        self._writes += 1

        def put(db: sqlite3.Connection) -> None:
            with _transaction(db):
                held = lease is not None and _end(db, lease)
                # What is there and from the future is from before the clock was
                # set back, and would otherwise stay until that time comes.
                db.execute(
                    "INSERT INTO entry (origin, seen, value) VALUES (?, ?, ?)"
                    " ON CONFLICT (origin) DO UPDATE"
                    " SET seen = excluded.seen, value = excluded.value"
                    " WHERE ? OR entry.seen <= excluded.seen OR entry.seen > ?",
                    (key, time_of(entry), value, held, now),
                )
                if self._writes % _WRITES_PER_PRUNING == 0:
                    _forget_old(db, now, _PRUNED_PER_WRITE)

        self._run(put)

    async def release(self, lease: Lease) -> None:
        """End *lease*, if it is still held."""
        self._run(lambda db: _end(db, lease))

    async def wait_for_update(self, origin: Origin, seconds: float) -> None:
        """Return when nobody is fetching *origin*, after *seconds* at most."""
        key = key_of(origin)
        delay = _FIRST_POLL
        while seconds > 0 and self._run(lambda db: _leased(db, key, self._clock())):
            await self._pause(min(delay, seconds))
            seconds -= delay
            delay = min(2 * delay, _LONGEST_POLL)

    async def delete(self, origin: Origin) -> bool:
        """Forget *origin*; whether anything was known."""
        key = key_of(origin)
        sql = "DELETE FROM entry WHERE origin = ?"
        return self._run(lambda db: db.execute(sql, (key,)).rowcount) > 0

    async def clear(self) -> int:
        """Forget all origins; how many that were."""
        return self._run(lambda db: db.execute("DELETE FROM entry").rowcount)

    async def origins(self) -> AsyncIterator[Origin]:
        """Those of which something is known, in no order."""
        # Page by page: nobody is kept waiting while somebody looks at them.
        rows = self._page(-1)
        while rows:
            for _, key in rows:
                origin = origin_of(key) if isinstance(key, str) else None
                if origin is not None:
                    yield origin
            rows = self._page(rows[-1][0])

    async def prune(self) -> int:
        """Forget some of what had no news for long, and dead leases; how many origins."""
        return self._run(self._prune)

    async def close(self) -> None:
        """Close the file, which writes the log back and removes it if nobody else has it."""
        self._drop_connection()

    # -- one operation ------------------------------------------------------------

    def _run(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        """*operation* on the open file; on a new one, if this one is found damaged."""
        try:
            # Twice: a table may turn out to be missing, and then so in the file
            # that is opened anew.
            for _ in range(2):
                try:
                    return self._attempt(operation)
                except sqlite3.DatabaseError as error:
                    self._recover(error)
            return self._attempt(operation)
        except (sqlite3.Error, OSError) as error:
            raise self._store_error(error) from error

    def _recover(self, error: sqlite3.DatabaseError) -> None:
        """Make another attempt worthwhile, or raise *error* again."""
        if _is_damage(error):
            self._check_ours()
            if not self._sets_aside:
                raise error
            self._set_aside(error)
        elif not _lacks_table(error):
            raise error

    def _check_ours(self) -> None:
        """Raise :exc:`StoreError` unless the damaged file may be renamed."""
        if not is_store(self.path):
            said = not_a_store(self.path)
        elif self._is_link:
            said = f"{self.path} is damaged, and left alone, because a symbolic link leads to it"
        else:
            return
        self._drop_connection()
        raise StoreError(said)

    def _attempt(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        # Not only once: where the file has been moved or deleted, what is written
        # to it now, nobody would see.
        if self._db is None or _identity(self.path) != self._identity:
            self._drop_connection()
            self._db = self._open()
        try:
            return operation(self._db)
        except sqlite3.Error as error:
            # A connection that failed may be in any state. One to a damaged file is
            # closed when the file has been renamed: closing writes to it.
            if not _is_damage(error):
                self._drop_connection()
            raise

    def _decoded(self, origin: Origin, value: object) -> CacheEntry | None:
        if value is None:
            return None
        try:
            return decode(origin, value)
        except UnreadableValue as error:
            self._drop_unreadable(origin, value, error)
            return None

    def _drop_unreadable(self, origin: Origin, value: object, error: UnreadableValue) -> None:
        if not self._mentioned_unreadable:
            self._mentioned_unreadable = True
            logger.warning(
                "%(path)s: what is kept of %(origin)s cannot be read (%(error)s): it is dropped,"
                " and fetched again. Further ones are dropped without a warning. If this"
                " happens often, see who else writes to this file, and look at the disk",
                {"path": self.path, "origin": printable(str(origin)), "error": error},
            )
        # Not, if somebody has written another one since.
        sql = "DELETE FROM entry WHERE origin = ? AND value = ?"
        self._run(lambda db: db.execute(sql, (key_of(origin), value)))

    def _page(self, after: int) -> list[tuple[int, object]]:
        sql = "SELECT rowid, origin FROM entry WHERE rowid > ? ORDER BY rowid LIMIT ?"
        return self._run(lambda db: db.execute(sql, (after, _PAGE)).fetchall())

    def _prune(self, db: sqlite3.Connection) -> int:
        with _transaction(db):
            return _forget_old(db, self._clock(), _PRUNED)

    def _store_error(self, error: sqlite3.Error | OSError) -> StoreError:
        if isinstance(error, OSError):
            said = error.strerror or str(error)
            advice = _ADVICE["locked" if isinstance(error, BlockingIOError) else "unable to open"]
        else:
            said = printable(str(error))
            advice = next((advice for words, advice in _ADVICE.items() if words in said), "")
        return StoreError(": ".join(filter(None, [str(self.path), said, advice])))

    # -- the file -----------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _directory_lock(self.path.parent, exclusive=False):
            _make_private(self.path)
            db = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None)
            self._identity = _identity(self.path)
            try:
                # Whoever has written an origin: no text stops whoever lists them.
                db.text_factory = _text
                self._prepare(db)
                self._prune(db)
                self._sound = self._identity
            except BaseException as error:
                self._db = db
                if not _is_damage(error):
                    self._drop_connection()
                raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        with _transaction(db, "DEFERRED"):
            version = _number(db, "PRAGMA user_version")
            may_be_used = _is_ours_or_empty(db)
        if not may_be_used:
            raise StoreError(
                f"{self.path}: this is a database of another program, and left alone: "
                "set REP_STORE to another file"
            )
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self.path}: written by a newer scrapy-rep (version {version} of the file, "
                f"this one knows {len(MIGRATIONS)}), and left alone: install that here as "
                "well, or set REP_STORE to another file"
            )
        _use_log(db)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_LOG_SIZE}")
        if version < len(MIGRATIONS):
            _migrate(db)
        _check_tables(db)

    def _drop_connection(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Rename the file, with its log, unless somebody has put another in its place.

        Raises :exc:`OSError`.
        """
        if os.name == "nt":
            # Nobody can rename what is open.
            self._drop_connection()
        try:
            with _directory_lock(self.path.parent, exclusive=True):
                if _identity(self.path) != self._identity:
                    return
                aside = self._name_aside()
                # The file itself last: until then, everybody takes it for the one in
                # use. Under its new name, SQLite does not touch it any more.
                for suffix in ("-wal", "-shm", ""):
                    with contextlib.suppress(FileNotFoundError):
                        _with_suffix(self.path, suffix).rename(_with_suffix(aside, suffix))
        finally:
            self._drop_connection()
        logger.warning(
            "%(path)s was damaged (%(error)s). It has been renamed to %(aside)s, and a new one is"
            " begun: policies are fetched again. Delete the old one when you do not need it;"
            " if this happens again, look at the disk",
            {"path": self.path, "error": printable(str(error)), "aside": aside.name},
        )

    def _name_aside(self) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        name = f"{self.path.name}.damaged-{stamp}"
        number = 1
        while True:
            aside = self.path.with_name(name if number == 1 else f"{name}-{number}")
            if not any(_with_suffix(aside, suffix).exists() for suffix in ("", "-wal", "-shm")):
                return aside
            number += 1


def not_a_store(path: Path) -> str:
    """What there is to say about a file at *path* that is left alone."""
    return (
        f"{path}: this is not a store of scrapy-rep, and left alone: set REP_STORE to another "
        "file, or move this one away"
    )


def is_store(path: Path) -> bool:
    """Whether the file at *path* is a store, by its first bytes was one, or can become one.

    It can where there is no file, or an empty one. *path* is not a symbolic link. Raises
    :exc:`OSError` for a file that cannot be read.
    """
    # Not opened if this process uses it: to close it would end the locks of SQLite.
    identity = _identity(path)
    if identity is not None and any(store._sound == identity for store in _STORES):  # noqa: SLF001
        return True
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            head = file.read(_ID_AT + 4)
    except FileNotFoundError:
        return True
    if not head.startswith(_MAGIC):
        return not head
    return head[_ID_AT:] == _APPLICATION_ID.to_bytes(4, "big") or _is_store_by_its_log(path)


def _is_store_by_its_log(path: Path) -> bool:
    """Whether the database at *path* is a store, or empty, with what is in its log.

    Where a process was killed before SQLite wrote the log back, the ID is there alone.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(uri, timeout=BUSY_TIMEOUT, uri=True)) as db:
            return _is_ours_or_empty(db)
    except sqlite3.Error:
        return False


def _close_all_before_fork() -> None:
    for store in list(_STORES):
        store._drop_connection()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all_before_fork)


# -- SQL ------------------------------------------------------------------------


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All or nothing. IMMEDIATE: whoever reads first and writes then has no rival."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _value(db: sqlite3.Connection, key: str) -> object:
    row = db.execute("SELECT value FROM entry WHERE origin = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _leased(db: sqlite3.Connection, key: str, now: float) -> bool:
    row = db.execute("SELECT taken, until FROM leases WHERE origin = ?", (key,)).fetchone()
    return row is not None and lease_holds(row[0], row[1], now)


def _end(db: sqlite3.Connection, lease: Lease) -> bool:
    sql = "DELETE FROM leases WHERE origin = ? AND token = ?"
    return db.execute(sql, (key_of(lease.origin), lease.token)).rowcount > 0


def _forget_old(db: sqlite3.Connection, now: float, at_most: int) -> int:
    db.execute("DELETE FROM leases WHERE until <= ? OR taken > ?", (now, now + MAX_LEASE))
    sql = (
        "DELETE FROM entry WHERE rowid IN"
        " (SELECT rowid FROM entry WHERE seen < ? ORDER BY seen LIMIT ?)"
    )
    return db.execute(sql, (now - KEPT_FOR, at_most)).rowcount


def _is_ours_or_empty(db: sqlite3.Connection) -> bool:
    ours = _number(db, "PRAGMA application_id") == _APPLICATION_ID
    return ours or _number(db, "SELECT count(*) FROM sqlite_master") == 0


def _number(db: sqlite3.Connection, sql: str) -> int:
    return int(db.execute(sql).fetchone()[0])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _use_log(db: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, where that is not the case already.

    SQLite's own waiting for locks does not cover the switch, and processes that
    are started together switch together.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _migrate(db: sqlite3.Connection) -> None:
    with _transaction(db):
        # Somebody else may have done it by now.
        version = _number(db, "PRAGMA user_version")
        for script in MIGRATIONS[version:]:
            for statement in script:
                db.execute(statement)
        if version < len(MIGRATIONS):
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


class _MissingTable(sqlite3.DatabaseError):
    """A file of our version that lacks what every such file has."""


def _check_tables(db: sqlite3.Connection) -> None:
    for sql in _USED:
        try:
            db.execute(sql)
        except sqlite3.OperationalError as error:
            if _lacks_table(error):
                raise _MissingTable(str(error)) from None
            raise


def _lacks_table(error: sqlite3.Error) -> bool:
    """Truncated while it was open, or changed by a newer version of this package."""
    return isinstance(error, sqlite3.OperationalError) and "no such" in str(error)


def _is_damage(error: BaseException) -> bool:
    # Its subclasses are about other things, as is what SQLite says in other words.
    if type(error) is sqlite3.DatabaseError:
        return "malformed" in str(error) or "not a database" in str(error)
    return isinstance(error, _MissingTable)


# -- files ----------------------------------------------------------------------


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at *path* now."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a microsecond, in each operation)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _make_private(path: Path) -> None:
    """Make the file that only its owner may read, unless there is one.

    SQLite gives the files beside it the same permissions.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


@contextlib.contextmanager
def _directory_lock(directory: Path, *, exclusive: bool) -> Iterator[None]:
    """Nobody opens a file in *directory* while somebody renames one.

    The lock is the kernel's, on the directory itself: it leaves no file, and dies
    with its holder. Raises :exc:`OSError` when it is not to be had.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        _lock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> None:
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        except OSError:
            # No locks in this file system: as without them.
            return
        else:
            return
