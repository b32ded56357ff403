"""``scrapy robots sitemaps``: the sitemaps that a robots.txt names."""

from __future__ import annotations

import argparse
import sys

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Printer, write_json
from scrapy_rep.cli.sources import Session
from scrapy_rep.rep.text import printable

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


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="URL|FILE", help="the robots.txt, or -")
    common.add_fresh(parser)
    common.add_json(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    robots = Session.of(options, settings).load(options.source)
    if robots.unreachable:
        detail = robots.policy.detail if robots.policy else ""
        raise CommandError(f"{robots.name} could not be fetched: {detail}")
    sitemaps = robots.file.sitemaps if robots.file else ()
    if options.json:
        write_json({"sitemaps": list(sitemaps)} | robots.as_json())
    else:
        printer = Printer(sys.stdout)
        for sitemap in sitemaps:
            printer.line(printable(sitemap, most=None))
    return FINE


SITEMAPS = Subcommand(
    "sitemaps",
    "URL|FILE [options]",
    "the sitemaps that a robots.txt names",
    _DESCRIPTION,
    _add_options,
    _run,
)
