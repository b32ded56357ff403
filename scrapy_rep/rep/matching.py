"""Which rule of a group decides about a path.

Here may live: the rules of one group as an index that is asked with a path.
Here may not live: how paths and patterns come to be comparable (:mod:`.urls`).

RFC 9309 §2.2.2: "The most specific match found MUST be used. The most specific
match is the match that has the most octets." and, of rules that are
equivalent, "the allow rule SHOULD be used". §2.2.3: ``*`` is "0 or more
instances of any character", ``$`` "the end of the match pattern".

Most patterns are plain prefixes, and one lookup answers for all of them: in
sorted order, every prefix of a path that is among the patterns is a prefix of
the pattern that sorts last before the path, so a binary search finds the
candidate, and links from each pattern to its longest shorter prefix lead to
the answer. Only patterns with ``*`` are tried one by one, best first, and only
those that would beat what the lookup has found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .dialects import Dialect
from .text import printable
from .urls import canonical_pattern


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line: its *value* as written, its *line* from 1."""

    allow: bool
    value: bytes
    line: int

    @property
    def refuses(self) -> bool:
        """Whether a path for which this rule decides may not be accessed.

        "Disallow:" without a value refuses nothing (RFC 9309 §2.2,
        empty-pattern).
        """
        return not self.allow and bool(self.value)

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {printable(self.value)}".rstrip()


class _Ranked(NamedTuple):
    """A rule and how it fares against others that match: the higher rank decides."""

    rank: int
    rule: Rule


class _Wildcard(NamedTuple):
    """A pattern with ``*``, split at them."""

    ranked: _Ranked
    head: str
    middle: tuple[str, ...]
    tail: str
    anchored: bool

    def matches(self, path: str) -> bool:
        """Whether *path* starts with this pattern (or is it, where anchored).

        The leftmost place for each piece leaves the most room for the next,
        so no place needs to be tried twice: linear, whatever the pattern.
        """
        if not path.startswith(self.head):
            return False
        position = len(self.head)
        for piece in self.middle:
            found = path.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
        if self.anchored:
            return len(path) - len(self.tail) >= position and path.endswith(self.tail)
        return path.find(self.tail, position) >= 0


class RuleSet:
    """The rules of a group, as an index that is asked with a path."""

    __slots__ = ("_best", "_exact", "_parents", "_prefixes", "_wildcards")

    def __init__(self, rules: Iterable[Rule], dialect: Dialect) -> None:
        prefixes: dict[str, _Ranked] = {}
        exact: dict[str, _Ranked] = {}
        wildcards: dict[str, _Ranked] = {}
        for rule in rules:
            if not rule.value and not dialect.empty_rules_match:
                continue
            for pattern in _patterns(rule, dialect):
                ranked = _Ranked(2 * len(pattern) + rule.allow, rule)
                if "*" not in pattern:
                    if pattern.endswith("$"):
                        _keep_best(exact, pattern[:-1], ranked)
                    else:
                        _keep_best(prefixes, pattern, ranked)
                elif "*" not in pattern.rstrip("*"):
                    _keep_best(prefixes, pattern.rstrip("*"), ranked)
                else:
                    _keep_best(wildcards, pattern, ranked)
        self._exact = exact
        self._wildcards = sorted(
            (_split(pattern, ranked) for pattern, ranked in wildcards.items()),
            key=lambda wildcard: -wildcard.ranked.rank,
        )
        self._prefixes = sorted(prefixes)
        self._parents: list[int] = []
        #: The best of a prefix and all the prefixes it starts with.
        self._best: list[_Ranked] = []
        self._link(prefixes)

    def _link(self, ranks: dict[str, _Ranked]) -> None:
        open_prefixes: list[int] = []
        for index, prefix in enumerate(self._prefixes):
            while open_prefixes and not prefix.startswith(self._prefixes[open_prefixes[-1]]):
                open_prefixes.pop()
            best = ranks[prefix]
            parent = -1
            if open_prefixes:
                parent = open_prefixes[-1]
                best = _better(self._best[parent], best)
            self._parents.append(parent)
            self._best.append(best)
            open_prefixes.append(index)

    def decide(self, path: str) -> Rule | None:
        """The rule that decides about *path*, ``None`` where no rule matches.

        *path* is what :func:`~scrapy_rep.rep.urls.path_to_match` returns for
        the dialect of this rule set.
        """
        best = self._exact.get(path)
        index = bisect_right(self._prefixes, path) - 1
        while index >= 0 and not path.startswith(self._prefixes[index]):
            index = self._parents[index]
        if index >= 0:
            best = self._best[index] if best is None else _better(self._best[index], best)
        for wildcard in self._wildcards:
            if best is not None and wildcard.ranked.rank < best.rank:
                break
            if wildcard.matches(path):
                best = wildcard.ranked if best is None else _better(best, wildcard.ranked)
                break
        return None if best is None else best.rule


def _patterns(rule: Rule, dialect: Dialect) -> Iterable[str]:
    """The canonical patterns that *rule* stands for."""
    pattern = canonical_pattern(rule.value, dialect)
    yield pattern
    # Leniency of the reference library: "Allow: /a/index.html" also allows
    # "/a/" itself, which the server answers with that page.
    slash = pattern.rfind("/")
    if rule.allow and slash >= 0 and pattern.startswith("/index.htm", slash):
        yield pattern[: slash + 1] + "$"


def _better(one: _Ranked, other: _Ranked) -> _Ranked:
    """The one that decides where both match; of equals, the earlier line."""
    if one.rank != other.rank:
        return one if one.rank > other.rank else other
    return one if one.rule.line <= other.rule.line else other


def _keep_best(table: dict[str, _Ranked], key: str, ranked: _Ranked) -> None:
    known = table.get(key)
    table[key] = ranked if known is None else _better(known, ranked)


def _split(pattern: str, ranked: _Ranked) -> _Wildcard:
    anchored = pattern.endswith("$")
    head, *middle, tail = (pattern[:-1] if anchored else pattern).split("*")
    return _Wildcard(ranked, head, tuple(filter(None, middle)), tail, anchored)
