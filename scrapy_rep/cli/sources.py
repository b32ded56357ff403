"""Where a command has a robots.txt from: a crawl with the project's settings, or a file."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from scrapy_rep.cli.crawling import crawl
from scrapy_rep.cli.ending import Trouble
from scrapy_rep.middleware import verdict_now
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.rep.agents import Agents
from scrapy_rep.rep.dialects import Access, Dialect
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import InvalidURL, Origin, has_other_scheme
from scrapy_rep.rep.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings, tokens
from scrapy_rep.stores.open import StoreSpec
from scrapy_rep.tokens import AgentTokens

_T = TypeVar("_T")

#: The argument that means standard input.
STDIN = "-"
# "host:8080/path" has no scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?!\d+(?:[/?#]|$))")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


class Source(Enum):
    """Where a robots.txt has come from."""

    FILE = "file"
    #: What an earlier crawl has kept, and is still good.
    STORE = "store"
    FETCHED = "fetched"


@dataclass(frozen=True, slots=True)
class Robots:
    """What is known of one robots.txt, *at* a time in seconds since the epoch.

    *name* is that of the file, or its URL: untrusted text. *file* is what it says,
    in our own reading, and ``None`` where there is none to follow. *policy* is what
    holds for a crawl with *settings*; ``None`` for a file.
    """

    name: str
    source: Source
    file: RobotsTxt | None
    policy: Policy | None
    settings: RepSettings
    at: float

    @property
    def age(self) -> float | None:
        """Seconds since it was fetched or confirmed, or last tried; ``None`` for a file."""
        return None if self.policy is None else max(0.0, self.at - self.policy.fetched_at)

    @property
    def unreachable(self) -> bool:
        """Whether it could not be fetched, nor is there a copy to use."""
        return self.policy is not None and self.policy.access is Access.UNREACHABLE

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """Whether *agents* may access *url*: a crawl, or by the rules in the file."""
        if self.policy is not None:
            return verdict_now(self.policy, url, agents, self.settings, self.at)
        if has_other_scheme(url):
            return Verdict(True, Reason.OTHER_SCHEME)
        assert self.file is not None
        return self.file.verdict(url, agents)

    def told(self) -> dict[str, Any]:
        """Where it is from, as JSON."""
        policy = self.policy
        return {
            "robots_txt": self.name if policy is None else policy.url,
            "source": self.source.value,
            "age": None if self.age is None else round(self.age, 3),
            "access": None if policy is None else policy.access.value,
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, and how: the settings of a project and the options of a command."""

    scrapy_settings: BaseSettings
    settings: RepSettings
    agents: tuple[str, ...]
    fresh: bool

    @classmethod
    def of(cls, options: argparse.Namespace, scrapy_settings: BaseSettings) -> Asking:
        """With those of --agent, --dialect and --fresh that the command has."""
        named = vars(options)
        if named.get("dialect") is not None:
            scrapy_settings = scrapy_settings.copy()
            scrapy_settings.set("REP_DIALECT", options.dialect, "cmdline")
        settings = RepSettings.read(scrapy_settings)
        try:
            agents = tokens(named.get("agent", []))
        except ValueError as error:
            message = f"--agent: {printable(str(error), most=None)}"
            raise UsageError(message, print_help=False) from None
        if not agents:
            agents = AgentTokens(settings, None).of(Request("data:,"))
        return cls(scrapy_settings, settings, agents, named.get("fresh", False))

    @property
    def dialect(self) -> Dialect:
        """In which files are read."""
        return self.settings.dialect

    @property
    def as_whom(self) -> str:
        """Who asks, for people."""
        return ", ".join(self.agents) or "nobody in particular"

    def read(self, path: str) -> Robots:
        """The robots.txt in the file at *path*, or from standard input.

        Raises :exc:`~scrapy_rep.cli.ending.Trouble`.
        """
        try:
            body = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        except OSError as error:
            raise Trouble(f"cannot read {path}: {error.strerror}") from None
        name = "standard input" if path == STDIN else path
        return Robots(name, Source.FILE, self.parse(body), None, self.settings, 0.0)

    def look_at(self, source: str) -> Robots:
        """The robots.txt that *source* names: a URL of its origin, a file, or standard input.

        Raises as :meth:`read` and :meth:`ask_with`, and :exc:`UsageError`.
        """
        if is_url(source):
            return self.ask(origin_of(source))
        if source != STDIN and not Path(source).exists():
            raise Trouble(f"there is no file {source} (a URL has a scheme, such as https://)")
        return self.read(source)

    def parse(self, body: bytes, *, cut: bool = False, dialect: Dialect | None = None) -> RobotsTxt:
        """*body* as far as a crawl reads it; where it was *cut*, without half a line."""
        limit = min(self.settings.max_size, len(body) - cut)
        return RobotsTxt.parse(body, dialect or self.dialect, max_size=limit)

    def ask(self, origin: Origin) -> Robots:
        """The robots.txt of *origin*, by a crawl that does nothing else."""

        async def work(origins: Origins) -> Robots:
            return (await origins.get([origin]))[origin]

        return self.ask_with(work)

    def ask_with(self, work: Callable[[Origins], Awaitable[_T]]) -> _T:
        """What *work* makes of what can be asked in one crawl.

        Raises what *work* raises, and :exc:`~scrapy_rep.cli.crawling.CrawlFailed`.
        """
        return crawl(
            self.scrapy_settings,
            lambda crawler: work(Origins(crawler, self)),
            _without_a_new_file(self.settings.store),
        )


def _without_a_new_file(store: StoreSpec) -> dict[str, Any]:
    """Settings that make no file where there is none: commands that look leave nothing behind."""
    file = store.file()
    return {"REP_STORE": "memory"} if file is not None and not file.exists() else {}


class Origins:
    """Asks for robots.txt files in one crawl, each of them once, as a crawl for pages would."""

    def __init__(self, crawler: Crawler, asking: Asking) -> None:
        self._asking = asking
        self._clock = steady()
        self._started = self._clock()
        # With the settings that the crawl has.
        settings = RepSettings.read(crawler.settings)
        self._policies = PolicyCache(crawler, settings, self._clock)
        self._at_once = max(1, crawler.settings.getint("CONCURRENT_REQUESTS"))
        self._refreshed: set[Origin] = set()

    async def get(
        self, origins: Iterable[Origin], tell: Callable[[], None] = lambda: None
    ) -> dict[Origin, Robots]:
        """What is known of each of *origins*; *tell* is called as often as one is there.

        As many are asked at once as a crawl would (CONCURRENT_REQUESTS).
        """
        found: dict[Origin, Robots] = {}
        waiting = iter(dict.fromkeys(origins))

        async def take_turns() -> None:
            for origin in waiting:
                found[origin] = await self._get(origin)
                tell()

        turns = [deferred_from_coro(take_turns()) for _ in range(self._at_once)]
        outcomes: list[tuple[bool, Any]] = await maybe_deferred_to_future(
            DeferredList(turns, consumeErrors=True)
        )
        for succeeded, outcome in outcomes:
            if not succeeded:
                outcome.raiseException()
        return found

    async def _get(self, origin: Origin) -> Robots:
        asking = Request(origin.robots_url)
        if self._asking.fresh and origin not in self._refreshed:
            self._refreshed.add(origin)
            policy = await self._policies.revalidate(origin, asking)
        else:
            policy = await maybe_deferred_to_future(self._policies.get(origin, asking))
        source = Source.FETCHED if policy.fetched_at >= self._started else Source.STORE
        file = None
        if policy.access is Access.SUCCESSFUL and policy.copy is not None:
            result = policy.copy.result
            file = self._asking.parse(result.body, cut=result.cut)
        settings = self._asking.settings
        return Robots(origin.robots_url, source, file, policy, settings, self._clock())


# -- URLs ----------------------------------------------------------------------------


def absolute(text: str) -> str:
    """*text* as a URL; where it has no scheme, https is meant. A path stays one.

    >>> absolute("example.com/page"), absolute("example.com:8080"), absolute("/page")
    ('https://example.com/page', 'https://example.com:8080', '/page')
    """
    return text if text.startswith("/") or _SCHEME.match(text) else f"https://{text}"


def origin_of(text: str) -> Origin:
    """The origin of *text*, a URL or a host. Raises :exc:`UsageError`."""
    try:
        return Origin.of(absolute(text))
    except InvalidURL as error:
        raise UsageError(f"no origin: {printable(str(error))}", print_help=False) from None


def is_url(text: str) -> bool:
    """Whether *text*, which names a URL or a file, is a URL."""
    return "://" in text


def check_use_of_stdin(urls: list[str], file: str | None) -> None:
    """Raise :exc:`UsageError` where standard input is to be read twice."""
    if STDIN in urls and (len(urls) > 1 or file == STDIN):
        message = "-, standard input, can be the only URL, or the file, but not both"
        raise UsageError(message, print_help=False)


def lines_of_stdin(tell: Callable[[int], None] = lambda octets: None) -> Iterator[str]:
    """The lines of standard input that are not blank, as URLs.

    What is not UTF-8 in them is percent-encoded. *tell* is called with the octets of
    each line.
    """
    for line in sys.stdin.buffer:
        tell(len(line))
        stripped = line.strip()
        if stripped:
            try:
                yield stripped.decode()
            except UnicodeDecodeError:
                yield _NOT_ASCII.sub(lambda m: b"%%%02X" % ord(m.group()), stripped).decode()
