"""Lint: how each line of a file is read, and the problems it has.

This file does not parse. It uses the lines, groups, records and patterns that verdicts are based
on (:mod:`.lines`, :mod:`.groups`, :mod:`.records`, :mod:`.urls`).
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, count, islice, pairwise, repeat
from operator import attrgetter

from ..dialects import Dialect, Naming
from ..parsing.agents import EVERYONE, AgentLine, group_name, lowered
from ..parsing.groups import Group, read_groups
from ..parsing.lines import (
    REP_FIELDS,
    RULES,
    TYPOS,
    UTF16_MARKS,
    Field,
    Line,
    read_line,
    split_lines,
    utf16_of,
)
from ..parsing.records import FILE_WIDE_FIELDS, OTHER_FIELDS, OtherRecord, read_other_records
from ..text import printable
from .redundant_rules import redundant_rules


class Severity(Enum):
    """How serious a finding is."""

    ERROR = "error"  #: The line does not have the effect that it seems to have.
    #: The line probably has another effect than it seems to have, here or in other crawlers.
    WARNING = "warning"
    NOTE = "note"  #: Useful to know, but not a problem.
    OK = "ok"  #: No problem.


_ERROR, _WARNING, _NOTE, _OK = Severity


class FindingKind(Enum):
    """The kind of a finding, with its severity and its sentence.

    Each line has exactly one finding whose kind is in :data:`READINGS`, the first nine kinds.
    """

    def __init__(self, severity: Severity, template: str) -> None:
        self.severity = severity
        #: Each ``{}`` is one of :attr:`Finding.details`.
        self.template = template

    @property
    def value(self) -> str:
        """The name for use in programs, such as ``"no-field"``."""
        return self.name.lower().replace("_", "-")

    # How a line is read.
    BLANK = _OK, "A blank line."
    COMMENT = _OK, "A comment."
    USER_AGENT = _OK, "A user-agent line for {}."
    NAMELESS_USER_AGENT = _ERROR, "A user-agent line without a name. Write a product token or *."
    RULE = _OK, 'The rule "{}: {}".'
    EMPTY_RULE = _OK, 'A "{}" without a value, which refuses no URL.'
    OTHER_RECORD = _OK, "A {} record, which is not a rule."
    UNKNOWN_FIELD = _WARNING, 'The field "{}" is unknown. The line is ignored.'
    NO_FIELD = _WARNING, "The line is not a field with a value. It is ignored."

    # About the file.
    BYTE_ORDER_MARK = _NOTE, "A byte order mark, which is skipped."
    UTF_16 = _WARNING, "The file is in UTF-16, which most crawlers cannot read."
    UTF_16_UNREAD = _ERROR, "The file has a UTF-16 byte order mark, but is not read as UTF-16."
    TRUNCATED = _ERROR, "The file is too large. Everything after this line is ignored."

    # Spelling and bytes of a line.
    TYPO = _WARNING, 'The misspelling "{}" is read as {}. Other crawlers may ignore the line.'
    KEY_BY_START = (
        _WARNING,
        '"{}" is read as {}, because it starts with that name. Other crawlers ignore the line.',
    )
    MISSING_COLON = _WARNING, "The colon is missing. Other crawlers may ignore the line."
    LINE_TOO_LONG = _ERROR, "The line has {} bytes. Only the first {} are read."
    NUL_ENDS_LINE = _ERROR, "The line contains a NUL. Everything after it is ignored."
    CONTROL_CHARACTER = (
        _WARNING,
        "The line contains control characters. Other crawlers may read it differently.",
    )
    NOT_UTF_8 = (
        _WARNING,
        "The line contains bytes that are not UTF-8. In a pattern, they match only the same bytes.",
    )

    # Groups.
    CUT_NAME = _NOTE, 'Only "{}" is read: a name consists of letters, digits, "-" and "_".'
    REPEATED_NAME = _NOTE, "Line {} already starts a group for {}. The rules are combined."
    NO_RULES = _NOTE, "The group has no rules, so it refuses nothing."
    MERGED_GROUP = (
        _WARNING,
        "This line does not end the group. The rules below apply to {} (line {}) and {} (line {}).",
    )
    OUTSIDE_GROUP = _ERROR, "No user-agent line comes before this rule, so it is ignored."
    RECORD_OUTSIDE_GROUP = (
        _NOTE,
        "No user-agent line comes before this record, so it applies to no crawler.",
    )

    # Rules.
    NEVER_MATCHES = (
        _ERROR,
        "The pattern matches no URL: it must start with / (or *) and not contain /./ or /../.",
    )
    LITERAL_DOLLAR = _NOTE, "A $ that is not the last character is an ordinary character."
    DUPLICATE = _NOTE, "Line {} is the same rule."
    SHADOWED = (
        _WARNING,
        "The rule never decides: wherever it matches, line {} wins with the opposite answer.",
    )
    REDUNDANT = (
        _NOTE,
        "The rule changes nothing: wherever it matches, line {} gives the same answer.",
    )

    # Other records.
    MALFORMED = _WARNING, "{}"
    NO_LONGER_USED = _NOTE, "Search engines no longer read Noindex in robots.txt."


#: The kinds that say how a line is read. Each line has exactly one of them.
READINGS = frozenset(islice(FindingKind, 9))


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about *line*, which is counted from 1.

    *details* fill the placeholders of its sentence. They may be untrusted text.
    """

    line: int
    kind: FindingKind
    details: tuple[bytes | str | int, ...] = ()

    @property
    def severity(self) -> Severity:
        """How serious it is."""
        return self.kind.severity

    @property
    def sentence(self) -> str:
        """The finding as a sentence that is safe to print."""
        return self.kind.template.format(
            *(each if isinstance(each, int) else printable(each) for each in self.details)
        )

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity.value}: {self.sentence}"


def read_findings(body: bytes, dialect: Dialect, truncated: bool) -> list[Finding]:
    """The findings of *body* in file order, at least one for each line. It never raises.

    *truncated* says that *body* is only the start of the file.
    """
    lines = split_lines(body, dialect)
    reads = [read_line(line, dialect) if line else None for line in lines]
    numbered = [(number, read) for number, read in enumerate(reads, 1) if read is not None]
    groups = read_groups(body, dialect)
    findings = chain(
        map(_reading, count(1), lines, reads, repeat(dialect)),
        _of_marks(body, dialect),
        _of_keys(numbered),
        _of_bytes(body, dialect),
        _of_groups(groups, dialect),
        _of_joints(groups, numbered),
        _of_fields(groups, numbered, dialect),
        _of_records(read_other_records(body, dialect, _KNOWN_FIELDS)),
        [Finding(max(len(lines), 1), FindingKind.TRUNCATED)] if truncated else [],
    )
    # The sort is stable: the finding that says how a line is read stays the first one of the line.
    return sorted(findings, key=attrgetter("line"))


def _reading(number: int, line: bytes, read: Line | None, dialect: Dialect) -> Finding:
    if read is None:
        text = line.strip()
        if text and not text.startswith(b"#"):
            return Finding(number, FindingKind.NO_FIELD)
        return Finding(number, FindingKind.COMMENT if text else FindingKind.BLANK)
    field = read.field.value.capitalize()
    if read.field in RULES:
        if not read.value:
            return Finding(number, FindingKind.EMPTY_RULE, (field,))
        return Finding(number, FindingKind.RULE, (field, read.value))
    if read.field is Field.USER_AGENT:
        name = group_name(read.value, dialect)
        if not name:
            return Finding(number, FindingKind.NAMELESS_USER_AGENT)
        return Finding(number, FindingKind.USER_AGENT, (name,))
    if read.field is Field.UNKNOWN:
        kind = FindingKind.UNKNOWN_FIELD if read.colon else FindingKind.NO_FIELD
        return Finding(number, kind, (read.key,))
    return Finding(number, FindingKind.OTHER_RECORD, (field,))


# Without tabs, which are white space.
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


def _of_marks(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    if body.startswith(UTF16_MARKS):
        is_read = dialect.utf16 and utf16_of(body)
        yield Finding(1, FindingKind.UTF_16 if is_read else FindingKind.UTF_16_UNREAD)
    # An incomplete mark is skipped too.
    elif body.startswith(codecs.BOM_UTF8[:1]):
        yield Finding(1, FindingKind.BYTE_ORDER_MARK)


def _of_keys(numbered: list[tuple[int, Line]]) -> Iterator[Finding]:
    for number, read in numbered:
        if read.field is Field.UNKNOWN:
            continue
        field = read.field.value
        if read.key.lower() != field.encode():
            kind = FindingKind.TYPO if read.key.lower() in TYPOS else FindingKind.KEY_BY_START
            yield Finding(number, kind, (read.key, field.capitalize()))
        if not read.colon:
            yield Finding(number, FindingKind.MISSING_COLON)


def _of_bytes(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """Problems of the bytes of lines, without their comments."""
    lines = split_lines(body, replace(dialect, max_line=None, nul_ends_line=False))
    text = b"\n".join(lines)
    controls, utf8 = bool(_CONTROL.search(text)), _is_utf8(text)
    if utf8 and not controls and dialect.max_line is None:
        return
    for number, line in enumerate(lines, 1):
        if dialect.max_line is not None and len(line) > dialect.max_line:
            yield Finding(number, FindingKind.LINE_TOO_LONG, (len(line), dialect.max_line))
        read = line.partition(b"#")[0]
        if controls and b"\0" in read and dialect.nul_ends_line:
            yield Finding(number, FindingKind.NUL_ENDS_LINE)
        elif controls and _CONTROL.search(read.strip()):
            yield Finding(number, FindingKind.CONTROL_CHARACTER)
        if not (utf8 or _is_utf8(read)):
            yield Finding(number, FindingKind.NOT_UTF_8)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _of_groups(groups: list[Group], dialect: Dialect) -> Iterator[Finding]:
    """Names that an earlier group has too, and rules without an effect."""
    lines = [{lowered(name): line for name, line in reversed(group.agents)} for group in groups]
    groups_with = Counter(chain.from_iterable(lines))
    first: dict[str, int] = {}
    for group, ours in zip(groups, lines, strict=True):
        for name, line in ours.items():
            if name and name in first:
                yield Finding(line, FindingKind.REPEATED_NAME, (first[name], name))
            first.setdefault(name, line)
        alone = all(groups_with[name] == 1 for name in ours)
        for line, kind, because in redundant_rules(group, dialect, alone):
            yield Finding(line, FindingKind[kind], (because,) if because else ())


def _of_fields(
    groups: list[Group], numbered: list[tuple[int, Line]], dialect: Dialect
) -> Iterator[Finding]:
    """User-agent lines without rules, rules without user-agent lines, and their values."""
    rules = {line for group in groups for line, _, _ in group.rules}
    agents = {line for group in groups if group.rules for _, line in group.agents}
    for number, read in numbered:
        if read.field in RULES:
            if number not in rules:
                yield Finding(number, FindingKind.OUTSIDE_GROUP)
            if dialect.wildcards and b"$" in read.value[:-1]:
                yield Finding(number, FindingKind.LITERAL_DOLLAR)
        elif read.field is Field.USER_AGENT:
            if number not in agents:
                yield Finding(number, FindingKind.NO_RULES)
            name = group_name(read.value, dialect)
            whole = ("", EVERYONE, read.value.decode("latin-1"))
            if dialect.naming is Naming.TOKEN and name not in whole:
                yield Finding(number, FindingKind.CUT_NAME, (name,))


def _of_joints(groups: list[Group], numbered: list[tuple[int, Line]]) -> Iterator[Finding]:
    """Records that seem to end a group but do not (RFC 9309 §2.2.4)."""
    others = [number for number, read in numbered if read.field not in REP_FIELDS]
    for group in groups:
        for above, below in pairwise(AgentLine(*agent) for agent in group.agents):
            index = bisect_left(others, above.line)
            if index < len(others) and others[index] < below.line:
                yield Finding(others[index], FindingKind.MERGED_GROUP, (*above, *below))


_KNOWN_FIELDS = OTHER_FIELDS - {Field.UNKNOWN}


def _of_records(records: Iterable[OtherRecord]) -> Iterator[Finding]:
    for record in records:
        if record.problem:
            yield Finding(record.line, FindingKind.MALFORMED, (record.problem,))
        if record.field is Field.NOINDEX:
            yield Finding(record.line, FindingKind.NO_LONGER_USED)
        if not (record.field in FILE_WIDE_FIELDS or record.lines_of_agents):
            yield Finding(record.line, FindingKind.RECORD_OUTSIDE_GROUP)
