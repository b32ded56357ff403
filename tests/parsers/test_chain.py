"""From the body of a robots.txt to rules, with whatever parser can read it."""

from __future__ import annotations

import logging
from hashlib import sha256
from importlib.metadata import version
from typing import Any, ClassVar

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser, RobotParser
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.parsers.chain import ParserChain
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings

ORIGIN = Origin.of("https://example.com/")
BODY = b"User-agent: *\nDisallow: /private\nCrawl-delay: 3\n"
PRIVATE = "https://example.com/private"
PUBLIC = "https://example.com/public"
ITSELF = "https://example.com/robots.txt"
# 100 KiB, stacked.
HOSTILE = b"".join(b"User-agent: bot-%d\n" % number for number in range(2500))
HOSTILE += b"".join(b"Disallow: /private%d\n" % number for number in range(2500))


def fetched(body: bytes) -> FetchResult:
    return FetchResult(ORIGIN.robots_url, 200, body)


class RaisesWhenReading(RobotParser):
    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> RaisesWhenReading:
        if robotstxt_body:
            raise RuntimeError("cannot \x1b[2J read")
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise AssertionError


class RefusesOnePath(RobotParser):
    """Refuses ``/secret``. Old versions of Protego do not see the difference to ``/secret;``."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> RefusesOnePath:
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return not str(url).endswith("/secret")


class RaisesWhenAsked(RobotParser):
    asked: ClassVar[int] = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> RaisesWhenAsked:
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        type(self).asked += 1
        raise RuntimeError("cannot answer")


class CannotBeInstalled(RobotParser):
    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> CannotBeInstalled:
        raise ImportError("no module named robotexclusionrulesparser")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise AssertionError


class NeverAsked(PythonRobotParser):
    """A parser that must not see a body."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> NeverAsked:
        assert not robotstxt_body
        return super().from_crawler(crawler, robotstxt_body)


class Reading:
    """A reader of one crawl, and what it counts."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = Crawler(Spider, settings)
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        read = RepSettings.read(self.crawler.settings)
        self.reader = ParserChain(self.crawler, read)

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats is not None
        return {
            key.removeprefix("robotstxt/").replace(f"{__name__}.", ""): value
            for key, value in self.crawler.stats.get_stats().items()
        }


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name == "scrapy_rep.parsers.chain"
    ]


@pytest.fixture
def ours_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*args: object, **kwargs: object) -> RobotsTxt:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(RobotsTxt, "parse", parse)


# -- whose turn it is ---------------------------------------------------------------


def test_ours_reads_by_default(caplog: pytest.LogCaptureFixture) -> None:
    reading = Reading()
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    assert rules.verdict(PRIVATE, "x").line == 2
    assert rules.allowed(PUBLIC, "x")
    assert rules.robots is not None
    assert rules.robots.crawl_delay("x") == 3.0
    assert isinstance(rules.robot_parser, RepRobotParser)
    assert reading.stats == {}
    assert warnings(caplog) == []


@pytest.mark.parametrize("parser", [ProtegoRobotParser, PythonRobotParser])
def test_the_parser_that_was_chosen_reads(parser: type[RobotParser]) -> None:
    reading = Reading(ROBOTSTXT_PARSER=parser)
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    assert rules.verdict(PRIVATE, "x") == Verdict(False, Reason.OTHER_PARSER)
    assert rules.allowed(PUBLIC, "x")
    assert not isinstance(rules.robot_parser, RepRobotParser)
    assert isinstance(rules.robot_parser, parser)
    assert reading.stats == {}


def test_the_limit_holds_for_every_parser() -> None:
    body = BODY + b"#" * 512_000 + b"\nDisallow: /public\n"
    assert Reading().reader.read(ORIGIN, fetched(body)).allowed(PUBLIC, "x")
    more = Reading(REP_MAX_SIZE=600_000)
    assert not more.reader.read(ORIGIN, fetched(body)).allowed(PUBLIC, "x")


# -- parsers that raise ---------------------------------------------------------------


def test_the_fallback_reads_where_ours_cannot(
    ours_fails: None, caplog: pytest.LogCaptureFixture
) -> None:
    reading = Reading()
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    for _ in range(3):
        assert rules.verdict(PRIVATE, "x") == Verdict(False, Reason.OTHER_PARSER)
        assert rules.allowed(PUBLIC, "x")
    assert isinstance(rules.robot_parser, ProtegoRobotParser)
    assert reading.stats == {"parser_error_count/scrapy_rep.parser.RepRobotParser": 1}
    [warning] = warnings(caplog)
    assert "scrapy_rep.parser.RepRobotParser failed on https://example.com/robots.txt" in warning
    assert "RuntimeError: a bug of ours" in warning


@pytest.mark.parametrize("parser", [RaisesWhenReading, RaisesWhenAsked])
def test_a_chosen_parser_that_raises_hands_over_to_the_fallback(
    parser: type[RobotParser], caplog: pytest.LogCaptureFixture
) -> None:
    reading = Reading(ROBOTSTXT_PARSER=parser)
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    for _ in range(3):
        assert not rules.allowed(PRIVATE, "x")
        assert rules.allowed(PUBLIC, "x")
    assert isinstance(rules.robot_parser, ProtegoRobotParser)
    assert reading.stats == {f"parser_error_count/{parser.__name__}": 1}
    [warning] = warnings(caplog)
    assert warning.isprintable()


@pytest.mark.parametrize("parser", [RaisesWhenReading, RaisesWhenAsked])
def test_ours_is_asked_where_the_fallback_raises_too(parser: type[RobotParser]) -> None:
    reading = Reading(ROBOTSTXT_PARSER=parser, REP_FALLBACK_PARSER=RaisesWhenAsked)
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    assert rules.verdict(PRIVATE, "x").line == 2
    assert isinstance(rules.robot_parser, RepRobotParser)


def test_ours_is_asked_where_there_is_no_fallback() -> None:
    reading = Reading(ROBOTSTXT_PARSER=RaisesWhenReading, REP_FALLBACK_PARSER=None)
    assert reading.reader.read(ORIGIN, fetched(BODY)).verdict(PRIVATE, "x").line == 2


def test_a_parser_that_raises_is_never_asked_again() -> None:
    RaisesWhenAsked.asked = 0
    rules = Reading(ROBOTSTXT_PARSER=RaisesWhenAsked).reader.read(ORIGIN, fetched(BODY))
    for _ in range(5):
        rules.allowed(PUBLIC, "x")
    assert RaisesWhenAsked.asked == 1


@pytest.mark.parametrize("parser", [ProtegoRobotParser, RaisesWhenReading])
def test_what_are_no_rules_is_read_by_ours(parser: type[RobotParser]) -> None:
    rules = Reading(ROBOTSTXT_PARSER=parser).reader.read(ORIGIN, fetched(BODY))
    assert rules.robots is not None
    assert rules.robots.crawl_delay("x") == 3.0
    assert rules.robots is rules.robots


@pytest.mark.parametrize("parser", [ProtegoRobotParser, RepRobotParser])
def test_if_ours_fails_there_is_nothing_but_rules(
    ours_fails: None, parser: type[RobotParser]
) -> None:
    reading = Reading(ROBOTSTXT_PARSER=parser)
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    assert not rules.allowed(PRIVATE, "x")
    assert rules.robots is None
    assert rules.robots is None
    assert reading.stats == {"parser_error_count/scrapy_rep.parser.RepRobotParser": 1}


def test_the_log_says_what_to_report(caplog: pytest.LogCaptureFixture) -> None:
    rules = Reading(ROBOTSTXT_PARSER=RaisesWhenAsked).reader.read(ORIGIN, fetched(BODY))
    rules.allowed(PRIVATE, ["ExampleBot", "OtherBot"])
    [record] = [record for record in caplog.records if record.name == "scrapy_rep.parsers.chain"]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], RuntimeError)
    assert record.getMessage() == (
        f"{__name__}.RaisesWhenAsked failed on https://example.com/robots.txt (RuntimeError: "
        "cannot answer) while checking https://example.com/private for ExampleBot, OtherBot. "
        "The next parser is used. If there is none, all pages of this origin are refused. "
        "Please report this to the parser's authors, with the file "
        f"({len(BODY)} bytes, SHA-256 {sha256(BODY).hexdigest()}), "
        f"REP_DIALECT (rfc9309) and versions (scrapy-rep {version('scrapy-rep')}, Scrapy "
        f"{version('Scrapy')}, Protego {version('Protego')})."
    )


@pytest.mark.parametrize(
    ("parser", "asked"),
    [
        (RaisesWhenReading, " while parsing it. "),
        (RaisesWhenAsked, f" while checking {PRIVATE} for *. "),
    ],
)
def test_the_log_says_when_it_failed(
    parser: type[RobotParser], asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    Reading(ROBOTSTXT_PARSER=parser).reader.read(ORIGIN, fetched(BODY)).allowed(PRIVATE, [])
    assert asked in warnings(caplog)[0]


def test_each_origin_is_logged_once_and_starts_with_the_chosen_parser(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reading = Reading(ROBOTSTXT_PARSER=RaisesWhenAsked)
    for host in ("a", "b"):
        rules = reading.reader.read(Origin("https", host, 443), fetched(BODY))
        assert not rules.allowed(f"https://{host}/private", "x")
        assert not rules.allowed(f"https://{host}/private", "x")
    assert reading.stats == {"parser_error_count/RaisesWhenAsked": 2}
    first, second = warnings(caplog)
    assert "https://a/robots.txt" in first
    assert "https://b/robots.txt" in second


def test_an_origin_whose_file_no_parser_can_read_is_refused(ours_fails: None) -> None:
    reading = Reading(REP_FALLBACK_PARSER=RaisesWhenReading)
    rules = reading.reader.read(ORIGIN, fetched(BODY))
    assert rules.verdict(PUBLIC, "x") == Verdict(False, Reason.UNREADABLE)
    assert not rules.allowed(PUBLIC, "x")
    assert rules.verdict(ITSELF, "x") == Verdict(True, Reason.ROBOTS_TXT_ITSELF)
    assert rules.allowed(ITSELF, "x")
    assert rules.robot_parser is None
    assert reading.stats == {
        "parser_error_count/scrapy_rep.parser.RepRobotParser": 1,
        "parser_error_count/RaisesWhenReading": 1,
    }


def test_the_traceback_in_the_log_has_no_power_over_a_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Reading(ROBOTSTXT_PARSER=RaisesWhenReading).reader.read(ORIGIN, fetched(BODY))
    [record] = [record for record in caplog.records if record.name == "scrapy_rep.parsers.chain"]
    text = logging.Formatter().format(record)
    assert "RuntimeError: cannot \\x1b[2J read" in text
    assert "\x1b" not in text


# -- URLs that are sent otherwise -------------------------------------------------------


@pytest.mark.parametrize("parser", [None, RefusesOnePath])
def test_a_url_is_refused_if_it_is_sent_as_one_that_is(parser: type[RobotParser] | None) -> None:
    settings = {} if parser is None else {"ROBOTSTXT_PARSER": parser}
    rules = Reading(**settings).reader.read(ORIGIN, fetched(b"User-agent: *\nDisallow: /secret$\n"))
    # Scrapy's default handler drops empty parameters.
    url = "https://example.com/secret;"
    assert not rules.allowed(url, "x")
    verdict = rules.verdict(url, "x")
    assert (verdict.allowed, verdict.sent_as) == (False, "https://example.com/secret")
    assert rules.allowed("https://example.com/secret;a", "x")
    assert rules.verdict("https://example.com/secret;a", "x").sent_as == ""
    assert rules.verdict("https://example.com/secret", "x").sent_as == ""


def test_the_line_that_a_body_is_cut_in_is_not_read() -> None:
    result = FetchResult(ORIGIN.robots_url, 200, BODY + b"Disallow: /pub", cut=True)
    assert Reading().reader.read(ORIGIN, result).allowed(PUBLIC, "x")


# -- hostile bodies ---------------------------------------------------------------------


def test_a_hostile_body_goes_to_ours_alone(caplog: pytest.LogCaptureFixture) -> None:
    reading = Reading(ROBOTSTXT_PARSER=NeverAsked)
    assert len(HOSTILE) > 90_000
    rules = reading.reader.read(ORIGIN, fetched(HOSTILE))
    assert rules.verdict("https://example.com/private7", "bot-7").line == 2508
    # The fallback, Protego, was not asked either.
    assert reading.stats == {"too_costly_count": 2}
    assert len(warnings(caplog)) == 2
    assert "NeverAsked skipped https://example.com/robots.txt" in warnings(caplog)[0]
    assert "cost is above 100,000. The next parser is used." in warnings(caplog)[0]


def test_an_origin_with_a_hostile_body_that_ours_fails_on_is_refused(
    ours_fails: None, caplog: pytest.LogCaptureFixture
) -> None:
    reading = Reading(REP_FALLBACK_PARSER=NeverAsked)
    rules = reading.reader.read(ORIGIN, fetched(HOSTILE))
    assert rules.verdict(PUBLIC, "bot-7") == Verdict(False, Reason.UNREADABLE)
    assert rules.allowed(ITSELF, "bot-7")
    assert reading.stats == {
        "parser_error_count/scrapy_rep.parser.RepRobotParser": 1,
        "too_costly_count": 1,
    }
    assert len(warnings(caplog)) == 2


# -- at start ---------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["ROBOTSTXT_PARSER", "REP_FALLBACK_PARSER"])
def test_a_parser_that_cannot_be_used_stops_the_start(setting: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CannotBeInstalled, of .* cannot be used"):
        Reading(**{setting: CannotBeInstalled})
