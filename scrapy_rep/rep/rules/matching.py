"""Which rule of a group decides about a path.

RFC 9309 §2.2.2: "The most specific match found MUST be used. The most specific
match is the match that has the most octets." and, of rules that are
equivalent, "the allow rule SHOULD be used". §2.2.3: ``*`` is "0 or more
instances of any character", ``$`` "the end of the match pattern".

Each rule has a *weight*, an integer: of the rules that match, the one with the greatest weight
decides. Three ideas find it:

1. *Sorted starts.* Patterns without ``*`` are in one sorted list, each with a link to the longest
   other one that it begins with. A binary search for a path finds the last one before it: the
   longest one that the path begins with is that one, or follows from its links. Each has the
   greatest weight along its links.
2. *Grams.* A pattern with ``*`` is indexed by a gram: up to four consecutive characters that are
   in every path that it matches, and in few other patterns of the file. Only the patterns with a
   gram of the path are tried, the greatest weight first.
3. *A limit.* Each piece of a pattern between two ``*`` is searched once, after the piece before
   it: the leftmost match leaves the most room for the next one. If the patterns with a gram of
   the path have more than :data:`MOST_PIECES` pieces, the path is refused without a search.

So, for a file of F bytes and a path of U bytes, the time of a check is at most proportional to
U log F + U * MOST_PIECES.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from operator import itemgetter, not_
from typing import NamedTuple

from ..dialects import RFC9309, Dialect, Precedence
from ..text import printable

# The layout of a weight, from the highest bits: how specific the rule is, how early it is in its
# file, and in the last bit whether it allows.
_LINE_BITS = 32
_LAST_LINE = (1 << _LINE_BITS) - 1
NO_RULE = 1  #: The weight where no rule matches: less than that of any rule, and allowing.
TOO_COSTLY = 0  #: The weight if too many rules would have to be tried: refusing.
#: The most pieces of patterns with ``*`` that are searched in a path. No file of 2,793
#: popular sites has rules with more than 638 of them for one agent.
MOST_PIECES = 800

# The length of a gram. CPython's search for so few characters takes linear time.
_GRAM = 4
# How many grams of a pattern are considered, because counting them takes time.
_GRAMS_CONSIDERED = 16
# Up to this number, all grams are searched in a path; else the grams of the path are looked up.
_FEW = 64


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line: its *value* as written, its *line* from 1."""

    allow: bool
    value: bytes
    line: int

    @property
    def refuses(self) -> bool:
        """Whether it is a Disallow line with a value (RFC 9309 §2.2: empty-pattern)."""
        return not self.allow and bool(self.value)

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {printable(self.value)}".rstrip()


def line_of(weight: int) -> int:
    """The line of the rule of *weight*, from 1; 0 where there is no rule."""
    return 0 if weight in (NO_RULE, TOO_COSTLY) else _LAST_LINE - (weight >> 1 & _LAST_LINE)


def specific(weight: int) -> int:
    """Twice the length of the rule of *weight*, plus one if it allows; 0 if the first decides."""
    return weight >> 1 + _LINE_BITS


def _weight(pattern: str, line: int, allow: int, longest: bool) -> int:
    specific = 2 * len(pattern) + allow if longest else 0
    return (specific << _LINE_BITS | _LAST_LINE - line) << 1 | (allow or not pattern)


class RuleSet:
    """An index of the rules of a group.

    *patterns* are in the form of :func:`~scrapy_rep.rep.parsing.urls.canonical_patterns`;
    *lines* has the line of each, *allows* whether it allows.
    """

    __slots__ = ("_by_gram", "_exact", "_few", "_parents", "_sizes", "_starts", "_weights")

    def __init__(
        self, lines: Sequence[int], patterns: list[str], allows: Sequence[bool], dialect: Dialect
    ) -> None:
        # Every path begins with "", so a search always finds a start.
        starts: dict[str, int] = {"": NO_RULE}
        exact: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for pattern, weight in _weighted(zip(lines, patterns, allows, strict=True), dialect):
            table, key = starts, pattern
            if dialect.wildcards:
                core = pattern.removesuffix("$")
                if core[-1:] == "*":
                    # "/a*" and "/a*$" match what "/a" does.
                    key = core.rstrip("*")
                    if "*" in key:
                        table, key = wildcards, key + "*"
                elif "*" in core:
                    table = wildcards
                elif core != pattern:
                    table, key = exact, core
            if weight > table.get(key, 0):
                table[key] = weight
        self._exact = exact
        self._starts = sorted(starts)
        self._weights = [starts[start] for start in self._starts]
        self._parents = array("L", [0]) * len(starts)
        self._link()
        self._by_gram = _by_gram(wildcards)
        pieces = sum(filed.pieces for filed in self._by_gram.values())
        few = len(self._by_gram) <= _FEW and pieces <= MOST_PIECES
        self._few = list(self._by_gram) if few else []
        self._sizes = [] if few else sorted(set(map(len, self._by_gram)))

    def _link(self) -> None:
        """Set the parent of each start, and the greatest weight along the parents."""
        starts, parents, weights = self._starts, self._parents, self._weights
        for index in range(1, len(starts)):
            parent = index - 1
            while not starts[index].startswith(starts[parent]):
                parent = parents[parent]
            parents[index] = parent
            weights[index] = max(weights[index], weights[parent])

    def decide(self, path: str) -> int:
        """The weight of the rule that decides about *path*, or :data:`NO_RULE` or
        :data:`TOO_COSTLY`. Its last bit is whether *path* is allowed.

        *path* is in the form of :func:`~scrapy_rep.rep.parsing.urls.path_to_match`.
        """
        starts = self._starts
        index = bisect_right(starts, path) - 1
        # All paths begin with the first one.
        while index and not path.startswith(starts[index]):
            index = self._parents[index]
        best = self._weights[index]
        if self._exact:
            best = max(best, self._exact.get(path, NO_RULE))
        for gram in self._few:
            if gram in path:
                best = _best_of(self._by_gram[gram].wildcards, path, _filled(path), best)
        return self._best_among_many(path, best) if self._sizes else best

    def _best_among_many(self, path: str, best: int) -> int:
        """The greatest of *best* and the weights of the patterns with ``*`` that match *path*."""
        by_gram = self._by_gram
        grams = {
            gram
            for size in self._sizes
            for place in range(len(path) - size + 1)
            if (gram := path[place : place + size]) in by_gram
        }
        if sum([by_gram[gram].pieces for gram in grams]) > MOST_PIECES:
            return TOO_COSTLY
        text = _filled(path)
        for gram in grams:
            best = _best_of(by_gram[gram].wildcards, path, text, best)
        return best


def refuses(path: str, patterns: list[str], allows: Sequence[bool], dialect: Dialect) -> bool:
    """Whether the rule that decides about *path* refuses it, without an index if possible.

    For one path, this is faster. *patterns* and *allows* are those of :class:`RuleSet`.
    """
    refusing = list(filter(None, compress(patterns, map(not_, allows))))
    together = "".join(patterns)
    # No pattern has more pieces than "*"; an allow rule for an index page counts twice.
    may_be_too_costly = 2 * together.count("*") > MOST_PIECES
    wild: list[str] = []
    if dialect.wildcards and ("*" in together or "$" in together):
        wild = [pattern for pattern in refusing if "*" in pattern or pattern[-1] == "$"]
    if not (
        may_be_too_costly
        or path.startswith(tuple(refusing))
        or any(pattern_matches(pattern, path, dialect) for pattern in wild)
    ):
        return False
    return not RuleSet(range(len(patterns)), patterns, allows, dialect).decide(path) & 1


def weight_of(rule: tuple[int, str, bool], path: str, dialect: Dialect) -> int:
    """The weight of *rule* if it matches *path*, or :data:`NO_RULE`.

    A rule is its line, its pattern, and whether it allows.
    """
    weighted = _weighted([rule], dialect)
    weights = (weight for each, weight in weighted if pattern_matches(each, path, dialect))
    return max(weights, default=NO_RULE)


def pattern_matches(pattern: str, path: str, dialect: Dialect = RFC9309) -> bool:
    """Whether *pattern* alone matches *path*.

    *pattern* is in the form of :func:`~scrapy_rep.rep.parsing.urls.canonical_patterns`, *path* in
    that of :func:`~scrapy_rep.rep.parsing.urls.path_to_match`, for the same *dialect*. The time
    is linear in the length of *path* for each ``*``, whatever the pattern.

    >>> [pattern_matches("/a/*.pdf$", path) for path in ("/a/b/c.pdf", "/a/b.pdf?page=2")]
    [True, False]
    """
    if not dialect.wildcards:
        return path.startswith(pattern)
    if "*" not in pattern:
        return path == pattern[:-1] if pattern[-1:] == "$" else path.startswith(pattern)
    # Most paths do not have the start of the last piece.
    if pattern.rpartition("*")[2][:_GRAM].removesuffix("$") not in path:
        return False
    return _best_of([_wildcard(pattern, NO_RULE + 1)], path, _filled(path), NO_RULE) > NO_RULE


def _weighted(
    rules: Iterable[tuple[int, str, bool]], dialect: Dialect
) -> Iterator[tuple[str, int]]:
    """The patterns of *rules* (see :func:`weight_of`) and implied patterns, with weights."""
    longest = dialect.precedence is Precedence.LONGEST
    for line, pattern, allow in rules:
        # RFC 9309 §2.2, empty-pattern: no rule.
        if pattern or dialect.empty_rules_match:
            yield pattern, _weight(pattern, line, allow, longest)
        # Leniency of the reference library: "Allow: /a/index.html" also allows "/a/",
        # which the server answers with that page.
        if allow and dialect.index_pages and "/index.htm" in pattern:
            directory, slash, page = pattern.rpartition("/")
            if page.startswith("index.htm"):
                directory += slash + "$"
                yield directory, _weight(directory, line, allow, longest)


# -- patterns with "*" --------------------------------------------------------

# CPython's search takes time proportional to text times piece if the text has less than 30,000
# characters and the piece less than 100 (or the text less than 2,500). So in a long path, long
# pieces are searched with a filling after the path. The search skips a character quickly if no
# character of the piece has the same lowest six bits, so most of the filling is skipped.
_LONG_PATH = 300
_LONG_PIECE = 17
_FILLING = "".join(map(chr, range(0x80, 0xC0))) * 469


class _Wildcard(NamedTuple):
    """A pattern with ``*``."""

    weight: int
    start: str  #: The text before its first ``*``.
    pieces: list[str]  #: The texts that have to follow in this order.
    end: str  #: The text between the last ``*`` and ``$``; "" without ``$``.


def _wildcard(pattern: str, weight: int) -> _Wildcard:
    start, *pieces = pattern.split("*")
    end = pieces.pop()[:-1] if pattern[-1] == "$" else ""
    return _Wildcard(weight, start, [piece for piece in pieces if piece], end)


def _filled(path: str) -> str:
    return path if len(path) < _LONG_PATH else path + _FILLING


def _best_of(wildcards: list[_Wildcard], path: str, text: str, best: int) -> int:
    """The greatest of *best* and the weights of the *wildcards* that match *path*.

    They are sorted, the greatest weight first; *text* is :func:`_filled`.
    """
    for weight, start, pieces, end in wildcards:
        if weight <= best:
            break
        if not path.startswith(start):
            continue
        place = len(start)
        for piece in pieces:
            found = (path if len(piece) < _LONG_PIECE else text).find(piece, place)
            if found < 0:
                break
            place = found + len(piece)
        else:
            # A piece that is partly in the filling ends after the path.
            if place + len(end) <= len(path) and path.endswith(end):
                return weight
    return best


class _Filed(NamedTuple):
    """The patterns of one gram, the greatest weight first, and the number of their pieces."""

    pieces: int
    wildcards: list[_Wildcard]


def _by_gram(patterns: dict[str, int]) -> dict[str, _Filed]:
    """Index *patterns* with ``*`` and their weights by the rarest gram of each."""
    wildcards = [_wildcard(pattern, weight) for pattern, weight in patterns.items()]
    wildcards.sort(key=itemgetter(0), reverse=True)
    choices = [_grams(wildcard) for wildcard in wildcards]
    frequency = Counter(chain.from_iterable(choices))
    by_gram: dict[str, list[_Wildcard]] = {}
    for wildcard, choice in zip(wildcards, choices, strict=True):
        by_gram.setdefault(min(choice, key=frequency.__getitem__), []).append(wildcard)
    return {
        gram: _Filed(sum(len(wildcard.pieces) or 1 for wildcard in filed), filed)
        for gram, filed in by_gram.items()
    }


def _grams(wildcard: _Wildcard) -> list[str]:
    """The possible grams of *wildcard*: the last ones, or its longest piece."""
    pieces = (wildcard.start, *wildcard.pieces, wildcard.end)
    grams: list[str] = []
    for piece in reversed(pieces):
        first = max(0, len(piece) - _GRAMS_CONSIDERED - _GRAM)
        grams += [piece[i : i + _GRAM] for i in range(len(piece) - _GRAM, first - 1, -1)]
        if len(grams) >= _GRAMS_CONSIDERED:
            break
    return grams or [max(pieces, key=len)]
