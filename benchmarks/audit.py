"""What the audit log costs: CPU time for each decision that is logged.

Requests for pages of 200 origins go through the middleware, with the log and without, in
alternating rounds. The policies are in memory, as for most requests of a crawl.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from scrapy import Request, Spider, signals
from scrapy.utils.test import get_crawler

from benchmarks._tables import Table, arguments, figure, machine, publish
from scrapy_rep import RepMiddleware, RobotsForbidden
from scrapy_rep.parsers.chain import ParserChain
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.dialects import RFC9309, Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings

_ORIGINS = 200
_PAGES = 50
_ROUNDS = 7
#: Microseconds that a logged decision may cost.
_LIMIT = 25.0
_BODY = b"User-agent: *\n" + b"".join(
    b"Disallow: /directory-%03d/pages-that-are-not-for-robots/\n" % n for n in range(69)
)


class Crawl:
    """A middleware that knows all origins; with an audit log at *path*, or without."""

    def __init__(self, path: Path | None) -> None:
        settings = {
            "ROBOTSTXT_OBEY": True,
            "DOWNLOADER_MIDDLEWARES": {
                "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None
            },
            "REP_STORE": "memory",
            "USER_AGENT": "ExampleBot/1.0",
            "REP_AUDIT": path and str(path),
        }
        crawler = get_crawler(Spider, settings)
        crawler.spider = Spider("benchmark")
        self._middleware = RepMiddleware.from_crawler(crawler)
        chain = ParserChain(crawler, RepSettings.read(crawler.settings))
        if path is not None:
            crawler.signals.send_catch_log(signals.spider_opened, spider=crawler.spider)
        for number in range(_ORIGINS):
            policy = _policy(number, chain)
            self._middleware._policies._memory.put(str(policy.origin), policy)  # noqa: SLF001
        self._requests = [
            Request(f"https://www.host{number}.example/{_path(page)}")
            for page in range(_PAGES)
            for number in range(_ORIGINS)
        ]

    def microseconds(self) -> float:
        """CPU time for each request, in microseconds."""
        started = time.process_time()
        for request in self._requests:
            with suppress(RobotsForbidden):
                self._middleware.process_request(request)
        return (time.process_time() - started) * 1e6 / len(self._requests)


def _path(page: int) -> str:
    # Every tenth page is refused.
    if page % 10 == 0:
        return f"directory-{page:03}/pages-that-are-not-for-robots/{page}.html"
    return f"articles/{page}/a-page-with-a-name.html"


def _policy(number: int, chain: ParserChain) -> Policy:
    origin = Origin.of(f"https://www.host{number}.example/")
    result = FetchResult(origin.robots_url, 200, _BODY, detail="status 200")
    now = time.time()
    stored = StoredResponse(result, now, now)
    rules = chain.read(origin, result)
    return Policy(
        origin=origin,
        access=Access.SUCCESSFUL,
        dialect=RFC9309,
        rules=rules,
        entry=CacheEntry(origin, stored),
        stored=stored,
        until=now + 86400,
        robots=rules.robots,
    )


def main() -> None:
    """Write the table; exit 1 if a decision costs too much."""
    options = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        without, with_log = Crawl(None), Crawl(Path(directory, "audit.jsonl"))
        rounds = [(without.microseconds(), with_log.microseconds()) for _ in range(_ROUNDS)]
        lines = Path(directory, "audit.jsonl").read_bytes()
    # The quickest round: other processes make all others longer, by what they do to caches.
    before, after = (min(each[i] for each in rounds) for i in (0, 1))
    cost = after - before
    size = len(lines) / lines.count(b"\n")
    table = Table(
        "CPU time of a request in the middleware, in microseconds",
        ("", "without a log", "with REP_AUDIT", "cost of the log"),
        (("a request", figure(before), figure(after), figure(cost)),),
        (
            f"{_ORIGINS} origins with 69 rules each, every tenth request is refused. A line has "
            f"{size:.0f} bytes and is written at once. The cost must not be above {_LIMIT:.0f} "
            f"microseconds.",
            machine("scrapy"),
        ),
    )
    publish(options.rst, table)
    sys.exit(cost > _LIMIT)


if __name__ == "__main__":
    main()
