"""Whom a request is made as."""

from __future__ import annotations

from collections.abc import Callable
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
    return agent_tokens(spider, **settings).of(request)


def agent_tokens(spider: dict[str, Any] | None, **settings: Any) -> AgentTokens:
    the_spider = Spider("test", **(spider or {}))
    return AgentTokens(RepSettings.read(Settings(settings, priority="project")), the_spider)


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
        ({}, SENT, SPIDER | {"robots_agent_tokens": []}, 0, ("FromTokens", "Second")),
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


# Google's crawlers have such: the token may stand anywhere in a comment.
HEADERS: dict[str, tuple[str, ...]] = {
    "ExampleBot": ("ExampleBot",),
    "ExampleBot/1.0": ("ExampleBot",),
    "ExampleBot/1.0 (+https://www.example.com/bot.html)": ("ExampleBot",),
    "Example-Bot_2 (compatible; OtherBot/1.0)": ("Example-Bot_2",),
    "  ExampleBot/1.0": ("ExampleBot",),
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://www.example.com/bot.html)": ("ExampleBot",),
    "mozilla/5.0 (X11; compatible; ExampleBot)": ("ExampleBot",),
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML; compatible; ExampleBot/2.1) Chrome/1 Safari/1": (
        "ExampleBot",
    ),
    BROWSER: (),
    "Mozilla/5.0": (),
    "(ExampleBot)": (),
    "": (),
}

SOURCES: dict[str, Callable[[str], dict[str, Any]]] = {
    "request header": lambda header: {"user_agent": header},
    "DEFAULT_REQUEST_HEADERS": lambda header: {"DEFAULT_REQUEST_HEADERS": {"User-Agent": header}},
    "spider.user_agent": lambda header: {"spider": {"user_agent": header}},
    "USER_AGENT": lambda header: {"USER_AGENT": header},
    "ROBOTSTXT_USER_AGENT": lambda header: {"ROBOTSTXT_USER_AGENT": header},
}


@pytest.mark.clause("RFC 9309 2.2.1-3")
@pytest.mark.parametrize(("header", "expected"), HEADERS.items())
@pytest.mark.parametrize("source", SOURCES)
def test_what_a_user_agent_names(source: str, header: str, expected: tuple[str, ...]) -> None:
    given = {"USER_AGENT": ""} | SOURCES[source](header)
    asking = request(user_agent=given.pop("user_agent", None))
    assert tokens_of(asking, **given) == expected


def test_scrapys_own_user_agent_names_scrapy() -> None:
    assert tokens_of(request()) == ("Scrapy",)


def test_a_browsers_user_agent_names_nobody() -> None:
    assert tokens_of(request(user_agent=BROWSER)) == ()
    assert tokens_of(request(), USER_AGENT=BROWSER) == ()


def test_no_user_agent_names_nobody() -> None:
    assert tokens_of(request(), USER_AGENT=None) == ()
    assert tokens_of(Request("https://a/", headers={"User-Agent": b""})) == ()


def test_bytes_in_a_header_that_are_not_utf8_do_not_raise() -> None:
    assert tokens_of(Request("https://a/", headers={"User-Agent": b"Bot\xe9/1"})) == ("Bot",)


def test_without_a_spider_the_settings_say_it() -> None:
    settings = RepSettings.read(Settings({"USER_AGENT": "A/1"}))
    assert AgentTokens(settings, None).of(request()) == ("A",)


@pytest.mark.parametrize("value", ["Example Bot", ["*"], [""], 1])
def test_a_spiders_token_that_no_group_can_name_stops_the_start(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^spider\.robots_agent_tokens = "):
        tokens_of(request(), spider={"robots_agent_tokens": value})


def test_a_requests_token_that_no_group_can_name_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^request\.meta\['robots_agent_tokens'\] = 'Example Bot': .* is not a valid product",
    ):
        tokens_of(request({"robots_agent_tokens": "Example Bot"}))


# -- what servers can tell from the User-Agent ---------------------------------------

UNSEEN = "contains no configured product token"
NAMELESS = "does not name a crawler"


@pytest.mark.clause("Koster 1996 3.2.1-4", "RFC 9309 2.2.1-2")
@pytest.mark.parametrize(
    ("settings", "spider", "warning"),
    [
        ({}, {}, None),
        ({"USER_AGENT": "ExampleBot/1.0"}, {}, None),
        ({"USER_AGENT": "examplebot/1.0", "REP_AGENT_TOKENS": "ExampleBot"}, {}, None),
        (
            {"USER_AGENT": "ExampleBot/1", "REP_AGENT_TOKENS": ["ExampleBot-News", "ExampleBot"]},
            {},
            None,
        ),
        ({"USER_AGENT": BROWSER}, {}, NAMELESS),
        ({"USER_AGENT": ""}, {}, NAMELESS),
        ({"USER_AGENT": BROWSER, "REP_AGENT_TOKENS": "ExampleBot"}, {}, UNSEEN),
        ({"USER_AGENT": BROWSER, "ROBOTSTXT_USER_AGENT": "ExampleBot/1"}, {}, UNSEEN),
        ({"REP_AGENT_TOKENS": "ExampleBot"}, {}, UNSEEN),
        ({}, {"robots_agent_tokens": "ExampleBot"}, UNSEEN),
        ({}, {"user_agent": BROWSER}, NAMELESS),
        ({"ROBOTSTXT_USER_AGENT": BROWSER}, {}, f"'{BROWSER}' {NAMELESS}"),
        ({"USER_AGENT": BROWSER}, {"user_agent": "ExampleBot/1"}, None),
        ({"DEFAULT_REQUEST_HEADERS": {"User-Agent": BROWSER}}, {"user_agent": "A/1"}, NAMELESS),
    ],
)
def test_what_is_warned_about_at_start(
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    spider: dict[str, Any],
    warning: str | None,
) -> None:
    agent_tokens(spider, **settings).warn()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (warning is not None)
    assert all(str(warning) in message and "USER_AGENT" in message for message in said)
