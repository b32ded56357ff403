"""``scrapy robots cache …``: options and help. What they do is in :mod:`.run`."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_rep.cli.subcommand import Subcommand, SubcommandGroup

_ORIGIN = "ORIGIN"

_DESCRIPTION = """\
Looks at and manages what crawls remember of robots.txt: the store that the
setting REP_STORE names, by default rep/robots.sqlite in the data directory of
the project. Outside a project, that is .scrapy/rep/robots.sqlite below the
working directory. Another one: -s REP_STORE=sqlite:///path/of/the.file,
or the URL of a Redis

What is shown is what a crawl that began now would make of it, with the
settings of the project and of -s. Settings of single spiders and of add-ons are
not considered. Crawls may be running: nothing here gets in their way.

Exit codes: 0 done; 1 nothing is known of the origin, or you said no; 2 usage,
settings, a store in memory or one that does not work, no answer to a refresh.

examples:
  scrapy robots cache list
  scrapy robots cache show example.com
  scrapy robots cache refresh https://example.com
  scrapy robots cache clear --yes"""

_LIST = """\
One line for each origin of which something is known, by host.

  standing  fresh: used as it is
            due: used, and fetched again in the background
            stale: fetched again before the next page
            outage: unreachable; the copy from before goes on being used
            refused: unreachable, and there is no such copy
            given up: for so long that it counts as if there were none
  access    successful: its rules are followed; unavailable: all is allowed;
            unreachable: as REP_UNREACHABLE says; disallowed: all is refused;
            -: a page has to wait for a fetch
  status    of the last answer, - if there was none
  age       since the copy came or was confirmed, or since the last attempt
  left      until it is used no longer
  octets    of the copy's body

--json writes JSON Lines: an object for each origin, times in seconds or as ISO
8601 in UTC, null for what is not there.

Exit codes: 0, also if nothing is known; 2 a store that does not work."""

_SHOW = """\
All that is known of one origin, what it means for a crawl, and the robots.txt
with line numbers, as far as a crawl reads it (REP_MAX_SIZE). Whatever is not
printable in it is escaped, and long lines are cut.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: that of "list", and headers, hops, times and the body.
Octets of the body that are not UTF-8 are written as \\xNN.

Exit codes: 0; 1 nothing is known of the origin; 2 no origin, or a store that
does not work."""

_REFRESH = """\
Fetches the robots.txt of one origin now, whatever is known of it, as a crawl
would: through a crawler with the project's settings, with its proxies, handlers
and User-Agent, and conditionally where a copy is known. Keeps the outcome, and
says what has changed. Pipelines, feeds, JOBDIR and spiders of the project have
no part in it. The log starts at WARNING, unless -L says otherwise.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: outcome (new, confirmed, same, changed or
unreachable), and what was known before and is now, each as "list" shows it.

Exit codes: 0; 2 the robots.txt is unreachable, the outcome could not be kept, or
usage."""

_CLEAR = """\
Forgets one origin or, without ORIGIN, all of them, and says how many. The next
crawl fetches them anew. Asks before it forgets all of them; without a terminal
to ask at, --yes is needed. Crawls that are running go on with what they have
in memory.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: {"forgotten": N}.

Exit codes: 0; 1 nothing was known of the origin, or you said no; 2 --yes is
needed, or a store that does not work."""

_PATH = """\
Prints where the store is, or would be: its file, or the URL of its Redis. What is
there is not looked at. --json writes one object: {"path": "..."}.

Exit codes: 0; 2 the store is in memory, or REP_STORE makes no sense."""


class CacheSubcommand(Subcommand):
    """One of the subcommands of ``scrapy robots cache``.

    *origin* is what the usage line says of the argument ORIGIN: "", if it takes none.
    """

    def __init__(self, name: str, origin: str, summary: str, description: str) -> None:
        self.name = name
        self.syntax = f"{origin} [options]".lstrip()
        self.summary = summary
        self.description = description
        self._origin = origin

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add ORIGIN, where it is taken, and --json."""
        if self._origin:
            nargs = None if self._origin == _ORIGIN else "?"
            parser.add_argument(
                "origin", metavar=_ORIGIN, nargs=nargs, help="a URL of the origin, or a host"
            )
        parser.add_argument("--json", action="store_true", help="write JSON, for machines")

    def run(self, options: argparse.Namespace, settings: BaseSettings) -> int:
        """Do it; 0, 1 or 2, as the description says."""
        # Only now: other commands have no use for any of it.
        from scrapy_rep.cli.cache.run import run

        return run(self.name, options, settings)


class _Clear(CacheSubcommand):
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--yes", action="store_true", help="do not ask before all is forgotten")


CACHE = SubcommandGroup(
    "cache",
    "look at and manage what crawls remember of robots.txt",
    _DESCRIPTION,
    (
        CacheSubcommand("list", "", "what is known, one line for each origin", _LIST),
        CacheSubcommand("show", _ORIGIN, "all that is known of one origin", _SHOW),
        CacheSubcommand("refresh", _ORIGIN, "fetch the robots.txt of one origin now", _REFRESH),
        _Clear("clear", f"[{_ORIGIN}]", "forget one origin, or all", _CLEAR),
        CacheSubcommand("path", "", "where the store is", _PATH),
    ),
)
