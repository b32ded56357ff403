"""Real robots.txt files with something changed in them, and what they are asked.

All of it is made of a file, of another one for spare lines, and of a generator of random
numbers: the same seed makes the same files.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.rep.generated_files import MAX_LINE

# Of a long file, so many lines in a row; of a longer line, so many bytes.
_MOST_LINES = 150
_MOST_MUTATIONS = 6
_MOST_AGENTS = 4
_MOST_URLS = 6

_MARKS = [codecs.BOM_UTF8, b"\xef", b"\xef\xbb", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf" * 2]
_ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\n\r", b" \n", b"\t\n", b"#\n", b"\0\n", b""]
_NAMES = [b"", b"*", b"* x", b"*x", b"/1.0", b"x", b"X/1", b"x y", b"x1", b"\xe9", b"*\t", b"\0"]
_PIECES = [b"*", b"$", b"?", b"/", b"//", b"%", b"%2F", b"%2f", b"%41", b"%00", b"#", b" ", b"\0"]
_PIECES += [b"\xc3\xa9", b"\xe9", b"index.html", b"index.htm", b"**", b"$$", b";", b":", b"\\"]
_KEYS = [b"Allow", b"Disallow", b"disalow", b"Dissallow", b"disallowed", b"allows", b"user agent"]
_KEYS += [b"useragent", b"User-agents", b"Sitemap", b"site-map", b"Crawl-delay", b"x", b"", b" "]
_FILLINGS = [b"", b"a", b"/", b"x/y", b"a.b", b"$", b"*", b"?q=1", b"%2F"]
_ENCODED = re.compile(rb"%[0-9A-Fa-f]{2}")
_USER_AGENT = re.compile(
    rb"^[ \t]*user-?agent[ \t]*:[ \t]*([^\r\n#]*)", re.IGNORECASE | re.MULTILINE
)
_PATTERN = re.compile(
    rb"^[ \t]*[adis]+l[oa]w[ \t]*:?[ \t]*([^\r\n#]*)", re.IGNORECASE | re.MULTILINE
)


class Mutated(NamedTuple):
    """A robots.txt, and what it is asked: URLs, for single agents and for lists of them."""

    body: bytes
    urls: list[bytes]
    agents: list[str]
    lists: list[list[str]]


def mutated(body: bytes, other: bytes, random: Random) -> Mutated:
    """*body* with lines of *other* and other changes in it, as *random* says."""
    lines = body.splitlines(keepends=True) or [b"\n"]
    start = random.randrange(max(1, len(lines) - _MOST_LINES + 1))
    lines = lines[start : start + _MOST_LINES]
    spare = other.splitlines(keepends=True) or [b""]
    for _ in range(random.randrange(_MOST_MUTATIONS + 1)):
        random.choice(_MUTATIONS)(lines, spare, random)
        lines = lines or [b"\n"]
    changed = b"".join(lines)
    if random.random() < 0.05:
        changed = random.choice(_MARKS) + changed
    agents = _agents(changed, random)
    lists = [random.choices([*agents, ""], k=random.randrange(5)) for _ in range(2)]
    urls = [_url(changed, random) for _ in range(random.randrange(1, _MOST_URLS + 1))]
    return Mutated(changed, urls, agents, lists)


# -- mutations: of lines, in place -------------------------------------------------------


def _delete_line(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def _repeat_line(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def _swap_lines(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def _take_lines(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    start = random.randrange(len(spare))
    place = random.randrange(len(lines) + 1)
    lines[place:place] = spare[start : start + random.randrange(1, 6)]


def _change_byte(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    _splice(lines, random, random.randrange(2), random.randbytes(random.randrange(2)))


def _insert_piece(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    _splice(lines, random, 0, random.choice(_PIECES))


def _encode_byte(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number, place = _place(lines, random)
    line = lines[number]
    if place < len(line):
        encoded = random.choice([b"%%%02X", b"%%%02x"]) % line[place]
        lines[number] = line[:place] + encoded + line[place + 1 :]


def _decode_bytes(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number = random.randrange(len(lines))
    lines[number] = _ENCODED.sub(lambda found: bytes([int(found[0][1:], 16)]), lines[number])


def _change_end(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number = random.randrange(len(lines))
    lines[number] = lines[number].rstrip(b"\r\n") + random.choice(_ENDS)


def _change_key(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number = random.randrange(len(lines))
    _, colon, value = lines[number].partition(b":")
    separator = random.choice([colon, colon, b" :", b" ", b"", b"::"])
    lines[number] = random.choice(_KEYS) + separator + (value or b"\n")


def _change_case(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number = random.randrange(len(lines))
    lines[number] = random.choice([bytes.upper, bytes.lower, bytes.swapcase])(lines[number])


def _name_agent(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    value = random.choice([*_NAMES, *_USER_AGENT.findall(b"".join(spare))])
    lines.insert(random.randrange(len(lines) + 1), b"User-agent: " + value + b"\n")


def _lengthen(lines: list[bytes], spare: list[bytes], random: Random) -> None:
    number, place = _place(lines, random)
    line = lines[number]
    filling = b"a" * max(0, MAX_LINE - len(line) + random.randrange(-20, 20))
    lines[number] = line[:place] + filling + line[place:]


# The last one makes files slow to read.
_MUTATIONS: list[Callable[[list[bytes], list[bytes], Random], None]] = [
    *(_delete_line, _repeat_line, _swap_lines, _take_lines, _change_byte, _insert_piece) * 3,
    *(_encode_byte, _decode_bytes, _change_end, _change_key, _change_case, _name_agent) * 3,
    _lengthen,
]


def _place(lines: list[bytes], random: Random) -> tuple[int, int]:
    number = random.randrange(len(lines))
    return number, random.randrange(len(lines[number]) + 1)


def _splice(lines: list[bytes], random: Random, gone: int, new: bytes) -> None:
    number, place = _place(lines, random)
    line = lines[number]
    lines[number] = line[:place] + new + line[place + gone :]


# -- what is asked -----------------------------------------------------------------------


def _agents(body: bytes, random: Random) -> list[str]:
    """Names of the file, as written and as the library reads them, and some of nobody."""
    named = [value.decode("latin-1").strip() for value in _USER_AGENT.findall(body)]
    names = [name for value in named for name in (value, re.split("[^A-Za-z_-]", value)[0])]
    chosen = random.sample(names, min(len(names), _MOST_AGENTS - 2))
    chosen = [random.choice([name, name.upper(), name.swapcase()]) for name in chosen]
    return list(dict.fromkeys([*chosen, "", random.choice(["otherbot", "*", "Googlebot", "x"])]))


def _url(body: bytes, random: Random) -> bytes:
    patterns = _PATTERN.findall(body)
    path = random.choice(patterns).strip() if patterns else b"/"
    path = path.removesuffix(b"$").replace(b"*", random.choice(_FILLINGS))
    place = random.randrange(len(path) + 1)
    match random.randrange(8):
        case 0:
            path = path[:place]
        case 1:
            path = path[:place] + random.choice([*_PIECES, *_FILLINGS]) + path[place:]
        case 2:
            path = _ENCODED.sub(lambda found: bytes([int(found[0][1:], 16)]), path)
        case 3:
            path += random.choice(_FILLINGS)
    # The library takes any bytes for a URL; most are of the usual form.
    return random.choice([b"", b"https://example.com", b"https://example.com", b"//h"]) + path
