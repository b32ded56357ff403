"""Parsers that are not ours."""

from __future__ import annotations

import codecs
import logging

import pytest
from protego import Protego
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser, RobotParser

from scrapy_rep.parsers.external import MAX_COST, ExternalRules, escape_logs, read_with, too_costly
from scrapy_rep.rep.dialects import GOOGLE, RFC9309
from scrapy_rep.rep.rules.verdict import Reason

BODY = b"User-agent: ExampleBot\nDisallow: /private\nCrawl-delay: 3\n"
PAGE = "https://example.com/private"


@pytest.fixture
def crawler() -> Crawler:
    return Crawler(Spider)


@pytest.mark.parametrize("parser", [ProtegoRobotParser, PythonRobotParser])
def test_the_verdict_is_the_parsers_and_names_no_line(
    parser: type[RobotParser], crawler: Crawler
) -> None:
    rules = read_with(parser, crawler, BODY, RFC9309)
    assert isinstance(rules, ExternalRules)
    verdict = rules.verdict(PAGE, ["ExampleBot"])
    assert (verdict.allowed, verdict.reason) == (False, Reason.OTHER_PARSER)
    assert (verdict.line, verdict.rule, verdict.group) == (0, None, ())
    assert not rules.allowed(PAGE, "ExampleBot")
    assert rules.allowed("https://example.com/", "ExampleBot")
    assert rules.allowed(PAGE, ["OtherBot", "ExampleBot"])
    assert rules.allowed(PAGE, [])


def test_the_robots_txt_itself_is_always_allowed(crawler: Crawler) -> None:
    body = b"User-agent: *\nDisallow: /\n"
    url = "https://example.com/robots.txt"
    for dialect, reason in ((RFC9309, Reason.ROBOTS_TXT_ITSELF), (GOOGLE, Reason.OTHER_PARSER)):
        rules = read_with(PythonRobotParser, crawler, body, dialect)
        assert isinstance(rules, ExternalRules)
        assert rules.verdict(url, "x").reason is reason
        assert rules.allowed(url, "x") is (dialect is RFC9309)


class _KnowsOne:
    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return user_agent == "ExampleBot"


def test_the_most_preferred_agent_is_asked_about() -> None:
    rules = ExternalRules(_KnowsOne(), RFC9309)  # type: ignore[arg-type]
    assert rules.allowed("https://a/", "ExampleBot")
    assert rules.allowed("https://a/", ["ExampleBot", "x"])
    assert not rules.allowed("https://a/", ["x", "ExampleBot"])
    assert not rules.allowed("https://a/", [])


# -- what a body would cost ---------------------------------------------------------


def agents(count: int, end: bytes = b"\n", key: bytes = b"User-agent:") -> bytes:
    return b"".join(key + b"x%x" % number + end for number in range(count))


def rules(count: int, end: bytes = b"\n", start: bytes = b"Disallow: /") -> bytes:
    return b"".join(start + b"%x" % number + end for number in range(count))


HOSTILE = {
    "100 KiB of stacked agents and rules": agents(2500) + rules(2000),
    "more than the bound": b"#" * (MAX_COST + 1),
    "one line": b"Disallow: /" + b"a" * MAX_COST,
    "empty lines": b"\n" * (MAX_COST + 1),
    "rules that look like agents": agents(1500) + rules(1500, start=b"Disallow: /user"),
    "lines that end in form feeds": agents(2000, b"\f") + rules(2000, b"\f"),
    "lines that end as Unicode's do": agents(1500, b"\xe2\x80\xa8") + rules(1500, b"\xc2\x85"),
    "keys with bytes that are dropped": agents(1500, key=b"us\xffer-agent:") + rules(1500),
    "agents between sitemaps": agents(1000, b"\nSitemap: /allow\n") + rules(1500),
    "agents between lines without a colon": agents(1000, b"\nallowed\n") + rules(1500),
    "agents without a colon": agents(1500, key=b"user agent ") + rules(1500),
    "other records than rules": agents(1500) + rules(1500, start=b"Crawl-delay: "),
    "rules in several forms": agents(60) + rules(60, b"$/index.html\n"),
    "agents that are two": agents(80, b"*\n") + rules(80),
    "a last line that costs much": agents(1600) + b"Allow: /$/index.html",
    "a mark before the first agent": codecs.BOM_UTF8 + agents(1500) + rules(1500),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_body_is_too_costly(body: bytes) -> None:
    assert too_costly(body) == "its estimated parsing cost is above 100,000"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        BODY,
        rules(2000),
        b"User-agent: *\n" + rules(2000),
        b"\n".join([agents(1) + rules(10)] * 200),
        agents(50) + rules(50),
        agents(1000),
        b"# " + b"a" * 99_000,
    ],
    ids=[
        "empty",
        "small",
        "rules of nobody",
        "many rules",
        "many groups",
        "some of both",
        "many agents",
        "a long comment",
    ],
)
def test_a_body_of_the_usual_kind_is_not(body: bytes) -> None:
    assert too_costly(body) is None


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_protego_keeps_of_a_body_within_the_bound_is_bounded(body: bytes) -> None:
    # The longest start of a hostile body that is let through.
    low, high = 0, len(body)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_costly(body[:middle]) is None else (low, middle)
    parsed = Protego.parse(body[:low].decode("utf-8-sig", "ignore"))
    kept = sum(len(rule_set._rules) for rule_set in parsed._user_agents.values())  # noqa: SLF001
    assert kept <= MAX_COST // 15


# -- logs ---------------------------------------------------------------------------


def test_log_lines_and_tracebacks_have_no_power_over_a_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger(f"{__name__}.escaped")
    of_protego = logging.getLogger("protego.tested")
    escape_logs(logger)
    for each in (logger, of_protego):
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            each.exception("%s failed", "\x9b")
    records = caplog.records
    assert [record.getMessage() for record in records] == ["\\x9b failed"] * 2
    texts = [logging.Formatter().format(record) for record in records]
    assert all("ValueError: \\x1b[2J" in text for text in texts)
    assert all(text.replace("\n", "").isprintable() for text in texts)


def test_log_lines_that_are_printable_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(f"{__name__}.escaped")
    escape_logs(logger)
    logger.warning("caf\xe9 %d", 1)
    assert [(record.msg, record.args) for record in caplog.records] == [("caf\xe9 %d", (1,))]
