"""Crawls of many sites: a slow robots.txt holds up nobody else, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site
from scrapy_rep.holding.concurrency import LOOK
from scrapy_rep.holding.hold_queue import HoldQueue
from tests.conditions import until
from tests.integration.crawling import PAGE, Crawl, Job, hang, ok, pages, paths, reset, site
from tests.integration.handlers import HANDLERS
from tests.integration.in_process import ScriptedSpider, crawl, robots_count, stat
from tests.integration.paces import TOLERANCE, gaps

#: The least that Scrapy can do at once without waiting for one thing alone. Nothing
#: that a server answers takes as long as a fetch may.
NARROW: dict[str, Any] = {"CONCURRENT_REQUESTS": 2, "REP_FETCH_TIMEOUT": 30}


class Hanging:
    """A site whose robots.txt is not answered as long as *hangs* is true."""

    hangs = True

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != "/robots.txt":
            writer.write(PAGE)
        else:
            await until(lambda: not self.hangs)
            writer.write(ok())


class Broad:
    """Sites that are dead, and healthy ones.

    The robots.txt of a dead one is not answered until the healthy ones have been asked
    for everything; a second later, the connection breaks.
    """

    def __init__(self, servers: LoopbackServers, healthy: Answer | None = None) -> None:
        self._servers = servers
        self._answer = healthy or site(ok())
        self._healthy: list[tuple[Site, int]] = []
        #: URLs of all pages.
        self.healthy: list[str] = []
        self.dead: list[str] = []

    def add_dead(self, sites: int, each: int) -> None:
        """So many sites, with so many pages each."""
        for _ in range(sites):
            self.dead += paths(self._servers.serve(self._hang), each)

    def add_healthy(self, sites: int, each: int) -> None:
        """The same."""
        for _ in range(sites):
            one = self._servers.serve(self._answer)
            self._healthy.append((one, each))
            self.healthy += paths(one, each)

    async def _hang(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        # Their robots.txt, too.
        await until(lambda: all(len(one.asked) > each for one, each in self._healthy))
        await asyncio.sleep(1)
        await reset(asked, writer)

    def assert_healthy_first(self, result: Crawl) -> None:
        """No dead site was given up, as one is for which all others have to wait."""
        assert {result.outcome(url) for url in self.healthy} == {"fetched"}
        assert {result.outcome(url) for url in self.dead} == {"refused"}
        outcomes = [result.outcomes[url] for url in self.dead]
        assert {outcome["reason"] for outcome in outcomes} == {"unreachable"}
        assert [outcome for outcome in outcomes if "no answer within" in outcome["text"]] == []


def run(setup: str, urls: list[str], settings: dict[str, Any], **options: Any) -> Crawl:
    return Job(pages(*urls), setup, settings=NARROW | settings, **options).run()


def test_more_hosts_that_hang_than_places(servers: LoopbackServers, loop: str) -> None:
    sites = Broad(servers)
    sites.add_dead(6, each=3)
    sites.add_healthy(4, each=5)
    result = run(loop, sites.dead + sites.healthy, {})
    sites.assert_healthy_first(result)
    assert int(result.stats["robotstxt/waiting_max"]) >= 18
    assert int(result.stats["robotstxt/coalesced_count"]) >= 12
    assert int(result.stats["robotstxt/latency/count"]) == 10
    longest = float(result.stats["robotstxt/latency/max"])
    assert longest >= 1
    assert 0 < float(result.stats["robotstxt/latency/mean"]) < longest


@pytest.mark.parametrize("handler", HANDLERS)
def test_with_every_download_handler(servers: LoopbackServers, handler: str) -> None:
    """Some open as many connections as CONCURRENT_REQUESTS says, and no more."""
    sites = Broad(servers)
    sites.add_dead(6, each=2)
    sites.add_healthy(4, each=5)
    settings = {"DOWNLOAD_HANDLERS": {"http": handler}}
    sites.assert_healthy_first(run("asyncio", sites.dead + sites.healthy, settings))


def test_no_more_pages_at_once_than_may_be(servers: LoopbackServers, loop: str) -> None:
    pages_at_once = 0
    most = 0
    robots_txts = 0

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal pages_at_once, most, robots_txts
        if asked.target == "/robots.txt":
            robots_txts += 1
            # Until more wait for one than there are places.
            await until(lambda: robots_txts >= 4)
            writer.write(ok())
            return
        pages_at_once += 1
        most = max(most, pages_at_once)
        await until(lambda: most >= 3)
        await asyncio.sleep(0.1)
        writer.write(PAGE)
        pages_at_once -= 1

    urls = [url for _ in range(10) for url in paths(servers.serve(slow), 4)]
    result = run(loop, urls, {"CONCURRENT_REQUESTS": 3, "DOWNLOAD_TIMEOUT": 30})
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert int(result.stats["robotstxt/waiting_max"]) > 3
    assert most == 3


def test_one_dead_host_cannot_fill_the_room(servers: LoopbackServers, loop: str) -> None:
    sites = Broad(servers)
    sites.add_dead(1, each=60)
    sites.add_healthy(5, each=4)
    result = run(loop, sites.dead + sites.healthy, {"REP_MAX_WAITING": 8})
    sites.assert_healthy_first(result)
    assert int(result.stats["robotstxt/waiting_max"]) <= 8
    assert int(result.stats["robotstxt/given_back_count"]) >= 52
    # Nobody spins: a moment for each, eighteen at a time.
    seconds = max(result.outcomes[url]["seconds"] for url in sites.dead)
    assert int(result.stats["robotstxt/given_back_count"]) < 100 + 200 * seconds


def test_who_has_waited_gets_a_place_before_a_dead_host(
    servers: LoopbackServers, loop: str
) -> None:
    """In the scheduler are only requests for the dead host, and again and again these."""

    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        writer.write(ok() if asked.target == "/robots.txt" else PAGE)

    sites = Broad(servers, late)
    sites.add_dead(1, each=150)
    sites.add_healthy(10, each=1)
    settings = {"REP_MAX_WAITING": 64, "CONCURRENT_REQUESTS": 5}
    sites.assert_healthy_first(run(loop, sites.dead + sites.healthy, settings))


def test_what_was_given_back_is_as_it_was(servers: LoopbackServers, loop: str) -> None:
    hanging = Hanging()

    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        hanging.hangs = False
        await hanging(asked, writer)

    one = servers.serve(late)
    job = [page | {"dont_filter": number < 5} for number, page in enumerate(pages(*paths(one, 10)))]
    result = Job(job, loop, settings=NARROW | {"REP_MAX_WAITING": 1}).run()
    outcomes = [result.outcomes[url] for url in paths(one, 10)]
    assert {outcome["outcome"] for outcome in outcomes} == {"fetched"}
    assert [outcome["dont_filter"] for outcome in outcomes] == [True] * 5 + [False] * 5
    assert [outcome["priority"] for outcome in outcomes] == [0] * 10
    assert [outcome["meta"] for outcome in outcomes] == [[]] * 10
    assert robots_count(one) == 1


@pytest.mark.parametrize("stop_by", ["close_spider", "SIGINT"])
def test_a_stop_loses_nothing(
    servers: LoopbackServers, tmp_path: Path, loop: str, stop_by: str
) -> None:
    hanging = Hanging()
    one = servers.serve(hanging)
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
        "REP_FETCH_TIMEOUT": 60,
        "REP_MAX_WAITING": 50,
    }
    spider = {"stop_at": 30, "stop_stat": "robotstxt/given_back_count", "stop_by": stop_by}
    job = [page | {"priority": n % 3} for n, page in enumerate(pages(*paths(one, 40)))]
    stopped = Job(job, loop, settings=NARROW | settings, spider=spider).run()
    assert stopped.outcomes == {}
    assert 0 < stopped.seconds_to_close < 20
    assert one.targets() == ["/robots.txt"]
    hanging.hangs = False
    again = run(loop, [], settings)
    assert [again.outcome(url) for url in paths(one, 40)] == ["fetched"] * 40
    priorities = [again.outcomes[url]["priority"] for url in paths(one, 40)]
    assert priorities == [n % 3 for n in range(40)]
    # Whoever asks next is not told that the site could not be reached.
    assert robots_count(one) == 2
    assert sorted(one.targets()) == sorted(["/robots.txt"] * 2 + [f"/{n}" for n in range(40)])


@pytest.mark.once
def test_a_stop_before_the_turn_of_a_fetch(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        # So that the scheduler has all requests before the first answer, which stops
        # the crawl; what start() yields after that is lost, whoever obeys robots.txt.
        if asked.target == "/robots.txt":
            await asyncio.sleep(1 if started else 4)
            started.append(asked)
        await site(ok())(asked, writer)

    started: list[Asked] = []
    sites = [servers.serve(slow) for _ in range(3)]
    urls = [url for one in sites for url in paths(one, 4)]
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1, "REP_MAX_FETCHES": 1}
    stopped = run(loop, urls, settings | {"CLOSESPIDER_PAGECOUNT": 1})
    again = run(loop, [], settings)
    # Nothing is refused because nobody has asked yet.
    outcomes = [*stopped.outcomes.items(), *again.outcomes.items()]
    assert {outcome["outcome"] for _, outcome in outcomes} == {"fetched"}
    assert sorted(url for url, _ in outcomes) == sorted(urls)
    assert len(again.outcomes) >= 4


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("order", [50, 500])
def test_no_deadlock_where_pages_wait_for_others(
    servers: LoopbackServers, loop: str, concurrency: int, order: int
) -> None:
    """All that are active wait in a middleware, before ours or behind it."""
    urls = [url for _ in range(4) for url in paths(servers.serve(site(ok())), 3)]
    settings = {
        "CONCURRENT_REQUESTS": concurrency,
        "DOWNLOADER_MIDDLEWARES": {"tests.integration.middlewares.AsksBefore": order},
    }
    result = run(loop, urls, settings)
    assert {result.outcome(url) for url in urls} == {"fetched"}


def test_by_priority(servers: LoopbackServers, loop: str, tmp_path: Path) -> None:
    """The most urgent of those that wait goes on first, however many came before it."""
    order: list[str] = []
    all_have_come = tmp_path / "all have come"

    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            await until(all_have_come.exists)
            writer.write(ok())
            return
        order.append(asked.target)
        writer.write(PAGE)

    one = servers.serve(late)
    job = [page | {"priority": n // 10} for n, page in enumerate(pages(*paths(one, 60)))]
    settings = {
        "CONCURRENT_REQUESTS": 1,
        "REP_MAX_WAITING": 16,
        "REP_FETCH_TIMEOUT": 60,
        "DOWNLOADER_MIDDLEWARES": {"tests.integration.middlewares.TellsWhenAllHaveCome": 50},
        "AWAITED": paths(one, 60)[50:],
        "ALL_HAVE_COME": str(all_have_come),
        # First in, first out, of those with one priority.
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    result = Job(job, loop, settings=NARROW | settings).run()
    assert {result.outcome(url) for url in paths(one, 60)} == {"fetched"}
    assert int(result.stats["robotstxt/waiting_max"]) <= 16
    # Eight wait for it, and one may have gone on before.
    assert sum(int(path[1:]) >= 50 for path in order[:9]) >= 8
    assert [result.outcomes[url]["priority"] for url in paths(one, 60)] == [
        n // 10 for n in range(60)
    ]


class Paced:
    """A site that asks for *delay* seconds between two requests."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        robots = f"User-agent: *\nCrawl-delay: {self.delay}\n"
        writer.write(ok(robots.encode()) if asked.target == "/robots.txt" else PAGE)


def test_sites_that_ask_for_a_delay(servers: LoopbackServers, loop: str) -> None:
    # Long enough for a busy machine to be done with the healthy ones.
    delay = 2.5
    sites = [servers.serve(Paced(delay)) for _ in range(4)]
    paced = [url for one in sites for url in paths(one, 4)]
    healthy = [url for _ in range(4) for url in paths(servers.serve(site(ok())), 5)]
    result = run(loop, paced + healthy, {})
    assert {result.outcome(url) for url in paced + healthy} == {"fetched"}
    last = max(result.outcomes[url]["seconds"] for url in healthy)
    for one in sites:
        seconds = sorted(result.outcomes[url]["seconds"] for url in paths(one, 4))
        # Its requests wait for their turn, and not on the places of others.
        assert last < seconds[-1]
        assert min(gaps(one)) >= delay - TOLERANCE


def test_a_stop_while_requests_wait_for_their_turn(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    paced = Paced(30)
    one = servers.serve(paced)
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 16}
    spider = {"stop_at": 28, "stop_stat": "robotstxt/waiting_count", "stop_by": "close_spider"}
    stopped = run(loop, paths(one, 30), settings, spider=spider)
    assert 0 < stopped.seconds_to_close < 20
    assert len(stopped.outcomes) <= 3
    paced.delay = 0
    again = run(loop, [], settings)
    assert sorted([*stopped.outcomes, *again.outcomes]) == sorted(paths(one, 30))
    assert sorted(set(one.targets())) == sorted(["/robots.txt", *(f"/{n}" for n in range(30))])
    assert len(one.targets()) == 32


def test_who_asks_the_engine_gets_an_answer(servers: LoopbackServers, loop: str) -> None:
    hanging = servers.serve(hang)
    url = f"{hanging.url}/asked"
    settings = {"REP_MAX_WAITING": 1, "REP_FETCH_TIMEOUT": 4}
    result = run(loop, paths(hanging, 2), settings, spider={"ask_engine": url})
    assert {result.outcome(one) for one in [url, *paths(hanging, 2)]} == {"refused"}
    assert result.outcomes[url]["reason"] == "unreachable"


def test_media_pipelines(servers: LoopbackServers, loop: str, tmp_path: Path) -> None:
    sites = Broad(servers)
    sites.add_dead(1, each=3)
    sites.add_healthy(1, each=2)
    refused = sites.healthy[0].replace("/0", "/no")
    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
        "REP_MAX_WAITING": 1,
    }
    files = [refused, *sites.healthy, *sites.dead]
    result = run(loop, sites.dead[:2], settings, spider={"files": files})
    fetched = {url for url, outcome in result.outcomes.items() if outcome["outcome"] == "fetched"}
    assert fetched == set(sites.healthy)
    # Asked for again at once, a request would have gone round thousands of times.
    assert int(result.stats["robotstxt/given_back_count"]) < 100


def test_a_fetch_goes_before_pages_that_are_delayed(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok()))
    two = servers.serve(site(ok()), host=one.host)
    asked = paths(one, 12)
    settings = {
        "CONCURRENT_REQUESTS": 16,
        "DOWNLOAD_DELAY": 0.4,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "REP_FETCH_TIMEOUT": 15,
    }
    urls = [*asked[:6], f"{two.url}/no", *asked[6:]]
    result = run(loop, urls, settings, warm_up=[f"{one.url}/warm"])
    assert result.outcome(f"{two.url}/no") == "refused"
    before = result.outcomes[f"{two.url}/no"]["seconds"]
    assert sum(result.outcomes[url]["seconds"] < before for url in asked) <= 3


@pytest_twisted.ensureDeferred
async def test_progress_is_told(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    defaults: Any = HoldQueue.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "clock", lambda: now)
    caplog.set_level(logging.INFO, "scrapy_rep.holding.hold_queue")
    hanging = Hanging()
    one = servers.serve(hanging)

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if "longest: " in record.msg]

    async def script(spider: ScriptedSpider) -> None:
        nonlocal now
        asking = asyncio.ensure_future(spider.ask(f"{one.url}/yes"))
        await until(lambda: bool(one.asked))
        # After ten seconds.
        now += 9
        await asyncio.sleep(2 * LOOK)
        assert lines() == []
        now += 2
        await until(lambda: len(lines()) == 1)
        # And a minute later.
        now += 58
        await asyncio.sleep(2 * LOOK)
        assert len(lines()) == 1
        now += 3
        await until(lambda: len(lines()) == 2)
        hanging.hangs = False
        assert await asking == 200

    crawler = await crawl(script)
    assert lines()[0] == (
        f"Requests held for a robots.txt or a delay: 1 (origins: 1; longest: 11 s, {one.url})"
    )
    assert stat(crawler, "robotstxt/waiting_count") == 1
