"""The policy of one origin: its rules and directives, and whether they may be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .caching.access import FetchResult
from .caching.cache_entry import CacheEntry, StoredResponse
from .dialects import Access, Dialect, WhenUnreachable
from .directives.directives import Directives
from .directives.pace import Pace
from .parsing.agents import Agents
from .parsing.urls import Origin, is_robots_txt
from .rules.robotstxt import RobotsTxt
from .rules.verdict import Reason, Verdict


class Rules(Protocol):
    """The rules of a robots.txt, by our parser or an external one."""

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*."""

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The answer of :meth:`allowed` with its reason."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of *origin*, valid until the time *until*, in seconds since the epoch.

    If *access* is successful, *rules* is set, and *robots* is the file as this package reads it.
    *directives* contains the directives that the crawl honours, if the file has any. *stored* is
    the response in *entry* that is in use, if any. *due* says that it is time to fetch again.
    """

    origin: Origin
    access: Access
    dialect: Dialect
    rules: Rules | None
    entry: CacheEntry
    stored: StoredResponse | None
    until: float
    due: bool = False
    when_unreachable: WhenUnreachable = WhenUnreachable.DISALLOW
    robots: RobotsTxt | None = None
    directives: Directives | None = None
    #: The other URLs that a request for a URL may be sent as.
    spellings: Callable[[str], Sequence[str]] = lambda url: ()

    @property
    def url(self) -> str:
        """The URL of the last response, after redirects."""
        return self._last.url

    @property
    def status(self) -> int | None:
        """The HTTP status of the last response, ``None`` if there was no response."""
        return self._last.status

    @property
    def detail(self) -> str:
        """Details of the last response or failure, as text that is safe to print."""
        return self._last.detail

    @property
    def file(self) -> FetchResult | None:
        """The robots.txt whose rules apply, ``None`` if no rules apply."""
        if self.access is Access.SUCCESSFUL and self.stored is not None:
            return self.stored.result
        return None

    @property
    def fetched_at(self) -> float:
        """When the response in use was fetched or confirmed; without one, the last attempt."""
        if self.stored is not None:
            return self.stored.confirmed_at
        return self.entry.outage.last_at if self.entry.outage else 0.0

    @property
    def defers(self) -> bool:
        """Whether requests are held until the robots.txt is reachable."""
        return self.access is Access.UNREACHABLE and self.when_unreachable is WhenUnreachable.DEFER

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The values of the Sitemap lines, untrusted text; see :attr:`RobotsTxt.sitemaps`."""
        return self.robots.sitemaps if self.robots is not None else ()

    def crawl_delay(self, agents: Agents) -> float | None:
        """The Crawl-delay for *agents* in seconds, as written in the file."""
        return self.robots.crawl_delay(agents) if self.robots is not None else None

    def pace(self, agents: Agents) -> Pace:
        """The delays and visit times for *agents* that the crawl honours."""
        return self.directives.pace(agents) if self.directives is not None else Pace()

    @property
    def _last(self) -> FetchResult:
        known = self.stored or self.entry.outage
        assert known is not None
        return known.result

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*, which must be of this origin."""
        if self.rules is not None:
            return self.rules.allowed(url, agents)
        return self._allows_all() or is_robots_txt(url, self.dialect)

    def verdict(self, url: str, agents: Agents, now: float) -> Verdict:
        """The answer of :meth:`allowed` at time *now* with its reason."""
        if self.rules is not None:
            verdict = self.rules.verdict(url, agents)
        elif is_robots_txt(url, self.dialect):
            verdict = Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        else:
            reason = Reason(self.access.value)
            verdict = Verdict(self._allows_all(), reason, detail=self.detail)
        return self._complete(verdict, now)

    def objection(self, url: str, agents: Agents, now: float) -> Verdict | None:
        """The verdict if an honoured directive refuses *url*, which the rules allow."""
        if self.robots is None or self.directives is None or is_robots_txt(url, self.dialect):
            return None
        for sent_as in (url, *self.spellings(url)):
            if refusal := self.directives.refusal(sent_as, agents):
                verdict = Verdict(
                    False,
                    Reason.PURPOSE,
                    group=refusal.record.names_among(self.robots.lines_naming(agents)),
                    detail=refusal.why,
                    record=refusal.record,
                    sent_as="" if sent_as == url else sent_as,
                )
                return self._complete(verdict, now)
        pace = self.directives.pace(agents)
        if not pace.seconds_until_open(now):
            return None
        return self._complete(Verdict(False, Reason.VISIT_TIME, detail=pace.times), now)

    def _complete(self, verdict: Verdict, now: float) -> Verdict:
        return replace(verdict, origin=self.origin, age=max(0.0, now - self.fetched_at))

    def _allows_all(self) -> bool:
        if self.access is Access.UNREACHABLE:
            return self.when_unreachable is WhenUnreachable.ALLOW
        return self.access is Access.UNAVAILABLE
