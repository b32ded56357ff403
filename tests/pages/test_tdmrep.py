"""The file tdmrep.json."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_rep.pages.statements import Statement, TdmPolicy
from scrapy_rep.pages.tdmrep import MAX_RULES, TdmFile, TdmOrigin
from scrapy_rep.policies.hops import may_authenticate
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import key_of, origin_of

# TDM Reservation Protocol, "TDM File on the Origin Server", "Examples".
EVERYTHING = b"""
 [
 {
 "location": "/",
 "tdm-reservation": 1
 }
 ]
"""
THREE_GROUPS = b"""
 [
 {
 "location": "/directory-a/",
 "tdm-reservation": 1
 },
 {
 "location": "/directory-b/html/",
 "tdm-reservation": 1,
 "tdm-policy":"https://provider.com/policies/policy.json"
 },
 {
 "location": "/directory-b/images/*.jpg",
 "tdm-reservation": 0
 }
 ]
"""


def file(*rules: tuple[str, Any]) -> TdmFile:
    values = [{"location": location, "tdm-reservation": value} for location, value in rules]
    return TdmFile.parse(json.dumps(values).encode())


def stated(one: TdmFile, url: str) -> Statement | None:
    return next((each for each in one.stated(url) if isinstance(each, Statement)), None)


def reserved(one: TdmFile, url: str) -> bool | None:
    statement = stated(one, url)
    return None if statement is None else not statement.allows


@pytest.mark.parametrize("url", ["https://provider.com", "https://provider.com/a?b", "/a"])
def test_the_first_example_reserves_every_file(url: str) -> None:
    assert reserved(TdmFile.parse(EVERYTHING), url) is True


@pytest.mark.parametrize(
    ("path", "expected", "policy"),
    [
        ("/directory-a/x.pdf", True, None),
        ("/directory-b/html/x.html", True, "https://provider.com/policies/policy.json"),
        ("/directory-b/images/x.jpg", False, None),
        ("/directory-b/images/x.png", None, None),
        ("/", None, None),
    ],
)
def test_the_second_example_has_three_groups(
    path: str, expected: bool | None, policy: str | None
) -> None:
    one = TdmFile.parse(THREE_GROUPS)
    assert reserved(one, f"https://provider.com{path}") is expected
    found = one.stated(f"https://provider.com{path}")
    policies = [each for each in found if isinstance(each, TdmPolicy)]
    assert policies == ([] if policy is None else [TdmPolicy(policy)])


def test_a_statement_names_its_rule() -> None:
    statement = stated(TdmFile.parse(THREE_GROUPS), "/directory-b/html/x")
    assert str(statement) == "tdmrep.json, rule 2 for /directory-b/html/: tdm-reservation: 1"


def test_the_text_of_a_statement_is_safe() -> None:
    statement = stated(file(("/*\x1b[2J", 1)), "/%1B[2J")
    assert statement is not None
    assert statement.text == "tdmrep.json, rule 1 for /*\\x1b[2J: tdm-reservation: 1"


def test_the_first_match_counts_though_a_longer_one_follows() -> None:
    one = file(("/a", 1), ("/a/b", 0))
    assert reserved(one, "/a/b") is True
    assert reserved(file(("/a/b", 0), ("/a", 1)), "/a/b") is False


@pytest.mark.parametrize(
    ("location", "path", "matches"),
    [
        # "Designates the end of the match pattern."
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        # "Designates 0 or more instances of any character."
        ("/this/*/then", "/this/and/then", True),
        ("/this/*/then", "/this/then", False),
        # "If TDM Agents match special characters verbatim": /path/foo-%24 is for foo-$.
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-$", "/path/foo-$", False),
        # "The matching SHOULD be case sensitive."
        ("/a", "/A", False),
        # "If a percent-encoded US-ASCII character is encountered, it MUST be unencoded".
        ("/%7Ea", "/~a", True),
        ("/~a", "/%7Ea", True),
        ("/a%2Fb", "/a/b", False),
        ("/\u00e9", "/%C3%A9", True),
        ("*.pdf", "/a.pdf", True),
        ("", "/a", False),
        ("a", "/a", False),
        ("/a\nb", "/ab", True),
    ],
)
def test_a_location_matches_as_in_robots_txt(location: str, path: str, matches: bool) -> None:
    assert (reserved(file((location, 1)), path) is True) is matches


VALID: list[tuple[Any, bool]] = [(0, False), (1, True), ("0", False), ("1", True), (True, True)]
INVALID: list[Any] = [2, -1, "", "yes", None, [], {}, 0.5, 1.0]


@pytest.mark.parametrize(
    ("value", "expected"), [*VALID, (False, False), *[(value, None) for value in INVALID]]
)
def test_an_invalid_reservation_is_unset_and_its_rule_still_matches(
    value: Any, expected: bool | None
) -> None:
    assert reserved(file(("/a", value), ("/", 1)), "/a") is expected


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "It is not valid JSON in UTF-8."),
        (b"<html>", "It is not valid JSON in UTF-8."),
        (b"\xff\xfe", "It is not valid JSON in UTF-8."),
        (b"[" * 100_000, "It is not valid JSON in UTF-8."),
        (b"1" * 10_000, "It is not valid JSON in UTF-8."),
        # "They are mandatory even if you express only one rule."
        (b'{"location": "/", "tdm-reservation": 1}', "It is not an array of rules."),
        (b"null", "It is not an array of rules."),
        (b"[]", ""),
        (b'[1, null, "a", [], {}]', ""),
        # "location and tdm-reservation are mandatory".
        (b'[{"location": "/"}, {"tdm-reservation": 1}, {"location": 1, "tdm-reservation": 1}]', ""),
        (b'[{"location": "/\\ud800", "tdm-reservation": 1}]', ""),
    ],
)
def test_a_file_that_is_not_valid_reserves_nothing(body: bytes, problem: str) -> None:
    one = TdmFile.parse(body)
    assert one.problem == problem
    assert stated(one, "/a") is None


def test_a_byte_order_mark_is_not_an_error() -> None:
    assert reserved(TdmFile.parse(b"\xef\xbb\xbf" + EVERYTHING), "/") is True


def test_what_is_not_a_url_has_no_rule() -> None:
    assert stated(TdmFile.parse(EVERYTHING), "mailto:a@example.com") is None


def test_so_many_rules_are_read() -> None:
    paths = [(f"/{number}$", 1) for number in range(MAX_RULES + 1)]
    one = file(*paths)
    assert reserved(one, f"/{MAX_RULES - 1}") is True
    assert reserved(one, f"/{MAX_RULES}") is None


def test_rules_with_too_many_wildcards_are_not_read() -> None:
    one = file(("/" + "*a" * 400, 1), ("/" + "*b" * 400, 1), ("/" + "*", 1))
    assert len(one.rules) == 2
    assert stated(one, "/" + "a" * 10_000) is not None


def test_the_file_of_a_site_is_apart_from_its_robots_txt() -> None:
    site = Origin.of("https://example.com:8080/page")
    origin = TdmOrigin.beside(site)
    assert origin.robots_url == "https://example.com:8080/.well-known/tdmrep.json"
    assert origin != site
    assert origin == TdmOrigin.beside(site)
    assert len({origin, site, TdmOrigin.beside(site)}) == 2
    # In a store, each has a key of its own, and no list of sites has this one.
    assert key_of(origin) == origin.robots_url
    assert origin_of(key_of(origin)) is None
    assert may_authenticate(origin.robots_url, origin, None)
    assert not may_authenticate("https://other.example/a", origin, None)


def test_the_file_says_nothing_about_access() -> None:
    one = TdmFile.parse(EVERYTHING)
    assert one.allowed("/a", "x")
    assert one.verdict("/a", "x").allowed
