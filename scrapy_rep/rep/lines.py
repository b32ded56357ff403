"""Octets to records: byte order mark, line ends, comments, keys, sizes.

Here may live: everything that turns the octets of a file into ``key: value``
records with line numbers, and every leniency that is granted on the way. Here
may not live: what a record means for its neighbours (:mod:`.robotstxt`).

The grammar (RFC 9309 §2.2), in the order in which the code deals with it::

    NL            = %x0D / %x0A / %x0D.0A
    comment       = "#" *(UTF8-char-noctl / WS / "#")
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule          = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from .dialects import Dialect

# What the reference library strips from both ends of keys and values: the
# grammar's WS (space, tab) and the other ASCII white space, seen in the wild.
_WHITE_SPACE = b" \t\v\f\r\n"

# RFC 9309 has only UTF-8; files in UTF-16 exist and say so in their first octets.
_UTF16_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# Leniency: a forgotten colon, where a line has exactly two words.
_TWO_WORDS = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)")


class Field(Enum):
    """What a record is about."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    OTHER = "other"


class Record(NamedTuple):
    """One line that has a key: ``number`` counts from 1, ``value`` is as written."""

    number: int
    field: Field
    value: bytes


# Keys, lower-cased. Leniency: the typos that the reference library accepts.
_KEYS: dict[bytes, Field] = {
    b"user-agent": Field.USER_AGENT,
    b"useragent": Field.USER_AGENT,
    b"user agent": Field.USER_AGENT,
    b"allow": Field.ALLOW,
    b"disallow": Field.DISALLOW,
    b"dissallow": Field.DISALLOW,
    b"dissalow": Field.DISALLOW,
    b"disalow": Field.DISALLOW,
    b"diasllow": Field.DISALLOW,
    b"disallaw": Field.DISALLOW,
    b"sitemap": Field.SITEMAP,
    b"site-map": Field.SITEMAP,
    b"crawl-delay": Field.CRAWL_DELAY,
}


def read_records(body: bytes, dialect: Dialect) -> Iterator[Record]:
    """The records of *body*, the octets of a robots.txt, in file order.

    Lines without a key are left out. No octets make it raise.
    """
    text = _without_mark(body, dialect)
    # bytes.splitlines() knows exactly the grammar's NL: LF, CR and CRLF.
    for number, line in enumerate(text.splitlines(), 1):
        record = _read_line(number, line, dialect) if line else None
        if record is not None:
            yield record


def within_limit(body: bytes, max_size: int) -> bytes:
    """The first *max_size* octets (RFC 9309 §2.5), without the line that the cut falls into.

    Half a pattern is another pattern: ``/private`` cut to ``/`` would refuse
    a whole site.
    """
    if len(body) <= max_size:
        return body
    for mark, encoding in _UTF16_MARKS:
        if body.startswith(mark):
            return body[: _end_of_last_line_of_utf16(body, max_size, encoding)]
    if body[max_size : max_size + 1] in (b"\r", b"\n"):
        return body[:max_size]
    end = max(body.rfind(b"\n", 0, max_size), body.rfind(b"\r", 0, max_size))
    return body[: end + 1]


def _end_of_last_line_of_utf16(body: bytes, max_size: int, encoding: str) -> int:
    ends = [0]
    for line_end in ("\r".encode(encoding), "\n".encode(encoding)):
        found = body.rfind(line_end, 0, max_size)
        # Not where it is half of one character and half of the next.
        while found >= 0 and found % 2:
            found = body.rfind(line_end, 0, found + 1)
        ends.append(found + 2)
    return max(ends)


def _without_mark(body: bytes, dialect: Dialect) -> bytes:
    """*body* as UTF-8 (or whatever it is) without a byte order mark."""
    if dialect.utf16:
        for mark, encoding in _UTF16_MARKS:
            if body.startswith(mark):
                text = body[len(mark) :].decode(encoding, "replace")
                return text.encode("utf-8", "surrogatepass")
    # Leniency of the reference library: part of a mark is skipped as well.
    for length in (3, 2, 1):
        if body.startswith(codecs.BOM_UTF8[:length]):
            return body[length:]
    return body


def _read_line(number: int, line: bytes, dialect: Dialect) -> Record | None:
    if dialect.max_line is not None:
        line = line[: dialect.max_line]
    if dialect.nul_ends_line:
        line = line.partition(b"\0")[0]
    line = line.partition(b"#")[0].strip(_WHITE_SPACE)
    key, colon, value = line.partition(b":")
    if not colon:
        words = _TWO_WORDS.fullmatch(line)
        if words is None:
            return None
        key, value = words.groups()
    key = key.strip(_WHITE_SPACE)
    if not key:
        return None
    return Record(number, _field(key.lower(), dialect), value.strip(_WHITE_SPACE))


def _field(key: bytes, dialect: Dialect) -> Field:
    field = _KEYS.get(key)
    if field is not None:
        return field
    if dialect.keys_by_prefix:
        for known, field in _KEYS.items():
            if key.startswith(known):
                return field
    return Field.OTHER
