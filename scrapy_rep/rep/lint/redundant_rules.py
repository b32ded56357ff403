"""Which rules of a group have no effect.

Here may live: what can be proven of a rule from the group that it stands in.
Here may not live: which rule decides about a path (:mod:`.matching`); what is
found here is what that one implies.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from ..dialects import Dialect, PathForm, Precedence
from ..parsing.groups import Group
from ..parsing.lines import Field
from ..parsing.urls import canonical_patterns


class Redundancy(Enum):
    """Why a rule has no effect."""

    #: No path matches its pattern.
    NEVER_MATCHES = "never-matches"
    #: An earlier line says the same.
    DUPLICATE = "duplicate"
    #: Where it matches, one that says the opposite always wins.
    SHADOWED = "shadowed"
    #: Where it matches, another one would decide the same.
    REDUNDANT = "redundant"


class RedundantRule(NamedTuple):
    """The rule at *line* is useless; *because* is the line of the rule that makes it so, or 0."""

    line: int
    why: Redundancy
    because: int


class _Rule(NamedTuple):
    """A rule as far as it matters here.

    Whatever it matches begins with *start*; where *plain*, it matches whatever
    does. Of the rules that match, the one with the greatest *rank* decides.
    """

    start: str
    # False sorts first.
    special: bool
    rank: tuple[int, int]
    pattern: str
    line: int
    allow: bool


class _Above(NamedTuple):
    """Of the plain rules whose starts *start* begins with, those that rank highest."""

    start: str
    allow: _Rule | None
    disallow: _Rule | None

    def highest(self) -> _Rule | None:
        found = [rule for rule in (self.allow, self.disallow) if rule]
        return max(found, key=lambda rule: rule.rank, default=None)

    def of_type(self, allow: bool) -> _Rule | None:
        return self.allow if allow else self.disallow

    def plus(self, rule: _Rule) -> _Above:
        """With *rule* as well, which ranks higher than those of its type."""
        if rule.allow:
            return _Above(rule.start, rule, self.disallow)
        return _Above(rule.start, self.allow, rule)


def redundant_rules(group: Group, dialect: Dialect, alone: bool) -> Iterator[RedundantRule]:
    """The rules of *group* that have no effect, where this can be proven.

    *alone* is whether no other group is about anyone that this one is about.
    Proven are:

    - a pattern that matches no path, because it does not start as paths do, or
      has a ``/../`` that no URL has any more when it is compared;
    - of patterns that match the same paths (``/a``, ``/a*``), all but the one
      that wins;
    - a rule that matches nothing but what another one matches, without
      wildcards but at its end, that wins: the longer one, or in dialects in
      which the first match decides, the earlier one;
    - a rule that matches nothing but what a shorter one of its type matches,
      where no rule of the other type has a length in between.

    What several rules take away from one only together is not found, nor what a
    pattern with ``*`` in the middle takes away. Rules without a value are left
    out: they are no rules, or say so.
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
    # RFC 3986 §5.2.4: in the path of a URL, these are gone.
    resolved = dialect.path_form is not PathForm.VERBATIM
    return not (resolved and _DOT_SEGMENT.search(_start(pattern, dialect).partition("?")[0]))


def _start(pattern: str, dialect: Dialect) -> str:
    """What all that *pattern* matches begins with."""
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
    """Whether *rule* may also allow a directory, and so do more than its pattern says."""
    return dialect.index_pages and rule.allow and "/index.htm" in rule.pattern


# -- one rule against others -------------------------------------------------------


def _losers(rules: list[_Rule], winners: list[_Rule], dialect: Dialect) -> Iterator[RedundantRule]:
    """Those of *rules* that match the same as another one, which wins.

    All others are added to *winners*.
    """
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
    """The same for patterns that match the same."""
    # "*" is in no start, and anything with "*" or an anchor is special.
    return rule.pattern if rule.special else rule.start + "*"


def _useless(rule: _Rule, winner: _Rule) -> RedundantRule:
    why = Redundancy.REDUNDANT if rule.allow is winner.allow else Redundancy.SHADOWED
    return RedundantRule(rule.line, why, winner.line)


def _below_others(
    rules: list[_Rule], opponents: list[_Rule], dialect: Dialect, alone: bool
) -> Iterator[RedundantRule]:
    """Those of *rules* that match nothing but what a plain one of them matches."""
    longest = dialect.precedence is Precedence.LONGEST
    lengths = _Lengths(opponents, dialect) if alone and longest else None
    # Those that the rule at hand begins with, the longest one last.
    above = [_Above("", None, None)]
    for rule in sorted(rules):
        while not rule.start.startswith(above[-1].start):
            above.pop()
        highest = above[-1].highest()
        beaten = highest is not None and highest.rank > rule.rank
        if not _has_index_page(rule, dialect):
            parent = above[-1].of_type(rule.allow)
            if highest is not None and beaten:
                yield _useless(rule, highest)
            elif parent and lengths and lengths.none_between(parent, rule):
                yield _useless(rule, parent)
        if not rule.special:
            above.append(_highest_of_type(above[-1], rule))


def _highest_of_type(above: _Above, rule: _Rule) -> _Above:
    other = above.of_type(rule.allow)
    if other is not None and other.rank > rule.rank:
        return above._replace(start=rule.start)
    return above.plus(rule)


class _Lengths:
    """The lengths of the patterns of each type, where the longest match decides."""

    def __init__(self, rules: Sequence[_Rule], dialect: Dialect) -> None:
        self._allow = sorted(
            [len(rule.pattern) for rule in rules if rule.allow]
            # "/a/index.html" allows "/a/$".
            + [rule.pattern.rfind("/") + 2 for rule in rules if _has_index_page(rule, dialect)]
        )
        self._disallow = sorted(len(rule.pattern) for rule in rules if not rule.allow)

    def none_between(self, shorter: _Rule, longer: _Rule) -> bool:
        """Whether none of the other type is as long as these, or of a length in between."""
        others = self._disallow if longer.allow else self._allow
        first = bisect_left(others, len(shorter.pattern))
        return first == bisect_right(others, len(longer.pattern))
