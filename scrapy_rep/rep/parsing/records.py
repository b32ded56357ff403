"""Records that are not rules: their values, and the user-agent lines that they belong to.

RFC 9309 §2.2.4: "Crawlers MAY interpret other records that are not part of the robots.txt
protocol", which "MUST NOT interfere with the parsing of explicitly defined records".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ..dialects import Dialect
from ..text import printable
from .agents import AgentLine, group_name
from .lines import REP_FIELDS, RULES, Field, read_line, read_records, split_lines
from .urls import InvalidURL, Origin

#: The fields of other records.
OTHER_FIELDS = frozenset(Field) - REP_FIELDS - {Field.BLANK}
#: Fields that apply to the whole site. Other known fields apply to the crawlers of their group.
FILE_WIDE_FIELDS = frozenset({Field.SITEMAP, Field.HOST, Field.CLEAN_PARAM, Field.LICENSE})

_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A part of each day, in UTC: from minute *start* of the day through minute *end*.

    Both are from 0 to 1439. If *start* is greater than *end*, the window includes midnight.

    >>> window = TimeWindow(start=23 * 60, end=5 * 60 + 59)
    >>> window.contains(0), window.contains(6 * 60), str(window)
    (True, False, '23:00-05:59 UTC')
    """

    start: int
    end: int

    def contains(self, minute_of_day: float) -> bool:
        """Whether *minute_of_day*, in UTC and from 0, is in the window."""
        length = (self.end - self.start) % _DAY_MINUTES + 1
        return (minute_of_day - self.start) % _DAY_MINUTES < length

    def seconds_until_open(self, second_of_day: float) -> float:
        """Seconds from *second_of_day*, ``time.time() % 86400``, until it opens; 0 if open."""
        if self.contains(second_of_day / 60):
            return 0.0
        return float((self.start * 60 - second_of_day) % (_DAY_MINUTES * 60))

    def __str__(self) -> str:
        ends = (f"{minute // 60:02}:{minute % 60:02}" for minute in (self.start, self.end))
        return f"{'-'.join(ends)} UTC"


@dataclass(frozen=True, slots=True)
class RequestRate:
    """At most *requests* in any *seconds*; if *window* is set, only during that time."""

    requests: int
    seconds: float
    window: TimeWindow | None = None

    @property
    def delay(self) -> float:
        """Seconds from one request to the next."""
        return self.seconds / self.requests


@dataclass(frozen=True, slots=True)
class CleanParam:
    """The query parameters *params* do not change pages whose path begins with *path*.

    *path* may contain ``*``; ``None`` means every path.
    """

    params: tuple[str, ...]
    path: str | None = None


class ContentUse(Enum):
    """How much of a page may be shown again, from the least to the most."""

    IMMEDIATE = "immediate"
    REFERENCE = "reference"
    FULL = "full"

    def exceeds(self, allowed: ContentUse) -> bool:
        """Whether this shows more than *allowed*."""
        by_extent = list(ContentUse)
        return by_extent.index(self) > by_extent.index(allowed)


@dataclass(frozen=True, slots=True)
class UsagePreferences:
    """The purposes in a record, and whether content may be used for each.

    All other purposes are neither allowed nor disallowed. *path* is the pattern of the URLs to
    which this applies, ``None`` for every URL. *shown* is how much of a page may be shown again,
    ``None`` if the record does not specify it.
    """

    purposes: tuple[tuple[str, bool], ...]
    path: str | None = None
    shown: ContentUse | None = None


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """One record that is neither a user-agent line nor a rule.

    *key* and *raw* are its name and value as written. *value* is *raw* converted to the type of
    *field* (see the table of ``docs/records.rst``); ``None`` if *field* has no syntax, or *raw*
    is invalid. *problem* is a sentence about the error in *raw*, or empty.

    Sitemap, Host, Clean-param and License apply to the site, other records to the crawlers of
    :attr:`agents`. They also apply to other crawlers of the same group that do not have such a
    record directly below their own user-agent line.
    """

    line: int
    field: Field
    key: bytes
    raw: bytes
    value: object
    problem: str
    # The user-agent lines of its group, how many of them are above the record, and the index of
    # the first one that no other record separates from it. Copies for each record would need
    # 4 GB for a hostile file.
    _group: Sequence[AgentLine] = dataclasses.field(repr=False, compare=False)
    _above: int = dataclasses.field(repr=False, compare=False)
    _directly_from: int = dataclasses.field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{printable(self.key)}: {printable(self.raw)}".rstrip()

    @property
    def agents(self) -> tuple[AgentLine, ...]:
        """The user-agent lines directly above it, without another record between them."""
        return tuple(self._group[self._directly_from : self._above])

    @property
    def lines_of_agents(self) -> range:
        """A range of lines whose user-agent lines are exactly :attr:`agents`."""
        return self._lines_from(self._directly_from)

    @property
    def lines_of_group(self) -> range:
        """A range of lines whose user-agent lines are exactly those above it in its group."""
        return self._lines_from(0)

    def names_among(self, ours: Collection[AgentLine]) -> tuple[AgentLine, ...]:
        """The lines of *ours* that it belongs to: directly above it, or else in its group."""
        for lines in (self.lines_of_agents, self.lines_of_group):
            if names := tuple([name for name in ours if name.line in lines]):
                return names
        return ()

    def _lines_from(self, index: int) -> range:
        if not self._above:
            return range(0)
        return range(self._group[index].line, self._group[self._above - 1].line + 1)


def read_other_records(
    body: bytes, dialect: Dialect, fields: Collection[Field] = OTHER_FIELDS
) -> Iterator[OtherRecord]:
    """The records of *fields* in *body*, the bytes of a robots.txt, in file order."""
    lines: list[bytes] = []
    group: list[AgentLine] = []
    directly_from = 0
    after_rule = after_other = False
    for number, kind, raw in read_records(body, dialect):
        if kind is Field.USER_AGENT:
            if after_rule:
                group = []
            if after_rule or after_other:
                directly_from, after_rule, after_other = len(group), False, False
            group.append(AgentLine(group_name(raw, dialect), number))
        elif kind is Field.BLANK:
            group, directly_from = [], 0
        elif kind in RULES:
            after_rule = True
        else:
            after_other = True
            if kind in fields:
                lines = lines or split_lines(body, dialect)
                line = read_line(lines[number - 1], dialect)
                assert line is not None
                value, problem = _READERS[kind](raw) if kind in _READERS else (None, "")
                place = group, len(group), directly_from
                yield OtherRecord(number, kind, line.key, raw, value, problem, *place)


# -- values: each function returns the value of a record, and its problem ----------

_NOT_A_URL = "Not a complete URL, which starts with http:// or https://."


def _bytes_as_path(raw: bytes) -> str:
    """*raw* as part of a URL; bytes that URLs cannot contain are percent-encoded."""
    return "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in raw)


def _is_http_url(text: str) -> bool:
    try:
        return Origin.of(text).scheme in ("http", "https")
    except InvalidURL:
        return False


# https://www.sitemaps.org/protocol.html: "The <sitemap_location> should be the
# complete URL to the Sitemap". Others are the value as well: clients resolve them.
def _sitemap(raw: bytes) -> tuple[str | None, str]:
    text = raw.decode("utf-8", "replace")
    if not text:
        return None, "The URL of the sitemap is missing."
    return text, "" if _is_http_url(text) else _NOT_A_URL


def _matching(
    pattern: bytes, convert: Callable[[bytes], object], problem: str
) -> Callable[[bytes], tuple[object, str]]:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda raw: (convert(raw), "") if compiled.fullmatch(raw) else (None, problem)


# "An Extended Standard for Robot Exclusion" (Sean Conner, 1996-2002, on the
# robots mailing list): "<rate> is defined as <numdocuments> '/' <timeunit>. The
# default time unit is the second", and may be followed by times in UTC.
_WINDOW = rb"([0-9]{2})([0-9]{2})[ \t]*-[ \t]*([0-9]{2})([0-9]{2})"
_VISIT_TIME = re.compile(_WINDOW)
_REQUEST_RATE = re.compile(
    rb"([0-9]{1,9})[ \t]*/[ \t]*([0-9]{1,9})([smhd]?)(?:[ \t]+" + _WINDOW + rb")?", re.IGNORECASE
)
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 24 * 3600}


def _request_rate(raw: bytes) -> tuple[RequestRate | None, str]:
    match = _REQUEST_RATE.fullmatch(raw)
    if match is None:
        return None, (
            "Not a number of requests and a time, such as 1/10s, 100/15m or 1/5. A time of the "
            "day in UTC may follow, such as 1300-1659."
        )
    requests, time, unit, *digits = match.groups()
    if not int(requests) or not int(time):
        return None, "The number of requests or the time is 0."
    window, problem = _window(*digits) if digits[0] else (None, "")
    seconds = float(int(time) * _UNITS[unit.lower()])
    return None if problem else RequestRate(int(requests), seconds, window), problem


def _visit_time(raw: bytes) -> tuple[TimeWindow | None, str]:
    match = _VISIT_TIME.fullmatch(raw)
    if match is None:
        return None, "Not a time of the day in UTC, such as 0600-0845."
    return _window(*match.groups())


def _window(*digits: bytes) -> tuple[TimeWindow | None, str]:
    hours, minutes, last_hours, last_minutes = map(int, digits)
    start, end = hours * 60 + minutes, last_hours * 60 + last_minutes
    if max(minutes, last_minutes) > 59 or start >= _DAY_MINUTES or end > _DAY_MINUTES:
        return None, "Times of the day are from 0000 to 2400."
    if start == end:
        return None, "Start and end are the same, which could mean never or always."
    return TimeWindow(start, min(end, _DAY_MINUTES - 1)), ""


# Yandex: "Clean-param: p0[&p1&p2&..&pn] [path]".
def _clean_param(raw: bytes) -> tuple[CleanParam | None, str]:
    words = raw.split()
    params = words[0].split(b"&") if words else []
    if len(words) > 2 or not params or not all(params):
        problem = "Not a list of parameters with '&' between them. A space and a path may follow."
        return None, problem
    path = _bytes_as_path(words[1]) if len(words) == 2 else None
    return CleanParam(tuple(map(_bytes_as_path, params)), path), ""


# RSL 1.0, https://rslstandard.org/guide/robots-txt: "License: [absoluteURL]",
# "not tied to any specific user agent".
def _license(raw: bytes) -> tuple[str | None, str]:
    text = raw.decode("utf-8", "backslashreplace")
    return (text, "") if _is_http_url(text) else (None, _NOT_A_URL)


# draft-ietf-aipref-attach-05, §3.2: where the value starts with "/", the path
# ends before the first space or tab; otherwise there is none.
# https://contentsignals.org has the same in "Advanced Usage".
def _split_path(raw: bytes) -> tuple[str | None, bytes]:
    """The path before a list of preferences, ``None`` if there is none, and the list."""
    if not raw.startswith(b"/"):
        return None, raw
    path, *rest = raw.split(None, 1)
    return _bytes_as_path(path), rest[0] if rest else b""


_SIGNALS = {b"yes": True, b"no": False}
# Cloudflare, since August 2026: an upper bound, "use=immediate", "use=reference" or "use=full".
_USES = {use.value.encode(): use for use in ContentUse}


# https://contentsignals.org, https://blog.cloudflare.com/content-signals-policy/: "Content-Signal:
# search=yes, ai-train=no"; other purposes are neither granted nor restricted.
def _content_signal(raw: bytes) -> tuple[UsagePreferences | None, str]:
    path, signals = _split_path(raw)
    purposes: dict[str, bool] = {}
    shown: ContentUse | None = None
    complete = True
    for signal in signals.split(b","):
        name, _, value = (part.strip() for part in signal.lower().partition(b"="))
        if name == b"use" and value in _USES:
            shown = _USES[value]
        elif name not in (b"", b"use") and value in _SIGNALS:
            purposes[_bytes_as_path(name)] = _SIGNALS[value]
        else:
            complete = False
    found = UsagePreferences(tuple(purposes.items()), path, shown)
    if complete:
        return found, ""
    return found if purposes or shown else None, (
        "A part is neither a purpose with yes or no, such as ai-train=no, nor use=immediate, "
        "use=reference or use=full."
    )


# RFC 9651 §3 (Structured Field Values): the grammar of a dictionary. Each
# character can match in only one place, so there is no backtracking.
_SF_KEY = rb"[a-z*][a-z0-9_\-.*]*"
_SF_TOKEN = rb"[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*"
_SF_BARE_ITEM = rb"(?:%s)" % b"|".join(
    (
        rb"-?[0-9]{1,12}\.[0-9]{1,3}",
        rb"-?[0-9]{1,15}",
        rb'"(?:[ !#-\[\]-~]|\\["\\])*"',
        _SF_TOKEN,
        rb":[A-Za-z0-9+/=]*:",
        rb"\?[01]",
        rb"@-?[0-9]{1,15}",
        rb'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',
    )
)
_SF_PARAMETERS = rb"(?:; *%s(?:=%s)?)*" % (_SF_KEY, _SF_BARE_ITEM)
_SF_ITEM = _SF_BARE_ITEM + _SF_PARAMETERS
_SF_INNER_LIST = rb"\( *(?:%s(?: +%s)*)? *\)%s" % (_SF_ITEM, _SF_ITEM, _SF_PARAMETERS)
_SF_MEMBER = re.compile(
    rb"(?P<key>%s)(?:=(?:(?P<token>%s)%s|%s|%s)|%s)(?:[ \t]*(?P<comma>,)[ \t]*|\Z)"
    % (_SF_KEY, _SF_TOKEN, _SF_PARAMETERS, _SF_ITEM, _SF_INNER_LIST, _SF_PARAMETERS)
)

_TOKENS = {b"y": True, b"n": False}


# draft-ietf-aipref-vocab, "Processing Algorithm": the tokens y and n allow and disallow; with
# any other value, "the preference for that category is unknown". RFC 9651 §4.2.2: of equal keys
# the last one counts.
def read_usage(dictionary: bytes) -> dict[str, bool | None] | None:
    """Whether each member of a structured field *dictionary* allows; ``None`` if it is invalid."""
    members: dict[str, bool | None] = {}
    position, more = 0, bool(dictionary)
    while more:
        match = _SF_MEMBER.match(dictionary, position)
        if match is None:
            return None
        members[match["key"].decode("ascii")] = _TOKENS.get(match["token"])
        position, more = match.end(), bool(match["comma"])
    return members


# draft-ietf-aipref-attach-05, §3: "content-usage" ":" [ path-pattern 1*WS ] usage-pref.
def _content_usage(raw: bytes) -> tuple[UsagePreferences | None, str]:
    path, dictionary = _split_path(raw)
    members = read_usage(dictionary)
    if members is None:
        # "If the parsing of the Dictionary fails, preferences are unknown": those of its path.
        problem = "Not a structured field dictionary, such as train-ai=n, search=y."
        return UsagePreferences((), path), problem
    purposes = [(key, allows) for key, allows in members.items() if allows is not None]
    found = UsagePreferences(tuple(purposes), path)
    if members and len(purposes) == len(members):
        return found, ""
    return found, "A part is neither y nor n for a purpose, such as train-ai=n."


_READERS: dict[Field, Callable[[bytes], tuple[object, str]]] = {
    Field.SITEMAP: _sitemap,
    # No standard defines it. Only simple numbers: float() would also accept "nan" and "1e9".
    Field.CRAWL_DELAY: _matching(
        rb"[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+",
        float,
        "Not a number of seconds, such as 10 or 2.5. Units are not accepted.",
    ),
    Field.REQUEST_RATE: _request_rate,
    Field.VISIT_TIME: _visit_time,
    # Yandex, until 2018: the preferred host name among mirrors, with a scheme if that is https.
    Field.HOST: _matching(
        rb"(?:https?://)?[^\s/?#@]+/?",
        lambda raw: raw.decode("utf-8", "backslashreplace"),
        "Not a host name, such as www.example.com.",
    ),
    Field.CLEAN_PARAM: _clean_param,
    # An experiment of Google's, which ended on 1 September 2019.
    Field.NOINDEX: _matching(
        rb"[/*].*", _bytes_as_path, "Not a path pattern, which starts with '/' or '*'."
    ),
    Field.CONTENT_SIGNAL: _content_signal,
    Field.CONTENT_USAGE: _content_usage,
    Field.LICENSE: _license,
}
