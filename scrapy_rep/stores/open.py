"""From the value of ``REP_STORE`` to a store.

A store's module is imported when the store is opened, not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .base import Store

if TYPE_CHECKING:
    from scrapy import Spider

_SQLITE_URL = "sqlite:///"
_ACCEPTED = (
    "accepted: memory; sqlite (a file in the project's data directory); "
    "sqlite:///relative/path or sqlite:////absolute/path of a file"
)
# Within the data directory of a project.
_DIRECTORY = "rep"
_FILE = "robots.sqlite"


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Which store: one in memory, or one in an SQLite file.

    *path* of the file, from the working directory if relative; ``None`` for the
    one in the project's data directory.
    """

    in_memory: bool
    path: Path | None = None

    def file(self) -> Path | None:
        """Where the file is, absolute; ``None`` for a store in memory.

        Raises :exc:`OSError`, or what Scrapy raises for a broken project.
        """
        if self.in_memory:
            return None
        if self.path is not None:
            return self.path.absolute()
        from scrapy.utils.project import data_path

        return Path(data_path(_DIRECTORY)).absolute() / _FILE


def parse_spec(value: object) -> StoreSpec:
    """The store that *value*, of ``REP_STORE``, names.

    Raises :exc:`ValueError` that says what is accepted.

    >>> parse_spec("sqlite:////var/lib/crawl/robots.sqlite").path.as_posix()
    '/var/lib/crawl/robots.sqlite'
    """
    if value == "memory":
        return StoreSpec(in_memory=True)
    if value == "sqlite":
        return StoreSpec(in_memory=False)
    if not isinstance(value, str) or not value.startswith(_SQLITE_URL):
        raise ValueError(_ACCEPTED)
    path = value[len(_SQLITE_URL) :]
    # SQLite's own name for a database in memory is not a file, either.
    if not path or path.endswith(("/", "\\")) or path == ":memory:" or "\0" in path:
        raise ValueError(f"names no file; {_ACCEPTED}")
    return StoreSpec(in_memory=False, path=Path(path))


def open_store(spec: StoreSpec, max_origins: int, clock: Callable[[], float] = time.time) -> Store:
    """The store of *spec* itself, whose methods raise :exc:`~.base.StoreError`.

    One in memory keeps *max_origins*. *clock* gives seconds since the epoch.
    """
    path = spec.file()
    if path is None:
        from .memory import MemoryStore

        return MemoryStore(max_origins, clock)
    from .sqlite import SqliteStore

    return SqliteStore(path, clock)


def open_guarded(
    spec: StoreSpec,
    max_origins: int,
    clock: Callable[[], float] = time.time,
    spider: Spider | None = None,
) -> Store:
    """The store of *spec* for a crawl: it raises nothing, and is opened when first used.

    Parameters as those of :func:`open_store`; *spider* is for the log.
    """
    if spec.in_memory:
        return open_store(spec, max_origins, clock)
    from .guarded import GuardedStore

    return GuardedStore(lambda: open_store(spec, max_origins, clock), clock, spider)
