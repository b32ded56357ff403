"""Origins, and the form of a path in which URLs and patterns are compared."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from w3lib.url import safe_url_string

from scrapy_rep.rep.dialects import GOOGLE, KOSTER1996, RFC9309, Dialect, PathForm
from scrapy_rep.rep.parsing.urls import (
    InvalidURL,
    Origin,
    by_host,
    canonical_patterns,
    is_robots_txt,
    path_to_match,
    rest_to_match,
    site_of,
)

# pytest-twisted does not get on with @given and parametrize on one test.
DIALECTS = st.sampled_from([RFC9309, GOOGLE])

# -- origins ----------------------------------------------------------------------


@pytest.mark.clause("Google urls-4", "RFC 9309 2.3-4")
@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("http://EXAMPLE.com/", "http://example.com/"),
        ("HTTP://example.com/", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:/", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("ftp://example.com:21/", "ftp://example.com/"),
        ("http://user:secret@example.com/", "http://example.com/"),
        ("http://user@example.com:80/", "http://example.com/"),
        ("http://a@b@example.com/", "http://example.com/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"),
        ("http://bücher。example/", "http://xn--bcher-kva.example/"),
        ("http://[2001:DB8::1]/", "http://[2001:db8::1]/"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("  http://example.com/\n", "http://example.com/"),
        ("http:\\\\example.com\\a", "http://example.com/"),
        ("http://exam\tple.com/", "http://example.com/"),
        ("http://example.com?q", "http://example.com/"),
        ("http://example.com#f", "http://example.com/"),
        # A label that is too long for IDNA is in no name server.
        (f"http://{'é' * 64}.EXAMPLE/", f"http://{'é' * 64}.example/"),
        ("\0\x01 http://example.com/", "http://example.com/"),
    ],
    ids=repr,
)
def test_spellings_of_one_origin(url: str, same: str) -> None:
    assert Origin.of(url) == Origin.of(same)


@pytest.mark.clause("Google location-6", "RFC 9309 2.3-4")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com/", "https://example.com/"),
        ("http://example.com/", "http://example.com:8080/"),
        ("http://example.com:443/", "https://example.com/"),
        ("http://example.com/", "http://example.com./"),
        ("http://example.com/", "http://www.example.com/"),
        ("http://example.com/", "ftp://example.com/"),
        ("http://[::1]/", "http://[::2]/"),
    ],
)
def test_origins_that_are_not_the_same(one: str, other: str) -> None:
    assert Origin.of(one) != Origin.of(other)


@pytest.mark.clause(
    "Google location-1",
    "Koster 1994 method-1",
    "Koster 1996 3.1-1",
    "RFC 9309 2.3-1",
    "RFC 9309 2.3-4",
)
@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        ("http://example.com/a?b#c", "http://example.com/robots.txt"),
        ("https://example.com:8443/a", "https://example.com:8443/robots.txt"),
        ("https://example.com:443", "https://example.com/robots.txt"),
        ("http://example.com:443", "http://example.com:443/robots.txt"),
        ("ftp://user:secret@example.com/a", "ftp://example.com/robots.txt"),
        ("http://[::1]/", "http://[::1]/robots.txt"),
        ("http://[::1]:81/", "http://[::1]:81/robots.txt"),
        ("http://example.com./", "http://example.com./robots.txt"),
    ],
)
def test_where_the_rules_of_an_origin_are(url: str, robots_url: str) -> None:
    assert Origin.of(url).robots_url == robots_url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/path",
        "//example.com/",
        "http:///path",
        "http://",
        "http://user@/",
        "http://:80/",
        "http://[::1/",
        "http://example.com:x/",
        "http://example.com:65536/",
        "http://example.com:-1/",
        "data:text/plain,a",
        "file:///etc/passwd",
        "s3://bucket/key",
        "mailto:a@example.com",
        # That is an "s" to who does not care for case.
        "http\u017f://example.com/",
    ],
)
def test_a_url_without_an_origin_is_refused(url: str) -> None:
    with pytest.raises(InvalidURL, match=re.escape(repr(url))):
        Origin.of(url)


def test_the_message_about_a_bad_url_has_no_power_over_a_terminal() -> None:
    with pytest.raises(InvalidURL) as raised:
        Origin.of("http:\x1b[2J\u202e")
    assert str(raised.value).isprintable()


@given(st.text())
def test_any_text_has_an_origin_or_is_an_invalid_url(host: str) -> None:
    try:
        origin = Origin.of(f"http://{host}/")
    except InvalidURL:
        return
    assert "@" not in origin.host
    assert str(origin).startswith("http://")


# -- paths in canonical form --------------------------------------------------------


@pytest.mark.clause("RFC 9309 2.2.2-11", "RFC 9309 2.2.2-13", "RFC 9309 2.2.2-14")
@pytest.mark.parametrize(
    ("url", "path"),
    [
        # RFC 9309 §2.2.2, the table of the percent-encoding examples, without
        # the row on reserved characters (see specs/rfc9309-notes.md).
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        # Reserved characters keep the form they have.
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar"),
        ("/foo/bar?baz=http%3A%2F%2Ffoo.bar", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/a%2fb", "/a%2Fb"),
        ("/a;p=1,2?q=!&()+,/:;=?@", "/a;p=1,2?q=!&()+,/:;=?@"),
        ("/%21%26%28%29%2B%2C%3B%3D%3F%40", "/%21%26%28%29%2B%2C%3B%3D%3F%40"),
        # Unreserved ones are decoded, all of them.
        ("/%41%7a%30%2D%2e%5F%7E", "/Az0-._~"),
        # What a URL cannot carry raw is encoded.
        ("/ \"'<>[]{}|^`", "/%20%22%27%3C%3E%5B%5D%7B%7D%7C%5E%60"),
        ("/?\\", "/?%5C"),
        ("/\x00\x7f", "/%00%7F"),
        # Characters with a meaning in patterns are literal.
        ("/a*b$", "/a%2Ab%24"),
        ("/a%2ab%24", "/a%2Ab%24"),
        # "%" that encodes nothing.
        ("/100%", "/100%"),
        ("/%zz%1", "/%zz%1"),
        ("/%25", "/%25"),
        # Nothing is decoded twice.
        ("/%2541", "/%2541"),
        ("/%%34%31", "/%41"),
    ],
    ids=ascii,
)
def test_percent_encoding_is_made_equal(url: str, path: str) -> None:
    assert path_to_match(url, RFC9309) == path
    assert path_to_match("https://example.com" + url, RFC9309) == path


@pytest.mark.clause("RFC 9309 2.2.2-2", "RFC 9309 2.2.2-d4")
@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://example.com", "/"),
        ("https://example.com/", "/"),
        ("https://example.com?q", "/?q"),
        ("https://example.com#f", "/"),
        ("https://example.com/?", "/?"),
        ("https://example.com?", "/?"),
        ("https://example.com/a/..?", "/?"),
        ("/a??", "/a??"),
        ("https://example.com/a?#f", "/a?"),
        ("https://example.com/a;p?q#f?g", "/a;p?q"),
        ("https://user@example.com:8080/a", "/a"),
        ("//example.com/a", "//example.com/a"),
        ("//private/../x", "//x"),
        ("/\\\\h/a", "///h/a"),
        ("/a", "/a"),
        ("https://example.com//a", "//a"),
        ("https://example.com\\a\\b", "/a/b"),
        ("  https://example.com/a  ", "/a"),
        ("https://example.com/a\n\tb", "/ab"),
        ("https://example.com/a/./b", "/a/b"),
        ("https://example.com/a/../b", "/b"),
        ("https://example.com/a/b/..", "/a/"),
        ("https://example.com/a/.", "/a/"),
        ("https://example.com/../../a", "/a"),
        ("https://example.com/a/%2E%2e/b", "/b"),
        ("https://example.com/a/..%2Fb", "/a/..%2Fb"),
        ("https://example.com/a?b=/../c", "/a?b=/../c"),
        ("https://example.com/.well-known/a", "/.well-known/a"),
        ("https://example.com/a/...", "/a/..."),
        ("https://example.com/a//../b", "/a/b"),
        ("\x01https://example.com/a\x1f", "/a"),
        # Its last byte is A0, which is a space in Latin-1.
        ("https://example.com/à", "/%C3%A0"),
    ],
)
def test_the_part_of_a_url_that_rules_are_about(url: str, path: str) -> None:
    assert path_to_match(url, RFC9309) == path
    assert path_to_match(url.encode(), RFC9309) == path


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "rest",
    [
        *("/", "/a/b?c", "/a/../b", "/a/.", "/a?", "/?", "/a b", "/é", "/a#b", "/a b#c", "/%7e "),
        *("//a", "/a\0b"),
    ],
)
def test_what_follows_the_authority_is_enough(rest: str, dialect: Dialect) -> None:
    assert rest_to_match(rest, dialect) == path_to_match(f"https://example.com{rest}", dialect)


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://www.Example.com/a/b", "https://www.Example.com"),
        ("http://localhost:0/", "http://localhost:0"),
        ("http://localhost:65535/a?b", "http://localhost:65535"),
        ("http://localhost:65536/a", ""),
        ("http://user@example.com/", ""),
        ("http://example.com", ""),
        ("http://example.com?/", ""),
        ("http://[::1]/", ""),
        ("HTTP://example.com/", ""),
        ("ftp://example.com/", ""),
        ("/a", ""),
    ],
)
def test_of_most_urls_the_site_is_plain_to_see(url: str, site: str) -> None:
    assert site_of(url) == site


def test_raw_bytes_in_a_url_stay_bytes() -> None:
    assert path_to_match(b"/caf\xe9", RFC9309) == "/caf%E9"


# Everything that w3lib or we treat in some special way, and some of what we do not.
_PIECES = st.sampled_from(
    [*"/aB~.%éツ\U0001f600?#;=&+':@!*$\"<>[]{}|^` \\(),\0\t\n\x7f\x85\xa0"]
) | st.sampled_from(["..", "%2", "%2F", "%2f", "%7e", "%41", "%c3%a9", "%E9", "%2A", "%24"])
# Without what is at the end of a URL and no part of it.
_TAILS = st.lists(_PIECES, max_size=12).map(
    lambda pieces: "".join(pieces).rstrip("".join(map(chr, range(0x21))))
)


def _hex(url: str, change: str) -> str:
    return re.sub("%[0-9A-Fa-f]{2}", lambda match: getattr(match.group(), change)(), url)


@pytest.mark.once
@given(_TAILS)
@settings(max_examples=1500)
def test_a_url_has_one_path_however_it_is_spelled(tail: str) -> None:
    url = f"http://example.com/{tail}"
    path = path_to_match(url, RFC9309)
    # Scrapy leaves out an empty query, which is another URL to the rules.
    assume(path.find("?") != len(path) - 1)
    safe = safe_url_string(url)
    spellings: list[str | bytes] = [
        safe,
        safe_url_string(safe),
        _hex(safe, "upper"),
        _hex(safe, "lower"),
        url.encode(),
        url.partition("#")[0] + "#fragment",
        f"HTTP://user@EXAMPLE.com:80/{tail}",
    ]
    spellings.append(f"/{tail}")
    assert {path_to_match(spelling, RFC9309) for spelling in spellings} == {path}


@given(_TAILS)
@settings(max_examples=500)
def test_canonical_form_is_what_a_url_can_carry(tail: str) -> None:
    path = path_to_match(f"http://example.com/{tail}", RFC9309)
    assert re.fullmatch(r"/[A-Za-z0-9\-._~!&()+,/:;=?@%]*", path)


@pytest.mark.clause("Koster 1996 3.2.2-6", "Koster 1996 3.2.2-d3", "Koster 1996 3.3-10")
def test_the_draft_of_1996_decodes_all_but_the_slash() -> None:
    assert path_to_match("/%2f%7e%e9%25 b*%", KOSTER1996) == "/%2F~\xe9%25 b*%25"


# -- paths as the reference library takes them ---------------------------------------


@pytest.mark.clause("Google syntax-7", "Google matching-1", "Google library-8")
@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://www.example.com", "/"),
        ("http://www.example.com/", "/"),
        ("http://www.example.com/a", "/a"),
        ("http://www.example.com/a/", "/a/"),
        ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
        ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("example.com", "/"),
        ("example.com/", "/"),
        ("example.com/a", "/a"),
        ("example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("a", "/"),
        ("a/", "/"),
        ("/a", "/a"),
        ("a/b", "/b"),
        ("example.com?a", "/?a"),
        ("example.com/a;b#c", "/a;b"),
        ("//a/b/c", "/b/c"),
        ("http://h#/a", "/"),
        ("/a/../b c%7e", "/a/../b c%7e"),
        # A C string ends at the first NUL.
        ("/a\0b", "/a"),
        ("http://h\0/a?\0#b", "/a?"),
        # What looks like a scheme is none behind the start of a path.
        ("/a?u=http://b/c", "/a?u=http://b/c"),
        ("a/b://c/d", "/b://c/d"),
        ("//a://b/c", "/c"),
        ("://a/b", "/b"),
        ("///a/b", "/a/b"),
        ("http:///a/b", "/a/b"),
        ("http://h/a#b#c", "/a"),
    ],
)
def test_the_google_dialect_normalises_nothing(url: str, path: str) -> None:
    assert path_to_match(url, GOOGLE) == path


# -- patterns -------------------------------------------------------------------------


@pytest.mark.clause("RFC 9309 2.2.2-11", "RFC 9309 2.2.2-d4", "RFC 9309 2.2.3-4")
@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (b"/a*b$", "/a*b$"),
        (b"/a%2Ab%24", "/a%2Ab%24"),
        (b"/a%2ab%24$", "/a%2Ab%24$"),
        (b"/a$b", "/a%24b"),
        (b"/a$$", "/a%24$"),
        (b"/$*", "/%24*"),
        (b"/a$*$", "/a%24*$"),
        (b"/%7ea", "/~a"),
        (b"/\xc3\xa9", "/%C3%A9"),
        (b"/\xe9", "/%E9"),
        (b"/a b", "/a%20b"),
        (b"/a\\b", "/a%5Cb"),
        (b"/a/../b", "/a/../b"),
        (b"/?", "/?"),
        (b"", ""),
        (b"$", "$"),
        (b"*", "*"),
        (b"/%c3%a9%2f", "/%C3%A9%2F"),
        (b"/a%*b", "/a%*b"),
    ],
    ids=repr,
)
def test_patterns_in_canonical_form(value: bytes, pattern: str) -> None:
    assert canonical_patterns([value], RFC9309) == [pattern]


def test_what_is_decoded_does_not_part_patterns() -> None:
    # Of no dialect, but :class:`.Differences` tries it.
    dialect = replace(RFC9309, path_form=PathForm.DECODED)
    values = [b"/a%0Ab", b"/caf%C3%A9*"]
    assert canonical_patterns(values, dialect) == ["/a\nb", "/caf\xc3\xa9*"]


@pytest.mark.clause("Google format-4", "Google matching-2", "Google library-8")
@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (b"http://www.example.com", "http://www.example.com"),
        (b"/a/b/c", "/a/b/c"),
        (b"\xc3\xa1", "%C3%A1"),
        (b"%aa", "%AA"),
        (b"%7e%2a%zz%", "%7E%2A%zz%"),
        (b"/a b$c", "/a b$c"),
    ],
    ids=repr,
)
def test_the_google_dialect_escapes_patterns_and_decodes_nothing(
    value: bytes, pattern: str
) -> None:
    assert canonical_patterns([value], GOOGLE) == [pattern]


# -- /robots.txt ------------------------------------------------------------------------


@pytest.mark.clause("Google location-2", "Google urls-3", "RFC 9309 2.2.2-10", "RFC 9309 2.3-1")
@pytest.mark.parametrize(
    ("url", "itself"),
    [
        ("https://example.com/robots.txt", True),
        ("https://example.com/robots.txt#f", True),
        ("https://example.com/%72obots%2Etxt", True),
        ("https://example.com/a/../robots.txt", True),
        ("https://example.com/robots.txt?", False),
        ("https://example.com/robots.txt?q", False),
        ("https://example.com/robots.txt/", False),
        ("https://example.com/ROBOTS.TXT", False),
        ("https://example.com/a/robots.txt", False),
        ("robots.txt", False),
        ("https://[/robots.txt", False),
    ],
)
def test_which_url_is_that_of_the_robots_txt(url: str, itself: bool) -> None:
    assert is_robots_txt(url, RFC9309) is itself


@pytest.mark.clause("Google library-10")
def test_in_the_google_dialect_the_robots_txt_is_a_page_like_any_other() -> None:
    assert not is_robots_txt("https://example.com/robots.txt", GOOGLE)


@given(dialect=DIALECTS, url=st.text() | st.binary(), value=st.binary())
@settings(max_examples=300)
def test_only_invalid_urls_raise(dialect: Dialect, url: str | bytes, value: bytes) -> None:
    with contextlib.suppress(InvalidURL):
        assert path_to_match(url, dialect).startswith("/")
    is_robots_txt(url, dialect)
    assert canonical_patterns([value], dialect)[0].isascii()


def test_lists_of_origins_are_sorted_by_host_first() -> None:
    urls = ["http://b.example", "https://a.example:8443", "https://a.example", "http://a.example"]
    in_order = sorted(map(Origin.of, urls), key=by_host)
    assert [str(origin) for origin in in_order] == [urls[3], urls[2], urls[1], urls[0]]
