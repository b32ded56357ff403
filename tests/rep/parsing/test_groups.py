"""Records to groups: whose they are."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.dialects import DIALECTS, KOSTER1994, KOSTER1996, RFC9309
from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.parsing.groups import groups_about, our_group, read_groups

# What groups decide is in test_robotstxt.py.

BODY = b"User-agent: a\nUser-agent: b\nDisallow: /1\nAllow: /2\n\nUser-agent: B/1\nUser-agent: c\n"


@pytest.mark.parametrize(
    ("agents", "agent", "lines"),
    [(("b",), "b", [2, 6]), (("c", "a"), "c", [7]), (("x", "a"), "a", [1]), (("x",), "*", [])],
)
def test_a_group_is_about_the_first_agent_that_one_names(
    agents: tuple[str, ...], agent: str, lines: list[int]
) -> None:
    about, groups = groups_about(BODY, RFC9309, agents)
    assert about == agent
    ours = [our_group(group, about, RFC9309) for group in groups]
    assert [line for group in ours for _, line in group.agents] == lines


def test_where_the_rules_of_a_group_end() -> None:
    first, second = (our_group(group, "b", RFC9309) for group in read_groups(BODY, RFC9309))
    assert (first.agents, first.last_line) == ((AgentLine("b", 2),), 4)
    assert (second.agents, second.last_line) == ((AgentLine("B", 6),), 0)


def test_an_allow_line_ends_no_user_agent_lines_where_there_is_none() -> None:
    body = b"User-agent: x\nAllow: /\nUser-agent: y\nDisallow: /a\n"
    (group,) = read_groups(body, KOSTER1994)
    assert [name for name, _ in group.agents] == ["x", "y"]
    # Nor does it where the group is read for one agent.
    _, (ours,) = groups_about(body, KOSTER1994, ("y",))
    assert ours.rules == group.rules
    assert [name for name, _ in ours.agents] == ["x", "y"]


def test_the_user_agent_lines_of_a_group_that_is_not_read_are_not_those_of_the_next() -> None:
    body = b"User-agent: x\nDisallow: /x\nUser-agent: y\nDisallow: /y\n"
    _, (ours,) = groups_about(body, RFC9309, ("y",))
    assert ours.agents == [("y", 3)]


@pytest.mark.parametrize("line", [b"# a comment", b"user-agent", b""])
def test_lines_that_are_not_records_do_not_interrupt_user_agent_lines(line: bytes) -> None:
    body = b"User-agent: x\n%b\nUser-agent: y\nDisallow: /\n" % line
    assert not any(group.interrupted for group in read_groups(body, KOSTER1996))


def test_consecutive_user_agent_lines_are_not_interrupted() -> None:
    body = b"User-agent: x\nUser-agent: y\nDisallow: /\n"
    for dialect in DIALECTS.values():
        (group,) = read_groups(body, dialect)
        assert not group.interrupted, dialect.name
