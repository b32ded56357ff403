"""``scrapy robots demo``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_rep.cli.subcommand import Subcommand

#: How many members of an archive are served where --sites does not say.
DEFAULT_SITES = 200

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


class DemoSubcommand(Subcommand):
    """A crawl of servers that it starts itself, checked against what they saw."""

    name = "demo"
    syntax = "[--corpus ZIP [--sites N]] [options]"
    summary = "crawl demonstration sites on this machine, and check what happens"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add --corpus and --sites; -L and -s mean something else than usual."""
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
        parser.add_argument(
            "-L",
            "--loglevel",
            metavar="LEVEL",
            type=_log_level,
            help="write Scrapy's log from this level on to standard error (by default, no log)",
        )
        parser.add_argument("-s", "--set", action="append", default=[], help=argparse.SUPPRESS)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Run the demo with *options*; 0 if every outcome was the expected one."""
        self._check(options)
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.demo.run import run

        return run(options)

    def _check(self, options: argparse.Namespace) -> None:
        if options.set:
            raise UsageError("the demo has settings of its own: no -s", print_help=False)
        if options.sites is not None and options.corpus is None:
            raise UsageError("--sites is for --corpus ZIP", print_help=False)
        if options.sites is not None and options.sites < 1:
            raise UsageError(f"--sites {options.sites}: must be 1 or more", print_help=False)


def _log_level(value: str) -> str:
    """*value* in upper case, if it names a level."""
    level = value.upper()
    if not isinstance(logging.getLevelName(level), int):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no log level: CRITICAL, ERROR, WARNING, INFO or DEBUG"
        )
    return level
