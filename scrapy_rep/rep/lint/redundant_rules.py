"""Finds rules that have no effect within their group."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from ..dialects import Dialect, PathForm, Precedence
from ..parsing.groups import Group
from ..parsing.lines import Field
from ..parsing.urls import canonical_patterns

_rank = attrgetter("rank")


class Redundancy(Enum):
    """Why a rule has no effect."""

    #: No path matches its pattern.
    NEVER_MATCHES = "never-matches"
    #: Another line is the same rule.
    DUPLICATE = "duplicate"
    #: Wherever it matches, a rule with the opposite answer decides.
    SHADOWED = "shadowed"
    #: Wherever it matches, another rule gives the same answer.
    REDUNDANT = "redundant"


class RedundantRule(NamedTuple):
    """The rule at *line* has no effect; *because* is the line of the cause, or 0."""

    line: int
    why: Redundancy
    because: int


class _Rule(NamedTuple):
    """A rule. All paths that it matches begin with *start*.

    If it is not *special*, it matches all paths that begin with *start*. Of the rules that match,
    the one with the greatest *rank* decides.
    """

    start: str
    # False sorts first.
    special: bool
    rank: tuple[int, int]
    pattern: str
    line: int
    allow: bool


def redundant_rules(group: Group, dialect: Dialect, alone: bool) -> Iterator[RedundantRule]:
    """The rules of *group* that certainly have no effect.

    *alone* says that no other group has an agent of this one. These rules are found:

    - a pattern that matches no path, because it has another start than all paths, or because it
      contains ``/../``, which is resolved in URLs;
    - of patterns that match the same paths (``/a``, ``/a*``), all except the one that decides;
    - a rule whose paths are all matched by another rule that always decides and has wildcards
      only at its end: a longer one, or an earlier one in dialects where the first match decides;
    - a rule whose paths are all matched by a shorter rule of the same type, if no rule of the
      other type has a length in between.

    Combinations of several rules, and patterns with ``*`` in the middle as causes, are not
    examined. Rules without a value are ignored.
    """
    rules: list[_Rule] = []
    patterns = canonical_patterns([value for _, _, value in group.rules], dialect)
    for pattern, (line, field, _) in zip(patterns, group.rules, strict=True):
        if pattern and not _can_match(pattern, dialect):
            yield RedundantRule(line, Redundancy.NEVER_MATCHES, 0)
        elif pattern:
            rules.append(_rule(pattern, line, field is Field.ALLOW, dialect))
    if len(rules) > 1:
        winners: list[_Rule] = []
        yield from _losers(rules, winners, dialect)
        yield from _below_others(winners, rules, dialect, alone)


# -- patterns --------------------------------------------------------------------

_DOT_SEGMENT = re.compile(r"/\.\.?/")


def _can_match(pattern: str, dialect: Dialect) -> bool:
    # Every path starts with "/".
    if not pattern.startswith(("/", "*") if dialect.wildcards else "/"):
        return False
    # RFC 3986 §5.2.4: these are removed from the path of a URL.
    resolved = dialect.path_form is not PathForm.VERBATIM
    return not (resolved and _DOT_SEGMENT.search(_start(pattern, dialect).partition("?")[0]))


def _start(pattern: str, dialect: Dialect) -> str:
    """The start of all paths that *pattern* matches."""
    if not dialect.wildcards:
        return pattern
    start, star, _ = pattern.partition("*")
    return (start if star else start.removesuffix("$")) or "/"


def _rule(pattern: str, line: int, allow: bool, dialect: Dialect) -> _Rule:
    plain = not dialect.wildcards or (
        # "/a*" and "/a*$" match what "/a" matches.
        "*" not in (core := pattern.removesuffix("*$").rstrip("*")) and core[-1:] != "$"
    )
    longest = dialect.precedence is Precedence.LONGEST
    rank = (2 * len(pattern) + allow, -line) if longest else (0, -line)
    return _Rule(_start(pattern, dialect), not plain, rank, pattern, line, allow)


def _has_index_page(rule: _Rule, dialect: Dialect) -> bool:
    """Whether *rule* may also allow a directory."""
    return dialect.index_pages and rule.allow and "/index.htm" in rule.pattern


# -- one rule against others -------------------------------------------------------


def _losers(rules: list[_Rule], winners: list[_Rule], dialect: Dialect) -> Iterator[RedundantRule]:
    """The *rules* that match the same paths as a winning rule. Adds the others to *winners*."""
    best: dict[str, _Rule] = {}
    for rule in rules:
        found = best.setdefault(_same_paths(rule), rule)
        if rule.rank > found.rank:
            best[_same_paths(rule)] = rule
    for rule in rules:
        winner = best[_same_paths(rule)]
        if rule is winner:
            winners.append(rule)
        elif rule.pattern == winner.pattern and rule.allow is winner.allow:
            yield RedundantRule(rule.line, Redundancy.DUPLICATE, winner.line)
        elif not _has_index_page(rule, dialect):
            yield _useless(rule, winner)


def _same_paths(rule: _Rule) -> str:
    """A key that is equal for patterns that match the same paths."""
    # A start does not contain "*", and patterns with "*" or an anchor are special.
    return rule.pattern if rule.special else rule.start + "*"


def _useless(rule: _Rule, winner: _Rule) -> RedundantRule:
    why = Redundancy.REDUNDANT if rule.allow is winner.allow else Redundancy.SHADOWED
    return RedundantRule(rule.line, why, winner.line)


def _below_others(
    rules: list[_Rule], opponents: list[_Rule], dialect: Dialect, alone: bool
) -> Iterator[RedundantRule]:
    """The *rules* whose paths are all matched by another rule that is not special."""
    longest = dialect.precedence is Precedence.LONGEST
    lengths = _lengths(opponents, dialect) if alone and longest else None
    # The starts that the start of the rule begins with, the longest one last, each with the
    # highest rule of each type that matches all paths with this start.
    above: list[tuple[str, dict[bool, _Rule]]] = [("", {})]
    for rule in sorted(rules):
        while not rule.start.startswith(above[-1][0]):
            above.pop()
        by_type = above[-1][1]
        parent = by_type.get(rule.allow)
        if by_type and not _has_index_page(rule, dialect):
            highest = max(by_type.values(), key=_rank)
            if highest.rank > rule.rank:
                yield _useless(rule, highest)
            elif parent and lengths and _none_between(parent, rule, lengths):
                yield _useless(rule, parent)
        if not rule.special:
            better = parent if parent and parent.rank > rule.rank else rule
            above.append((rule.start, by_type | {rule.allow: better}))


def _lengths(rules: list[_Rule], dialect: Dialect) -> dict[bool, list[int]]:
    """The lengths of the patterns of each type, sorted."""
    # "/a/index.html" allows "/a/$".
    pages = [rule.pattern.rfind("/") + 2 for rule in rules if _has_index_page(rule, dialect)]
    return {
        True: sorted(pages + [len(rule.pattern) for rule in rules if rule.allow]),
        False: sorted(len(rule.pattern) for rule in rules if not rule.allow),
    }


def _none_between(shorter: _Rule, longer: _Rule, lengths: dict[bool, list[int]]) -> bool:
    """Whether no pattern of the other type has the length of one of these, or one in between."""
    others = lengths[not longer.allow]
    first = bisect_left(others, len(shorter.pattern))
    return first == bisect_right(others, len(longer.pattern))
