"""Records to groups: where a group begins and ends, and which groups apply to us.

RFC 9309 §2.1: a group is "one or more user-agent lines that are followed by one or more rules. The
group is terminated by a user-agent line or end of file". §2.2.4: other records "MUST NOT interfere
with the parsing of explicitly defined records": they neither end nor start a group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..dialects import Dialect
from .agents import EVERYONE, AgentLine, group_name, names_among
from .lines import RULES, Record, read_sections, records_of

_BLANK_LINE = re.compile(rb"^[ \t\v\f]*\n", re.MULTILINE)


class Group(NamedTuple):
    """User-agent lines and the rules that follow them."""

    agents: list[tuple[str, int]]  #: The names, as written, and the lines of the user-agent lines.
    interrupted: int  #: How many of them are above another record that is above the last one.
    rules: list[Record]
    names: set[str]  #: The requested agents that the group applies to.


class OurGroup(NamedTuple):
    """A group that applies to us."""

    agents: tuple[AgentLine, ...]  #: The user-agent lines that name us.
    last_line: int  #: The line of its last rule; 0 if it has none.
    #: Whether all user-agent lines that name us are above another record, which does not end the
    #: group, with user-agent lines for other crawlers below it.
    merged: bool


def groups_about(body: bytes, dialect: Dialect, agents: Sequence[str]) -> tuple[str, list[Group]]:
    """The first of *agents* that has groups, else ``*``; and its groups.

    *agents* are a result of :func:`~scrapy_rep.rep.parsing.agents.preferences`. RFC 9309 §2.2.1:
    "If there is more than one group matching the user-agent, the matching groups' rules MUST be
    combined into one group", and "If no matching group exists, crawlers MUST obey the group with
    a user-agent line with the '*' value, if present."
    """
    return groups_among(read_groups(body, dialect, agents, every=False), agents)


def groups_among(groups: list[Group], agents: Sequence[str]) -> tuple[str, list[Group]]:
    """The result of :func:`groups_about`, from *groups* that were read for these *agents*."""
    named = set().union(*(group.names for group in groups))
    agent = next((agent for agent in agents if agent in named), EVERYONE)
    return agent, [group for group in groups if agent in group.names]


def our_group(group: Group, agent: str, dialect: Dialect) -> OurGroup:
    """*group* as it applies to *agent*, which is one of its names."""
    ours = [i for i, (name, _) in enumerate(group.agents) if names_among(name, (agent,), dialect)]
    return OurGroup(
        agents=tuple(AgentLine(*group.agents[index]) for index in ours),
        last_line=group.rules[-1][0] if group.rules else 0,
        merged=ours[-1] < group.interrupted,
    )


def read_groups(
    body: bytes, dialect: Dialect, requested: Sequence[str] = (), *, every: bool = True
) -> list[Group]:
    """The groups of *body* for the agents *requested* and ``*``, or *every* group."""
    wanted = {*requested, EVERYONE}
    groups: list[Group] = []
    agents: list[tuple[str, int]] = []
    names: set[str] = set()
    interrupted = 0
    # Whether the group has ended, and whether other records are at its end.
    ended = others = False
    # The start of most sections. The rest of a group that does not apply to us is not read.
    rule_starts = (b"disallow:", b"allow:") if dialect.allow_lines else (b"disallow:",)
    for number, value, text in read_sections(body, dialect):
        if ended:
            agents, names, interrupted = [], set(), 0
        elif others:
            interrupted = len(agents)
        name = group_name(value, dialect)
        agents.append((name, number))
        names.update(names_among(name, wanted, dialect))
        if not (every or names) and text[:9].lower().startswith(rule_starts):
            ended = True
            continue
        blank = _BLANK_LINE.search(text) if dialect.blank_ends_group else None
        records = records_of(text[: blank.start()] if blank else text, number + 1, dialect)
        rules = [record for record in records if record[1] in RULES]
        ended, others = bool(rules or blank), bool(records)
        if rules and (every or names):
            groups.append(Group(agents, interrupted, rules, names))
    # User-agent lines without rules at the end allow everything. Where blank lines end
    # groups, a group needs rules.
    if agents and (every or names) and not (ended or dialect.blank_ends_group):
        groups.append(Group(agents, interrupted, [], names))
    return groups
