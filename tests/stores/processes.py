"""Processes that share a store, to be killed, starved and set against each other.

Run as ``python -m tests.stores.processes NAME ARGUMENTS``; prints JSON. POSIX only.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.stores import sqlite_file
from scrapy_rep.stores.base import Store, StoreError
from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_url import parse_url
from scrapy_rep.stores.sqlite import SqliteStore
from tests.stores.blocking import BlockingStore, LoopInThread
from tests.stores.examples import NOON, Clock, entry, is_whole, origin, run, run_all

LEASE = 30.0


def in_child(work: Callable[[], object]) -> int:
    """Do *work* in a process of its own; its id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            logging.exception("in a child")
        finally:
            os._exit(status)
    return child


# -- killed while it writes -------------------------------------------------------


def write_for_ever(path: Path, clock: Clock, begin: int, told: int) -> None:
    """Count up in the entry of ten origins, and say what has been kept."""
    store = SqliteStore(path, clock)
    count = begin
    while True:
        count += 1
        about = count % 10
        # When it is one's turn again, the last lease on it is over.
        clock.now += LEASE / 10
        lease = run(store.claim(origin(about), LEASE)).lease
        if lease is None:
            os.write(told, f"refused {about}\n".encode())
            continue
        if count % 7 == 0:
            # To be killed with leases in hand.
            continue
        body = b"# %d\n" % count + random.randbytes(random.choice([0, 100, 5000]))
        run(store.write(entry(about, clock(), body), lease))
        # Told in one piece, or not at all.
        os.write(told, f"kept {about} {count}\n".encode())


def kill(directory: str, rounds: str) -> dict[str, Any]:
    """Kill a writer again and again, and look at what it has left."""
    clock = Clock()
    kept: dict[int, int] = {}
    problems: list[str] = []
    commits = 0
    path = Path(directory, "0.sqlite")
    for number in range(int(rounds)):
        if number % 10 == 0:
            # Killed while it makes the file, too.
            path, kept = Path(directory, f"{number}.sqlite"), {}
        hear, tell = os.pipe()
        begin = (number + 1) * 1_000_000
        work = partial(write_for_ever, path, clock, begin, tell)
        child = in_child(work)
        os.close(tell)
        with os.fdopen(hear) as lines:
            # Killed when it has hardly begun, or in the middle.
            told = [lines.readline() for _ in range(number % 2 * 2)]
            time.sleep(random.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for line in [*told, *lines]:
                word, *numbers = line.split()
                if word == "kept":
                    about, count = map(int, numbers)
                    kept[about] = count
                    commits += 1
                else:
                    problems.append(f"round {number}: {line}")
        # More than the writer can have moved its own clock on, and a lease.
        clock.now += 10_000
        problems += [f"round {number}: {found}" for found in wrong_with(path, clock, kept)]
    return {"commits": commits, "problems": problems}


def wrong_with(path: Path, clock: Clock, kept: dict[int, int]) -> list[str]:
    """What is not as it must be after a kill."""
    problems = []
    store = SqliteStore(path, clock)
    for about in range(10):
        claim = run(store.claim(origin(about), LEASE))
        if claim.lease is None:
            problems.append(f"the lease on {about} is held")
        else:
            run(store.release(claim.lease))
        stored = claim.entry.stored if claim.entry else None
        count = int(stored.result.body.split()[1]) if stored else 0
        if count < kept.get(about, 0):
            problems.append(f"{kept[about]} of {about} is lost, there is {count}")
    run(store.close())
    if not is_whole(path):
        problems.append("the file is damaged")
    return problems


# -- several at once --------------------------------------------------------------


def be_patient() -> None:
    """Wait for who holds a lock on a busy machine, who is slow and does not hang."""
    sqlite_file.BUSY_TIMEOUT = 30.0


@contextlib.contextmanager
def opened(place: str) -> Iterator[Store]:
    """The store in the file or Redis of *place*."""
    if not place.startswith("redis:"):
        store = SqliteStore(place)
        yield store
        run(store.close())
        return
    with LoopInThread() as loop:
        blocking = BlockingStore(RedisStore(parse_url(place)), loop)
        yield blocking
        run(blocking.close())


def contend(
    directory: str, processes: str, claims: str, origins: str, place: str = ""
) -> dict[str, Any]:
    """Claim and write, each process for itself; nobody may ever hold what another holds.

    In the file *directory*/robots.sqlite, or in the Redis of *place*.
    """
    be_patient()
    path = Path(directory, "robots.sqlite")
    place = place or str(path)
    results = []
    for number in range(int(processes)):
        hear, tell = os.pipe()
        numbers = number, int(claims), int(origins), tell
        work = partial(claim_and_write, Path(directory), place, *numbers)
        results.append((in_child(work), hear))
        os.close(tell)
    total: Counter[str] = Counter()
    for child, hear in results:
        with os.fdopen(hear) as lines:
            total.update(json.loads(lines.read() or '{"crashed": 1}'))
        os.waitpid(child, 0)
    with opened(place) as store:
        total["known"] = len(run_all(store.origins()))
        for about in range(int(origins)):
            lease = run(store.claim(origin(about), LEASE)).lease
            total["leases left"] += lease is None
            if lease is not None:
                run(store.release(lease))
    if place == str(path):
        total["whole"] = is_whole(path)
    return dict(total)


def claim_and_write(
    directory: Path, place: str, seed: int, claims: int, origins: int, told: int
) -> None:
    with opened(place) as store:
        done = claim_again_and_again(store, directory, random.Random(seed), claims, origins)
    os.write(told, json.dumps(done).encode())


def claim_again_and_again(
    store: Store, directory: Path, chance: random.Random, claims: int, origins: int
) -> Counter[str]:
    done: Counter[str] = Counter()
    while done["claims"] < claims:
        done["claims"] += 1
        about = chance.randrange(origins)
        lease = run(store.claim(origin(about), LEASE)).lease
        if lease is None:
            done["refused"] += 1
            time.sleep(0.001)
            continue
        done["granted"] += 1
        marker = directory / f"held-{about}"
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            done["held by two"] += 1
        time.sleep(chance.uniform(0, 0.002))
        with contextlib.suppress(FileNotFoundError):
            marker.unlink()
        run(store.write(entry(about, time.time()), lease))
    return done


def race(directory: str, origins: str) -> list[int]:
    """Two processes claim the same origins, each at the same moment: the leases of each origin."""
    be_patient()
    path = Path(directory, "robots.sqlite")
    granted: Counter[int] = Counter()
    pipes = []
    end, all_done = os.pipe()
    start = time.time() + 0.3
    for _ in range(2):
        hear, tell = os.pipe()

        def claim_all(tell: int = tell) -> None:
            store = SqliteStore(path)
            mine = []
            for about in range(int(origins)):
                while time.time() < start + about * 0.002:
                    pass
                if run(store.claim(origin(about), LEASE)).lease is not None:
                    mine.append(about)
            os.write(tell, json.dumps(mine).encode() + b"\n")
            # The leases of a dead process are free.
            os.close(all_done)
            os.read(end, 1)

        pipes.append((in_child(claim_all), hear))
        os.close(tell)
    for _, hear in pipes:
        with os.fdopen(hear) as lines:
            granted.update(json.loads(lines.readline()))
    os.close(all_done)
    for child, _ in pipes:
        os.waitpid(child, 0)
    return [granted[about] for about in range(int(origins))]


def write_patiently(store: SqliteStore, known: CacheEntry) -> None:
    """Write, and again where others keep the file locked for longer than a crawl waits."""
    for _ in range(40):
        with contextlib.suppress(StoreError):
            return run(store.write(known))
    raise AssertionError("locked for ten seconds")


def set_aside(directory: str, processes: str) -> dict[str, Any]:
    """Several processes open a damaged file, at the same moment."""
    path = Path(directory, "robots.sqlite")
    start = time.time() + 0.2
    children = []
    for number in range(int(processes)):

        def use(number: int = number) -> None:
            logging.disable()
            while time.time() < start:
                pass
            store = SqliteStore(path, Clock())
            for about in range(20):
                write_patiently(store, entry(20 * number + about))
            run(store.close())

        children.append(in_child(use))
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return {
        "statuses": statuses,
        "known": len(run_all(SqliteStore(path, Clock()).origins())),
        "whole": is_whole(path),
        "files": sorted(found.name for found in Path(directory).iterdir()),
    }


# -- no room ----------------------------------------------------------------------


class Warnings(logging.Handler):
    """What has been warned about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def fill(path: str, limit: str) -> dict[str, Any]:
    """Write until there is no room, and go on; *limit* is that of a file, in bytes."""
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    warnings = Warnings()
    logging.getLogger().addHandler(warnings)
    clock = Clock(NOON)
    store = CircuitBreaker(lambda: SqliteStore(path, clock), clock)
    granted = kept = 0
    for number in range(500):
        lease = run(store.claim(origin(number), LEASE)).lease
        granted += lease is not None
        run(store.write(entry(number, clock(), random.randbytes(3000)), lease))
        kept += store.works
    run(store.close())
    if int(limit):
        # What measures coverage writes a larger one at the end.
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return {"granted": granted, "kept": kept, "works": store.works, "warnings": warnings.said}


if __name__ == "__main__":
    modes: dict[str, Callable[..., Any]] = {
        "kill": kill,
        "contend": contend,
        "race": race,
        "set-aside": set_aside,
        "fill": fill,
    }
    print(json.dumps(modes[sys.argv[1]](*sys.argv[2:])))  # noqa: T201
