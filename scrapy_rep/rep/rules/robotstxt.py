"""One robots.txt: verdicts, other records and findings. This file only combines others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from ..dialects import RFC9309, Dialect
from ..lint.findings import Finding, read_findings
from ..parsing.agents import EVERYONE, AgentLine, Agents, as_key, preferences
from ..parsing.groups import Group, OurGroup, groups_about, our_group
from ..parsing.lines import Field, Lines, read_line, within_limit
from ..parsing.records import OTHER_FIELDS, OtherRecord, RequestRate, TimeWindow, read_other_records
from ..parsing.urls import (
    ROBOTS_TXT,
    InvalidURL,
    canonical_patterns,
    path_to_match,
    rest_to_match,
    site_of,
)
from ..text import printable
from .matching import NO_RULE, TOO_COSTLY, Rule, RuleSet, line_of, refuses
from .verdict import Reason, Verdict

# The sizes of caches, in agents and in lines; a crawl has one or two agents.
_MAX_AGENTS = 32
_MAX_RULES = 1024

_Value = TypeVar("_Value")

#: Lines and patterns of rules, and which of them allow.
Combined = tuple[Sequence[int], list[str], Sequence[bool]]
# An index of the rules that apply to an agent, and their groups.
_Ours = tuple[RuleSet, tuple[OurGroup, ...]]


class RobotsTxt:
    """One robots.txt. It is parsed on demand; an index of the rules for each agent is cached.

    >>> robots = RobotsTxt.parse(b"User-agent: *\\nDisallow: /private/\\n")
    >>> robots.allowed("https://example.com/private/page", "ExampleBot")
    False
    >>> print(robots.verdict("https://example.com/private/page", "ExampleBot"))
    disallowed by "Disallow: /private/" (line 2, group *) of robots.txt
    """

    __slots__ = (
        *("_lines", "_ours", "_path_start", "_requested", "_rules", "_sites"),
        *("body", "dialect", "truncated"),
    )

    def __init__(self, body: bytes, dialect: Dialect, truncated: bool) -> None:
        #: The bytes of the file that are read.
        self.body = body
        self.dialect = dialect
        #: Whether the file was longer than that.
        self.truncated = truncated
        self._ours: dict[Agents, _Ours] = {}
        # The agents without an index that one page was requested for.
        self._requested: tuple[Agents, ...] = ()
        # For verdicts, which most files never give.
        self._rules: dict[int, Rule] = {}
        self._lines: Lines | None = None
        # The site of the last URL with a slash, by site_of(), and the index of its path. The
        # next URL is probably of the same site.
        self._sites: tuple[str, ...] = ()
        self._path_start = 0

    @classmethod
    def parse(
        cls, body: bytes, dialect: Dialect = RFC9309, *, max_size: int | None = None
    ) -> RobotsTxt:
        """Parse *body*, the bytes of a robots.txt, in *dialect*. It never raises.

        Only whole lines in the first *max_size* bytes are read. The default is the limit of
        *dialect* (RFC 9309 §2.5: at least 500 KiB). §2.3.1.5: "crawlers MUST use the parseable
        rules".
        """
        limit = dialect.max_size if max_size is None else max_size
        if limit is None or len(body) <= limit:
            return cls(body, dialect, truncated=False)
        return cls(within_limit(body, limit), dialect, truncated=True)

    def allowed(self, url: str | bytes, agents: Agents) -> bool:
        """Whether *agents* may access *url*.

        *agents* is one product token, or several in order of preference; *url* is absolute,
        or a path that starts with ``/``. An invalid URL may not be accessed.
        """
        if isinstance(url, str) and url.startswith(self._sites):
            # Most URLs are of the same site as the last one.
            path = rest_to_match(url[self._path_start :], self.dialect)
        else:
            try:
                path = self._path(url)
            except InvalidURL:
                return False
        ours = self._ours.get(agents if isinstance(agents, str) else tuple(agents))
        allows = self._allows_first(path, agents) if ours is None else ours[0].decide(path) & 1
        return allows == 1 or self._is_robots_txt(path)

    def verdict(self, url: str | bytes, agents: Agents) -> Verdict:
        """The answer of :meth:`allowed` with its reason."""
        try:
            path = self._path(url)
        except InvalidURL as error:
            return Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))
        if self._is_robots_txt(path):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        rules, groups = self._about(agents)
        if not groups:
            return Verdict(True, Reason.NO_GROUP)
        weight = rules.decide(path)
        if weight == TOO_COSTLY:
            return Verdict(False, Reason.MATCHING_LIMIT, group=self.lines_naming(agents))
        if weight == NO_RULE:
            return Verdict(True, Reason.NO_RULE, group=self.lines_naming(agents))
        rule = self._rule(line_of(weight))
        group = next(group for group in groups if rule.line <= group.last_line)
        return Verdict(
            not rule.refuses, Reason.RULE, rule=rule, group=group.agents, merged=group.merged
        )

    def union_verdict(self, url: str | bytes, agents: Sequence[str]) -> Verdict:
        """The verdict about *url* by the rules of all groups that name one of *agents*.

        Google's library does so with a list of agents; the groups for everyone count only if
        there are no such groups. :meth:`verdict` takes the groups of the first agent that has
        any, as Google documents its crawlers.

        >>> body = b"User-agent: a\\nAllow: /\\n\\nUser-agent: b\\nDisallow: /x\\n"
        >>> robots = RobotsTxt.parse(body)
        >>> robots.verdict("/x", ["a", "b"]).line, robots.union_verdict("/x", ["a", "b"]).line
        (2, 5)
        """
        named = [
            agent
            for agent in dict.fromkeys(agents)
            if any(line.name != EVERYONE for line in self.lines_naming(agent))
        ]
        if not named:
            return self.verdict(url, EVERYONE)
        verdicts = [self.verdict(url, agent) for agent in named]
        if verdicts[0].reason in (Reason.INVALID_URL, Reason.ROBOTS_TXT_ITSELF):
            return verdicts[0]
        path = self._path(url)
        weights = [self._about(agent)[0].decide(path) for agent in named]
        best = TOO_COSTLY if TOO_COSTLY in weights else max(weights)
        if best != NO_RULE:
            return verdicts[weights.index(best)]
        lines = set(chain.from_iterable(map(self.lines_naming, named)))
        return Verdict(True, Reason.NO_RULE, group=tuple(sorted(lines, key=attrgetter("line"))))

    def crawl_delay(self, agents: Agents) -> float | None:
        """The Crawl-delay for *agents* in seconds, if any; the longest one. Not in RFC 9309."""
        return max(self._values(agents, Field.CRAWL_DELAY, float), default=None)

    def request_rate(
        self, agents: Agents, minute_of_day: float | None = None
    ) -> RequestRate | None:
        """The Request-rate for *agents*, if any; the slowest one. Not in RFC 9309.

        With a *minute_of_day* (in UTC), rates for other times of the day are ignored.
        """
        rates = [
            rate
            for rate in self._values(agents, Field.REQUEST_RATE, RequestRate)
            if minute_of_day is None or rate.window is None or rate.window.contains(minute_of_day)
        ]
        return max(rates, key=lambda rate: rate.delay, default=None)

    def visit_times(self, agents: Agents) -> tuple[TimeWindow, ...]:
        """The times at which *agents* may visit; empty means any time. Not in RFC 9309."""
        return tuple(self._values(agents, Field.VISIT_TIME, TimeWindow))

    def records_for(
        self, agents: Agents, fields: Collection[Field] = OTHER_FIELDS
    ) -> tuple[OtherRecord, ...]:
        """The :attr:`records` of *fields* that apply to *agents*.

        For each field, these are the records directly below user-agent lines that name *agents*.
        If there are none, they are all records below such lines in the same groups. Sitemap,
        Host, Clean-param and License apply to the whole site: find them in :attr:`records`.
        """
        ours = sorted(line for _, line in self.lines_naming(agents))
        in_groups = [
            record
            for record in read_other_records(self.body, self.dialect, fields)
            if _any_in(ours, record.lines_of_group)
        ]
        direct = {record.line for record in in_groups if _any_in(ours, record.lines_of_agents)}
        found = {record.field for record in in_groups if record.line in direct}
        return tuple([each for each in in_groups if each.line in direct or each.field not in found])

    def lines_naming(self, agents: Agents) -> tuple[AgentLine, ...]:
        """The user-agent lines that name *agents*; if there are none, the lines with ``*``."""
        return tuple(chain.from_iterable(group.agents for group in self._about(agents)[1]))

    def _values(self, agents: Agents, field: Field, kind: type[_Value]) -> list[_Value]:
        records = self.records_for(agents, {field})
        return [each.value for each in records if isinstance(each.value, kind)]

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The values of the Sitemap lines, in order, without duplicates: untrusted text."""
        records = read_other_records(self.body, self.dialect, {Field.SITEMAP})
        return tuple(dict.fromkeys(each.value for each in records if isinstance(each.value, str)))

    @property
    def records(self) -> tuple[OtherRecord, ...]:
        """The records that are neither user-agent lines nor rules, in file order."""
        return tuple(read_other_records(self.body, self.dialect))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """How each line is read, and its problems: at least one finding for each line."""
        return tuple(read_findings(self.body, self.dialect, self.truncated))

    def _is_robots_txt(self, path: str) -> bool:
        # RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
        return path == ROBOTS_TXT and self.dialect.robots_txt_allowed

    def _path(self, url: str | bytes) -> str:
        if isinstance(url, str):
            if not url.startswith(self._sites):
                site = site_of(url)
                self._sites, self._path_start = (f"{site}/",) if site else (), len(site)
            if self._sites:
                return rest_to_match(url[self._path_start :], self.dialect)
        return path_to_match(url, self.dialect)

    def _allows_first(self, path: str, agents: Agents) -> bool:
        """Whether the rules for *agents*, which have no index yet, allow *path*."""
        key = as_key(agents)
        if key in self._requested:
            return self._about(agents)[0].decide(path) & 1 == 1
        # Of many sites, a crawl requests one page only: building an index would take too long.
        self._requested = (*self._requested[-_MAX_AGENTS:], key)
        _, groups = groups_about(self.body, self.dialect, preferences(agents))
        _, patterns, allows = self._combined(groups)
        return not refuses(path, patterns, allows, self.dialect)

    def _about(self, agents: Agents) -> _Ours:
        key = as_key(agents)
        if key not in self._ours:
            agent, groups = groups_about(self.body, self.dialect, preferences(agents))
            # Other agents may have the same groups.
            ours = self._ours.get(agent) or (
                RuleSet(*self._combined(groups), self.dialect),
                tuple(our_group(group, agent, self.dialect) for group in groups),
            )
            if len(self._ours) >= _MAX_AGENTS:
                self._ours.clear()
            self._ours[agent] = self._ours[key] = ours
        return self._ours[key]

    def _combined(self, groups: list[Group]) -> Combined:
        rules = list(chain.from_iterable(group.rules for group in groups))
        lines, fields, values = zip(*rules, strict=True) if rules else ((), (), ())
        allow = Field.ALLOW
        allows = [field is allow for field in fields]
        return lines, canonical_patterns(values, self.dialect), allows

    def _rule(self, line: int) -> Rule:
        rule = self._rules.get(line)
        if rule is None:
            self._lines = self._lines or Lines(self.body, self.dialect)
            read = read_line(self._lines[line - 1], self.dialect)
            assert read is not None
            if len(self._rules) >= _MAX_RULES:
                self._rules.clear()
            rule = self._rules[line] = Rule(read.field is Field.ALLOW, read.value, line)
        return rule


def _any_in(numbers: Sequence[int], lines: range) -> bool:
    """Whether any of the sorted *numbers* is in *lines*."""
    return bisect_left(numbers, lines.start) < bisect_left(numbers, lines.stop)
