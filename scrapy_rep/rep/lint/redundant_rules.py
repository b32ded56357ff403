"""Finds rules that have no effect within their group."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from operator import attrgetter
from typing import Literal, NamedTuple

from ..dialects import Dialect, PathForm, Precedence
from ..parsing.groups import Group
from ..parsing.lines import Field
from ..parsing.urls import canonical_patterns

#: The line of a rule, the name of its FindingKind, and the line of the cause or 0.
RedundantRule = tuple[int, Literal["NEVER_MATCHES", "DUPLICATE", "SHADOWED", "REDUNDANT"], int]

_rank = attrgetter("rank")


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
    index_page: bool  #: Whether it may also allow a directory.

    @property
    def paths(self) -> str:
        """A key that is equal for patterns that match the same paths."""
        # A start does not contain "*", and patterns with "*" or an anchor are special.
        return self.pattern if self.special else self.start + "*"


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
        rule = _rule(pattern, line, field is Field.ALLOW, dialect) if pattern else None
        if rule is not None:
            rules.append(rule)
        elif pattern:
            yield line, "NEVER_MATCHES", 0
    if len(rules) < 2:
        return
    winners = {rule.paths: rule for rule in sorted(rules, key=_rank)}
    for rule in rules:
        winner = winners[rule.paths]
        if rule.pattern == winner.pattern and rule.allow is winner.allow:
            if rule is not winner:
                yield rule.line, "DUPLICATE", winner.line
        elif not rule.index_page:
            yield _useless(rule, winner)
    longest = dialect.precedence is Precedence.LONGEST
    yield from _below_others(winners.values(), _lengths(rules) if alone and longest else None)


_DOT_SEGMENT = re.compile(r"/\.\.?/")


def _rule(pattern: str, line: int, allow: bool, dialect: Dialect) -> _Rule | None:
    """The rule with *pattern*, ``None`` if it matches no path."""
    start, special = pattern, False
    if dialect.wildcards:
        # "/a*" and "/a*$" match what "/a" matches.
        core = pattern.removesuffix("*$").rstrip("*")
        special = "*" in core or core[-1:] == "$"
        start, star, _ = pattern.partition("*")
        start = (start if star else start.removesuffix("$")) or "/"
    # Every path starts with "/". RFC 3986 §5.2.4: dot segments are removed from it.
    resolved = dialect.path_form is not PathForm.VERBATIM
    if not pattern.startswith(("/", "*") if dialect.wildcards else "/") or (
        resolved and _DOT_SEGMENT.search(start.partition("?")[0])
    ):
        return None
    longest = dialect.precedence is Precedence.LONGEST
    rank = (2 * len(pattern) + allow if longest else 0, -line)
    index_page = dialect.index_pages and allow and "/index.htm" in pattern
    return _Rule(start, special, rank, pattern, line, allow, index_page)


def _useless(rule: _Rule, winner: _Rule) -> RedundantRule:
    return rule.line, "REDUNDANT" if rule.allow is winner.allow else "SHADOWED", winner.line


def _below_others(
    rules: Collection[_Rule], lengths: dict[bool, list[int]] | None
) -> Iterator[RedundantRule]:
    """The *rules* whose paths are all matched by another rule that is not special.

    *lengths* are :func:`_lengths` if shorter rules count.
    """
    # The starts that the start of the rule begins with, the longest one last, each with the
    # highest rule of each type that matches all paths with this start.
    above: list[tuple[str, dict[bool, _Rule]]] = [("", {})]
    for rule in sorted(rules):
        while not rule.start.startswith(above[-1][0]):
            above.pop()
        by_type = above[-1][1]
        parent = by_type.get(rule.allow)
        if by_type and not rule.index_page:
            highest = max(by_type.values(), key=_rank)
            if highest.rank > rule.rank:
                yield _useless(rule, highest)
            elif parent and lengths and _none_between(parent, rule, lengths):
                yield _useless(rule, parent)
        if not rule.special:
            better = parent if parent and parent.rank > rule.rank else rule
            above.append((rule.start, by_type | {rule.allow: better}))


def _lengths(rules: list[_Rule]) -> dict[bool, list[int]]:
    """The lengths of the patterns of each type, sorted."""
    # "/a/index.html" allows "/a/$".
    pages = [rule.pattern.rfind("/") + 2 for rule in rules if rule.index_page]
    return {
        True: sorted(pages + [len(rule.pattern) for rule in rules if rule.allow]),
        False: sorted(len(rule.pattern) for rule in rules if not rule.allow),
    }


def _none_between(shorter: _Rule, longer: _Rule, lengths: dict[bool, list[int]]) -> bool:
    """Whether no pattern of the other type has the length of one of these, or one in between."""
    others = lengths[not longer.allow]
    first = bisect_left(others, len(shorter.pattern))
    return first == bisect_right(others, len(longer.pattern))
