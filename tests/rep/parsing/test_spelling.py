"""Whatever comes: URLs in any spelling, URLs that are none, files of any bytes."""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from w3lib.url import safe_url_string

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict

# -- one URL, many spellings -----------------------------------------------------------

SITE = "http://example.com"
# google takes URLs as they come.
NORMALISING = st.sampled_from([RFC9309, KOSTER1996, KOSTER1994])
_PIECES = [*"//aabB~.%é\xe9ツ?;=&'*$\"<[{|^` \\", "%2F", "%2f", "%7e", "%61", "%c3%a9", "%E9"]
_PIECES += ["%2A", "%24", "%25", "/../", "/./", "%2e", "index.html", "robots.txt"]
_PATHS = st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)
_TOKENS = re.compile("%[0-9A-Fa-f]{2}|.", re.DOTALL)


def _encode_one(url: str, place: int) -> str:
    """One unreserved character of the path percent-encoded."""
    tokens = _TOKENS.findall(url.removeprefix(SITE))
    letters = [i for i, token in enumerate(tokens) if re.fullmatch(r"[A-Za-z0-9\-._~]", token)]
    if letters:
        chosen = letters[place % len(letters)]
        tokens[chosen] = f"%{ord(tokens[chosen]):02x}"
    return SITE + "".join(tokens)


def _insert(what: str) -> Callable[[str, int], str]:
    def spell(url: str, place: int) -> str:
        at = len(SITE) + place % (len(url) - len(SITE))
        return url[:at] + what + url[at:]

    return spell


def _hex(change: Callable[[str], str]) -> Callable[[str, int], str]:
    return lambda url, _: re.sub("%[0-9A-Fa-f]{2}", lambda match: change(match.group()), url)


def _as_scrapy_sends(url: str) -> str:
    # It leaves out an empty query, which is another URL to the rules.
    return safe_url_string(url) + ("?" if url.find("?") == len(url) - 1 else "")


# Each makes another spelling of a URL that starts with SITE; the number says where.
SPELLINGS: dict[str, Callable[[str, int], str]] = {
    "as Scrapy sends it": lambda url, _: _as_scrapy_sends(url),
    "upper hex": _hex(str.upper),
    "lower hex": _hex(str.lower),
    "unreserved encoded": _encode_one,
    "not ASCII encoded": lambda url, _: "".join(c if c.isascii() else quote(c) for c in url),
    # Last, as "%2\t0" is no encoded byte to the others.
    "tab": _insert("\t"),
    "newline": _insert("\n"),
    "CR LF": _insert("\r\n"),
}
_ORDER = list(SPELLINGS)
# Applied last, as the others look for SITE.
FINISHES: dict[str, Callable[[str], str | bytes]] = {
    "as it is": lambda url: url,
    "fragment": lambda url: url + "#fragment/?a",
    "empty fragment": lambda url: url + "#",
    "default port": lambda url: url.replace(SITE, SITE + ":80"),
    "empty port": lambda url: url.replace(SITE, SITE + ":"),
    "scheme and host case": lambda url: url.replace(SITE, "HTTP://Example.COM"),
    "userinfo": lambda url: url.replace(SITE, "http://user:pass@example.com"),
    "spaces around": lambda url: f" \t{url}\n ",
    "bytes": lambda url: url.encode(),
    "backslashes": lambda url: url.replace("http://", "http:\\\\"),
}


@pytest.mark.once
@given(
    dialect=NORMALISING,
    rules=st.lists(st.tuples(st.booleans(), _PATHS), min_size=1, max_size=4),
    own=st.integers(0, 3) | st.none(),
    tail=_PATHS,
    spellings=st.lists(st.tuples(st.sampled_from(_ORDER), st.integers(0, 50)), max_size=4),
    finish=st.sampled_from(list(FINISHES)),
)
@settings(max_examples=1500)
@pytest.mark.once
def test_the_verdict_does_not_depend_on_the_spelling_of_the_url(
    dialect: Dialect,
    rules: list[tuple[bool, str]],
    own: int | None,
    tail: str,
    spellings: list[tuple[str, int]],
    finish: str,
) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: /{path}" for allow, path in rules]
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *lines]).encode(), dialect)
    # A URL that is one of the patterns, or any; space at its end is no part of it.
    path = tail if own is None else rules[own % len(rules)][1] + tail
    plain = spelled = f"{SITE}/{path}".rstrip()
    for name, place in sorted(spellings, key=lambda spelling: _ORDER.index(spelling[0])):
        spelled = SPELLINGS[name](spelled, place)
    found = robots.verdict(plain, "x")
    event(f"{dialect.name}: {found.reason.value}, {'allowed' if found.allowed else 'refused'}")
    finished = FINISHES[finish](spelled)
    assert robots.verdict(finished, "x") == found
    assert robots.allowed(finished, "x") is robots.allowed(plain, "x") is found.allowed


@pytest.mark.clause("Koster 1994 disallow-d2")
@pytest.mark.parametrize("dialect", [RFC9309, KOSTER1996, KOSTER1994], ids=lambda d: d.name)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("refused", [True, False])
def test_each_spelling_of_a_url_that_is_refused_and_of_one_that_is_not(
    spelling: str, finish: str, refused: bool, dialect: Dialect
) -> None:
    # The verdicts of the test above might all be the same: these are not.
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /é/~b%2fc?d=[e]\n".encode(), dialect)
    url = SITE + ("/é/~b%2Fc?d=[e]" if refused else "/é/~b/c?d=[e]")
    for place in (0, 7):
        spelled = FINISHES[finish](SPELLINGS[spelling](url, place))
        assert robots.allowed(spelled, "x") is not refused
        assert robots.verdict(spelled, "x").allowed is not refused


# -- URLs that are none ---------------------------------------------------------------

# With what a person is told.
INVALID: list[tuple[str | bytes, str]] = [
    ("", "neither an absolute URL nor a path"),
    (" ", "neither an absolute URL nor a path"),
    (b"", "neither an absolute URL nor a path"),
    ("page", "neither an absolute URL nor a path"),
    ("example.com/page", "neither an absolute URL nor a path"),
    ("mailto:a@example.com", "neither an absolute URL nor a path"),
    ("data:text/plain,/a", "neither an absolute URL nor a path"),
    ("\\\\h\\a", "neither an absolute URL nor a path"),
    ("\ud800", "neither an absolute URL nor a path"),
    (b"\xff\xfe", "neither an absolute URL nor a path"),
    ("http://", "has no host"),
    ("http:///", "has no host"),
    ("http:///page", "has no host"),
    ("http://user@/", "has no host"),
    ("http://:80/", "has no host"),
    ("http://[::1", "Invalid IPv6 URL"),
    ("http://::1]/", "Invalid IPv6 URL"),
    (b"http://[::1/a", "Invalid IPv6 URL"),
    ("http://h:99999/", "Port out of range 0-65535"),
    ("http://h:-1/", "Port"),
    ("http://h:port/", "Port could not be cast to integer value"),
]
# Odd, but they have a path.
ODD: list[str | bytes] = [
    "/",
    "//h",
    "/\ud800",
    b"/\xff",
    "http://h/\udcff",
    "http://\ud800/",
    "http://h\0/a",
    "s3://bucket/key",
    "http://h?q",
    "http://h/" + "/.." * 10_000,
    "http://h/" + "%" * 10_000,
    "http://h/a" + "?" * 10_000,
]


@pytest.mark.clause("RFC 9309 2.2.2-d5")
@pytest.mark.parametrize(("url", "detail"), INVALID, ids=ascii)
@pytest.mark.parametrize("dialect", [RFC9309, KOSTER1996, KOSTER1994], ids=lambda d: d.name)
def test_a_url_that_cannot_be_parsed_is_refused_and_told_why(
    url: str | bytes, detail: str, dialect: Dialect
) -> None:
    for body in (b"", b"User-agent: *\nAllow: /\n"):
        robots = RobotsTxt.parse(body, dialect)
        found = robots.verdict(url, "x")
        assert found == Verdict(False, Reason.INVALID_URL, detail=found.detail)
        assert detail in found.detail
        assert str(found).isprintable()
        assert not robots.allowed(url, "x")


@pytest.mark.clause("RFC 9309 2.2.2-d5")
@pytest.mark.parametrize("url", [url for url, _ in INVALID], ids=ascii)
def test_the_google_dialect_does_not_normalise_urls(url: str | bytes) -> None:
    # As the reference library, which knows no invalid URL.
    robots = RobotsTxt.parse(b"User-agent: *\nAllow: /\n", GOOGLE)
    assert robots.verdict(url, "x").line == 2
    assert robots.allowed(url, "x")


@pytest.mark.parametrize("url", ODD, ids=lambda url: ascii(url)[:30])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda d: d.name)
def test_odd_urls_have_a_path(url: str | bytes, dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /\n", dialect)
    found = robots.verdict(url, "x")
    assert (found.reason, found.allowed) == (Reason.RULE, False)
    assert not robots.allowed(url, "x")


# -- files of any bytes -----------------------------------------------------------------

_URLS = st.one_of(
    st.sampled_from([url for url, _ in INVALID] + ODD[:-3]),
    st.text(),
    st.binary(),
    st.text(st.characters(codec=None)).map("http://h/".__add__),
    st.text().map("http://".__add__),
    st.binary().map(b"http://h/".__add__),
)
_LINES = st.sampled_from(
    b"user-agent: *|user-agent: x|disallow: /|allow: /|disallow: /*$|disallow|:||#|\0".split(b"|")
)
_BODIES = st.binary(max_size=2000) | st.builds(
    lambda mark, lines, end: mark + end.join(lines),
    st.sampled_from([b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE]),
    st.lists(_LINES | st.binary(max_size=20)),
    st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\0"]),
)


def assert_both_answer_alike(robots: RobotsTxt, url: str | bytes, agents: str | list[str]) -> None:
    found = robots.verdict(url, agents)
    assert robots.allowed(url, agents) is found.allowed
    assert str(found).isprintable()
    if found.reason is Reason.INVALID_URL:
        assert not found.allowed
        assert found.detail
        assert robots.dialect is not GOOGLE


@pytest.mark.clause("Koster 1996 4.2-1", "RFC 9309 2.3.1.5-1", "RFC 9309 3-4")
@pytest.mark.once
@given(
    body=_BODIES,
    dialect=st.sampled_from(list(DIALECTS.values())),
    url=_URLS,
    agents=st.sampled_from(["x", "", "*", "\ud800"]) | st.text() | st.lists(st.text(), max_size=3),
)
@settings(max_examples=1000)
def test_no_bytes_and_no_url_make_it_raise(
    body: bytes, dialect: Dialect, url: str | bytes, agents: str | list[str]
) -> None:
    robots = RobotsTxt.parse(body, dialect)
    assert_both_answer_alike(robots, url, agents)
    event(f"{dialect.name}: {robots.verdict(url, agents).reason.value}")


_SIZE = 600 * 1024


def _filled(piece: bytes, start: bytes = b"") -> bytes:
    """*piece* again and again, to 600 KiB."""
    return (start + piece * (_SIZE // len(piece) + 1))[:_SIZE]


_GROUP = b"User-agent: *\n"
LARGE: dict[str, bytes] = {
    **{f"random {seed}": random.Random(seed).randbytes(_SIZE) for seed in range(3)},
    "random in UTF-16 of odd length": codecs.BOM_UTF16_LE + random.Random(3).randbytes(_SIZE - 3),
    "one line": _filled(b"a", _GROUP + b"Disallow: /"),
    "one line without a key": _filled(b"a"),
    "CR": _filled(b"\r"),
    "LF CR": _filled(b"\n\r"),
    "colons": _filled(b":"),
    "colons in lines": _filled(b":\n"),
    "NUL": _filled(b"\0"),
    "NUL in a rule": _filled(b"\0", _GROUP + b"Disallow: /"),
    "number signs": _filled(b"#\n"),
    "spaces": _filled(b" \t"),
    "UTF-16 of odd length": _filled(b"\n\0", codecs.BOM_UTF16_LE + b"\0"),
    "half surrogates": _filled(b"\xd8\x00\x00\n", codecs.BOM_UTF16_BE),
    "user-agent lines": _filled(_GROUP),
    "groups": _filled(b"User-agent: x\nDisallow: /a\n"),
    "empty rules": _filled(b"Disallow:\n", _GROUP),
    "rules": _filled(b"Disallow: /a\nAllow: /b\n", _GROUP),
    "wildcards": _filled(b"Disallow: /*a*b*c$\nDisallow: /*" + b"*a" * 50 + b"\n", _GROUP),
    "a rule of stars": _filled(b"*", _GROUP + b"Disallow: /"),
    "a rule of percents": _filled(b"%", _GROUP + b"Disallow: /"),
    "a rule of encoded bytes": _filled(b"%e9", _GROUP + b"Disallow: /"),
    "marks": _filled(codecs.BOM_UTF8),
}
_ASKED: list[str | bytes] = ["http://h/", "/" + "a" * 5000, b"/\xff", "http://h/robots.txt", ""]


@pytest.mark.once
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda d: d.name)
def test_no_large_file_makes_it_raise(name: str, dialect: Dialect) -> None:
    body = LARGE[name]
    robots = RobotsTxt.parse(body, dialect)
    assert robots.truncated is (dialect.max_size is not None)
    for url in _ASKED:
        assert_both_answer_alike(robots, url, "x")
    assert_both_answer_alike(robots, "http://h/", ["y", "x"])


@pytest.mark.once
def test_large_files_say_something() -> None:
    # Of one that is read as nothing, any answer would be right.
    asked = [RobotsTxt.parse(body).verdict("http://h/aabbcc", "x") for body in LARGE.values()]
    assert {found.reason for found in asked} == {Reason.RULE, Reason.NO_RULE, Reason.NO_GROUP}
