"""Whether a slow robots.txt holds up anyone else: crawls of many hosts on loopback.

Each crawl without robots.txt, with Scrapy's own middleware and with ours, in a
process of its own; the hosts are in another one. What is compared with a crawl
without robots.txt alternates with it. The exit status is 1 if a limit does not hold.
Needs Linux.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from benchmarks._child import run_job
from benchmarks._hosts import (
    PAGE,
    ROBOTS,
    UNREACHABLE,
    Hosts,
    Reply,
    address,
    closed_port,
    hang,
)
from benchmarks._tables import (
    Table,
    alternating,
    arguments,
    compared,
    figure,
    machine,
    publish,
)

_OFF, _STOCK, _OURS = "ROBOTSTXT_OBEY = False", "Scrapy's own", "scrapy-rep"
_CRAWLS: dict[str, dict[str, Any]] = {
    _OFF: {"ROBOTSTXT_OBEY": False},
    _STOCK: {"ROBOTSTXT_OBEY": True},
    _OURS: {"ROBOTSTXT_OBEY": True, "ADDONS": {"scrapy_rep.Addon": 500}},
}
_LOOPS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "reactorless": {"TWISTED_REACTOR_ENABLED": False},
}
_TITLES = {
    "asyncio": "Broad crawls, on the asyncio reactor",
    "reactorless": "Broad crawls, without a reactor",
}
# The handlers that have no more connections than CONCURRENT_REQUESTS. Without a
# reactor, the first is the default.
_HANDLERS = {
    "aiohttp": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
    "httpx2": "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler",
}
# In every crawl; all else is Scrapy's default where a scenario does not say otherwise.
_QUIET = {"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
_TIMEOUT = 10
_CONCURRENCY = 16
_BUSY = {
    "CONCURRENT_REQUESTS": _CONCURRENCY,
    "DOWNLOAD_TIMEOUT": _TIMEOUT,
    "REP_FETCH_TIMEOUT": _TIMEOUT,
    "RETRY_ENABLED": False,
}
# Seconds for an answer: so many that a slow machine has time to spare.
_LATENCY = 0.1
#: Seconds that a slow robots.txt takes.
_SLOW = 2.0
#: Seconds in which no page comes that count as time without a page.
_SILENCE = 1.0
# When the crawls are stopped that are to be, in seconds: requests wait by then.
_STOP_AFTER = 3.0
_STOPPED_REQUESTS = 40
_KILLS = ("two SIGINT", "SIGKILL")
# Seconds that a stop may take, and those after which nobody waits any longer.
_STOP_LIMIT, _STOP_DEADLINE = 5.0, 30.0
# Seconds that a process may take beyond the deadline of its crawl.
_GRACE = 60.0
#: MB that the second half of a long crawl may take beyond what one without robots.txt takes.
_GROWTH = 10.0
# How many requests of a long crawl are under way; Scrapy's queue is slow with many hosts.
_WINDOW = 1_000

#: How robots.txt is answered by many origins, in parts of 100.
_MIXED = {
    "rules": 50,
    "404": 15,
    "503": 6,
    "refused": 5,
    "HTML": 5,
    "redirect": 5,
    "redirect to another host": 4,
    "slow": 3,
    "redirect loop": 2,
    "reset": 2,
    "cut body": 2,
    "no answer": 1,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is crawled, and the seconds that a crawl may take."""

    hosts: int = 200
    hanging: int = 20
    pages: int = 10
    queued: int = 5_000
    origins: int = 20_000
    deadline: float = 60.0
    long_deadline: float = 900.0


_QUICK = Sizes(hosts=70, pages=5, queued=500, origins=1_000, deadline=40.0, long_deadline=120.0)


# -- crawls ---------------------------------------------------------------------


class Event(NamedTuple):
    """What came of a request, by its number; CPU seconds are those of the process."""

    number: int
    outcome: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What a crawl asks for: URLs, and the numbers of those whose hosts are healthy."""

    urls: list[str]
    healthy: range | list[int]
    #: How many may be under way, 0 for any number.
    window: int = 0


@dataclass(frozen=True, slots=True)
class Crawled:
    """What came of a crawl. It is not *finished* if its deadline came first."""

    asked: Asked
    finished: bool = False
    events: tuple[Event, ...] = ()
    #: VmRSS in bytes, at equal intervals.
    memory: tuple[int, ...] = (0,)
    seconds: float = math.inf
    #: From a stop to the end of the process.
    seconds_to_close: float = math.inf
    stats: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    def fetched(self) -> list[Event]:
        """The healthy pages, in the order in which they came."""
        wanted = set(self.asked.healthy)
        return [e for e in self.events if e.outcome == "fetched" and e.number in wanted]


def run_crawl(
    asked: Asked,
    settings: Mapping[str, Any],
    deadline: float,
    *,
    enough: Iterable[int] = (),
    stop: str = "",
) -> Crawled:
    """Crawl, in a process of its own; :mod:`benchmarks._pages_crawl` says how."""
    job = {
        "settings": {**_QUIET, **settings},
        "urls": asked.urls,
        "window": asked.window,
        "enough": list(enough),
        "deadline": deadline,
        "stop": stop,
        "stop_after": _STOP_AFTER,
    }
    try:
        came = run_job("benchmarks._pages_crawl", job, deadline + _GRACE)
    except subprocess.SubprocessError as error:
        if stop != "SIGKILL":
            sys.stderr.write(f"{error}\n")
        return Crawled(asked)
    came["events"] = tuple(Event(*event) for event in came["events"])
    return Crawled(asked, **came)


@dataclass(frozen=True, slots=True)
class Bench:
    """How the scenarios are run."""

    loop: str
    sizes: Sizes
    rounds: int
    latency: float

    def crawl_in(
        self,
        directory: str,
        name: str,
        asked: Asked,
        settings: Mapping[str, Any],
        deadline: float = 0,
        **how: Any,
    ) -> Crawled:
        """One crawl, with its store in *directory*."""
        store = {"REP_STORE": f"sqlite:///{directory}/robots.sqlite"} if name == _OURS else {}
        all_settings = {**_LOOPS[self.loop], **_CRAWLS[name], **settings, **store}
        return run_crawl(asked, all_settings, deadline or self.sizes.deadline, **how)

    def crawls(
        self,
        asked: Asked,
        settings: Mapping[str, Any],
        names: Iterable[str] = _CRAWLS,
        *,
        deadline: float = 0,
        without: Asked | None = None,
    ) -> dict[str, list[Crawled]]:
        """Crawls by name: some that alternate, and one with Scrapy's own, which may be slow.

        Ours has to end by itself; the others when they have all healthy pages. The one
        *without* robots.txt may be asked for something else.
        """

        def measure(name: str, number: int) -> Crawled:
            those = without if without and name == _OFF else asked
            enough = () if name == _OURS else those.healthy
            with tempfile.TemporaryDirectory() as directory:
                return self.crawl_in(
                    directory, name, those, settings, deadline=deadline, enough=enough
                )

        crawls = alternating([name for name in names if name != _STOCK], measure, self.rounds)
        if _STOCK in names:
            crawls[_STOCK] = [measure(_STOCK, 0)]
        return crawls

    def various(self, robots: Mapping[str, str] | None = None, dead: Iterable[str] = ()) -> Various:
        """How hosts answer in this run."""
        return Various(self.latency, robots or {}, frozenset(dead))


# -- hosts ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Various:
    """Hosts, by their address: ways to answer robots.txt, where these are not rules,
    and those that are *dead*, and answer nothing."""

    latency: float
    robots: Mapping[str, str]
    dead: frozenset[str]

    def __call__(self, host: str, target: str) -> tuple[Reply, float]:
        """What *host* answers to a request for *target*, and the seconds before."""
        if host in self.dead:
            return hang, 0.0
        if target != "/robots.txt":
            return PAGE, self.latency
        kind = self.robots.get(host, "rules")
        return (ROBOTS["rules"], _SLOW) if kind == "slow" else (ROBOTS[kind], self.latency)


def breadth_first(hosts: Hosts, numbers: Iterable[int], pages: int) -> list[str]:
    """A page of each host, then the next page of each, and so on."""
    return [f"{hosts.url(host)}/page/{page}" for page in range(pages) for host in numbers]


# -- what is measured -----------------------------------------------------------


def last_page(crawl: Crawled) -> float:
    """Seconds until the last healthy page was there."""
    fetched = crawl.fetched()
    return fetched[-1].seconds if len(fetched) == len(crawl.asked.healthy) else math.inf


def total(crawl: Crawled) -> float:
    """Seconds until the crawl was over."""
    return crawl.seconds if crawl.finished else math.inf


def without_a_page(crawl: Crawled) -> float:
    """Seconds in which no healthy page came, while some were still missing."""
    times = [0.0, *(event.seconds for event in crawl.fetched())]
    if len(times) <= len(crawl.asked.healthy):
        times.append(crawl.seconds)
    gaps = [after - before for before, after in pairwise(times)]
    return sum(gap for gap in gaps if gap >= _SILENCE)


def unlike_the_rules(crawl: Crawled) -> int:
    """How many requests did not end once, and as they must: fetched if healthy, else refused."""
    healthy = set(crawl.asked.healthy)
    must = Counter(
        (number, "fetched" if number in healthy else "refused")
        for number in range(len(crawl.asked.urls))
    )
    came = Counter((event.number, event.outcome) for event in crawl.events)
    # That of a request that ended in another way is in both.
    return max((must - came).total(), (came - must).total())


def errors(crawl: Crawled) -> int:
    """How many errors were logged; also shows some of them."""
    sys.stderr.writelines(f"{line}\n" for line in crawl.errors[:10])
    return len(crawl.errors)


def throughput(crawl: Crawled, tenth: int, *, cpu: bool) -> float:
    """Healthy pages per second, or per second of CPU time, in a tenth of all of them."""
    fetched = crawl.fetched()
    times = [event.cpu_seconds if cpu else event.seconds for event in fetched]
    size = len(crawl.asked.healthy) // 10
    if len(fetched) < 10 * size:
        return math.nan
    # At the very end, only the slow hosts are left.
    part = times[tenth * size : (tenth + 1) * size][: size - size // 20]
    return (len(part) - 1) / (part[-1] - part[0])


def late_growth(crawl: Crawled) -> float:
    """How much memory the second half has taken, in MB."""
    return (crawl.memory[-1] - crawl.memory[len(crawl.memory) // 2]) / 1e6


def not_in_stats(crawl: Crawled) -> float:
    """By how much the stats differ from what came of the requests, and from each other."""
    stats = Counter(crawl.stats)
    outcomes = Counter(event.outcome for event in crawl.events)
    fetches = stats["robotstxt/request_count"] - stats["robotstxt/confirmed_count"]
    results = sum(n for key, n in stats.items() if key.startswith("robotstxt/access_count/"))
    return (
        abs(stats["scheduler/enqueued"] - stats["scheduler/dequeued"])
        + abs(stats["robotstxt/forbidden"] - outcomes["refused"])
        + abs(fetches - results)
        + abs(len(crawl.asked.urls) - outcomes.total())
    )


# -- rows -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table; without a *limit*, only for information."""

    what: str
    cells: Mapping[str, str]
    limit: str = ""
    holds: bool = True


def times_row(
    what: str,
    crawls: Mapping[str, list[Crawled]],
    measure: Callable[[Crawled], float],
    *,
    times: float = math.inf,
    seconds: float = math.inf,
) -> Row:
    """A time. Its limit is so many *times* that of the crawl without robots.txt, or *seconds*."""
    figures = {name: median(map(measure, of_name)) for name, of_name in crawls.items()}
    cells = {}
    for name, value in figures.items():
        if math.isinf(value):
            crawl = crawls[name][0]
            pages = f"{len(crawl.fetched()):,} of {len(crawl.asked.healthy):,} pages"
            cells[name] = f"more than {figure(crawl.seconds)}: {pages}"
        else:
            cells[name] = compared(value, figures[_OFF])
    holds = figures[_OURS] <= min(times * figures[_OFF], seconds)
    limit = f"{times:g}\N{MULTIPLICATION SIGN}" if math.isinf(seconds) else f"{seconds:g} s"
    return Row(what, cells, limit, holds)


def worst_row(
    what: str,
    crawls: Mapping[str, list[Crawled]],
    measure: Callable[[Crawled], float],
    names: Iterable[str] = (_OURS,),
) -> Row:
    """What must be 0 in all of our crawls: the most of it in any.

    More only where a crawl without robots.txt, among *names*, has as much.
    """
    worst = {name: max(map(measure, crawls[name])) for name in names}
    cells = {name: f"{value:.3g}" for name, value in worst.items()}
    limit = worst.get(_OFF, 0)
    return Row(what, cells, f"{limit:.3g}", worst[_OURS] <= limit)


def flaws_rows(what: str, crawls: Mapping[str, list[Crawled]]) -> Iterator[Row]:
    """What no crawl of ours may have."""
    yield worst_row(f"{what}: requests lost or judged wrongly", crawls, unlike_the_rules)
    yield worst_row(f"{what}: errors in the log", crawls, errors)


# -- scenarios ------------------------------------------------------------------


def some_hang(bench: Bench) -> Iterator[Row]:
    """Some hosts accept connections, and never answer a request for robots.txt."""
    yield from _some_hang(bench, _BUSY, _CRAWLS, "")


def on_handlers(bench: Bench) -> Iterator[Row]:
    """The same on the handlers whose connections are limited."""
    if bench.loop != "asyncio":
        # They are the same there, and one of them is the default.
        return
    for name, path in _HANDLERS.items():
        if find_spec(name) is None:
            yield Row(f"{name} is not installed", {})
            continue
        settings = {**_BUSY, "DOWNLOAD_HANDLERS": {"http": path, "https": path}}
        yield from _some_hang(bench, settings, (_OFF, _OURS), f", by {name}")


def _some_hang(
    bench: Bench, settings: Mapping[str, Any], names: Iterable[str], where: str
) -> Iterator[Row]:
    sizes = bench.sizes
    bad = {address(number * sizes.hosts // sizes.hanging) for number in range(sizes.hanging)}
    with Hosts(bench.various(dict.fromkeys(bad, "no answer"))) as hosts:
        urls = breadth_first(hosts, range(sizes.hosts), sizes.pages)
        healthy = [n for n in range(len(urls)) if address(n % sizes.hosts) not in bad]
        crawls = bench.crawls(Asked(urls, healthy), settings, names)
    what = f"{sizes.hosts} hosts, {sizes.pages} pages each, {sizes.hanging} hanging{where}"
    yield times_row(f"{what}: last healthy page, s", crawls, last_page, times=1.15)
    yield worst_row(f"{what}: s without a page", crawls, without_a_page, names)
    yield from flaws_rows(what, crawls)


def none_hangs(bench: Bench) -> Iterator[Row]:
    """All hosts answer."""
    sizes = bench.sizes
    with Hosts(bench.various()) as hosts:
        urls = breadth_first(hosts, range(sizes.hosts), sizes.pages)
        crawls = bench.crawls(Asked(urls, range(len(urls))), _BUSY)
    what = f"{sizes.hosts} hosts, {sizes.pages} pages each, none hanging"
    yield times_row(f"{what}: total, s", crawls, total, times=1.25)
    yield from flaws_rows(what, crawls)


def one_is_dead(bench: Bench) -> Iterator[Row]:
    """A host never answers, and all of its pages are asked for before any others.

    They hold up a crawl without robots.txt, too; so what ours is compared with is one
    that does not ask for them.
    """
    sizes = bench.sizes
    count = sizes.hosts - sizes.hanging
    with Hosts(bench.various(dead=[address(count)])) as hosts:
        queued = breadth_first(hosts, [count], sizes.queued)
        others = breadth_first(hosts, range(count), sizes.pages)
        asked = Asked(queued + others, range(len(queued), len(queued) + len(others)))
        alone = Asked(others, range(len(others)))
        crawls = bench.crawls(asked, _BUSY, without=alone)
    what = f"a dead host with {sizes.queued:,} pages, {count} healthy with {sizes.pages} each"
    yield times_row(f"{what}: last healthy page, s", crawls, last_page, times=1.2)
    yield from flaws_rows(what, crawls)


def all_defaults(bench: Bench) -> Iterator[Row]:
    """Eight hosts that hang are enough to stop a crawl with Scrapy's default settings."""
    bad, good, pages = 8, 50, 10
    with Hosts(bench.various({address(number): "no answer" for number in range(bad)})) as hosts:
        urls = breadth_first(hosts, range(bad + good), pages)
        healthy = [n for n in range(len(urls)) if n % (bad + good) >= bad]
        crawls = bench.crawls(Asked(urls, healthy), {})
    what = f"all defaults, {bad} hanging + {good} healthy, {len(urls)} pages"
    yield times_row(f"{what}: last healthy page, s", crawls, last_page, seconds=15)
    yield from flaws_rows(what, crawls)


def many_origins(bench: Bench) -> Iterator[Row]:
    """Very many origins, one page each, and all kinds of answers. Once: it takes long."""
    count = bench.sizes.origins
    kinds = Random(0).choices(list(_MIXED), list(_MIXED.values()), k=count)
    robots = {address(n): kind for n, kind in enumerate(kinds) if kind != "refused"}
    with Hosts(bench.various(robots)) as hosts, closed_port() as closed:
        ports = {"refused": closed.getsockname()[1]}
        urls = [
            f"http://{address(n)}:{ports.get(kind, hosts.port)}/page"
            for n, kind in enumerate(kinds)
        ]
        well = [n for n, kind in enumerate(kinds) if kind not in {"refused", *UNREACHABLE}]
        asked = Asked(urls, well, window=_WINDOW)
        settings = {**_BUSY, "CONCURRENT_REQUESTS": 2 * _CONCURRENCY}
        deadline = bench.sizes.long_deadline
        crawls = replace(bench, rounds=1).crawls(asked, settings, (_OFF, _OURS), deadline=deadline)
    what = f"{count:,} origins, mixed outcomes"
    yield from _throughput_rows(what, {name: crawl for name, (crawl,) in crawls.items()})
    growth = {name: late_growth(crawl) for name, (crawl,) in crawls.items()}
    cells = {name: f"{value:.1f}" for name, value in growth.items()}
    holds = growth[_OURS] <= max(growth[_OFF], 0) + _GROWTH
    yield Row(f"{what}: MB more in the second half", cells, f"{_GROWTH:g} beyond", holds)
    yield from flaws_rows(what, crawls)
    yield worst_row(f"{what}: requests that stats do not tell of", crawls, not_in_stats)


def _throughput_rows(what: str, crawls: Mapping[str, Crawled]) -> Iterator[Row]:
    for unit, cpu in (("s", False), ("s of CPU time", True)):
        rates = {
            name: (throughput(crawl, 0, cpu=cpu), throughput(crawl, 9, cpu=cpu))
            for name, crawl in crawls.items()
        }
        cells = {n: f"{figure(a)}, {figure(b)} ({b / a:.2f})" for n, (a, b) in rates.items()}
        row = Row(f"{what}: healthy pages per {unit}, first and last tenth", cells)
        kept = {name: last / first for name, (first, last) in rates.items()}
        # A crawl that grows slower without robots.txt does so with it, too.
        limit = 0.9 * min(kept[_OFF], 1.0)
        # CPU time does not tell of waiting, but is the same however busy the machine is.
        yield row if cpu else replace(row, limit=f"{limit:.2f}", holds=kept[_OURS] >= limit)


def some_stop(bench: Bench) -> Iterator[Row]:
    """Requests wait for a robots.txt that does not come, and somebody stops the crawl."""
    for stop, names in (("close_spider", (_STOCK, _OURS)), ("SIGINT", (_OURS,))):
        came = {name: stopped(bench, name, stop) for name in names}
        what = f"{stop} while {_STOPPED_REQUESTS} requests wait"
        seconds = {name: outcome.seconds_to_close for name, outcome in came.items()}
        cells = {
            name: f"more than {_STOP_DEADLINE:g}" if math.isinf(value) else f"{value:.1f}"
            for name, value in seconds.items()
        }
        holds = seconds[_OURS] <= _STOP_LIMIT
        yield Row(f"{what}: s to the end of the process", cells, f"{_STOP_LIMIT:g}", holds)
        yield from _after_restart(what, came, missing=0, again=0)
    for stop in _KILLS:
        came = {name: stopped(bench, name, stop) for name in (_OFF, _OURS)}
        what = f"{stop} while {_STOPPED_REQUESTS} requests wait"
        # As good as Scrapy itself: in flight are no more than CONCURRENT_REQUESTS.
        without = came[_OFF]
        yield from _after_restart(
            what,
            came,
            missing=max(_CONCURRENCY, without.missing),
            again=max(_CONCURRENCY, without.again),
        )


def _after_restart(
    what: str, came: Mapping[str, Stopped], *, missing: int, again: int
) -> Iterator[Row]:
    """What came of the requests; limits on those that are missing, and asked for again."""
    figures = (
        ("not fetched in the end", {n: c.missing for n, c in came.items()}, missing),
        ("asked for again", {n: c.again for n, c in came.items()}, again),
        ("asked for without a verdict", {_OURS: came[_OURS].unjudged}, 0),
    )
    for kind, values, limit in figures:
        cells = {name: str(value) for name, value in values.items()}
        yield Row(f"{what}: {kind}", cells, str(limit), values[_OURS] <= limit)


@dataclass(frozen=True, slots=True)
class Stopped:
    """What came of a crawl that was stopped, and of the one that goes on with its JOBDIR."""

    seconds_to_close: float
    #: Pages that the second one does not fetch: they are lost, or refused for an outage that
    #: is over.
    missing: int
    #: Requests of the second one for pages that it has asked for before.
    again: int
    #: Requests of the first one for pages, when no robots.txt had been answered.
    unjudged: int


def stopped(bench: Bench, name: str, stop: str) -> Stopped:
    """Crawl a host that hangs, stop, and go on when the host is back.

    A crawl that was not killed has to go on by what is in its ``JOBDIR`` alone; after
    one that was, even Scrapy itself needs the spider to ask again.
    """
    dead = bench.various(dead=[address(0)])
    with tempfile.TemporaryDirectory() as directory, Hosts(dead) as hosts:
        urls = breadth_first(hosts, [0], _STOPPED_REQUESTS)
        asked = Asked(urls, range(len(urls)))
        settings = {"JOBDIR": str(Path(directory, "job"))}
        deadline = _STOP_AFTER + _STOP_DEADLINE
        first = bench.crawl_in(directory, name, asked, settings, deadline=deadline, stop=stop)
        before = hosts.asked()
        hosts.behave(bench.various())
        rest = asked if stop in _KILLS else replace(asked, urls=[])
        second = bench.crawl_in(directory, name, rest, settings)
        after = hosts.asked()[len(before) :]
    pages = Counter(target for _, target in after if target != "/robots.txt")
    return Stopped(
        first.seconds_to_close if first.finished else math.inf,
        missing=len(urls) - len({event.number for event in second.fetched()}),
        again=pages.total() - len(pages),
        unjudged=sum(target != "/robots.txt" for _, target in before),
    )


_SCENARIOS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "some-hang": some_hang,
    "none-hangs": none_hangs,
    "one-is-dead": one_is_dead,
    "all-defaults": all_defaults,
    "some-stop": some_stop,
    "on-handlers": on_handlers,
    "many-origins": many_origins,
}


# -- the table ------------------------------------------------------------------


def table(loop: str, rows: Iterable[Row], notes: tuple[str, ...]) -> Table:
    """What was measured on a *loop*."""
    lines = []
    for row in rows:
        cells = (row.cells.get(name, "") for name in _CRAWLS)
        verdict = ("holds" if row.holds else "DOES NOT HOLD") if row.limit else ""
        lines.append((row.what, *cells, row.limit, verdict))
    head = ("crawl", *_CRAWLS, "limit", "")
    return Table(_TITLES[loop], head, tuple(lines), notes)


def about(bench: Bench, load: float) -> tuple[str, ...]:
    """What has to be known of the tables; *load* is that of the machine before."""
    return (
        f"Times count from the start of the spider. They are medians of {bench.rounds} rounds, "
        f"in which crawls without robots.txt and with ours alternate; Scrapy's own crawls once. "
        f"All are given up after {bench.sizes.deadline:g} s, many origins after "
        f"{bench.sizes.long_deadline:g} s. Answers take {bench.latency:g} s. Unless all "
        f"is default, CONCURRENT_REQUESTS is {_CONCURRENCY} ({2 * _CONCURRENCY} for many origins), "
        f"and DOWNLOAD_TIMEOUT and REP_FETCH_TIMEOUT are {_TIMEOUT} s. Gaps of {_SILENCE:g} s and "
        f"more between two pages count as time without a page. The dead host's pages are not "
        f"asked for where ROBOTSTXT_OBEY = False: they would hold up that crawl, too. "
        f"The load average of the machine was {load:.1f} before: above 1, its times tell little.",
        machine("Scrapy", "Twisted"),
    )


def main() -> None:
    """Write the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=_SCENARIOS, action="append", help="this scenario")
    parser.add_argument("--loop", choices=_LOOPS, action="append", help="on this loop")
    parser.add_argument("--rounds", type=int, default=3, help="of crawls (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="smaller crawls, one round")
    parser.add_argument(
        "--latency", type=float, default=_LATENCY, help="seconds for an answer (%(default)s)"
    )
    options = parser.parse_args()
    sizes, rounds = (_QUICK, 1) if options.quick else (Sizes(), options.rounds)
    tables: list[Table] = []
    load, failed = os.getloadavg()[0], False
    for loop in options.loop or _LOOPS:
        bench = Bench(loop, sizes, rounds, options.latency)
        rows: list[Row] = []
        for name in options.only or _SCENARIOS:
            for row in _SCENARIOS[name](bench):
                # It takes long until there is a table.
                sys.stderr.write(f"{loop}: {row}\n")
                rows.append(row)
        failed |= not all(row.holds for row in rows)
        tables.append(table(loop, rows, () if tables else about(bench, load)))
    publish(options.rst, *tables)
    sys.exit(failed)


if __name__ == "__main__":
    main()
