"""The demo from start to end: serve, crawl, print, compare."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import scrapy

import scrapy_rep
from scrapy_rep.cli.console import Printer, table
from scrapy_rep.cli.demo.corpus import read_sites
from scrapy_rep.cli.demo.crawl import NO_LOG, LogOptions, RobotsAnswer, crawl
from scrapy_rep.cli.demo.limits import allow_open_files_for
from scrapy_rep.cli.demo.output import Progress
from scrapy_rep.cli.demo.results import SiteResult, because, page_url, site_results
from scrapy_rep.cli.demo.serving import serving
from scrapy_rep.cli.demo.sites import AGENT_TOKEN, DemoSite, demo_sites
from scrapy_rep.cli.demo.subcommand import DEFAULT_SITES
from scrapy_rep.cli.ending import FINE, WRONG, ended
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.verdict import Reason, Verdict

# Differences that are listed; when all is wrong, the first ones tell enough.
_MAX_DIFFERENCES = 50
_MAX_REFUSALS = 8

_HEADER = (
    "site",
    "origin",
    "robots.txt",
    "meaning",
    "fetched",
    "refused",
    "decided one refusal",
)


@dataclass(frozen=True, slots=True)
class Run:
    """A crawl that is over. Times are seconds."""

    results: tuple[SiteResult, ...]
    finish_reason: str
    seconds: float

    @property
    def pages_per_second(self) -> float:
        """How many pages were fetched or refused in a second."""
        pages = sum(result.fetched + len(result.verdicts) for result in self.results)
        return pages / self.seconds

    def differences(self) -> list[str]:
        """All that is not as expected, a line each."""
        lines = [
            f"{result.served.site.name}: {difference}"
            for result in self.results
            for difference in result.differences()
        ]
        if self.finish_reason != "finished":
            lines.insert(0, f"the crawl ended early: {self.finish_reason}")
        return lines


def run(options: argparse.Namespace) -> int:
    """Run the demo that *options* describe, and return the exit code."""
    return ended("scrapy robots demo", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    log = NO_LOG if options.nolog else LogOptions(options.loglevel, options.logfile)
    if options.corpus is None:
        return run_demo(sys.stdout, log)
    sites = read_sites(options.corpus, options.sites or DEFAULT_SITES)
    allow_open_files_for(len(sites))
    return run_corpus(sites, sys.stdout, log)


def run_demo(out: TextIO, log: LogOptions = NO_LOG, sites: Sequence[DemoSite] | None = None) -> int:
    """Crawl *sites*, by default all of the demo, and print a table to *out*.

    Returns the exit code: 0 if every outcome was the expected one, else 1.
    """
    printer = Printer(out)
    run = _crawl(demo_sites() if sites is None else sites, printer, log)
    printer.line()
    for line in table(_HEADER, [_row(result) for result in run.results], widest=29):
        printer.line(line)
    return _conclude(run, printer)


def run_corpus(sites: Sequence[DemoSite], out: TextIO, log: LogOptions = NO_LOG) -> int:
    """Crawl *sites*, and print totals and some refusals to *out*; returns as :func:`run_demo`."""
    printer = Printer(out)
    run = _crawl(sites, printer, log)
    printer.line()
    refusals = _telling_refusals(run.results)
    if refusals:
        for line in table(("some refusals", "path", "decided by"), refusals, widest=44):
            printer.line(line)
    return _conclude(run, printer, f" ({run.pages_per_second:.0f} pages/s)")


def _crawl(sites: Sequence[DemoSite], printer: Printer, log: LogOptions) -> Run:
    printer.line(f"scrapy-rep {scrapy_rep.__version__} on Scrapy {scrapy.__version__}")
    with serving(sites) as served:
        urls = [page_url(site, page) for site in served for page in site.site.pages]
        printer.line(
            f"{len(served)} origins on this machine, {len(urls)} pages to ask for as {AGENT_TOKEN}"
        )
        printer.line()
        started = time.monotonic()
        witness = crawl(urls, log, Progress(served, printer).seen)
        seconds = time.monotonic() - started
        results = tuple(site_results(served, witness))
    return Run(results, witness.finish_reason, seconds)


def _conclude(run: Run, printer: Printer, speed: str = "") -> int:
    fetched = sum(result.fetched for result in run.results)
    refused = sum(len(result.verdicts) for result in run.results)
    asked = sum(len(result.served.site.pages) for result in run.results)
    printer.line()
    printer.line(
        f"{len(run.results)} origins, {asked} pages: {fetched} fetched, {refused} refused "
        f"in {run.seconds:.1f} s{speed}"
    )
    differences = run.differences()
    if not differences:
        printer.line(
            "All as expected. The servers saw each robots.txt once (redirects apart), each allowed "
            "page once, and no refused page."
        )
        return FINE
    printer.line(f"{len(differences)} not as expected:")
    for difference in differences[:_MAX_DIFFERENCES]:
        printer.line(f"  {difference}")
    if len(differences) > _MAX_DIFFERENCES:
        printer.line(f"  and {len(differences) - _MAX_DIFFERENCES} more")
    return WRONG


# -- the table ----------------------------------------------------------------


def _row(result: SiteResult) -> tuple[str, ...]:
    verdicts = result.verdicts
    return (
        result.served.site.name,
        result.served.server.url.removeprefix("http://"),
        _answered(result.answers),
        _meaning(result),
        str(result.fetched),
        str(len(verdicts)),
        _why(verdicts[0]) if verdicts else "",
    )


def _answered(answers: Sequence[RobotsAnswer]) -> str:
    """What came, redirects first, such as "302, then 200, 34 B"."""
    if not answers:
        return "no answer"
    last = answers[-1]
    text = ", then ".join(str(answer.status) for answer in answers)
    if last.encoding:
        text += f" {printable(last.encoding)}"
    if last.location:
        # Not followed: there was no end to it.
        text += ", ..."
    elif last.cut:
        text += f", cut at {last.octets // 1024} KiB"
    elif 200 <= last.status < 300:
        text += f", {last.octets:,} B"
    return text


def _meaning(result: SiteResult) -> str:
    """What the answer came to for the crawl: by its verdicts, where there are any."""
    reasons = {verdict.reason for verdict in result.verdicts}
    if Reason.RULE in reasons:
        return "rules apply"
    if reasons:
        return "refuse all"
    if result.answers and 200 <= result.answers[-1].status < 300:
        return "no rule"
    return "allow all"


def _why(verdict: Verdict) -> str:
    """Without the name of the reason, which the column before it tells."""
    return because(verdict) if verdict.rule else verdict.detail or verdict.reason.value


def _telling_refusals(results: Sequence[SiteResult]) -> list[tuple[str, str, str]]:
    """One refusal of a site each, where the pattern has most in it."""
    best: list[tuple[int, tuple[str, str, str]]] = []
    for result in results:
        site = result.served.site
        rows = [
            (_complexity(outcome.verdict), (site.name, page.path, because(outcome.verdict)))
            for page, outcomes in zip(site.pages, result.outcomes, strict=True)
            for outcome in outcomes
            if outcome.verdict is not None
        ]
        best += sorted(rows)[-1:]
    return [row for _, row in sorted(best, reverse=True)[:_MAX_REFUSALS]]


def _complexity(verdict: Verdict) -> int:
    """How much a pattern asks of a matcher, roughly, as far as it can be shown."""
    if verdict.rule is None:
        return 0
    value = verdict.rule.value
    wildcards = value.rstrip(b"*").count(b"*") + value.endswith(b"$")
    return 0 if len(value) > 28 else 2 * wildcards + (not value.isascii())
