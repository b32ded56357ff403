"""The rules of Robots-Tag, X-Robots-Tag and meta robots.

draft-illyes-repext: a structured field list of product tokens with rules as parameters,
``*;nosnippet, ExampleBot;noindex``. The old form of X-Robots-Tag has rules with commas between
them, and a product token with a colon before the rules that are for it alone. Either header may
have either form: what a site means is plain in both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache

import http_sf

from scrapy_rep.pages.statements import (
    PERMISSIVE_RULES,
    REFUSED_BY_RULE,
    REFUSED_BY_VALUE,
    RULES_WITH_VALUE,
    Source,
    Statement,
)
from scrapy_rep.rep.parsing.agents import EVERYONE
from scrapy_rep.rep.text import printable

MAX_HEADER = 8 * 1024  #: draft-illyes-repext: "The parsing limit MUST be at least 8 kibibytes".

_KNOWN_RULES = frozenset(REFUSED_BY_RULE) | RULES_WITH_VALUE | PERMISSIVE_RULES
# What stands between two commas, outside of quotes. A quote without an end is a character.
_MEMBER = re.compile(r'(?:[^,"]+|"[^"]*"|")+')
# A product token or a rule, and what follows after a colon.
_SCOPE = re.compile(r"\s*([a-z0-9_\-]+|\*)\s*:(.*)", re.DOTALL)
# What a rule looks like, so that "new-rule: 5" is not taken for a product token.
_RULE = re.compile(r"\s*[a-z][a-z_\-]*\s*(?::.*)?", re.DOTALL)


def complete_members(value: str, limit: int) -> str:
    """*value* up to *limit* characters, without a member that the limit cuts.

    "Any complete and valid List members found within the processed bytes MUST be honored."

    >>> complete_members("noindex, nosnippet", 12)
    'noindex'
    """
    if len(value) <= limit:
        return value
    ends = (match.end() for match in _MEMBER.finditer(value[:limit]))
    # A comma follows a complete one.
    return value[: max((end for end in ends if value[end] == ","), default=0)]


# The pages of a site have the same values.
@lru_cache(maxsize=512)
def read_rules(
    value: str, source: Source, name: str, tokens: tuple[str, ...]
) -> tuple[Statement, ...]:
    """The statements in *value* that are for everyone, or for one of *tokens* (lower case).

    *name* is that of the header or tag, for people.
    """
    return tuple(_read(value, source, name, tokens))


def _read(value: str, source: Source, name: str, tokens: Collection[str]) -> Iterator[Statement]:
    members = _MEMBER.findall(value.lower())
    scope, place = EVERYONE, 0
    while place < len(members):
        member = members[place]
        place += 1
        if ";" in member:
            parts = member.split(";")
            if ":" not in parts[0] and parts[0].strip() not in _KNOWN_RULES:
                yield from _read_item(member, source, name, tokens)
                continue
            # "noindex; nofollow" is a mistake for the old form: no product token begins it.
            member, members[place:place] = parts[0], parts[1:]
        scope, rule = _split_scope(member, scope)
        rule, _, argument = (part.strip() for part in rule.partition(":"))
        if rule == "unavailable_after" and _time(argument) is None and place < len(members):
            # The comma may be that of a date: "Saturday, 30-Aug-08 15:00:00 GMT".
            whole = f"{argument},{members[place]}"
            if _time(whole) is not None:
                argument, place = whole, place + 1
        if rule and (scope == EVERYONE or scope in tokens):
            about = name if scope == EVERYONE else f"{name}: {scope}"
            yield _statement(rule, argument, source, about)


def _split_scope(member: str, scope: str) -> tuple[str, str]:
    """The product token that *member* of the old form is for, and the rule in it."""
    while (match := _SCOPE.fullmatch(member)) and match[1] not in RULES_WITH_VALUE:
        if not _RULE.fullmatch(match[2]):
            break
        scope, member = match[1], match[2]
    return scope, member


def _read_item(
    member: str, source: Source, name: str, tokens: Collection[str]
) -> Iterator[Statement]:
    """The statements of *member*, a structured field item. One that is not valid says nothing."""
    try:
        item = http_sf.parse(member.strip().encode("ascii"), tltype="item")
    except (http_sf.StructuredFieldError, UnicodeEncodeError):
        return
    assert isinstance(item, tuple)
    token, parameters = str(item[0]), item[1]
    assert isinstance(parameters, dict)
    if token != EVERYONE and token not in tokens:
        return
    for rule, argument in parameters.items():
        if argument is False:
            continue
        if isinstance(argument, datetime):
            argument = argument.isoformat()  # noqa: PLW2901
        text = "" if argument is True or isinstance(argument, bytes) else str(argument)
        yield _statement(rule, text, source, f"{name}: {token}")


def _statement(rule: str, argument: str, source: Source, name: str) -> Statement:
    text = f"{name}: {printable(f'{rule}: {argument}' if argument else rule)}"
    if rule == "unavailable_after":
        since = _time(argument)
        uses = REFUSED_BY_RULE[rule] if since is not None else frozenset()
        return Statement(source, text, uses, since=since)
    uses = REFUSED_BY_RULE.get(rule) or REFUSED_BY_VALUE.get((rule, argument)) or frozenset()
    return Statement(source, text, uses)


def _time(text: str) -> float | None:
    """*text*, a date in one of the forms that are in use, in seconds since the epoch."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            # Python 3.10 does not read the "Z" of ISO 8601.
            date = parse(text.strip().upper().removesuffix("Z"))
            if date.tzinfo is None:
                date = date.replace(tzinfo=timezone.utc)
            return date.timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
