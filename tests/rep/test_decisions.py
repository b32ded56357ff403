"""What each dialect does where its specification is silent: docs/conformance."""

from __future__ import annotations

import codecs

import pytest

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.caching.freshness import Bounds, evaluate
from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

SITE = "http://example.com"
ALL = ["rfc9309", "google", "koster1996", "koster1994"]
#: The dialects that take no URL apart as clients do.
VERBATIM = ["google"]
NORMALISING = [name for name in ALL if name not in VERBATIM]
OLD = ["koster1996", "koster1994"]
NEW = ["rfc9309", "google"]


def refusing(body: str | bytes, path: str, agent: str = "ExampleBot") -> list[str]:
    """The dialects in which *body* refuses *path* to *agent*."""
    data = body if isinstance(body, bytes) else body.encode()
    found = []
    for name, dialect in DIALECTS.items():
        robots = RobotsTxt.parse(data, dialect)
        verdict = robots.verdict(f"{SITE}{path}", agent)
        assert robots.allowed(f"{SITE}{path}", agent) is verdict.allowed
        if not verdict.allowed:
            found.append(name)
    return found


def rule(pattern: str) -> str:
    return f"User-agent: *\nDisallow: {pattern}\n"


# -- lines -----------------------------------------------------------------------------


@pytest.mark.clause(
    "Google library-4", "Koster 1994 format-d4", "Koster 1996 3.2-d3", "RFC 9309 2.2-d1"
)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_byte_order_mark_or_its_first_bytes_are_skipped(length: int) -> None:
    body = codecs.BOM_UTF8[:length] + b"User-agent: *\nDisallow: /\n"
    assert refusing(body, "/") == ALL


@pytest.mark.clause("RFC 9309 2.2-d1")
def test_the_last_bytes_of_a_byte_order_mark_are_not_skipped() -> None:
    assert refusing(codecs.BOM_UTF8[1:] + b"User-agent: *\nDisallow: /\n", "/") == []


@pytest.mark.clause("RFC 9309 2.2.4-2", "RFC 9309 2.2.4-d1")
def test_site_map_is_a_sitemap_where_misspelled_keys_are_read() -> None:
    body = b"Site-map: http://example.com/a\nSitemap: http://example.com/b\n"
    found = {name: RobotsTxt.parse(body, dialect).sitemaps for name, dialect in DIALECTS.items()}
    both, one = ("http://example.com/a", "http://example.com/b"), ("http://example.com/b",)
    assert found == dict.fromkeys(NEW, both) | dict.fromkeys(OLD, one)


@pytest.mark.clause(
    "Koster 1994 format-d3", "Koster 1994 user-agent-3", "Koster 1996 3.2-d2", "RFC 9309 2.2.2-21"
)
@pytest.mark.parametrize(
    "rules", ["Disallow: /\n", "Disallow: /\n\n", "# a\nDisallow: /\nAllow: /a\n"]
)
def test_rules_above_the_first_user_agent_line_have_no_effect(rules: str) -> None:
    assert refusing(rules, "/b") == []
    assert refusing(f"{rules}User-agent: *\nDisallow: /b\n", "/a") == []
    assert refusing(f"{rules}User-agent: *\nDisallow: /b\n", "/b") == ALL


@pytest.mark.clause("Koster 1994 format-d4", "Koster 1996 3.2-d3")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_decoded_in_three_dialects(encoding: str) -> None:
    body = "\ufeffUser-agent: *\nDisallow: /\n".encode(encoding)
    assert refusing(body, "/") == NORMALISING


# -- names -----------------------------------------------------------------------------


@pytest.mark.clause("Koster 1994 user-agent-6", "RFC 9309 2.2.1-d2")
@pytest.mark.parametrize(
    ("value", "dialects"),
    [
        ("*", ALL),
        ("* x", NEW),
        ("*\tx", NEW),
        ("* # x", ALL),
        ("**", []),
        ("*x", []),
        ("*/1", []),
    ],
)
def test_an_asterisk_and_more_text_is_everyone_in_two_dialects(
    value: str, dialects: list[str]
) -> None:
    assert refusing(f"User-agent: {value}\nDisallow: /\n", "/") == dialects


@pytest.mark.clause("Koster 1994 format-3", "Koster 1996 3.3-5", "Koster 1996 3.3-d1")
@pytest.mark.parametrize("space", [" ", "\t", "  "])
def test_space_before_a_colon_is_accepted(space: str) -> None:
    body = f"User-agent{space}: *\nDisallow{space}: /\n"
    assert refusing(body, "/") == ALL


@pytest.mark.clause("Koster 1996 3.2.1-d1", "Koster 1996 3.3-11")
@pytest.mark.parametrize(
    ("value", "agent", "dialects"),
    [
        # Not a token of RFC 1945, and the name of a crawler that is called so.
        ("fig tree", "fig tree", OLD),
        ("fig/tree", "fig/tree", OLD),
        ("fig (tree)", "Fig (Tree)", OLD),
        # Another name: in 1996 the whole value counts.
        ("figtree/2", "figtree", [*NEW, "koster1994"]),
        ("fig tree", "fig", [*NEW, "koster1994"]),
        ("fig tree", "tree", ["koster1994"]),
    ],
)
def test_names_that_are_not_tokens(value: str, agent: str, dialects: list[str]) -> None:
    assert refusing(f"User-agent: {value}\nDisallow: /\n", "/", agent) == dialects


# -- paths -----------------------------------------------------------------------------


@pytest.mark.clause("Koster 1994 disallow-d3", "Koster 1996 3.2.2-5", "Koster 1996 3.2.2-d1")
@pytest.mark.parametrize(
    ("pattern", "path", "dialects"),
    [
        ("/a?b", "/a?b", ALL),
        ("/a?b", "/a?bc", ALL),
        ("/a?b", "/a?c", []),
        ("/a?b", "/a", []),
        ("/a;b", "/a;b?c", ALL),
        ("/a", "/a?b", ALL),
        # All is decoded, so that an encoded "?" is one.
        ("/a%3Fb", "/a?b", ["koster1996"]),
    ],
)
def test_parameters_and_query_are_compared(pattern: str, path: str, dialects: list[str]) -> None:
    assert refusing(rule(pattern), path) == dialects


@pytest.mark.clause("Koster 1996 3.2.2-d2", "RFC 9309 2.2.2-d2")
@pytest.mark.parametrize(
    ("pattern", "path", "dialects"),
    [
        ("/a/b", "/a\\b", NORMALISING),
        ("/a/../b", "/a\\..\\b", []),
        ("/b", "/a\\..\\b", NORMALISING),
        # Not in a query, and not in a pattern.
        ("/a?b/c", "/a?b\\c", []),
        ("/a\\b", "/a/b", []),
        ("/a\\b", "/a%5Cb", NORMALISING),
        ("/a\\b", "/a\\b", VERBATIM),
    ],
)
def test_a_backslash_in_the_path_of_a_url_is_a_slash(
    pattern: str, path: str, dialects: list[str]
) -> None:
    assert refusing(rule(pattern), path) == dialects


@pytest.mark.clause("Koster 1996 3.2.2-d2", "RFC 9309 2.2.2-d3")
@pytest.mark.parametrize(
    ("pattern", "path", "dialects"),
    [
        ("/ab", "/a\tb", NORMALISING),
        ("/ab", "/a\nb", NORMALISING),
        ("/ab", "/a\r\nb", NORMALISING),
        ("/a\tb", "/a\tb", VERBATIM),
        ("/a%01b", "/a\x01b", NORMALISING),
        ("/a%7Fb", "/a\x7fb", NORMALISING),
        ("/a%0Bb", "/a\vb", NORMALISING),
        ("/a%20", "/a ", []),
        ("/a%20b", "/a b", NORMALISING),
    ],
    ids=ascii,
)
def test_tabs_and_line_ends_are_taken_out_of_urls_and_other_controls_encoded(
    pattern: str, path: str, dialects: list[str]
) -> None:
    assert refusing(rule(pattern), path) == dialects


@pytest.mark.clause("Koster 1996 3.2.2-d2")
@pytest.mark.parametrize(
    ("pattern", "path", "dialects"),
    [
        ("/b", "/a/../b", NORMALISING),
        ("/b", "/./b", NORMALISING),
        ("/b", "/a/%2e%2E/b", NORMALISING),
        ("/a/../b", "/a/../b", VERBATIM),
    ],
)
def test_dot_segments_of_urls_are_resolved_in_three_dialects(
    pattern: str, path: str, dialects: list[str]
) -> None:
    assert refusing(rule(pattern), path) == dialects


@pytest.mark.clause("RFC 9309 2.2.2-d3")
@pytest.mark.parametrize("around", [" ", "\x01", "\x1f", "\t\n "], ids=ascii)
def test_space_and_controls_around_a_url_are_not_part_of_it(around: str) -> None:
    for name, dialect in DIALECTS.items():
        robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a$\nDisallow: /b\n", dialect)
        assert robots.allowed(f"{around}{SITE}/b{around}", "x") is False
        assert robots.allowed(f"{around}{SITE}/a{around}", "x") is (name != "rfc9309")


@pytest.mark.clause("RFC 9309 2.2.2-d1")
@pytest.mark.parametrize("character", list("'[]\"<>^`{|}"))
def test_the_length_of_a_pattern_with_characters_that_a_url_cannot_carry(character: str) -> None:
    # "/a'" has three characters, or five encoded; "/a*b" has four.
    body = f"User-agent: *\nDisallow: /a{character}\nAllow: /a*b\n"
    for path in (f"/a{character}b", f"/a%{ord(character):02X}b"):
        found = {
            name: RobotsTxt.parse(body.encode(), DIALECTS[name]).verdict(f"{SITE}{path}", "x").line
            for name in NEW
        }
        assert found == {"rfc9309": 2, "google": 3}


# -- outages ---------------------------------------------------------------------------


@pytest.mark.clause("Google status-9", "Google status-d1", "Google caching-2")
@pytest.mark.parametrize("days", [0, 29, 31, 400])
def test_a_copy_is_used_while_there_are_server_errors_in_the_google_dialect(days: float) -> None:
    now = 1_800_000_000.0
    began = now - days * 86_400
    url = f"{SITE}/robots.txt"
    stored = StoredResponse(FetchResult(url, 200, b"User-agent: *\n"), began - 3600, began - 3600)
    outage = Outage(FetchResult(url, 503), began, now, attempts=9)
    entry = CacheEntry(Origin.of(SITE), stored, outage)
    found = evaluate(entry, GOOGLE, None, Bounds(), now)
    assert (found.access, found.stored) == (Access.SUCCESSFUL, stored)
