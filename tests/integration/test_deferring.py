"""``REP_UNREACHABLE = "defer"``: requests are kept until their origin can be reached."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from scrapy_rep.cli.servers import Asked, LoopbackServers, http_response
from scrapy_rep.middleware import HELD_SINCE
from tests.integration.crawling import PAGE, Crawl, Job, ok, pages, paths, site
from tests.integration.in_process import Clock, ScriptedSpider, crawl, robots_count

DEFER: dict[str, Any] = {
    "REP_UNREACHABLE": "defer",
    "REP_RETRY_DELAY": 0.2,
    "REP_RETRY_MAX_DELAY": 0.4,
}


#: For sites that are down until others have been crawled. Longer than that takes, so
#: that these are not waited for.
LONG: dict[str, Any] = {"REP_MAX_WAIT": 30, "REP_FETCH_TIMEOUT": 30}


class Ailing:
    """A site whose robots.txt is a 503 as long as *down* is true, or so many times."""

    def __init__(self, down: bool = True, failures: int = 0) -> None:
        self.down = down
        self.failures = failures

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != "/robots.txt":
            writer.write(PAGE)
        elif self.down or self.failures > 0:
            self.failures -= 1
            writer.write(http_response(503))
        else:
            writer.write(ok())


def run(setup: str, urls: list[str], settings: dict[str, Any], **options: Any) -> Crawl:
    return Job(pages(*urls), setup, settings=DEFER | settings, **options).run()


@pytest.mark.clause("Koster 1996 3.1-8")
@pytest.mark.parametrize("dialect", ["rfc9309", "koster1996"])
def test_kept_until_the_site_is_back(servers: LoopbackServers, loop: str, dialect: str) -> None:
    one = servers.serve(Ailing(down=False, failures=3))
    settings: dict[str, Any] = {"REP_DIALECT": dialect}
    if dialect == "koster1996":
        settings["REP_UNREACHABLE"] = None
    result = run(loop, [*paths(one, 5), f"{one.url}/no"], settings)
    assert [result.outcome(url) for url in paths(one, 5)] == ["fetched"] * 5
    assert result.outcome(f"{one.url}/no") == "refused"
    assert robots_count(one) == 4
    assert all(outcome["seconds"] > 0.9 for outcome in result.outcomes.values())
    # What we wrote on a request is not on what came of it, for others to copy.
    assert [result.outcomes[url]["meta"] for url in paths(one, 5)] == [[]] * 5
    warning, _ = result.our_log()
    assert "Requests for this origin are held" in warning


@pytest.mark.parametrize("concurrency", [1, 2])
def test_other_sites_go_on(servers: LoopbackServers, loop: str, concurrency: int) -> None:
    up = servers.serve(site(ok()))

    async def ailing(asked: Asked, writer: asyncio.StreamWriter) -> None:
        # Robots.txt and pages.
        await Ailing(down=len(up.asked) < 21)(asked, writer)

    down = servers.serve(ailing)
    urls = paths(down, 20) + paths(up, 20)
    result = run(loop, urls, LONG | {"CONCURRENT_REQUESTS": concurrency})
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert robots_count(down) >= 2


def test_other_sites_go_on_while_it_is_asked_again(servers: LoopbackServers, loop: str) -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        # Most of its pages are asked for when the other site has been asked again.
        await asyncio.sleep(0.1)
        await site(ok())(asked, writer)

    up = servers.serve(slow)

    async def hanging(asked: Asked, writer: asyncio.StreamWriter) -> None:
        """The first time, robots.txt is a 503; then there is no answer for long."""
        again = robots_count(down) > 1
        while again and len(up.asked) < 11:
            await asyncio.sleep(0.01)
        await Ailing(down=not again)(asked, writer)

    down = servers.serve(hanging)
    urls = paths(down, 5) + paths(up, 10)
    # One place is that of the fetch.
    result = run(loop, urls, LONG | {"CONCURRENT_REQUESTS": 2})
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert robots_count(down) == 2


def test_bounded_in_time(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(Ailing())
    result = run(loop, paths(one, 3), {"REP_MAX_WAIT": 1})
    for url in paths(one, 3):
        assert result.outcome(url) == "refused"
        assert result.outcomes[url]["reason"] == "unreachable"
        assert result.outcomes[url]["seconds"] >= 1


def test_bounded_in_number(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(Ailing(down=False, failures=3))
    result = run(loop, paths(one, 10), {"REP_MAX_WAITING": 4})
    assert [result.outcome(url) for url in paths(one, 10)] == ["fetched"] * 10
    assert 0 < int(result.stats["robotstxt/waiting_max"]) <= 4
    assert int(result.stats["robotstxt/given_back_count"]) >= 6


@pytest.mark.parametrize("stop_by", ["close_spider", "SIGINT"])
def test_a_stop_loses_nothing(
    servers: LoopbackServers, tmp_path: Path, loop: str, stop_by: str
) -> None:
    ailing = Ailing()
    one = servers.serve(ailing)
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
        "REP_RETRY_DELAY": 30,
        "REP_RETRY_MAX_DELAY": 60,
    }
    job = [page | {"dont_filter": number < 5} for number, page in enumerate(pages(*paths(one, 10)))]
    stopped = Job(
        job, loop, settings=DEFER | settings, spider={"stop_at": 10, "stop_by": stop_by}
    ).run()
    assert stopped.outcomes == {}
    assert 0 < stopped.seconds_to_close < 20
    ailing.down = False
    again = run(loop, [], settings | {"REP_RETRY_DELAY": 0.2, "REP_RETRY_MAX_DELAY": 0.2})
    assert [again.outcome(url) for url in paths(one, 10)] == ["fetched"] * 10
    kept = [again.outcomes[url]["dont_filter"] for url in paths(one, 10)]
    assert kept == [True] * 5 + [False] * 5
    assert [again.outcomes[url]["meta"] for url in paths(one, 10)] == [[]] * 10
    assert sorted(set(one.targets())) == sorted(["/robots.txt", *(f"/{n}" for n in range(10))])


@pytest.mark.parametrize("stop_by", ["close_spider", "SIGINT"])
def test_who_asks_the_engine_is_refused_when_the_crawl_stops(
    servers: LoopbackServers, loop: str, stop_by: str
) -> None:
    url = f"{servers.serve(Ailing()).url}/yes"
    spider = {"ask_engine": url, "stop_at": 1, "stop_by": stop_by}
    settings = {"REP_RETRY_DELAY": 60, "REP_RETRY_MAX_DELAY": 60}
    result = run(loop, [], settings, spider=spider)
    assert 0 < result.seconds_to_close < 20
    assert result.outcome(url) == "refused", result.outcomes
    assert result.outcomes[url]["reason"] == "unreachable"
    assert "the crawl is stopping" in result.outcomes[url]["text"]


@pytest_twisted.ensureDeferred
async def test_a_clock_that_was_set_back_between_two_runs(servers: LoopbackServers) -> None:
    one = servers.serve(Ailing(down=False, failures=1))

    async def script(spider: ScriptedSpider) -> None:
        spider.clock.__class__ = Quick
        later = {HELD_SINCE: spider.clock.now + 3600}
        assert await spider.ask(f"{one.url}/yes", meta=later) == 200

    await crawl(script, DEFER)


class Quick(Clock):
    """Waiting takes no time: each look is a moment later."""

    def __call__(self) -> float:
        self.now += 0.05
        return self.now
