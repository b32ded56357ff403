"""An SQLite file of any number of processes on one machine, which may be damaged.

Here may live: opening, versions, damage, locks and permissions of the file. Here may not
live: what is in its tables.

What is written is there after ``kill -9``. After a power cut the last writes may
be lost, but no others, and the file is whole (write-ahead log, synchronous=NORMAL).
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from scrapy_rep.rep.text import printable

from .base import StoreError

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
        "CREATE INDEX entry_seen ON entry (seen)",
        "CREATE TABLE leases (origin TEXT PRIMARY KEY NOT NULL, token TEXT NOT NULL,"
        " taken REAL NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    ),
)
# "REP" and a version that never changed: the file is ours.
_APPLICATION_ID = 0x52455001
# https://www.sqlite.org/fileformat2.html, "The Database Header": how every file begins,
# and where the ID stands.
_MAGIC = b"SQLite format 3\0"
_ID_AT = 68
# Bytes that the log keeps of the disk when it has been written back.
_LOG_SIZE = 4 * 1024 * 1024
# The file itself is renamed last: until then, everybody takes it for the one in use.
_SUFFIXES = ("-wal", "-shm", "")

# What SQLite says of a damaged file.
_DAMAGE = "not a database|malformed"
# What a person can do, by what SQLite and the system say.
_PERMISSIONS = "let this user write the file and its directory"
_ADVICE = {
    "locked|temporarily unavailable": (
        f"another process has locked it for more than {BUSY_TIMEOUT:g} s: "
        "end it if it hangs or is a shell left open in a transaction"
    ),
    "readonly": _PERMISSIONS,
    "full": "free some space on the disk, or raise the quota",
    "disk I/O": "look at the disk, its free space and quotas",
    # Where damaged files are not set aside.
    _DAMAGE: "the file is damaged; a crawl would begin a new one",
    # Also whatever the system says when a file is opened.
    "": f"{_PERMISSIONS}, or set REP_STORE to another file",
}

# A connection must not be carried over a fork, not even to be closed: SQLite would
# take the parent's locks for the child's own.
_FILES: weakref.WeakSet[SqliteFile] = weakref.WeakSet()


class SqliteFile:
    """The SQLite file at *path*, which is opened or made when it is first used.

    One that is damaged is renamed and a new one begun, if it *sets_aside* such files.
    *on_open* is called with each new connection. *clock* gives seconds since the epoch.
    """

    def __init__(
        self,
        path: str | Path,
        clock: Callable[[], float],
        on_open: Callable[[sqlite3.Connection], object],
        *,
        sets_aside: bool,
    ) -> None:
        # SQLite puts its other files beside the real one.
        self.path = Path(os.path.realpath(path))
        self._is_link = Path(path).is_symlink()
        self._clock = clock
        self._on_open = on_open
        self._sets_aside = sets_aside
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        #: That of the last file that was a store and not damaged.
        self._sound: tuple[int, int] | None = None
        _FILES.add(self)

    def run(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        """What *operation* returns, on a new file if this one is found damaged.

        Raises :exc:`~.base.StoreError`, and may be called again after that.
        """
        try:
            return self._attempt(operation)
        except (sqlite3.Error, OSError) as error:
            said = printable((isinstance(error, OSError) and error.strerror) or str(error))
            advice = next(advice for words, advice in _ADVICE.items() if re.search(words, said))
            raise StoreError(f"{self.path}: {said}: {advice}") from error

    def close(self) -> None:
        """Close the file, which writes the log back and removes it if nobody else has it."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    def _attempt(self, operation: Callable[[sqlite3.Connection], _T], number: int = 1) -> _T:
        try:
            # Not only once: where the file has been moved or deleted, what is written
            # to it now, nobody would see.
            if self._db is not None and _identity(self.path) != self._identity:
                self.close()
            return operation(self._db or self._open())
        except BaseException as error:
            try:
                if number == 3 or not self._recover(error, number):
                    raise
            finally:
                # It may be in any state. Not closed before a damaged file has been renamed:
                # closing writes to it.
                self.close()
        return self._attempt(operation, number + 1)

    def _recover(self, error: BaseException, number: int) -> bool:
        """Make another attempt after that of this *number* worthwhile, if that is possible."""
        lacks_table = isinstance(error, sqlite3.OperationalError) and "no such" in str(error)
        if lacks_table and number == 1:
            # Truncated while it was open, or changed by a newer version of this package.
            return True
        # Subclasses of DatabaseError are about other things, as is what SQLite says otherwise.
        is_damaged = type(error) is sqlite3.DatabaseError and re.search(_DAMAGE, str(error))
        if not lacks_table and not is_damaged:
            return False
        if not is_store(self.path):
            raise StoreError(not_a_store(self.path))
        if self._is_link:
            raise StoreError(
                f"{self.path} is damaged, and left alone, because a symbolic link leads to it"
            )
        if self._sets_aside:
            self._set_aside(error)
        return self._sets_aside

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _directory_lock(self.path.parent, exclusive=False):
            # Only its owner may read a new file. SQLite gives those beside it the same
            # permissions.
            with suppress(FileExistsError):
                self.path.touch(0o600, exist_ok=False)
            db = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None)
            self._db, self._identity = db, _identity(self.path)
            # Whoever has written an origin: no text stops whoever lists them.
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            self._prepare(db)
            self._on_open(db)
            self._sound = self._identity
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        if not _is_ours_or_empty(db):
            raise StoreError(not_a_store(self.path))
        version = _number(db, "PRAGMA user_version")
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self.path}: written by a newer scrapy-rep (version {version} of the file, "
                f"this one knows {len(MIGRATIONS)}), and left alone: install that here as "
                "well, or set REP_STORE to another file"
            )
        # SQLite's own waiting for locks does not cover the switch to the log, and
        # processes that are started together switch together.
        _patiently(lambda: db.execute("PRAGMA journal_mode = WAL"), sqlite3.OperationalError)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_LOG_SIZE}")
        if version < len(MIGRATIONS):
            with transaction(db):
                # Somebody else may have done it by now.
                version = _number(db, "PRAGMA user_version")
                for statement in itertools.chain.from_iterable(MIGRATIONS[version:]):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {max(version, len(MIGRATIONS))}")

    def _set_aside(self, error: BaseException) -> None:
        """Rename the file, with its log, unless somebody has put another in its place.

        Raises :exc:`OSError`.
        """
        if os.name == "nt":
            # Nobody can rename what is open.
            self.close()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        first = aside = Path(f"{self.path}.damaged-{stamp}")
        numbers = itertools.count(2)
        with _directory_lock(self.path.parent, exclusive=True):
            if _identity(self.path) != self._identity:
                return
            while any(Path(f"{aside}{suffix}").exists() for suffix in _SUFFIXES):
                aside = Path(f"{first}-{next(numbers)}")
            # Under its new name, SQLite does not touch it any more.
            for suffix in _SUFFIXES:
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        logger.warning(
            "%(path)s was damaged (%(error)s). It was renamed to %(aside)s, and a new file was"
            " created. Each robots.txt is fetched again. Delete the old file if you do not need it."
            " If this happens again, check the disk.",
            {"path": self.path, "error": printable(str(error)), "aside": aside.name},
        )


def not_a_store(path: Path) -> str:
    """What there is to say about a file at *path* that is left alone."""
    return (
        f"{path}: this is not a store of scrapy-rep, and left alone: set REP_STORE to another "
        "file, or move this one away"
    )


def is_store(path: Path) -> bool:
    """Whether the file at *path* is a store, by its first bytes was one, or can become one.

    It can where there is no file, or an empty one. Raises :exc:`OSError` for a file that cannot
    be read.
    """
    # A link may lead to a store, or to the place of a new one.
    path = Path(os.path.realpath(path))
    identity = _identity(path)
    # Not opened if this process uses it: to close it would end the locks of SQLite.
    in_use = [file._sound for file in _FILES if file._db]  # noqa: SLF001
    if identity is None or identity in in_use:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_ID_AT + 4)
    is_ours = head.startswith(_MAGIC) and head[_ID_AT:] == _APPLICATION_ID.to_bytes(4, "big")
    if is_ours or not head:
        return True
    # Where a process was killed before SQLite wrote the log back, the ID is there alone.
    uri = f"{path.as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, timeout=BUSY_TIMEOUT, uri=True)) as db:
            return _is_ours_or_empty(db)
    except sqlite3.Error:
        return False


def _close_all() -> None:
    for file in list(_FILES):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)


def transaction(db: sqlite3.Connection) -> sqlite3.Connection:
    """A context manager: all or nothing. Whoever reads first and writes then has no rival."""
    db.execute("BEGIN IMMEDIATE")
    return db


def _is_ours_or_empty(db: sqlite3.Connection) -> bool:
    # In one step: another process may be making it a store.
    empty = "NOT EXISTS (SELECT 1 FROM sqlite_master)"
    sql = f"SELECT application_id = {_APPLICATION_ID} OR {empty} FROM pragma_application_id"
    return bool(_number(db, sql))


def _number(db: sqlite3.Connection, sql: str) -> int:
    return int(db.execute(sql).fetchone()[0])


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at *path* now."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a microsecond, in each operation)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _directory_lock(directory: Path, *, exclusive: bool) -> Iterator[None]:
    """Nobody opens a file in *directory* while somebody renames one.

    The lock is the kernel's, on the directory itself: it leaves no file, and dies
    with its holder. Raises :exc:`OSError` when it is not to be had.
    """
    if fcntl is None:
        yield
        return
    kind = fcntl.LOCK_NB | (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            _patiently(lambda: fcntl.flock(handle, kind), BlockingIOError)
        except OSError as error:
            # Where the file system has no locks: as without them.
            if isinstance(error, BlockingIOError):
                raise
        yield
    finally:
        os.close(handle)


def _patiently(attempt: Callable[[], object], busy: type[Exception]) -> None:
    """Do *attempt*, again and again for :data:`BUSY_TIMEOUT` while it raises *busy*."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            attempt()
            return
        except busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
