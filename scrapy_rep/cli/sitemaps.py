"""``scrapy robots sitemaps``: the sitemaps that a robots.txt names."""

from __future__ import annotations

import argparse
import sys

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Printer, Records, write_json
from scrapy_rep.cli.sources import Session
from scrapy_rep.rep.text import printable

_DESCRIPTION = """\
Prints the sitemaps that a robots.txt names, one per line, each once. It does
not fetch them. SOURCE is a URL of the site, a file, or - for standard input.

Exit codes: 0 done, 2 robots.txt could not be fetched or read"""
_EXAMPLES = """\
  scrapy robots sitemaps https://example.com
  scrapy robots sitemaps robots.txt
  scrapy robots sitemaps https://example.com | xargs -n 1 curl -sO"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    common.add(parser, "source", "--fresh")
    common.add_json(parser, "csv")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    robots = Session.of(options, settings).load(options.source)
    if robots.unreachable:
        raise CommandError(f"{robots.name} could not be fetched: {robots.result.detail}")
    sitemaps = robots.file.sitemaps if robots.file else ()
    if options.format == "json":
        write_json({"sitemaps": list(sitemaps)} | robots.as_json())
    elif options.format == "csv":
        Records("csv", ["sitemap"]).write(*({"sitemap": sitemap} for sitemap in sitemaps))
    else:
        printer = Printer(sys.stdout)
        for sitemap in sitemaps:
            printer.line(printable(sitemap, most=None))
    return FINE


SITEMAPS = Subcommand(
    "sitemaps",
    "SOURCE [options]",
    "list the sitemaps that a robots.txt names",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
