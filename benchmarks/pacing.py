"""What heeding Crawl-delay costs a crawl of a site that asks for none.

Crawls of a site on loopback that differ in ``REP_CRAWL_DELAY`` and
``REP_REQUEST_RATE`` alone.
"""

from __future__ import annotations

from random import Random
from statistics import median
from typing import Any

from benchmarks._child import in_child
from benchmarks._tables import (
    ROUNDS,
    Table,
    alternating,
    arguments,
    compared,
    machine,
    publish,
)
from benchmarks._workload import workload
from benchmarks.crawl import PageSpider, answering, run_crawl
from scrapy_rep.cli.demo.server import LoopbackServers

_PAGES = 2_000
_RULES = 100
#: Seconds for one crawl.
_LIMIT = 120.0

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


def main() -> None:
    """Write the table."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of crawls (%(default)s)")
    options = parser.parse_args()
    publish(options.rst, pacing_table(options.rounds))


if __name__ == "__main__":
    main()
