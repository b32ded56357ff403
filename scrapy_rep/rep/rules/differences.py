"""Finds by experiment why two parsers give different answers about a robots.txt.

A point is the reason for a difference if one parser, changed only in that point, gives the answer
of the other one. Of several such points, the first in the table counts. If there is none, the
reason is a smallest set of points: with all of them, the answer changes; without any one of them,
it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from ..dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from ..parsing.agents import Agents
from ..parsing.groups import Group
from ..parsing.urls import InvalidURL, path_as_written, path_to_match, without_dot_segments
from .robotstxt import Combined, RobotsTxt

_T = TypeVar("_T")

Answer = tuple[bool, int]  #: Allowed or not, and the deciding line.


def _same(text: str) -> str:
    return text


def _encode(characters: str) -> Callable[[str], str]:
    """A function that percent-encodes what the regular expression *characters* matches."""
    return partial(re.compile(characters).sub, lambda match: f"%{ord(match.group()):02X}")


_encode_raw = _encode("[\\x00- \"'<>\\[\\]\\\\^`{|}\\x7f]")
_upper_hex = partial(re.compile("%[0-9A-Fa-f]{2}").sub, lambda match: match.group().upper())
_decode_unreserved = partial(
    re.compile("%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])").sub,
    lambda match: chr(int(match.group(1), 16)),
)


def _resolve_dots(text: str) -> str:
    path, mark, query = text.partition("?")
    return without_dot_segments(path) + mark + query


class Point(NamedTuple):
    """One point, and the change that turns the google dialect into rfc9309 in that point.

    *field* is the field of dialects for it; *url* and *pattern* change a path and a pattern, one
    character per byte. ``benchmarks/conformance.py`` has the rule of the standard for each.
    """

    name: str
    field: str = ""
    url: Callable[[str], str] = _same
    pattern: Callable[[str], str] = _same


# These change more than one path.
_REFUSED = Point("a URL that cannot be parsed")
_BEGIN = Point("where a path begins")
_RAW = Point("characters that a URL cannot carry", url=_encode_raw, pattern=_encode_raw)

# Paths and patterns are changed in this order.
POINTS = (
    _REFUSED,
    _BEGIN,
    Point("hexadecimal case", url=_upper_hex),
    Point("bytes outside ASCII", url=_encode("[\x80-\xff]")),
    _RAW,
    Point(
        "percent-encoded unreserved characters", url=_decode_unreserved, pattern=_decode_unreserved
    ),
    # At the end of a pattern, "$" is an anchor.
    Point("``%2A`` and ``%24``", url=_encode("[*$]"), pattern=_encode(r"\$(?!\Z)")),
    Point("dot segments", url=_resolve_dots),
    Point("``/robots.txt`` itself", "robots_txt_allowed"),
    Point("digits in product tokens", "digits_in_tokens"),
    Point("names without a character", "empty_names"),
    Point("keys by prefix", "keys_by_prefix"),
    Point("rules without a value", "empty_rules_match"),
    Point("NUL", "nul_ends_line"),
    Point("line length", "max_line"),
    Point("file size", "max_size"),
    Point("UTF-16", "utf16"),
)

# The most parsed files that are cached.
_MAX_PARSED = 128


class _ChangedGoogle(RobotsTxt):
    """A file as google reads it with *points* changed."""

    __slots__ = ("_points",)

    def __init__(self, body: bytes, points: tuple[Point, ...]) -> None:
        fields = {point.field: getattr(RFC9309, point.field) for point in points if point.field}
        robots = RobotsTxt.parse(body, replace(GOOGLE, **fields))
        super().__init__(robots.body, robots.dialect, robots.truncated)
        self._points = points

    def _path(self, url: str | bytes) -> str:
        data = url.encode("utf-8", "surrogatepass") if isinstance(url, str) else url
        if _REFUSED in self._points:
            path_as_written(data)
        if _RAW in self._points:
            # Otherwise, the path would end at the NUL.
            data = data.replace(b"\0", b"%00")
        path = path_to_match(data, GOOGLE)
        if _BEGIN in self._points:
            with suppress(InvalidURL):
                path = "".join(path_as_written(data))
        for point in self._points:
            path = point.url(path)
        return path

    def _combined(self, groups: list[Group]) -> Combined:
        lines, patterns, allows = super()._combined(groups)
        for point in self._points:
            patterns = list(map(point.pattern, patterns))
        return lines, patterns, allows


class GoogleReading:
    """The answers about *body*, the bytes of one file, by google with some points changed."""

    def __init__(self, body: bytes) -> None:
        self.changed = lru_cache(_MAX_PARSED)(partial(_ChangedGoogle, body))

    def explain(
        self, url: str | bytes, agents: Agents, wanted: Answer, line: bool
    ) -> tuple[str, ...]:
        """The names of a smallest set of points with which the answer is *wanted*, if any.

        *line* says that the deciding line must be the same too.
        """

        def reached(points: Sequence[Point]) -> bool:
            verdict = self.changed(tuple(points)).verdict(url, agents)
            return verdict.allowed is wanted[0] and (not line or verdict.line == wanted[1])

        return tuple(point.name for point in _least(POINTS, reached))


def _least(candidates: Sequence[_T], reached: Callable[[Sequence[_T]], bool]) -> tuple[_T, ...]:
    """A smallest set of *candidates* for which *reached* is true; empty if there is none."""
    for candidate in candidates:
        if reached([candidate]):
            return (candidate,)
    chosen = list(candidates)
    if not reached(chosen):
        return ()
    for candidate in candidates:
        fewer = [each for each in chosen if each is not candidate]
        if reached(fewer):
            chosen = fewer
    return tuple(chosen)


# The topics of those fields of a dialect that affect verdicts, in the order of trial.
_ABOUT = {
    "wildcards": "wildcards",
    "precedence": "which match decides",
    "allow_lines": "Allow lines",
    "naming": "names of groups",
    "blank_ends_group": "blank lines",
    "path_form": "percent-encoding",
    "index_pages": "index pages",
    "lenient_keys": "misspelled keys",
} | {point.field: point.name for point in POINTS if point.field}

# Other forms of a URL, by the name of the difference.
_OTHER_FORMS: dict[str, Callable[[str], str]] = {
    "percent-encoded reserved characters": unquote,
    "``$`` at the end of a URL": lambda url: url.removesuffix("$"),
}
_OTHER_RECORDS = "other records between user-agent lines"

# For these, POINTS are more precise than fields.
_COUNTERPARTS = {RFC9309.name: GOOGLE, GOOGLE.name: RFC9309}

# A field of a dialect and its new value.
_Change = tuple[str, Any]


class Differences:
    """Why other parsers differ from *dialect* about *body*, the bytes of one file.

    Each answer may parse the file about twenty times. The parsed files are cached.

    >>> differences = Differences(b"User-agent: *\\nDisallow: /*.pdf\\n")
    >>> differences.of_answer("https://example.com/a.pdf", "ExampleBot", allowed=True)
    ('wildcards',)
    """

    def __init__(self, body: bytes, dialect: Dialect = RFC9309) -> None:
        self._dialect = dialect
        self._google = GoogleReading(body)
        self._read = lru_cache(_MAX_PARSED)(partial(RobotsTxt.parse, body))

    def from_dialect(self, url: str, agents: Agents, other: Dialect) -> tuple[str, ...]:
        """The points in which *other* differs from our dialect about *url* and *agents*, if any."""
        ours = self._read(self._dialect).allowed(url, agents)
        theirs = self._read(other).allowed(url, agents)
        if theirs is ours:
            return ()
        if other is _COUNTERPARTS.get(self._dialect.name):
            by_rfc9309 = ours if self._dialect is RFC9309 else theirs
            return self._google.explain(url, agents, (by_rfc9309, 0), line=False)
        return self._least_changes(url, agents, theirs, other)

    def of_answer(self, url: str, agents: Agents, allowed: bool) -> tuple[str, ...]:
        """The known points that explain why the answer *allowed* differs from ours.

        The search tries google or rfc9309, our dialect with one point or several points of
        another dialect, and other forms of the URL.
        """
        robots = self._read(self._dialect)
        verdict = robots.verdict(url, agents)
        if allowed is verdict.allowed:
            return ()
        counterpart = _COUNTERPARTS.get(self._dialect.name)
        if counterpart is not None and (points := self.from_dialect(url, agents, counterpart)):
            return points
        for change in _changes(self._dialect, DIALECTS.values()):
            if self._changed([change]).allowed(url, agents) is allowed:
                return (_ABOUT[change[0]],)
        for name, other_form in _OTHER_FORMS.items():
            if robots.allowed(other_form(url), agents) is allowed:
                return (name,)
        for other in (KOSTER1996, KOSTER1994, RFC9309, GOOGLE):
            if points := self._least_changes(url, agents, allowed, other):
                return points
        # Other parsers end the group at the record.
        return (_OTHER_RECORDS,) if verdict.merged else ()

    def _least_changes(
        self, url: str, agents: Agents, wanted: bool, other: Dialect
    ) -> tuple[str, ...]:
        """A smallest set of changes, from ours to *other*, that makes the answer *wanted*."""

        def reached(changes: Iterable[_Change]) -> bool:
            return self._changed(changes).allowed(url, agents) is wanted

        changes = _least(_changes(self._dialect, (other,)), reached)
        return tuple(dict.fromkeys(_ABOUT[name] for name, _ in changes))

    def _changed(self, changes: Iterable[_Change]) -> RobotsTxt:
        """The file parsed by our dialect with *changes*."""
        return self._read(replace(self._dialect, **dict(changes)))


def _changes(dialect: Dialect, others: Iterable[Dialect]) -> list[_Change]:
    """Each change of *dialect* to a value of one of *others*."""
    ours = {(name, getattr(dialect, name)) for name in _ABOUT}
    theirs = ((name, getattr(other, name)) for name in _ABOUT for other in others)
    return [change for change in dict.fromkeys(theirs) if change not in ours]
