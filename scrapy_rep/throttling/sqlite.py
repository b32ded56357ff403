"""Turns for all crawls of a machine that share an SQLite store: a table in its file.

Here may live: how :mod:`scrapy_rep.throttling.turns` is kept in a table, and which crawls are
alive. Nothing here suspends, as in :mod:`scrapy_rep.stores.sqlite`: a transaction takes some
50 µs, and a lock that another process holds is waited for as long as there.

Times are by the clock of the machine that counts from its start, which nobody sets.
"""
# What methods do stands in fleet.TurnStore.
# ruff: noqa: D102

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import astuple
from functools import cached_property
from math import inf
from pathlib import Path

from scrapy_rep.stores.processes import is_dead, this_process
from scrapy_rep.stores.sqlite_file import SqliteFile, transaction
from scrapy_rep.throttling.fleet import TurnStore
from scrapy_rep.throttling.turns import Event, Turns

#: Seconds for which a turn is held after its crawl was heard of last, where nobody can tell
#: whether its process is alive: it is in another container.
HELD_FOR = 30.0
# Seconds for which a site is remembered.
_KEPT = 24 * 3600.0


class SqliteTurns(TurnStore):
    """Turns in the file that *find_file* names."""

    name = "SQLite"
    workers = 1

    def __init__(
        self, find_file: Callable[[], Path | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find_file = find_file
        self._clock = clock
        self._crawl = f"{secrets.token_hex(4)} {this_process()}"

    async def grant(
        self, site: str, delay: float, since: float = inf, *, again: bool = False
    ) -> float:
        def ask(turns: Turns, now: float) -> tuple[float, Turns]:
            is_held = _is_held(turns, now)
            wait, asked = turns.asked(self._crawl, delay, since, now, is_held=is_held)
            self.is_held = asked.holder not in ("", self._crawl)
            self.workers = len({asked.holder, *asked.waiting, self._crawl} - {""})
            return wait, asked

        return self._change(site, ask)

    async def tell(self, event: Event, site: str, delay: float, ago: float = 0.0) -> None:
        def change(turns: Turns, now: float) -> tuple[float, Turns]:
            return 0.0, turns.after(event, self._crawl, delay, now - ago)

        self._change(site, change)

    async def slowed(self) -> dict[str, float]:
        sql = "SELECT site, value FROM turns WHERE slow > 0"
        rows = self._file.run(lambda db: db.execute(sql).fetchall())
        now = self._clock()
        delays = {str(site): _decode(value).slow_at(now) for site, value in rows}
        return {site: delay for site, delay in delays.items() if delay}

    async def close(self) -> None:
        if "_file" in vars(self):
            self._file.close()

    @cached_property
    def _file(self) -> SqliteFile:
        path = self._find_file()
        assert path is not None
        return SqliteFile(path, time.time, _prepare, sets_aside=True)

    def _change(self, site: str, change: Callable[[Turns, float], tuple[float, Turns]]) -> float:
        """The seconds that *change* returns, which makes what is known of *site* something else."""

        def run(db: sqlite3.Connection) -> float:
            with transaction(db):
                # Not before: another process may have held the lock.
                now = self._clock()
                row = db.execute("SELECT value FROM turns WHERE site = ?", (site,)).fetchone()
                seconds, turns = change(_decode(row[0]) if row else Turns(), now)
                values = (site, time.time(), turns.slow, json.dumps(astuple(turns)))
                db.execute("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?)", values)
                return seconds

        return self._file.run(run)


def _prepare(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE IF NOT EXISTS turns"
        " (site TEXT PRIMARY KEY NOT NULL, seen REAL NOT NULL, slow REAL NOT NULL,"
        " value TEXT NOT NULL) WITHOUT ROWID"
    )
    db.execute("DELETE FROM turns WHERE seen < ?", (time.time() - _KEPT,))


def _is_held(turns: Turns, now: float) -> bool:
    """Whether the crawl that has the turn is alive, as far as this process can tell."""
    process = turns.holder.partition(" ")[2]
    return 0 <= now - turns.last < HELD_FOR and not is_dead(process)


def _decode(value: object) -> Turns:
    """What was kept; nothing, where another program has written something else."""
    try:
        *times, holder, waiting = json.loads(str(value))
        last, before, slow, slow_since = map(_time, times)
        names = {str(crawl): _time(at) for crawl, at in waiting.items()}
        return Turns(last, before, slow, slow_since, str(holder), names)
    except (AttributeError, RecursionError, TypeError, ValueError):
        return Turns()


def _time(value: object) -> float:
    # Not true of NaN, either.
    if not isinstance(value, float | int) or not value < inf:
        raise ValueError
    return float(value)
