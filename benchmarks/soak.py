"""A crawl of origins whose robots.txt change all the time, while their servers come and go.

All ways to answer a robots.txt, and all latencies from 1 ms to never, at random; the
exit status is 1 if a request gets stuck, an error is logged, memory grows, or a page is
fetched that no robots.txt has allowed. Needs Linux.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks._child import run_job
from benchmarks._hosts import (
    PAGE,
    ROBOTS,
    RULED,
    UNREACHABLE,
    Hosts,
    Reply,
    address,
    hang,
)
from benchmarks._tables import Table, arguments, machine, publish
from scrapy_rep.cli.demo.server import http_response

_SERVERS = 4
# Seconds from one restart to the next, and those in between in which there is no server.
_BETWEEN_RESTARTS = (5.0, 15.0)
_DOWN = (0.2, 3.0)
# How many pages may be under way.
_WINDOW = 500
# Seconds that requests may take when no more are made.
_GRACE = 180.0
#: Times the memory of the first third, after a warm-up, that the last third may take.
_GROWTH = 1.1
# This share of the time is for warming up.
_WARM_UP = 6

#: Everything is short, so that much happens.
_SETTINGS = {
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "ADDONS": {"scrapy_rep.Addon": 500},
    "CONCURRENT_REQUESTS": 64,
    "DOWNLOAD_TIMEOUT": 3,
    "RETRY_TIMES": 1,
    "RETRY_GIVE_UP_LOG_LEVEL": "DEBUG",
    "REP_FETCH_TIMEOUT": 2,
    "REP_MIN_AGE": 2,
    "REP_MAX_AGE": 10,
    "REP_RETRY_DELAY": 1,
    "REP_RETRY_MAX_DELAY": 5,
    "REP_MAX_WAIT": 10,
}

# How a page is answered, unless it is there.
_PAGES: tuple[Reply, ...] = (
    *(PAGE for _ in range(40)),
    http_response(503),
    http_response(404),
    UNREACHABLE["reset"],
    hang,
)
# Half a megabyte for each would be most of what the crawl does.
_RARE = ("huge", "endless")


@dataclass
class Changing:
    """Hosts that answer in another way each time.

    One in twenty never has a robots.txt to go by, and one in ten has rules
    whenever it has anything; see :func:`kinds_of`.
    """

    random: Random
    kinds: dict[str, Sequence[str]] = field(default_factory=dict)

    def __call__(self, host: str, target: str) -> tuple[Reply, float]:
        """What *host* answers now, and the seconds before."""
        if target != "/robots.txt":
            return self.random.choice(_PAGES), 10 ** self.random.uniform(-3, -1)
        kinds = self.kinds.get(host, list(ROBOTS))
        weights = [0.1 if kind in _RARE else 1 for kind in kinds]
        (kind,) = self.random.choices(kinds, weights)
        return ROBOTS[kind], 10 ** self.random.uniform(-3, 0.5)


def never_answers(number: int) -> bool:
    """Whether all that host *number* ever answers lets nobody in."""
    return number % 20 == 0


def has_rules(number: int) -> bool:
    """Whether host *number* has the rules, whenever it can be reached."""
    return number % 20 in (1, 2)


def kinds_of(origins: int) -> dict[str, Sequence[str]]:
    """Ways to answer, by host, where these are not all."""
    kinds: dict[str, Sequence[str]] = {}
    for number in range(origins):
        if never_answers(number):
            kinds[address(number)] = list(UNREACHABLE)
        elif has_rules(number):
            kinds[address(number)] = [*RULED, *UNREACHABLE]
    return kinds


def soak(options: Namespace) -> tuple[dict[str, Any], int, list[str]]:
    """The crawl: what came of it, how many restarts there were, and all origins."""
    kinds = kinds_of(options.origins)
    random = Random(options.seed)
    with ExitStack() as stack, tempfile.TemporaryDirectory() as directory:
        servers = [
            stack.enter_context(Hosts(Changing(Random(options.seed + number), kinds)))
            for number in range(_SERVERS)
        ]
        origins = [servers[n % _SERVERS].url(n) for n in range(options.origins)]
        settings = {
            **_SETTINGS,
            "REP_STORE": f"sqlite:///{directory}/robots.sqlite",
            "REP_UNREACHABLE": options.unreachable,
            "TWISTED_REACTOR_ENABLED": not options.reactorless,
        }
        job = {
            "settings": settings,
            "places": [f"{origin}/{kind}" for origin in origins for kind in ("page", "private")],
            "seconds": options.minutes * 60,
            "window": _WINDOW,
            "deadline": options.minutes * 60 + _GRACE,
            "seed": options.seed,
        }
        threads = stack.enter_context(ThreadPoolExecutor(1))
        crawl = threads.submit(
            run_job, "benchmarks._soak_crawl", job, limit=job["deadline"] + _GRACE
        )
        restarts = restart(servers, random, crawl)
        return crawl.result(), restarts, origins


def restart(servers: Sequence[Hosts], random: Random, crawl: Future[Any]) -> int:
    """Restart servers for as long as the crawl takes; returns how often."""
    count = 0
    while True:
        until = time.monotonic() + random.uniform(*_BETWEEN_RESTARTS)
        while time.monotonic() < until:
            if crawl.done():
                return count
            time.sleep(0.2)
        server = random.choice(servers)
        if random.random() < 0.5:
            server.kill()
        else:
            server.stop()
        time.sleep(random.uniform(*_DOWN))
        server.start()
        count += 1


def rows(came: dict[str, Any], restarts: int, origins: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """What is measured, its value, and a limit or ``None``."""
    totals: Counter[str] = Counter()
    for counts in came["outcomes"].values():
        totals.update(counts)
    fetched = {place: counts.get("fetched", 0) for place, counts in came["outcomes"].items()}
    settled = totals.total()
    yield "requests", came["asked"], None
    for outcome, number in sorted(totals.items()):
        yield outcome, number, None
    yield "without an outcome", came["asked"] - settled, 0
    yield "with more than one", came["twice"], 0
    yield "longest time to an outcome, s", round(came["longest"], 1), None
    yield "crawl did not end by itself", int(not came["finished"]), 0
    silent = [o for n, o in enumerate(origins) if never_answers(n)]
    ruled = [o for n, o in enumerate(origins) if has_rules(n)]
    both = ("page", "private")
    never = sum(fetched[f"{origin}/{kind}"] for origin in silent for kind in both)
    private = sum(fetched[f"{origin}/private"] for origin in ruled)
    yield "pages fetched where no robots.txt could ever be", never, 0
    yield "pages fetched that all rules disallow", private, 0
    yield "pages fetched that these rules allow", sum(fetched[f"{o}/page"] for o in ruled), None
    yield "errors in the log", len(came["errors"]), 0
    warm = came["memory"][len(came["memory"]) // _WARM_UP :]
    third = len(warm) // 3
    first, last = statistics.mean(warm[:third]) / 1e6, statistics.mean(warm[-third:]) / 1e6
    yield "memory in the first third, MB", round(first, 1), None
    yield "memory in the last third, MB", round(last, 1), round(_GROWTH * first, 1)
    stats = Counter(came["stats"])
    yield "robots.txt fetches", stats["robotstxt/request_count"], None
    for key, number in sorted(stats.items()):
        if key.startswith("robotstxt/access_count/"):
            yield key.removeprefix("robotstxt/access_count/"), number, None
    yield "confirmed by a 304", stats["robotstxt/confirmed_count"], None
    yield "restarts of a server", restarts, None


def main() -> None:
    """Write the table."""
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--origins", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reactorless", action="store_true", help="without a reactor")
    parser.add_argument(
        "--unreachable", choices=("disallow", "defer"), default="disallow", help="REP_UNREACHABLE"
    )
    options = parser.parse_args()
    came, restarts, origins = soak(options)
    measured = list(rows(came, restarts, origins))
    lines, failed = [], False
    for what, value, limit in measured:
        holds = limit is None or value <= limit
        failed |= not holds
        verdict = "" if limit is None else "holds" if holds else "DOES NOT HOLD"
        lines.append((what, f"{value:,}", "" if limit is None else f"{limit:,}", verdict))
    sys.stderr.writelines(f"{line}\n" for line in came["errors"][:20])
    loop = "without a reactor" if options.reactorless else "on the asyncio reactor"
    title = f"{options.minutes:g} minutes of {options.origins:,} changing origins, {loop}"
    head = ("", "figure", "limit", "")
    publish(options.rst, Table(title, head, tuple(lines), (machine("Scrapy", "Twisted"),)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
