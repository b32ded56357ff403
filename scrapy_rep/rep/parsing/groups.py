"""Records to groups: which rules of a file are about whom.

Here may live: where a group begins and ends, and which groups are ours. Here
may not live: what their rules decide (:mod:`.matching`).

RFC 9309 §2.1: a group is "one or more user-agent lines that are followed by
one or more rules. The group is terminated by a user-agent line or end of
file". §2.2.4: other records "MUST NOT interfere with the parsing of explicitly
defined records": nothing but a user-agent line after a rule starts a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..dialects import Dialect
from .agents import EVERYONE, AgentLine, group_name, names_among
from .lines import Field, Record, read_sections, records_of

# Looked up for every line of a file: as attributes of an Enum they cost more.
_ALLOW, _DISALLOW = Field.ALLOW, Field.DISALLOW


_BLANK_LINE = re.compile(rb"^[ \t\v\f]*\n", re.MULTILINE)


class Group(NamedTuple):
    """User-agent lines and the rules that follow them."""

    #: The names, as written, and the lines of the user-agent lines.
    agents: list[tuple[str, int]]
    #: How many of them stand above a record that is not of the standard, and
    #: that another one follows.
    interrupted: int
    rules: list[Record]
    #: Those of the agents that were asked for whom the group is about.
    names: set[str]


class OurGroup(NamedTuple):
    """What there is to say of a group that is about us."""

    #: Through which user-agent lines it is.
    agents: tuple[AgentLine, ...]
    #: Where its rules end; 0 where it has none.
    last_line: int
    #: Whether it is only because a record that is not of the standard stands
    #: between our user-agent lines and others, and ends no group.
    merged: bool


def groups_about(body: bytes, dialect: Dialect, agents: Sequence[str]) -> tuple[str, list[Group]]:
    """The groups of the first of *agents* that has any, else everyone's; and whose they are.

    *agents* are those of :func:`~scrapy_rep.rep.parsing.agents.preferences`. RFC 9309
    §2.2.1: "If there is more than one group matching the user-agent, the
    matching groups' rules MUST be combined into one group", and "If no
    matching group exists, crawlers MUST obey the group with a user-agent line
    with the '*' value, if present."
    """
    return groups_among(list(_read_groups(body, dialect, agents, every=False)), agents)


def all_groups(body: bytes, dialect: Dialect, agents: Sequence[str] = ()) -> list[Group]:
    """The groups of *body*, whomever they are about; :attr:`Group.names` are of *agents*."""
    return list(_read_groups(body, dialect, agents, every=True))


def groups_among(groups: list[Group], agents: Sequence[str]) -> tuple[str, list[Group]]:
    """What :func:`groups_about` returns, from *groups* that were read for these *agents*."""
    named = set().union(*(group.names for group in groups))
    agent = next((agent for agent in agents if agent in named), EVERYONE)
    return agent, [group for group in groups if agent in group.names]


def our_group(group: Group, agent: str, dialect: Dialect) -> OurGroup:
    """What there is to say of *group*, which is about *agent*."""
    ours = _ours(group, agent, dialect)
    return OurGroup(
        agents=tuple(AgentLine(*group.agents[index]) for index in ours),
        last_line=group.rules[-1][0] if group.rules else 0,
        merged=ours[-1] < group.interrupted,
    )


def _ours(group: Group, agent: str, dialect: Dialect) -> list[int]:
    """Which user-agent lines of *group* are about *agent*."""
    return [i for i, (name, _) in enumerate(group.agents) if names_among(name, (agent,), dialect)]


def _read_groups(
    body: bytes, dialect: Dialect, asked: Sequence[str], *, every: bool
) -> Iterator[Group]:
    """The groups of *body* that are about one of the agents *asked* or everyone, or *every* one."""
    wanted = {*asked, EVERYONE}
    agents: list[tuple[str, int]] = []
    names: set[str] = set()
    interrupted = 0
    # Whether the group is about us, has rules or ended otherwise, and whether
    # other records stand at its end.
    about_us, ended, others = every, False, False
    # How most sections go on. Of a group that is not about us, that is enough.
    rule_starts = (b"disallow:", b"allow:") if dialect.allow_lines else (b"disallow:",)
    for number, value, text in read_sections(body, dialect):
        if ended:
            agents, interrupted, names = [], 0, set()
            about_us = every
        if others:
            interrupted = len(agents)
        name = group_name(value, dialect)
        agents.append((name, number))
        if ours := names_among(name, wanted, dialect):
            names.update(ours)
            about_us = True
        if not about_us and text[:9].lower().startswith(rule_starts):
            ended, others = True, False
            continue
        blank = _BLANK_LINE.search(text) if dialect.blank_ends_group else None
        records = records_of(text[: blank.start()] if blank else text, number + 1, dialect)
        rules = [
            record
            for record in records
            if record[1] is _DISALLOW or (record[1] is _ALLOW and dialect.allow_lines)
        ]
        ended = bool(rules or blank)
        others = bool(records) and not ended
        if about_us and rules:
            yield Group(agents, interrupted, rules, names)
    # Without rules, user-agent lines at the end say that all is allowed. Where
    # blank lines end groups, a group is nothing without them.
    if about_us and agents and not (ended or dialect.blank_ends_group):
        yield Group(agents, interrupted, [], names)
