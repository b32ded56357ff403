"""``scrapy robots demo``: a crawl of servers that it starts itself, checked by what they saw."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urljoin

import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
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
    read_sites,
    serving,
)
from scrapy_rep.cli.errors import FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Printer, number, print_table
from scrapy_rep.exceptions import RobotsForbidden
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

#: How many members of an archive are served by default.
DEFAULT_SITES = 200
# Open files of a crawl beside the listening sockets: both ends of each connection, and those
# of Python, Scrapy and the terminal.
_OTHER_FILES = 512
# Differences that are listed; if everything is wrong, the first ones tell enough.
_MOST_DIFFERENCES = 50
_MOST_REFUSALS = 8
# Progress lines of a large crawl that is not on a terminal, at most.
_MOST_LINES = 40
# Seconds between two states of the counter.
_REDRAW = 0.1
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

_DESCRIPTION = f"""\
Shows on this machine, without the Internet, how a crawl obeys robots.txt.

Starts HTTP servers on loopback addresses whose robots.txt files are good, odd
or broken, and crawls them with Scrapy, scrapy-rep enabled by its add-on. Then
prints, for each origin, what its robots.txt answered, what that means, how
many pages were fetched and refused, and which line decided about one of those
that were refused.

With --corpus, the sites have real robots.txt files instead: those of a ZIP
archive, one member for each site. Each is asked for some URLs made from the
rules in its own file, for "/", and for a path that no rule knows.

The exit code is 0 if every outcome was the expected one, by what the servers
saw as well as by what the spider saw: each allowed page was asked for once,
each refused page never, each robots.txt once. Otherwise the differences are
listed and it is 1. Options that make no sense, or an archive that cannot be read: 2.

The settings of the crawl are the demo's own. The project that it is run in
changes nothing, and -s is not accepted.

examples:
  scrapy robots demo
  scrapy robots demo -L DEBUG 2> demo.log
  scrapy robots demo --corpus robots-corpus.zip --sites {DEFAULT_SITES}"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus",
        metavar="ZIP",
        type=Path,
        help="serve the robots.txt files in this archive, one for each member",
    )
    parser.add_argument(
        "--sites",
        metavar="N",
        type=int,
        help="how many members of the archive to serve, evenly spread over it "
        f"({DEFAULT_SITES} by default, or all if it has fewer)",
    )
    # Unlike other subcommands, the demo has no log by default, and does not accept -s.
    parser.add_argument(
        "-L",
        "--loglevel",
        metavar="LEVEL",
        type=_log_level,
        help="write Scrapy's log from this level on to standard error (by default, no log)",
    )
    parser.add_argument("-s", "--set", action="append", default=[], help=argparse.SUPPRESS)


def _log_level(value: str) -> str:
    """*value* in upper case, if it names a level."""
    level = value.upper()
    if not isinstance(logging.getLevelName(level), int):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no log level: CRITICAL, ERROR, WARNING, INFO or DEBUG"
        )
    return level


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    if options.set:
        raise UsageError("the demo has settings of its own: no -s", print_help=False)
    if options.sites is not None and options.corpus is None:
        raise UsageError("--sites is for --corpus ZIP", print_help=False)
    if options.sites is not None and options.sites < 1:
        raise UsageError(f"--sites {options.sites}: must be 1 or more", print_help=False)
    log = _NO_LOG
    if not options.nolog and (options.loglevel or options.logfile):
        log = {"LOG_LEVEL": options.loglevel or "DEBUG", "LOG_FILE": options.logfile}
    if options.corpus is None:
        return run_demo(demo_sites(), sys.stdout, log)
    sites = read_sites(options.corpus, options.sites or DEFAULT_SITES)
    allow_open_files(len(sites))
    return run_corpus(sites, sys.stdout, log)


def run_demo(sites: Sequence[DemoSite], out: TextIO, log: dict[str, Any] = _NO_LOG) -> int:
    """Crawl *sites*, and print a table of them to *out*.

    Returns the exit code: 0 if every outcome was the expected one, else 1.
    """
    printer = Printer(out)
    crawl = _crawl(sites, printer, log)
    titles = ("site", "origin", "robots.txt", "meaning", "fetched", "refused")
    rows = [_row(site, crawl.responses_of(site)) for site in crawl.sites]
    print_table(printer, (*titles, "decided one refusal"), rows, widest=29)
    return _conclude(crawl, printer)


def run_corpus(sites: Sequence[DemoSite], out: TextIO, log: dict[str, Any] = _NO_LOG) -> int:
    """Crawl *sites*, and print some refusals to *out*; returns as :func:`run_demo`."""
    printer = Printer(out)
    crawl = _crawl(sites, printer, log)
    if refusals := _some_refusals(crawl.sites):
        print_table(printer, ("some refusals", "path", "decided by"), refusals, widest=44)
    return _conclude(crawl, printer, f" ({sum(_counts(crawl)) / crawl.seconds:.0f} pages/s)")


def allow_open_files(sites: int) -> None:
    """Raise the limit on open files, if there is one, to what *sites* sites need.

    Raises :exc:`CommandError` if this user may not have so many.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    needed = sites + _OTHER_FILES
    wanted = f"{number(sites, 'site')} and the crawl take {needed} open files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise CommandError(
            f"{wanted}, but the limit is {hard}: take fewer with --sites, or raise it (ulimit -Hn)"
        )
    try:
        # Not further than needed, because macOS refuses infinity.
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError) as error:
        raise CommandError(
            f"{wanted}, and the limit of {soft} cannot be raised ({error}): take fewer with --sites"
        ) from None


# -- crawling ------------------------------------------------------------------------


class DemoCrawl:
    """A crawl of *sites*: what the spider sees, and the lines that are printed meanwhile."""

    def __init__(self, sites: list[Served], printer: Printer) -> None:
        self.sites = sites
        self.pages = {site.url(path): (site, path) for site in sites for path in site.site.pages}
        #: By URL, of the robots.txt files.
        self.responses: dict[str, Response] = {}
        #: Why Scrapy ended the crawl: "finished", if all went well.
        self.finish_reason = "not started"
        self.seconds = 0.0
        self._printer = printer
        self._done = self._finished = 0
        self._every = -(-len(sites) // _MOST_LINES)
        self._started = time.monotonic()
        self._redraw_at = 0.0

    def run(self, log: dict[str, Any]) -> None:
        """Run it to its end. Raises what keeps Scrapy from starting."""
        failure = run_spider(Settings(_SETTINGS | log), DemoSpider, crawl=self)
        self.seconds = time.monotonic() - self._started
        if failure is not None:
            raise failure

    def note(self, url: str, outcome: Outcome) -> None:
        """The page at *url* has an *outcome*. Writes a line when its site is complete."""
        site, path = self.pages[url]
        site.outcomes.append((path, outcome))
        self._done += 1
        is_complete = len(site.outcomes) == len(site.site.pages)
        self._finished += is_complete
        now = time.monotonic()
        seconds = f"{now - self._started:5.1f} s"
        origins = len(self.sites)
        pages = f"{self._done}/{len(self.pages)} pages"
        count = f"{seconds}  {self._finished}/{origins} origins, {pages}"
        if is_complete and self._every == 1:
            self._printer.line(
                f"{seconds}  {self._finished:2}/{origins}  {site.server.url:<24}  "
                f"{site.fetched} fetched, {len(site.refused)} refused  {site.site.name}"
            )
        elif is_complete and not self._printer.live and self._finished % self._every == 0:
            self._printer.line(count)
        if now >= self._redraw_at:
            self._redraw_at = now + _REDRAW
            self._printer.status(count)

    def responses_of(self, site: Served) -> list[Response]:
        """The responses to the robots.txt of *site*, redirects first."""
        found: list[Response] = []
        url = site.server.url + ROBOTS_TXT
        while (response := self.responses.get(url)) and response not in found:
            found.append(response)
            url = urljoin(url, _header(response, "Location"))
        return found

    def differences(self) -> list[str]:
        """What is not as expected, a line each."""
        early = f"the crawl ended early: {self.finish_reason}"
        lines = [] if self.finish_reason == "finished" else [early]
        for each in self.sites:
            lines += [f"{each.site.name}: {line}" for line in each.differences()]
        return lines


class DemoSpider(Spider):
    """Requests each page once, and notes the outcomes."""

    name = "robots-demo"
    crawl: DemoCrawl

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> DemoSpider:
        """Made by Scrapy."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.downloaded, signals.response_downloaded)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """All requests, none of which the duplicate filter may drop."""
        for url in self.crawl.pages:
            yield Request(
                url,
                callback=self.fetched,
                errback=self.failed,
                cb_kwargs={"asked": url},
                dont_filter=True,
                meta={"handle_httpstatus_all": True, "dont_redirect": True},
            )

    def fetched(self, response: Response, asked: str) -> None:
        """A page was fetched."""
        self.crawl.note(asked, response.status)

    def failed(self, failure: Failure) -> None:
        """A page was refused, or could not be fetched."""
        error = failure.value
        outcome: Outcome = printable(f"{type(error).__name__}: {error}")
        if isinstance(error, RobotsForbidden):
            outcome = error.verdict
        self.crawl.note(failure.request.cb_kwargs["asked"], outcome)  # type: ignore[attr-defined]

    def downloaded(self, response: Response, request: Request) -> None:
        """Signal response_downloaded, which robots.txt files send, too."""
        if "asked" not in request.cb_kwargs:
            # A copy, because the middleware that unpacks bodies changes the headers.
            self.crawl.responses[request.url] = response.copy()

    def closed(self, reason: str) -> None:
        """The end of the crawl."""
        self.crawl.finish_reason = reason


# -- output --------------------------------------------------------------------------


def _crawl(sites: Sequence[DemoSite], printer: Printer, log: dict[str, Any]) -> DemoCrawl:
    printer.line(f"scrapy-rep {scrapy_rep.__version__} on Scrapy {scrapy.__version__}")
    with serving(sites) as served:
        crawl = DemoCrawl(served, printer)
        printer.line(
            f"{len(served)} origins on this machine, {len(crawl.pages)} pages to ask for as "
            f"{AGENT_TOKEN}"
        )
        printer.line()
        crawl.run(log)
    printer.line()
    return crawl


def _conclude(crawl: DemoCrawl, printer: Printer, speed: str = "") -> int:
    fetched, refused = _counts(crawl)
    printer.line()
    printer.line(
        f"{len(crawl.sites)} origins, {len(crawl.pages)} pages: {fetched} fetched, "
        f"{refused} refused in {crawl.seconds:.1f} s{speed}"
    )
    lines = crawl.differences()
    if not lines:
        printer.line(
            "All as expected. The servers saw each robots.txt once (redirects apart), each allowed "
            "page once, and no refused page."
        )
        return FINE
    printer.line(f"{len(lines)} not as expected:")
    for line in lines[:_MOST_DIFFERENCES]:
        printer.line(f"  {line}")
    if len(lines) > _MOST_DIFFERENCES:
        printer.line(f"  and {len(lines) - _MOST_DIFFERENCES} more")
    return WRONG


def _counts(crawl: DemoCrawl) -> tuple[int, int]:
    """How many pages were fetched and refused."""
    return sum(each.fetched for each in crawl.sites), sum(len(each.refused) for each in crawl.sites)


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
    reasons = {verdict.reason for verdict in verdicts}
    if Reason.RULE in reasons:
        return "rules apply"
    if reasons:
        return "refuse all"
    if responses and 200 <= responses[-1].status < 300:
        return "no rule"
    return "allow all"


def _why(verdict: Verdict) -> str:
    """Without the name of the reason, which the column before it shows."""
    return because(verdict) if verdict.rule else verdict.detail or verdict.reason.value


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")


def _some_refusals(sites: Sequence[Served]) -> list[tuple[str, str, str]]:
    """One refusal of each site, from the most complex pattern on."""
    best: list[tuple[int, tuple[str, str, str]]] = []
    for site in sites:
        rows = [
            (_complexity(verdict), (site.site.name, path, because(verdict)))
            for path, verdict in site.refused
        ]
        best += sorted(rows)[-1:]
    return [row for _, row in sorted(best, reverse=True)[:_MOST_REFUSALS]]


def _complexity(verdict: Verdict) -> int:
    """Roughly how much a pattern asks of a matcher, if it is short enough to be shown."""
    if verdict.rule is None or len(verdict.rule.value) > 28:
        return 0
    value = verdict.rule.value
    wildcards = value.rstrip(b"*").count(b"*") + value.endswith(b"$")
    return 2 * wildcards + (not value.isascii())


DEMO = Subcommand(
    "demo",
    "[--corpus ZIP [--sites N]] [options]",
    "crawl demonstration sites on this machine, and check what happens",
    _DESCRIPTION,
    _add_options,
    _run,
)
