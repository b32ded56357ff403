"""Bytes to records: byte order mark, line ends, comments, keys, sizes.

Here may live: everything that turns the bytes of a file into ``key: value``
records with line numbers, and every leniency that is granted on the way. Here
may not live: what a record means for its neighbours (:mod:`.robotstxt`), what
the value of one that is no rule says (:mod:`.records`).

The grammar (RFC 9309 §2.2), in the order in which the code deals with it::

    NL            = %x0D / %x0A / %x0D.0A
    comment       = "#" *(UTF8-char-noctl / WS / "#")
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule          = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL
"""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Collection, Iterator
from enum import Enum
from itertools import accumulate, repeat
from typing import NamedTuple

from ..dialects import Dialect

#: What the reference library strips from both ends of keys and values: the
#: grammar's WS (space, tab) and the other ASCII white space, seen in the wild.
WHITE_SPACE = b" \t\v\f\r\n"

#: RFC 9309 has only UTF-8; files in UTF-16 exist and say so in their first bytes.
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Leniency: a forgotten colon, where a line has exactly two words.
_TWO_WORDS = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)")


class Field(Enum):
    """What a record is about."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    # Not of the standard; see records.py.
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    VISIT_TIME = "visit-time"
    HOST = "host"
    CLEAN_PARAM = "clean-param"
    NOINDEX = "noindex"
    CONTENT_SIGNAL = "content-signal"
    CONTENT_USAGE = "content-usage"
    LICENSE = "license"
    #: A key that nobody here knows.
    UNKNOWN = "unknown"
    #: No key and no comment, in dialects in which that means something.
    BLANK = ""


#: The records of RFC 9309; the others are "other records", its §2.2.4.
RULES = frozenset({Field.ALLOW, Field.DISALLOW})
REP_FIELDS = RULES | {Field.USER_AGENT}


#: One line that has a key: its number from 1, its field, its value as written.
Record = tuple[int, Field, bytes]

# Lines like most lines, one after the other.
_RUN = re.compile(rb"^Disallow:[^#\n]*(?:\nDisallow:[^#\n]*)*$", re.MULTILINE)
_NEXT = b"\nDisallow:"
_AFTER_NUL = re.compile(rb"\0[^\n]*")

# Keys, lower-cased.
_KEYS: dict[bytes, Field] = {
    field.value.encode(): field for field in Field if field not in (Field.UNKNOWN, Field.BLANK)
}
# Leniency: the typos that the reference library accepts.
_TYPOS: dict[bytes, Field] = {
    b"useragent": Field.USER_AGENT,
    b"user agent": Field.USER_AGENT,
    b"dissallow": Field.DISALLOW,
    b"dissalow": Field.DISALLOW,
    b"disalow": Field.DISALLOW,
    b"diasllow": Field.DISALLOW,
    b"disallaw": Field.DISALLOW,
    b"site-map": Field.SITEMAP,
}
# The order in which keys are tried by their start, as in the reference library.
_BY_PREFIX = {
    key: field
    for key, field in (_KEYS | _TYPOS).items()
    if field in REP_FIELDS or field in (Field.SITEMAP, Field.CRAWL_DELAY)
}


def _as_written(keys: dict[bytes, Field]) -> dict[bytes, Field]:
    """*keys* with the capitals that most files give them: found without work."""
    return {
        spelling: field
        for key, field in keys.items()
        for spelling in (key, key.capitalize(), key.title(), key.upper())
    }


# The same in every dialect.
_USUAL = _as_written(_KEYS)
_USUAL_TYPOS = _as_written(_TYPOS)


class Line(NamedTuple):
    """What a line was read as: the key as written and without a comment, and the value.

    *colon* is whether there was one.
    """

    field: Field
    key: bytes
    value: bytes
    colon: bool


def read_records(body: bytes, dialect: Dialect) -> list[Record]:
    """The records of *body*, the bytes of a robots.txt, in file order.

    Lines without a key are left out, but blank ones where *dialect* has them
    end a group. No bytes make it raise.
    """
    return records_of(text_of(body, dialect), 1, dialect)


def may_have(body: bytes, dialect: Dialect, fields: Collection[Field]) -> bool:
    """Whether *body* may have records of *fields*.

    Quick, for files that have none: it looks for their keys anywhere. Only for
    fields whose keys nobody misspells.
    """
    text = text_of(body, dialect).lower()
    return any(field.value.encode() in text for field in fields)


#: A user-agent line, its number and value, and the text of the lines from there
#: to the next one.
Section = tuple[int, bytes, bytes]


def read_sections(body: bytes, dialect: Dialect) -> Iterator[Section]:
    """The sections of *body*, the bytes of a robots.txt, in file order.

    For reading the groups that are about us without reading the others.
    """
    text = text_of(body, dialect)
    # No spelling of the key is without this word.
    lowered = text.lower()
    number = counted = opened_at = end = 0
    opened: tuple[int, bytes] | None = None
    while (found := lowered.find(b"agent", end)) >= 0:
        start = text.rfind(b"\n", 0, found) + 1
        end = text.find(b"\n", found)
        if end < 0:
            end = len(text)
        value = _agent_of(text[start:end], dialect)
        if value is not None:
            if opened is not None:
                yield *opened, text[opened_at:start]
            number += text.count(b"\n", counted, start)
            counted = start
            opened, opened_at = (number + 1, value), end + 1
    if opened is not None:
        yield *opened, text[opened_at:]


def _agent_of(line: bytes, dialect: Dialect) -> bytes | None:
    """The value of *line* if it is a user-agent line."""
    key, colon, value = line.partition(b":")
    field = _USUAL.get(key) or (_USUAL_TYPOS.get(key) if dialect.lenient_keys else None)
    if field is Field.USER_AGENT and colon and b"#" not in line:
        return value.strip(WHITE_SPACE)
    read = read_line(line, dialect)
    return read.value if read is not None and read.field is Field.USER_AGENT else None


def split_lines(body: bytes, dialect: Dialect) -> list[bytes]:
    """The lines of *body* as far as *dialect* reads them, without their ends."""
    return text_of(body, dialect).splitlines()


class Lines:
    """The lines of :func:`split_lines`, for those who want one now and then."""

    __slots__ = ("_starts", "_text")

    def __init__(self, body: bytes, dialect: Dialect) -> None:
        # Mostly this is the body itself, and takes no place of its own.
        self._text = text_of(body, dialect)
        lengths = map(len, self._text.splitlines(keepends=True))
        self._starts = array("I", accumulate(lengths, initial=0))

    def __getitem__(self, index: int) -> bytes:
        return self._text[self._starts[index] : self._starts[index + 1]].removesuffix(b"\n")


def text_of(body: bytes, dialect: Dialect) -> bytes:
    """What *dialect* reads of *body*, with LF as the end of all lines."""
    text = _without_mark(body, dialect)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if dialect.nul_ends_line and b"\0" in text:
        text = _AFTER_NUL.sub(b"", text)
    if dialect.max_line is not None and len(text) > dialect.max_line:
        text = b"\n".join([line[: dialect.max_line] for line in text.split(b"\n")])
    return text


def records_of(text: bytes, number: int, dialect: Dialect) -> list[Record]:
    """The records of *text*, whole lines, the first of which has *number*.

    This is what loading a file costs. So lines of the kind that is met most
    are read many at a time.
    """
    records: list[Record] = []
    done = 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        if start > done:
            records += _each_record(text[done : start - 1], number, dialect)
            number += text.count(b"\n", done, start)
        values = [value.strip(WHITE_SPACE) for value in text[start + 9 : end].split(_NEXT)]
        records += zip(range(number, number + len(values)), repeat(Field.DISALLOW), values)
        number += len(values)
        done = end + 1
    if done < len(text):
        records += _each_record(text[done:], number, dialect)
    return records


def _each_record(text: bytes, number: int, dialect: Dialect) -> list[Record]:
    records: list[Record] = []
    usual = _USUAL.get
    for line in text.split(b"\n"):
        key, colon, value = line.partition(b":")
        field = usual(key)
        if field is not None and colon:
            if b"#" in value:
                value = value.partition(b"#")[0]
            records.append((number, field, value.strip(WHITE_SPACE)))
        elif line and (read := read_line(line, dialect)) is not None:
            records.append((number, read.field, read.value))
        elif dialect.blank_ends_group and not line.strip(WHITE_SPACE):
            records.append((number, Field.BLANK, b""))
        number += 1
    return records


def read_line(line: bytes, dialect: Dialect) -> Line | None:
    """What *line* of :func:`split_lines` is read as, ``None`` where it has no key."""
    line = line.partition(b"#")[0].strip(WHITE_SPACE)
    if not line:
        return None
    key, colon, value = line.partition(b":")
    if not colon:
        words = _TWO_WORDS.fullmatch(line) if dialect.lenient_keys else None
        if words is None:
            return None
        key, value = words.groups()
    key = key.strip(WHITE_SPACE)
    if not key:
        return None
    return Line(_field(key.lower(), dialect), key, value.strip(WHITE_SPACE), bool(colon))


# A line that begins with a key, of any dialect.
_ANY_KEY = re.compile(
    rb"(?:\A|[\r\n])[ \t\v\f]*(?:%s)[ \t\v\f]*[: \t\v\f]" % b"|".join([*_KEYS, *_TYPOS]),
    re.IGNORECASE,
)


def utf16_of(body: bytes) -> str:
    """The encoding of *body* if it is in UTF-16, "" if it is not.

    It is if a byte order mark says so, and a line begins with a key when it is read so:
    some files in other encodings begin with a mark, too.
    """
    if not body.startswith(UTF16_MARKS):
        return ""
    encoding = "utf-16-le" if body.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    return encoding if _ANY_KEY.search(body[2:].decode(encoding, "replace").encode()) else ""


def is_typo(key: bytes) -> bool:
    """Whether *key* is a misspelling that is forgiven."""
    return key.lower() in _TYPOS


def within_limit(body: bytes, max_size: int) -> bytes:
    """The first *max_size* bytes (RFC 9309 §2.5), without the line that the cut falls into.

    Half a pattern is another pattern: ``/private`` cut to ``/`` would refuse
    a whole site.
    """
    if len(body) <= max_size:
        return body
    if encoding := utf16_of(body[:max_size]):
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
        if found >= 0:
            ends.append(found + 2)
    return max(ends)


def _without_mark(body: bytes, dialect: Dialect) -> bytes:
    """*body* as UTF-8 (or whatever it is) without a byte order mark."""
    if dialect.utf16 and body.startswith(UTF16_MARKS):
        encoding = utf16_of(body)
        # A mark before text that is not in UTF-16 is skipped, or its first line were lost.
        return body[2:].decode(encoding, "replace").encode() if encoding else body[2:]
    # Leniency of the reference library: part of a mark is skipped as well.
    for length in (3, 2, 1):
        if body.startswith(codecs.BOM_UTF8[:length]):
            return body[length:]
    return body


def _field(key: bytes, dialect: Dialect) -> Field:
    field = _KEYS.get(key)
    if field is None and dialect.lenient_keys:
        field = _TYPOS.get(key)
    if field is None and dialect.keys_by_prefix:
        starts = (known for known in _BY_PREFIX if key.startswith(known))
        field = _BY_PREFIX.get(next(starts, b""))
    return field or Field.UNKNOWN
