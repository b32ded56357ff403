"""No bytes make any function of ``rep/`` raise, whatever the dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import DIALECTS, KOSTER1996, Dialect
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason
from tests.fuzz.targets import check_file

ANY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda d: d.name)

# Every byte that text formats give a meaning to, as it is and percent-encoded.
_CONTROLS = [bytes([byte]) for byte in (*range(0x21), 0x7F, 0x80, 0x85, 0xA0, 0xFF)]
_ENCODED = [b"%%%02X" % byte for byte in range(0x21)] + [b"%7F", b"%C2%85", b"%E2%80%A8"]
_LITERAL = [b"/", b"a", b"*", b"$", b"?", b"%", b"/../", b"/index.html", b"index.htm", b"#", b"\\"]
_PATTERN_PIECES = st.sampled_from(_ENCODED) | st.sampled_from(_CONTROLS) | st.sampled_from(_LITERAL)
_PATTERNS = st.lists(_PATTERN_PIECES, max_size=6).map(lambda pieces: b"/" + b"".join(pieces))
_RULES = st.tuples(st.sampled_from([b"Disallow: ", b"Allow: "]), _PATTERNS).map(b"".join)
# More rules than are tried one by one, so that the index is made.
_MANY = [b"Disallow: /many/%d" % number for number in range(40)]


@st.composite
def _files(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A file whose patterns have controls in them, and paths that these may match."""
    rules = draw(st.lists(_RULES, min_size=1, max_size=8))
    filling = _MANY if draw(st.booleans()) else []
    paths = [rule.partition(b": ")[2] for rule in rules]
    return b"\n".join([b"User-agent: *", *rules, *filling]), paths


@pytest.mark.parametrize("encoded", _ENCODED, ids=ascii)
@pytest.mark.parametrize("more", [0, 40])
@ANY_DIALECT
def test_an_encoded_control_character_in_a_pattern(
    dialect: Dialect, encoded: bytes, more: int
) -> None:
    rules = [b"Disallow: /z%bp" % encoded, *_MANY[:more]]
    robots = RobotsTxt.parse(b"\n".join([b"User-agent: *", *rules]), dialect)
    for _ in range(3):
        found = robots.verdict(b"/z%bpage" % encoded, "x")
        assert (found.reason, found.line) == (Reason.RULE, 2)
        assert robots.allowed(b"/z%bpage" % encoded, "x") is False
        assert robots.verdict(b"/z/page", "x").reason is Reason.NO_RULE
        assert robots.allowed(b"/z/page", "x")


def test_a_line_end_in_a_pattern_parts_no_patterns_of_1996() -> None:
    body = b"User-agent: *\nAllow: /a%0A/b\nDisallow: /a\nDisallow: /c%0a%0D\nDisallow: /\n"
    robots = RobotsTxt.parse(body, KOSTER1996)
    for _ in range(3):
        asked = ("/a%0a/b/c", "/a%0A", "/b", "/c%0A%0d", "/")
        assert [robots.verdict(path, "x").line for path in asked] == [2, 3, 5, 4, 5]
        assert [robots.allowed(path, "x") for path in asked] == [True, False, False, False, False]


@pytest.mark.clause("Koster 1996 3.2.2-6", "RFC 9309 3-4")
@pytest.mark.once
@given(files=_files(), dialect=st.sampled_from(list(DIALECTS.values())), more=st.binary(max_size=8))
@settings(max_examples=200)
def test_patterns_with_controls_make_nothing_raise(
    files: tuple[bytes, list[bytes]], dialect: Dialect, more: bytes
) -> None:
    body, paths = files
    for path in paths[:2]:
        check_file(dialect, body, path + more, ["x"])
    event(dialect.name)


def _of_many_bytes(draw: Any) -> bytes:
    start = draw(
        st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"User-agent: *\n"])
    )
    return bytes(start + draw(st.binary(max_size=400)))


@pytest.mark.clause("RFC 9309 3-4")
@pytest.mark.once
@given(
    body=st.composite(_of_many_bytes)(),
    url=st.binary(max_size=40).map(b"/".__add__) | st.binary(max_size=40),
    agents=st.lists(st.text(max_size=6) | st.sampled_from(["", "*", "x"]), max_size=3),
    dialect=st.sampled_from(list(DIALECTS.values())),
)
@settings(max_examples=200)
def test_raw_bytes_make_nothing_raise(
    body: bytes, url: bytes, agents: list[str], dialect: Dialect
) -> None:
    check_file(dialect, body, url, agents)
    event(dialect.name)
