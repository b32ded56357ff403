"""What a second opinion costs a request, beyond what the parser that gives it takes for a check.

Crawls with and without REP_COMPARE_WITH alternate, each in a process of its own. The exit
status is 1 where a figure is above the limit.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser

from benchmarks._child import in_child
from benchmarks._tables import (
    ROUNDS,
    Table,
    alternating,
    arguments,
    figure,
    machine,
    publish,
)
from benchmarks._workload import workload
from benchmarks.crawl import (
    OURS,
    REQUESTS,
    EmptyMiddleware,
    answering,
    micros,
    our_middleware,
    run_crawl,
)
from scrapy_rep.cli.demo.server import LoopbackServers

#: µs per request.
_LIMIT = 30.0
#: Seconds for one crawl.
_PATIENCE = 120.0
_CRAWLS = 3
_RULES = (5, 500)
_AGENT = "ExampleBot"
_KINDS = {
    "allowed by both": 0.0,
    "refused by both": 1.0,
    # Protego does not resolve "/./" in a URL.
    "refused by ours alone": 1.0,
}
_COMPARED: dict[str, Any] = {
    **OURS,
    "REP_AGENT_TOKENS": _AGENT,
    "REP_COMPARE_WITH": "scrapy.robotstxt.ProtegoRobotParser",
}
_ALONE = {**OURS, "REP_AGENT_TOKENS": _AGENT}


class ComparedSpider(scrapy.Spider):
    """Asks for one page, and with its robots.txt known measures.

    *came* gets by kind of requests the µs per request of our middleware, of the same and Protego's
    own check after it, and of an empty one.
    """

    name = "compared"
    site: str
    rules: int
    came: dict[str, dict[str, float]]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The one request."""
        yield scrapy.Request(f"{self.site}/page")

    def parse(self, response: Response) -> None:
        """Measure."""
        file = workload(self.rules, mixed=False)
        protego = ProtegoRobotParser(file.body, self)

        ours = our_middleware(self)

        def then_check(request: scrapy.Request) -> None:
            # One after the other, as a second opinion has it: two loops would each find more
            # of what they need in the processor's caches.
            try:
                ours(request)
            finally:
                protego.allowed(request.url, _AGENT)

        for kind, refused in _KINDS.items():
            urls = file.urls(Random(kind), ROUNDS * REQUESTS, refused, site=self.site)
            if "alone" in kind:
                urls = {url.replace(self.site, f"{self.site}/."): False for url in urls}
            middlewares = {
                "ours": ours,
                "empty": EmptyMiddleware().process_request,
            }
            if not self.crawler.settings["REP_COMPARE_WITH"]:
                middlewares["then check"] = then_check
            self.came[kind] = micros(middlewares, list(urls), refused=round(REQUESTS * refused))
        assert self.crawler.stats is not None
        self.came["decisions"] = {
            key.rpartition("/")[2]: value
            for key, value in self.crawler.stats.get_stats().items()
            if key.startswith("robotstxt/compare/")
        }


def rows_of_file(site: str, rules: int) -> list[tuple[str, dict[str, float]]]:
    """The figures of each kind of requests, for a file of so many *rules*."""

    def measure(name: str, number: int) -> dict[str, dict[str, float]]:
        with tempfile.TemporaryDirectory() as folder:
            feed = {"REP_COMPARE_FEED": f"{folder}/differences.jsonl"}
            settings = {**_COMPARED, **feed} if name == "compared" else _ALONE
            job = {"site": site, "rules": rules}
            return in_child(run_crawl, ComparedSpider, settings, job, limit=_PATIENCE)

    came = alternating(("alone", "compared"), measure, _CRAWLS)
    for each in came["compared"]:
        _check_decisions(each["decisions"])
    rows = []
    for kind in _KINDS:
        # What else runs on the machine only adds: it would be in a difference of medians.
        measured = {
            "alone": [each[kind]["ours"] - each[kind]["empty"] for each in came["alone"]],
            "then check": [
                each[kind]["then check"] - each[kind]["empty"] for each in came["alone"]
            ],
            "compared": [each[kind]["ours"] - each[kind]["empty"] for each in came["compared"]],
        }
        figures = {name: min(values) for name, values in measured.items()}
        rows.append((kind, figures))
    return rows


def _check_decisions(decisions: dict[str, float]) -> None:
    """What was measured is what is said."""
    each = ROUNDS * REQUESTS
    # The page that the crawl began with is the one more.
    assert decisions == {"agree": 2 * each + 1, "looser": each}, decisions


def main() -> None:
    """Write the table."""
    options = arguments(__doc__).parse_args()
    rows, holds = [], True
    with LoopbackServers() as servers:
        for rules in _RULES:
            site = servers.serve(answering(workload(rules, mixed=False).body)).url
            for kind, found in rows_of_file(site, rules):
                beyond = found["compared"] - found["then check"]
                holds &= beyond <= _LIMIT
                cells = (found["alone"], found["then check"], found["compared"], beyond)
                rows.append((f"{rules:,} rules, {kind}", *map(figure, cells)))
    head = ("request", "alone", "and Protego's check", "second opinion", "beyond")
    title = "A second opinion: µs of CPU time per request"
    note = (
        f"The least of {_CRAWLS} crawls each, in alternating order; of each, the median of "
        f"{ROUNDS} alternating rounds of {REQUESTS:,} new requests. What an empty middleware takes "
        f"is taken off. In the second column, Protego is asked after the middleware; in the third, "
        f"by it. The difference is what a second opinion takes beyond Protego's own check; the "
        f"limit is {_LIMIT:g}. Each disagreement is written to a feed in a file."
    )
    publish(options.rst, Table(title, head, tuple(rows), (note, machine("Scrapy"))))
    sys.exit(not holds)


if __name__ == "__main__":
    main()
