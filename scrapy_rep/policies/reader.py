"""Turns cache entries, which are results of fetches, into policies of a crawl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.pages.tdmrep import TdmFile, TdmOrigin
from scrapy_rep.parsers.chain import CheckedRules, ParserChain
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage
from scrapy_rep.rep.caching.freshness import Evaluation, evaluate
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.directives.directives import Directives
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy, Rules
from scrapy_rep.settings import RepSettings

# Scrapy has the signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


@dataclass(eq=False, repr=False)
class PolicyReader:
    """Reads cache entries in the crawl that started at *started*.

    A file whose rules are in *memory*, the policies by origin as text, is not parsed again.
    """

    crawler: Crawler
    settings: RepSettings
    started: float
    log: PolicyLog
    memory: Mapping[str, Policy]

    def __post_init__(self) -> None:
        self._bounds = self.settings.bounds(self.started)
        self.chain = ParserChain(self.crawler, self.settings)

    async def read(self, entry: CacheEntry | None, asking: Request, now: float) -> Policy | None:
        """The policy by *entry* at the time *now*; ``None`` if a fetch is necessary first."""
        evaluation = self.evaluate(entry, now)
        rules = None
        if entry and evaluation.stored and evaluation.access is Access.SUCCESSFUL:
            rules = await self._rules(entry.origin, evaluation.stored.result, asking)
        return self.policy(entry, evaluation, rules)

    def renewed(self, policy: Policy, now: float) -> Policy | None:
        """The policy by the entry of *policy* now, if the file need not be parsed for it."""
        return self.policy(policy.entry, self.evaluate(policy.entry, now), policy.rules)

    def refusing(self, origin: Origin, now: float) -> Policy:
        """A policy that refuses everything, used after an error in this package."""
        failed = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail="internal error")
        entry = CacheEntry(origin, outage=Outage(failed, since=now, last_at=now, attempts=1))
        until, dialect = now + self.settings.retry_delay, self.settings.dialect
        return Policy(origin, Access.UNREACHABLE, dialect, None, entry, stored=None, until=until)

    def evaluate(self, entry: CacheEntry | None, now: float) -> Evaluation:
        """What *entry* lets the crawl do at the time *now*."""
        settings = self.settings
        return evaluate(entry, settings.dialect, settings.status_overrides, self._bounds, now)

    def policy(
        self, entry: CacheEntry | None, evaluation: Evaluation, rules: Rules | None
    ) -> Policy | None:
        """The policy by the *evaluation* of *entry*; ``None`` if a fetch is necessary first."""
        is_file = evaluation.access is Access.SUCCESSFUL
        if entry is None or evaluation.access is None or (is_file and rules is None):
            return None
        rules = rules if is_file else None
        robots = rules.robots if isinstance(rules, CheckedRules) else None
        return Policy(
            entry.origin,
            evaluation.access,
            self.settings.dialect,
            rules,
            entry,
            evaluation.stored,
            evaluation.until,
            evaluation.due,
            self.settings.when_unreachable,
            robots,
            Directives.of(robots, self.settings.honoured) if robots else None,
            self.chain.spellings,
        )

    async def _rules(self, origin: Origin, result: FetchResult, asking: Request) -> Rules:
        before = self.memory.get(str(origin))
        if before and before.rules and before.stored:
            parsed = before.stored.result
            if (parsed.body, parsed.cut) == (result.body, result.cut):
                return before.rules
        if isinstance(origin, TdmOrigin):
            return TdmFile.parse(result.body)
        rules = self.chain.read(origin, result)
        self.log.on_parsed(origin, result)
        if _ROBOTS_PARSED is not None and rules.robot_parser is not None:
            await self.crawler.signals.send_catch_log_async(
                _ROBOTS_PARSED, robotparser=rules.robot_parser, request=asking
            )
        return rules
