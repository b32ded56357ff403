"""RFC 9309 §2.2.2 and §2.2.3 letter by letter, to compare the index with."""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_rep.rep.dialects import Dialect, Precedence
from scrapy_rep.rep.matching import Rule, RuleSet, line_of
from scrapy_rep.rep.urls import canonical_patterns


def rule_set(rules: Sequence[Rule], dialect: Dialect) -> RuleSet:
    """The index over *rules*."""
    patterns = canonical_patterns([rule.value for rule in rules], dialect)
    lines, allows = [rule.line for rule in rules], [rule.allow for rule in rules]
    return RuleSet(lines, patterns, allows, dialect)


def decide(rules: Sequence[Rule], path: str, dialect: Dialect) -> Rule | None:
    """The rule that :func:`rule_set` says."""
    line = line_of(rule_set(rules, dialect).decide(path))
    return next((rule for rule in rules if rule.line == line), None)


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
    for octet in pattern.removesuffix("$"):
        if octet == "*":
            places = set(range(min(places), len(path) + 1))
        else:
            places = {place + 1 for place in places if path[place : place + 1] == octet}
        if not places:
            return False
    return not anchored or len(path) in places
