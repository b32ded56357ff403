"""Whom a request is made as."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.settings import Settings

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.settings import RepSettings
from scrapy_rep.tokens import AgentTokens

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def tokens_of(
    request: Request, *, spider: dict[str, Any] | None = None, **settings: Any
) -> tuple[str, ...]:
    the_spider = Spider("test", **(spider or {}))
    read = RepSettings.read(Settings(settings, priority="project"))
    return AgentTokens(read, the_spider).of(request)


def request(meta: dict[str, Any] | None = None, user_agent: str | None = None) -> Request:
    headers = {"User-Agent": user_agent} if user_agent else {}
    return Request("https://example.com/", meta=meta, headers=headers)


# All that can say it, the first one first.
SETTINGS: list[dict[str, Any]] = [
    {"REP_AGENT_TOKENS": ["FromTokens", "Second"]},
    {"ROBOTSTXT_USER_AGENT": "FromRobotsUserAgent/1"},
    {"DEFAULT_REQUEST_HEADERS": {"user-agent": "FromHeaders/1"}},
    {"USER_AGENT": "FromUserAgent/1"},
]


def _all_from(first: int) -> dict[str, Any]:
    return {name: value for each in SETTINGS[first:] for name, value in each.items()}


SPIDER = {"robots_agent_tokens": "FromSpider", "user_agent": "FromSpidersUserAgent/1"}
SPIDERS_AGENT = {"user_agent": "FromSpidersUserAgent/1"}
META = {"robots_agent_tokens": ["FromMeta", "Second"]}
SENT = "FromRequest/1"


@pytest.mark.parametrize(
    ("meta", "user_agent", "spider", "first", "tokens"),
    [
        (META, SENT, SPIDER, 0, ("FromMeta", "Second")),
        ({}, SENT, SPIDER, 0, ("FromSpider",)),
        ({}, SENT, SPIDERS_AGENT, 0, ("FromTokens", "Second")),
        ({}, SENT, SPIDERS_AGENT, 1, ("FromRobotsUserAgent",)),
        ({}, SENT, SPIDERS_AGENT, 2, ("FromRequest",)),
        ({}, None, SPIDERS_AGENT, 2, ("FromHeaders",)),
        ({}, None, SPIDERS_AGENT, 3, ("FromSpidersUserAgent",)),
        ({}, None, {}, 3, ("FromUserAgent",)),
    ],
)
def test_the_first_that_is_set_says_who_we_are(
    meta: dict[str, Any],
    user_agent: str | None,
    spider: dict[str, Any],
    first: int,
    tokens: tuple[str, ...],
) -> None:
    assert tokens_of(request(meta, user_agent), spider=spider, **_all_from(first)) == tokens


def test_scrapys_own_user_agent_names_scrapy() -> None:
    assert tokens_of(request()) == ("Scrapy",)


def test_a_browsers_user_agent_names_nobody() -> None:
    assert tokens_of(request(user_agent=BROWSER)) == ()
    assert tokens_of(request(), USER_AGENT=BROWSER) == ()


def test_no_user_agent_names_nobody() -> None:
    assert tokens_of(request(), USER_AGENT=None) == ()
    assert tokens_of(Request("https://a/", headers={"User-Agent": b""})) == ()


def test_octets_in_a_header_that_are_not_utf8_do_not_raise() -> None:
    assert tokens_of(Request("https://a/", headers={"User-Agent": b"Bot\xe9/1"})) == ("Bot",)


def test_without_a_spider_the_settings_say_it() -> None:
    settings = RepSettings.read(Settings({"USER_AGENT": "A/1"}))
    assert AgentTokens(settings, None).of(request()) == ("A",)


@pytest.mark.parametrize("value", ["Example Bot", ["*"], [""], 1])
def test_a_spiders_token_that_no_group_can_name_stops_the_start(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^spider\.robots_agent_tokens = "):
        tokens_of(request(), spider={"robots_agent_tokens": value})


def test_a_requests_token_that_no_group_can_name_is_refused() -> None:
    with pytest.raises(ValueError, match="is no product token"):
        tokens_of(request({"robots_agent_tokens": "Example Bot"}))
