"""The rules about us, found at a glance in files that are written as most are.

Here may live: what can be told of a whole file at once, so that a file that is
asked about one page need not be read line by line. Here may not live: any rule
of the protocol. What this finds is what :mod:`.groups` finds, or it says that
it cannot tell.

All spellings of a key, typos too, have a word in common. So where there are no
more of these words than lines with the usual spelling, no line has another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from .agents import EVERYONE, start_of_value
from .dialects import Dialect, Naming, Precedence
from .lines import text_of

_COMMENT = re.compile(rb"#[^\n]*")

# The words, and, for where they are in values as well, the keys that they are in:
# what stands before the first colon of a line.
_AGENT_WORD = b"agent"
_AGENT_KEY = re.compile(rb"\n[^\n:]*agent")
_LOW, _LAW = b"low", b"law"
_RULE_KEY = re.compile(rb"\n[^\n:]*l[oa]w")

# The usual spellings. A pattern that starts with more letters is found sooner than
# one that leaves a choice, so there are two of each.
_AGENT = b"\nuser-agent:"
_DISALLOW = re.compile(rb"\nDisallow:[ \t]*([^\n]*)")
_ALLOW = re.compile(rb"\nAllow:[ \t]*([^\n]*)")
_DISALLOW_LOWERED = re.compile(rb"\ndisallow:[ \t]*([^\n]*)")
_ALLOW_LOWERED = re.compile(rb"\nallow:[ \t]*([^\n]*)")


def glance(
    body: bytes, dialect: Dialect, agents: Sequence[str]
) -> tuple[list[bytes], list[bool]] | None:
    """The rules in the groups that :func:`~scrapy_rep.rep.groups.groups_about` would find.

    Their values, with the white space that follows them, and which of them allow; in
    no order, and without those of no value. ``None`` where the lines of *body* have
    to be read, and for dialects in which groups have other bounds or names, or the
    order of rules matters.
    """
    if dialect.blank_ends_group or dialect.naming is not Naming.TOKEN or not dialect.allow_lines:
        return None
    if dialect.precedence is not Precedence.LONGEST or (dialect.empty_names and "" in agents):
        return None
    text = b"\n" + text_of(body, dialect)
    if b"#" in text:
        text = _COMMENT.sub(b"", text)
    lowered = text.lower()
    lines = lowered.count(_AGENT)
    if lowered.count(_AGENT_WORD) != lines and len(_AGENT_KEY.findall(lowered)) != lines:
        return None
    disallowed: list[bytes] = []
    allowed: list[bytes] = []
    for agent in (*agents, EVERYONE):
        groups = list(_groups(lowered, agent, dialect))
        for start, end in groups:
            words = lowered.count(_LOW, start, end) + lowered.count(_LAW, start, end)
            found = _collect(text, start, end, words, disallowed, allowed)
            if found != words and len(_RULE_KEY.findall(lowered, start, end)) != found:
                return None
            if not found and end < len(lowered):
                # The word that made this the end was in no rule.
                return None
        if groups:
            break
    disallowed, allowed = list(filter(None, disallowed)), list(filter(None, allowed))
    return disallowed + allowed, [False] * len(disallowed) + [True] * len(allowed)


def _collect(
    text: bytes, start: int, end: int, words: int, disallowed: list[bytes], allowed: list[bytes]
) -> int:
    """Add the values of rules of usual spelling; how many there are, *words* at most."""
    found = 0
    for pattern, values in (
        (_DISALLOW, disallowed),
        (_ALLOW, allowed),
        (_DISALLOW_LOWERED, disallowed),
        (_ALLOW_LOWERED, allowed),
    ):
        if found == words:
            break
        here = pattern.findall(text, start, end)
        values.extend(here)
        found += len(here)
    return found


def _groups(lowered: bytes, agent: str, dialect: Dialect) -> Iterator[tuple[int, int]]:
    """Where in *lowered* the groups about *agent* are: from its name to the next group."""
    line = _line_about(agent, dialect.digits_in_tokens)
    if line is None:
        return
    end = 0
    while match := line.search(lowered, end):
        # All user-agent lines above a rule are of one group, and the first one below
        # it is of the next.
        rule = lowered.find(_LOW, match.end())
        end = lowered.find(_AGENT, rule) if rule >= 0 else -1
        if end < 0:
            end = len(lowered)
        yield match.end(), end


@lru_cache(maxsize=256)
def _line_about(agent: str, digits_in_tokens: bool) -> re.Pattern[bytes] | None:
    start = start_of_value(agent, digits_in_tokens)
    return None if start is None else re.compile(_AGENT + rb"[ \t\v\f]*" + start)
