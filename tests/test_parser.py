"""The package's parser behind Scrapy's own interface."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.parser import RepRobotParser
from scrapy_rep.rep.dialects import GOOGLE, RFC9309

BODY = (
    b"User-agent: *\nDisallow: /everyone\nCrawl-delay: 2\n\n"
    b"User-agent: MyBot\nDisallow: /private\nCrawl-delay: 5\n"
)


def parser(body: bytes = BODY, **settings: Any) -> RepRobotParser:
    return RepRobotParser.from_crawler(Crawler(Spider, settings), body)


def test_it_is_found_by_the_path_that_is_documented() -> None:
    assert load_object("scrapy_rep.RepRobotParser") is RepRobotParser
    assert issubclass(RepRobotParser, RobotParser)


def test_it_is_made_as_scrapy_makes_parsers() -> None:
    made = build_from_crawler(RepRobotParser, Crawler(Spider), BODY)
    assert not made.allowed("https://example.com/private", "MyBot")


@pytest.mark.parametrize(
    "user_agent",
    [
        "MyBot",
        "mybot",
        "MyBot/1.0 (+https://example.com)",
        "Mozilla/5.0 (compatible; MyBot/1.0)",
        b"MyBot/1.0",
        b"MyBot\xe9",
    ],
    ids=repr,
)
def test_a_user_agent_is_a_token_or_a_whole_header(user_agent: str | bytes) -> None:
    robots = parser()
    assert not robots.allowed("https://example.com/private", user_agent)
    assert robots.allowed("https://example.com/everyone", user_agent)
    assert robots.crawl_delay(user_agent) == 5.0


@pytest.mark.parametrize(
    "user_agent",
    ["OtherBot", "Mozilla/5.0 (X11) MyBot", "NotMyBot", "*", "", b"", b"\xff"],
    ids=repr,
)
def test_other_user_agents_are_everyone(user_agent: str | bytes) -> None:
    robots = parser()
    assert robots.allowed("https://example.com/private", user_agent)
    assert not robots.allowed("https://example.com/everyone", user_agent)
    assert robots.crawl_delay(user_agent) == 2.0


def test_urls_may_be_bytes() -> None:
    assert not parser().allowed(b"https://example.com/private", b"MyBot")


def test_no_crawl_delay_is_none() -> None:
    assert parser(b"User-agent: *\nDisallow: /\n").crawl_delay("x") is None


def test_the_dialect_is_that_of_the_settings() -> None:
    assert parser().robots.dialect is RFC9309
    assert parser(REP_DIALECT="google").robots.dialect is GOOGLE
    with pytest.raises(ConfigurationError, match="REP_DIALECT"):
        parser(REP_DIALECT="klingon")


def test_without_a_crawler_the_dialect_is_the_default() -> None:
    assert RepRobotParser.from_crawler(None, BODY).robots.dialect is RFC9309


def test_what_was_parsed_can_be_looked_at() -> None:
    verdict = parser().robots.verdict("/private", "MyBot")
    assert verdict.line == 6
