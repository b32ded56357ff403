"""The crawl that wrote a log: how its settings lead from what is known to a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.evidence.lines import NotAsClaimed
from scrapy_rep.evidence.recorder import DECIDING
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.parsers.wire import TARGETS
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import Evaluation
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings

_OUR_PARSERS = ("scrapy_rep.parser.", "scrapy.robotstxt.")


class LoggedCrawl:
    """The crawl of a log, with the settings that the log names.

    Raises :exc:`~.lines.NotAsClaimed` for a parser that is not ours, Scrapy's or in the
    settings of the *project*: a log is not trusted with the choice of code.
    """

    def __init__(self, logged: Mapping[str, Any], started: float, project: BaseSettings) -> None:
        values = {name: logged[name] for name in DECIDING}
        handlers = logged["DOWNLOAD_HANDLERS"].items()
        # An unknown one counts as any: so it does in a crawl.
        values["DOWNLOAD_HANDLERS"] = {
            scheme: name if name in TARGETS else "" for scheme, name in handlers
        }
        values["REP_STORE"] = "memory"
        values["REP_FALLBACK_PARSER"] = _parser("REP_FALLBACK_PARSER", logged, project)
        if parser := _parser("ROBOTSTXT_PARSER", logged, project):
            values["ROBOTSTXT_PARSER"] = parser
        crawler = Crawler(Spider, values)
        # It does not crawl, and so would have none.
        crawler.stats = StatsCollector(crawler)
        self.settings = RepSettings.read(crawler.settings)
        log = PolicyLog(crawler, self.settings, lambda: started)
        self._reader = PolicyReader(crawler, self.settings, started, log, memory={})
        self.evaluate = self._reader.evaluate

    def policy(self, entry: CacheEntry, evaluation: Evaluation) -> Policy:
        """The policy that *entry* leads to by *evaluation*, which needs no fetch."""
        rules = None
        if evaluation.access is Access.SUCCESSFUL and evaluation.stored is not None:
            rules = self._reader.chain.read(entry.origin, evaluation.stored.result)
        policy = self._reader.policy(entry, evaluation, rules)
        assert policy is not None
        return policy


def _parser(setting: str, logged: Mapping[str, Any], project: BaseSettings) -> str | None:
    """The parser that a log has for *setting*."""
    name: str | None = logged[setting]
    if name is None or name.startswith(_OUR_PARSERS):
        return name
    chosen = project.get(setting)
    if chosen is None or global_object_name(load_object(chosen)) != name:
        raise NotAsClaimed(f"the crawl had a parser of its own: run this with -s {setting}={name}")
    return name
