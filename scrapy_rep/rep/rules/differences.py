"""Finds by experiment why two parsers give different answers about a robots.txt.

A point is the reason for a difference if one parser, changed only in that point, gives the answer
of the other one. Of several such points, the first in the table counts. If there is none, the
reason is a smallest set of points: with all of them, the answer changes; without any one of them,
it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import unquote

from ..dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from ..parsing.agents import Agents, preferences
from ..parsing.groups import groups_about
from ..parsing.urls import (
    ROBOTS_TXT,
    InvalidURL,
    path_as_written,
    path_to_match,
    without_dot_segments,
)
from .matching import RuleSet, line_of
from .robotstxt import RobotsTxt, combined

_T = TypeVar("_T")

Answer = tuple[bool, int]  #: Allowed or not, and the deciding line.


def _same(text: str) -> str:
    return text


def _encode(characters: str) -> Callable[[str], str]:
    """A function that percent-encodes what the regular expression *characters* matches."""
    return partial(re.compile(characters).sub, lambda match: f"%{ord(match.group()):02X}")


_encode_outside_ascii = _encode("[\x80-\xff]")
_encode_raw = _encode("[\\x00- \"'<>\\[\\]\\\\^`{|}\\x7f]")
_upper_hex = partial(re.compile("%[0-9A-Fa-f]{2}").sub, lambda match: match.group().upper())
_decode_unreserved = partial(
    re.compile("%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])").sub,
    lambda match: chr(int(match.group(1), 16)),
)


def _resolve_dots(text: str) -> str:
    path, mark, query = text.partition("?")
    return without_dot_segments(path) + mark + query


@dataclass(frozen=True, eq=False)
class Point:
    """One point, and the change that turns the google dialect into rfc9309 in that point.

    *rule* is the rule of the standard. *field* is the field of dialects for it; *url* and *pattern*
    change a path and a pattern, one character per byte.
    """

    name: str
    rule: str
    field: str = ""
    url: Callable[[str], str] = _same
    pattern: Callable[[str], str] = _same


# These change more than one path.
_REFUSED = Point(
    "a URL that cannot be parsed", "§2.2.2: rules are about URIs; anything else is refused"
)
_BEGIN = Point(
    "where a path begins",
    "§2.2.2, RFC 3986 §3: a scheme and an authority, or a path; spaces around a URL, and tabs "
    "and line ends in it, are not part of it; ``\\`` is ``/``, as clients read it",
)
_RAW = Point(
    "characters that a URL cannot carry",
    "§2.2.2, RFC 3986 §2: space, quotes, ``<>[]{}|\\^``, backquote and controls are "
    "percent-encoded before comparison",
    url=_encode_raw,
    pattern=_encode_raw,
)

# Paths and patterns are changed in this order.
POINTS = (
    _REFUSED,
    _BEGIN,
    Point(
        "hexadecimal case",
        "§2.2.2, RFC 3986 §6.2.2.1: ``%c3`` is ``%C3``, in URLs too",
        url=_upper_hex,
    ),
    Point(
        "bytes outside ASCII",
        "§2.2.2: percent-encoded before comparison, in URLs too",
        url=_encode_outside_ascii,
    ),
    _RAW,
    Point(
        "percent-encoded unreserved characters",
        "§2.2.2, RFC 3986 §2.3: decoded before comparison",
        url=_decode_unreserved,
        pattern=_decode_unreserved,
    ),
    Point(
        "``%2A`` and ``%24``",
        "§2.2.3: stand for the characters ``*`` and ``$``, whichever form a URL has",
        url=_encode("[*$]"),
        # The last one is an anchor.
        pattern=_encode(r"\$(?!\Z)"),
    ),
    Point("dot segments", "RFC 3986 §6.2.2.3: ``/a/../b`` is ``/b``", url=_resolve_dots),
    Point("``/robots.txt`` itself", "§2.2.2: implicitly allowed", "robots_txt_allowed"),
    Point(
        "digits in product tokens",
        "§2.2.1 has none; the default dialect keeps them: ``MJ12bot`` is not ``MJ``",
        "digits_in_tokens",
    ),
    Point(
        "names without a character",
        "§2.2.1: a product token has at least one; ``User-agent:`` without a value does not name "
        "a crawler",
        "empty_names",
    ),
    Point(
        "keys by prefix",
        "§2.2: ``Disallowed:`` is not a key of the grammar, and is ignored (§2.2.4)",
        "keys_by_prefix",
    ),
    Point(
        "rules without a value",
        "§2.2, empty-pattern: matches nothing, so it never decides",
        "empty_rules_match",
    ),
    Point("NUL", "§2.3.1.5: parse what can be parsed; a NUL does not end a line", "nul_ends_line"),
    Point("line length", "§2.5: a limit is one of the file; no line is cut", "max_line"),
    Point("file size", "§2.5: a limit of at least 500 KiB; ``google`` has none", "max_size"),
    Point("UTF-16", "§2.2.2: crawlers may bridge encodings other than UTF-8", "utf16"),
)

# The most parsed files that are cached.
_MAX_PARSED = 128


class GoogleReading:
    """Answers about *body*, the bytes of one file, by google with some points changed."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.rule_set = lru_cache(_MAX_PARSED)(self._rule_set)

    def answer(self, url: bytes, agents: tuple[str, ...], points: Collection[Point]) -> Answer:
        """The answer of google with *points* changed.

        *agents* are a result of :func:`~scrapy_rep.rep.parsing.agents.preferences`.
        """
        path = _changed_path(url, points)
        if path is None:
            return False, 0
        if path == ROBOTS_TXT and any(point.field == "robots_txt_allowed" for point in points):
            return True, 0
        about_rules = (p for p in points if p.pattern is not _same or p.field)
        weight = self.rule_set(agents, tuple(about_rules)).decide(path)
        return weight & 1 == 1, line_of(weight)

    def explain(self, url: bytes, agents: Agents, wanted: Answer, line: bool) -> tuple[str, ...]:
        """The names of a smallest set of points with which the answer is *wanted*, if any.

        *line* says that the deciding line must be the same too.
        """
        preferred = preferences(agents)

        def reached(points: Collection[Point]) -> bool:
            answer = self.answer(url, preferred, points)
            return answer == wanted if line else answer[0] is wanted[0]

        return tuple(point.name for point in _least(POINTS, reached))

    def _rule_set(self, agents: tuple[str, ...], points: tuple[Point, ...]) -> RuleSet:
        fields = [point.field for point in points if point.field]
        dialect = replace(GOOGLE, **{name: getattr(RFC9309, name) for name in fields})
        body = RobotsTxt.parse(self._body, dialect).body
        lines, patterns, allows = combined(groups_about(body, dialect, agents)[1], dialect)
        for point in points:
            patterns = list(map(point.pattern, patterns))
        return RuleSet(lines, patterns, allows, dialect)


def _changed_path(url: bytes, points: Collection[Point]) -> str | None:
    """The path of *url* in the form that is compared; ``None`` if *url* is refused."""
    if _REFUSED in points and not _path_of(url):
        return None
    if _RAW in points:
        # Otherwise, the path would end at the NUL.
        url = url.replace(b"\0", b"%00")
    path = (_path_of(url) if _BEGIN in points else "") or path_to_match(url, GOOGLE)
    for point in points:
        path = point.url(path)
    return path


def _path_of(url: bytes) -> str:
    """The path of *url* by rfc9309, as written; "" if *url* is invalid."""
    try:
        return "".join(path_as_written(url))
    except InvalidURL:
        return ""


def _least(candidates: Sequence[_T], reached: Callable[[Collection[_T]], bool]) -> tuple[_T, ...]:
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
            encoded = url.encode("utf-8", "surrogatepass")
            return self._google.explain(encoded, agents, (by_rfc9309, 0), line=False)
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

        def reached(changes: Collection[_Change]) -> bool:
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
