"""Bytes to records, with all leniencies: byte order mark, line ends, comments, keys, sizes.

RFC 9309 §2.2::

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

#: RFC 9309 has only UTF-8; files in UTF-16 exist and start with one of these.
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Leniency of the reference library: an incomplete mark is skipped too.
_UTF8_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?")
# Leniency: a missing colon, where a line has exactly two words.
_TWO_WORDS = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)")


class Field(Enum):
    """The kind of a record, by its key."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    # Not in the standard; see records.py.
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
    #: Any other key.
    UNKNOWN = "unknown"
    #: A line with neither a key nor a comment, in dialects in which it ends a group.
    BLANK = ""


RULES = (Field.DISALLOW, Field.ALLOW)
#: The records of RFC 9309; the others are "other records", its §2.2.4.
REP_FIELDS = frozenset({*RULES, Field.USER_AGENT})

#: One line that has a key: its number from 1, its field, its value as written.
Record = tuple[int, Field, bytes]

# Consecutive lines of the most frequent kind.
_RUN = re.compile(rb"^Disallow:[^#\n]*(?:\nDisallow:[^#\n]*)*$", re.MULTILINE)
_NEXT = b"\nDisallow:"
_AFTER_NUL = re.compile(rb"\0[^\n]*")

# Keys in lower case.
_KEYS: dict[bytes, Field] = {
    field.value.encode(): field for field in Field if field not in (Field.UNKNOWN, Field.BLANK)
}
#: Leniency: the typos that the reference library accepts.
TYPOS = {
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
    for key, field in (_KEYS | TYPOS).items()
    if field in REP_FIELDS or field in (Field.SITEMAP, Field.CRAWL_DELAY)
}
# Keys in their usual spellings: one look-up reads most keys.
_USUAL = {
    spelling: field
    for key, field in _KEYS.items()
    for spelling in (key, key.capitalize(), key.title(), key.upper())
}
_USUAL_WITHOUT_ALLOW = {key: _USUAL[key] for key in _USUAL if key.lower() != b"allow"}


class Line(NamedTuple):
    """A line that has a key: field, key and value as written, and whether it has a colon."""

    field: Field
    key: bytes
    value: bytes
    colon: bool


def read_records(body: bytes, dialect: Dialect) -> list[Record]:
    """The records of *body*, the bytes of a robots.txt, in file order. It never raises.

    Lines without a key are left out, except blank lines that end a group in *dialect*.
    """
    return records_of(text_of(body, dialect), 1, dialect)


def may_have(body: bytes, dialect: Dialect, fields: Collection[Field]) -> bool:
    """Whether the keys of *fields*, which have no accepted misspellings, are anywhere in *body*."""
    text = text_of(body, dialect).lower()
    return any(field.value.encode() in text for field in fields)


def read_sections(body: bytes, dialect: Dialect) -> Iterator[tuple[int, bytes, bytes]]:
    """The sections of *body*, the bytes of a robots.txt, in file order.

    A section is the number and value of a user-agent line, and the text from there to the next
    one. So the groups of other crawlers are not parsed.
    """
    text = text_of(body, dialect)
    # Every spelling of the key has this word.
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
    if _USUAL.get(key) is Field.USER_AGENT and colon and b"#" not in line:
        return value.strip()
    read = read_line(line, dialect)
    return read.value if read is not None and read.field is Field.USER_AGENT else None


def split_lines(body: bytes, dialect: Dialect) -> list[bytes]:
    """The lines of *body* as far as *dialect* reads them, without their ends."""
    return text_of(body, dialect).splitlines()


class Lines:
    """The lines of :func:`split_lines`, for reading a few of them."""

    def __init__(self, body: bytes, dialect: Dialect) -> None:
        # This is usually the body itself, without additional memory.
        self._text = text_of(body, dialect)
        lengths = map(len, self._text.splitlines(keepends=True))
        self._starts = array("I", accumulate(lengths, initial=0))

    def __getitem__(self, index: int) -> bytes:
        return self._text[self._starts[index] : self._starts[index + 1]].removesuffix(b"\n")


def text_of(body: bytes, dialect: Dialect) -> bytes:
    """The text that *dialect* reads from *body*, with LF as the end of all lines."""
    if dialect.utf16 and body.startswith(UTF16_MARKS):
        encoding = utf16_of(body)
        # If the text is not UTF-16, only the mark is skipped, to keep the first line.
        body = body[2:].decode(encoding, "replace").encode() if encoding else body[2:]
    elif mark := _UTF8_MARK.match(body):
        body = body[mark.end() :]
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if dialect.nul_ends_line and b"\0" in body:
        body = _AFTER_NUL.sub(b"", body)
    if dialect.max_line is not None and len(body) > dialect.max_line:
        body = b"\n".join([line[: dialect.max_line] for line in body.split(b"\n")])
    return body


def records_of(text: bytes, number: int, dialect: Dialect) -> list[Record]:
    """The records of *text*, which consists of whole lines; the first has *number*.

    This takes most of the time of loading a file, so runs of Disallow lines are read at once.
    """
    records: list[Record] = []
    done = 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        if start > done:
            records += _each_record(text[done : start - 1], number, dialect)
            number += text.count(b"\n", done, start)
        values = [value.strip() for value in text[start + 9 : end].split(_NEXT)]
        records += zip(range(number, number + len(values)), repeat(Field.DISALLOW), values)
        number += len(values)
        done = end + 1
    if done < len(text):
        records += _each_record(text[done:].removesuffix(b"\n"), number, dialect)
    return records


def _each_record(text: bytes, number: int, dialect: Dialect) -> list[Record]:
    records: list[Record] = []
    usual = (_USUAL if dialect.allow_lines else _USUAL_WITHOUT_ALLOW).get
    for line in text.split(b"\n"):
        key, colon, value = line.partition(b":")
        field = usual(key)
        if field is not None and colon:
            if b"#" in value:
                value = value.partition(b"#")[0]
            records.append((number, field, value.strip()))
        elif line and (read := read_line(line, dialect)) is not None:
            records.append((number, read.field, read.value))
        elif dialect.blank_ends_group and not line.strip():
            records.append((number, Field.BLANK, b""))
        number += 1
    return records


def read_line(line: bytes, dialect: Dialect) -> Line | None:
    """Parse *line*, a result of :func:`split_lines`; ``None`` if it has no key."""
    line = line.partition(b"#")[0].strip()
    if not line:
        return None
    key, colon, value = line.partition(b":")
    if not colon:
        words = _TWO_WORDS.fullmatch(line) if dialect.lenient_keys else None
        if words is None:
            return None
        key, value = words.groups()
    key = key.strip()
    if not key:
        return None
    return Line(_field(key.lower(), dialect), key, value.strip(), bool(colon))


def _field(key: bytes, dialect: Dialect) -> Field:
    """The field of *key*, which is in lower case."""
    field = _KEYS.get(key) or (TYPOS.get(key) if dialect.lenient_keys else None)
    if field is None and dialect.keys_by_prefix:
        field = next((_BY_PREFIX[known] for known in _BY_PREFIX if key.startswith(known)), None)
    if field is None or (field is Field.ALLOW and not dialect.allow_lines):
        return Field.UNKNOWN
    return field


# A line that begins with a key, of any dialect.
_ANY_KEY = re.compile(
    rb"(?:\A|[\r\n])[ \t\v\f]*(?:%s)[ \t\v\f]*[: \t\v\f]" % b"|".join([*_KEYS, *TYPOS]),
    re.IGNORECASE,
)


def utf16_of(body: bytes) -> str:
    """The encoding of *body* if it is UTF-16, else "".

    UTF-16 needs a byte order mark and, when decoded, a line that begins with a key: some files in
    other encodings begin with a mark too.
    """
    if not body.startswith(UTF16_MARKS):
        return ""
    encoding = "utf-16-le" if body.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    return encoding if _ANY_KEY.search(body[2:].decode(encoding, "replace").encode()) else ""


def within_limit(body: bytes, max_size: int) -> bytes:
    """The first *max_size* bytes (RFC 9309 §2.5) without an incomplete last line.

    A part of a pattern is another pattern: ``/private`` cut to ``/`` would refuse a whole site.
    """
    if len(body) <= max_size:
        return body
    cut = body[:max_size]
    if encoding := utf16_of(cut):
        text = cut.decode(encoding, "replace")
        lines = text[: max(text.rfind("\r"), text.rfind("\n")) + 1]
        return cut[: len(lines.encode(encoding))]
    if body[max_size] in b"\r\n":
        return cut
    return cut[: max(cut.rfind(b"\r"), cut.rfind(b"\n")) + 1]
