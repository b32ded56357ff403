"""Product tokens: ours, and those that groups name."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from scrapy_rep.rep.parsing.agents import (
    EVERYONE,
    check_token,
    group_name,
    names_among,
    preferences,
    token_of_user_agent,
)
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

BOTH = pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)


@pytest.mark.clause("Google agents-4", "RFC 9309 2.2-6", "RFC 9309 2.2.1-d1")
@BOTH
@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b"ExampleBot", "ExampleBot"),
        (b"example-bot_x", "example-bot_x"),
        (b"googlebot/1.2", "googlebot"),
        (b"googlebot*", "googlebot"),
        (b"foo bar", "foo"),
        (b"foo,bar", "foo"),
        (b"foo.bar", "foo"),
        (b"foo\0bar", "foo"),
        (b"foo\xe9", "foo"),
        (b"-", "-"),
    ],
    ids=repr,
)
def test_a_name_ends_at_the_first_byte_that_no_token_has(
    value: bytes, name: str, dialect: Dialect
) -> None:
    assert group_name(value, dialect) == name


@pytest.mark.clause("RFC 9309 2.2.1-d1")
@BOTH
@pytest.mark.parametrize("value", [b"", b"/1.0", b"\xe9", b".", b" foo", b"\0foo"], ids=repr)
def test_a_name_can_be_empty(value: bytes, dialect: Dialect) -> None:
    assert group_name(value, dialect) == ""


@pytest.mark.parametrize("dialect", [KOSTER1996, KOSTER1994], ids=lambda dialect: dialect.name)
def test_before_there_were_tokens_a_name_is_all_of_a_value(dialect: Dialect) -> None:
    assert group_name("Café Bot/1.0".encode(), dialect) == "Café Bot/1.0"
    # Bytes that are not UTF-8 do not make it raise, and stand for no letters.
    assert group_name(b"Caf\xe9 Bot", dialect) == "Caf\ufffd Bot"


@pytest.mark.clause("Google library-6", "RFC 9309 2.2-6", "RFC 9309 2.2.1-d2")
@BOTH
@pytest.mark.parametrize("value", [b"*", b"* ", b"* anything", b"*\t/1", b"*\vx"], ids=repr)
def test_an_asterisk_alone_or_before_space_is_everyone(value: bytes, dialect: Dialect) -> None:
    assert group_name(value, dialect) == EVERYONE


@pytest.mark.clause("RFC 9309 2.2.1-d2")
@BOTH
@pytest.mark.parametrize("value", [b"*bot", b"**", b"*/1.0", b"*\0"], ids=repr)
def test_an_asterisk_before_something_else_names_nobody(value: bytes, dialect: Dialect) -> None:
    assert group_name(value, dialect) == ""


@pytest.mark.clause("Google agents-4", "RFC 9309 2.2-9")
@pytest.mark.parametrize(
    ("value", "name", "google_name"),
    [(b"MJ12bot", "MJ12bot", "MJ"), (b"80legs", "80legs", ""), (b"a1/2", "a1", "a")],
)
def test_digits_belong_to_a_name_except_in_the_google_dialect(
    value: bytes, name: str, google_name: str
) -> None:
    assert group_name(value, RFC9309) == name
    assert group_name(value, GOOGLE) == google_name


@pytest.mark.clause("RFC 9309 2.2.1-6")
@pytest.mark.parametrize(
    ("agents", "names"),
    [
        ("ExampleBot", ("examplebot",)),
        (["ExampleBot-News", "ExampleBot"], ("examplebot-news", "examplebot")),
        (("B", "a"), ("b", "a")),
        ((), ()),
    ],
)
def test_our_tokens_are_compared_in_lower_case_and_in_order(
    agents: str | list[str] | tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert preferences(agents) == names


# RFC 9309 §2.2.1: "case-insensitive matching", of tokens that are all ASCII.
@pytest.mark.clause("RFC 9309 2.2.1-6")
@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("\u212abot", "kbot"),
        ("\u212aBOT", "kbot"),
        ("\u0130bot", "i\u0307bot"),
        ("\u0178bot", "\xffbot"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_case_is_that_of_ascii(dialect: Dialect, agent: str, name: str) -> None:
    assert preferences(agent) != (name,)
    assert preferences("KBot\u212a") == ("kbot\u212a",)
    for ours, theirs in ((agent, name), (name, agent)):
        value = theirs.encode()
        robots = RobotsTxt.parse(b"User-agent: %b\nDisallow: /\n" % value, dialect)
        assert robots.allowed("/", ours)
        assert not names_among(group_name(value, dialect), preferences(ours), dialect)


@pytest.mark.parametrize("dialect", [KOSTER1996, KOSTER1994], ids=lambda dialect: dialect.name)
def test_letters_outside_of_ascii_are_compared_as_they_are(dialect: Dialect) -> None:
    robots = RobotsTxt.parse("User-agent: CAF\xc9\nDisallow: /\n".encode(), dialect)
    assert [robots.allowed("/", agent) for agent in ("caf\xc9", "caf\xe9")] == [False, True]


def test_every_name_contains_the_empty_one_but_does_not_name_it() -> None:
    robots = RobotsTxt.parse(b"User-agent: other\nDisallow: /\n", KOSTER1994)
    assert [robots.allowed("/", agent) for agent in ("", "the")] == [True, False]


@pytest.mark.clause("RFC 9309 2.2.1-1")
@pytest.mark.parametrize("token", ["ExampleBot", "a", "MJ12bot", "a-b_C"])
def test_a_token_that_a_group_can_name_is_one(token: str) -> None:
    assert check_token(token) == token


@pytest.mark.clause("Koster 1996 3.2.1-5", "RFC 9309 2.2.1-1")
@pytest.mark.parametrize(
    "token",
    ["", "*", "Example Bot", "ExampleBot/1.0", "Bot\n", "bőt", "Mozilla/5.0 (compatible; Bot)"],
)
def test_a_token_that_no_group_can_name_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="is not a valid product token, so no group can match it"):
        check_token(token)


@pytest.mark.parametrize("token", [None, b"ExampleBot", 1])
def test_a_token_is_a_string(token: object) -> None:
    with pytest.raises(ValueError, match="it is not a string"):
        check_token(token)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("ExampleBot", "ExampleBot"),
        ("  ExampleBot/1.0", "ExampleBot"),
        ("ExampleBot/0.1 (+https://www.example.com/bot.html)", "ExampleBot"),
        ("Scrapy/2.19.0 (+https://scrapy.org)", "Scrapy"),
        ("MJ12bot/v1.4.8", "MJ12bot"),
        ("Mozilla/5.0 (compatible; ExampleBot/0.1; https://example.com/bot.html)", "ExampleBot"),
        ("Mozilla/5.0 (Linux; Android 6; compatible; ExampleBot/2.1; x) Safari", "ExampleBot"),
        ("Mozilla/5.0 (X) AppleWebKit/537.36 (COMPATIBLE;ExampleBot) Chrome", "ExampleBot"),
        ("Mozilla/5.0 (compatible; Example\u212abot/0.1)", "Example"),
    ],
)
def test_a_crawlers_header_names_it(header: str, token: str) -> None:
    assert token_of_user_agent(header) == token


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "mozilla/5.0",
        "(ExampleBot)",
        "Mozilla/5.0 (incompatible; ExampleBot)",
        "Mozilla/4.0 (compatible; Mozilla/5.0)",
    ],
)
def test_a_browsers_header_names_no_crawler(header: str) -> None:
    assert token_of_user_agent(header) is None
