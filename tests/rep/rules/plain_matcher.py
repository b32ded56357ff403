"""RFC 9309 §2.2.2 and §2.2.3 letter by letter, to compare the index with.

``python -m tests.rep.rules.plain_matcher 100000`` compares so many paths for each dialect, with
rules at random.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random
from unittest.mock import patch

from scrapy_rep.rep.dialects import DIALECTS, Dialect, Precedence
from scrapy_rep.rep.parsing.urls import canonical_patterns, path_to_match
from scrapy_rep.rep.rules import matching
from scrapy_rep.rep.rules.matching import Rule, RuleSet, line_of, refuses


def rule_set(rules: Sequence[Rule], dialect: Dialect) -> RuleSet:
    """The index over *rules*."""
    patterns = canonical_patterns([rule.value for rule in rules], dialect)
    lines, allows = [rule.line for rule in rules], [rule.allow for rule in rules]
    return RuleSet(lines, patterns, allows, dialect)


def decide(
    rules: Sequence[Rule], path: str, dialect: Dialect, index: RuleSet | None = None
) -> Rule | None:
    """The rule that *index* over *rules* says, which no other way to decide contradicts."""
    if index is None:
        index = rule_set(rules, dialect)
    line = line_of(index.decide(path))
    # Grams are looked for in the path, or those of the path are looked up; pieces are
    # searched in the path, or in the path with a filling.
    with patch.multiple(matching, _FEW=0, _LONG_PATH=0, _LONG_PIECE=0):
        assert line_of(rule_set(rules, dialect).decide(path)) == line
    rule = next((rule for rule in rules if rule.line == line), None)
    patterns = canonical_patterns([rule.value for rule in rules], dialect)
    refused = refuses(path, patterns, [rule.allow for rule in rules], dialect)
    assert refused is bool(rule and rule.refuses)
    return rule


def plain_decide(rules: Sequence[Rule], path: str, dialect: Dialect) -> Rule | None:
    """The rule that decides, by trying all of them."""
    best: tuple[tuple[int, ...], Rule] | None = None
    for rule in rules:
        if not rule.value and not dialect.empty_rules_match:
            continue
        (pattern,) = canonical_patterns([rule.value], dialect)
        forms = [pattern]
        if dialect.index_pages and rule.allow and "/" in pattern:
            directory, _, page = pattern.rpartition("/")
            forms += [f"{directory}/$"] if page.startswith("index.htm") else []
        for form in forms:
            rank: tuple[int, ...] = (-rule.line,)
            if dialect.precedence is Precedence.LONGEST:
                rank = (len(form), rule.allow, -rule.line)
            if matches(form, path, dialect) and (best is None or rank > best[0]):
                best = rank, rule
    return best[1] if best else None


def matches(pattern: str, path: str, dialect: Dialect) -> bool:
    """Whether *pattern* matches *path*, by all the places in *path* to be at so far."""
    if not dialect.wildcards:
        return path.startswith(pattern)
    places = {0}
    anchored = pattern.endswith("$")
    for byte in pattern.removesuffix("$"):
        if byte == "*":
            places = set(range(min(places), len(path) + 1))
        else:
            places = {place + 1 for place in places if path[place : place + 1] == byte}
        if not places:
            return False
    return not anchored or len(path) in places


_PIECES = ("/", "/", "a", "b", "ab", "aab", "bcd", "%61", "-1", "?", "=", ".htm", "index.htm")
_IN_PATTERNS = (*_PIECES, *_PIECES, "*", "*", "*", "*", "$", "/*", "a" * 20, "ab" * 9)
_PATHS_OF_A_FILE = 20


def compare(dialect: Dialect, paths: int, random: Random) -> None:
    """Compare so many *paths*, each with the rules of a file."""
    for _ in range(paths // _PATHS_OF_A_FILE):
        rules = [
            Rule(random.random() < 0.4, _text(random, _IN_PATTERNS, 8).encode(), line)
            for line in range(1, random.choice((3, 10, 30, 90)))
        ]
        index = rule_set(rules, dialect)
        for _ in range(_PATHS_OF_A_FILE):
            url = "/" + _text(random, (*_PIECES, "a" * 19, "ab" * 60), 12).lstrip("/")
            path = path_to_match(url, dialect)
            assert decide(rules, path, dialect, index) == plain_decide(rules, path, dialect), url


def _text(random: Random, pieces: Sequence[str], most: int) -> str:
    return "".join(random.choices(pieces, k=random.randint(0, most)))


def main() -> None:
    paths = int(sys.argv[1])
    for name, dialect in DIALECTS.items():
        compare(dialect, paths, Random(name))
        sys.stdout.write(f"{name}: {paths:,} paths, no difference\n")


if __name__ == "__main__":
    main()
