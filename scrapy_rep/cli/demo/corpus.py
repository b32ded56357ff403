"""Sites with real robots.txt files, out of an archive."""

from __future__ import annotations

from pathlib import Path

from scrapy_rep.cli.corpus import Member, paths_to_ask, read_members
from scrapy_rep.cli.demo.results import because
from scrapy_rep.cli.demo.sites import AGENT_TOKEN, DemoSite, Page, Says
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable

# Octets of a member that are served: more than is read of any robots.txt.
_MAX_SERVED = 2**20
# Any host will do: rules are about paths.
_ORIGIN = "http://127.0.0.1"


def read_sites(path: Path, count: int) -> tuple[DemoSite, ...]:
    """*count* members of the ZIP archive at *path*, evenly spread; all, if it has fewer.

    Raises :exc:`~scrapy_rep.cli.corpus.UnusableCorpus`.
    """
    return tuple(_site(member) for member in read_members(path, count, _MAX_SERVED))


def _site(member: Member) -> DemoSite:
    robots = RobotsTxt.parse(member.body)
    pages = tuple(_page(robots, path) for path in paths_to_ask(member))
    return DemoSite(printable(member.name), Says(member.body), pages)


def _page(robots: RobotsTxt, path: str) -> Page:
    url = _ORIGIN + path
    if robots.allowed(url, AGENT_TOKEN):
        return Page(path, True)
    return Page(path, False, because(robots.verdict(url, AGENT_TOKEN)))
