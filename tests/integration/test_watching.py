"""What those who watch a crawl are told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import pytest_twisted
from scrapy import Request, signals

from scrapy_rep import Policy, Reason, Verdict
from scrapy_rep.cli.servers import LoopbackServers
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Access
from tests.integration.crawling import ok, reset, site
from tests.integration.in_process import ScriptedSpider, crawl


class Sees:
    """Remembers what it is told."""

    def __init__(self, *, observes_allowed: bool = True) -> None:
        self.observes_allowed = observes_allowed
        self.learned_of: list[tuple[Policy, FetchResult | None, float]] = []
        self.verdicts: list[tuple[str, Policy | None, Sequence[str], Verdict]] = []

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        self.learned_of.append((policy, result, seconds))

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        self.verdicts.append((request.url, policy, agents, verdict))


@pytest.fixture
def sees(monkeypatch: pytest.MonkeyPatch) -> Sees:
    """Somebody who watches all crawls of a test."""
    sees = Sees()
    monkeypatch.setattr(
        "scrapy_rep.middleware.enabled_observers", lambda crawler, settings, clock: [sees]
    )
    return sees


@pytest_twisted.ensureDeferred
async def test_every_decision_is_seen_once(servers: LoopbackServers, sees: Sees) -> None:
    one, dead = servers.serve(site(ok())), servers.serve(site(reset))
    urls = [f"{one.url}/yes", f"{one.url}/no", f"{one.url}/yes/2", f"{one.url}/no/2"]

    async def script(spider: ScriptedSpider) -> None:
        for url in [*urls, f"{dead.url}/yes"]:
            await spider.ask(url, meta={"robots_agent_tokens": ["A", "B"]})

    await crawl(script)
    seen = {url: (policy, agents, verdict) for url, policy, agents, verdict in sees.verdicts}
    assert [url for url, *_ in sees.verdicts] == [*urls, f"{dead.url}/yes"]
    assert [verdict.allowed for *_, verdict in sees.verdicts] == [True, False, True, False, False]
    assert {agents for _, _, agents, _ in sees.verdicts} == {("A", "B")}
    policy, _, verdict = seen[f"{one.url}/no"]
    assert policy is not None
    assert policy.stored is not None
    assert (verdict.reason, verdict.line) == (Reason.RULE, 2)
    _, _, allowed = seen[f"{one.url}/yes/2"]
    assert (allowed.reason, str(allowed.origin)) == (Reason.NO_RULE, one.url)
    policy, _, verdict = seen[f"{dead.url}/yes"]
    assert policy is not None
    assert policy.access is Access.UNREACHABLE
    assert verdict.reason is Reason.UNREACHABLE


@pytest_twisted.ensureDeferred
async def test_who_does_not_watch_what_is_allowed_sees_what_is_refused(
    servers: LoopbackServers, sees: Sees
) -> None:
    sees.observes_allowed = False
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for path in ("/yes", "/yes", "/no"):
            await spider.ask(one.url + path)

    await crawl(script)
    assert [url for url, *_ in sees.verdicts] == [f"{one.url}/no"]


@pytest_twisted.ensureDeferred
async def test_what_is_let_through_unasked_is_no_decision(
    servers: LoopbackServers, sees: Sees
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/no", meta={"dont_obey_robotstxt": True}) == 200
        assert await spider.ask(f"{one.url}/robots.txt") == 200

    await crawl(script)
    assert sees.verdicts == []
    assert sees.learned_of == []


@pytest_twisted.ensureDeferred
async def test_what_is_learned_is_seen_with_where_it_came_from(
    servers: LoopbackServers, sees: Sees, tmp_path: Path
) -> None:
    one = servers.serve(site(ok()))
    store = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/yes")
        await spider.ask(f"{one.url}/yes/2")

    await crawl(script, store)
    [(fetched, result, seconds)] = sees.learned_of
    assert result is not None
    assert (result.status, str(fetched.origin)) == (200, one.url)
    # By the clock of the test, which stands still.
    assert seconds == 0
    sees.learned_of.clear()

    await crawl(script, store)
    [(stored, result, _)] = sees.learned_of
    assert result is None
    assert stored.entry == fetched.entry


@pytest_twisted.ensureDeferred
async def test_a_fetch_takes_as_long_as_the_clock_says(
    servers: LoopbackServers, sees: Sees
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        def while_it_is_fetched(request: Request) -> None:
            spider.clock.now += 7

        signal = signals.request_reached_downloader
        spider.crawler.signals.connect(while_it_is_fetched, signal)
        await spider.ask(f"{one.url}/yes")

    await crawl(script)
    [(_, _, seconds)] = sees.learned_of
    assert seconds == 7


@pytest_twisted.ensureDeferred
async def test_nothing_is_lost_where_those_who_watch_fail(
    servers: LoopbackServers, sees: Sees, caplog: pytest.LogCaptureFixture
) -> None:
    del sees.learned_of
    del sees.verdicts
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200
        assert await spider.ask(f"{one.url}/yes/2") == 200
        verdict = await spider.ask(f"{one.url}/no")
        assert isinstance(verdict, Verdict)
        assert verdict.line == 2

    await crawl(script)
    [record] = [
        record for record in caplog.records if record.name == "scrapy_rep.observers.observer"
    ]
    assert "test_watching.Sees failed (AttributeError: " in record.getMessage()
