"""``scrapy robots compare``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Asks all dialects and other parsers the same: a row for each URL, and a column for
each dialect and parser with its answer and, where it tells, the deciding line. Rows
in which not all agree come first.

Under a row, each difference from rfc9309 has its class: the point on which it
depends, found by trying. What is named, changed in the reading of rfc9309 alone,
gives the other answer. Where several are needed, all of them are named. Other
parsers have habits that none of this explains: "unknown".

robots.txt files are fetched as a crawl would, or taken from the store, as "scrapy
robots check" does. Where there is no file to follow, no parser is asked, and
dialects differ in what the answer means to them. A parser that raises says so; one
is not asked where reading the file would take it too long.

--with takes names, with commas between them: protego, urllib, rerp (that is
robotexclusionrulesparser, if it is installed), or import paths of subclasses of
scrapy.robotstxt.RobotParser. The default is protego,urllib.

--corpus takes a ZIP archive of robots.txt files instead of URLs, and prints how
often rfc9309 differs from google, by point, and how often each parser differs from
Google's reference library. Its answers are read from a file beside the archive,
reference-verdicts.jsonl.gz, with the URLs and agents to ask about; where there is
none, URLs are made from the rules of each file, and the google dialect, which
answers as the library does, stands for it. Here, parsers may take their time.

--json writes one object: urls, a list with url, agree, answers (for each column:
allowed, line, reason, class, error) and agents; or for a corpus, files, questions,
points, sets and parsers.

Exit codes: 0 all agree; 1 some differ; 2 some robots.txt could not be fetched,
something is no URL, a parser cannot be loaded, or usage.

examples:
  scrapy robots compare https://example.com/a/page https://example.com/?q=%7e
  scrapy robots compare --file robots.txt --agent ExampleBot /page /other
  scrapy robots compare --with protego,project.parsers.OurParser - < urls.txt
  scrapy robots compare --corpus robots-corpus.zip --with protego,urllib,rerp"""


class CompareSubcommand(Subcommand):
    """The same questions put to all dialects and other parsers."""

    name = "compare"
    syntax = "URL... | --corpus ZIP [options]"
    summary = "ask all dialects and other parsers the same"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what is asked, who, and how it is shown."""
        parser.add_argument(
            "urls", metavar="URL", nargs="*", help="what to ask about; - is standard input"
        )
        parser.add_argument(
            "--with",
            dest="parsers",
            metavar="PARSERS",
            default="protego,urllib",
            help="which other parsers to ask (%(default)s by default)",
        )
        parser.add_argument("--corpus", metavar="ZIP", type=Path, help="ask about these files")
        common.add_agents(parser)
        common.add_file(parser)
        common.add_fresh(parser)
        common.add_json(parser)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Compare all; 0, 1 or 2, as the description says."""
        if options.corpus is None and not options.urls:
            raise UsageError("what is to be compared? URLs, or --corpus ZIP", print_help=False)
        if options.corpus is not None and (options.urls or options.file):
            message = "--corpus takes neither URLs nor --file"
            raise UsageError(message, print_help=False)
        # Only now: other commands have no use for any of it.
        if options.corpus is not None:
            from scrapy_rep.cli.compare.over_corpus import run
        else:
            from scrapy_rep.cli.compare.run import run
        return run(options, settings)
