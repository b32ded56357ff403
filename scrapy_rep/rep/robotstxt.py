"""Groups, rules and other records of one file, and verdicts by them.

Here may live: how records make groups, which groups are ours, and what
follows. Here may not live: how octets become records (:mod:`.lines`), which
rule of a group wins (:mod:`.matching`).

RFC 9309 §2.1: a group is "one or more user-agent lines that are followed by
one or more rules. The group is terminated by a user-agent line or end of
file". §2.2.4: other records "MUST NOT interfere with the parsing of explicitly
defined records": nothing but a user-agent line after a rule starts a group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .agents import EVERYONE, Agents, group_name, preferences
from .dialects import RFC9309, Dialect
from .lines import Field, Record, read_records, within_limit
from .matching import Rule, RuleSet
from .urls import ROBOTS_TXT, path_to_match
from .verdict import AgentLine, Reason, Verdict

# Rule sets are made when first asked for and kept for as many agents; a crawl
# asks for one or two.
_MAX_RULE_SETS = 32


# A number of seconds, and nothing else that float() would take.
_SECONDS = re.compile(rb"[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+")


class _Delay(NamedTuple):
    """A Crawl-delay, for as many of its group's agents as stand above it."""

    seconds: float
    agents_above: int


class _Group:
    """User-agent lines and the rules that follow them."""

    __slots__ = ("agents", "delays", "rules")

    def __init__(self) -> None:
        self.agents: list[AgentLine] = []
        self.rules: list[Rule] = []
        self.delays: list[_Delay] = []


class _Ours(NamedTuple):
    """What a file has for one agent: the groups that name it, combined."""

    rules: RuleSet
    lines: tuple[AgentLine, ...]
    delay: float | None


class RobotsTxt:
    """What one robots.txt says.

    >>> robots = RobotsTxt.parse(b"User-agent: *\\nDisallow: /private/\\n")
    >>> robots.allowed("https://example.com/private/page", "ExampleBot")
    False
    >>> print(robots.verdict("https://example.com/private/page", "ExampleBot"))
    disallowed by "Disallow: /private/" (line 2, group *) of robots.txt
    """

    __slots__ = ("_groups", "_groups_of", "_ours", "dialect", "sitemaps", "truncated")

    def __init__(
        self,
        dialect: Dialect,
        groups: Sequence[_Group],
        sitemaps: tuple[str, ...],
        truncated: bool,
    ) -> None:
        self.dialect = dialect
        #: The values of the file's Sitemap lines, in order, without duplicates.
        #: Untrusted text: a value need not be a URL.
        self.sitemaps = sitemaps
        #: Whether the file was longer than what is read of it.
        self.truncated = truncated
        self._groups = groups
        # Every group that names an agent; an agent named twice by a group counts once.
        self._groups_of: dict[str, list[int]] = {}
        for index, group in enumerate(groups):
            for name in dict.fromkeys(agent.name.lower() for agent in group.agents):
                self._groups_of.setdefault(name, []).append(index)
        self._ours: dict[str, _Ours] = {}

    @classmethod
    def parse(
        cls, body: bytes, dialect: Dialect = RFC9309, *, max_size: int | None = None
    ) -> RobotsTxt:
        """Read *body*, the octets of a robots.txt, as *dialect* says.

        The first *max_size* octets are read, the line that the cut falls into
        is not; how many, the dialect says by default (RFC 9309 §2.5: at least
        500 KiB). No content makes it raise: RFC 9309 §2.3.1.5, "crawlers MUST
        use the parseable rules".
        """
        limit = dialect.max_size if max_size is None else max_size
        truncated = limit is not None and len(body) > limit
        if limit is not None:
            body = within_limit(body, limit)
        groups: list[_Group] = []
        # dict, as a set that keeps the order
        sitemaps: dict[str, None] = {}
        for record in read_records(body, dialect):
            if record.field is Field.USER_AGENT:
                if not groups or groups[-1].rules:
                    groups.append(_Group())
                name = group_name(record.value, dialect)
                groups[-1].agents.append(AgentLine(name, record.number))
            elif record.field is Field.SITEMAP:
                if record.value:
                    sitemaps[record.value.decode("utf-8", "replace")] = None
            elif groups:
                # What stands before the first user-agent line is in no group.
                _add_to_group(groups[-1], record)
        return cls(dialect, groups, tuple(sitemaps), truncated)

    def allowed(self, url: str | bytes, agents: Agents) -> bool:
        """Whether *agents* may access *url*.

        *agents* is one product token, or several in order of preference;
        *url* is absolute, or a path that starts with ``/``.
        """
        path = path_to_match(url, self.dialect)
        if path == ROBOTS_TXT and self.dialect.robots_txt_allowed:
            return True
        ours = self._for_agents(agents)
        rule = ours.rules.decide(path) if ours else None
        return rule is None or not rule.refuses

    def verdict(self, url: str | bytes, agents: Agents) -> Verdict:
        """The same answer as :meth:`allowed`, with what it rests on."""
        path = path_to_match(url, self.dialect)
        # RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
        if path == ROBOTS_TXT and self.dialect.robots_txt_allowed:
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        ours = self._for_agents(agents)
        if ours is None:
            return Verdict(True, Reason.NO_GROUP)
        rule = ours.rules.decide(path)
        reason = Reason.RULE if rule else Reason.NO_RULE
        return Verdict(rule is None or not rule.refuses, reason, rule, ours.lines)

    def crawl_delay(self, agents: Agents) -> float | None:
        """The Crawl-delay for *agents* in seconds, ``None`` where there is none.

        Not part of RFC 9309. Where several hold for an agent, the longest.
        """
        ours = self._for_agents(agents)
        return ours.delay if ours else None

    def _for_agents(self, agents: Agents) -> _Ours | None:
        """The combined groups of the first of *agents* that has any, else everyone's.

        RFC 9309 §2.2.1: "If there is more than one group matching the
        user-agent, the matching groups' rules MUST be combined into one
        group", and "If no matching group exists, crawlers MUST obey the group
        with a user-agent line with the '*' value, if present."
        """
        for name in preferences(agents):
            # "*" is no product token: nobody is called that. An empty name
            # is what a user-agent line has that names nobody.
            if name in self._groups_of and name not in (EVERYONE, ""):
                return self._combined(name)
        return self._combined(EVERYONE) if EVERYONE in self._groups_of else None

    def _combined(self, name: str) -> _Ours:
        ours = self._ours.get(name)
        if ours is None:
            if len(self._ours) >= _MAX_RULE_SETS:
                self._ours.clear()
            ours = self._ours[name] = self._combine(name)
        return ours

    def _combine(self, name: str) -> _Ours:
        rules: list[Rule] = []
        lines: list[AgentLine] = []
        delays: list[float] = []
        for index in self._groups_of[name]:
            group = self._groups[index]
            rules += group.rules
            ours = [i for i, agent in enumerate(group.agents) if agent.name.lower() == name]
            lines += [group.agents[i] for i in ours]
            delays += [delay.seconds for delay in group.delays if delay.agents_above > ours[0]]
        return _Ours(RuleSet(rules, self.dialect), tuple(lines), max(delays, default=None))


def _add_to_group(group: _Group, record: Record) -> None:
    if record.field in (Field.ALLOW, Field.DISALLOW):
        group.rules.append(Rule(record.field is Field.ALLOW, record.value, record.number))
    elif record.field is Field.CRAWL_DELAY:
        seconds = _seconds(record.value)
        if seconds is not None:
            group.delays.append(_Delay(seconds, len(group.agents)))


def _seconds(value: bytes) -> float | None:
    return float(value) if _SECONDS.fullmatch(value) else None
