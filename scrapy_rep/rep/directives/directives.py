"""What a file asks for beyond its rules, as far as a crawl heeds it.

Here may live: which other records a crawl acts on, and whether a file has any.
Here may not live: what they come to (:mod:`.pace`, :mod:`.purposes`).

RFC 9309 §2.2.4: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol". They add to what the rules refuse, and take nothing from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..parsing.agents import Agents
from ..parsing.lines import Field, may_have
from ..parsing.records import ContentUse
from ..rules.robotstxt import RobotsTxt
from .pace import Pace
from .purposes import PREFERENCE_FIELDS, Preferences, Refusal

# What is made when first asked for is kept for as many agents; a crawl asks for
# one or two.
_MAX_AGENTS = 32


@dataclass(frozen=True, slots=True)
class HonouredDirectives:
    """Which other records a crawl acts on: those of *pacing*, and what it is for."""

    pacing: frozenset[Field] = frozenset()
    purposes: tuple[str, ...] = ()
    #: How much of a page the crawl shows again, ``None`` if it does not say.
    content_use: ContentUse | None = None

    @property
    def fields(self) -> frozenset[Field]:
        """The fields of all of them."""
        if self.purposes:
            return self.pacing | PREFERENCE_FIELDS
        # Content-Usage has no term for this.
        return self.pacing if self.content_use is None else self.pacing | {Field.CONTENT_SIGNAL}


class Directives:
    """The records of one file that a crawl heeds, read when they are first asked for."""

    def __init__(self, robots: RobotsTxt, honoured: HonouredDirectives) -> None:
        self._robots = robots
        self._honoured = honoured
        self._read: dict[Agents, tuple[Pace, Preferences]] = {}

    @classmethod
    def of(cls, robots: RobotsTxt, honoured: HonouredDirectives) -> Directives | None:
        """Those of *robots*; ``None`` where it has none, as most files."""
        if not may_have(robots.body, robots.dialect, honoured.fields):
            return None
        return cls(robots, honoured)

    def pace(self, agents: Agents) -> Pace:
        """How fast and when *agents* are asked to come."""
        return self._for(agents)[0]

    def refusal(self, url: str, agents: Agents) -> Refusal | None:
        """Why *agents* are not to request *url*, by what its site lets it be used for."""
        return self._for(agents)[1].refusal(url)

    def _for(self, agents: Agents) -> tuple[Pace, Preferences]:
        key = agents if isinstance(agents, str) else tuple(agents)
        if key not in self._read:
            if len(self._read) >= _MAX_AGENTS:
                self._read.clear()
            records = self._robots.records_for(key, self._honoured.fields)
            pacing = (record for record in records if record.field in self._honoured.pacing)
            preferring = [record for record in records if record.field in PREFERENCE_FIELDS]
            self._read[key] = (
                Pace.of(pacing),
                Preferences(preferring, self._honoured.purposes, self._honoured.content_use),
            )
        return self._read[key]
