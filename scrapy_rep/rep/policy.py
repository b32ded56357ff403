"""All that is known of one origin: the value that a crawl keeps and asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from .access import FetchResult
from .agents import Agents
from .dialects import Access, Dialect, WhenUnreachable
from .facts import Copy, Facts
from .urls import Origin, is_robots_txt
from .verdict import Reason, Verdict


class Rules(Protocol):
    """What a robots.txt says, whoever read it."""

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*."""

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The same, with what it rests on."""

    def crawl_delay(self, agents: Agents) -> float | None:
        """Seconds that *agents* are asked to wait between requests."""


_DEFER = WhenUnreachable.DEFER
_REASONS = {
    Access.UNAVAILABLE: Reason.UNAVAILABLE,
    Access.UNREACHABLE: Reason.UNREACHABLE,
    Access.DISALLOWED: Reason.DISALLOWED,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for an origin from now until *until*, and what it rests on.

    *rules* is ``None`` unless *access* is successful. *facts* is what fetches
    have told, *copy* the answer in it that is in use, if one is. *due* says
    that it is time to fetch again, though this may still be used. Times are
    seconds since the epoch.
    """

    origin: Origin
    access: Access
    dialect: Dialect
    rules: Rules | None
    facts: Facts
    copy: Copy | None
    until: float
    due: bool = False
    #: What becomes of requests while the access result is "unreachable".
    when_unreachable: WhenUnreachable = WhenUnreachable.DISALLOW

    @property
    def url(self) -> str:
        """Where the last answer came from, after redirects."""
        return self._last.url

    @property
    def status(self) -> int | None:
        """The HTTP status of the last answer, if there was one."""
        return self._last.status

    @property
    def detail(self) -> str:
        """What more is known of the last answer; text for people, safe to print."""
        return self._last.detail

    @property
    def fetched_at(self) -> float:
        """When the copy in use was fetched or confirmed, or a fetch last tried."""
        if self.copy is not None:
            return self.copy.confirmed_at
        return self.facts.outage.last_at if self.facts.outage else 0.0

    @property
    def unreachable_since(self) -> float | None:
        """When the attempts that failed in a row began, ``None`` if none did."""
        return self.facts.outage.since if self.facts.outage else None

    @property
    def defers(self) -> bool:
        """Whether requests are to be kept until more is known."""
        return self.access is Access.UNREACHABLE and self.when_unreachable is _DEFER

    @property
    def _last(self) -> FetchResult:
        known = self.copy or self.facts.outage
        assert known is not None
        return known.result

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*, which must be of this origin."""
        if self.rules is not None:
            return self.rules.allowed(url, agents)
        return self._allows_all() or is_robots_txt(url, self.dialect)

    def verdict(self, url: str, agents: Agents, now: float) -> Verdict:
        """The same at time *now*, with what it rests on."""
        age = max(0.0, now - self.fetched_at)
        if self.rules is not None:
            return replace(self.rules.verdict(url, agents), origin=self.origin, age=age)
        if is_robots_txt(url, self.dialect):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF, origin=self.origin, age=age)
        return Verdict(
            self._allows_all(),
            _REASONS[self.access],
            origin=self.origin,
            age=age,
            detail=self.detail,
        )

    def _allows_all(self) -> bool:
        if self.access is Access.UNREACHABLE:
            return self.when_unreachable is WhenUnreachable.ALLOW
        return self.access is Access.UNAVAILABLE
