"""``scrapy robots compare``: the same questions to all dialects and to other parsers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import NamedTuple

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.python import global_object_name

from ..parsers.external import too_costly
from ..rep.caching.access import access_result
from ..rep.dialects import DIALECTS, RFC9309, Access
from ..rep.rules.differences import Differences
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.rules.verdict import Reason
from ..rep.text import printable
from .errors import FAILED, FINE, WRONG, CommandError
from .options import AGENT, FILE, FRESH, URLS, Options, Settings, argument, format_of, subcommand
from .output import Column, Cut, Printer, Records, Style, Table, answer, because, write_json
from .sources import Answer, Robots, Session, urls_of

#: By short name: the parsers of Scrapy, and the distributions that they use.
PARSERS = {
    "protego": ("scrapy.robotstxt.ProtegoRobotParser", "Protego"),
    "urllib": ("scrapy.robotstxt.PythonRobotParser", "urllib.robotparser"),
    "rerp": ("scrapy.robotstxt.RerpRobotParser", "robotexclusionrulesparser"),
}
_LONG_NAMES = {"robotexclusionrulesparser": "rerp"}
_ANSWER_FIELDS = ("allowed", "line", "reason", "class", "error")
# There must be room for so many characters of a URL beside the columns.
_LEAST_URL = 16
_STYLES = {True: Style.GOOD, False: Style.BAD, None: None}

_ARGUMENTS = (
    URLS,
    argument(
        "--with",
        dest="parsers",
        metavar="PARSERS",
        default="protego,urllib",
        help=f"other parsers, separated by commas ({', '.join(PARSERS)}, or import paths of "
        "RobotParser classes; %(default)s by default)",
    ),
    *(AGENT, FILE, FRESH, format_of("csv")),
)
_SUMMARY = "compare the answers of all dialects and of other parsers"


@subcommand("URL... [options]", _SUMMARY, *_ARGUMENTS)
def compare(options: Options, settings: Settings) -> int:
    """Shows the answers of all dialects and of other parsers for each URL, and why
    they differ. URLs with different answers come first.

    Exit codes: 0 all agree, 1 some differ, 2 error or robots.txt unreachable

    Examples:
      scrapy robots compare https://example.com/a/page https://example.com/?q=%7e
      scrapy robots compare --file robots.txt --agent ExampleBot /page /other
      scrapy robots compare --with protego,project.parsers.OurParser - < urls.txt
    """
    session = Session(options, settings)
    urls = list(urls_of(options))
    with _silence():
        parsers = _parsers(options.parsers)
        found = session.answers(urls, options.file)
        rows = sorted(_rows(found, parsers), key=lambda row: row.agree)
    if options.format == "json":
        write_json({"agents": list(session.agents), "urls": [row.as_json() for row in rows]})
    elif options.format == "csv":
        records = Records("csv", ("url", "agree", "name", *_ANSWER_FIELDS))
        for row in rows:
            about = {"url": row.url, "agree": row.agree}
            records.write(*(about | {"name": n} | said.as_json() for n, said in row.said.items()))
    elif rows:
        _show(rows, [*DIALECTS, *map(short_name, parsers)], Printer(), session)
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


def _parsers(names: str) -> list[type[RobotParser]]:
    given = (name.strip() for name in names.split(","))
    try:
        return list(dict.fromkeys(find_parser(name) for name in given if name))
    except ValueError as error:
        raise CommandError(f"argument --with: {error}") from None


def find_parser(name: str) -> type[RobotParser]:
    """The parser with a short *name*, or an import path. A ValueError says what is accepted."""
    name = _LONG_NAMES.get(name, name)
    path, distribution = PARSERS.get(name, (name, ""))
    accepted = f"accepted: {', '.join([*PARSERS, *_LONG_NAMES])}, the import path of a RobotParser"
    try:
        parser = load_object(path)
    except Exception as error:
        raise ValueError(f"{name!r} cannot be loaded ({error}); {accepted}") from None
    if not (isinstance(parser, type) and issubclass(parser, RobotParser)):
        raise ValueError(f"{name!r} is not a subclass of scrapy.robotstxt.RobotParser; {accepted}")
    try:
        read(parser, b"")
    except Exception as error:
        hint = f": is {distribution} installed?" if distribution else ""
        raise ValueError(f"{name!r} cannot be used ({error}){hint}") from None
    return parser


# Parsers need one to be created.
_crawler = cache(partial(Crawler, Spider))


def read(parser: type[RobotParser], body: bytes) -> RobotParser:
    """*body*, read by *parser*. Raises whatever the parser raises."""
    return build_from_crawler(parser, _crawler(), body)


def short_name(parser: type[RobotParser]) -> str:
    """The name of the column of *parser*."""
    path = global_object_name(parser)
    return next((name for name, (known, _) in PARSERS.items() if known == path), parser.__name__)


class _Said(NamedTuple):
    """The answer of one column, *allowed* or not, and *why* it differs from that of rfc9309.

    If there is no answer, *why* says so.
    """

    allowed: bool | None
    line: int = 0
    reason: str = ""
    why: str = ""

    @property
    def cell(self) -> str:
        """The answer and the deciding line."""
        if self.allowed is None:
            return "-"
        return f"{answer(self.allowed)} {self.line or ''}".rstrip()

    def as_json(self) -> dict[str, object]:
        why = self.why or None
        return {
            "allowed": self.allowed,
            "line": self.line or None,
            "reason": self.reason or None,
            "class": None if self.allowed is None else why,
            "error": why if self.allowed is None else None,
        }


class _Row(NamedTuple):
    """One URL, and the answer of each column."""

    url: str
    said: dict[str, _Said]
    failed: bool

    @property
    def notes(self) -> list[str]:
        """Why answers differ, or why there is none."""
        return [f"{name}: {said.why}" for name, said in self.said.items() if said.why]

    @property
    def agree(self) -> bool:
        """Whether all answers are the same."""
        return len({said.allowed for said in self.said.values()} - {None}) < 2

    def as_json(self) -> dict[str, object]:
        answers = {name: said.as_json() for name, said in self.said.items()}
        return {"url": self.url, "agree": self.agree, "answers": answers}


class _File:
    """One robots.txt, as all dialects and parsers read it."""

    def __init__(self, robots: Robots, parsers: Iterable[type[RobotParser]]) -> None:
        session, result = robots.session, robots.result
        self._agents, overrides = session.agents, session.settings.status_overrides
        self._access, self._dialects = dict[str, Access](), dict[str, RobotsTxt]()
        for name, dialect in DIALECTS.items():
            self._access[name] = access_result(result, dialect, overrides)
            self._dialects[name] = session.parse(result, dialect)
        # As far as a crawl reads it.
        body = session.parse(result).body
        self._parsers = {short_name(parser): self._read(parser, body) for parser in parsers}
        self._differences = Differences(body)

    def _read(self, parser: type[RobotParser], body: bytes) -> RobotParser | str:
        """The file as *parser* reads it, or why it does not."""
        if self._access[RFC9309.name] is not Access.SUCCESSFUL:
            return "not asked: there is no file"
        if cost := too_costly(body):
            return f"not asked: {cost}"
        try:
            return read(parser, body)
        except Exception as error:
            return _raised(error)

    def ask(self, url: str) -> dict[str, _Said]:
        """The answers about *url*."""
        answers = {name: self._by_dialect(url, name) for name in DIALECTS}
        answers |= {name: self._by_parser(url, parser) for name, parser in self._parsers.items()}
        same = (None, answers[RFC9309.name].allowed)
        for name, said in answers.items():
            if said.allowed not in same:
                answers[name] = said._replace(why=self._difference(name, url, said.allowed))
        return answers

    def _by_dialect(self, url: str, name: str) -> _Said:
        access = self._access[name]
        if access is not Access.SUCCESSFUL:
            return _Said(access is Access.UNAVAILABLE, reason=access.value)
        verdict = self._dialects[name].verdict(url, self._agents)
        return _Said(verdict.allowed, verdict.line, verdict.reason.value)

    def _by_parser(self, url: str, parser: RobotParser | str) -> _Said:
        if isinstance(parser, str):
            return _Said(None, why=parser)
        try:
            return _Said(bool(parser.allowed(url, self._agents[0] if self._agents else "*")))
        except Exception as error:
            return _Said(None, why=_raised(error))

    def _difference(self, name: str, url: str, allowed: bool | None) -> str:
        """Why the column *name* differs from rfc9309."""
        if name not in DIALECTS:
            points = self._differences.of_answer(url, self._agents, bool(allowed))
        elif self._access[name] is not self._access[RFC9309.name]:
            return "what the answer to the request means"
        else:
            points = self._differences.from_dialect(url, self._agents, DIALECTS[name])
        # They are reStructuredText.
        return "; ".join(points).replace("``", "") or "unknown"


def _raised(error: Exception) -> str:
    return printable(f"raised {type(error).__name__}: {error}")


def _rows(found: Iterable[Answer], parsers: Iterable[type[RobotParser]]) -> Iterator[_Row]:
    files: dict[str, _File] = {}
    for each in found:
        url, robots, verdict = each
        if robots is None or verdict.reason is Reason.OTHER_SCHEME:
            said = _Said(None, reason=verdict.reason.value, why=because(verdict))
            answers = {RFC9309.name: said}
        else:
            if robots.name not in files:
                files[robots.name] = _File(robots, parsers)
            answers = files[robots.name].ask(url)
        yield _Row(url, answers, failed=each.exit_code == FAILED)


def _show(rows: list[_Row], names: list[str], printer: Printer, session: Session) -> None:
    printer.line(f"product tokens: {session.agent_names}\n")
    cells = [[row.said[name].cell if name in row.said else "-" for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    # A terminal may be too narrow for the columns.
    if printer.width and sum(widths) + 2 * len(widths) + _LEAST_URL > printer.width:
        _show_as_list(rows, printer)
    else:
        columns = [Column(name, styled=name == RFC9309.name) for name in names]
        columns.append(Column("url", cut=Cut.MIDDLE, shared=True))
        for row, answers in zip(rows, cells, strict=True):
            answers.append(printable(row.url, most=None))
        styles = [_STYLES[row.said[RFC9309.name].allowed] for row in rows]
        Table(printer, columns).write(cells, styles, [row.notes for row in rows])
    printer.line(f"\n{sum(not row.agree for row in rows):,} of {len(rows):,} differ")


def _show_as_list(rows: list[_Row], printer: Printer) -> None:
    for row in rows:
        printer.line(printer.styled(printable(row.url, most=None), Style.BOLD))
        for name, said in row.said.items():
            shown = printer.styled(said.cell.ljust(len("allowed 1234")), _STYLES[said.allowed])
            printer.line(f"  {name:<10}  {shown}  {said.why}".rstrip())
