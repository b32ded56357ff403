"""What the store in a file costs: each operation, and the first request of an origin.

Files of 640 bytes, 10,000 origins in the store, on the disk of the temporary directory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeVar

from benchmarks._tables import Table, arguments, figure, machine, publish, settle
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import Lease, Store
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SqliteStore

_T = TypeVar("_T")

_ORIGINS = 10_000
_SAMPLES = 2_000
_LEASE = 30.0
#: Milliseconds that the store may add to the first request of an origin.
_LIMIT_MS = 0.2
_BODY = b"User-agent: *\n" + b"".join(b"Disallow: /directory-%03d/\n" % n for n in range(25))


def _run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """What *coroutine* returns, which waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value
    raise AssertionError("it waits")


def example_origin(number: int) -> Origin:
    """An origin of the benchmarks of stores."""
    return Origin("https", f"host{number}.example", 443)


def example_facts(number: int) -> CacheEntry:
    """What is known of it: a file of 640 bytes, just fetched."""
    origin = example_origin(number)
    now = time.time()
    headers = (("etag", '"33a64df551425fcc55e4d42a148795d9f25f89d4"'),)
    result = FetchResult(origin.robots_url, 200, _BODY[:640], detail="status 200", headers=headers)
    return CacheEntry(origin, StoredResponse(result, now, now))


def _milliseconds(work: Callable[[int], object], numbers: Iterable[int]) -> list[float]:
    spent = []
    for number in numbers:
        started = time.perf_counter()
        work(number)
        spent.append(1000 * (time.perf_counter() - started))
    return spent


def operations(store: Store) -> dict[str, list[float]]:
    """Milliseconds of each operation, one figure for each time."""
    for number in range(_ORIGINS):
        _run(store.write(example_facts(number)))
    settle()
    step = _ORIGINS // _SAMPLES
    known, new = range(0, _ORIGINS, step), range(_ORIGINS, _ORIGINS + _SAMPLES)
    leases: dict[int, Lease | None] = {}

    def claim(number: int) -> None:
        leases[number] = _run(store.claim(example_origin(number), _LEASE)).lease

    entry = {number: example_facts(number) for number in new}
    return {
        "read, known": _milliseconds(
            lambda number: _run(store.read(example_origin(number))), known
        ),
        "read, new": _milliseconds(lambda number: _run(store.read(example_origin(number))), new),
        "claim, new": _milliseconds(claim, new),
        "write, new": _milliseconds(
            lambda number: _run(store.write(entry[number], leases[number])), new
        ),
    }


def first_request(spent: dict[str, list[float]]) -> dict[str, list[float]]:
    """What a request of an origin that is known, or new, waits for.

    Not for the write: whoever waits is answered before it.
    """
    found = zip(spent["read, new"], spent["claim, new"], strict=True)
    return spent | {
        "first request, known origin": spent["read, known"],
        "first request, new origin": [sum(both) for both in found],
    }


def main() -> None:
    """Write the table."""
    options = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore(Path(directory, "robots.sqlite"))
        in_file = first_request(operations(store))
        _run(store.close())
    in_memory = first_request(operations(MemoryStore(2 * _ORIGINS)))
    rows = [
        (
            name,
            figure(median(spent)),
            figure(quantiles(spent, n=100)[98]),
            figure(median(in_memory[name])),
        )
        for name, spent in in_file.items()
    ]
    head = ("what", "SQLite, median, ms", "99th percentile, ms", "memory, median, ms")
    note = f"The store may add {_LIMIT_MS} ms to a first request (median)."
    publish(
        options.rst,
        Table("What the store costs", head, tuple(rows), (machine("scrapy"), note)),
    )
    sys.exit(any(median(in_file[name]) > _LIMIT_MS for name in in_file if "first" in name))


if __name__ == "__main__":
    main()
