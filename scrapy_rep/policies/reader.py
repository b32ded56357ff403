"""From a cache entry, what fetches have told, to the policy that a crawl asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import Request, signals

from scrapy_rep.parsers.chain import CheckedRules, ParserChain
from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage
from scrapy_rep.rep.caching.freshness import Evaluation, evaluate
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.directives.directives import Directives
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy, Rules

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.observers.policy_log import PolicyLog
    from scrapy_rep.settings import RepSettings

# Scrapy has the signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class PolicyReader:
    """Reads cache entries with the settings and the parsers of one crawl.

    *clock* gives seconds since the epoch.
    """

    def __init__(
        self, crawler: Crawler, settings: RepSettings, clock: Callable[[], float], log: PolicyLog
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        self._log = log
        self._bounds = settings.bounds(started=clock())
        self._chain = ParserChain(crawler, settings)

    def access(self, result: FetchResult) -> Access:
        """What *result* means to this crawl."""
        return access_result(result, self._settings.dialect, self._settings.status_overrides)

    async def read(
        self,
        origin: Origin,
        entry: CacheEntry | None,
        asking: Request,
        before: Policy | None,
        now: float | None = None,
    ) -> Policy | None:
        """What *entry* lets the crawl do at *now*; ``None`` where a fetch must come first.

        *before* is the policy until then: its rules are not read again if the file is the same.
        """
        evaluation = self._evaluate(entry, now)
        if entry is None or evaluation.access is None:
            return None
        rules: Rules | None = None
        if evaluation.access is Access.SUCCESSFUL and evaluation.copy is not None:
            rules = await self._rules(origin, evaluation.copy.result, asking, before)
        return self._policy(entry, evaluation, evaluation.access, rules)

    def renewed(self, policy: Policy) -> Policy | None:
        """What the entry of *policy* lets the crawl do now, without reading the file again."""
        evaluation = self._evaluate(policy.entry)
        access = evaluation.access
        if access is None or (access is Access.SUCCESSFUL and policy.rules is None):
            return None
        rules = policy.rules if access is Access.SUCCESSFUL else None
        return self._policy(policy.entry, evaluation, access, rules)

    def refusing(self, origin: Origin) -> Policy:
        """What holds where we have failed, not the server."""
        failed = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail="internal error")
        now = self._clock()
        return Policy(
            origin=origin,
            access=Access.UNREACHABLE,
            dialect=self._settings.dialect,
            rules=None,
            entry=CacheEntry(origin, outage=Outage(failed, since=now, last_at=now, attempts=1)),
            copy=None,
            until=now + self._settings.retry_delay,
        )

    def _evaluate(self, entry: CacheEntry | None, now: float | None = None) -> Evaluation:
        settings = self._settings
        now = self._clock() if now is None else now
        return evaluate(entry, settings.dialect, settings.status_overrides, self._bounds, now)

    def _policy(
        self, entry: CacheEntry, evaluation: Evaluation, access: Access, rules: Rules | None
    ) -> Policy:
        robots = rules.robots if isinstance(rules, CheckedRules) else None
        return Policy(
            origin=entry.origin,
            access=access,
            dialect=self._settings.dialect,
            rules=rules,
            entry=entry,
            copy=evaluation.copy,
            until=evaluation.until,
            due=evaluation.due,
            when_unreachable=self._settings.when_unreachable,
            robots=robots,
            directives=Directives.of(robots, self._settings.honoured)
            if robots is not None
            else None,
        )

    async def _rules(
        self, origin: Origin, result: FetchResult, asking: Request, before: Policy | None
    ) -> Rules:
        if before and before.rules and before.copy and _is_same(before.copy.result, result):
            return before.rules
        rules = self._chain.read(origin, result)
        self._log.on_parsed(origin, result)
        if _ROBOTS_PARSED is not None and rules.robot_parser is not None:
            await self._crawler.signals.send_catch_log_async(
                _ROBOTS_PARSED, robotparser=rules.robot_parser, request=asking
            )
        return rules


def _is_same(first: FetchResult, second: FetchResult) -> bool:
    return first.body == second.body and first.cut == second.cut
