"""What each line of a file was taken for, and what is wrong with it.

Here may live: what there is to say to people of a line. Here may not live: how
a line is read. Lines, groups, records and patterns are those that verdicts rest
on (:mod:`.lines`, :mod:`.groups`, :mod:`.records`, :mod:`.urls`), and what has
no effect is found out in :mod:`.redundant_rules`.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, pairwise
from operator import attrgetter

from ..dialects import Dialect, Naming
from ..parsing.agents import EVERYONE, AgentLine, group_name, lowered
from ..parsing.groups import Group, all_groups
from ..parsing.lines import (
    RULES,
    UTF16_MARKS,
    Field,
    Line,
    is_typo,
    read_line,
    split_lines,
    utf16_of,
)
from ..parsing.records import FILE_WIDE_FIELDS, OTHER_FIELDS, OtherRecord, read_other_records
from ..text import printable
from .redundant_rules import Redundancy, redundant_rules


class Severity(Enum):
    """How bad a finding is."""

    #: A line does not do what it says.
    ERROR = "error"
    #: A line likely does something else than it seems to, here or elsewhere.
    WARNING = "warning"
    #: Good to know.
    NOTE = "note"
    #: In order.
    OK = "ok"


class FindingKind(Enum):
    """What there is to find, how bad it is, and a sentence that says it.

    Each line has exactly one finding of the first nine kinds, :attr:`reading`.
    """

    value: str
    severity: Severity
    #: Each ``{}`` is one of :attr:`Finding.details`.
    template: str

    def __new__(cls, value: str, severity: Severity, template: str) -> FindingKind:
        """Make a member that is looked up by its *value*."""
        kind = object.__new__(cls)
        kind._value_ = value
        kind.severity = severity
        kind.template = template
        return kind

    # What a line was taken for.
    BLANK = "blank", Severity.OK, "A blank line."
    COMMENT = "comment", Severity.OK, "A comment."
    USER_AGENT = "user-agent", Severity.OK, "A user-agent line for {}."
    NAMELESS_USER_AGENT = (
        "nameless-user-agent",
        Severity.ERROR,
        "A user-agent line that names nobody: a product token or * is expected.",
    )
    RULE = "rule", Severity.OK, 'The rule "{}: {}".'
    EMPTY_RULE = "empty-rule", Severity.OK, 'A "{}" without a value, which says nothing of any URL.'
    OTHER_RECORD = "other-record", Severity.OK, "A {} record, which decides no access."
    UNKNOWN_FIELD = (
        "unknown-field",
        Severity.WARNING,
        'The field "{}" is unknown: the line is ignored.',
    )
    NO_FIELD = (
        "no-field",
        Severity.WARNING,
        "Text that is no field with a value: the line is ignored.",
    )

    # About the file.
    BYTE_ORDER_MARK = "byte-order-mark", Severity.NOTE, "A byte order mark, which is skipped."
    UTF16 = "utf-16", Severity.WARNING, "The file is in UTF-16, which most crawlers cannot read."
    UTF16_UNREAD = (
        "utf-16-unread",
        Severity.ERROR,
        "The file says that it is in UTF-16, and is read as if it were not.",
    )
    TRUNCATED = (
        "truncated",
        Severity.ERROR,
        "The file is too large: what comes after this line is not read.",
    )

    # About how a line is written.
    TYPO = "typo", Severity.WARNING, 'The misspelling "{}" counts as {} here, not everywhere.'
    KEY_BY_START = (
        "key-by-start",
        Severity.WARNING,
        '"{}" counts as {} because it starts so; elsewhere it is unknown.',
    )
    MISSING_COLON = (
        "missing-colon",
        Severity.WARNING,
        "The colon is missing; this is forgiven here, not everywhere.",
    )
    LINE_TOO_LONG = (
        "line-too-long",
        Severity.ERROR,
        "The line has {} bytes, of which the first {} are read.",
    )
    NUL_ENDS_LINE = (
        "nul-ends-line",
        Severity.ERROR,
        "The line has a NUL; what comes after it is not read.",
    )
    CONTROL_CHARACTER = (
        "control-character",
        Severity.WARNING,
        "The line has control characters, which count like others here, not everywhere.",
    )
    NOT_UTF8 = (
        "not-utf-8",
        Severity.WARNING,
        "The line has bytes that are not UTF-8; a pattern matches the same bytes only.",
    )

    # About groups.
    CUT_NAME = (
        "cut-name",
        Severity.NOTE,
        'Only "{}" counts: a name has no byte but letters, digits, "-" and "_".',
    )
    REPEATED_NAME = (
        "repeated-name",
        Severity.NOTE,
        "Line {} has a group for {} already: their rules are combined.",
    )
    NO_RULES = "no-rules", Severity.NOTE, "No rule follows in the group: nothing is refused by it."
    MERGED_GROUP = (
        "merged-group",
        Severity.WARNING,
        "This ends no group: the rules that follow are about {} (line {}) as about {} (line {}).",
    )
    OUTSIDE_GROUP = (
        "outside-group",
        Severity.ERROR,
        "The rule is in no group: no user-agent line comes before it, so it is ignored.",
    )
    RECORD_OUTSIDE_GROUP = (
        "record-outside-group",
        Severity.NOTE,
        "The record is in no group, so it is about nobody.",
    )

    # About rules.
    NEVER_MATCHES = (
        "never-matches",
        Severity.ERROR,
        "No URL matches: a pattern starts with / (or *), and has no /./ or /../ in it.",
    )
    LITERAL_DOLLAR = (
        "literal-dollar",
        Severity.NOTE,
        "A $ that is not the last character is an ordinary character.",
    )
    DUPLICATE = "duplicate", Severity.NOTE, "Line {} says the same already."
    SHADOWED = (
        "shadowed",
        Severity.WARNING,
        "This never decides: wherever it matches, line {} wins, which says the opposite.",
    )
    REDUNDANT = (
        "redundant",
        Severity.NOTE,
        "This changes nothing: wherever it matches, line {} says the same.",
    )

    # About other records.
    MALFORMED = "malformed", Severity.WARNING, "{}"
    NO_LONGER_USED = (
        "no-longer-used",
        Severity.NOTE,
        "No search engine reads Noindex in robots.txt any more.",
    )


#: The kinds of which each line has exactly one: what it was taken for.
READINGS = frozenset(
    {
        FindingKind.BLANK,
        FindingKind.COMMENT,
        FindingKind.USER_AGENT,
        FindingKind.NAMELESS_USER_AGENT,
        FindingKind.RULE,
        FindingKind.EMPTY_RULE,
        FindingKind.OTHER_RECORD,
        FindingKind.UNKNOWN_FIELD,
        FindingKind.NO_FIELD,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say of *line* (from 1).

    *details* are what its sentence names: untrusted bytes and text among them.
    """

    line: int
    kind: FindingKind
    details: tuple[bytes | str | int, ...] = ()

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.kind.severity

    @property
    def sentence(self) -> str:
        """What it is, for people; safe to print."""
        return self.kind.template.format(
            *(
                str(detail) if isinstance(detail, int) else printable(detail)
                for detail in self.details
            )
        )

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity.value}: {self.sentence}"


def read_findings(body: bytes, dialect: Dialect, truncated: bool) -> list[Finding]:
    """The findings of *body*, of which *truncated* says whether it was cut, in file order.

    At least one for each line that is read. No bytes make it raise.
    """
    lines = split_lines(body, dialect)
    reads = [read_line(line, dialect) if line else None for line in lines]
    findings = chain(
        _of_readings(lines, reads, dialect),
        _of_marks(body, dialect),
        _of_keys(reads),
        _of_bytes(body, dialect),
        _of_groups(all_groups(body, dialect), reads, dialect),
        _of_records(read_other_records(body, dialect, _KNOWN_FIELDS)),
        [Finding(max(len(lines), 1), FindingKind.TRUNCATED)] if truncated else [],
    )
    # What a line was taken for stays its first one.
    return sorted(findings, key=attrgetter("line"))


# -- what a line was taken for ---------------------------------------------------


def _of_readings(
    lines: list[bytes], reads: list[Line | None], dialect: Dialect
) -> Iterator[Finding]:
    for number, (line, read) in enumerate(zip(lines, reads, strict=True), 1):
        if not line:
            yield Finding(number, FindingKind.BLANK)
        elif read is None:
            yield Finding(number, _without_key(line))
        else:
            yield _reading(number, read, dialect)


def _without_key(line: bytes) -> FindingKind:
    text = line.strip()
    if not text:
        return FindingKind.BLANK
    return FindingKind.COMMENT if text.startswith(b"#") else FindingKind.NO_FIELD


def _reading(number: int, read: Line, dialect: Dialect) -> Finding:
    if _is_rule(read, dialect):
        field = read.field.value.capitalize()
        if not read.value:
            return Finding(number, FindingKind.EMPTY_RULE, (field,))
        return Finding(number, FindingKind.RULE, (field, read.value))
    if read.field is Field.USER_AGENT:
        name = group_name(read.value, dialect)
        if not name:
            return Finding(number, FindingKind.NAMELESS_USER_AGENT)
        return Finding(number, FindingKind.USER_AGENT, (name,))
    # In a dialect without Allow, it is an unknown field.
    if read.field is Field.UNKNOWN or read.field in RULES:
        kind = FindingKind.UNKNOWN_FIELD if read.colon else FindingKind.NO_FIELD
        return Finding(number, kind, (read.key,))
    return Finding(number, FindingKind.OTHER_RECORD, (read.field.value.capitalize(),))


def _is_rule(read: Line, dialect: Dialect) -> bool:
    return read.field is Field.DISALLOW or (read.field is Field.ALLOW and dialect.allow_lines)


# -- how it is written -------------------------------------------------------------

# Tabs are white space. What else is around a key or a value is stripped as well.
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


def _of_marks(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    if body.startswith(UTF16_MARKS):
        is_read = dialect.utf16 and utf16_of(body)
        yield Finding(1, FindingKind.UTF16 if is_read else FindingKind.UTF16_UNREAD)
    # Part of a mark is skipped as well.
    elif body.startswith(codecs.BOM_UTF8[:1]):
        yield Finding(1, FindingKind.BYTE_ORDER_MARK)


def _of_keys(reads: list[Line | None]) -> Iterator[Finding]:
    for number, read in enumerate(reads, 1):
        if read is None or read.field is Field.UNKNOWN:
            continue
        field = read.field.value
        if read.key.lower() != field.encode():
            kind = FindingKind.TYPO if is_typo(read.key) else FindingKind.KEY_BY_START
            yield Finding(number, kind, (read.key, field.capitalize()))
        if not read.colon:
            yield Finding(number, FindingKind.MISSING_COLON)


def _of_bytes(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """What is wrong with the bytes of lines, but not with those of their comments."""
    lines = split_lines(body, replace(dialect, max_line=None, nul_ends_line=False))
    text = b"\n".join(lines)
    controls, utf8 = bool(_CONTROL.search(text)), _is_utf8(text)
    if utf8 and not controls and dialect.max_line is None:
        return
    for number, line in enumerate(lines, 1):
        if dialect.max_line is not None and len(line) > dialect.max_line:
            yield Finding(number, FindingKind.LINE_TOO_LONG, (len(line), dialect.max_line))
        told = line.partition(b"#")[0]
        if controls and b"\0" in told and dialect.nul_ends_line:
            yield Finding(number, FindingKind.NUL_ENDS_LINE)
        elif controls and _CONTROL.search(told.strip()):
            yield Finding(number, FindingKind.CONTROL_CHARACTER)
        if not (utf8 or _is_utf8(told)):
            yield Finding(number, FindingKind.NOT_UTF8)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


# -- groups and rules ----------------------------------------------------------------

_USELESS = {
    Redundancy.NEVER_MATCHES: FindingKind.NEVER_MATCHES,
    Redundancy.DUPLICATE: FindingKind.DUPLICATE,
    Redundancy.SHADOWED: FindingKind.SHADOWED,
    Redundancy.REDUNDANT: FindingKind.REDUNDANT,
}


def _of_groups(
    groups: list[Group], reads: list[Line | None], dialect: Dialect
) -> Iterator[Finding]:
    numbered = [(number, read) for number, read in enumerate(reads, 1) if read is not None]
    yield from _of_lines_without_group(groups, numbered, dialect)
    yield from _of_names(groups)
    yield from _of_joints(groups, numbered, dialect)
    shared = _shared_names(groups)
    for group in groups:
        alone = shared.isdisjoint(lowered(name) for name, _ in group.agents)
        for line, why, because in redundant_rules(group, dialect, alone):
            yield Finding(line, _USELESS[why], (because,) if because else ())
    for number, read in numbered:
        if read.field is Field.USER_AGENT and dialect.naming is Naming.TOKEN:
            name = group_name(read.value, dialect)
            if name not in ("", EVERYONE, read.value.decode("latin-1")):
                yield Finding(number, FindingKind.CUT_NAME, (name,))
        elif _is_rule(read, dialect) and dialect.wildcards and b"$" in read.value[:-1]:
            yield Finding(number, FindingKind.LITERAL_DOLLAR)


def _of_lines_without_group(
    groups: list[Group], numbered: list[tuple[int, Line]], dialect: Dialect
) -> Iterator[Finding]:
    """User-agent lines without rules, and rules without user-agent lines."""
    rules = {line for group in groups for line, _, _ in group.rules}
    agents = {line for group in groups if group.rules for _, line in group.agents}
    for number, read in numbered:
        if _is_rule(read, dialect) and number not in rules:
            yield Finding(number, FindingKind.OUTSIDE_GROUP)
        elif read.field is Field.USER_AGENT and number not in agents:
            yield Finding(number, FindingKind.NO_RULES)


def _of_names(groups: list[Group]) -> Iterator[Finding]:
    """Who is named by more than one group."""
    first: dict[str, int] = {}
    for group in groups:
        ours = {lowered(name): line for name, line in reversed(group.agents) if name}
        for name, line in ours.items():
            if name in first:
                yield Finding(line, FindingKind.REPEATED_NAME, (first[name], name))
            first.setdefault(name, line)


def _shared_names(groups: list[Group]) -> set[str]:
    """The names of which there are several groups."""
    seen: set[str] = set()
    shared: set[str] = set()
    for group in groups:
        ours = {lowered(name) for name, _ in group.agents}
        shared |= ours & seen
        seen |= ours
    return shared


def _of_joints(
    groups: list[Group], numbered: list[tuple[int, Line]], dialect: Dialect
) -> Iterator[Finding]:
    """Where a group goes on though a record seems to end it (RFC 9309 §2.2.4)."""
    others = [
        number
        for number, read in numbered
        if read.field is not Field.USER_AGENT and not _is_rule(read, dialect)
    ]
    for group in groups:
        for above, below in pairwise(AgentLine(*agent) for agent in group.agents):
            index = bisect_left(others, above.line)
            if index < len(others) and others[index] < below.line:
                yield Finding(others[index], FindingKind.MERGED_GROUP, (*above, *below))


# -- other records -----------------------------------------------------------------


_KNOWN_FIELDS = OTHER_FIELDS - {Field.UNKNOWN}


def _of_records(records: Iterable[OtherRecord]) -> Iterator[Finding]:
    for record in records:
        if record.problem:
            yield Finding(record.line, FindingKind.MALFORMED, (record.problem,))
        if record.field is Field.NOINDEX:
            yield Finding(record.line, FindingKind.NO_LONGER_USED)
        if not (record.field in FILE_WIDE_FIELDS or record.lines_of_agents):
            yield Finding(record.line, FindingKind.RECORD_OUTSIDE_GROUP)
