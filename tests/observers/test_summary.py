"""What is logged at the end of a crawl."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request, Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_rep.observers import summary
from scrapy_rep.observers.summary import Summary
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from tests.policy_examples import NOON, unreachable, with_rules

BODY = b"User-agent: *\nDisallow: /a\nDisallow: /b\n"


class Crawl:
    """A crawl of which there is only the summary."""

    def __init__(self) -> None:
        self.crawler = get_crawler(Spider, {"EXTENSIONS_BASE": {}})
        self.summary = Summary(self.crawler)

    def learn(self, *policies: Policy) -> None:
        for policy in policies:
            self.summary.on_policy(policy, None, 0.0)

    def refuse(self, policy: Policy, path: str, times: int = 1) -> None:
        request = Request(f"{policy.origin}{path}")
        verdict = policy.verdict(request.url, ("ExampleBot",), NOON)
        assert not verdict.allowed
        for _ in range(times):
            self.summary.on_decision(request, policy, ("ExampleBot",), verdict)

    def end(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        with caplog.at_level(logging.INFO, "scrapy_rep.observers.summary"):
            self.crawler.signals.send_catch_log(signals.spider_closed)
        return [line for record in caplog.records for line in record.getMessage().split("\n")]


def test_origins_reasons_and_who_refused_most(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    many, few, dead = with_rules(BODY, "https://many"), with_rules(BODY), unreachable("ftp://dead")
    crawl.learn(many, few, dead)
    crawl.refuse(few, "/a")
    crawl.refuse(many, "/a", 2)
    crawl.refuse(many, "/b", 1_000)
    crawl.refuse(dead, "/", 3)
    assert crawl.end(caplog) == [
        "robots.txt summary:",
        "origins: 3 (successful 2, unreachable 1)",
        "requests refused: 1,006 (rule 1,003, unreachable 3)",
        "origins with most refusals:",
        '   1,002  https://many, 1,000 of them by "Disallow: /b" (line 3)',
        "       3  ftp://dead: unreachable",
        '       1  https://example.com: "Disallow: /a" (line 2)',
    ]


def test_an_origin_counts_once_by_what_was_learned_last(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    crawl.learn(unreachable(), with_rules(b""), unreachable("https://other"))
    assert crawl.end(caplog)[1:] == [
        "origins: 2 (successful 1, unreachable 1)",
        "requests refused: 0",
    ]


def test_failed_and_slow_fetches_and_dropped_links(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    result = FetchResult("https://example.com/robots.txt", 503)
    for number in range(6):
        crawl.summary.on_policy(with_rules(b"", f"https://slow{number}"), result, number / 2)
    for _ in range(3):
        crawl.summary.on_policy(unreachable("https://dead"), result, 0.5)
    assert crawl.crawler.stats is not None
    crawl.crawler.stats.set_value("robotstxt/dropped_link_count", 1_200)
    detail = unreachable().detail
    assert crawl.end(caplog)[3:] == [
        "links dropped by RobotsLinkFilter: 1,200",
        "failed fetches of robots.txt:",
        f"       3  {detail}",
        "slowest fetches of robots.txt:",
        "     2.5 s  https://slow5/robots.txt",
        "     2.0 s  https://slow4/robots.txt",
        "     1.5 s  https://slow3/robots.txt",
    ]


def test_causes_of_failed_fetches_are_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MAX_CAUSES", 0)
    crawl = Crawl()
    crawl.summary.on_policy(unreachable(), FetchResult("https://example.com/robots.txt", 503), 0.5)
    assert crawl.end(caplog)[-1] == "       1  other causes"


def test_nothing_is_said_of_a_crawl_that_asked_for_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert Crawl().end(caplog) == []


def test_a_request_without_an_origin_is_refused_for_its_reason_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crawl = Crawl()
    verdict = Verdict(False, Reason.INVALID_URL)
    crawl.summary.on_decision(Request("https://a..b/"), None, (), verdict)
    assert crawl.end(caplog)[1:] == ["origins: 0", "requests refused: 1 (invalid-url 1)"]


def test_ten_are_named(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    for number in range(12):
        crawl.refuse(with_rules(BODY, f"https://host{number}"), "/a", 1 + number)
    lines = crawl.end(caplog)[4:]
    assert len(lines) == 10
    assert "https://host11:" in lines[0]
    assert "https://host2:" in lines[-1]


def test_what_a_file_says_cannot_harm_the_log(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    body = b"User-agent: *\nDisallow: /\x1b[2J" + b"x" * 500
    crawl.refuse(with_rules(body), "/%1B[2J" + "x" * 500)
    line = crawl.end(caplog)[-1]
    assert "Disallow: /\\x1b[2Jxxx" in line
    assert len(line) < 300


# -- bounded memory ---------------------------------------------------------------------


def test_origins_beyond_the_bound_are_counted_roughly(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MAX_ORIGINS", 10)
    crawl = Crawl()
    crawl.learn(*(with_rules(b"", f"https://host{number}") for number in range(25)))
    crawl.learn(*(unreachable(f"https://host{number}") for number in range(20, 25)))
    assert crawl.end(caplog)[1] == "origins: about 25 (successful 20, unreachable 5)"


def test_an_origin_in_use_is_not_counted_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MAX_ORIGINS", 2)
    crawl = Crawl()
    crawl.learn(*(with_rules(b"", f"https://{name}") for name in "abaca"))
    assert crawl.end(caplog)[1] == "origins: about 3 (successful 3)"


def test_whoever_refused_often_is_found_among_many_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MAX_REFUSING", 50)
    crawl = Crawl()
    often = with_rules(BODY, "https://often")
    for number in range(1_000):
        crawl.refuse(with_rules(BODY, f"https://host{number}"), "/a")
        if number % 10 == 0:
            crawl.refuse(often, "/b", 10)
    [says, first, second, *_] = crawl.end(caplog)[3:]
    found = int(says.removeprefix("origins with most refusals (counts are up to ").split()[0])
    count, _, rest = first.strip().partition("  ")
    assert rest == 'https://often: "Disallow: /b" (line 3)'
    assert 1_000 <= int(count.replace(",", "")) <= 1_000 + found
    # Each of the others refused once, and is said to have done so at most this much more.
    assert int(second.strip().partition(" ")[0]) <= 1 + found
    assert found < 1_000


def test_an_origin_that_may_have_been_forgotten_starts_with_the_count_of_the_most_frequent_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MAX_REFUSING", 4)
    crawl = Crawl()
    for number, times in enumerate((6, 5, 3, 2, 1)):
        crawl.refuse(with_rules(BODY, f"https://host{number}"), "/a", times)
    by = '"Disallow: /a" (line 2)'
    assert crawl.end(caplog)[3:] == [
        "origins with most refusals (counts are up to 3 too high):",
        f"       6  https://host0: {by}",
        f"       5  https://host1: {by}",
        f"       4  https://host4, 1 of them by {by}",
    ]


def test_a_table_that_is_full_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_MAX_REFUSING", 50)
    monkeypatch.setattr(summary, "_MAX_ORIGINS", 50)
    crawl = Crawl()
    for number in range(1_000):
        policy = with_rules(BODY, f"https://host{number}")
        crawl.learn(policy)
        crawl.refuse(policy, "/a")
    assert len(crawl.summary._refused) <= 50  # noqa: SLF001
    assert crawl.summary._causes.keys() == crawl.summary._refused.keys()  # noqa: SLF001
    assert len(crawl.summary._latest) <= 50  # noqa: SLF001


def test_of_one_origin_some_lines_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d$\n" % number for number in range(100))
    for number in [*range(100), 7, 99, 99]:
        crawl.refuse(with_rules(body), f"/{number}")
    # The last line is not among those that are counted.
    by = '103  https://example.com, 2 of them by "Disallow: /7$" (line 9)'
    assert crawl.end(caplog)[-1].strip() == by
    [causes] = crawl.summary._causes.values()  # noqa: SLF001
    assert len(causes) == 20


def test_the_slowest_sites_are_those_of_the_stats(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl()
    crawl.learn(with_rules(BODY))
    assert crawl.crawler.stats is not None
    crawl.crawler.stats.set_value(
        "robotstxt/slowest_sites",
        [
            {"site": "a.example", "requests": 1200, "seconds": 12_345.6, "why": "by this"},
            {"site": "b.example", "requests": 2, "seconds": 0.5, "why": ""},
        ],
    )
    assert crawl.end(caplog)[3:] == [
        "slowest sites, by the time that requests waited or were under way there:",
        "  12,346 s  a.example: 1,200 requests, by this",
        "       0 s  b.example: 2 requests",
    ]
