"""``scrapy robots sitemaps``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Prints the sitemaps that a robots.txt names, one a line, in the order of the file
and each once. They are about the site, whatever group they stand in.

What is given is a URL, which has a scheme, a file, or - for standard input. The
robots.txt of a URL's origin is fetched as a crawl would, or taken from the store,
as "scrapy robots check" does. What it names is not fetched, need not be a URL, and
is not trusted: what is not printable in it is escaped.

--json writes one object: sitemaps, a list, robots_txt (where it came from), source
(fetched, store or file), age in seconds and access.

Exit codes: 0, also if it names none, or there is none; 2 it could not be fetched or
read, or usage.

examples:
  scrapy robots sitemaps https://example.com
  scrapy robots sitemaps robots.txt
  scrapy robots sitemaps https://example.com | xargs -n 1 curl -sO"""


class SitemapsSubcommand(Subcommand):
    """The sitemaps that a robots.txt names."""

    name = "sitemaps"
    syntax = "URL|FILE [options]"
    summary = "the sitemaps that a robots.txt names"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the file and what says how it is read and shown."""
        parser.add_argument("source", metavar="URL|FILE", help="the robots.txt, or -")
        common.add_fresh(parser)
        common.add_json(parser)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Print them; 0 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.sitemaps.run import run

        return run(options, settings)
