"""From the body of a robots.txt to rules, with whatever parser can read it.

The parser that was chosen is asked first, then ``REP_FALLBACK_PARSER``, then,
where somebody else's was chosen, ours. A parser that raises, when it reads or
when it is asked later, hands over to the next; when none is left, the origin
is refused: what cannot be read cannot allow anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from scrapy.utils.misc import build_from_crawler
from scrapy.utils.python import global_object_name

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.stats import count
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.parsers.external import ExternalRules, too_costly
from scrapy_rep.parsers.logs import escape_logs
from scrapy_rep.parsers.wire import Wire, is_rewritten
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Dialect
from scrapy_rep.rep.parsing.agents import EVERYONE, Agents
from scrapy_rep.rep.parsing.lines import within_limit
from scrapy_rep.rep.parsing.urls import Origin, is_robots_txt
from scrapy_rep.rep.policy import Rules
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# What somebody who looks into a parser that failed has to know of the installation.
_VERSIONS = ("scrapy-rep", "Scrapy", "Protego")

_T = TypeVar("_T")


class ParserChain:
    """Reads bodies for one crawl."""

    def __init__(self, crawler: Crawler, settings: RepSettings) -> None:
        self._crawler = crawler
        self._settings = settings
        escape_logs(logger)
        self._spellings = Wire(crawler.settings).spellings
        chosen = settings.parser or RepRobotParser
        candidates = (chosen, settings.fallback_parser, RepRobotParser)
        # dict, as a set that keeps the order
        self._parsers = tuple(dict.fromkeys(parser for parser in candidates if parser))
        for parser in self._parsers:
            check_usable(parser, crawler, "ROBOTSTXT_PARSER or REP_FALLBACK_PARSER")

    def read(self, origin: Origin, result: FetchResult) -> CheckedRules:
        """What the body of *result*, the robots.txt of *origin*, says. Never raises."""
        body = body_to_read(result, self._settings.max_size)
        ours = self._reading(origin, RepRobotParser, body)
        return CheckedRules(
            self._readings(ours), ours, self._settings.dialect, self._report, self._spellings
        )

    def _reading(self, origin: Origin, parser: type[RobotParser], body: bytes) -> _Reading:
        read = partial(read_with, parser, self._crawler, body, self._settings.dialect)
        return _Reading(origin, parser, body, read)

    def _readings(self, ours: _Reading) -> Iterator[_Reading]:
        origin, body = ours.origin, ours.body
        for parser in self._parsers:
            if parser is RepRobotParser:
                yield ours
            elif (cost := why_not(parser, body)) is None:
                yield self._reading(origin, parser, body)
            else:
                self._report_cost(origin, parser, cost)

    def _report(self, reading: _Reading, error: Exception, asked: str) -> None:
        count(self._crawler, f"robotstxt/parser_error_count/{global_object_name(reading.parser)}")
        logger.warning(
            "%(parser)s failed on %(url)s (%(error)s) when %(asked)s; another parser is asked, "
            "or the origin refused. Please report this to the parser's authors, with the "
            "file (%(size)d bytes, SHA-256 %(digest)s), REP_DIALECT (%(dialect)s) and "
            "versions (%(versions)s).",
            {
                "parser": global_object_name(reading.parser),
                "url": printable(reading.origin.robots_url),
                "error": printable(f"{type(error).__name__}: {error}"),
                "asked": printable(asked),
                "size": len(reading.body),
                "digest": sha256(reading.body).hexdigest(),
                "dialect": self._settings.dialect.name,
                "versions": ", ".join(f"{name} {_version(name)}" for name in _VERSIONS),
            },
            exc_info=error,
            extra={"spider": self._crawler.spider},
        )

    def _report_cost(self, origin: Origin, parser: type[RobotParser], cost: str) -> None:
        count(self._crawler, "robotstxt/too_costly_count")
        logger.warning(
            "%(parser)s is not asked about %(url)s: %(cost)s",
            {
                "parser": global_object_name(parser),
                "url": printable(origin.robots_url),
                "cost": cost,
            },
            extra={"spider": self._crawler.spider},
        )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        # What freezes programs may leave it out.
        return "unknown"


def body_to_read(result: FetchResult, max_size: int) -> bytes:
    """The bytes of *result* that are read, *max_size* at most."""
    # Who fetched it may have read less of it than is read here.
    return within_limit(result.body, min(max_size, len(result.body) - result.cut))


def why_not(parser: type[RobotParser], body: bytes) -> str | None:
    """Why *body* must not go to *parser*; ``None`` where it may."""
    return None if parser is RepRobotParser else too_costly(body)


def read_with(
    parser: type[RobotParser], crawler: Crawler, body: bytes, dialect: Dialect
) -> RobotsTxt | ExternalRules:
    """*body* read by *parser*, which it must be allowed to go to: see :func:`why_not`.

    Raises whatever *parser* raises.
    """
    if parser is RepRobotParser:
        return RobotsTxt.parse(body, dialect, max_size=len(body))
    return ExternalRules.parse(parser, crawler, body, dialect)


def check_usable(parser: type[RobotParser], crawler: Crawler, setting: str) -> None:
    """Refuse to start with a parser, of *setting*, that lacks something it needs."""
    if parser is RepRobotParser:
        return
    try:
        build_from_crawler(parser, crawler, b"")
    except Exception as error:
        raise ConfigurationError(
            f"{global_object_name(parser)}, of {setting}, cannot be used: {error}"
        ) from error


class _Reading(NamedTuple):
    """One parser's turn at one body."""

    origin: Origin
    parser: type[RobotParser]
    body: bytes
    read: Callable[[], RobotsTxt | ExternalRules]


class CheckedRules:
    """Rules that go on with the next parser's when the one behind them raises.

    They allow a URL only if they allow every URL that it may be sent as: its *spellings*.
    """

    __slots__ = (
        "_dialect",
        "_ours",
        "_reading",
        "_readings",
        "_report",
        "_robots",
        "_rules",
        "_spellings",
    )

    def __init__(
        self,
        readings: Iterator[_Reading],
        ours: _Reading,
        dialect: Dialect,
        report: Callable[[_Reading, Exception, str], None],
        spellings: Callable[[str], Sequence[str]],
    ) -> None:
        self._readings = readings
        self._spellings = spellings
        self._dialect = dialect
        self._report = report
        self._reading: _Reading | None = None
        #: Our reading, until its turn has come.
        self._ours: _Reading | None = ours
        self._robots: RobotsTxt | None = None
        self._rules: Rules = self._next()

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*."""
        try:
            allowed = self._rules.allowed(url, agents)
        except Exception as error:
            self._hand_over(error, url, agents)
            return self.allowed(url, agents)
        if not allowed or not is_rewritten(url):
            return allowed
        return self._refused_spelling(url, agents) is None

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The same, with what it rests on."""
        verdict = self._verdict(url, agents)
        if verdict.allowed and is_rewritten(url):
            return self._refused_spelling(url, agents) or verdict
        return verdict

    def _verdict(self, url: str, agents: Agents) -> Verdict:
        return self._ask(lambda rules: rules.verdict(url, agents), url, agents)

    def _refused_spelling(self, url: str, agents: Agents) -> Verdict | None:
        """The verdict against the first URL that *url* may be sent as and that is refused."""
        for spelling in self._spellings(url):
            verdict = self._verdict(spelling, agents)
            if not verdict.allowed:
                return replace(verdict, sent_as=spelling)
        return None

    @property
    def robots(self) -> RobotsTxt | None:
        """The file as this package reads it, for what are no rules; ``None`` if it cannot."""
        if isinstance(self._rules, RobotsTxt):
            return self._rules
        if self._ours is not None:
            ours, self._ours = self._ours, None
            try:
                robots = ours.read()
                assert isinstance(robots, RobotsTxt)
                self._robots = robots
            except Exception as error:
                self._report(ours, error, "reading it for what are no rules")
        return self._robots

    @property
    def robot_parser(self) -> RobotParser | None:
        """The parser that is asked at present, for the ``robots_parsed`` signal."""
        if isinstance(self._rules, RobotsTxt):
            return RepRobotParser(self._rules)
        return self._rules.parser if isinstance(self._rules, ExternalRules) else None

    def _ask(self, question: Callable[[Rules], _T], about: str, agents: Agents) -> _T:
        while True:
            try:
                return question(self._rules)
            except Exception as error:
                self._hand_over(error, about, agents)

    def _hand_over(self, error: Exception, about: str, agents: Agents) -> None:
        """Go on with the next parser. The last one raises nothing, so this ends."""
        assert self._reading is not None
        names = agents if isinstance(agents, str) else ", ".join(agents)
        self._report(self._reading, error, f"asked about {about} for {names or EVERYONE}")
        self._rules = self._next()

    def _next(self) -> Rules:
        for reading in self._readings:
            self._reading = reading
            if reading is self._ours:
                self._ours = None
            try:
                return reading.read()
            except Exception as error:
                self._report(reading, error, "reading it")
        return _Unreadable(self._dialect)


class _Unreadable:
    """The rules of a file that no parser could read: nothing is allowed."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def allowed(self, url: str, agents: Agents) -> bool:
        return self.verdict(url, agents).allowed

    def verdict(self, url: str, agents: Agents) -> Verdict:
        if is_robots_txt(url, self._dialect):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        return Verdict(False, Reason.UNREADABLE)
