"""Where a command gets a robots.txt: from a crawl with the project's settings, or a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from ..policies.cache import PolicyCache, steady
from ..rep.caching.access import FetchResult
from ..rep.decision import verdict_now
from ..rep.dialects import Access, Dialect
from ..rep.parsing.urls import InvalidURL, Origin, has_other_scheme
from ..rep.policy import Policy
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.rules.verdict import Reason, Verdict, origin_or_verdict
from ..settings import RepSettings, tokens
from ..tokens import AgentTokens
from .crawling import with_crawler
from .errors import FAILED, FINE, WRONG, CommandError
from .options import Options, Settings
from .output import agents_json

_T = TypeVar("_T")

#: The argument that means standard input.
STDIN = "-"
# "host:8080/path" has no scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?!\d+(?:[/?#]|$))")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True, slots=True)
class Robots:
    """One robots.txt as it is *at* a time, in seconds since the epoch, for a *session*.

    *name* is that of the file, or its URL: untrusted text. *source* is "file", "fetched", or
    "store": an earlier crawl stored it, and it is still good. *result* is the response that a
    crawl uses or the failure, and *file* its content as scrapy-rep reads it, ``None`` if there
    is nothing to read. *policy* is what applies to a crawl; ``None`` for a file.
    """

    name: str
    source: str
    result: FetchResult
    file: RobotsTxt | None
    session: Session
    policy: Policy | None = None
    at: float = 0.0

    @property
    def age(self) -> float | None:
        """Seconds since it was fetched or confirmed, or last tried; ``None`` for a file."""
        return None if self.policy is None else max(0.0, self.at - self.policy.fetched_at)

    @property
    def access(self) -> str | None:
        """What a crawl may do; ``None`` for a file."""
        return self.policy.access.value if self.policy else None

    @property
    def unreachable(self) -> bool:
        """Whether it could not be fetched, and no copy may be used instead."""
        return self.access == Access.UNREACHABLE.value

    def answer(self, url: str) -> Answer:
        """Whether a crawl may access *url*, or whether the rules of a file allow it."""
        agents, terms = self.session.agents, self.session.settings.terms
        if self.policy is not None:
            verdict = verdict_now(self.policy, url, agents, terms, self.at)
        elif has_other_scheme(url):
            verdict = Verdict(True, Reason.OTHER_SCHEME)
        else:
            assert self.file is not None
            verdict = self.file.verdict(url, agents)
        return Answer(url, self, verdict)

    def as_json(self) -> dict[str, Any]:
        """Where it comes from."""
        return {
            "robots_txt": self.result.url,
            "source": self.source,
            "age": None if self.age is None else round(self.age, 3),
            "access": self.access,
        }


class Answer(NamedTuple):
    """The answer about one URL; *robots* is ``None`` if no robots.txt applies to it."""

    url: str
    robots: Robots | None
    verdict: Verdict

    @property
    def exit_code(self) -> int:
        """FINE or WRONG; FAILED if the verdict cannot be relied on."""
        is_invalid = self.verdict.reason is Reason.INVALID_URL
        if is_invalid or (self.robots is not None and self.robots.unreachable):
            return FAILED
        return FINE if self.verdict.allowed else WRONG

    def as_json(self) -> dict[str, Any]:
        """The verdict, and what decided it."""
        verdict = self.verdict
        decided = verdict.rule or verdict.record
        return {
            "allowed": verdict.allowed,
            "reason": verdict.reason.value,
            "line": verdict.line or None,
            "rule": str(decided) if decided else None,
            "group": agents_json(verdict.group),
            "detail": verdict.detail,
        }


class Session:
    """The settings of a project, with --agent, --dialect and --fresh where a command has them."""

    def __init__(self, options: Options, scrapy_settings: Settings) -> None:
        named = vars(options)
        self.fresh: bool = named.get("fresh", False)
        if named.get("dialect") is not None:
            scrapy_settings = scrapy_settings.copy()
            scrapy_settings.set("REP_DIALECT", options.dialect, "cmdline")
        self.scrapy_settings = scrapy_settings
        self.settings = RepSettings.read(scrapy_settings)
        try:
            agents = tokens(named.get("agent", []))
        except ValueError as error:
            raise CommandError(f"argument --agent: {error}") from None
        self.agents = agents or AgentTokens(self.settings, None).of(Request("data:,"))

    @property
    def agent_names(self) -> str:
        """The product tokens, for people."""
        return ", ".join(self.agents) or "(no product token)"

    def parse(self, result: FetchResult, dialect: Dialect | None = None) -> RobotsTxt:
        """The body of *result* as far as a crawl reads it."""
        limit = result.size_to_read(self.settings.max_size)
        return RobotsTxt.parse(result.body, dialect or self.settings.dialect, max_size=limit)

    def read_file(self, path: str) -> Robots:
        """The robots.txt in the file at *path* ("-" is standard input). Raises CommandError."""
        try:
            body = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from None
        name = "standard input" if path == STDIN else path
        result = FetchResult(name, 200, body)
        return Robots(name, "file", result, self.parse(result), self)

    def answers(self, urls: Sequence[str], path: str | None = None) -> list[Answer]:
        """The answers about *urls*, by the file at *path*, or by a crawl where one is needed."""
        if path is not None:
            robots = self.read_file(path)
            return [robots.answer(url) for url in urls]
        verdicts = [(url, v) for url in urls if isinstance(v := origin_or_verdict(url), Verdict)]
        if len(verdicts) == len(urls):
            return [Answer(url, None, verdict) for url, verdict in verdicts]
        return self.crawl(lambda getter: getter.answers(urls))

    def load(self, source: str) -> Robots:
        """The robots.txt that *source* names: a URL of its origin, a file, or standard input."""
        if is_url(source):
            return self.get(origin_of(source))
        if source != STDIN and not Path(source).exists():
            raise CommandError(f"there is no file {source}; for a URL, write https://{source}")
        return self.read_file(source)

    def get(self, origin: Origin) -> Robots:
        """The robots.txt of *origin*, by a crawl."""
        return self.crawl(lambda getter: getter.get(origin))

    def crawl(
        self, work: Callable[[RobotsGetter], Awaitable[_T]], *, in_memory: bool = False
    ) -> _T:
        """What *work* returns, which can get many robots.txt in one crawl (``with_crawler``)."""
        file = self.settings.store.file()
        # These commands create no store where there is none.
        in_memory = in_memory or (file is not None and not file.exists())
        changes = {"REP_STORE": "memory"} if in_memory else {}
        return with_crawler(
            self.scrapy_settings, lambda crawler: work(RobotsGetter(crawler, self)), changes
        )


class RobotsGetter:
    """Gets robots.txt files in one crawl as a crawl for pages would, each of them once."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self.crawler = crawler
        self._session = session
        self._clock = steady()
        self._started = self._clock()
        self._cache = PolicyCache(crawler, RepSettings.read(crawler.settings), self._clock)
        self._refreshed: set[Origin] = set()

    async def answers(
        self, urls: Sequence[str], tell: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Answer]:
        """The answers about *urls*.

        *tell* is called after each robots.txt with how many are there, and how many will be.
        """
        by_url = [(url, origin_or_verdict(url)) for url in urls]
        origins = {origin for _, origin in by_url if isinstance(origin, Origin)}
        found: dict[Origin, Robots] = {}

        async def get(origin: Origin) -> None:
            found[origin] = await self.get(origin)
            tell(len(found), len(origins))

        gets = DeferredList([deferred_from_coro(get(each)) for each in origins], consumeErrors=True)
        outcomes: list[tuple[bool, Any]] = await maybe_deferred_to_future(gets)
        for succeeded, outcome in outcomes:
            if not succeeded:
                outcome.raiseException()
        return [
            found[origin].answer(url) if isinstance(origin, Origin) else Answer(url, None, origin)
            for url, origin in by_url
        ]

    async def get(self, origin: Origin) -> Robots:
        """The robots.txt of *origin*."""
        request = Request(origin.robots_url)
        if self._session.fresh and origin not in self._refreshed:
            self._refreshed.add(origin)
            policy = await self._cache.revalidate(origin, request)
        else:
            policy = await maybe_deferred_to_future(self._cache.get(origin, request))
        response = policy.stored or policy.entry.outage
        assert response is not None
        return Robots(
            origin.robots_url,
            "fetched" if policy.fetched_at >= self._started else "store",
            response.result,
            self._session.parse(response.result) if policy.access is Access.SUCCESSFUL else None,
            self._session,
            policy,
            self._clock(),
        )


def absolute(text: str, *, file: bool = False) -> str:
    """*text* as a URL: without a scheme, as an https URL. A path is left alone.

    Raises :exc:`CommandError` where *text* is likely meant otherwise: a private host without a
    scheme or, if it is asked about a *file*, a path without its slash.

    >>> absolute("example.com/page"), absolute("example.com:8080"), absolute("/page")
    ('https://example.com/page', 'https://example.com:8080', '/page')
    """
    if text.startswith("/") or _SCHEME.match(text):
        return text
    authority, slash, _ = text.partition("/")
    if _is_private(authority):
        raise CommandError(f"{text!r} has no scheme: did you mean http://{text}?")
    if file and not (slash and "." in authority):
        raise CommandError(f"{text!r} is neither a path nor a URL: did you mean /{text}?")
    return f"https://{text}"


def _is_private(authority: str) -> bool:
    host = re.sub(r":\d*$", "", authority).strip("[]")
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False


def origin_of(text: str) -> Origin:
    """The origin of *text*, a URL or a host. Raises :exc:`CommandError`."""
    try:
        return Origin.of(absolute(text))
    except InvalidURL as error:
        raise CommandError(f"no origin: {error}") from None


def is_url(text: str) -> bool:
    """Whether *text*, the name of a file or a URL, is a URL."""
    return "://" in text


def urls_of(options: Options) -> Iterator[str]:
    """The URLs of a command that has URLs and --file. "-" means those of standard input."""
    from_stdin = STDIN in options.urls
    if from_stdin and (len(options.urls) > 1 or options.file == STDIN):
        raise CommandError("-, standard input, can be the only URL, or the file, but not both")
    whole = partial(absolute, file=options.file is not None)
    # Arguments are looked at before a crawl starts; standard input may be long.
    return map(whole, lines_of_stdin()) if from_stdin else iter(list(map(whole, options.urls)))


def lines_of_stdin() -> Iterator[str]:
    """The lines that are not blank; bytes that are not UTF-8 are percent-encoded."""
    for line in filter(None, map(bytes.strip, sys.stdin.buffer)):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            yield _NOT_ASCII.sub(lambda m: b"%%%02X" % ord(m.group()), line).decode()
