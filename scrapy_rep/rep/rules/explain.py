"""Explains a verdict rule by rule. Whether a rule matches is the matter of :mod:`.matching`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from ..dialects import Dialect, Precedence
from ..parsing.agents import AgentLine, Agents, preferences
from ..parsing.groups import groups_among, our_group, read_groups
from ..parsing.lines import Field, Record
from ..parsing.urls import InvalidURL, canonical_patterns, path_to_match
from .matching import MOST_PIECES, NO_RULE, Rule, specific, weight_of
from .robotstxt import RobotsTxt
from .verdict import Reason, Verdict


class Fate(Enum):
    """The part of a rule in a verdict."""

    DECIDES = "decides"  #: It decides.
    SHORTER = "shorter"  #: It matches, but the rule that decides has more bytes (RFC 9309 §2.2.2).
    TIE = "tie"  #: It refuses, but an allow rule of the same length matches (§2.2.2).
    #: It matches, but an earlier rule matches and is equal, or the dialect uses the first match.
    LATER = "later"
    #: It matches, but the robots.txt itself is always allowed (§2.2.2).
    ROBOTS_TXT_ITSELF = "robots-txt-itself"
    OTHER_GROUP = "other-group"  #: It matches, but applies to other crawlers (§2.2.1).
    NO_MATCH = "no-match"  #: It applies to us, and does not match.
    NOT_ABOUT_US = "not-about-us"  #: It applies to other crawlers, and does not match.
    #: It was not compared with the URL, because that would have taken too long.
    NOT_TRIED = "not-tried"


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """One rule and its part in the verdict.

    *length* is the length of its pattern in bytes, in the form that is compared; for an index
    page that allows its directory, the length of the directory with ``$``; 0 without a match.
    """

    rule: Rule
    fate: Fate
    length: int = 0

    @property
    def matches(self) -> bool:
        """Whether its pattern matches."""
        return self.fate not in (Fate.NO_MATCH, Fate.NOT_ABOUT_US, Fate.NOT_TRIED)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict, and the part of each rule of the file, in the order of lines.

    *path* was compared with the rules; it is ``None`` if the URL is invalid. *agent* is our
    product token that has groups, in lower case, or ``*``; *groups* are their user-agent lines.
    """

    verdict: Verdict
    path: str | None
    agent: str
    groups: tuple[tuple[AgentLine, ...], ...]
    rules: tuple[ExplainedRule, ...]

    @property
    def winner(self) -> ExplainedRule | None:
        """The rule that decides."""
        return next((each for each in self.rules if each.fate is Fate.DECIDES), None)


def explain(robots: RobotsTxt, url: str | bytes, agents: Agents) -> Explanation:
    r"""Explain the :meth:`.RobotsTxt.verdict` about *url* and *agents*.

    It compares *url* with each rule of the file.

    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a\nAllow: /a/b\n")
    >>> [(each.fate.value, each.length) for each in explain(robots, "/a/b/c", "x").rules]
    [('shorter', 2), ('decides', 4)]
    """
    preferred = preferences(agents)
    every_group = read_groups(robots.body, robots.dialect, preferred)
    agent, groups = groups_among(every_group, preferred)
    ours = tuple(our_group(group, agent, robots.dialect).agents for group in groups)
    verdict = robots.verdict(url, agents)
    try:
        path = path_to_match(url, robots.dialect)
    except InvalidURL:
        return Explanation(verdict, None, agent, ours, ())
    about_us = {line for group in groups for line, _, _ in group.rules}
    rules = [rule for group in every_group for rule in group.rules]
    weighed = _weighed(rules, about_us, path, robots.dialect)
    best = max((weighed[line][0] for line in about_us), default=NO_RULE)
    explained = []
    for line, field, value in rules:
        weight, length = weighed[line]
        fate = _fate(weight, best, line in about_us, verdict.reason)
        explained.append(ExplainedRule(Rule(field is Field.ALLOW, value, line), fate, length))
    return Explanation(verdict, path, agent, ours, tuple(explained))


# Less than any weight.
_NOT_TRIED = -1
# The total of "*" in the rules that are compared with a URL.
_MOST_EXPLAINED = 10 * MOST_PIECES


def _weighed(
    rules: list[Record], about_us: Collection[int], path: str, dialect: Dialect
) -> dict[int, tuple[int, int]]:
    """The weight of each of *rules* alone, or :data:`_NOT_TRIED`, and its length, by line."""
    rules = sorted(rules, key=lambda rule: rule[0] not in about_us)
    patterns = canonical_patterns([value for _, _, value in rules], dialect)
    longest = dialect.precedence is Precedence.LONGEST
    weighed, stars = dict[int, tuple[int, int]](), 0
    for (line, field, _), pattern in zip(rules, patterns, strict=True):
        starred = dialect.wildcards and "*" in pattern
        stars += pattern.count("*")
        weight = _NOT_TRIED
        if not starred or stars <= _MOST_EXPLAINED:
            weight = weight_of((line, pattern, field is Field.ALLOW), path, dialect)
        length = specific(weight) // 2 if longest else len(pattern)
        weighed[line] = weight, 0 if weight <= NO_RULE else length
    return weighed


def _fate(weight: int, best: int, about_us: bool, reason: Reason) -> Fate:
    if weight == _NOT_TRIED or (about_us and reason is Reason.MATCHING_LIMIT):
        return Fate.NOT_TRIED
    if not about_us:
        return Fate.NOT_ABOUT_US if weight == NO_RULE else Fate.OTHER_GROUP
    if weight == NO_RULE:
        return Fate.NO_MATCH
    if reason is Reason.ROBOTS_TXT_ITSELF:
        return Fate.ROBOTS_TXT_ITSELF
    if weight == best:
        return Fate.DECIDES
    if specific(weight) == specific(best):
        return Fate.LATER
    return Fate.TIE if specific(weight) // 2 == specific(best) // 2 else Fate.SHORTER
