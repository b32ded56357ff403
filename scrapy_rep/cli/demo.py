"""``scrapy robots demo``: a crawl of servers that it starts itself, checked by what they saw."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urljoin

import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from twisted.python.failure import Failure

import scrapy_rep
from scrapy_rep.cli.crawling import run_spider
from scrapy_rep.cli.demo_sites import (
    AGENT_TOKEN,
    DemoSite,
    Outcome,
    Served,
    because,
    demo_sites,
    serving,
)
from scrapy_rep.cli.errors import FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Column, Cut, Printer, Table
from scrapy_rep.exceptions import RobotsForbidden
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

_COLUMNS = (
    Column("site"),
    Column("origin"),
    Column("robots.txt"),
    Column("meaning"),
    Column("fetched", right=True),
    Column("refused", right=True),
    Column("decided one refusal", cut=Cut.END),
)
# Characters of a reason that is not a rule.
_MOST_DETAIL = 26
# Differences that are listed; if everything is wrong, the first ones tell enough.
_MOST_DIFFERENCES = 50
# Progress lines, at most.
_MOST_LINES = 40
_NO_LOG: dict[str, Any] = {"LOG_ENABLED": False}
_SETTINGS: dict[str, Any] = {
    # The whole installation of scrapy-rep.
    "ADDONS": {"scrapy_rep.Addon": 500},
    # Each run must see what the sites answer.
    "REP_STORE": "memory",
    "USER_AGENT": f"{AGENT_TOKEN}/1.0 (+https://example.com/bot)",
    # One site never answers.
    "REP_FETCH_TIMEOUT": 3,
    # Pages that wait for the robots.txt that never comes must not delay other pages, not even
    # if all sites share one host.
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
    # Scrapy starts as many tasks for each response, and there are no items.
    "CONCURRENT_ITEMS": 1,
    # The default queue of Scrapy looks at every host for each request.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    # A page is requested at most once, and the demo must notice a second time.
    "RETRY_ENABLED": False,
    # A proxy of the environment does not know our loopback addresses.
    "HTTPPROXY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}

_DESCRIPTION = """\
Starts HTTP servers on this machine whose robots.txt files are good, odd or
broken, crawls them, and compares what the spider and the servers saw with what
is expected. Needs no network. Settings of the project and -s have no effect.

Exit codes: 0 all as expected, 1 differences (listed), 2 error"""
_EXAMPLES = """\
  scrapy robots demo
  scrapy robots demo --report demo.html
  scrapy robots demo -L DEBUG 2> demo.log"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        metavar="FILE",
        nargs="?",
        const="robots-demo.html",
        help="write the report of the crawl, an HTML page (%(const)s by default); needs Jinja2",
    )
    parser.add_argument("-s", "--set", action="append", default=[], help=argparse.SUPPRESS)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    if options.set:
        raise CommandError("the demo has its own settings and does not accept -s")
    changes = _NO_LOG
    if not options.nolog and (options.loglevel or options.logfile):
        changes = {"LOG_LEVEL": options.loglevel or "DEBUG", "LOG_FILE": options.logfile}
    if options.report is None:
        return run_demo(demo_sites(), sys.stdout, changes)
    report = Path(options.report)
    report.unlink(missing_ok=True)
    # In the setting, % has a meaning.
    changes = changes | {"REP_REPORT": options.report.replace("%", "%%")}
    exit_code = run_demo(demo_sites(), sys.stdout, changes)
    if not report.is_file():
        raise CommandError(f"cannot write {report}")
    Printer(sys.stdout).line(f"Report: {printable(str(report))}")
    return exit_code


def run_demo(sites: Sequence[DemoSite], out: TextIO, settings: dict[str, Any] = _NO_LOG) -> int:
    """Crawl *sites*, and print a table of them to *out*; *settings* are added to the demo's.

    Returns the exit code: 0 if every outcome was the expected one, else 1.
    """
    printer = Printer(out)
    printer.line(f"scrapy-rep {scrapy_rep.__version__} on Scrapy {scrapy.__version__}")
    with serving(sites) as served:
        crawl = DemoCrawl(served, printer)
        count = f"{len(served)} origins, {len(crawl.pages)} pages"
        printer.line(f"{count} on this machine, to crawl as {AGENT_TOKEN}")
        printer.line()
        seconds = crawl.run(settings)
    printer.line()
    table = Table(printer, _COLUMNS)
    table.write([_row(site, crawl.responses_of(site)) for site in served])
    printer.line()
    fetched, refused = sum(site.fetched for site in served), sum(len(s.refused) for s in served)
    printer.line(f"{count}: {fetched} fetched, {refused} refused in {seconds:.1f} s")
    return _conclude(crawl.differences(), printer)


# -- crawling ------------------------------------------------------------------------


class DemoCrawl:
    """A crawl of *sites*: what the spider sees, and the lines that are printed meanwhile."""

    def __init__(self, sites: list[Served], printer: Printer) -> None:
        self.sites = sites
        self.pages = {site.url(path): (site, path) for site in sites for path in site.site.pages}
        self._printer = printer
        # By URL, of the robots.txt files.
        self._responses: dict[str, Response] = {}
        # Why Scrapy ended the crawl: "finished", if all went well.
        self._finish_reason = "not started"
        self._done = self._finished = 0
        self._every = -(-len(sites) // _MOST_LINES)
        self._started = time.monotonic()

    def run(self, settings: dict[str, Any]) -> float:
        """Run it to its end, and return the seconds. Raises what keeps Scrapy from starting."""
        failure = run_spider(Settings(_SETTINGS | settings), _DemoSpider, crawl=self)
        if failure is not None:
            raise failure
        return time.monotonic() - self._started

    def connect(self, crawler: Crawler) -> None:
        """Connect signals, before the middleware does that unpacks bodies and changes headers."""
        crawler.signals.connect(self._downloaded, signals.response_downloaded)
        crawler.signals.connect(self._closed, signals.spider_closed)

    def requests(self) -> Iterator[Request]:
        """One for each page, none of which the duplicate filter may drop."""
        for url in self.pages:
            yield Request(
                url,
                callback=self._fetched,
                errback=self._failed,
                cb_kwargs={"asked": url},
                dont_filter=True,
                meta={"handle_httpstatus_all": True, "dont_redirect": True},
            )

    def _fetched(self, response: Response, asked: str) -> None:
        self._note(asked, response.status)

    def _failed(self, failure: Failure) -> None:
        error = failure.value
        outcome: Outcome = printable(f"{type(error).__name__}: {error}")
        if isinstance(error, RobotsForbidden):
            outcome = error.verdict
        self._note(failure.request.cb_kwargs["asked"], outcome)  # type: ignore[attr-defined]

    def _downloaded(self, response: Response, request: Request) -> None:
        if "asked" not in request.cb_kwargs:
            self._responses[request.url] = response.copy()

    def _closed(self, reason: str) -> None:
        self._finish_reason = reason

    def _note(self, url: str, outcome: Outcome) -> None:
        """Write a line when the site of *url* is complete."""
        site, path = self.pages[url]
        site.outcomes[path] = outcome
        self._done += 1
        is_complete = len(site.outcomes) == len(site.site.pages)
        self._finished += is_complete
        seconds = f"{time.monotonic() - self._started:5.1f} s"
        if is_complete and self._finished % self._every == 0:
            self._printer.line(
                f"{seconds}  {self._finished:2}/{len(self.sites)}  {site.server.url:<24}  "
                f"{site.fetched} fetched, {len(site.refused)} refused  {site.site.name}"
            )
        self._printer.status(f"{seconds}  {self._done}/{len(self.pages)} pages")

    def responses_of(self, site: Served) -> list[Response]:
        """The responses to the robots.txt of *site*, redirects first."""
        found: list[Response] = []
        url = site.server.url + ROBOTS_TXT
        while (response := self._responses.get(url)) and response not in found:
            found.append(response)
            url = urljoin(url, _header(response, "Location"))
        return found

    def differences(self) -> list[str]:
        """What is not as expected, a line each."""
        early = f"the crawl ended early: {self._finish_reason}"
        lines = [] if self._finish_reason == "finished" else [early]
        for each in self.sites:
            lines += [f"{each.site.name}: {line}" for line in each.differences()]
        return lines


class _DemoSpider(Spider):
    name = "robots-demo"
    crawl: DemoCrawl

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> _DemoSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.crawl.connect(crawler)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        for request in self.crawl.requests():
            yield request


# -- output --------------------------------------------------------------------------


def _row(site: Served, responses: list[Response]) -> tuple[str, ...]:
    verdicts = [verdict for _, verdict in site.refused]
    return (
        site.site.name,
        site.server.url.removeprefix("http://"),
        _response_text(responses),
        _meaning(verdicts, responses),
        str(site.fetched),
        str(len(verdicts)),
        _why(verdicts[0]) if verdicts else "",
    )


def _why(verdict: Verdict) -> str:
    """In short, and without the reason, which the column of the meaning shows."""
    return because(verdict) if verdict.rule else printable(verdict.detail, _MOST_DETAIL)


def _response_text(responses: Sequence[Response]) -> str:
    """The responses, such as "302, then 200, 34 B"."""
    if not responses:
        return "no answer"
    last = responses[-1]
    text = ", then ".join(str(response.status) for response in responses)
    if encoding := _header(last, "Content-Encoding"):
        text += f" {printable(encoding)}"
    if _header(last, "Location"):
        # The crawl did not follow it: there was no end to it.
        text += ", ..."
    elif "download_stopped" in last.flags:
        text += f", cut at {len(last.body) // 1024} KiB"
    elif 200 <= last.status < 300:
        text += f", {len(last.body):,} B"
    return text


def _meaning(verdicts: Sequence[Verdict], responses: Sequence[Response]) -> str:
    """What the responses mean for the crawl, by the verdicts if there are any."""
    if verdicts:
        by_rule = Reason.RULE in {verdict.reason for verdict in verdicts}
        return "rules apply" if by_rule else "refuse all"
    return "no rule" if responses and 200 <= responses[-1].status < 300 else "allow all"


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")


def _conclude(differences: list[str], printer: Printer) -> int:
    """Write whether all was as expected, and return the exit code."""
    if not differences:
        printer.line(
            "All as expected. The servers saw each robots.txt once (redirects apart), each allowed "
            "page once, and no refused page."
        )
        return FINE
    printer.line(f"{len(differences)} not as expected:")
    for line in differences[:_MOST_DIFFERENCES]:
        printer.line(f"  {line}")
    if len(differences) > _MOST_DIFFERENCES:
        printer.line(f"  and {len(differences) - _MOST_DIFFERENCES} more")
    return WRONG


DEMO = Subcommand(
    "demo",
    "[options]",
    "crawl demonstration sites on this machine, and check what happens",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
