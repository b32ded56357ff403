"""Files, agents and URLs that look for trouble, each made of a string of bytes.

Whoever has the bytes has the file: Hypothesis draws and shrinks them, a
seeded generator makes them for ``benchmarks/conformance.py``. Each byte is
one choice; zeros, and the end of the bytes, choose the least of everything.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

#: So many bytes make the largest file.
SEED_SIZE = 288
#: Bytes that the reference library reads of a line; lengths around it are chosen on purpose.
MAX_LINE = 2083 * 8 - 1

_T = TypeVar("_T")

_AGENTS = ["a", "b", "ab", "a-b", "A_", "abc", "a1", "a1b"]
_NAMES = [name.encode() for name in _AGENTS]
_NAMES += b"*|* |* x|*\tx|*\0|*a|*\vx|a*|a/1|a b|A|a1||/|a\0b|a\xe9|-|B\xef\xbb\xbf|A1/2".split(
    b"|"
)
_PATH_PIECES = [b"/", b"a", b"b", b"*", b"$", b"?", b";", b"%", b"%aa", b"%C3%a9", b"\xc3\xa9"]
_PATH_PIECES += [b"\xe9", b"index.htm", b"index.html", b"/index.htm", b"%61", b".", b"&", b"="]
_PATH_PIECES += [b"%2f", b"%2A", b"%24", b"%7e", b"~", b"'", b"/./", b"/../", b"robots.txt"]
_PATTERN_PIECES = [*_PATH_PIECES, b"#", b" ", b"\0", b":", b"$", b"*", b"\t", b"/", b"*", b"a"]
_URL_PIECES = [*_PATH_PIECES, b"#", b"://", b"/a/", b" ", b"\\", b"\t", b"/", b"a", b"b", b"/a"]
_LONG_STARTS = [b"/", b"/a", b"/\xe9", b"# "]
# No "*" before the end: after one, the library takes pattern times path to match.
_LONG_ENDS = [b"", b"b", b"$", b"*", b"%aa", b"\xe9", b" x", b"#"]
_USER_AGENT_KEYS = [b"user-agent", b"useragent", b"user agent", b"User-Agent", b"user-agents"]
_RULE_KEYS = [b"disallow", b"allow", b"Disallow", b"ALLOW", b"dissallow", b"dissalow", b"disalow"]
_RULE_KEYS += [b"diasllow", b"disallaw", b"disallowed", b"allowed", b"disallow\xe9"]
_OTHER_KEYS = [b"sitemap", b"site-map", b"crawl-delay", b"foo", b"", b"dis", b"user", b"\0"]
_SEPARATORS = [
    b":",
    b": ",
    b":",
    b": ",
    b":",
    b": ",
    b" : ",
    b" ",
    b"\t",
    b":\t",
    b"::",
    b"  ",
    b"",
    b":\v",
]
_ENDS = [b"\n", b"\n", b"\r", b"\r\n", b"\n\r", b"\n\n", b"\0\n", b"#\n", b" # x\n", b" \n"]
_STARTS = [b""] * 10 + [b" ", b"\t", b"#", b"\xef", b"\0", b"\v"]
_SCRAPS = [b"a", b":", b"/", b" ", b"\n", b"\r", b"\0", b"#", b"\xff", b"allow"]
# Most files have no mark and begin with a group, or little in them would ever decide.
_MARKS = [b""] * 24 + [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf"]
_MARKS += [b"\xff\xfe", b"\xfe\xff", b"\xbb\xbf", b"\xbf", b"\xef\xbf"]
_FIRST = [b"user-agent: *\n"] * 5 + [b"user-agent: a\nuser-agent: *\n", b"user-agent:a\r", b""]
_PATTERN_STARTS = [b"/", b"/a", b"/", b"*", b""]
_FILLINGS = [b"", b"a", b"/", b"b/a", b"?"]
_SITES = [b"", b"http://h", b"https://h:8"]
_BASES = [b"/", b"http://h/", b"http://h", b"https://h:8/", b"/", b"http://h/", b"/", b"/a"] * 2
_BASES += [b"//h/", b"h/", b"", b"h"]


class Generated(NamedTuple):
    """A robots.txt, and what it is asked."""

    body: bytes
    urls: list[bytes]
    agents: list[str]


class _Choices:
    """*seed*, byte by byte."""

    def __init__(self, seed: bytes) -> None:
        self._bytes = iter(seed)

    def below(self, limit: int) -> int:
        return next(self._bytes, 0) % limit

    def one(self, options: Sequence[_T]) -> _T:
        return options[self.below(len(options))]

    def joined(self, pieces: Sequence[bytes], limit: int) -> bytes:
        return b"".join([self.one(pieces) for _ in range(self.below(limit + 1))])


def generated(seed: bytes) -> Generated:
    """The file, URLs and agents that *seed*, up to :data:`SEED_SIZE` bytes, stands for."""
    choices = _Choices(seed)
    mark, first = choices.one(_MARKS), choices.one(_FIRST)
    lines = [_line(choices) for _ in range(choices.below(13))]
    body = first + b"".join(line for line, _ in lines)
    patterns = [pattern for _, pattern in lines if pattern]
    agents = [choices.one(_AGENTS) for _ in range(1 + choices.below(2))]
    urls = [_url(choices, patterns) for _ in range(1 + choices.below(4))]
    body = _encoded(mark, body, choices.below(256))
    return Generated(body, urls, list(dict.fromkeys(agents)))


def _encoded(mark: bytes, body: bytes, choice: int) -> bytes:
    match choice:
        case 255 | 254 | 253:
            return codecs.BOM_UTF16_LE + body.decode("latin-1").encode("utf-16-le")
        case 252 | 251:
            return codecs.BOM_UTF16_BE + body.decode("latin-1").encode("utf-16-be")
        case 250:
            # Beyond the 500 KiB that RFC 9309 demands at least, from somewhere in the body on.
            return mark + body + b"\n" + b"#" * (511_990 - len(body) // 2) + b"\n" + body
    return mark + body


def _url(choices: _Choices, patterns: Sequence[bytes]) -> bytes:
    kind = choices.below(32)
    if kind == 31:
        return b"/" + b"a" * (MAX_LINE - choices.below(45) + 5) + choices.one([b"", b"b"])
    if kind < 16 or not patterns:
        return choices.one(_BASES) + choices.joined(_URL_PIECES, 6)
    # One that a pattern matches, or nearly so.
    path = choices.one(patterns).removesuffix(b"$").replace(b"*", choices.one(_FILLINGS))
    return choices.one(_SITES) + path + choices.one(_FILLINGS)


def _line(choices: _Choices) -> tuple[bytes, bytes]:
    """A line, and the pattern in it."""
    pattern = b""
    match choices.below(32):
        case kind if kind < 6:
            line = _record(choices, _USER_AGENT_KEYS, choices.one(_NAMES))
        case kind if kind < 24:
            pattern = choices.one(_PATTERN_STARTS) + choices.joined(_PATTERN_PIECES, 5)
            line = _record(choices, _RULE_KEYS, pattern)
        case kind if kind < 26:
            line = _record(choices, _OTHER_KEYS, choices.one(_NAMES))
        case kind if kind < 28:
            line = _record(choices, _OTHER_KEYS, choices.joined(_PATTERN_PIECES, 6))
        case 28:
            pattern = _long_pattern(choices)
            line = _record(choices, [b"disallow", b"allow"], pattern)
        case _:
            line = choices.joined(_SCRAPS, 8)
    return line, pattern


def _record(choices: _Choices, keys: Sequence[bytes], value: bytes) -> bytes:
    start, key, separator = choices.one(_STARTS), choices.one(keys), choices.one(_SEPARATORS)
    return start + key + separator + value + choices.one(_ENDS)


def _long_pattern(choices: _Choices) -> bytes:
    start, length = choices.one(_LONG_STARTS), MAX_LINE - 30 + choices.below(36)
    return start.ljust(length, b"a") + choices.one(_LONG_ENDS)
