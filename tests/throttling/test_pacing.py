"""What Pacing makes of policies and of the signals of a crawl, without a crawl."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http.request import NO_CALLBACK

from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.throttling import pace_log
from scrapy_rep.throttling.fleet import FleetBackend
from scrapy_rep.throttling.memory import PROCESS
from scrapy_rep.throttling.pacing import Pacing
from tests.policy_examples import NOON
from tests.throttling.crawls import HOST, SITE, Crawl


@pytest.fixture
def one() -> Crawl:
    return Crawl()


def test_the_delay_of_a_robotstxt_holds(one: Crawl) -> None:
    policy = one.policy("Crawl-delay: 10")
    first, turn = one.admit(policy)
    assert turn is None
    assert one.pacing.has_turn(first)
    assert one.pacing.asked == {HOST: {SITE: 10.0}}
    _, turn = one.admit(policy)
    assert turn is not None
    one.signal(signals.request_reached_downloader, request=first, spider=None)
    one.loop.advance(3)
    one.signal(signals.request_left_downloader, request=first, spider=None)
    one.loop.advance(9.999)
    assert not turn.called
    one.loop.advance(0.001)
    assert turn.called


def test_a_response_that_nobody_sent_frees_the_site_at_once(one: Crawl) -> None:
    policy = one.policy("Crawl-delay: 10")
    first, _ = one.admit(policy)
    _, turn = one.admit(policy)
    one.active.discard(first)
    response = one.answer(first)
    one.signal(signals.response_received, request=first, response=response, spider=None)
    assert turn is not None
    assert turn.called


def test_a_fetch_waits_for_its_turn_and_goes_first(one: Crawl) -> None:
    fetch = Request(f"{SITE}/robots.txt")
    assert one.pacing.admit_fetch(fetch) is None
    policy = one.policy("Crawl-delay: 10")
    first, _ = one.admit(policy)
    one.signal(signals.request_reached_downloader, request=first, spider=None)
    _, page = one.admit(policy, priority=100)
    one.active.add(fetch)
    turn = one.pacing.admit_fetch(fetch)
    one.signal(signals.request_left_downloader, request=first, spider=None)
    one.loop.advance(10)
    assert page is not None
    assert turn is not None
    assert (turn.called, page.called) == (True, False)


@pytest.mark.parametrize(("callback", "is_components"), [(NO_CALLBACK, True), (None, False)])
def test_the_request_of_a_component_does_not_wait_for_the_one_that_waits_for_it(
    one: Crawl, callback: Any, is_components: bool
) -> None:
    policy = one.policy("Crawl-delay: 10")
    one.admit(policy)
    _, turn = one.admit(policy, callback=callback)
    one.loop.advance(2)
    assert turn is not None
    assert turn.called is is_components


def test_of_the_origins_of_a_host_the_slowest_decides(one: Crawl) -> None:
    for delay, site in (("3", SITE), ("5", "http://example.com"), ("4", f"{SITE}:8443")):
        one.admit(one.policy(f"Crawl-delay: {delay}", site))
    assert one.throttle.delay(HOST) == 5
    one.admit(one.policy("Crawl-delay: 2", "http://example.com"))
    assert one.throttle.delay(HOST) == 4
    # It asks for nothing any more.
    one.admit(one.policy("", f"{SITE}:8443"))
    assert one.pacing.asked == {HOST: {SITE: 3.0, "http://example.com": 2.0}}
    one.admit(one.policy("", SITE))
    one.admit(one.policy("Crawl-delay: 0", "http://example.com"))
    assert one.pacing.asked == {}


def test_of_the_agents_the_slowest_decides(one: Crawl) -> None:
    body = "\nUser-agent: A\nCrawl-delay: 3\nUser-agent: B\nCrawl-delay: 5"
    policy = one.policy(body)
    for agent, delay in (("A", 3), ("B", 5), ("A", 5)):
        one.admit(policy, (agent,))
        assert one.throttle.delay(HOST) == delay
    # A new file is new for all.
    one.admit(one.policy(body), ("A",))
    assert one.throttle.delay(HOST) == 3


def test_agents_are_bounded_in_number(one: Crawl) -> None:
    policy = one.policy("Crawl-delay: 3")
    for number in range(100):
        one.admit(policy, (f"a{number}",))
        origins = vars(one.pacing)["_origins"]
        assert len(origins[policy.origin].agents) <= 32
    assert one.throttle.delay(HOST) == 3


def test_the_longest_delay_is_a_setting() -> None:
    one = Crawl(REP_CRAWL_DELAY_MAX=7, REP_BACKOFF_MAX=5)
    one.admit(one.policy("Crawl-delay: 7"))
    assert one.stat("paced_capped_count") is None
    one.admit(one.policy("Crawl-delay: 9", "https://other.example"))
    assert one.throttle.delay("other.example") == 7
    assert (one.stat("paced_count"), one.stat("paced_capped_count")) == (2, 1)
    assert one.throttle.remember == 7
    assert Crawl(REP_CRAWL_DELAY_MAX=7, REP_BACKOFF_MAX=9).throttle.remember == 9


@pytest.mark.parametrize(("pacing", "wait"), [(None, 6.0), ("local", 0.0)])
def test_a_fetch_of_another_crawl_counts(pacing: str | None, wait: float) -> None:
    one = Crawl(REP_PACING=pacing)
    one.now = NOON + 4
    _, turn = one.admit(one.policy("Crawl-delay: 10"))
    one.loop.advance(wait - 0.001)
    assert (turn is not None and not turn.called) is (wait > 0)
    one.loop.advance(0.001)
    assert turn is None or turn.called


def test_a_fetch_of_another_crawl_counts_once_where_clocks_differ() -> None:
    one = Crawl(REP_PACING=None)
    policy = one.policy("Crawl-delay: 10")
    _, turn = one.admit(policy)
    one.loop.advance(9)
    # By this clock, it was fetched just now.
    one.admit(policy)
    one.loop.advance(1)
    assert turn is not None
    assert turn.called


def test_origins_are_bounded_in_number_and_those_in_use_stay() -> None:
    one = Crawl(REP_MAX_ORIGINS=3)
    policies = [one.policy("Crawl-delay: 10", f"https://{number}.example") for number in range(9)]
    in_use, _ = one.admit(policies[0])
    for policy in policies[1:3]:
        request, _ = one.admit(policy)
        one.active.discard(request)
    one.loop.advance(0)
    # Visited again: the other one has not been asked for longer.
    one.active.discard(one.admit(policies[1])[0])
    one.loop.advance(0)
    one.admit(policies[3])
    assert set(one.pacing.asked) == {"0.example", "1.example", "3.example"}
    assert one.pacing.has_turn(in_use)


def test_when_all_are_in_use_none_is_forgotten() -> None:
    one = Crawl(REP_MAX_ORIGINS=2)
    for number in range(5):
        one.admit(one.policy("Crawl-delay: 10", f"https://{number}.example"))
    assert len(one.pacing.asked) == 5
    # And none is taken for a new one.
    one.admit(one.policy("Crawl-delay: 10", "https://4.example"))
    assert one.stat("paced_count") == 5


def test_the_end_of_a_crawl_leaves_no_timers(one: Crawl) -> None:
    one.admit(one.policy("Crawl-delay: 10"))
    one.loop.advance(1)
    one.signal(signals.spider_closed, spider=None, reason="finished")
    assert not one.loop.pending
    assert one.stat("slowest_sites") == [
        {
            "site": HOST,
            "requests": 0,
            "seconds": 1.0,
            "why": f'by "Crawl-delay: 10" (line 3) in {SITE}/robots.txt',
        }
    ]


def test_the_end_of_a_crawl_ends_its_turns_before_its_store_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[type] = []
    for kind in (FleetBackend, Pacing):
        monkeypatch.setattr(kind, "_close", lambda self: ended.append(type(self)))
    one = Crawl(REP_STORE=f"sqlite:///{tmp_path / 'robots.sqlite'}", REP_PACING=None)
    one.signal(signals.spider_closed, spider=None, reason="finished")
    assert ended == [Pacing, type(one.own_backend)] == [Pacing, FleetBackend]


# -- what people are told --------------------------------------------------------------


def said(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """The lines since this was asked last."""
    lines = [record.getMessage() for record in caplog.records if record.levelno >= level]
    caplog.clear()
    return lines


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "scrapy_rep.throttling.pace_log")
    return caplog


def test_a_delay_is_mentioned_once(one: Crawl, log: pytest.LogCaptureFixture) -> None:
    policy = one.policy("Crawl-delay: 0.5")
    for _ in range(3):
        one.admit(policy)
    line = "asks for %s s between two requests, and gets %s s"
    assert said(log, logging.DEBUG) == [f"{SITE}/robots.txt {line % (0.5, 0.5)}"]
    one.admit(one.policy("Crawl-delay: 0.25"))
    assert said(log, logging.DEBUG) == [f"{SITE}/robots.txt {line % (0.25, 0.25)}"]
    assert one.stat("paced_count") == 1


def test_a_delay_that_is_not_kept_is_an_info(log: pytest.LogCaptureFixture) -> None:
    one = Crawl(REP_CRAWL_DELAY_MAX=0.5)
    one.admit(one.policy("Crawl-delay: 100"))
    one.admit(one.policy("Crawl-delay: 0.5", "https://other.example"))
    assert said(log) == [
        f"{SITE}/robots.txt asks for 100 s between two requests, and gets 0.5 s "
        "(REP_CRAWL_DELAY_MAX)"
    ]


@pytest.mark.parametrize(
    ("delay", "held", "words"),
    [
        ("1.5", 2, "3 s"),
        ("30", 3, "90 s"),
        ("30", 4, "2 min"),
        ("300", 23, "115 min"),
        ("300", 24, "2 h"),
    ],
)
def test_a_slow_site_gets_a_line_a_second_after_it_holds_a_request(
    log: pytest.LogCaptureFixture, delay: str, held: int, words: str
) -> None:
    one = Crawl(REP_CRAWL_DELAY_MAX=1000)
    policy = one.policy(f"Crawl-delay: {delay}")
    one.admit(policy)
    one.loop.advance(5)
    assert said(log) == []
    for _ in range(held):
        one.admit(policy)
    one.loop.advance(0.999)
    assert said(log) == []
    one.loop.advance(0.001)
    assert said(log) == [
        f'{HOST} asks for {delay} s between two requests by "Crawl-delay: {delay}" (line 3) in '
        f"{SITE}/robots.txt. Requests held: {held}, for {words}"
    ]
    one.admit(policy)
    one.loop.advance(10)
    assert said(log) == []


def test_the_line_names_the_record_that_decides(log: pytest.LogCaptureFixture) -> None:
    one = Crawl()
    policy = one.policy("Crawl-delay: 2\nRequest-rate: 1/4s")
    for _ in range(2):
        one.admit(policy)
    one.loop.advance(1)
    (line,) = said(log)
    assert 'by "Request-rate: 1/4s" (line 4) in' in line


def test_a_site_that_is_not_slow_gets_no_line(one: Crawl, log: pytest.LogCaptureFixture) -> None:
    policy = one.policy("Crawl-delay: 1")
    for _ in range(3):
        one.admit(policy)
    one.loop.advance(10)
    assert said(log) == []


def test_a_site_that_is_not_slow_any_more_gets_no_line(
    one: Crawl, log: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        one.admit(one.policy("Crawl-delay: 2"))
    one.admit(one.policy("Crawl-delay: 1"))
    one.loop.advance(10)
    assert said(log) == []


def test_after_the_end_there_are_no_lines(one: Crawl, log: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        one.admit(one.policy("Crawl-delay: 2"))
    one.signal(signals.spider_closed, spider=None, reason="finished")
    one.loop.advance(10)
    assert said(log) == []


def test_ten_of_the_slowest_sites_are_named(one: Crawl) -> None:
    for number in range(12):
        one.admit(one.policy("Crawl-delay: 2", f"https://{number}.example"))
        one.loop.advance(1)
    one.signal(signals.spider_closed, spider=None, reason="finished")
    sites = [each["site"] for each in one.stat("slowest_sites")]
    assert sites == [f"{number}.example" for number in range(10)]


def test_who_asks_is_said_of_slow_sites_only(one: Crawl) -> None:
    one.admit(one.policy("Crawl-delay: 1"))
    one.loop.advance(1)
    one.signal(signals.spider_closed, spider=None, reason="finished")
    (site,) = one.stat("slowest_sites")
    assert (site["seconds"], site["why"]) == (1.0, "")


def test_slow_sites_are_bounded_in_number(one: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_log, "_MAX_SITES", 3)
    log = vars(one.pacing.log)
    for number in range(10):
        one.admit(one.policy("Crawl-delay: 2", f"https://{number}.example"))
        assert f"{number}.example" in log["_why"]
        assert len(log["_why"]) <= 3
        assert log["_told"] <= set(log["_why"])
    one.admit(one.policy("Crawl-delay: 2", "https://10.example"))
    for delay in (2, 3):
        one.admit(one.policy(f"Crawl-delay: {delay}", "https://11.example"))
    # That one of them asks for another delay makes room for none.
    assert set(log["_why"]) == {"9.example", "10.example", "11.example"}


@pytest.mark.parametrize(
    ("settings", "is_shared"), [({"REP_PACING": None}, True), ({"REP_PACING": "local"}, False)]
)
def test_crawls_of_a_process_share_the_delay(settings: dict[str, Any], is_shared: bool) -> None:
    backend = Crawl(**settings).own_backend
    assert (vars(backend)["_sites"] is PROCESS) is is_shared


@pytest.mark.parametrize(
    ("store", "fleet_size", "name", "size"),
    [
        ("redis://127.0.0.1:1/0", 4, "Redis", 4),
        ("redis://127.0.0.1:1/0", None, "Redis", 0),
        # Processes of one machine: the file knows them.
        ("sqlite:///nowhere/robots.sqlite", 4, "SQLite", 0),
    ],
)
def test_crawls_that_share_a_store_share_the_delay(
    store: str, fleet_size: int | None, name: str, size: int
) -> None:
    settings: dict[str, Any] = {
        "REP_STORE": store,
        "REP_PACING": None,
        "REP_FLEET_SIZE": fleet_size,
    }
    backend = Crawl(**settings).own_backend
    assert isinstance(backend, FleetBackend)
    assert (backend.store.name, backend.fleet_size) == (name, size)


def test_a_crawl_without_delays_names_no_sites(one: Crawl) -> None:
    one.admit(one.policy(""))
    one.signal(signals.spider_closed, spider=None, reason="finished")
    assert one.stat("slowest_sites") is None
    assert Origin.of(SITE) not in vars(one.pacing)["_origins"]
