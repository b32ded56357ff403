"""What a change of a robots.txt changes: two files compared by what they mean to whom.

Comments, the order of groups and rules, and how names and paths are written mean nothing, so
a change of these changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from scrapy_rep.rep.dialects import Dialect, Precedence
from scrapy_rep.rep.parsing.agents import EVERYONE, Agents, lowered
from scrapy_rep.rep.parsing.groups import Group, groups_among, read_groups
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import OtherRecord
from scrapy_rep.rep.parsing.urls import canonical_patterns
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable

# Product tokens of crawlers for AI, by what their operators publish.
_AI_AGENTS = """
ai2bot amazonbot anthropic-ai applebot-extended bytespider ccbot chatgpt-user claude-searchbot
claude-user claude-web claudebot cohere-ai cohere-training-data-crawler diffbot duckassistbot
facebookbot google-cloudvertexbot google-extended gptbot imagesiftbot meta-externalagent
meta-externalfetcher mistralai-user oai-searchbot omgili omgilibot pangubot perplexity-user
perplexitybot timpibot webzio-extended youbot
"""
# Of one agent, so many paths made from rules are tried.
_MOST_PATHS = 2_000
_MOST_EXAMPLES = 3
# Records that are about a site, whoever asks.
_ABOUT_SITE = frozenset({Field.SITEMAP, Field.HOST, Field.CLEAN_PARAM, Field.LICENSE})
# A path that no rule is likely to name.
_ANY_PATH = "/9c1f3a7e"

#: What an agent is told: its rules, in the order of the file where that counts.
_Rules = tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class Flip:
    """A URL that is allowed by one file and refused by the other."""

    url: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class AgentChange:
    """Agents, of which all have the same rules before and after, that gained or lost access.

    Of *tried* paths, made from both files, *gained* are allowed now and *lost* refused now.
    ``*`` stands for all agents that no group names.
    """

    names: tuple[str, ...]
    tried: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    def examples(self, paths: Sequence[str]) -> str:
        """The first of *paths*, for people."""
        shown = ", ".join(printable(path) for path in paths[:_MOST_EXAMPLES])
        return f"{shown}, ..." if len(paths) > _MOST_EXAMPLES else shown


@dataclass(frozen=True, slots=True)
class Changes:
    """What the change from one file to another changes."""

    is_same_file: bool
    #: Agents whose rules are others, whether or not a path shows it.
    agents: tuple[AgentChange, ...] = ()
    #: AI agents that only the new file names, and that only the old one names.
    ai_agents_added: tuple[str, ...] = ()
    ai_agents_removed: tuple[str, ...] = ()
    #: Other records, with the agents that they are about.
    records_added: tuple[str, ...] = ()
    records_removed: tuple[str, ...] = ()
    flips: tuple[Flip, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the change means nothing to any crawler."""
        return not (
            self.agents
            or self.records_added
            or self.records_removed
            or self.ai_agents_added
            or self.ai_agents_removed
        )


def changes(
    old: RobotsTxt, new: RobotsTxt, urls: Iterable[str] = (), agents: Agents = ()
) -> Changes:
    """What the change from *old* to *new*, of the same dialect, changes.

    For *agents*, also which of *urls* flip.
    """
    if old.body == new.body:
        return Changes(is_same_file=True)
    old_names, new_names = _named(old), _named(new)
    old_records, new_records = _records(old), _records(new)
    return Changes(
        is_same_file=False,
        agents=tuple(_agents(old, new, sorted(old_names | new_names))),
        ai_agents_added=tuple(sorted((new_names - old_names).intersection(_AI_AGENTS.split()))),
        ai_agents_removed=tuple(sorted((old_names - new_names).intersection(_AI_AGENTS.split()))),
        records_added=tuple(sorted(new_records - old_records)),
        records_removed=tuple(sorted(old_records - new_records)),
        flips=tuple(flips(old, new, urls, agents)),
    )


def flips(old: RobotsTxt, new: RobotsTxt, urls: Iterable[str], agents: Agents) -> Iterator[Flip]:
    """Those of *urls* that one of both files allows and the other refuses for *agents*."""
    for url in urls:
        allowed = new.allowed(url, agents)
        if allowed is not old.allowed(url, agents):
            yield Flip(url, allowed)


# -- agents --------------------------------------------------------------------------


def _named(robots: RobotsTxt) -> set[str]:
    """The agents that groups of *robots* name, in lower case."""
    groups = read_groups(robots.body, robots.dialect)
    names = {lowered(name) for group in groups for name, _ in group.agents}
    return names - {EVERYONE, ""}


def _agents(old: RobotsTxt, new: RobotsTxt, named: list[str]) -> Iterator[AgentChange]:
    """The agents among *named*, and everyone else, whose rules are others in *new*."""
    by_rules: dict[tuple[_Rules, _Rules], list[str]] = defaultdict(list)
    before, after = _rules(old, named), _rules(new, named)
    for name in (EVERYONE, *named):
        if before[name] != after[name]:
            by_rules[before[name], after[name]].append(name)
    for rules, names in by_rules.items():
        asked = () if names[0] == EVERYONE else names[0]
        paths = _paths(*rules)
        flipped = list(flips(old, new, paths, asked))
        gained = tuple(flip.url for flip in flipped if flip.allowed)
        lost = tuple(flip.url for flip in flipped if not flip.allowed)
        yield AgentChange(tuple(names), len(paths), gained, lost)


def _rules(robots: RobotsTxt, named: Sequence[str]) -> dict[str, _Rules]:
    """The rules for each of *named*, and for everyone else."""
    groups = read_groups(robots.body, robots.dialect, named)
    # Thousands of agents may share their groups.
    by_groups: dict[tuple[int, ...], _Rules] = {}
    found = {}
    for name in (EVERYONE, *named):
        # The list has nobody in it for everyone else.
        mine = groups_among(groups, () if name == EVERYONE else (name,))[1]
        key = tuple(map(id, mine))
        if key not in by_groups:
            by_groups[key] = _combined(mine, robots.dialect)
        found[name] = by_groups[key]
    return found


def _combined(groups: Iterable[Group], dialect: Dialect) -> _Rules:
    """The rules of *groups*, such that those that mean the same are equal."""
    rules = [rule for group in groups for rule in group.rules]
    patterns = canonical_patterns([value for _, _, value in rules], dialect)
    pairs = [
        (name is Field.ALLOW, pattern)
        for (_, name, _), pattern in zip(rules, patterns, strict=True)
        if pattern or dialect.empty_rules_match
    ]
    return tuple(sorted(set(pairs)) if dialect.precedence is Precedence.LONGEST else pairs)


def _paths(before: _Rules, after: _Rules) -> list[str]:
    """Paths that the rules are about: first those of rules that only one of both has.

    A path that none of these match is decided by the same rules before and after.
    """
    differing, common = {*before} ^ {*after}, {*before} & {*after}
    patterns = [pattern for rules in (differing, common) for _, pattern in sorted(rules)]
    paths = chain(("/", _ANY_PATH), chain.from_iterable(map(_matching, patterns)))
    # dict, as a set that keeps the order
    return list(dict.fromkeys(islice(paths, _MOST_PATHS)))


def _matching(pattern: str) -> tuple[str, str, str]:
    """Paths that *pattern* matches, and one that is longer."""
    path = pattern.removesuffix("$")
    if not path.startswith("/"):
        path = f"/{path.removeprefix('*')}"
    filled = path.replace("*", "x")
    return path.replace("*", ""), filled, f"{filled}x"


# -- other records -------------------------------------------------------------------


def _records(robots: RobotsTxt) -> set[str]:
    """The records that are not rules, each with the agents that it is about."""
    known = (record for record in robots.records if record.field is not Field.UNKNOWN)
    return {_record_text(record) for record in known}


def _record_text(record: OtherRecord) -> str:
    if record.field in _ABOUT_SITE:
        return str(record)
    names = sorted({lowered(agent.name) for agent in record.agents})
    about = ", ".join(printable(name) for name in names[:10])
    return f"{record} (for {about})" if about else str(record)
