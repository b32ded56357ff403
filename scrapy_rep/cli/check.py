"""``scrapy robots check``: whether URLs may be requested, and why."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FAILED, FINE, WRONG
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import (
    Column,
    Cut,
    Printer,
    Records,
    Style,
    Table,
    answer,
    because,
    names,
    span,
    verdict_as_json,
)
from scrapy_rep.cli.sources import STDIN, Robots, RobotsGetter, Session, urls_of
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

# So many URLs are in memory at a time.
_PORTION = 10_000
_COLUMNS = (
    Column("answer", width=len("refused")),
    Column("line", right=True, width=5),
    Column("reason", cut=Cut.END),
    Column("group", cut=Cut.END, shared=True),
)
_SOURCE_COLUMNS = (
    Column("source", shared=True, width=len("fetched")),
    Column("age", right=True, shared=True, width=6),
)
_URL_COLUMN = Column("url", cut=Cut.MIDDLE, shared=True)
_CSV = (
    *("url", "allowed", "reason", "line", "rule", "group", "detail", "agents"),
    *("robots_txt", "source", "age", "access"),
)

_DESCRIPTION = """\
Shows whether a crawl may request each URL, and which line of robots.txt
decides.

Exit codes: 0 all allowed, 1 some refused, 2 error or robots.txt unreachable"""
_EXAMPLES = """\
  scrapy robots check https://example.com/private/page
  scrapy robots check --agent ExampleBot --file robots.txt /private/page
  cut -f2 pages.tsv | scrapy robots check --format csv - > answers.csv"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "urls", metavar="URL", nargs="+", help="URL to check; - reads URLs from standard input"
    )
    common.add_all(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    session = Session.of(options, settings)
    urls = _Urls(options)
    write = _writer(options, session)
    exit_code = FINE

    def finish(found: Iterable[tuple[str, Robots | Verdict]]) -> None:
        nonlocal exit_code
        urls.progress.clear()
        portion = [_Checked.of(url, robots, session) for url, robots in found]
        write(portion)
        sys.stdout.flush()
        exit_code = max(exit_code, *(each.exit_code for each in portion))

    async def check(getter: RobotsGetter) -> None:
        def tell(done: int, total: int) -> None:
            urls.progress.status(f"{done:,} of {total:,} origins", done, total)

        for portion in urls.portions():
            finish(await getter.get_for(portion, tell))

    if options.file is None:
        session.crawl(check)
    else:
        robots = session.read_file(options.file)
        for portion in urls.portions():
            finish((url, robots) for url in portion)
    urls.progress.clear()
    return exit_code


@dataclass(frozen=True, slots=True)
class _Checked:
    """The result for one URL; *robots* is ``None`` if no robots.txt applies to it."""

    url: str
    robots: Robots | None
    verdict: Verdict

    @classmethod
    def of(cls, url: str, robots: Robots | Verdict, session: Session) -> _Checked:
        """With *robots* as :meth:`RobotsGetter.get_for` returns it."""
        if isinstance(robots, Verdict):
            return cls(url, None, robots)
        return cls(url, robots, robots.verdict(url, session.agents))

    @property
    def exit_code(self) -> int:
        """FAILED if the answer cannot be relied on."""
        unreachable = self.robots is not None and self.robots.unreachable
        if unreachable or self.verdict.reason is Reason.INVALID_URL:
            return FAILED
        return FINE if self.verdict.allowed else WRONG


class _Urls:
    """The URLs to check, a portion at a time."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.progress = Printer(sys.stderr)
        self._count = self._bytes_read = 0
        self._size = None
        self._urls = urls_of(options, self._read)
        if options.urls == [STDIN]:
            status = os.fstat(sys.stdin.fileno())
            self._size = status.st_size if stat.S_ISREG(status.st_mode) else None

    def portions(self) -> Iterator[list[str]]:
        """Lists of URLs, in order."""
        while portion := list(islice(self._urls, _PORTION)):
            yield portion
            self._count += len(portion)
            self.progress.status(f"{self._count:,} URLs", self._bytes_read, self._size)

    def _read(self, size: int) -> None:
        self._bytes_read += size


# -- output --------------------------------------------------------------------------


def _writer(options: argparse.Namespace, session: Session) -> Callable[[list[_Checked]], None]:
    """The function that writes a portion."""
    if options.format == "text":
        with_source = options.file is None
        columns = (*_COLUMNS, *(_SOURCE_COLUMNS if with_source else ()), _URL_COLUMN)
        table = Table(Printer(sys.stdout), columns)
        return lambda portion: table.write(
            [_cells(each, with_source) for each in portion],
            [Style.GOOD if each.verdict.allowed else Style.BAD for each in portion],
        )
    records = Records(options.format, _CSV)
    agents = {"agents": list(session.agents)}

    def write(portion: list[_Checked]) -> None:
        for each in portion:
            robots = each.robots.as_json() if each.robots else {}
            records.write({"url": each.url} | verdict_as_json(each.verdict) | agents | robots)

    return write


def _cells(each: _Checked, with_source: bool) -> list[str]:
    verdict, robots = each.verdict, each.robots
    cells = [
        answer(verdict.allowed),
        str(verdict.line or "-"),
        because(verdict),
        names(verdict.group),
    ]
    if with_source:
        cells += [robots.source.value, span(robots.age)] if robots else ["-", "-"]
    return [*cells, printable(each.url, most=None)]


CHECK = Subcommand(
    "check",
    "URL... [options]",
    "show whether URLs may be requested, and why",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
