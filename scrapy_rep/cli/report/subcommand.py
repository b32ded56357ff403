"""``scrapy robots report``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Writes one HTML page about all origins in a store: a table of them, their
robots.txt files with line numbers, what is wrong in these, and when they were
fetched. It is the page that REP_REPORT makes of a crawl, without what only a
crawl knows: which requests were allowed or refused, by which line. The page
needs no network, and holds nothing but text.

STORE is what the setting REP_STORE takes, such as sqlite:///path/of/the.file,
or the path of the file alone. Without it, the project's store is shown.

What holds for an origin is what a crawl that began now would make of it, with
the settings of the project and of -s. Crawls may be running meanwhile.

Needs Jinja2: pip install 'scrapy-rep[report]'

Exit codes: 0 the page is written; 1 nothing is known, so no page is; 2 usage,
settings, a store in memory or one that does not work, a file that cannot be
written, no Jinja2.

examples:
  scrapy robots report
  scrapy robots report sqlite:///crawls/robots.sqlite -o robots-monday.html
  scrapy robots report robots.sqlite -o - | gzip > robots.html.gz"""


class ReportSubcommand(Subcommand):
    """``scrapy robots report [STORE]``."""

    name = "report"
    syntax = "[STORE] [-o FILE] [options]"
    summary = "make a page of what a store knows of robots.txt"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add STORE and -o."""
        parser.add_argument("store", metavar="STORE", nargs="?", help="a store, or its file")
        parser.add_argument(
            "-o",
            "--output",
            metavar="FILE",
            default="robots.html",
            help="where the page goes, %(default)s if not said; - is standard output",
        )

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Do it; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.report.run import run

        return run(options, settings)
