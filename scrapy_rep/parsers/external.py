"""Parsers that are not ours: asked within bounds, and never trusted not to fail.

They read what strangers wrote, in the event loop. Protego 0.7.0 keeps a rule
once for each user-agent line stacked above it, so that a robots.txt of 100 KiB
holds the loop for ten seconds; nothing says that others have no such corner.
So what a body would cost is estimated before it goes to any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.misc import build_from_crawler

from scrapy_rep.rep.dialects import Dialect
from scrapy_rep.rep.parsing.agents import EVERYONE, Agents
from scrapy_rep.rep.parsing.urls import is_robots_txt
from scrapy_rep.rep.rules.verdict import Reason, Verdict

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

# In bytes read; a rule kept costs as much as reading 15. With Protego 0.7.0
# the dearest bodies within the bound hold the loop for some 50 ms. Of the 2,793
# files of the conformance corpus, 99 in 100 are within it.
MAX_COST = 100_000
_COST_OF_RULE = 15
_RULES = ("allow", "disallow")


def too_costly(body: bytes) -> str | None:
    """Why *body* must not go to a parser that is not ours; ``None`` where it may."""
    if cost_of(body) <= MAX_COST:
        return None
    return f"its estimated parsing cost is above {MAX_COST:,}"


def cost_of(body: bytes) -> int:
    """What reading *body* costs at most; above :data:`MAX_COST`, only that it is.

    Reads lines without understanding them: what is estimated must hold for
    any parser, and for a body that our own has failed on.
    """
    cost = len(body)
    if cost > MAX_COST:
        return cost
    stacked = 0
    after_rule = False
    # Decoded as Scrapy does it for its parsers: bytes that are not UTF-8 are
    # gone before they look for lines and keys, and their lines end at form
    # feeds and the like, too.
    for whole_line in body.decode("utf-8-sig", "ignore").lower().splitlines():
        line = whole_line.partition("#")[0].strip()
        if line.startswith("user"):
            # "bot*" is two agents to Protego, "bot*" and "bot".
            agents = 1 + ("*" in line)
            stacked = agents if after_rule else stacked + agents
            after_rule = False
            cost += _COST_OF_RULE * agents
        elif line:
            # Kept once for each agent; with "$" or an index page, in two forms.
            forms = (1 + ("$" in line)) * (1 + ("/index.htm" in line))
            cost += _COST_OF_RULE * max(stacked, 1) * forms
            # Only what ends a group for every parser.
            after_rule = after_rule or line.partition(":")[0].strip() in _RULES
        if cost > MAX_COST:
            break
    return cost


class ExternalRules:
    """A :class:`~scrapy.robotstxt.RobotParser` behind :class:`~scrapy_rep.rep.policy.Rules`."""

    def __init__(self, parser: RobotParser, dialect: Dialect) -> None:
        #: The parser that was asked to read the body.
        self.parser = parser
        self._dialect = dialect

    @classmethod
    def parse(
        cls, parser: type[RobotParser], crawler: Crawler, body: bytes, dialect: Dialect
    ) -> ExternalRules:
        """*body*, which must not be :func:`too_costly`, read by *parser*."""
        return cls(build_from_crawler(parser, crawler, body), dialect)

    def allowed(self, url: str, agents: Agents) -> bool:
        """Whether the most preferred of *agents* may access *url*."""
        return self.verdict(url, agents).allowed

    def verdict(self, url: str, agents: Agents) -> Verdict:
        """The same; such parsers name no rule and no line."""
        if is_robots_txt(url, self._dialect):
            return Verdict(True, Reason.ROBOTS_TXT_ITSELF)
        return Verdict(self.answer(url, agents), Reason.OTHER_PARSER)

    def answer(self, url: str, agents: Agents) -> bool:
        """What the parser itself says, of the robots.txt's URL as well."""
        return bool(self.parser.allowed(url, _preferred(agents)))


def _preferred(agents: Agents) -> str:
    if isinstance(agents, str):
        return agents
    return agents[0] if agents else EVERYONE
