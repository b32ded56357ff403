"""The directives that a crawl honours. They can only refuse what the rules allow.

RFC 9309 §2.2.4: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from ..parsing.agents import Agents, as_key
from ..parsing.lines import Field, may_have
from ..parsing.records import ContentUse
from ..rules.robotstxt import RobotsTxt
from .pace import Pace
from .purposes import PREFERENCE_FIELDS, Preferences, Refusal

# The size of a cache; a crawl has one or two agents.
_MAX_AGENTS = 32


@dataclass(frozen=True, slots=True)
class HonouredDirectives:
    """The fields about delays and times that a crawl honours, and the purposes of the crawl."""

    pacing: frozenset[Field] = frozenset()
    purposes: tuple[str, ...] = ()
    #: How much of a page the crawl's content shows (REP_CONTENT_USE), ``None`` if not set.
    content_use: ContentUse | None = None

    @property
    def fields(self) -> frozenset[Field]:
        """All fields that the crawl honours."""
        if self.purposes:
            return self.pacing | PREFERENCE_FIELDS
        # Content-Usage cannot say how much may be shown.
        return self.pacing if self.content_use is None else self.pacing | {Field.CONTENT_SIGNAL}


class Directives:
    """The records of one file that a crawl honours, read when needed."""

    def __init__(self, robots: RobotsTxt, honoured: HonouredDirectives) -> None:
        self._for = lru_cache(_MAX_AGENTS)(partial(_read, robots, honoured))

    @classmethod
    def of(cls, robots: RobotsTxt, honoured: HonouredDirectives) -> Directives | None:
        """The directives in *robots*; ``None`` if it has none, like most files."""
        found = may_have(robots.body, robots.dialect, honoured.fields)
        return cls(robots, honoured) if found else None

    def pace(self, agents: Agents) -> Pace:
        """The delays and times for *agents*."""
        return self._for(as_key(agents))[0]

    def refusal(self, url: str, agents: Agents) -> Refusal | None:
        """The record that refuses *url* to *agents*, if there is one."""
        return self._for(as_key(agents))[1].refusal(url)


def _read(
    robots: RobotsTxt, honoured: HonouredDirectives, agents: Agents
) -> tuple[Pace, Preferences]:
    records = robots.records_for(agents, honoured.fields)
    return Pace.of(records), Preferences(records, honoured.purposes, honoured.content_use)
