"""``scrapy robots check``: whether URLs may be requested, and why."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FAILED, FINE, WRONG
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import (
    Column,
    Printer,
    Progress,
    Style,
    Table,
    answer,
    because,
    names,
    span,
    verdict_as_json,
    write_json,
)
from scrapy_rep.cli.sources import (
    STDIN,
    Robots,
    RobotsGetter,
    Session,
    absolute,
    check_use_of_stdin,
    lines_of_stdin,
)
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.rep.text import printable

# So many URLs are in memory at a time.
_PORTION = 10_000
# The widest that columns become, also on terminals with fewer columns than _WIDE_TERMINAL.
_WIDEST_RULE = 60
_WIDEST_RULE_IN_TERMINAL = 30
_WIDE_TERMINAL = 160
_WIDEST_GROUP = 12

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


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", metavar="URL", nargs="+", help="what to check, or -")
    common.add_all(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    check_use_of_stdin(options.urls, options.file)
    session = Session.of(options, settings)
    urls = _Urls(options.urls)
    output = _Json(session) if options.json else _Text(with_source=options.file is None)
    exit_code = FINE

    def write(portion: list[_Checked]) -> None:
        nonlocal exit_code
        urls.progress.clear()
        output.write(portion)
        exit_code = max(exit_code, *(each.exit_code for each in portion))

    if options.file is None:
        session.crawl(lambda getter: _check_live(urls, getter, session, write))
    else:
        robots = session.read_file(options.file)
        for portion in urls.portions():
            write([_Checked(url, robots, robots.verdict(url, session.agents)) for url in portion])
    urls.progress.clear()
    return exit_code


async def _check_live(
    urls: _Urls,
    getter: RobotsGetter,
    session: Session,
    write: Callable[[list[_Checked]], None],
) -> None:
    for portion in urls.portions():
        by_url = {url: origin_or_verdict(url) for url in portion}
        wanted = dict.fromkeys(origin for origin in by_url.values() if isinstance(origin, Origin))
        fetched = 0

        def tell(total: int = len(wanted)) -> None:
            nonlocal fetched
            fetched += 1
            urls.progress.show(f"{fetched:,} of {total:,} origins", fetched, total)

        found = await getter.get(wanted, tell)
        write([_checked(url, by_url[url], found, session) for url in portion])


@dataclass(frozen=True, slots=True)
class _Checked:
    """The result for one URL; *robots* is ``None`` if no robots.txt applies to it."""

    url: str
    robots: Robots | None
    verdict: Verdict

    @property
    def exit_code(self) -> int:
        """FAILED if the answer cannot be relied on."""
        unreachable = self.robots is not None and self.robots.unreachable
        if unreachable or self.verdict.reason is Reason.INVALID_URL:
            return FAILED
        return FINE if self.verdict.allowed else WRONG


def _checked(
    url: str, origin: Origin | Verdict, found: Mapping[Origin, Robots], session: Session
) -> _Checked:
    if isinstance(origin, Verdict):
        return _Checked(url, None, origin)
    return _Checked(url, found[origin], found[origin].verdict(url, session.agents))


class _Urls:
    """The URLs to check, a portion at a time."""

    def __init__(self, arguments: list[str]) -> None:
        self.progress = Progress()
        self._count = self._bytes_read = 0
        self._size = None
        self._lines: Iterable[str] = arguments
        if arguments == [STDIN]:
            status = os.fstat(sys.stdin.fileno())
            self._size = status.st_size if stat.S_ISREG(status.st_mode) else None
            self._lines = lines_of_stdin(self._read)

    def portions(self) -> Iterator[list[str]]:
        """Lists of URLs, in order."""
        lines = map(absolute, self._lines)
        while portion := list(islice(lines, _PORTION)):
            yield portion
            self._count += len(portion)
            self.progress.show(f"{self._count:,} URLs", self._bytes_read, self._size)

    def _read(self, size: int) -> None:
        self._bytes_read += size


# -- output --------------------------------------------------------------------------


class _Json:
    """JSON Lines."""

    def __init__(self, session: Session) -> None:
        self._agents = list(session.agents)

    def write(self, portion: list[_Checked]) -> None:
        """Write *portion*."""
        for each in portion:
            value = {"url": each.url} | verdict_as_json(each.verdict) | {"agents": self._agents}
            write_json(value | (each.robots.as_json() if each.robots else {}))
        sys.stdout.flush()


class _Text:
    """A table, with columns as wide as the first portion needs them."""

    def __init__(self, *, with_source: bool) -> None:
        self._with_source = with_source
        self._table: Table | None = None

    def write(self, portion: list[_Checked]) -> None:
        """Write *portion*."""
        rows = [self._cells(each) for each in portion]
        if self._table is None:
            self._table = self._begin(rows)
        for each, row in zip(portion, rows, strict=True):
            self._table.add(row, Style.GOOD if each.verdict.allowed else Style.BAD)

    def _begin(self, rows: list[list[str]]) -> Table:
        printer = Printer(sys.stdout)
        narrow = (printer.width or _WIDE_TERMINAL) < _WIDE_TERMINAL
        widest = _WIDEST_RULE_IN_TERMINAL if narrow else _WIDEST_RULE
        columns = [
            Column("answer", len("refused")),
            Column("line", 5, right=True),
            Column("reason", min(max(len(row[2]) for row in rows), widest)),
            Column("group", min(max(len(row[3]) for row in rows), _WIDEST_GROUP)),
        ]
        if self._with_source:
            columns += [Column("source", len("fetched")), Column("age", 6, right=True)]
        return Table(printer, [*columns, Column("url")])

    def _cells(self, each: _Checked) -> list[str]:
        verdict, robots = each.verdict, each.robots
        cells = [
            answer(verdict.allowed),
            str(verdict.line or "-"),
            because(verdict),
            names(verdict.group),
        ]
        if self._with_source:
            cells += [robots.source.value, span(robots.age)] if robots else ["-", "-"]
        return [*cells, printable(each.url, most=None)]


CHECK = Subcommand(
    "check",
    "URL... [options]",
    "whether URLs may be requested, and why",
    _DESCRIPTION,
    _add_options,
    _run,
)
