"""Crawls of many sites: a slow robots.txt holds up nobody else, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from scrapy_rep.tools.demo.server import Asked, LoopbackServers
from tests.integration.crawling import PAGE, Crawl, Job, hang, ok, pages, paths, site
from tests.integration.test_in_process import ScriptedSpider, crawl, robots_count, stat

#: The least that Scrapy can do at once without waiting for one thing alone.
NARROW: dict[str, Any] = {"CONCURRENT_REQUESTS": 2, "REP_FETCH_TIMEOUT": 4}

_HANDLERS = "scrapy.core.downloader.handlers"
#: Those for http that this Scrapy has, and that what is installed can run.
HANDLERS = [
    f"{_HANDLERS}.{path}"
    for path, library in [
        ("http11.HTTP11DownloadHandler", "twisted"),
        ("_httpx.HttpxDownloadHandler", "httpx2"),
        ("_aiohttp.AiohttpDownloadHandler", "aiohttp"),
    ]
    if find_spec(f"{_HANDLERS}.{path.split('.')[0]}") and find_spec(library)
]


class Hanging:
    """A site whose robots.txt is not answered as long as *hangs* is true."""

    hangs = True

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != "/robots.txt":
            writer.write(PAGE)
        elif self.hangs:
            await hang(asked, writer)
        else:
            writer.write(ok())


def run(setup: str, urls: list[str], settings: dict[str, Any], **options: Any) -> Crawl:
    return Job(pages(*urls), setup, settings=NARROW | settings, **options).run()


def assert_healthy_first(result: Crawl, healthy: list[str], dead: list[str]) -> None:
    assert {result.outcome(url) for url in healthy} == {"fetched"}
    assert {result.outcomes[url].get("reason") for url in dead} == {"unreachable"}
    assert all(result.outcome(url) == "refused" for url in dead)
    last = max(result.outcomes[url]["seconds"] for url in healthy)
    assert last < min(result.outcomes[url]["seconds"] for url in dead)


def test_more_hosts_that_hang_than_places(servers: LoopbackServers, loop: str) -> None:
    dead = [url for _ in range(6) for url in paths(servers.serve(hang), 3)]
    healthy = [url for _ in range(4) for url in paths(servers.serve(site(ok())), 5)]
    result = run(loop, dead + healthy, {})
    assert_healthy_first(result, healthy, dead)
    assert int(result.stats["robotstxt/waiting_max"]) >= 18
    assert int(result.stats["robotstxt/coalesced_count"]) >= 12
    assert int(result.stats["robotstxt/latency/count"]) == 10
    longest = float(result.stats["robotstxt/latency/max"])
    assert longest >= 4
    assert 0 < float(result.stats["robotstxt/latency/mean"]) < longest


@pytest.mark.parametrize("handler", HANDLERS)
def test_with_every_download_handler(servers: LoopbackServers, handler: str) -> None:
    """Some open as many connections as CONCURRENT_REQUESTS says, and no more."""
    dead = [url for _ in range(6) for url in paths(servers.serve(hang), 2)]
    healthy = [url for _ in range(4) for url in paths(servers.serve(site(ok())), 5)]
    result = run("asyncio", dead + healthy, {"DOWNLOAD_HANDLERS": {"http": handler}})
    assert_healthy_first(result, healthy, dead)


def test_no_more_pages_at_once_than_may_be(servers: LoopbackServers, loop: str) -> None:
    pages_at_once = 0
    most = 0

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal pages_at_once, most
        if asked.target == "/robots.txt":
            writer.write(ok())
            return
        pages_at_once += 1
        most = max(most, pages_at_once)
        await asyncio.sleep(0.1)
        writer.write(PAGE)
        pages_at_once -= 1

    urls = [url for _ in range(10) for url in paths(servers.serve(slow), 4)]
    result = run(loop, urls, {"CONCURRENT_REQUESTS": 3})
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert int(result.stats["robotstxt/waiting_max"]) > 3
    assert most == 3


def test_one_dead_host_cannot_fill_the_room(servers: LoopbackServers, loop: str) -> None:
    dead = paths(servers.serve(hang), 60)
    healthy = [url for _ in range(5) for url in paths(servers.serve(site(ok())), 4)]
    result = run(loop, dead + healthy, {"REP_MAX_WAITING": 8})
    assert_healthy_first(result, healthy, dead)
    assert int(result.stats["robotstxt/waiting_max"]) <= 8
    assert int(result.stats["robotstxt/given_back_count"]) >= 52
    # Nobody spins: a moment for each, eighteen at a time.
    assert int(result.stats["robotstxt/given_back_count"]) < 400


def test_who_has_waited_gets_a_place_before_a_dead_host(
    servers: LoopbackServers, loop: str
) -> None:
    """In the scheduler are only requests for the dead host, and again and again these."""

    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        writer.write(ok() if asked.target == "/robots.txt" else PAGE)

    dead = paths(servers.serve(hang), 150)
    healthy = [url for _ in range(10) for url in paths(servers.serve(late), 1)]
    settings = {"REP_MAX_WAITING": 64, "CONCURRENT_REQUESTS": 5}
    assert_healthy_first(run(loop, dead + healthy, settings), healthy, dead)


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
    stopped = run(loop, paths(one, 40), settings, spider=spider)
    assert stopped.outcomes == {}
    assert 0 < stopped.seconds_to_close < 5
    assert one.targets() == ["/robots.txt"]
    hanging.hangs = False
    again = run(loop, [], settings)
    assert [again.outcome(url) for url in paths(one, 40)] == ["fetched"] * 40
    # Whoever asks next is not told that the site could not be reached.
    assert robots_count(one) == 2
    assert sorted(one.targets()) == sorted(["/robots.txt"] * 2 + [f"/{n}" for n in range(40)])


def test_a_stop_before_the_turn_of_a_fetch(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        # So that the scheduler has all requests before the first answer, which stops
        # the crawl; what start() yields after that is lost, whoever obeys robots.txt.
        if asked.target == "/robots.txt":
            await asyncio.sleep(1)
        await site(ok())(asked, writer)

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


class Paced:
    """A site that asks for *delay* seconds between two requests."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        robots = f"User-agent: *\nCrawl-delay: {self.delay}\n"
        writer.write(ok(robots.encode()) if asked.target == "/robots.txt" else PAGE)


def test_sites_that_ask_for_a_delay(servers: LoopbackServers, loop: str) -> None:
    sites = [servers.serve(Paced(1)) for _ in range(4)]
    paced = [url for one in sites for url in paths(one, 4)]
    healthy = [url for _ in range(4) for url in paths(servers.serve(site(ok())), 5)]
    result = run(loop, paced + healthy, {})
    assert {result.outcome(url) for url in paced + healthy} == {"fetched"}
    last = max(result.outcomes[url]["seconds"] for url in healthy)
    for one in sites:
        seconds = sorted(result.outcomes[url]["seconds"] for url in paths(one, 4))
        # Its requests wait for their turn, and not on the places of others.
        assert last < seconds[2]
        gaps = [after - before for before, after in pairwise(seconds)]
        assert min(gaps) > 0.95


def test_a_stop_while_requests_wait_for_their_turn(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    paced = Paced(1.5)
    one = servers.serve(paced)
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 16}
    spider = {"stop_at": 28, "stop_stat": "robotstxt/waiting_count", "stop_by": "close_spider"}
    stopped = run(loop, paths(one, 30), settings, spider=spider)
    assert 0 < stopped.seconds_to_close < 5
    assert len(stopped.outcomes) <= 3
    paced.delay = 0
    again = run(loop, [], settings)
    assert sorted([*stopped.outcomes, *again.outcomes]) == sorted(paths(one, 30))
    assert sorted(set(one.targets())) == sorted(["/robots.txt", *(f"/{n}" for n in range(30))])
    assert len(one.targets()) == 32


def test_who_asks_the_engine_gets_an_answer(servers: LoopbackServers, loop: str) -> None:
    hanging = servers.serve(hang)
    url = f"{hanging.url}/asked"
    settings = {"REP_MAX_WAITING": 1}
    result = run(loop, paths(hanging, 2), settings, spider={"ask_engine": url})
    assert {result.outcome(one) for one in [url, *paths(hanging, 2)]} == {"refused"}
    assert result.outcomes[url]["reason"] == "unreachable"


def test_media_pipelines(servers: LoopbackServers, loop: str, tmp_path: Path) -> None:
    hanging, healthy = servers.serve(hang), servers.serve(site(ok()))
    files = [f"{healthy.url}/{name}" for name in ("a", "no", "b")] + paths(hanging, 3)
    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
        "REP_MAX_WAITING": 1,
    }
    result = run(loop, paths(hanging, 2), settings, spider={"files": files})
    fetched = {url for url, outcome in result.outcomes.items() if outcome["outcome"] == "fetched"}
    assert fetched == {f"{healthy.url}/a", f"{healthy.url}/b"}
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
    monkeypatch.setattr("scrapy_rep.waiting._FIRST_LINE", 0.5)
    monkeypatch.setattr("scrapy_rep.waiting._NEXT_LINE", 0.5)
    caplog.set_level(logging.INFO, "scrapy_rep.waiting")
    hanging = servers.serve(hang)

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{hanging.url}/yes")

    crawler = await crawl(script, {"REP_FETCH_TIMEOUT": 2})
    lines = [record.getMessage() for record in caplog.records if "for longest" in record.msg]
    assert 2 <= len(lines) <= 4
    assert " their turn: 1 (origins: 1; for longest, " in lines[0]
    assert lines[0].endswith(f" s: {hanging.url})")
    assert stat(crawler, "robotstxt/waiting_count") == 1
