"""``scrapy robots check``: whether URLs may be requested, and why."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE
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
from scrapy_rep.cli.sources import STDIN, Robots, RobotsGetter, Session, exit_code_for, urls_of
from scrapy_rep.rep.rules.verdict import Verdict
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
    common.add(parser, "urls", "--agent", "--file", "--dialect", "--fresh")
    common.add_json(parser, "csv")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    session = Session.of(options, settings)
    progress = Printer(sys.stderr)
    portions = _portions(urls_of(options), progress, is_stdin=options.urls == [STDIN])
    write = _writer(options, session)
    exit_code = FINE

    def finish(found: Iterable[tuple[str, Robots | Verdict]]) -> None:
        nonlocal exit_code
        progress.clear()
        portion = [_checked(url, robots, session) for url, robots in found]
        write(portion)
        sys.stdout.flush()
        exit_code = max(exit_code, *(exit_code_for(each.robots, each.verdict) for each in portion))

    async def check(getter: RobotsGetter) -> None:
        def tell(done: int, total: int) -> None:
            progress.status(f"{done:,} of {total:,} origins", done, total)

        for portion in portions:
            finish(await getter.get_for(portion, tell))

    if options.file is None:
        session.crawl(check)
    else:
        robots = session.read_file(options.file)
        for portion in portions:
            finish((url, robots) for url in portion)
    progress.clear()
    return exit_code


def _portions(urls: Iterator[str], progress: Printer, *, is_stdin: bool) -> Iterator[list[str]]:
    """*urls*, in lists; how many there were so far is the status of *progress*."""
    count, size = 0, None
    if is_stdin:
        status = os.fstat(sys.stdin.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
    while portion := list(islice(urls, _PORTION)):
        yield portion
        count += len(portion)
        progress.status(f"{count:,} URLs", sys.stdin.buffer.tell() if size else 0, size)


class _Checked(NamedTuple):
    """The result for one URL; *robots* is ``None`` if no robots.txt applies to it."""

    url: str
    robots: Robots | None
    verdict: Verdict


def _checked(url: str, robots: Robots | Verdict, session: Session) -> _Checked:
    if isinstance(robots, Verdict):
        return _Checked(url, None, robots)
    return _Checked(url, robots, robots.verdict(url, session.agents))


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

    def as_json(each: _Checked) -> dict[str, object]:
        robots = each.robots.as_json() if each.robots else {}
        return {"url": each.url} | verdict_as_json(each.verdict) | agents | robots

    return lambda portion: records.write(*map(as_json, portion))


def _cells(each: _Checked, with_source: bool) -> list[str]:
    verdict, robots = each.verdict, each.robots
    line, group = str(verdict.line or "-"), names(verdict.group)
    cells = [answer(verdict.allowed), line, because(verdict), group]
    if with_source:
        cells += [robots.source, span(robots.age)] if robots else ["-", "-"]
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
