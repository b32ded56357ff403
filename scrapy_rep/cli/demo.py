"""``scrapy robots demo``: a crawl of servers that it starts itself, checked by what they saw."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urljoin

import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from twisted.python.failure import Failure

from .. import __version__
from ..exceptions import RobotsForbidden
from ..rep.parsing.urls import ROBOTS_TXT
from ..rep.rules.verdict import Reason, Verdict
from ..rep.text import printable
from .crawling import header, run_spider
from .demo_sites import AGENT_TOKEN, DemoSite, Served, because, demo_sites, serving
from .errors import FINE, WRONG, CommandError
from .options import Options, argument, subcommand
from .output import Column, Cut, Printer, Table

_COLUMNS = (
    *map(Column, ("site", "origin", "robots.txt", "meaning")),
    *(Column("fetched", right=True), Column("refused", right=True)),
    Column("decided one refusal", cut=Cut.END),
)
# Characters of a reason that is not a rule.
_MOST_DETAIL = 26
# Differences that are listed; if everything is wrong, the first ones tell enough.
_MOST_DIFFERENCES = 50
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
    # A page is requested at most once, and the demo must notice a second time.
    "RETRY_ENABLED": False,
    # A proxy of the environment does not know our loopback addresses.
    "HTTPPROXY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}

_SUMMARY = "crawl demonstration sites on this machine, and check what happens"
_ARGUMENTS = (
    argument(
        "--report",
        metavar="FILE",
        nargs="?",
        const="robots-demo.html",
        help="write the report of the crawl, an HTML page (%(const)s by default); needs Jinja2",
    ),
    argument("-s", "--set", action="append", default=[], help=argparse.SUPPRESS),
)


@subcommand("[options]", _SUMMARY, *_ARGUMENTS)
def demo(options: Options, settings: BaseSettings) -> int:
    """Starts HTTP servers on this machine whose robots.txt files are good, odd or
    broken, crawls them, and compares what the spider and the servers saw with what
    is expected. Needs no network. Settings of the project and -s have no effect.

    Exit codes: 0 all as expected, 1 differences (listed), 2 error

    Examples:
      scrapy robots demo
      scrapy robots demo --report demo.html
      scrapy robots demo -L DEBUG 2> demo.log
    """
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
    Printer().line(f"Report: {printable(str(report))}")
    return exit_code


def run_demo(sites: Sequence[DemoSite], out: TextIO, settings: dict[str, Any] = _NO_LOG) -> int:
    """Crawl *sites*, and print a table of them to *out*; *settings* are added to the demo's.

    Returns the exit code: 0 if every outcome was the expected one, else 1. Raises what keeps
    Scrapy from starting.
    """
    printer = Printer(out)
    printer.line(f"scrapy-rep {__version__} on Scrapy {scrapy.__version__}")
    count = f"{len(sites)} origins, {sum(len(site.pages) for site in sites)} pages"
    printer.line(f"{count} on this machine, to crawl as {AGENT_TOKEN}\n")
    crawled: dict[str, Any] = {"printer": printer, "responses": {}, "reasons": []}
    with serving(sites) as served:
        started = time.monotonic()
        run_spider(Settings(_SETTINGS | settings), _DemoSpider, sites=served, **crawled)
        seconds = time.monotonic() - started
    printer.line()
    Table(printer, _COLUMNS).write([_row(site, crawled["responses"]) for site in served])
    fetched, refused = sum(site.fetched for site in served), sum(len(s.refusals) for s in served)
    printer.line(f"\n{count}: {fetched} fetched, {refused} refused in {seconds:.1f} s")
    differences = [f"{each.site.name}: {line}" for each in served for line in each.differences()]
    if crawled["reasons"] != ["finished"]:
        differences.insert(0, f"the crawl ended early: {', '.join(crawled['reasons'])}")
    return _conclude(differences, printer)


class _DemoSpider(Spider):
    """Requests all pages of *sites*, notes what comes of each, and prints progress meanwhile."""

    name = "robots-demo"
    sites: list[Served]
    printer: Printer
    #: By URL, of robots.txt and pages.
    responses: dict[str, Response]
    #: Why Scrapy ended the crawl: "finished", if all went well.
    reasons: list[str]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> _DemoSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        # Connected before the middleware that unpacks bodies and changes headers.
        crawler.signals.connect(spider.downloaded, signals.response_downloaded)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        self.started, self.pages_done, self.sites_done = time.monotonic(), 0, 0
        self.page_count = sum(len(site.site.pages) for site in self.sites)
        meta = {"handle_httpstatus_all": True, "dont_redirect": True}
        for site in self.sites:
            for path in site.site.pages:
                done = partial(self.done, site, path)
                yield Request(site.url(path), done, errback=done, dont_filter=True, meta=meta)

    def downloaded(self, response: Response, request: Request) -> None:
        self.responses[request.url] = response.copy()

    def done(self, site: Served, path: str, result: Response | Failure) -> None:
        """Note what came of a page. Write a line if *site* is complete."""
        if isinstance(result, Response):
            site.outcomes[path] = result.status
        elif isinstance(result.value, RobotsForbidden):
            site.outcomes[path] = result.value.verdict
        else:
            site.outcomes[path] = printable(f"{type(result.value).__name__}: {result.value}")
        self.pages_done += 1
        seconds = f"{time.monotonic() - self.started:5.1f} s"
        if len(site.outcomes) == len(site.site.pages):
            self.sites_done += 1
            self.printer.line(
                f"{seconds}  {self.sites_done:2}/{len(self.sites)}  {site.server.url:<24}  "
                f"{site.fetched} fetched, {len(site.refusals)} refused  {site.site.name}"
            )
        self.printer.status(f"{seconds}  {self.pages_done}/{self.page_count} pages")

    def closed(self, reason: str) -> None:
        self.reasons.append(reason)


def _row(site: Served, responses: Mapping[str, Response]) -> tuple[str, ...]:
    chain = _redirect_chain(site.server.url + ROBOTS_TXT, responses)
    why = ""
    if site.refusals:
        # Without the reason, which the column of the meaning shows.
        first = site.refusals[0]
        why = because(first) if first.rule else printable(first.detail, _MOST_DETAIL)
    return (
        site.site.name,
        site.server.url.removeprefix("http://"),
        _response_text(chain),
        _meaning(site.refusals, chain),
        str(site.fetched),
        str(len(site.refusals)),
        why,
    )


def _redirect_chain(url: str, responses: Mapping[str, Response]) -> list[Response]:
    found: list[Response] = []
    while (response := responses.get(url)) and response not in found:
        found.append(response)
        url = urljoin(url, header(response, "Location") or "")
    return found


def _response_text(chain: Sequence[Response]) -> str:
    """The responses, such as "302, then 200, 34 B"."""
    if not chain:
        return "no answer"
    last = chain[-1]
    text = ", then ".join(str(response.status) for response in chain)
    if encoding := header(last, "Content-Encoding"):
        text += f" {printable(encoding)}"
    if header(last, "Location"):
        # The crawl did not follow it: there was no end to it.
        text += ", ..."
    elif "download_stopped" in last.flags:
        text += f", cut at {len(last.body) // 1024} KiB"
    elif 200 <= last.status < 300:
        text += f", {len(last.body):,} B"
    return text


def _meaning(refusals: Sequence[Verdict], chain: Sequence[Response]) -> str:
    """What the responses mean for the crawl, by the verdicts if there are any."""
    if refusals:
        by_rule = any(verdict.reason is Reason.RULE for verdict in refusals)
        return "rules apply" if by_rule else "refuse all"
    return "no rule" if chain and 200 <= chain[-1].status < 300 else "allow all"


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
