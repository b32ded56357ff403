"""The parser chain: turns the body of a robots.txt into rules.

``ROBOTSTXT_PARSER`` is used first, then ``REP_FALLBACK_PARSER``, then our own parser. If a parser
raises an exception, while it parses or later, the next one is used. If all parsers fail, the
origin is refused: a file that cannot be read does not allow anything.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version

from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.python import global_object_name

from scrapy_rep.observers.stats import count
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.parsers.external import (
    ExternalRules,
    check_usable,
    escape_logs,
    read_with,
    too_costly,
)
from scrapy_rep.parsers.wire import is_rewritten, spellings
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.parsing.agents import EVERYONE, Agents
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Verdict
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)


class ParserChain:
    """Reads bodies for one crawl."""

    def __init__(self, crawler: Crawler, settings: RepSettings) -> None:
        self.crawler = crawler
        self.dialect = settings.dialect
        self._max_size = settings.max_size
        escape_logs(logger)
        #: Other URLs that a request for a URL may be sent as.
        self.spellings = partial(spellings, crawler.settings.getwithbase("DOWNLOAD_HANDLERS"))
        chosen = settings.parser or RepRobotParser
        candidates = (chosen, settings.fallback_parser, RepRobotParser)
        #: In the order in which they are used; a dict is an ordered set.
        self.parsers = tuple(dict.fromkeys(parser for parser in candidates if parser))
        for parser in self.parsers:
            check_usable(parser, crawler, "ROBOTSTXT_PARSER or REP_FALLBACK_PARSER")

    def read(self, origin: Origin, result: FetchResult) -> CheckedRules:
        """The rules in the body of *result*, the robots.txt of *origin*. It never raises."""
        return CheckedRules(self, origin, result.body_to_read(self._max_size))


@dataclass(eq=False, repr=False)
class CheckedRules:
    """The rules in *body*. If the parser in use raises an exception, the next one replaces it.

    A URL is allowed only if all its spellings are allowed: the URLs that it may be sent as.
    """

    chain: ParserChain
    origin: Origin
    body: bytes

    def __post_init__(self) -> None:
        self._parsers = iter(self.chain.parsers)
        self._use_next()

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*."""
        try:
            allowed = self._rules.allowed(url, agents)
        except Exception as error:
            self._replace(error, url, agents)
            return self.allowed(url, agents)
        return allowed and (not is_rewritten(url) or self._refusal(url, agents) is None)

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The same, with what it rests on."""
        verdict = self._verdict(url, agents)
        refusal = self._refusal(url, agents) if verdict.allowed else None
        return refusal or verdict

    def _refusal(self, url: str, agents: Agents) -> Verdict | None:
        """The verdict against the first URL that *url* may be sent as and that is refused."""
        for spelling in self.chain.spellings(url):
            verdict = self._verdict(spelling, agents)
            if not verdict.allowed:
                return replace(verdict, sent_as=spelling)
        return None

    def _verdict(self, url: str, agents: Agents) -> Verdict:
        try:
            return self._rules.verdict(url, agents)
        except Exception as error:
            self._replace(error, url, agents)
            return self._verdict(url, agents)

    @cached_property
    def robots(self) -> RobotsTxt | None:
        """The file as our parser reads it, for example for directives; ``None`` if it fails."""
        rules = self._read(RepRobotParser)
        return rules if isinstance(rules, RobotsTxt) else None

    @property
    def robot_parser(self) -> RobotParser | None:
        """The parser in use, for the ``robots_parsed`` signal."""
        rules = self._rules
        return RepRobotParser(rules) if isinstance(rules, RobotsTxt) else rules.parser

    # -- which parser ---------------------------------------------------------------

    def _use_next(self) -> None:
        """Use the next parser that can read the body. The last rules never raise."""
        self._rules: RobotsTxt | ExternalRules = ExternalRules(None, self.chain.dialect)
        for parser in self._parsers:
            self._parser = parser
            rules = self.robots if parser is RepRobotParser else self._read(parser)
            if rules is not None:
                self._rules = rules
                break

    def _read(self, parser: type[RobotParser]) -> RobotsTxt | ExternalRules | None:
        """The body as *parser* reads it; ``None`` if it cannot."""
        try:
            rules = read_with(parser, self.chain.crawler, self.body, self.chain.dialect)
        except Exception as error:
            self._report(parser, error, "parsing it")
            return None
        if rules is None:
            count(self.chain.crawler, "robotstxt/too_costly_count")
            message = "%(parser)s skipped %(url)s: %(why)s. The next parser is used."
            self._warn(message, parser, why=too_costly(self.body))
        return rules

    def _replace(self, error: Exception, about: str, agents: Agents) -> None:
        names = agents if isinstance(agents, str) else ", ".join(agents)
        self._report(self._parser, error, f"checking {about} for {names or EVERYONE}")
        self._use_next()

    def _report(self, parser: type[RobotParser], error: Exception, task: str) -> None:
        count(self.chain.crawler, f"robotstxt/parser_error_count/{global_object_name(parser)}")
        packages = ("scrapy-rep", "Scrapy", "Protego")
        self._warn(
            "%(parser)s failed on %(url)s (%(what)s) while %(task)s. The next parser is used. "
            "If there is none, all pages of this origin are refused. Please report this to the "
            "parser's authors, with the file (%(size)d bytes, SHA-256 %(digest)s), REP_DIALECT "
            "(%(dialect)s) and versions (%(versions)s).",
            parser,
            error,
            what=printable(f"{type(error).__name__}: {error}"),
            task=printable(task),
            size=len(self.body),
            digest=sha256(self.body).hexdigest(),
            dialect=self.chain.dialect.name,
            versions=", ".join(f"{package} {_version(package)}" for package in packages),
        )

    def _warn(
        self, text: str, parser: type[RobotParser], error: Exception | None = None, **values: object
    ) -> None:
        values |= {"parser": global_object_name(parser), "url": printable(self.origin.robots_url)}
        logger.warning(text, values, exc_info=error, extra={"spider": self.chain.crawler.spider})


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        # Tools that freeze programs may leave out the metadata.
        return "unknown"
