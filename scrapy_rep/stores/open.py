"""From the value of ``REP_STORE`` to a store.

A store's module is imported when the store is opened, not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_rep.exceptions import ConfigurationError

from .base import CrawlStore, Store
from .circuit_breaker import RETRY_AFTER, CircuitBreaker

if TYPE_CHECKING:
    from scrapy import Spider

    from .redis_url import RedisUrl

_SQLITE_URL = "sqlite:///"
_ACCEPTED = (
    "accepted: memory; sqlite (a file in the project's data directory); "
    "sqlite:///relative/path or sqlite:////absolute/path of a file; "
    "redis://host:port/db, rediss://…, unix:///path, redis+sentinel://host,host/service/db, "
    "redis+cluster://host,host"
)


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Which store: one in memory, one in an SQLite file, or one in Redis.

    *path* of the file, from the working directory if relative; ``None`` for the
    one in the project's data directory, if there is no *redis*.
    """

    in_memory: bool
    path: Path | None = None
    redis: RedisUrl | None = None

    def file(self) -> Path | None:
        """Where the file is, absolute; ``None`` for a store that is not in one.

        Raises :exc:`OSError`, or what Scrapy raises for a broken project.
        """
        if self.in_memory or self.redis is not None:
            return None
        if self.path is not None:
            return self.path.absolute()
        from scrapy.utils.project import data_path

        return Path(data_path("rep")).absolute() / "robots.sqlite"


def parse_spec(value: object) -> StoreSpec:
    """The store that *value*, of ``REP_STORE``, names.

    Raises :exc:`ValueError` that says what is accepted.

    >>> parse_spec("sqlite:////var/lib/crawl/robots.sqlite").path.as_posix()
    '/var/lib/crawl/robots.sqlite'
    """
    if value in ("memory", "sqlite"):
        return StoreSpec(in_memory=value == "memory")
    if isinstance(value, str) and value.startswith(("redis", "unix://")):
        try:
            from .redis_url import parse_url

            return StoreSpec(in_memory=False, redis=parse_url(value))
        except ImportError:
            raise ValueError("the package redis is missing: pip install redis") from None
        except ValueError as error:
            raise ValueError(f"{error}; {_ACCEPTED}") from None
    if not isinstance(value, str) or not value.startswith(_SQLITE_URL):
        raise ValueError(_ACCEPTED)
    path = value[len(_SQLITE_URL) :]
    # SQLite's own name for a database in memory is not a file, either.
    if path.endswith(("/", "\\")) or path in ("", ":memory:") or "\0" in path:
        raise ValueError(f"is not the path of a file; {_ACCEPTED}")
    return StoreSpec(in_memory=False, path=Path(path))


def open_store(
    spec: StoreSpec,
    max_origins: int,
    clock: Callable[[], float] = time.time,
    *,
    sets_aside: bool = True,
) -> Store:
    """The store of *spec* itself, whose methods raise :exc:`~.base.StoreError`.

    One in memory keeps *max_origins*. *clock* gives seconds since the epoch. In place of a
    damaged file, one that *sets_aside* such files begins a new one.
    """
    if spec.redis is not None:
        from .redis import RedisStore

        return RedisStore(spec.redis, clock)
    path = spec.file()
    if path is None:
        from .memory import MemoryStore

        return MemoryStore(max_origins, clock)
    from .sqlite import SqliteStore

    return SqliteStore(path, clock, sets_aside=sets_aside)


def open_store_with_breaker(
    spec: StoreSpec,
    max_origins: int,
    clock: Callable[[], float] = time.time,
    spider: Spider | None = None,
) -> CrawlStore:
    """The store of *spec* for a crawl: it raises nothing, and is opened when first used.

    Parameters as those of :func:`open_store`; *spider* is for the log. Raises
    :exc:`~scrapy_rep.exceptions.ConfigurationError` where there is something else in the
    place of the file.
    """
    if spec.in_memory:
        return open_store(spec, max_origins, clock)
    _check_file(spec)
    # What is in Redis sees to its connection by itself.
    retry_after = RETRY_AFTER if spec.redis is None else 0.0
    return CircuitBreaker(lambda: open_store(spec, max_origins, clock), clock, spider, retry_after)


def _check_file(spec: StoreSpec) -> None:
    """Refuse to start where the file of *spec* is somebody else's."""
    from .sqlite_file import is_store, not_a_store

    try:
        path = spec.file()
        if path is None or is_store(path):
            return
    except Exception:
        # It goes wrong again when the store is opened, and is reported then.
        return
    raise ConfigurationError(not_a_store(path))
