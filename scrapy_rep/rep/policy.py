"""All that is known of one origin: the value that a crawl keeps and asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from .agents import Agents
from .dialects import Access, Dialect
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


_REASONS = {
    Access.UNAVAILABLE: Reason.UNAVAILABLE,
    Access.UNREACHABLE: Reason.UNREACHABLE,
    Access.DISALLOWED: Reason.DISALLOWED,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """The access result of an origin's robots.txt, and its rules.

    *rules* is ``None`` unless *access* is successful. Times are seconds since
    the epoch; *url* is where the last answer came from, with *status*;
    *detail* is text for people, safe to print.
    """

    origin: Origin
    access: Access
    dialect: Dialect
    rules: Rules | None
    url: str
    status: int | None
    fetched_at: float
    fresh_until: float
    detail: str = ""

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether *agents* may access *url*, which must be of this origin."""
        if self.rules is not None:
            return self.rules.allowed(url, agents)
        return self.access is Access.UNAVAILABLE or is_robots_txt(url, self.dialect)

    def verdict(self, url: str, agents: Agents, now: float) -> Verdict:
        """The same at time *now*, with what it rests on."""
        age = max(0.0, now - self.fetched_at)
        if self.rules is not None:
            return replace(self.rules.verdict(url, agents), origin=self.origin, age=age)
        if is_robots_txt(url, self.dialect):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF, origin=self.origin, age=age)
        return Verdict(
            self.access is Access.UNAVAILABLE,
            _REASONS[self.access],
            origin=self.origin,
            age=age,
            detail=self.detail,
        )
