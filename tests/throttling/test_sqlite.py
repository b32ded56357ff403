"""Turns in an SQLite file: which crawls are alive, and what another program may have written."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import pytest

from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.processes import this_process
from scrapy_rep.throttling import sqlite
from scrapy_rep.throttling.sqlite import HELD_FOR, SqliteTurns
from scrapy_rep.throttling.turns import KEPT, LOOK_AGAIN, Event

SITE = "site.example"
DELAY = 10.0
NOW = 1000.0

_T = TypeVar("_T")

# Takes a turn, and is killed.
HOLDER = f"""
import asyncio, sys
from pathlib import Path
from scrapy_rep.throttling.sqlite import SqliteTurns
turns = SqliteTurns(lambda: Path(sys.argv[1]), lambda: {NOW})
print(asyncio.run(turns.grant("{SITE}", {DELAY})), flush=True)
input()
"""


class Crawl:
    """One crawl of those that share a file, and a clock that the test sets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = NOW
        self.turns = SqliteTurns(lambda: path, lambda: self.now)

    def ask(self, after: float = 0.0, since: float = inf) -> float:
        self.now = NOW + after
        return do(self.turns.grant(SITE, DELAY, since))

    def values(self) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as db:
            return db.execute("SELECT site, value FROM turns").fetchall()

    def write(self, value: Any) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("UPDATE turns SET value = ?", (value,))


def do(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """What *coroutine* returns, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it suspends")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.sqlite"


@pytest.fixture
def one(path: Path) -> Crawl:
    return Crawl(path)


@pytest.fixture
def other(path: Path) -> Crawl:
    return Crawl(path)


def test_crawls_take_turns(one: Crawl, other: Crawl) -> None:
    assert one.ask() == 0
    assert other.ask(0.1) == pytest.approx(LOOK_AGAIN)
    assert (one.turns.workers, other.turns.workers) == (1, 2)
    one.now = NOW + 3
    do(one.turns.tell(Event.OVER, SITE, DELAY))
    assert other.ask(3) == pytest.approx(DELAY)
    assert other.ask(3 + DELAY) == 0


def test_a_turn_that_is_not_used_is_given_back(one: Crawl, other: Crawl) -> None:
    assert one.ask() == 0
    do(one.turns.tell(Event.UNUSED, SITE, DELAY))
    assert other.ask() == 0


def test_what_is_sent_without_a_turn_counts(one: Crawl, other: Crawl) -> None:
    do(one.turns.tell(Event.SENT, SITE, DELAY))
    assert other.ask(4) == pytest.approx(DELAY - 4)


def test_the_end_of_a_turn_may_be_told_late(one: Crawl, other: Crawl) -> None:
    assert one.ask() == 0
    one.now = NOW + 5
    do(one.turns.tell(Event.OVER, SITE, DELAY, ago=2.0))
    assert other.ask(5) == pytest.approx(DELAY - 2)


def test_whether_another_crawl_has_the_turn_is_known(one: Crawl, other: Crawl) -> None:
    one.ask()
    other.ask()
    assert (one.turns.is_held, other.turns.is_held) == (False, True)
    do(one.turns.tell(Event.OVER, SITE, DELAY))
    other.ask()
    assert not other.turns.is_held


def test_a_turn_is_held_for_as_long_as_somebody_says_so(one: Crawl, other: Crawl) -> None:
    assert one.ask() == 0
    one.now = NOW + HELD_FOR - 1
    do(one.turns.tell(Event.HELD, SITE, DELAY))
    assert other.ask(2 * HELD_FOR - 2) == pytest.approx(LOOK_AGAIN)
    # From now on it is nobody's: its request may have been sent until now.
    assert other.ask(2 * HELD_FOR) == pytest.approx(DELAY)
    assert other.ask(2 * HELD_FOR + DELAY) == 0


def test_the_turn_of_a_process_that_was_killed_is_free_at_once(one: Crawl) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, one.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "0.0\n"
        assert one.ask(0.1) == pytest.approx(LOOK_AGAIN)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    # Noticed a second later at most, and then there is the delay.
    assert one.ask(0.1 + LOOK_AGAIN) == pytest.approx(DELAY)
    assert one.ask(0.1 + LOOK_AGAIN + DELAY) == 0


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nothing",
        "[]",
        "17",
        "{}",
        b"\xff",
        '[1, 2, 3, 4, "", []]',
        '["1", 2, 3, 4, "", {}]',
        '[NaN, 2, 3, 4, "", {}]',
        '[Infinity, 2, 3, 4, "", {}]',
        '[1, 2, 3, 4, "", {"other": "soon"}]',
        "[" * 10**5,
    ],
)
def test_what_another_program_has_written_is_nothing(one: Crawl, value: Any) -> None:
    do(one.turns.tell(Event.SENT, SITE, DELAY))
    one.write(value)
    assert one.ask() == 0


def test_holders_that_are_no_processes_are_waited_for(one: Crawl) -> None:
    do(one.turns.tell(Event.SENT, SITE, DELAY))
    for holder, wait in (("x", LOOK_AGAIN), (f"x {this_process()}", LOOK_AGAIN)):
        one.write(f'[{NOW}, {NOW}, 0, 0, "{holder}", {{}}]')
        assert one.ask() == pytest.approx(wait)


def test_slow_sites_are_known_to_all_for_a_time(one: Crawl, other: Crawl) -> None:
    assert do(other.turns.slowed()) == {}
    do(one.turns.tell(Event.SLOW, SITE, 30.0))
    do(one.turns.tell(Event.SLOW, "other.example", 16.0))
    assert do(other.turns.slowed()) == {SITE: 30.0, "other.example": 16.0}
    do(other.turns.tell(Event.SLOW, "other.example", 0.0))
    assert do(one.turns.slowed()) == {SITE: 30.0}
    # Also to a crawl that has not heard of it yet.
    do(one.turns.tell(Event.OVER, SITE, DELAY))
    assert other.ask() == pytest.approx(30)
    other.now = NOW + 30 + KEPT
    assert do(other.turns.slowed()) == {}


def test_old_sites_are_forgotten(one: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    do(one.turns.tell(Event.SENT, SITE, DELAY))
    do(one.turns.close())
    assert one.ask() > 0
    do(one.turns.close())
    monkeypatch.setattr(sqlite, "_KEPT", -1.0)
    assert one.ask() == 0


def test_a_file_that_cannot_be_used_is_an_error_of_the_store(tmp_path: Path) -> None:
    turns = SqliteTurns(lambda: tmp_path)
    with pytest.raises(StoreError):
        do(turns.grant(SITE, DELAY))


def test_a_close_without_a_use_makes_no_file(one: Crawl) -> None:
    do(one.turns.start())
    do(one.turns.close())
    assert not one.path.exists()


def test_the_time_is_that_at_which_nobody_else_has_the_lock(path: Path) -> None:
    """Whoever had it before may have written a later time than that of the question."""
    assert Crawl(path).ask() == 0
    locked: list[bool] = []

    def clock() -> float:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                locked.append(False)
            except sqlite3.OperationalError:
                locked.append(True)
        return NOW

    do(SqliteTurns(lambda: path, clock).grant(SITE, DELAY))
    assert locked
    assert all(locked)
