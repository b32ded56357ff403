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
its start, and there is no more to it. One with ``*`` is found by a word that a
path must have to match it and few other patterns have (:func:`_by_word`), or
else by its start and a few characters in a row (:class:`_Wildcards`).

For most paths nobody has to search: that no rule refuses them is seen at first
sight (:data:`Look`, :data:`Signs`).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter, not_
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


def specific(weight: int) -> int:
    """How specific the rule of *weight* is: twice its octets, and one more if it allows.

    0 in dialects in which the first match decides.
    """
    return weight >> 1 + _LINE_BITS


def _weight(pattern: str, line: int, allow: int, longest: bool) -> int:
    specific = 2 * len(pattern) + allow if longest else 0
    return (specific << _LINE_BITS | _LAST_LINE - line) << 1 | (allow or not pattern)


class RuleSet:
    """The rules of a group, as an index that is asked with a path.

    *patterns* are in the form that
    :func:`~scrapy_rep.rep.urls.canonical_patterns` gives them; *lines* and
    *allows* are the line of each, and whether it is that of an allow line.
    """

    __slots__ = (
        "_by_word",
        "_checks_until_signs",
        "_exact",
        "_has_wildcards",
        "_parents",
        "_starts",
        "_weights",
        "_wildcards",
        "_without_signs",
        "_words",
        "look",
        "plain",
        "signs",
    )

    def __init__(
        self, lines: Sequence[int], patterns: list[str], allows: Sequence[bool], dialect: Dialect
    ) -> None:
        # What every path begins with, so that a search always finds something.
        starts: dict[str, int] = {"": NO_RULE}
        exact: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for pattern, weight in _weighted(zip(lines, patterns, allows, strict=True), dialect):
            if not dialect.wildcards or ("*" not in pattern and pattern[-1:] != "$"):
                table, key = starts, pattern
            elif "*" not in pattern:
                table, key = exact, pattern[:-1]
            elif "*" not in (plain := pattern.rstrip("*")):
                table, key = starts, plain
            else:
                table, key = wildcards, pattern
            if weight > table.get(key, 0):
                table[key] = weight
        self._has_wildcards = bool(wildcards)
        self._by_word = _by_word(wildcards)
        self._words = frozenset(self._by_word)
        by_start: dict[str, dict[str, int]] = {}
        for pattern, weight in wildcards.items():
            start = pattern.partition("*")[0]
            starts.setdefault(start, NO_RULE)
            by_start.setdefault(start, {})[pattern] = weight
        self._exact = exact
        # As new strings, for those that follow each other to be neighbours in memory: a
        # search looks at some of them at its end, and what a processor has at hand is quick.
        self._starts = sorted(starts)
        # In the form of the draft of 1996, a pattern may have a line end in it.
        if not any(_END in start for start in starts):
            self._starts = _END.join(self._starts).split(_END)
        self._weights = [starts[start] for start in self._starts]
        self._parents = array("L", [0]) * len(starts)
        self._link()
        self._wildcards = self._tries(by_start) if by_start else None
        #: What :meth:`decide` looks at where no pattern has a wildcard, if there are many.
        self.plain: Plain | None = None
        if len(patterns) > _FEW and not self._has_wildcards and not exact:
            lets = [bool(weight & 1) for weight in self._weights]
            self.plain = self._starts, self._parents, lets
        #: Where there are few rules, it takes less time than the index.
        self.look = _look(patterns, allows, dialect) if len(patterns) <= _FEW else None
        #: Where there are more, and some with "*", this takes less time than the index to
        #: see that no rule refuses a path. ``None`` until there were many checks.
        self.signs: Signs | None = None
        self._without_signs: list[str] | None = None
        self._checks_until_signs = min(len(patterns), _CHECKS_WITHOUT_SIGNS)
        if self._has_wildcards and _FEW < len(patterns) <= _MANY:
            self._without_signs = list(filter(None, compress(patterns, map(not_, allows))))

    def decide(self, path: str, words: list[bytes] | None = None) -> int:
        """The weight of the rule that decides about *path*, or :data:`NO_RULE`.

        *path* is what :func:`~scrapy_rep.rep.urls.path_to_match` returns for
        the dialect of this rule set, *words* are its :func:`words_of`, where they
        are known. The last bit says whether it lets through.
        """
        starts = self._starts
        index = bisect_right(starts, path) - 1
        # All paths begin with the first one.
        while index and not path.startswith(starts[index]):
            index = self._parents[index]
        best = self._weights[index]
        if self._exact:
            best = max(best, self._exact.get(path, NO_RULE))
        return self._best_wildcard(path, words, index, best) if self._has_wildcards else best

    def _best_wildcard(self, path: str, words: list[bytes] | None, index: int, best: int) -> int:
        """The greatest of *best* and the weights of the patterns with ``*`` that match *path*.

        *index* is that of the last start that *path* begins with.
        """
        if self._without_signs is not None:
            self._checks_until_signs -= 1
            if not self._checks_until_signs:
                self.signs, self._without_signs = _signs(self._without_signs), None
        places = _Places(path) if len(path) >= _LONG_PATH else None
        if self._wildcards is not None:
            link = self._wildcards[index]
            while link is not None:
                best = link.wildcards.best(path, best, places)
                link = link.above
        if self._by_word:
            if words is None:
                words = words_of(path.encode("latin-1"))
            # Mostly none is among them, and this is quick to see.
            if not self._words.isdisjoint(words):
                for word in self._words.intersection(words):
                    best = _best_of(self._by_word[word], path, best, places)
        return best

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


# What follows, in a pattern, what all paths begin with that it matches. The second
# one knows about index pages, and takes longer.
_TAIL = re.compile(r"[*$].*")
_TAIL_OR_PAGE = re.compile(r"(?:[*$]|index\.htm).*")


def refuses(path: str, patterns: list[str], allows: Sequence[bool], dialect: Dialect) -> bool:
    """Whether the rule that decides about *path* refuses it, as :class:`RuleSet` would say.

    For one path, this takes less time than to make the index. *patterns* and
    *allows* are as there, in file order.
    """
    starts = patterns
    if dialect.wildcards:
        together = _END.join(patterns)
        if together.count(_END) >= len(patterns):
            starts = [_start(pattern, dialect) for pattern in patterns]
        elif "index.htm" in together:
            starts = _TAIL_OR_PAGE.sub("", together).split("\n")
        elif "*" in together or "$" in together:
            starts = _TAIL.sub("", together).split("\n")
    if not path.startswith(tuple(starts)):
        return False
    few = []
    for index in compress(range(len(starts)), map(path.startswith, starts)):
        pattern = patterns[index]
        # Most with "*" are out by how they end.
        if pattern.rpartition("*")[2].removesuffix("$") in path or "index.htm" in pattern:
            few.append((index, pattern, allows[index]))
    best = NO_RULE
    for pattern, weight in _weighted(few, dialect):
        if weight > best and _matches(pattern, path, dialect):
            best = weight
    return not best & 1


def _matches(pattern: str, path: str, dialect: Dialect) -> bool:
    if not dialect.wildcards:
        return path.startswith(pattern)
    if "*" in pattern:
        return _split(pattern, NO_RULE).matches(path)
    return path == pattern[:-1] if pattern[-1:] == "$" else path.startswith(pattern)


def _weighted(
    rules: Iterable[tuple[int, str, bool]], dialect: Dialect
) -> Iterator[tuple[str, int]]:
    """The patterns of *rules*, and those that they imply, with their weights.

    A rule is its line, its pattern, and whether it allows.
    """
    longest = dialect.precedence is Precedence.LONGEST
    for line, pattern, allow in rules:
        # RFC 9309 §2.2, empty-pattern: no rule.
        if pattern or dialect.empty_rules_match:
            yield pattern, _weight(pattern, line, allow, longest)
        if allow and dialect.index_pages and "/index.htm" in pattern:
            for directory in _directory_of(pattern):
                yield directory, _weight(directory, line, allow, longest)


#: What there is to see of a path at first sight: *starts*, *needles*, *refused* and
#: *allowed*. One that begins with none of *starts*, and has none of *needles* in it,
#: is refused by no rule. One that begins with none of *allowed* is refused by one if
#: it begins with one of *refused*, or if the pattern matches that *needles* has for a
#: needle in it; ``None`` is for those that several patterns have.
#: (A plain tuple, because Python unpacks no other as quickly.)
Look = tuple[tuple[str, ...], dict[str, "Wildcard | None"], tuple[str, ...], tuple[str, ...]]


def _look(patterns: list[str], allows: Sequence[bool], dialect: Dialect) -> Look:
    refusing = list(filter(None, compress(patterns, map(not_, allows))))
    starts, needles, plain = list[str](), dict[str, Wildcard | None](), list[str]()
    for pattern in refusing:
        if dialect.wildcards and "*" in pattern:
            wildcard = _split(pattern, NO_RULE)
            if len(wildcard.needle) > 2 or len(wildcard.start) < 2:
                needles[wildcard.needle] = None if wildcard.needle in needles else wildcard
            else:
                starts.append(wildcard.start)
        elif dialect.wildcards and pattern[-1] == "$":
            starts.append(pattern[:-1])
        else:
            plain.append(pattern)
    allowing = filter(None, compress(patterns, allows))
    allowed = tuple([_start(pattern, dialect) for pattern in allowing])
    return (*plain, *starts), needles, tuple(plain), allowed


#: Starts, sorted, the parent of each, and whether a path is let through of which it is the
#: last start that this begins with.
Plain = tuple[list[str], "array[int]", list[bool]]

#: *words* and *starts*. A path that has none of these words (:func:`words_of`), and begins
#: with none of these starts, is refused by no rule.
Signs = tuple[frozenset[bytes], tuple[str, ...]]

# To find signs takes as long as they save in about as many checks as there are patterns;
# after this many, a site has so many pages that it is worth it in any case.
_CHECKS_WITHOUT_SIGNS = 1_000


def _signs(refusing: Iterable[str]) -> Signs | None:
    """The rarest word of each pattern of *refusing*, or its start if it has none.

    ``None`` where these starts are too many, or one is that of all paths.
    """
    words, starts = set[bytes](), set[str]()
    for pattern, word, _ in _rarest_words(refusing):
        if word:
            words.add(word.encode("ascii"))
        else:
            starts.add(pattern.partition("*")[0].removesuffix("$"))
    if len(starts) > _FEW or "" in starts or "/" in starts:
        return None
    return frozenset(words), tuple(starts)


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


@dataclass(slots=True, eq=False)
class Wildcard:
    """A pattern with ``*``; never changed, but to be frozen takes longer to make."""

    weight: int
    #: What stands before its first ``*``.
    start: str
    #: A piece of it, which a path must have to match.
    needle: str
    #: All pieces after the first ``*``, in order.
    pieces: tuple[str, ...]
    #: Whether the last piece must be the path's end.
    anchored: bool

    def in_order(self, places: _Places) -> bool:
        """Whether the pieces may be in order in a path, by where each is first and last."""
        start, end = places[self.pieces[0]][0], places[self.pieces[-1]][1]
        if start < 0 or end < start:
            return False
        if self.anchored and end + len(self.pieces[-1]) < places.end:
            return False
        for piece in self.pieces:
            first, last = places[piece]
            start = max(start, first)
            if last < start:
                return False
            start += len(piece)
        return True

    def matches(self, path: str) -> bool:
        """Whether *path* begins with the start, and then has the pieces in order.

        The leftmost place for each piece leaves the most room for the next,
        so no place needs to be tried twice: linear, whatever the pattern.
        """
        if not path.startswith(self.start):
            return False
        position = len(self.start)
        *between, last = self.pieces
        for piece in between:
            found = path.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
        if self.anchored:
            return len(path) - len(last) >= position and path.endswith(last)
        return path.find(last, position) >= 0


_weight_of = attrgetter("weight")


class _Chain(NamedTuple):
    """A linked list."""

    wildcards: _Wildcards
    above: _Chain | None


# What may be in a word. The words of a path are what is left between all else.
_IN_WORDS = "-A-Za-z0-9_%"
_WORD_OR_SPACE = re.sub(f"[^{_IN_WORDS}]".encode(), b" ", bytes(range(256)))
# In a pattern, only what is a word of all paths that it matches.
_WORD = re.compile(rf"(?<=[^{_IN_WORDS}*])[{_IN_WORDS}]+(?=[^{_IN_WORDS}*])")
# So many patterns may have a word, and be tried for all paths that have it.
_SHARE_A_WORD = 8


def words_of(path: bytes) -> list[bytes]:
    """The words of *path*."""
    return path.translate(_WORD_OR_SPACE).split()


def words_among(octets: bytes) -> bytes:
    """A table for :meth:`bytes.translate`, which leaves a path's words, with spaces between them.

    In place of whatever is not one of *octets*, it puts a NUL.
    """
    return bytes(mark if octet in octets else 0 for octet, mark in enumerate(_WORD_OR_SPACE))


def _rarest_words(patterns: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Each of *patterns*, its word that the fewest have ("" if it has none), how many do."""
    words = {pattern: _WORD.findall(pattern) for pattern in patterns}
    frequency = Counter(chain.from_iterable(words.values()))
    for pattern, its in words.items():
        rarest = min(its, key=frequency.__getitem__, default="")
        yield pattern, rarest, frequency[rarest]


def _by_word(patterns: dict[str, int]) -> dict[bytes, list[Wildcard]]:
    """Those of *patterns* with ``*``, with their weights, that have a word which few
    others have; they are taken out. In each list the greatest weight comes first."""
    by_word: dict[bytes, list[Wildcard]] = {}
    if not _FEW < len(patterns) <= _MANY:
        return by_word
    for pattern, word, frequency in _rarest_words(patterns):
        if word and frequency <= _SHARE_A_WORD:
            wildcard = _split(pattern, patterns.pop(pattern))
            by_word.setdefault(word.encode("ascii"), []).append(wildcard)
    for wildcards in by_word.values():
        wildcards.sort(key=_weight_of, reverse=True)
    return by_word


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
        split.sort(key=_weight_of, reverse=True)
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
            sieve, piece, _, start = min(choice, key=lambda choice: frequency[choice[2]])
            by_gram = self._filed.setdefault(sieve, {})
            for place in range(start, start + sieve.stride):
                by_gram.setdefault(piece[place : place + sieve.size], []).append(wildcard)

    def best(self, path: str, best: int, places: _Places | None) -> int:
        """The greatest of *best* and the weights of the patterns that match *path*."""
        best = _best_of(self._loose, path, best, places)
        if self._filed:
            text = path[self._position :] + _END
            for (size, stride, _), by_gram in self._filed.items():
                # A set: a path may have a gram a thousand times.
                for gram in {text[i : i + size] for i in range(0, len(text) - size + 1, stride)}:
                    if gram in by_gram:
                        best = _best_of(by_gram[gram], path, best, places)
        return best


# A path of so many characters may have the pieces of many patterns in it, in another
# order, and takes long to look through for each.
_LONG_PATH = 500


class _Places(dict[str, tuple[int, int]]):
    """Where in a long path pieces are first and last, -1 where they are not."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.end = len(path)

    def __missing__(self, piece: str) -> tuple[int, int]:
        first = self._path.find(piece)
        places = self[piece] = first, first if first < 0 else self._path.rfind(piece)
        return places


def _best_of(wildcards: Iterable[Wildcard], path: str, best: int, places: _Places | None) -> int:
    """The same for *wildcards*, the greatest weight first."""
    for wildcard in wildcards:
        if wildcard.weight < best:
            break
        # Most are out by this.
        may_match = wildcard.needle in path if places is None else wildcard.in_order(places)
        if may_match and wildcard.matches(path):
            return wildcard.weight
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
        # The last sieve takes any piece, and none is empty: a pattern that ends with
        # "*" has others.
        sieve = next(sieve for sieve in sieves if len(piece) >= sieve.least)
        choices.append((sieve, piece, piece[-sieve.size :], len(piece) - sieve.least))
        choices.append((sieve, piece, piece[: sieve.size], 0))
    return choices
