"""Why another reading of a robots.txt answers otherwise: which point, by experiment.

Here may live: the points on which readings differ, and what each makes of an
answer. Here may not live: the readings themselves. Those of the four dialects are
in :mod:`.dialects` as data; what is done here by hand is what no single field of a
dialect does.

A difference is put down to a point if one reading, changed in that point alone,
gives the answer of the other. Where several points would do, the first in their
table counts. Where none does alone, it is a smallest set: with all of them the answer
is the other one, and without any one of them it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from ..dialects import (
    DIALECTS,
    GOOGLE,
    KOSTER1994,
    KOSTER1996,
    MIN_PARSED_SIZE,
    RFC9309,
    Dialect,
)
from ..parsing.agents import Agents, preferences
from ..parsing.groups import groups_about
from ..parsing.lines import Field
from ..parsing.urls import ROBOTS_TXT, InvalidURL, path_to_match
from .matching import RuleSet, line_of
from .robotstxt import RobotsTxt

_T = TypeVar("_T")

#: Allowed or not, and the deciding line.
Answer = tuple[bool, int]

# -- the points on which rfc9309 and google differ --------------------------------


def _same(text: str) -> str:
    return text


_UNRESERVED = re.compile("%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")
_NOT_IN_URLS = re.compile("[\\x00- \"'<>\\[\\]\\\\^`{|}\\x7f]")


def _encoded(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"


def _decode_unreserved(text: str) -> str:
    return _UNRESERVED.sub(lambda match: chr(int(match.group(1), 16)), text)


def _encode_raw(text: str) -> str:
    return _NOT_IN_URLS.sub(_encoded, text)


def _encode_special_in_url(path: str) -> str:
    return re.sub("[*$]", _encoded, path)


def _encode_special_in_pattern(pattern: str) -> str:
    # Where it is the last, it is an anchor.
    return re.sub(r"\$(?!\Z)", _encoded, pattern)


def _upper_hex(path: str) -> str:
    return re.sub("%[0-9A-Fa-f]{2}", lambda match: match.group().upper(), path)


def _resolve_dots(path: str) -> str:
    """RFC 3986 §5.2.4."""
    path, mark, query = path.partition("?")
    output: list[str] = []
    segments = path.split("/")[1:]
    for number, segment in enumerate(segments, 1):
        if segment == "..":
            del output[-1:]
        elif segment != ".":
            output.append(segment)
        if number == len(segments) and segment in (".", ".."):
            output.append("")
    return "/" + "/".join(output) + mark + query


@dataclass(frozen=True, eq=False)
class Point:
    """One point: what it is, and how google's reading becomes that of rfc9309.

    *rule* is that of the standard. *fields* are those of the dialect; *url* and
    *pattern* what is done to a path and to a pattern, one character a byte;
    *begin* says where in a URL the path begins.
    """

    name: str
    rule: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    url: Callable[[str], str] = _same
    pattern: Callable[[str], str] = _same
    begin: bool = False
    refuse: bool = False


# Paths and patterns are changed in this order.
POINTS = (
    Point(
        "a URL that cannot be parsed",
        "§2.2.2: rules are about URIs; what is none is refused",
        refuse=True,
    ),
    Point(
        "where a path begins",
        "§2.2.2, RFC 3986 §3: a scheme and an authority, or a path; spaces around a URL, and tabs "
        "and line ends in it, are no part of it; ``\\`` is ``/``, as clients read it",
        begin=True,
    ),
    Point(
        "hexadecimal case",
        "§2.2.2, RFC 3986 §6.2.2.1: ``%c3`` is ``%C3``, in URLs too",
        url=_upper_hex,
    ),
    Point(
        "bytes outside ASCII",
        "§2.2.2: percent-encoded before comparison, in URLs too",
        url=lambda path: re.sub("[\x80-\xff]", _encoded, path),
    ),
    Point(
        "characters that a URL cannot carry",
        "§2.2.2, RFC 3986 §2: space, quotes, ``<>[]{}|\\^``, backquote and controls are "
        "percent-encoded before comparison",
        url=_encode_raw,
        pattern=_encode_raw,
    ),
    Point(
        "percent-encoded unreserved characters",
        "§2.2.2, RFC 3986 §2.3: decoded before comparison",
        url=_decode_unreserved,
        pattern=_decode_unreserved,
    ),
    Point(
        "``%2A`` and ``%24``",
        "§2.2.3: stand for the characters ``*`` and ``$``, whichever form a URL has",
        url=_encode_special_in_url,
        pattern=_encode_special_in_pattern,
    ),
    Point("dot segments", "RFC 3986 §6.2.2.3: ``/a/../b`` is ``/b``", url=_resolve_dots),
    Point(
        "``/robots.txt`` itself",
        "§2.2.2: implicitly allowed",
        {"robots_txt_allowed": True},
    ),
    Point(
        "digits in product tokens",
        "§2.2.1 has none; the default dialect keeps them: ``MJ12bot`` is not ``MJ``",
        {"digits_in_tokens": True},
    ),
    Point(
        "names without a character",
        "§2.2.1: a product token has at least one; ``User-agent:`` without a value names nobody",
        {"empty_names": False},
    ),
    Point(
        "keys by prefix",
        "§2.2: ``Disallowed:`` is no key of the grammar, and §2.2.4: is ignored",
        {"keys_by_prefix": False},
    ),
    Point(
        "rules without a value",
        "§2.2, empty-pattern: matches nothing, so is no deciding line",
        {"empty_rules_match": False},
    ),
    Point(
        "NUL", "§2.3.1.5: parse what can be parsed; a NUL ends no line", {"nul_ends_line": False}
    ),
    Point("line length", "§2.5: a limit is one of the file; no line is cut", {"max_line": None}),
    Point(
        "file size",
        "§2.5: a limit of at least 500 KiB; ``google`` has none",
        {"max_size": MIN_PARSED_SIZE},
    ),
    Point("UTF-16", "§2.2.2: crawlers may bridge encodings other than UTF-8", {"utf16": True}),
)

# How many of one file are kept.
_RULE_SETS = 128
_PATHS = 1024


class GoogleReading:
    """Answers about *body*, the bytes of one file, with google's reading, but for some points."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.rule_set = lru_cache(_RULE_SETS)(self._rule_set)
        self.path = lru_cache(_PATHS)(self._path)

    def answer(self, url: bytes, agents: tuple[str, ...], points: Collection[Point]) -> Answer:
        """What google would answer, were it not for *points*.

        *agents* are those of :func:`~scrapy_rep.rep.parsing.agents.preferences`.
        """
        path = self.path(url, tuple(p for p in points if _is_about_urls(p)))
        if path is None:
            return False, 0
        if path == ROBOTS_TXT and any("robots_txt_allowed" in point.fields for point in points):
            return True, 0
        rules = self.rule_set(agents, tuple(p for p in points if _is_about_rules(p)))
        weight = rules.decide(path)
        return weight & 1 == 1, line_of(weight)

    def _rule_set(self, agents: tuple[str, ...], points: tuple[Point, ...]) -> RuleSet:
        changed = {key: value for point in points for key, value in point.fields.items()}
        dialect = replace(GOOGLE, **changed)
        body = RobotsTxt.parse(self._body, dialect).body
        _, groups = groups_about(body, dialect, agents)
        rules = [rule for group in groups for rule in group.rules]
        return RuleSet(
            [line for line, _, _ in rules],
            [_pattern(value, points) for _, _, value in rules],
            [field is Field.ALLOW for _, field, _ in rules],
            dialect,
        )

    def _path(self, url: bytes, points: tuple[Point, ...]) -> str | None:
        """The path of *url* in the form that is compared; ``None`` where it is refused."""
        if any(point.refuse for point in points) and not _is_url(url):
            return None
        if any(point.url is _encode_raw for point in points):
            # Or the path would end there.
            url = url.replace(b"\0", b"%00")
        begin = any(point.begin for point in points) and _is_url(url)
        path = _after_authority(url) if begin else path_to_match(url, GOOGLE)
        for point in points:
            path = point.url(path)
        return path

    def explain(self, url: bytes, agents: Agents, wanted: Answer, line: bool) -> tuple[str, ...]:
        """The least set of points with which the answer is *wanted*; none if there is none.

        By name. Whether the deciding *line* counts, too.
        """
        preferred = preferences(agents)

        def reached(points: Collection[Point]) -> bool:
            answer = self.answer(url, preferred, points)
            return answer == wanted if line else answer[0] is wanted[0]

        return tuple(point.name for point in _least(POINTS, reached))


def _least(candidates: Sequence[_T], reached: Callable[[Collection[_T]], bool]) -> tuple[_T, ...]:
    """The least of *candidates* that are enough to have *reached* it; none if all are not."""
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


def _is_about_urls(point: Point) -> bool:
    return point.url is not _same or point.begin or point.refuse


def _is_about_rules(point: Point) -> bool:
    return point.pattern is not _same or bool(point.fields)


def _pattern(value: bytes, points: Iterable[Point]) -> str:
    # What google does to patterns, robots.cc: MaybeEscapePattern.
    pattern = re.sub("[\x80-\xff]", _encoded, _upper_hex(value.decode("latin-1")))
    for point in points:
        pattern = point.pattern(pattern)
    return pattern


def _is_url(url: bytes) -> bool:
    try:
        path_to_match(url, RFC9309)
    except InvalidURL:
        return False
    return True


def _after_authority(url: bytes) -> str:
    text = url.decode("latin-1").strip("".join(map(chr, range(0x21))))
    text = re.sub("[\t\r\n]", "", text).partition("#")[0]
    text = re.sub(r"\A[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}[^/\\?]*", "", text)
    path, mark, query = text.partition("?")
    path = path.replace("\\", "/") + mark + query
    return path if path.startswith("/") else "/" + path


# -- any two readings ---------------------------------------------------------------

# What the fields of a dialect are about on which a verdict depends, in the order in
# which they are tried.
_ABOUT = {
    "wildcards": "wildcards",
    "precedence": "which match decides",
    "allow_lines": "Allow lines",
    "naming": "names of groups",
    "blank_ends_group": "blank lines",
    "path_form": "percent-encoding",
    "index_pages": "index pages",
    "lenient_keys": "misspelled keys",
} | {key: point.name for point in POINTS for key in point.fields}

# A URL in a form in which it is asked about something else, by what that is about.
_OTHER_FORMS: dict[str, Callable[[str], str]] = {
    "percent-encoded reserved characters": unquote,
    "``$`` at the end of a URL": lambda url: url.removesuffix("$"),
}
_OTHER_RECORDS = "other records between user-agent lines"

# Between these, POINTS tell more than fields do.
_COUNTERPARTS = {RFC9309.name: GOOGLE, GOOGLE.name: RFC9309}


class _Change(NamedTuple):
    """*value* in the place of what a dialect has in *field*."""

    field: str
    value: Any


class Differences:
    """Why other readings of *body* answer otherwise than *dialect*'s does.

    *body* is the bytes of one file. What is found out is kept, so one of these is
    for many questions about a file. Each may read the file some twenty times.
    """

    def __init__(self, body: bytes, dialect: Dialect = RFC9309) -> None:
        self._body = body
        self._dialect = dialect
        self._google = GoogleReading(body)
        self._read = lru_cache(_RULE_SETS)(self._parse)
        self._changed = lru_cache(_RULE_SETS)(self._parse_changed)

    def from_dialect(self, url: str, agents: Agents, other: Dialect) -> tuple[str, ...]:
        """The points on which it depends that *other* answers otherwise than ours.

        Without any where both say the same of *url* and *agents*.
        """
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
        """The points on which it depends that somebody says *allowed*, and we the opposite.

        They answer as google or rfc9309 would, as ours would with one point, or with
        several, of another dialect, or asked about the URL in another form. Without
        any where none of that is so.
        """
        verdict = self._read(self._dialect).verdict(url, agents)
        if allowed is verdict.allowed:
            return ()
        counterpart = _COUNTERPARTS.get(self._dialect.name)
        if counterpart is not None and (points := self.from_dialect(url, agents, counterpart)):
            return points
        for change in _changes(self._dialect, DIALECTS.values()):
            if self._changed((change,)).allowed(url, agents) is allowed:
                return (_ABOUT[change.field],)
        for name, other_form in _OTHER_FORMS.items():
            if self._read(self._dialect).allowed(other_form(url), agents) is allowed:
                return (name,)
        # What is between these two was looked for above.
        newer = (RFC9309, GOOGLE) if counterpart is None else ()
        for other in (KOSTER1996, KOSTER1994, *newer):
            if points := self._least_changes(url, agents, allowed, other):
                return points
        # Others take the record for the end of the group that it stands in.
        return (_OTHER_RECORDS,) if verdict.merged else ()

    def _least_changes(
        self, url: str, agents: Agents, wanted: bool, other: Dialect
    ) -> tuple[str, ...]:
        """The least of what makes ours *other* that makes the answer *wanted*."""

        def reached(changes: Collection[_Change]) -> bool:
            return self._changed(tuple(changes)).allowed(url, agents) is wanted

        changes = _changes(self._dialect, (other,))
        return tuple(dict.fromkeys(_ABOUT[c.field] for c in _least(changes, reached)))

    def _parse(self, dialect: Dialect) -> RobotsTxt:
        return RobotsTxt.parse(self._body, dialect)

    def _parse_changed(self, changes: tuple[_Change, ...]) -> RobotsTxt:
        """The file as ours would read it with *changes*."""
        return self._parse(replace(self._dialect, **{c.field: c.value for c in changes}))


def _changes(dialect: Dialect, others: Iterable[Dialect]) -> list[_Change]:
    """What is to be changed in *dialect* to have what one of *others* has."""
    changes = [
        _Change(name, getattr(other, name))
        for name in _ABOUT
        for other in others
        if getattr(other, name) != getattr(dialect, name)
    ]
    return list(dict.fromkeys(changes))


def class_of_difference(
    body: bytes, url: str, agents: Agents, allowed: bool, dialect: Dialect = RFC9309
) -> str | None:
    r"""In words, why somebody says *allowed* of *url* where *dialect* says the opposite.

    *body* is the bytes of the robots.txt. ``None`` where there is no difference, or
    none that is known. See :class:`Differences`, which is for many questions.

    >>> body = b"User-agent: *\nDisallow: /*.pdf\n"
    >>> class_of_difference(body, "https://example.com/a.pdf", "ExampleBot", True)
    'wildcards'
    """
    return "; ".join(Differences(body, dialect).of_answer(url, agents, allowed)) or None
