"""What a fleet costs and saves: workers in processes of their own, and one Redis for what
robots.txt files say. The queue is scrapy-redis', in another Redis."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks._fleet import Fleet, fleet, seconds_of_children
from benchmarks._tables import Table, alternating, arguments, figure, machine, publish
from benchmarks.store import example_facts, example_origin
from scrapy_rep.stores.base import Store
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_url import parse_url
from tests.stores.redis_server import RedisServer

_WORKERS = 4
_PAGES = 5
# The machine has fewer processors than a fleet: what is slow is not Redis.
_PATIENT = "?socket_timeout=5"
_CROWD: dict[str, Any] = {"CONCURRENT_REQUESTS": 32}
_KILLS = 20
_LEASE_OF_KILLS = 8.0
# Seconds for an answer, so that workers are killed that hold leases.
_SLOWLY = 0.75
# Seconds after which Redis is stopped, and for which.
_AFTER = 5.0
_STOPPED = 20.0
# Origins that ask for a Crawl-delay, the seconds, and what a clock may be off.
_SLOW = 20
_DELAY = 0.5
_TOLERANCE = 0.02
_KEPT = 20_000
_SAMPLES = 2000

# A fleet to compute the needs of, and what is assumed about it.
_MANY_WORKERS = 1_000
_MANY_ORIGINS = 100_000_000
_PAGES_A_SECOND = 20


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one run of a fleet."""

    fetches: int
    pages: int
    twice: int
    refused: int
    seconds: float
    cpu: float
    #: The longest time in which no site was asked for anything, in seconds, while Redis was
    #: gone, or had just come back.
    stall: float
    #: Calls of scripts in the Redis of the store, and the microseconds of each.
    calls: int = 0
    micros: float = 0.0


def _came(
    running: Fleet,
    cpu: float = 0.0,
    store: RedisServer | None = None,
    gone: tuple[float, float] = (0.0, 0.0),
) -> Came:
    sites, pages = running.sites, running.sites.pages()
    stats: dict[str, Any] = {}
    if store is not None:
        with store.client() as client:
            stats = dict(client.info("commandstats")).get("cmdstat_evalsha", {})
    return Came(
        fetches=sites.fetches().total(),
        pages=len(pages),
        twice=sum(times - 1 for times in pages.values()),
        refused=sum("/private/" in page for page in pages),
        seconds=sites.seconds(),
        cpu=cpu,
        stall=sites.stall(*gone),
        # Redis is told a script only when it says that it does not know it.
        calls=stats.get("calls", 0) - stats.get("failed_calls", 0),
        micros=stats.get("usec_per_call", 0.0),
    )


@contextmanager
def _patient_fleet(origins: int, **how: Any) -> Iterator[Fleet]:
    """A fleet, started as *how* says, whose store in a Redis of its own may be slow."""
    with (
        RedisServer() as redis,
        fleet(
            f"{redis.url}{_PATIENT}", workers=_WORKERS, origins=origins, pages=_PAGES, **how
        ) as running,
    ):
        yield running


def crawl(kind: str, origins: int) -> Came:
    """A fleet with a store of this *kind*, undisturbed."""
    with RedisServer() as redis:
        store = f"{redis.url}{_PATIENT}" if kind == "Redis" else "memory"
        before = seconds_of_children()
        with fleet(store, workers=_WORKERS, origins=origins, pages=_PAGES, **_CROWD) as running:
            running.finish()
            return _came(running, seconds_of_children() - before, redis)


def _calls(pages: int) -> int:
    """Operations of a lone worker that fetches so many pages of each of 50 origins.

    Without those by which it is counted as a worker, which come by time.
    """
    settings = {**_CROWD, "REP_PACING": "local"}
    with (
        RedisServer() as redis,
        fleet(f"{redis.url}{_PATIENT}", workers=1, origins=50, pages=pages, **settings) as running,
    ):
        running.finish()
        return _came(running, store=redis).calls


def killed(origins: int) -> tuple[Came, float]:
    """A fleet of which a worker is killed each second or so, and another one started.

    Also the longest that one of them has waited for a robots.txt, in seconds.
    """
    settings = {
        **_CROWD,
        "REP_FETCH_TIMEOUT": _LEASE_OF_KILLS / 2,
        # What waits goes with its worker.
        "REP_MAX_WAITING": 50,
        "DOWNLOADER_MIDDLEWARES": json.dumps({"benchmarks._waits.Waits": 99}),
    }
    with _patient_fleet(origins, pause=_SLOWLY, **settings) as running:
        kills = 0

        def kill_one() -> None:
            nonlocal kills
            busy = [worker for worker in running.workers if worker.poll() is None]
            # Not before the first has begun: starting takes seconds.
            if kills < _KILLS and running.missing() and running.sites.asked and busy:
                random.choice(busy).kill()
                running.start_worker()
                kills += 1

        running.finish(kill_one)
        assert kills == _KILLS, f"only {kills} kills: the crawl was too short"
        return _came(running), running.longest_wait()


def stopped(origins: int) -> Came:
    """A fleet whose Redis stops, is killed, and starts again, empty."""
    with (
        RedisServer() as redis,
        fleet(
            redis.url,
            workers=_WORKERS,
            origins=origins,
            pages=_PAGES,
            pause=0.25,
            CONCURRENT_REQUESTS=max(1, origins // 250),
        ) as running,
    ):
        steps: list[tuple[float, Callable[[], None]]] = [
            (_AFTER, lambda: redis.signal(signal.SIGSTOP)),
            (_AFTER + _STOPPED, redis.kill),
            (_AFTER + _STOPPED + 1, redis.start),
        ]
        while not running.sites.asked:
            time.sleep(0.1)
        begun = time.monotonic()

        def step() -> None:
            while steps and time.monotonic() - begun > steps[0][0]:
                steps.pop(0)[1]()

        running.finish(step)
        assert not steps, "the crawl was too short"
        return _came(running, gone=(begun + _AFTER, begun + _AFTER + _STOPPED + 10))


def paced(origins: int) -> tuple[Came, list[float]]:
    """A fleet some of whose sites ask for a Crawl-delay, and the gaps that these see."""
    with _patient_fleet(origins, slow=_SLOW, delay=_DELAY, **_CROWD) as running:
        running.finish()
        return _came(running), running.sites.gaps(running.sites.urls[:_SLOW])


# -- one worker -------------------------------------------------------------------


async def _first_requests(store: Store) -> list[float]:
    """Milliseconds that a request waits for an origin which the store knows."""
    spent = []
    for number in range(_SAMPLES):
        started = time.perf_counter()
        assert await store.read(example_origin(number)) is not None
        spent.append(1000 * (time.perf_counter() - started))
    return spent


async def _fill(store: Store, number: int) -> None:
    for start in range(0, number, 100):
        entry = map(example_facts, range(start, start + 100))
        await asyncio.gather(*(store.write(known) for known in entry))


async def _measure_store(redis: RedisServer) -> tuple[float, float, float]:
    """Bytes of each origin in Redis, and medians of a first request there and in memory."""
    local = MemoryStore(_SAMPLES)
    await _fill(local, _SAMPLES)
    store = RedisStore(parse_url(redis.url + _PATIENT))
    with redis.client() as client:
        await store.read(example_origin(0))
        before = client.info("memory")["used_memory"]
        await _fill(store, _KEPT)
        size = (client.info("memory")["used_memory"] - before) / _KEPT
    spent = await _first_requests(store)
    await store.close()
    return size, median(spent), median(await _first_requests(local))


# -- tables -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure, what it is to be, and whether it is."""

    what: str
    figure: float
    wanted: str = ""
    holds: bool = True

    def row(self) -> tuple[str, str, str]:
        """As a row of the table."""
        is_count = isinstance(self.figure, int)
        return self.what, f"{self.figure:,}" if is_count else figure(self.figure), self.wanted


def _exactly(what: str, found: int, wanted: int) -> Measured:
    return Measured(what, found, f"{wanted:,}", found == wanted)


def _at_most(what: str, found: float, limit: float) -> Measured:
    return Measured(what, found, f"<= {limit:,}", found <= limit)


def _undisturbed(ours: list[Came], theirs: list[Came], origins: int) -> list[Measured]:
    """What came of fleets with Redis, beside fleets with the memory store."""
    ratio = median(run.seconds for run in theirs) / median(run.seconds for run in ours)
    cpu = median(run.cpu for run in theirs) / median(run.cpu for run in ours)
    name = "pages a second, times those with the memory store"
    return [
        _exactly("robots.txt fetches", max(run.fetches for run in ours), origins),
        Measured("the same with the memory store", max(run.fetches for run in theirs)),
        _exactly("pages fetched", min(run.pages for run in ours), origins * _PAGES),
        _exactly("pages fetched again", max(run.twice for run in ours), 0),
        _exactly("pages fetched although refused", max(run.refused for run in ours), 0),
        Measured(name, ratio, ">= 0.95", ratio >= 0.95),
        Measured("the same by CPU time of all workers", cpu),
    ]


def _paced(origins: int) -> list[Measured]:
    """What came of a fleet that has to wait for its turns."""
    came, gaps = paced(origins)
    what = f"Crawl-delay {_DELAY:g} s on {_SLOW} of the origins"
    least = min(gaps)
    return [
        _exactly(f"{what}: pages fetched", came.pages, origins * _PAGES),
        _exactly("pages fetched again", came.twice, 0),
        Measured(
            "least gap between two requests to one of them, at the server, s",
            least,
            f">= {_DELAY:g}",
            least >= _DELAY - _TOLERANCE,
        ),
        Measured("mean gap, s", sum(gaps) / len(gaps)),
    ]


def _disturbed(origins: int) -> list[Measured]:
    """What came of fleets that lose their workers, or their Redis."""
    (kill, wait), stop = killed(origins), stopped(origins)
    pages = origins * _PAGES
    return [
        _exactly(f"{_KILLS} kills: pages fetched", kill.pages, pages),
        _exactly("pages fetched although refused", kill.refused, 0),
        Measured("robots.txt fetches", kill.fetches, f"{origins:,}, and those cut short"),
        _at_most("longest wait for a robots.txt, s", wait, _LEASE_OF_KILLS + _SLOWLY),
        _exactly(f"{_STOPPED:g} s without Redis: pages fetched", stop.pages, pages),
        _exactly("pages fetched again", stop.twice, 0),
        _exactly("pages fetched although refused", stop.refused, 0),
        _at_most("robots.txt fetches", stop.fetches, origins * (_WORKERS + 1)),
        _at_most("longest time without a request meanwhile, s", stop.stall, 1.0),
    ]


def main() -> None:
    """Write the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--origins", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="without kills and stops")
    options = parser.parse_args()
    origins = options.origins
    runs = alternating(
        ["Redis", "memory"], lambda kind, _: crawl(kind, origins), rounds=options.rounds
    )
    calls = median(run.calls for run in runs["Redis"]) / (origins * _PAGES)
    micros = float(median(run.micros for run in runs["Redis"]))
    further = (_calls(10) - _calls(2)) / (50 * 8)
    with RedisServer() as redis:
        size, first, local = asyncio.run(_measure_store(redis))
    found = [
        *_undisturbed(runs["Redis"], runs["memory"], origins),
        Measured("operations of the store in Redis, for each page", calls),
        _at_most("the same for a page of an origin that its worker knows", further, 0.0),
        Measured("microseconds of each, in Redis", micros),
        Measured("bytes of an origin in Redis", size),
        Measured("first request of a known origin, ms", first),
        Measured("the same with the memory store, ms", local),
        _at_most("the difference, ms", first - local, 1.0),
        *_paced(origins),
        *([] if options.quick else _disturbed(origins)),
    ]
    notes = (
        machine("scrapy", "redis", "scrapy-redis"),
        f"{_WORKERS} workers, {origins:,} origins with {_PAGES} pages each, files of 640 bytes. "
        f"Medians of {options.rounds} rounds; of what must be exact, the worst.",
    )
    rows = tuple(one.row() for one in found)
    publish(
        options.rst,
        Table("A fleet", ("what", "measured", "wanted"), rows, notes),
        _needs(size, calls, micros),
    )
    sys.exit(not all(one.holds for one in found))


def _needs(size: float, calls: float, micros: float) -> Table:
    """What a large fleet needs, by these figures."""
    a_second = _MANY_WORKERS * _PAGES_A_SECOND
    # Each worker reads an origin once, takes the lease if it is first, and writes:
    # with no two pages of an origin at the same worker, three for each page.
    most = max(calls, 3.0)
    operations = a_second * most
    rows = (
        (
            "bytes in Redis",
            f"{_MANY_ORIGINS:,} * {size:,.0f}",
            f"{_MANY_ORIGINS * size / 1e9:,.0f} GB",
        ),
        ("pages a second", f"{_MANY_WORKERS:,} * {_PAGES_A_SECOND}", f"{a_second:,}"),
        (
            "operations a second, as measured",
            f"{a_second:,} * {calls:.2f}",
            f"{a_second * calls:,.0f}",
        ),
        (
            "the same, one page of each origin",
            f"{a_second:,} * {most:.0f}",
            f"{operations:,.0f}",
        ),
        (
            "of one core of Redis, at most",
            f"{operations:,.0f} * {micros:.0f} µs",
            f"{operations * micros / 1e4:,.0f} %",
        ),
        (
            "connections",
            f"{_MANY_WORKERS:,} * 3 to 17",
            f"{3 * _MANY_WORKERS:,} to {17 * _MANY_WORKERS:,}",
        ),
    )
    head = ("what", "computed as", "is")
    title = f"{_MANY_WORKERS:,} workers and {_MANY_ORIGINS:,} origins"
    note = (
        f"Computed from the table above, for workers that fetch {_PAGES_A_SECOND} pages a second "
        "each, if all origins are seen within 60 days."
    )
    return Table(title, head, rows, (note,))


if __name__ == "__main__":
    main()
