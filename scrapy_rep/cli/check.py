"""``scrapy robots check``: whether URLs may be requested, and why."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from itertools import islice

from ..rep.rules.verdict import Verdict
from ..rep.text import printable, span
from .errors import FINE
from .options import AGENT, DIALECT, FILE, FRESH, URLS, Options, Settings, format_of, subcommand
from .output import Column, Cut, Printer, Records, Style, Table, answer, because, names
from .sources import STDIN, Answer, Robots, RobotsGetter, Session, urls_of

# So many URLs are in memory at a time.
_PORTION = 10_000
_COLUMNS = (
    Column("answer", width=len("refused"), styled=True),
    Column("line", right=True, width=5),
    Column("reason", cut=Cut.END),
    Column("group", cut=Cut.END, shared=True),
)
_SOURCE_COLUMNS = (
    Column("source", shared=True, width=len("fetched")),
    Column("age", right=True, shared=True, width=6),
)
_URL_COLUMN = Column("url", cut=Cut.MIDDLE, shared=True)
_FIELDS = (
    *("url", "allowed", "reason", "line", "rule", "group", "detail", "agents"),
    *("robots_txt", "source", "age", "access"),
)
_SUMMARY = "show whether URLs may be requested, and why"
_ARGUMENTS = (URLS, AGENT, FILE, DIALECT, FRESH, format_of("csv"))


@subcommand("URL... [options]", _SUMMARY, *_ARGUMENTS)
def check(options: Options, settings: Settings) -> int:
    """Shows whether a crawl may request each URL, and which line of robots.txt
    decides.

    Exit codes: 0 all allowed, 1 some refused, 2 error or robots.txt unreachable

    Examples:
      scrapy robots check https://example.com/private/page
      scrapy robots check --agent ExampleBot --file robots.txt /private/page
      cut -f2 pages.tsv | scrapy robots check --format csv - > answers.csv
    """
    session = Session(options, settings)
    progress = Printer(sys.stderr)
    portions = _portions(urls_of(options), progress, is_stdin=options.urls == [STDIN])
    write = _writer(options, session)
    exit_code = FINE

    def finish(answers: list[Answer]) -> None:
        nonlocal exit_code
        progress.clear()
        write(answers)
        sys.stdout.flush()
        exit_code = max(exit_code, *(each.exit_code for each in answers))

    async def crawl(getter: RobotsGetter) -> None:
        def tell(done: int, total: int) -> None:
            progress.status(f"{done:,} of {total:,} origins", done, total)

        for portion in portions:
            finish(await getter.answers(portion, tell))

    if options.file is None:
        session.crawl(crawl)
    else:
        robots = session.read_file(options.file)
        for portion in portions:
            finish(list(map(robots.answer, portion)))
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


def _writer(options: Options, session: Session) -> Callable[[list[Answer]], None]:
    """The function that writes a portion."""
    if options.format == "text":
        with_source = options.file is None
        columns = (*_COLUMNS, *(_SOURCE_COLUMNS if with_source else ()), _URL_COLUMN)
        table = Table(Printer(), columns)
        return lambda answers: table.write(
            [_cells(*each, with_source) for each in answers],
            [Style.GOOD if each.verdict.allowed else Style.BAD for each in answers],
        )
    records = Records(options.format, _FIELDS)
    agents = {"agents": list(session.agents)}

    def as_json(found: Answer) -> dict[str, object]:
        source = found.robots.as_json() if found.robots else {}
        return {"url": found.url} | found.as_json() | agents | source

    return lambda answers: records.write(*map(as_json, answers))


def _cells(url: str, robots: Robots | None, verdict: Verdict, with_source: bool) -> list[str]:
    line, group = str(verdict.line or "-"), names(verdict.group)
    cells = [answer(verdict.allowed), line, because(verdict), group]
    if with_source:
        cells += [robots.source, span(robots.age)] if robots else ["-", "-"]
    return [*cells, printable(url, most=None)]
