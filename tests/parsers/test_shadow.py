"""Second opinions."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from typing import IO, Any, ClassVar

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser, RobotParser
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_rep import RepRobotParser
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.parsers import shadow
from scrapy_rep.parsers.external import ExternalRules
from scrapy_rep.parsers.shadow import ShadowParsers, in_sample
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings
from tests.policy_examples import NOON, unreachable, with_rules

SITE = "https://example.com"
BODY = b"User-agent: *\nDisallow: /no\n"
# 100 KiB, stacked.
HOSTILE = b"".join(b"User-agent: bot-%d\n" % number for number in range(2500))
HOSTILE += b"".join(b"Disallow: /no%d\n" % number for number in range(2500))
AGENTS = ("ExampleBot", "OtherBot")


class Scripted(RobotParser):
    """Answers as its class says, and notes what it is asked."""

    answer: ClassVar[bool]
    read: ClassVar[list[bytes]] = []
    asked: ClassVar[list[tuple[str | bytes, str | bytes]]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Scripted:
        cls.read.append(robotstxt_body)
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        self.asked.append((url, user_agent))
        return self.answer


class AllowsAll(Scripted):
    answer = True


class RefusesAll(Scripted):
    answer = False


class RaisesWhenAsked(Scripted):
    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise RuntimeError("cannot \x1b[2J answer")


class RaisesWhenReading(Scripted):
    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> RaisesWhenReading:
        if robotstxt_body:
            cls.read.append(robotstxt_body)
            raise RuntimeError("cannot read")
        return cls()


@pytest.fixture(autouse=True)
def nothing_asked() -> Iterator[None]:
    yield
    Scripted.read.clear()
    Scripted.asked.clear()


class Compared:
    """A comparison of one crawl, and what it counts."""

    def __init__(self, *parsers: type[RobotParser], **settings: Any) -> None:
        self.crawler = Crawler(Spider, {"REP_COMPARE_WITH": parsers, **settings})
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        self.crawler.spider = Spider("example")
        self.comparison = ShadowParsers(self.crawler, RepSettings.read(self.crawler.settings))
        # That parsers can be used was tried.
        Scripted.read.clear()

    def decide(self, policy: Policy, *paths: str) -> None:
        for path in paths:
            request = Request(f"{policy.origin}{path}")
            verdict = policy.verdict(request.url, AGENTS, NOON)
            self.comparison.on_decision(request, policy, AGENTS, verdict)

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats is not None
        return {
            key.removeprefix("robotstxt/compare/").replace(f"{__name__}.", ""): value
            for key, value in self.crawler.stats.get_stats().items()
        }


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "scrapy_rep.parsers.shadow")
    return caplog


def test_whether_a_parser_agrees_is_counted() -> None:
    compared = Compared(ProtegoRobotParser, AllowsAll, RefusesAll)
    compared.decide(with_rules(BODY), "/yes", "/yes/2", "/no")
    assert compared.stats == {
        "scrapy.robotstxt.ProtegoRobotParser/agree": 3,
        "AllowsAll/agree": 2,
        "AllowsAll/looser": 1,
        "RefusesAll/agree": 1,
        "RefusesAll/stricter": 2,
    }


def test_a_parser_gets_the_bytes_that_decided_once_and_our_first_token() -> None:
    compared = Compared(AllowsAll)
    cut = BODY + b"Disallow: /half of a li"
    compared.decide(with_rules(cut, cut=True), "/yes", "/yes/2")
    assert Scripted.read == [BODY]
    assert Scripted.asked == [(f"{SITE}/yes", "ExampleBot"), (f"{SITE}/yes/2", "ExampleBot")]


def test_no_more_than_is_read_by_ours_goes_to_a_parser() -> None:
    compared = Compared(RepRobotParser)
    body = BODY + b"#" * 512_000 + b"\nDisallow: /yes\n"
    compared.decide(with_rules(body), "/yes")
    assert compared.stats == {"scrapy_rep.parser.RepRobotParser/agree": 1}


def test_a_parser_is_asked_about_the_url_that_decided() -> None:
    compared = Compared(AllowsAll)
    policy = with_rules(BODY)
    verdict = replace(policy.verdict(f"{SITE}/no", AGENTS, NOON), sent_as=f"{SITE}/no")
    compared.comparison.on_decision(Request(f"{SITE}/no;"), policy, AGENTS, verdict)
    assert Scripted.asked == [(f"{SITE}/no", "ExampleBot")]


def test_a_file_that_is_cut_is_another_one() -> None:
    compared = Compared(AllowsAll)
    for cut in (False, True):
        compared.decide(with_rules(BODY + b"Disallow: /x", cut=cut), "/yes")
    assert Scripted.read == [BODY + b"Disallow: /x", BODY]


def test_the_report_gets_each_difference() -> None:
    compared = Compared(AllowsAll, RefusesAll)
    policy = with_rules(BODY)
    reported: list[tuple[Policy, Disagreement]] = []
    recorder: Any = SimpleNamespace(compared=lambda *arguments: reported.append(arguments))
    settings = RepSettings.read(compared.crawler.settings)
    compared.comparison = ShadowParsers(compared.crawler, settings, recorder)
    compared.decide(policy, "/no", "/yes")
    assert reported == [
        (policy, Disagreement(f"{SITE}/no", f"{__name__}.AllowsAll", False, True, 2)),
        (policy, Disagreement(f"{SITE}/yes", f"{__name__}.RefusesAll", True, False, 0)),
    ]


def test_nothing_is_read_before_a_decision() -> None:
    compared = Compared(AllowsAll)
    compared.comparison.on_policy(with_rules(BODY), None, 0.0)
    assert Scripted.read == []


@pytest.mark.parametrize(
    ("policy", "path"),
    [(with_rules(BODY), "/robots.txt"), (unreachable(), "/yes"), (unreachable(), "/robots.txt")],
    ids=["robots.txt itself", "unreachable", "robots.txt itself, unreachable"],
)
def test_what_no_file_decided_is_not_compared(policy: Policy, path: str) -> None:
    compared = Compared(RefusesAll)
    compared.decide(policy, path)
    compared.comparison.on_decision(Request(SITE), None, AGENTS, Verdict(False, Reason.INVALID_URL))
    assert compared.stats == {}
    assert Scripted.asked == []


# -- parsers that fail, and hostile files -----------------------------------------------


def test_a_parser_that_raises_when_asked_is_an_error_each_time_and_logged_once(
    log: pytest.LogCaptureFixture,
) -> None:
    compared = Compared(RaisesWhenAsked, AllowsAll)
    compared.decide(with_rules(BODY), "/yes", "/yes/2")
    compared.decide(with_rules(BODY, "https://other"), "/yes")
    assert compared.stats == {"RaisesWhenAsked/error": 3, "AllowsAll/agree": 3}
    first, second = log.records
    assert first.levelname == "WARNING"
    assert first.getMessage() == (
        f"{__name__}.RaisesWhenAsked failed on https://example.com/robots.txt "
        "(RuntimeError: cannot \\x1b[2J answer). Its verdicts on this origin are not compared."
    )
    assert "https://other/robots.txt" in second.getMessage()
    assert "\x1b" not in logging.Formatter().format(first)


def test_a_parser_that_raises_when_reading_reads_once(log: pytest.LogCaptureFixture) -> None:
    compared = Compared(RaisesWhenReading)
    compared.decide(with_rules(BODY), "/yes", "/no", "/no/2")
    assert compared.stats == {"RaisesWhenReading/error": 3}
    assert Scripted.read == [BODY]
    assert len(log.records) == 1


def test_a_hostile_file_goes_to_no_parser_but_ours() -> None:
    compared = Compared(AllowsAll, ProtegoRobotParser, RepRobotParser)
    compared.decide(with_rules(HOSTILE), "/yes", "/no1")
    assert compared.stats == {
        "AllowsAll/skipped": 2,
        "scrapy.robotstxt.ProtegoRobotParser/skipped": 2,
        "scrapy_rep.parser.RepRobotParser/agree": 2,
    }
    assert Scripted.read == []


def test_a_parser_that_cannot_be_used_stops_the_start() -> None:
    class NotInstalled(RobotParser):
        @classmethod
        def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> NotInstalled:
            raise ImportError("no such module")

        def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
            raise AssertionError

    with pytest.raises(ConfigurationError, match=r"NotInstalled, of REP_COMPARE_WITH, cannot be"):
        Compared(NotInstalled)


def test_files_that_were_read_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "_ROOM", 1_000)
    compared = Compared(AllowsAll)
    files = [with_rules(BODY + b"#%02d" % number) for number in range(20)]
    for file in files:
        compared.decide(file, "/yes")
    assert len(Scripted.read) == 20
    # Each costs 91: there is room for ten. To look at one makes it the latest.
    compared.decide(files[10], "/yes")
    assert len(Scripted.read) == 20
    compared.decide(files[9], "/yes")
    compared.decide(files[10], "/yes")
    assert len(Scripted.read) == 21
    compared.decide(files[11], "/yes")
    assert len(Scripted.read) == 22


def test_a_file_takes_its_room_once_for_each_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "_ROOM", 1_000)
    compared = Compared(AllowsAll, RefusesAll)
    files = [with_rules(BODY + b"#%02d" % number) for number in range(6)]
    for file in (*files, files[1], files[0]):
        compared.decide(file, "/yes")
    # Each costs 91 for each parser: there is room for five.
    assert len(Scripted.read) == 2 * 7


def test_origins_with_the_same_file_share_what_was_read() -> None:
    compared = Compared(AllowsAll)
    for number in range(5):
        compared.decide(with_rules(bytes(bytearray(BODY)), f"https://host{number}"), "/yes")
    assert len(Scripted.read) == 1


# -- the sample -------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_sample_has_its_share_and_is_the_same_in_every_crawl(share: float) -> None:
    urls = [f"{SITE}/page/{number}" for number in range(2_000)]
    chosen = [url for url in urls if in_sample(url, share)]
    assert share * 2_000 * 0.8 < len(chosen) < share * 2_000 * 1.2
    # A larger one contains a smaller one.
    assert all(in_sample(url, share + 0.1) for url in chosen)


def test_the_ends_of_the_range() -> None:
    urls = [f"{SITE}/page/{number}" for number in range(200)] + ["https://example.com/\ud800"]
    assert not any(in_sample(url, 0.0) for url in urls)
    assert all(in_sample(url, 1.0) for url in urls)


def test_what_is_not_in_the_sample_is_skipped() -> None:
    compared = Compared(AllowsAll, REP_COMPARE_SAMPLE=0.5)
    paths = [f"/yes/{number}" for number in range(100)]
    compared.decide(with_rules(BODY), *paths)
    asked = sum(in_sample(SITE + path, 0.5) for path in paths)
    assert compared.stats == {"AllowsAll/agree": asked, "AllowsAll/skipped": 100 - asked}


# -- what is logged ---------------------------------------------------------------------


def test_a_difference_is_logged_once_for_each_origin_and_line(
    log: pytest.LogCaptureFixture,
) -> None:
    compared = Compared(AllowsAll)
    body = b"User-agent: *\nDisallow: /a\nDisallow: /b\n"
    compared.decide(with_rules(body), "/a/1", "/a/2", "/b", "/c", "/a")
    compared.decide(with_rules(body, "https://other"), "/a")
    assert [record.levelname for record in log.records] == ["INFO"] * 3
    name = f"{__name__}.AllowsAll"
    assert [record.getMessage() for record in log.records] == [
        f'https://example.com/a/1 is disallowed by "Disallow: /a" (line 2, group *) of '
        f"https://example.com/robots.txt. {name} disagrees: allowed.",
        f'https://example.com/b is disallowed by "Disallow: /b" (line 3, group *) of '
        f"https://example.com/robots.txt. {name} disagrees: allowed.",
        f'https://other/a is disallowed by "Disallow: /a" (line 2, group *) of '
        f"https://other/robots.txt. {name} disagrees: allowed.",
    ]


def test_what_was_logged_is_remembered_within_bounds(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "_MAX_REPORTED", 10)
    compared = Compared(AllowsAll)
    for _ in range(2):
        for number in range(11):
            compared.decide(with_rules(BODY, f"https://host{number}"), "/no")
    # Of the eleven, the first was forgotten each time when it came again.
    assert len(log.records) == 22


# -- the feed ---------------------------------------------------------------------------


class InMemory:
    """A feed storage."""

    file: ClassVar[BytesIO]

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        type(self).file = BytesIO()

    def open(self, spider: Spider) -> IO[bytes]:
        return self.file

    def store(self, file: IO[bytes]) -> None:
        raise AssertionError


FEED = {"REP_COMPARE_FEED": "memory:", "FEED_STORAGES": {"memory": InMemory}}


def feed_of(compared: Compared, *decisions: tuple[Policy, str]) -> list[dict[str, Any]]:
    """The lines of the feed after *decisions*."""
    signal = compared.crawler.signals
    signal.send_catch_log(signals.spider_opened, spider=compared.crawler.spider)
    for policy, path in decisions:
        compared.decide(policy, path)
    return [json.loads(line) for line in InMemory.file.getvalue().splitlines()]


def test_each_difference_is_a_line_of_the_feed() -> None:
    compared = Compared(AllowsAll, RefusesAll, **FEED)
    policy = with_rules(BODY)
    no, yes = feed_of(compared, (policy, "/no/\u00e9"), (policy, "/yes"))
    assert no == {
        "url": "https://example.com/no/%C3%A9",
        "agents": ["ExampleBot", "OtherBot"],
        "allowed": False,
        "parser": f"{__name__}.AllowsAll",
        "parser_allowed": True,
        "reason": "rule",
        "rule": "Disallow: /no",
        "line": 2,
        "origin": "https://example.com",
        "difference": None,
    }
    assert (yes["allowed"], yes["parser_allowed"]) == (True, False)
    assert (yes["reason"], yes["rule"], yes["line"]) == ("no-rule", None, None)


def test_why_parsers_differ_is_not_looked_for_in_large_files() -> None:
    rules = b"User-agent: *\nDisallow: /*.pdf\n"
    small, large = with_rules(rules), with_rules(rules + b"#" * 20_000, "https://large.example")
    compared = Compared(PythonRobotParser, **FEED)
    of_small, of_large = feed_of(compared, (small, "/a.pdf"), (large, "/a.pdf"))
    assert (of_small["line"], of_small["difference"]) == (2, "wildcards")
    assert (of_large["line"], of_large["difference"]) == (2, None)


def test_our_line_is_named_where_ours_is_the_second_opinion(
    log: pytest.LogCaptureFixture,
) -> None:
    compared = Compared(RepRobotParser, **FEED)
    policy = replace(with_rules(BODY), rules=ExternalRules(AllowsAll(), RFC9309))
    [line] = feed_of(compared, (policy, "/no"))
    assert (line["allowed"], line["parser_allowed"]) == (True, False)
    assert (line["reason"], line["rule"], line["line"]) == ("rule", "Disallow: /no", 2)
    [record] = log.records
    assert record.getMessage() == (
        "https://example.com/no is allowed by an external parser of "
        "https://example.com/robots.txt. scrapy_rep.parser.RepRobotParser disagrees: "
        'disallowed by "Disallow: /no" (line 2, group *) of robots.txt.'
    )


def test_the_feed_holds_nothing_with_power_over_a_terminal() -> None:
    compared = Compared(AllowsAll, **FEED)
    policy = with_rules(b"User-agent: *\nDisallow: /\x1b[2J\xc2\x9b\n")
    [line] = feed_of(compared, (policy, "/%1B[2J%C2%9B"))
    assert line["rule"] == "Disallow: /\\x1b[2J\\x9b"
    assert InMemory.file.getvalue().decode("ascii").rstrip("\n").isprintable()
