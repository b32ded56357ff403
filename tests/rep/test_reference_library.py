"""The google dialect against the reference library itself, file by generated file.

``REP_REFERENCE_EXAMPLES`` is how many files are tried, 2,000 by default.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import GOOGLE
from scrapy_rep.rep.robotstxt import RobotsTxt

googlebot = pytest.importorskip(
    "jwm.robotstxt.googlebot", reason="jwm.robotstxt, the reference library, is not installed"
)

EXAMPLES = int(os.environ.get("REP_REFERENCE_EXAMPLES", "2000"))
# Octets that are read of a line; lengths around it are drawn on purpose.
MAX_LINE = 2083 * 8 - 1


def _joined(pieces: list[bytes], max_size: int) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(pieces), max_size=max_size).map(b"".join)


_AGENTS = ["a", "b", "ab", "a-b", "A_", "abc"]
_NAMES = st.sampled_from(_AGENTS).map(str.encode) | st.sampled_from(
    b"*|* |* x|*\tx|*\0|*a|*\vx|a*|a/1|a b|A|a1||/|a\0b|a\xe9|-|B\xef\xbb\xbf".split(b"|")
)
_PATH_PIECES = [b"/", b"a", b"b", b"*", b"$", b"?", b";", b"%", b"%aa", b"%C3%a9", b"\xc3\xa9"]
_PATH_PIECES += [b"\xe9", b"index.htm", b"index.html", b"/index.htm", b"%61", b".", b"&", b"="]
_PATTERNS = _joined([*_PATH_PIECES, b"#", b" ", b"\0", b":", b"$", b"*", b"\t"], 6)
_LONG_PATTERNS = st.builds(
    lambda head, length, tail: head + b"a" * (length - len(head)) + tail,
    # No "*": after one, the library takes pattern times path to match.
    st.sampled_from([b"/", b"/a", b"/\xe9", b"# "]),
    st.integers(MAX_LINE - 30, MAX_LINE + 5),
    st.sampled_from([b"", b"b", b"$", b"*", b"%aa", b"\xe9", b" x", b"#"]),
)
_USER_AGENT_KEYS = [b"user-agent", b"useragent", b"user agent", b"User-Agent", b"user-agents"]
_RULE_KEYS = [b"allow", b"disallow", b"Disallow", b"ALLOW", b"dissallow", b"dissalow", b"disalow"]
_RULE_KEYS += [b"diasllow", b"disallaw", b"disallowed", b"allowed", b"disallow\xe9"]
_OTHER_KEYS = [b"sitemap", b"site-map", b"crawl-delay", b"foo", b"", b"dis", b"user", b"\0"]
_SEPARATORS = st.sampled_from([b":", b": ", b" : ", b" ", b"\t", b":\t", b"::", b"  ", b"", b":\v"])
_ENDS = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"\n\r", b"\n\n", b"\0\n", b"#\n", b" # x\n", b" \n"]
)
_STARTS = st.sampled_from([b"", b"", b"", b" ", b"\t", b"#", b"\xef", b"\0", b"\v"])


def _line(keys: list[bytes], values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    parts = [_STARTS, st.sampled_from(keys), _SEPARATORS, values, _ENDS]
    return st.tuples(*parts).map(b"".join)


_LINES = st.one_of(
    _line(_USER_AGENT_KEYS, _NAMES),
    _line(_RULE_KEYS, _PATTERNS),
    _line(_RULE_KEYS, _PATTERNS),
    _line(_OTHER_KEYS, _NAMES | _PATTERNS),
    _line([b"allow", b"disallow"], _LONG_PATTERNS),
    _joined([b"a", b":", b"/", b" ", b"\n", b"\r", b"\0", b"#", b"\xff", b"allow"], 8),
)
_MARKS = st.sampled_from(
    b"|||\xef|\xef\xbb|\xef\xbb\xbf|\xef\xbb\xbf\xef\xbb\xbf|\xff\xfe|\xfe\xff|\xbb\xbf|\xbf|\xef\xbf".split(
        b"|"
    )
)
# Most files begin with a group, or little in them would ever decide.
_FIRST = st.sampled_from(
    [b"user-agent: *\n", b"user-agent: a\nuser-agent: *\n", b"user-agent:a\r", b""]
)
_BODIES = st.builds(
    lambda mark, first, lines: mark + first + b"".join(lines),
    _MARKS,
    _FIRST,
    st.lists(_LINES, max_size=12),
)
_URLS = st.builds(
    lambda base, path: base + path,
    st.sampled_from([b"http://h", b"http://h/", b"https://h:8/", b"//h/", b"/", b"h/", b"", b"h"]),
    _joined([*_PATH_PIECES, b"#", b"://", b"/a/"], 6),
) | st.builds(
    lambda length, tail: b"/" + b"a" * length + tail,
    st.integers(MAX_LINE - 40, MAX_LINE + 5),
    st.sampled_from([b"", b"b"]),
)


@given(
    body=_BODIES,
    urls=st.lists(_URLS, min_size=1, max_size=4),
    agents=st.lists(st.sampled_from(_AGENTS), min_size=1, max_size=3, unique=True),
)
@example(
    body=b"user-agent: *\ndisallow: /" + b"a" * 16_660, urls=[b"/" + b"a" * 16_652], agents=["a"]
)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_verdict_and_line_are_those_of_the_reference_library(
    body: bytes, urls: list[bytes], agents: list[str]
) -> None:
    robots = RobotsTxt.parse(body, GOOGLE)
    matcher = googlebot.RobotsMatcher()
    for url in urls:
        for agent in agents:
            allowed = matcher.OneAgentAllowedByRobots(body, agent, url)
            verdict = robots.verdict(url, agent)
            assert (verdict.allowed, verdict.line) == (allowed, matcher.matching_line())
