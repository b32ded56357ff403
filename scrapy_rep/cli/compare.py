"""``scrapy robots compare``: the same questions to all dialects and to other parsers."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FAILED, FINE, WRONG
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Column, Printer, Style, Table, answer, because, write_json
from scrapy_rep.cli.sources import (
    STDIN,
    Robots,
    Session,
    absolute,
    check_use_of_stdin,
    lines_of_stdin,
)
from scrapy_rep.parsers.external import too_costly
from scrapy_rep.rep.caching.access import FetchResult, access_result
from scrapy_rep.rep.dialects import DIALECTS, RFC9309, Access, Dialect
from scrapy_rep.rep.parsing.urls import Origin, has_other_scheme
from scrapy_rep.rep.rules.differences import Differences
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.rep.text import printable

#: By short name: the parsers of Scrapy, and the distributions that they use.
PARSERS = {
    "protego": ("scrapy.robotstxt.ProtegoRobotParser", "Protego"),
    "urllib": ("scrapy.robotstxt.PythonRobotParser", "urllib.robotparser"),
    "rerp": ("scrapy.robotstxt.RerpRobotParser", "robotexclusionrulesparser"),
}
_LONG_NAMES = {"robotexclusionrulesparser": "rerp"}
_UNKNOWN = "unknown"
# There must be room for so many characters of a URL beside the columns.
_LEAST_URL = 20
_WIDEST_CELL = len("allowed 1234")
_STYLES = {True: Style.GOOD, False: Style.BAD, None: None}

_DESCRIPTION = """\
Asks all dialects and other parsers the same: a row for each URL, and a column for
each dialect and parser with its answer and, where it tells, the deciding line. Rows
in which not all agree come first.

Under a row, each difference from rfc9309 has its class: the point on which it
depends, found by trying. What is named, changed in the reading of rfc9309 alone,
gives the other answer. Where several are needed, all of them are named. Other
parsers have habits that none of this explains: "unknown".

robots.txt files are fetched as a crawl would, or taken from the store, as "scrapy
robots check" does. Where there is no file to follow, no parser is asked, and
dialects differ in what the answer means to them. A parser that raises says so; one
is not asked where reading the file would take it too long.

--with takes names, with commas between them: protego, urllib, rerp (that is
robotexclusionrulesparser, if it is installed), or import paths of subclasses of
scrapy.robotstxt.RobotParser. The default is protego,urllib.

--json writes one object: urls, a list with url, agree, answers (for each column:
allowed, line, reason, class, error) and agents.

Exit codes: 0 all agree; 1 some differ; 2 some robots.txt could not be fetched,
something is no URL, a parser cannot be loaded, or usage.

examples:
  scrapy robots compare https://example.com/a/page https://example.com/?q=%7e
  scrapy robots compare --file robots.txt --agent ExampleBot /page /other
  scrapy robots compare --with protego,project.parsers.OurParser - < urls.txt"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "urls", metavar="URL", nargs="+", help="what to ask about; - is standard input"
    )
    parser.add_argument(
        "--with",
        dest="parsers",
        metavar="PARSERS",
        default="protego,urllib",
        help="which other parsers to ask (%(default)s by default)",
    )
    common.add_agents(parser)
    common.add_file(parser)
    common.add_fresh(parser)
    common.add_json(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    names = [name.strip() for name in options.parsers.split(",") if name.strip()]
    try:
        parsers = list(dict.fromkeys(map(find_parser, names)))
    except ValueError as error:
        message = f"--with: {printable(str(error), most=None)}"
        raise UsageError(message, print_help=False) from None
    check_use_of_stdin(options.urls, options.file)
    session = Session.of(options, settings)
    given = lines_of_stdin() if options.urls == [STDIN] else options.urls
    urls = list(map(absolute, given))
    with _silence():
        files = _files_of(urls, options.file, session, parsers)
        rows = sorted((_row(url, each) for url, each in files), key=lambda row: row.agree)
    if options.json:
        answers = [row.as_json() for row in rows]
        write_json({"agents": list(session.agents), "urls": answers})
    elif rows:
        columns = [*DIALECTS, *map(short_name, parsers)]
        _show(rows, columns, Printer(sys.stdout), session)
    if any(row.failed for row in rows):
        return FAILED
    return FINE if all(row.agree for row in rows) else WRONG


@contextmanager
def _silence() -> Iterator[None]:
    """Hide what Scrapy's parsers log about files that they cannot decode."""
    logger = logging.getLogger("scrapy.robotstxt")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


# -- parsers -------------------------------------------------------------------------


class Answers(Protocol):
    """A parser that has read a file."""

    def allowed(self, url: str, user_agent: str, /) -> object:
        """Whether *user_agent* may access *url*."""


def find_parser(name: str) -> type[RobotParser]:
    """The parser with a short *name*, or an import path.

    Raises :exc:`ValueError`, which says what is accepted, or what is not installed.
    """
    name = _LONG_NAMES.get(name, name)
    path, distribution = PARSERS.get(name, (name, ""))
    accepted = f"accepted: {', '.join([*PARSERS, *_LONG_NAMES])}, the import path of a RobotParser"
    try:
        parser = load_object(path)
    except Exception as error:
        raise ValueError(f"{name!r} cannot be loaded ({error}); {accepted}") from None
    if not (isinstance(parser, type) and issubclass(parser, RobotParser)):
        raise ValueError(f"{name!r} is no subclass of scrapy.robotstxt.RobotParser; {accepted}")
    try:
        read(parser, b"")
    except Exception as error:
        hint = f": is {distribution} installed?" if distribution else ""
        raise ValueError(f"{name!r} cannot be used ({error}){hint}") from None
    return parser


def read(parser: type[RobotParser], body: bytes) -> Answers:
    """*body*, read by *parser*. Raises whatever the parser raises."""
    instance: RobotParser = build_from_crawler(parser, _crawler(), body)
    return instance


@cache
def _crawler() -> Crawler:
    """A crawler that does nothing, which parsers need to be created."""
    return Crawler(Spider)


def short_name(parser: type[RobotParser]) -> str:
    """The name of the column of *parser*."""
    path = global_object_name(parser)
    return next((name for name, (known, _) in PARSERS.items() if known == path), parser.__name__)


# -- answers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Said:
    """The answer of one column: *allowed* or not, or in *error* why there is none.

    *points* is why it differs from the answer of rfc9309, as reStructuredText.
    """

    allowed: bool | None
    line: int = 0
    reason: str = ""
    error: str = ""
    points: tuple[str, ...] = ()

    @property
    def difference(self) -> str:
        """Why it differs from the answer of rfc9309; "" if it does not."""
        return "; ".join(self.points).replace("``", "")

    @property
    def why(self) -> str:
        """Why it differs, or why there is no answer."""
        return self.difference or self.error

    @property
    def cell(self) -> str:
        """The answer and the deciding line."""
        if self.allowed is None:
            return "-"
        return f"{answer(self.allowed)} {self.line or ''}".rstrip()


@dataclass(frozen=True, slots=True)
class _Row:
    """One URL, and the answer of each column."""

    url: str
    said: dict[str, _Said]
    failed: bool = False

    @property
    def agree(self) -> bool:
        """Whether all answers are the same."""
        return len({said.allowed for said in self.said.values()} - {None}) < 2

    def as_json(self) -> dict[str, object]:
        """All of it."""
        answers = {
            name: {
                "allowed": said.allowed,
                "line": said.line or None,
                "reason": said.reason or None,
                "class": said.difference or None,
                "error": said.error or None,
            }
            for name, said in self.said.items()
        }
        return {"url": self.url, "agree": self.agree, "answers": answers}


class _Files:
    """One robots.txt, as all dialects and parsers read it."""

    def __init__(
        self, robots: Robots, session: Session, parsers: Sequence[type[RobotParser]]
    ) -> None:
        self.failed = robots.unreachable
        self._agents = session.agents
        result = _result(robots)
        # As far as a crawl reads it.
        self._body = session.parse(result.body, cut=result.cut).body
        overrides = session.settings.status_overrides
        self._access = {
            name: access_result(result, dialect, overrides) for name, dialect in DIALECTS.items()
        }
        self._dialects = {
            name: session.parse(result.body, cut=result.cut, dialect=dialect)
            for name, dialect in DIALECTS.items()
        }
        self._answers = {short_name(parser): self._read(parser) for parser in parsers}
        self._differences = Differences(self._body)

    def _read(self, parser: type[RobotParser]) -> Answers | str:
        """The file as *parser* reads it, or why it does not."""
        if self._access[RFC9309.name] is not Access.SUCCESSFUL:
            return "not asked: there is no file"
        if cost := too_costly(self._body):
            return f"not asked: {cost}"
        try:
            return read(parser, self._body)
        except Exception as error:
            return _raised(error)

    def ask(self, url: str) -> dict[str, _Said]:
        """The answers about *url*."""
        ours = self._by_dialect(url, RFC9309)
        said = {RFC9309.name: ours}
        for dialect in DIALECTS.values():
            if dialect is not RFC9309:
                said[dialect.name] = self._explained(url, dialect, ours)
        for name, answers in self._answers.items():
            said[name] = self._by_parser(url, answers, ours)
        return said

    def _by_dialect(self, url: str, dialect: Dialect) -> _Said:
        access = self._access[dialect.name]
        if access is not Access.SUCCESSFUL:
            return _Said(access is Access.UNAVAILABLE, reason=access.value)
        verdict = self._dialects[dialect.name].verdict(url, self._agents)
        return _Said(verdict.allowed, verdict.line, verdict.reason.value)

    def _explained(self, url: str, dialect: Dialect, ours: _Said) -> _Said:
        said = self._by_dialect(url, dialect)
        if said.allowed is ours.allowed:
            return said
        if self._access[dialect.name] is not self._access[RFC9309.name]:
            points: tuple[str, ...] = ("what the answer to the request means",)
        else:
            points = self._differences.from_dialect(url, self._agents, dialect)
        return _Said(said.allowed, said.line, said.reason, points=points or (_UNKNOWN,))

    def _by_parser(self, url: str, answers: Answers | str, ours: _Said) -> _Said:
        if isinstance(answers, str):
            return _Said(None, error=answers)
        try:
            allowed = bool(answers.allowed(url, self._agents[0] if self._agents else "*"))
        except Exception as error:
            return _Said(None, error=_raised(error))
        if allowed is ours.allowed:
            return _Said(allowed)
        points = self._differences.of_answer(url, self._agents, allowed)
        return _Said(allowed, points=points or (_UNKNOWN,))


def _result(robots: Robots) -> FetchResult:
    """The response that a crawl uses, or the failure."""
    if robots.policy is None:
        return FetchResult(robots.name, 200, robots.file.body if robots.file else b"")
    last = robots.policy.copy or robots.policy.entry.outage
    assert last is not None
    return last.result


def _raised(error: Exception) -> str:
    return printable(f"raised {type(error).__name__}: {error}")


def _files_of(
    urls: Sequence[str], file: str | None, session: Session, parsers: Sequence[type[RobotParser]]
) -> Iterator[tuple[str, _Files | Verdict]]:
    """Each of *urls* with the robots.txt that applies to it, or the verdict if none does."""
    if file is not None:
        files = _Files(session.read_file(file), session, parsers)
        for url in urls:
            yield url, Verdict(True, Reason.OTHER_SCHEME) if has_other_scheme(url) else files
        return
    origins = {url: origin_or_verdict(url) for url in urls}
    wanted = {origin for origin in origins.values() if isinstance(origin, Origin)}
    found: Mapping[Origin, Robots] = (
        session.crawl(lambda getter: getter.get(wanted)) if wanted else {}
    )
    by_origin = {origin: _Files(each, session, parsers) for origin, each in found.items()}
    for url, origin in origins.items():
        yield url, by_origin[origin] if isinstance(origin, Origin) else origin


def _row(url: str, files: _Files | Verdict) -> _Row:
    """The answers about *url*, to which *files* applies; a verdict is not compared."""
    if isinstance(files, Verdict):
        said = _Said(None, reason=files.reason.value, error=because(files))
        return _Row(url, {RFC9309.name: said}, failed=not files.allowed)
    answers = files.ask(url)
    is_invalid = answers[RFC9309.name].reason == Reason.INVALID_URL.value
    return _Row(url, answers, failed=files.failed or is_invalid)


# -- text ----------------------------------------------------------------------------


def _show(rows: list[_Row], names: list[str], printer: Printer, session: Session) -> None:
    printer.line(f"asked as {session.agent_names}")
    printer.line()
    cells = [[row.said[name].cell if name in row.said else "-" for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    if printer.width and sum(widths) + 2 * len(widths) + _LEAST_URL > printer.width:
        _show_as_list(rows, printer)
    else:
        columns = [Column(*pair) for pair in zip(names, widths, strict=True)]
        table = Table(printer, [*columns, Column("url")])
        for row, texts in zip(rows, cells, strict=True):
            style = _STYLES[row.said[RFC9309.name].allowed]
            table.add([*texts, printable(row.url, most=None)], style)
            for name, said in row.said.items():
                if said.why:
                    printer.line(f"    {name}: {said.why}")
    differing = sum(not row.agree for row in rows)
    printer.line()
    printer.line(f"{differing:,} of {len(rows):,} differ")


def _show_as_list(rows: list[_Row], printer: Printer) -> None:
    """The same for a terminal that is too narrow for the columns."""
    for row in rows:
        printer.line(printer.styled(printable(row.url, most=None), Style.BOLD))
        for name, said in row.said.items():
            shown = printer.styled(said.cell.ljust(_WIDEST_CELL), _STYLES[said.allowed])
            printer.line(f"  {name:<10}  {shown}  {said.why}".rstrip())


COMPARE = Subcommand(
    "compare",
    "URL... [options]",
    "ask all dialects and other parsers the same",
    _DESCRIPTION,
    _add_options,
    _run,
)
