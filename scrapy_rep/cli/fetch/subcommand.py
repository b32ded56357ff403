"""``scrapy robots fetch``: options and help. What it does is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.subcommand import Subcommand

_DESCRIPTION = """\
Fetches the robots.txt of an origin now, and says how that went and what it means
for a crawl: each hop of the way with its status, the validators and the freshness
lifetime, size and encoding of the file. Nothing is read from the store, nor kept
in it: see "scrapy robots cache refresh".

The request is that of a crawl, through a crawler with the settings of the project
and of -s, with its proxies, handlers, headers and User-Agent. URL is any of the
origin; without a scheme, https is meant.

  hops        what was asked, and how it was answered, in how many seconds
  access      successful: its rules are followed; unavailable: all is allowed;
              unreachable: as REP_UNREACHABLE says; disallowed: all is refused
  header      of those that HTTP caching is about
  validator   what the server is asked with next time, to say only if it has changed
  lifetime    for how long a crawl uses it before it asks again
  size        octets of the file, without Content-Encoding
  encoding    of the text: a robots.txt is to be in UTF-8
  findings    how many of each severity: see "scrapy robots lint"

--body writes the octets of the file and nothing else, as far as a crawl reads it.
They are untrusted, so not on a terminal: there, "scrapy robots explain" shows them.

--json writes one object: origin, access, meaning, status, detail, user_agent, hops
(url, status, location, content_type, octets, seconds; null where nothing came),
url (the last one), headers, validators, lifetime, size, encoding and findings
(null where there is none), cut.

Exit codes: 0 fetched, or there is none; 1 the answer refuses all; 2 it could not
be fetched, or usage.

examples:
  scrapy robots fetch https://example.com
  scrapy robots fetch --body example.com > robots.txt
  scrapy robots fetch --json -s USER_AGENT=ExampleBot/1.0 example.com"""


class FetchSubcommand(Subcommand):
    """How a robots.txt is answered."""

    name = "fetch"
    syntax = "URL [options]"
    summary = "how a robots.txt is answered, and what that means"
    description = _DESCRIPTION

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add URL and what says how it is shown."""
        parser.add_argument("url", metavar="URL", help="a URL of the origin, or a host")
        parser.add_argument("--body", action="store_true", help="write the file, and nothing else")
        common.add_dialect(parser)
        common.add_json(parser)

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Fetch it; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.fetch.run import run

        return run(options, settings)
