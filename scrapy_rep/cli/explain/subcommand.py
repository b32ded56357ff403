"""``scrapy robots explain``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Shows the robots.txt with line numbers, and what became of each line when the URL
was asked about: which user-agent lines are about us, which rule decides (marked
with > and in colour), which others match and how many octets of them, and why
they lost:

  - another one that matches has more octets (RFC 9309, section 2.2.2);
  - of as many octets, an allow wins over a disallow;
  - an earlier one says the same, or, in the dialects koster1996 and koster1994,
    is the first that matches;
  - the group is about others.

A line that is ignored, or does something else than it seems to, says why: see
"scrapy robots lint".

The robots.txt is fetched as a crawl would, or taken from the store, as "scrapy
robots check" does. It is read by scrapy-rep in any case; where the project has
another ROBOTSTXT_PARSER, what that says stands beside it. URL may be a path that
starts with / where there is a --file; without a scheme, https is meant.

--json writes one object: url, agents, dialect, path (as it is compared), what
"check" says of the URL, agent (whose groups count), groups (lists of user-agent
lines), and lines, each with line, text, fate (null for a line that is no rule of a
group; decides, shorter, tie, later, robots-txt-itself, other-group, no-match,
not-about-us, not-tried), length in octets of what matches, and findings.

Exit codes: 0 allowed; 1 refused; 2 robots.txt could not be fetched, or usage.

examples:
  scrapy robots explain https://example.com/private/page
  scrapy robots explain --brief --agent ExampleBot example.com/private/page
  scrapy robots explain --file robots.txt --dialect koster1996 /private/page"""


class ExplainSubcommand(Subcommand):
    """Why one URL is allowed or refused."""

    name = "explain"
    syntax = "URL [options]"
    summary = "why a URL is allowed or refused, line by line"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add URL and what says how it is asked about."""
        parser.add_argument("url", metavar="URL", help="what to explain")
        parser.add_argument(
            "--brief", action="store_true", help="leave out lines that have no part in it"
        )
        common.add_asking(parser)
        common.add_json(parser)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Explain it; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.explain.run import run

        return run(options, settings)
