"""``scrapy robots lint``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

#: What --format takes.
FORMATS = ("text", "json", "sarif")

_DESCRIPTION = """\
Says what is wrong in a robots.txt, line by line: lines that are ignored, rules that
match nothing or never decide, groups that go on where they seem to end.

What is given is a file, - for standard input, or a URL, which has a scheme: then
the robots.txt of its origin is fetched now, as a crawl would, whatever the store
has.

  error    a line does not do what it says
  warning  a line likely does something else than it seems to, here or elsewhere
  note     good to know

Each line of the output has the file, the line, the severity, a sentence, and the
kind of the finding in brackets. What is in order is left out, unless --all is
given. The last line has the numbers.

--format json writes one object: name, dialect, lines (how many), findings (line,
kind, severity, sentence) and summary, a number for each severity.
--format sarif writes SARIF 2.1.0, which code-scanning tools read; notes are of
level "note" there.

Exit codes: 0 neither error nor warning; 1 an error or a warning; 2 the file cannot
be read, the robots.txt could not be fetched, there is none, or usage.

examples:
  scrapy robots lint robots.txt
  scrapy robots lint https://example.com
  scrapy robots lint --format sarif static/robots.txt > robots.sarif
  curl -s https://example.com/robots.txt | scrapy robots lint --dialect google -"""


class LintSubcommand(Subcommand):
    """What is wrong in a robots.txt."""

    name = "lint"
    syntax = "URL|FILE [options]"
    summary = "what is wrong in a robots.txt"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the file and what says how it is read and shown."""
        parser.add_argument("source", metavar="URL|FILE", help="the robots.txt, or -")
        parser.add_argument(
            "--format", choices=FORMATS, default=None, help="how to write it (text by default)"
        )
        parser.add_argument("--all", action="store_true", help="what is in order, too")
        common.add_dialect(parser)
        parser.add_argument("--json", action="store_true", help="the same as --format json")

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Look at it; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.lint.run import run

        return run(options, settings)
