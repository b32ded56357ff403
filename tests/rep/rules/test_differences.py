"""Why another reading answers otherwise."""

from __future__ import annotations

from itertools import chain, combinations, islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import (
    DIALECTS,
    GOOGLE,
    KOSTER1994,
    KOSTER1996,
    RFC9309,
    Dialect,
)
from scrapy_rep.rep.rules.differences import POINTS, Differences, GoogleReading
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from tests.rep.generated_files import SEED_SIZE, generated


@pytest.mark.parametrize(
    ("body", "other", "url", "points"),
    [
        ("User-agent: *\nDisallow: /%61", GOOGLE, "/%61", ()),
        (
            "User-agent: *\nDisallow: /%61",
            GOOGLE,
            "/a",
            ("percent-encoded unreserved characters",),
        ),
        ("User-agent: *\nDisallowed: /", GOOGLE, "/a", ("keys by prefix",)),
        ("User-agent: *\nDisallow: /*.pdf", KOSTER1996, "/a.pdf", ("wildcards",)),
        ("User-agent: *\nAllow: /a\nDisallow: /a/b", KOSTER1996, "/a/b", ("which match decides",)),
        ("User-agent: *\nDisalow: /a", KOSTER1996, "/a", ("misspelled keys",)),
        ("User-agent: *\n\nDisallow: /a", KOSTER1996, "/a", ("blank lines",)),
        ("User-agent: robots\nDisallow: /a", KOSTER1994, "/a", ("names of groups",)),
        ("User-agent: *\nAllow: /a\nDisallow: /", KOSTER1994, "/a", ("Allow lines",)),
    ],
)
def test_differences_of_dialects(
    body: str, other: Dialect, url: str, points: tuple[str, ...]
) -> None:
    assert Differences(body.encode()).from_dialect(url, "Bot", other) == points


ALL = "User-agent: *\nDisallow: "
UTF16 = (ALL + "/a").encode("utf-16")
LONG = b"#" * 512_000 + b"\n" + ALL.encode() + b"/a"


@pytest.mark.parametrize(
    ("body", "url", "point"),
    [
        ("", "page", "a URL that cannot be parsed"),
        (ALL + "/a", r"https://h\a", "where a path begins"),
        (ALL + "/a/b$", r"https://h/a\b", "where a path begins"),
        (ALL + "/a$", "\x01 https://h/a \n", "where a path begins"),
        (ALL + "/ab", "https://h/a\tb", "where a path begins"),
        (ALL + "/a$", r"https://h\a#b", "where a path begins"),
        (ALL + "/?a", "https:\t//h?a?", "where a path begins"),
        (ALL + "/%c3%a9", "/%c3%a9", "hexadecimal case"),
        (ALL + "/%2f%5B", "/%2f%5b", "hexadecimal case"),
        (ALL + "/%CF", "/%cF", "hexadecimal case"),
        (ALL + "/%CF", "/%Cf", "hexadecimal case"),
        (ALL + "/X!X$", r"HTTPS://h\X!X", "where a path begins"),
        (ALL + "/X!$", r"https://h\X!", "where a path begins"),
        (ALL + "/é", "/é", "bytes outside ASCII"),
        (ALL + "/%ED%A0%80", "/\ud800", "bytes outside ASCII"),
        (ALL + "/a%20b", "/a b", "characters that a URL cannot carry"),
        (ALL + "/a b", "/a%20b", "characters that a URL cannot carry"),
        (ALL + "/a%00b", "/a\0b", "characters that a URL cannot carry"),
        (ALL + "/%7Ea", "/~a", "percent-encoded unreserved characters"),
        (ALL + "/a%2Ab", "/a*b", "``%2A`` and ``%24``"),
        (ALL + "/a$b", "/a%24b", "``%2A`` and ``%24``"),
        (ALL + "/b$", "/a/../b", "dot segments"),
        (ALL + "/a/b$", "/a/./b", "dot segments"),
        (ALL + "/a/$", "/a/b/..", "dot segments"),
        (ALL + "/a/$", "/a/.", "dot segments"),
        (ALL + "/c?/../d$", "/a/b/../../../c?/../d", "dot segments"),
        (ALL + "/", "/robots.txt", "``/robots.txt`` itself"),
        ("User-agent: Bot2\nDisallow: /", "/a", "digits in product tokens"),
        (ALL + "\nDisallowed: /", "/a", "keys by prefix"),
        (ALL + "/a\0b", "/a", "NUL"),
        (ALL + "/" + "a" * 17_000, "/" + "a" * 16_999, "line length"),
        (LONG, "/a", "file size"),
        (UTF16, "/a", "UTF-16"),
    ],
)
def test_each_point_makes_a_difference(body: str | bytes, url: str, point: str) -> None:
    data = body if isinstance(body, bytes) else body.encode()
    for dialect, other in ((RFC9309, GOOGLE), (GOOGLE, RFC9309)):
        assert Differences(data, dialect).from_dialect(url, "Bot2", other) == (point,)


@pytest.mark.parametrize(
    ("body", "url", "wanted", "points"),
    [
        (ALL, "/a", (True, 0), ("rules without a value",)),
        (ALL + "/", "/robots.txt", (True, 0), ("``/robots.txt`` itself",)),
        (ALL + "/", "page", (False, 0), ("a URL that cannot be parsed",)),
        (ALL + "/a/b", "/a/b", (True, 0), ()),
        (
            ALL + "/a\nDisallow: /%61b",
            "/ab",
            (False, 3),
            ("percent-encoded unreserved characters",),
        ),
    ],
)
def test_the_deciding_line_may_be_the_difference(
    body: str, url: str, wanted: tuple[bool, int], points: tuple[str, ...]
) -> None:
    reading = GoogleReading(body.encode())
    assert reading.explain(url.encode(), "Bot", wanted, line=True) == points
    assert reading.explain(url, "Bot", wanted, line=True) == points


def test_no_point_makes_a_url_that_cannot_be_parsed_allowed() -> None:
    reading = GoogleReading(b"User-agent: *\nDisallow: /a\n")
    assert reading.explain("example.com/a", "Bot", (True, 0), line=False) == ()


def test_several_points_are_needed() -> None:
    body = "User-agent: M1\nDisallow: /%61\n\nUser-agent: M\nAllow: /\n"
    assert Differences(body.encode()).from_dialect("/a", "M1", GOOGLE) == (
        "percent-encoded unreserved characters",
        "digits in product tokens",
    )
    # In a query, "\\" is no "/".
    query = (ALL + "/a?b%5Cc").encode()
    assert Differences(query).from_dialect(r"https://h\a?b\c", "Bot", GOOGLE) == (
        "where a path begins",
        "characters that a URL cannot carry",
    )
    # The last byte of "à" is a space in Latin-1.
    assert Differences((ALL + "/à$").encode()).from_dialect(r"https://h\à", "Bot", GOOGLE) == (
        "where a path begins",
        "bytes outside ASCII",
    )


@pytest.mark.parametrize(
    ("body", "url", "allowed", "known"),
    [
        ("User-agent: *\nDisallow: /a", "/a", False, ""),
        ("User-agent: *\nDisallow: /a", "/b", False, ""),
        ("User-agent: *\nDisallow: /a", "/a", True, ""),
        ("User-agent: *\nDisallow: /*.pdf", "/a.pdf", True, "wildcards"),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf$", False, "``$`` at the end of a URL"),
        ("User-agent: *\nDisallow: /a/", "/a%2F", False, "percent-encoded reserved characters"),
        ("User-agent: *\nDisallow: /", "/robots.txt", False, "``/robots.txt`` itself"),
        (
            "User-agent: bot\nCrawl-delay: 5\nUser-agent: x\nDisallow: /",
            "/a",
            True,
            "other records between user-agent lines",
        ),
    ],
)
def test_answers_of_somebody_else(body: str, url: str, allowed: bool, known: str) -> None:
    points = Differences(body.encode()).of_answer(url, "Bot", allowed)
    assert points == ((known,) if known else ())


def test_several_points_of_an_older_standard_or_a_newer_one() -> None:
    older = Differences(b"User-agent: *\nDisallow: /*.pdf\nDisalow: /a.pdf\n")
    assert older.of_answer("/a.pdf", "Bot", True) == ("wildcards", "misspelled keys")
    newer = Differences(b"User-agent: *\n\nDisallow: /*.pdf\n", KOSTER1996)
    assert newer.of_answer("/a.pdf", "Bot", False) == ("wildcards", "blank lines")


def test_the_reading_at_hand_need_not_be_the_default() -> None:
    body = b"User-agent: *\nDisallow: /%61\n"
    for dialect, other in ((RFC9309, True), (GOOGLE, False)):
        points = Differences(body, dialect).of_answer("/a", "Bot", other)
        assert points == ("percent-encoded unreserved characters",)


def test_what_is_kept_of_a_file_does_not_grow_without_end() -> None:
    reading = GoogleReading(b"")
    for points in islice(chain.from_iterable(combinations(POINTS, n) for n in range(17)), 200):
        assert reading.changed(points).allowed("/a", "bot")
    assert reading.changed.cache_info().currsize == 128


def test_the_empty_agent_makes_a_difference() -> None:
    body = b"User-agent:\nDisallow: /\n"
    for dialect, other in ((RFC9309, GOOGLE), (GOOGLE, RFC9309)):
        points = Differences(body, dialect).from_dialect("/a", "", other)
        assert points == ("names without a character",)


def test_points_have_names_of_their_own() -> None:
    assert len({point.name for point in POINTS}) == len(POINTS) == 17


@pytest.mark.once
@settings(max_examples=250)
@example(b"", "rfc9309", "google")
@example(
    b"\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00r\x06\x00o"
    b"\x00\x00\x00\x00\x00\x00\x00\x06\xe9",
    "koster1994",
    "google",
)
@given(
    st.binary(max_size=SEED_SIZE),
    st.sampled_from(sorted(DIALECTS)),
    st.sampled_from(sorted(DIALECTS)),
)
def test_every_difference_of_two_dialects_has_a_class(seed: bytes, name: str, other: str) -> None:
    case = generated(seed)
    differences = Differences(case.body, DIALECTS[name])
    readings = [RobotsTxt.parse(case.body, DIALECTS[each]) for each in (name, other)]
    for data in case.urls:
        url = data.decode("utf-8", "replace")
        for agent in case.agents:
            ours, theirs = (robots.allowed(url, agent) for robots in readings)
            points = differences.from_dialect(url, agent, DIALECTS[other])
            assert bool(points) is (ours is not theirs)
            assert bool(differences.of_answer(url, agent, theirs)) is (ours is not theirs)
