"""Content-Signal and Content-Usage of robots.txt as statements about a page."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from scrapy_rep.pages.statements import Source, Statement
from scrapy_rep.rep.directives.purposes import PREFERENCE_FIELDS, Preferences
from scrapy_rep.rep.parsing.lines import may_have
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

# Origins of which the records are kept ready.
_MOST = 1000


class _Ready(NamedTuple):
    robots: RobotsTxt
    agents: tuple[str, ...]
    preferences: Preferences | None


class RobotsTxtStatements:
    """The statements of robots.txt files about *purposes*."""

    def __init__(self, purposes: tuple[str, ...]) -> None:
        self._purposes = purposes
        self._ready: OrderedDict[str, _Ready] = OrderedDict()

    def of(self, policy: Policy | None, url: str, agents: tuple[str, ...]) -> Iterator[Statement]:
        """What *policy*, that of its origin, states about *url* to *agents*."""
        if policy is None or policy.robots is None:
            return
        preferences = self._preferences(policy.robots, str(policy.origin), agents)
        if preferences is None:
            return
        for purpose, record, allows in preferences.stated(url):
            text = f"{record} (line {record.line} of robots.txt)"
            yield Statement(Source.ROBOTS_TXT, text, frozenset({purpose}), allows)

    def _preferences(
        self, robots: RobotsTxt, origin: str, agents: tuple[str, ...]
    ) -> Preferences | None:
        ready = self._ready.get(origin)
        if ready is None or ready.robots is not robots or ready.agents != agents:
            preferences = None
            if may_have(robots.body, robots.dialect, PREFERENCE_FIELDS):
                records = robots.records_for(agents, PREFERENCE_FIELDS)
                preferences = Preferences(records, self._purposes) if records else None
            ready = self._ready[origin] = _Ready(robots, agents, preferences)
            if len(self._ready) > _MOST:
                self._ready.popitem(last=False)
        return ready.preferences
