"""One crawl's pacing, by a clock that the test sets, and without a crawl."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.rep.directives.directives import Directives
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from scrapy_rep.throttling.memory import MemoryBackend
from scrapy_rep.throttling.pacing import Pacing
from scrapy_rep.throttling.slow_sites import SlowSites
from scrapy_rep.throttling.turns import Turns
from tests.policy_examples import NOON, with_rules
from tests.throttling.manual import ManualLoop

SITE = "https://example.com"
HOST = "example.com"
AGENTS = ("Example",)


class Crawl:
    """What sites ask for in one crawl; *sites* is what crawls know together."""

    def __init__(
        self,
        loop: ManualLoop | None = None,
        sites: OrderedDict[str, Turns] | None = None,
        **settings: Any,
    ) -> None:
        self.loop = loop or ManualLoop()
        self.now = NOON
        self.active: set[Request] = set()
        base = {"EXTENSIONS_BASE": {}, "REP_STORE": "memory", "REP_PACING": "local"}
        self.crawler = get_crawler(settings_dict=base | settings)
        #: The queue of each download slot.
        self.slots: dict[str, Any] = {}
        downloader: Any = SimpleNamespace(slots=self.slots)
        self.crawler.engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
        self.settings = RepSettings.read(self.crawler.settings)
        self.pacing = Pacing(self.crawler, self.settings, lambda: self.now)
        self.throttle = self.pacing.throttle
        if self.settings.backoff:
            self.slow_sites = SlowSites(
                self.crawler,
                self.throttle,
                self.pacing.log,
                self.settings.backoff_max,
                give_back=lambda request: request.replace(meta={"is_back": True}),
                is_fetch=lambda request: "is_fetch" in request.meta,
            )
        self.throttle.clock = self.loop.clock
        self.throttle.call_later = self.loop.call_later
        self.throttle.is_active = self.active.__contains__
        self.throttle.hears_all = lambda: True
        self.own_backend = self.throttle.backend
        self.throttle.backend = MemoryBackend(
            self.loop.clock, OrderedDict() if sites is None else sites
        )

    def policy(self, records: str, site: str = SITE) -> Policy:
        """That of *site*, whose robots.txt has *records* for everyone."""
        policy = with_rules(f"User-agent: *\nDisallow: /no\n{records}\n".encode(), site)
        robots: Any = policy.rules
        directives = Directives.of(robots, self.settings.honoured)
        return replace(policy, robots=robots, directives=directives)

    def admit(
        self, policy: Policy, agents: tuple[str, ...] = AGENTS, **options: Any
    ) -> tuple[Request, Deferred[None] | None]:
        """A request, and the turn that it waits for."""
        request = Request(f"{policy.origin}/yes", **options)
        self.active.add(request)
        return request, self.pacing.admit(policy, request, agents)

    def signal(self, name: object, **values: Any) -> None:
        for _, result in self.crawler.signals.send_catch_log(name, **values):
            assert not isinstance(result, Failure), result

    def answer(
        self, request: Request, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        return Response(request.url, status, headers, request=request)

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"robotstxt/{name}")
