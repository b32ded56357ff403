"""Which rule of a group decides about a path.

Here may live: the rules of one group as an index that is asked with a path.
Here may not live: how paths and patterns come to be comparable (:mod:`.urls`).

RFC 9309 §2.2.2: "The most specific match found MUST be used. The most specific
match is the match that has the most octets." and, of rules that are
equivalent, "the allow rule SHOULD be used". §2.2.3: ``*`` is "0 or more
instances of any character", ``$`` "the end of the match pattern".

Each rule is kept as one integer, its *weight*: of the rules that match, the
one with the greatest weight decides.

The *start* of a pattern is all that stands before its first ``*``. The starts
of all patterns are in one sorted list. Of those that a path begins with, the
longest is the one that sorts last before the path, or one that this begins
with: links lead from each start to the longest other that it begins with. So a
binary search finds every pattern that can match. A pattern without ``*`` is
its start, and there is no more to it; of those with one, the pieces between
the ``*`` are looked for (:class:`_Wildcards`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import NamedTuple

from .dialects import Dialect, Precedence
from .text import printable

# The layout of a weight, from the highest bits: how specific the rule is, how
# far up in its file it stands, and in the last bit whether it lets through.
_LINE_BITS = 32
_LAST_LINE = (1 << _LINE_BITS) - 1
#: The weight of no rule at all: less than that of any, and letting through.
NO_RULE = 1


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


def line_of(weight: int) -> int:
    """The line of the rule of *weight*, from 1; 0 where it is :data:`NO_RULE`."""
    return 0 if weight == NO_RULE else _LAST_LINE - (weight >> 1 & _LAST_LINE)


def _weight(pattern: str, line: int, allow: int, longest: bool) -> int:
    specific = 2 * len(pattern) + allow if longest else 0
    return (specific << _LINE_BITS | _LAST_LINE - line) << 1 | (allow or not pattern)


class RuleSet:
    """The rules of a group, as an index that is asked with a path.

    *patterns* are in the form that
    :func:`~scrapy_rep.rep.urls.canonical_patterns` gives them; *lines* and
    *allows* are the line of each, and whether it is that of an allow line.

    Most of the time that loading a file takes is for the index, and of many
    sites one page is asked for: :meth:`refuses` does without, :meth:`decide`
    makes it.
    """

    __slots__ = (
        "_dialect",
        "_exact",
        "_parents",
        "_pending",
        "_starts",
        "_weights",
        "_wildcards",
        "allowed",
        "needles",
        "refused",
        "starts",
    )

    def __init__(
        self, patterns: list[str], lines: Iterable[int], allows: Iterable[bool], dialect: Dialect
    ) -> None:
        self._dialect = dialect
        #: What is not in the index yet.
        self._pending: _Pending | None = _Pending(patterns, array("L", lines), bytes(allows))
        # See _Look; where there are few rules, it takes less time than the index.
        self.starts: tuple[str, ...] = ("",)
        self.needles: dict[str, Wildcard | None] = {}
        self.refused: tuple[str, ...] = ()
        self.allowed: tuple[str, ...] = ()

    def refuses(self, path: str) -> bool:
        """Whether a rule refuses *path*; for what that is, see :meth:`decide`."""
        if self._pending is None:
            return not self.decide(path) & 1
        look = _first_look(self._pending, self._dialect)
        if path.startswith(look.refused) and not path.startswith(look.allowed):
            return True
        if not path.startswith(look.starts) and not any(n in path for n in look.needles):
            return False
        return not _those_that_may_match(path, self._pending, self._dialect).decide(path) & 1

    def decide(self, path: str) -> int:
        """The weight of the rule that decides about *path*, or :data:`NO_RULE`.

        *path* is what :func:`~scrapy_rep.rep.urls.path_to_match` returns for
        the dialect of this rule set. The last bit says whether it lets through.
        """
        if self._pending is not None:
            self.make_index()
        starts = self._starts
        index = bisect_right(starts, path) - 1
        while not path.startswith(starts[index]):
            index = self._parents[index]
        best = self._weights[index]
        if self._exact:
            best = max(best, self._exact.get(path, NO_RULE))
        if self._wildcards is not None:
            chain = self._wildcards[index]
            while chain is not None:
                best = chain.wildcards.best(path, best)
                chain = chain.above
        return best

    def make_index(self) -> None:
        """Make the index now, for many paths; what it takes is over then."""
        rules = self._pending
        if rules is None:
            return
        # What every path begins with, so that a search always finds something.
        starts: dict[str, int] = {"": NO_RULE}
        exact: dict[str, int] = {}
        wildcards: dict[str, dict[str, int]] = {}
        for pattern, weight in _weighted(rules, self._dialect):
            if not self._dialect.wildcards or ("*" not in pattern and pattern[-1:] != "$"):
                table, key = starts, pattern
            elif "*" not in pattern:
                table, key = exact, pattern[:-1]
            elif "*" not in (plain := pattern.rstrip("*")):
                table, key = starts, plain
            else:
                table, key = wildcards.setdefault(pattern.partition("*")[0], {}), pattern
            if weight > table.get(key, 0):
                table[key] = weight
        for start in wildcards:
            starts.setdefault(start, NO_RULE)
        self._exact = exact
        self._starts = sorted(starts)
        self._weights = [starts[start] for start in self._starts]
        self._parents = array("L", [0]) * len(starts)
        self._link()
        self._wildcards = self._tries(wildcards) if wildcards else None
        if len(rules.patterns) <= _FEW:
            look = _first_look(rules, self._dialect)
            self.starts, _, self.refused, self.allowed = look
            self.needles = {
                needle: None if pattern is None else _split(pattern, NO_RULE)
                for needle, pattern in look.needles.items()
            }
        self._pending = None

    def _link(self) -> None:
        """Find each start's parent, and let the greatest weight on the way decide."""
        starts, parents, weights = self._starts, self._parents, self._weights
        for index in range(1, len(starts)):
            start = starts[index]
            parent = index - 1
            while not start.startswith(starts[parent]):
                parent = parents[parent]
            parents[index] = parent
            if weights[parent] > weights[index]:
                weights[index] = weights[parent]

    def _tries(self, wildcards: dict[str, dict[str, int]]) -> list[_Chain | None]:
        """For each start, the wildcard patterns that have it or one it begins with."""
        chains: list[_Chain | None] = []
        for index, start in enumerate(self._starts):
            above = chains[self._parents[index]] if index else None
            ours = wildcards.get(start)
            chains.append(_Chain(_Wildcards(start, ours), above) if ours else above)
        return chains


class _Pending(NamedTuple):
    """Rules that are in no index, one in the same place of each sequence."""

    patterns: list[str]
    lines: Sequence[int]
    allows: bytes


def _weighted(rules: _Pending, dialect: Dialect) -> Iterator[tuple[str, int]]:
    """The patterns of *rules* with their weights, and what they imply."""
    longest = dialect.precedence is Precedence.LONGEST
    for pattern, line, allow in zip(*rules, strict=True):
        # RFC 9309 §2.2, empty-pattern: no rule.
        if pattern or dialect.empty_rules_match:
            yield pattern, _weight(pattern, line, allow, longest)
        if allow and dialect.index_pages and "/index.htm" in pattern:
            for directory in _directory_of(pattern):
                yield directory, _weight(directory, line, allow, longest)


def _those_that_may_match(path: str, rules: _Pending, dialect: Dialect) -> RuleSet:
    """An index over few of *rules*: for one path, it takes less time than that over all."""
    few = [
        (pattern, line, allow)
        for pattern, line, allow in zip(*rules, strict=True)
        if path.startswith(pattern)
        or ("*" in pattern and path.startswith(pattern.partition("*")[0]))
        or pattern[-1:] == "$"
        or (allow and "/index.htm" in pattern)
    ]
    patterns, lines, allows = zip(*few, strict=True) if few else ((), (), ())
    return RuleSet(list(patterns), lines, allows, dialect)


class _Look(NamedTuple):
    """What there is to see of a path at first sight.

    One that begins with none of *starts*, and has none of *needles* in it, is
    refused by no rule. One that begins with none of *allowed* is refused by one
    if it begins with one of *refused*, or if the pattern matches that *needles*
    has for a needle in it. ``None`` is for those that several patterns have.
    """

    starts: tuple[str, ...]
    needles: dict[str, str | None]
    refused: tuple[str, ...]
    allowed: tuple[str, ...]


def _first_look(rules: _Pending, dialect: Dialect) -> _Look:
    refusing = list(filter(None, compress(rules.patterns, map(not_, rules.allows))))
    together = "\n".join(refusing)
    starts, needles = [], dict[str, str | None]()
    plain = refusing
    if dialect.wildcards and ("*" in together or "$" in together):
        plain = [pattern for pattern in refusing if not ("*" in pattern or pattern[-1] == "$")]
        for pattern in refusing:
            if "*" in pattern:
                start, _, rest = pattern.partition("*")
                needle = max(rest.removesuffix("$").split("*"), key=len)
                if len(needle) > 2 or len(start) < 2:
                    needles[needle] = None if needle in needles else pattern
                else:
                    starts.append(start)
            elif pattern[-1] == "$":
                starts.append(pattern[:-1])
    allowing = filter(None, compress(rules.patterns, rules.allows)) if any(rules.allows) else ()
    allowed = tuple([_start(pattern, dialect) for pattern in allowing])
    return _Look((*plain, *starts), needles, tuple(plain), allowed)


def _start(pattern: str, dialect: Dialect) -> str:
    """What every path begins with that *pattern* matches, or its index page is in."""
    if dialect.wildcards:
        pattern = pattern.partition("*")[0].removesuffix("$")
    return pattern.partition("/index.htm")[0] if dialect.index_pages else pattern


def _directory_of(pattern: str) -> Iterator[str]:
    """What else "Allow: /a/index.html" allows: "/a/" itself, which the server
    answers with that page. Leniency of the reference library."""
    slash = pattern.rfind("/")
    if pattern.startswith("/index.htm", slash):
        yield pattern[: slash + 1] + "$"


# -- patterns with "*" --------------------------------------------------------


class Wildcard(NamedTuple):
    """A pattern with ``*``."""

    weight: int
    #: What stands before its first ``*``.
    start: str
    #: A piece of it, which a path must have to match.
    needle: str
    #: All pieces after the first ``*``, in order.
    pieces: tuple[str, ...]
    #: Whether the last piece must be the path's end.
    anchored: bool

    def matches(self, path: str) -> bool:
        """Whether *path* begins with the start, and then has the pieces in order.

        The leftmost place for each piece leaves the most room for the next,
        so no place needs to be tried twice: linear, whatever the pattern.
        """
        if not path.startswith(self.start):
            return False
        position = len(self.start)
        for piece in self.pieces[:-1]:
            found = path.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
        last = self.pieces[-1]
        if self.anchored:
            return len(path) - len(last) >= position and path.endswith(last)
        return path.find(last, position) >= 0


class _Chain(NamedTuple):
    """A linked list."""

    wildcards: _Wildcards
    above: _Chain | None


# To look for so many needles one by one costs less than to look at the grams of a path.
_FEW = 24
# Stands after a path and after an anchored pattern; neither has one in it.
_END = "\n"


class _Sieve(NamedTuple):
    """How to file patterns with a piece of *least* characters or more.

    Each is filed under *stride* grams of *size* that follow each other. Of a path,
    every *stride*-th gram is looked up: whatever the place of the piece in it, one
    of those is among them.
    """

    size: int
    stride: int
    least: int


# The longer the stride, the fewer grams of a path are looked up.
_SIEVES = tuple(
    _Sieve(size, stride, size + stride - 1)
    for size, stride in ((4, 4), (3, 2), (3, 1), (2, 1), (1, 1))
)
# Of so many, loading would take longer than all checks of a crawl.
_MANY = 5_000
_SIEVES_OF_MANY = tuple(sieve for sieve in _SIEVES if sieve.stride == 1)
# How many pieces of a pattern are considered: loading takes time, too.
_PIECES_TRIED = 4


class _Wildcards:
    """The patterns with ``*`` that have one start.

    Where there are many, each is filed under grams, which are a few characters
    in a row that a path must have to match it, and that few other patterns
    have. Only those that are filed under a gram of the path are tried.
    """

    __slots__ = ("_filed", "_loose", "_position")

    def __init__(self, start: str, patterns: dict[str, int]) -> None:
        self._position = len(start)
        split = [_split(pattern, weight) for pattern, weight in patterns.items()]
        split.sort(reverse=True)
        #: By gram; in each list the greatest weight first.
        self._filed: dict[_Sieve, dict[str, list[Wildcard]]] = {}
        self._loose = split
        if len(split) > _FEW:
            self._loose = []
            self._file(split)

    def _file(self, wildcards: list[Wildcard]) -> None:
        sieves = _SIEVES if len(wildcards) <= _MANY else _SIEVES_OF_MANY
        choices = [_choices(wildcard, sieves) for wildcard in wildcards]
        # Of a run of grams, the first or the last stands for all.
        frequency = Counter([gram for choice in choices for _, _, gram, _ in choice])
        for wildcard, choice in zip(wildcards, choices, strict=True):
            if not choice:
                self._loose.append(wildcard)
                continue
            sieve, piece, _, start = min(choice, key=lambda choice: frequency[choice[2]])
            by_gram = self._filed.setdefault(sieve, {})
            for place in range(start, start + sieve.stride):
                by_gram.setdefault(piece[place : place + sieve.size], []).append(wildcard)

    def best(self, path: str, best: int) -> int:
        """The greatest of *best* and the weights of the patterns that match *path*."""
        best = _best_of(self._loose, path, best)
        if self._filed:
            text = path[self._position :] + _END
            for (size, stride, _), by_gram in self._filed.items():
                # A set: a path may have a gram a thousand times.
                for gram in {text[i : i + size] for i in range(0, len(text) - size + 1, stride)}:
                    if gram in by_gram:
                        best = _best_of(by_gram[gram], path, best)
        return best


def _best_of(wildcards: list[Wildcard], path: str, best: int) -> int:
    """The same for *wildcards*, the greatest weight first."""
    for wildcard in wildcards:
        # Most are out by one of the two.
        weight, _, needle, _, _ = wildcard
        if weight < best:
            break
        if needle in path and wildcard.matches(path):
            return weight
    return best


def _split(pattern: str, weight: int) -> Wildcard:
    anchored = pattern[-1] == "$"
    start, *pieces = (pattern[:-1] if anchored else pattern).split("*")
    if len(pieces) == 1:
        return Wildcard(weight, start, pieces[0], tuple(pieces), anchored)
    # "**" is "*", but after the last one there may be nothing.
    pieces[:-1] = filter(None, pieces[:-1])
    return Wildcard(weight, start, max(pieces, key=len), tuple(pieces), anchored)


#: A sieve, a piece, a gram of that, and where the run of grams begins in it.
_Choice = tuple[_Sieve, str, str, int]


def _choices(wildcard: Wildcard, sieves: Sequence[_Sieve]) -> list[_Choice]:
    """Under what *wildcard* could be filed: what its longer pieces begin and end with."""
    pieces: Sequence[str] = wildcard.pieces
    if wildcard.anchored:
        pieces = (*pieces[:-1], pieces[-1] + _END)
    if len(pieces) > 1:
        long = [piece for piece in pieces if len(piece) > 2][:_PIECES_TRIED]
        pieces = long or (max(pieces, key=len),)
    choices: list[_Choice] = []
    for piece in pieces:
        for sieve in sieves:
            if len(piece) >= sieve.least:
                size = sieve.size
                choices.append((sieve, piece, piece[-size:], len(piece) - sieve.least))
                choices.append((sieve, piece, piece[:size], 0))
                break
    return choices
