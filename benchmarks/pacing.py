"""What heeding Crawl-delay costs: a crawl of a site that asks for none, and turns at one that does.

Crawls of a site on loopback that differ in ``REP_CRAWL_DELAY`` and
``REP_REQUEST_RATE`` alone; and turns without a crawl.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from math import inf
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._child import in_child
from benchmarks._tables import (
    ROUNDS,
    Table,
    alternating,
    arguments,
    compared,
    figure,
    machine,
    publish,
    timed,
)
from benchmarks._workload import workload
from benchmarks.crawl import PageSpider, answering, run_crawl
from scrapy_rep.cli.servers import LoopbackServers
from scrapy_rep.throttling.memory import MemoryBackend
from scrapy_rep.throttling.sqlite import SqliteTurns
from scrapy_rep.throttling.turns import Event

_PAGES = 2_000
_RULES = 100
#: Seconds for one crawl.
_LIMIT = 120.0
#: How many turns are taken at a time, and where.
_TURNS = 2_000
_SITE = "site.example"

_OBEYING = {"ADDONS": {"scrapy_rep.Addon": 500}, "REP_STORE": "memory"}
_OFF = "off"
_CRAWLS: dict[str, dict[str, Any]] = {
    _OFF: {**_OBEYING, "REP_CRAWL_DELAY": False, "REP_REQUEST_RATE": False},
    "on (the default)": _OBEYING,
    "on, and REP_VISIT_TIME, REP_PURPOSES": {
        **_OBEYING,
        "REP_VISIT_TIME": "wait",
        "REP_PURPOSES": ["search"],
    },
}


def pacing_table(rounds: int) -> Table:
    """Measure crawls."""
    file = workload(_RULES, mixed=True)
    with LoopbackServers() as servers:
        site = servers.serve(answering(file.body)).url

        def measure(name: str, number: int) -> float:
            urls = list(file.urls(Random(number), _PAGES, refused=0, site=site))
            came = in_child(run_crawl, PageSpider, _CRAWLS[name], {"urls": urls}, limit=_LIMIT)
            assert came["pages"] == _PAGES
            return float(came["seconds"]) / _PAGES * 1e6

        figures = alternating(_CRAWLS, measure, rounds)
    rows = tuple(
        (name, *(compared(kind(values), kind(figures[_OFF])) for kind in (median, min, max)))
        for name, values in figures.items()
    )
    head = ("Crawl-delay and Request-rate", "µs per page: median", "least", "most")
    title = f"CPU time of a crawl of {_PAGES:,} pages of a site that asks for no delay"
    note = (
        f"Of {rounds} crawls each, in alternating rounds. The robots.txt has {_RULES:,} rules and "
        f"no other records; all the CPU time of the process counts."
    )
    return Table(title, head, rows, (note, machine("Scrapy", "Twisted")))


def turns_table(rounds: int) -> Table:
    """Measure turns: each is granted at once, and over."""

    def measure(name: str, number: int) -> float:
        with TemporaryDirectory() as directory:
            now = iter(range(1000, 10**9, 100))
            path = Path(directory, "robots.sqlite")
            take = _MAKE[name](path, lambda: float(next(now)))
            return timed(lambda: [take() for _ in range(_TURNS)]).seconds / _TURNS * 1e6

    figures = alternating(_MAKE, measure, rounds)
    rows = tuple(
        (name, *(figure(kind(values)) for kind in (median, min, max)))
        for name, values in figures.items()
    )
    note = f"Of {rounds} times {_TURNS:,} turns each: asked for, granted, over."
    head = ("REP_STORE", "µs per turn: median", "least", "most")
    title = "CPU time of the store for a request to a site that asks for a delay"
    return Table(title, head, rows, (note,))


def _memory(path: Path, clock: Callable[[], float]) -> Callable[[], None]:
    backend = MemoryBackend(clock, OrderedDict())

    def take() -> None:
        granted: list[float] = []
        backend.ask(_SITE, 1.0, inf, again=False, answer=granted.append)
        assert granted == [0]
        backend.tell(Event.OVER, _SITE, 1.0)

    return take


def _sqlite(path: Path, clock: Callable[[], float]) -> Callable[[], None]:
    turns = SqliteTurns(lambda: path, clock)

    def take() -> None:
        assert _result(turns.grant(_SITE, 1.0)) == 0
        _result(turns.tell(Event.OVER, _SITE, 1.0))

    return take


def _result(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What *coroutine* returns, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError


_MAKE = {"memory": _memory, "sqlite": _sqlite}


def main() -> None:
    """Write the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of crawls (%(default)s)")
    options = parser.parse_args()
    publish(options.rst, pacing_table(options.rounds), turns_table(options.rounds))


if __name__ == "__main__":
    main()
