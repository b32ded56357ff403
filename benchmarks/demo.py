"""The demo's crawl, of sites that have the real robots.txt files of an archive.

Each site is asked for some URLs made from the rules in its own file, for "/", and for a path
that no rule knows. The exit code is 1 if an outcome was not the one that the parser gives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks._corpus import Member, corpus_arguments, paths_to_ask, read_members
from scrapy_rep.cli.demo import run_demo
from scrapy_rep.cli.demo_sites import AGENT_TOKEN, DemoSite, because, says
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable

# Bytes of a file that are served: more than is read of any robots.txt.
_MOST_SERVED = 2**20
# Open files of a crawl beside the listening sockets: both ends of each connection, and those
# of Python, Scrapy and the terminal.
_OTHER_FILES = 512
# For many sites.
_SETTINGS = {
    "LOG_ENABLED": False,
    # Scrapy starts as many tasks for each response, and there are no items.
    "CONCURRENT_ITEMS": 1,
    # The default queue of Scrapy looks at every host for each request.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
}
# Rules are about paths, so any host will do.
_ORIGIN = "http://127.0.0.1"


def read_sites(archive: Path, count: int) -> Iterator[DemoSite]:
    """Sites with *count* files of *archive*, evenly spread."""
    for member in read_members(archive, count, _MOST_SERVED):
        yield _site(member)


def _site(member: Member) -> DemoSite:
    robots = RobotsTxt.parse(member.body)
    verdicts = {path: robots.verdict(_ORIGIN + path, AGENT_TOKEN) for path in paths_to_ask(member)}
    pages = {path: "" if each.allowed else because(each) for path, each in verdicts.items()}
    return DemoSite(printable(member.name), says(member.body), pages)


def allow_open_files(sites: int) -> None:
    """Raise the limit on open files, if there is one, to what *sites* sites need.

    Raises :exc:`CommandError` if this user may not have so many.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    needed = sites + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        # Not further than needed, because macOS refuses infinity.
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError) as error:
        message = f"{sites} sites take {needed} open files, but the limit is {soft} ({error})"
        raise CommandError(f"{message}: take fewer with --sites, or raise it (ulimit -n)") from None


def main() -> int:
    """Crawl, and return the exit code."""
    parser = corpus_arguments(__doc__)
    parser.add_argument("--sites", type=int, default=200, help="how many files (%(default)s)")
    options = parser.parse_args()
    sites = list(read_sites(options.corpus, options.sites))
    allow_open_files(len(sites))
    return run_demo(sites, sys.stdout, _SETTINGS)


if __name__ == "__main__":
    sys.exit(main())
