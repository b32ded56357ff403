"""``scrapy robots check``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Says of each URL whether a crawl may request it, and what that rests on: the line
of the robots.txt and the group it is in, or why no line decides.

robots.txt files are fetched as a crawl would: through a crawler with the settings
of the project, if there is one, and of -s, with its proxies, handlers, headers
and User-Agent. Each is fetched once, as many at a time as CONCURRENT_REQUESTS
says, and a copy in the store (see "scrapy robots cache") that is still good is
used instead. Where the project has no such store, none is made.

A URL without a scheme is an https one. URLs that are neither http, https nor ftp,
such as data:,x, have no robots.txt: they are allowed, as crawls let them through.
With - as the only URL, they are read from standard input, one a line, in portions:
a million of them take no more memory than some thousands. On a terminal, standard
error shows how far it is.

  answer  allowed or refused
  line    of the robots.txt that decides, - where none does
  reason  the rule, or why there is none
  group   the names in the user-agent lines by which its rules are for us
  source  of the robots.txt: fetched now, or from the store
  age     since it was fetched or confirmed by its server, or last tried

--json writes JSON Lines, an object for each URL, in the order of the URLs: url,
allowed, reason (rule, no-rule, no-group, robots-txt-itself, matching-limit,
unavailable, unreachable, disallowed, other-parser, unreadable, invalid-url,
other-scheme, purpose, visit-time), line and rule (null where none decides), group,
detail, agents and, where there is a robots.txt to ask, robots_txt (where it came from
after redirects), source, age in seconds and access (see "scrapy robots fetch").

With --file, source, age and access say nothing, and the file is read by
scrapy-rep, whatever ROBOTSTXT_PARSER says, for its rules alone: REP_PURPOSES and
REP_VISIT_TIME have a say where a robots.txt is fetched.

Exit codes: 0 all are allowed; 1 some are refused; 2 some robots.txt could not be
fetched, something given is no URL, or options or settings make no sense.

examples:
  scrapy robots check https://example.com/private/page
  scrapy robots check --agent ExampleBot --agent Bot example.com example.org/a?b=c
  scrapy robots check --file robots.txt --dialect google /private/page
  cut -f2 pages.tsv | scrapy robots check --json - > verdicts.jsonl"""


class CheckSubcommand(Subcommand):
    """Which URLs are allowed."""

    name = "check"
    syntax = "URL... [options]"
    summary = "whether URLs may be requested, and why"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add URL and what says how they are asked about."""
        parser.add_argument("urls", metavar="URL", nargs="+", help="what to check, or -")
        common.add_asking(parser)
        common.add_json(parser)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Check all; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.check.run import run

        return run(options, settings)
