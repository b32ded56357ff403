"""What each line of a file was taken for, and what is wrong with it.

Here may not live: how a line is read. Lines, groups, records and patterns are those that verdicts
rest on (:mod:`.lines`, :mod:`.groups`, :mod:`.records`, :mod:`.urls`).
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
from ..parsing.groups import Group, all_groups
from ..parsing.lines import (
    REP_FIELDS,
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
from .redundant_rules import redundant_rules


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


_ERROR, _WARNING, _NOTE, _OK = Severity


class FindingKind(Enum):
    """What there is to find, how bad it is, and a sentence that says it.

    Each line has exactly one finding of :data:`READINGS`, the first nine kinds.
    """

    severity: Severity
    #: Each ``{}`` is one of :attr:`Finding.details`.
    template: str

    def __init__(self, severity: Severity, template: str) -> None:
        self.severity = severity
        self.template = template

    @property
    def value(self) -> str:
        """The name for programs, such as ``"no-field"``."""
        return self.name.lower().replace("_", "-")

    # What a line was taken for.
    BLANK = _OK, "A blank line."
    COMMENT = _OK, "A comment."
    USER_AGENT = _OK, "A user-agent line for {}."
    NAMELESS_USER_AGENT = (
        _ERROR,
        "A user-agent line that names nobody: a product token or * is expected.",
    )
    RULE = _OK, 'The rule "{}: {}".'
    EMPTY_RULE = _OK, 'A "{}" without a value, which says nothing of any URL.'
    OTHER_RECORD = _OK, "A {} record, which decides no access."
    UNKNOWN_FIELD = _WARNING, 'The field "{}" is unknown: the line is ignored.'
    NO_FIELD = _WARNING, "Text that is not a field with a value: the line is ignored."

    # About the file.
    BYTE_ORDER_MARK = _NOTE, "A byte order mark, which is skipped."
    UTF_16 = _WARNING, "The file is in UTF-16, which most crawlers cannot read."
    UTF_16_UNREAD = _ERROR, "The file says that it is in UTF-16, and is read as if it were not."
    TRUNCATED = _ERROR, "The file is too large: what comes after this line is not read."

    # About how a line is written.
    TYPO = _WARNING, 'The misspelling "{}" counts as {} here, not everywhere.'
    KEY_BY_START = _WARNING, '"{}" counts as {} because it starts so; elsewhere it is unknown.'
    MISSING_COLON = _WARNING, "The colon is missing; this is forgiven here, not everywhere."
    LINE_TOO_LONG = _ERROR, "The line has {} bytes, of which the first {} are read."
    NUL_ENDS_LINE = _ERROR, "The line has a NUL; what comes after it is not read."
    CONTROL_CHARACTER = (
        _WARNING,
        "The line has control characters, which count like others here, not everywhere.",
    )
    NOT_UTF_8 = (
        _WARNING,
        "The line has bytes that are not UTF-8; a pattern matches the same bytes only.",
    )

    # About groups.
    CUT_NAME = _NOTE, 'Only "{}" counts: a name has no byte but letters, digits, "-" and "_".'
    REPEATED_NAME = _NOTE, "Line {} has a group for {} already: their rules are combined."
    NO_RULES = _NOTE, "No rule follows in the group: nothing is refused by it."
    MERGED_GROUP = (
        _WARNING,
        "This ends no group: the rules that follow are about {} (line {}) as about {} (line {}).",
    )
    OUTSIDE_GROUP = (
        _ERROR,
        "The rule is in no group: no user-agent line comes before it, so it is ignored.",
    )
    RECORD_OUTSIDE_GROUP = _NOTE, "The record is in no group, so it is about nobody."

    # About rules.
    NEVER_MATCHES = (
        _ERROR,
        "No URL matches: a pattern starts with / (or *), and has no /./ or /../ in it.",
    )
    LITERAL_DOLLAR = _NOTE, "A $ that is not the last character is an ordinary character."
    DUPLICATE = _NOTE, "Line {} says the same already."
    SHADOWED = (
        _WARNING,
        "This never decides: wherever it matches, line {} wins, which says the opposite.",
    )
    REDUNDANT = _NOTE, "This changes nothing: wherever it matches, line {} says the same."

    # About other records.
    MALFORMED = _WARNING, "{}"
    NO_LONGER_USED = _NOTE, "No search engine reads Noindex in robots.txt any more."


#: The kinds of which each line has exactly one: what it was taken for.
READINGS = frozenset(islice(FindingKind, 9))


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about *line* (from 1). Its sentence names *details*, which may be untrusted."""

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
            *(each if isinstance(each, int) else printable(each) for each in self.details)
        )

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity.value}: {self.sentence}"


def read_findings(body: bytes, dialect: Dialect, truncated: bool) -> list[Finding]:
    """The findings of *body*, in file order: at least one for each line. It never raises.

    *truncated* is whether *body* is only the start of the file.
    """
    lines = split_lines(body, dialect)
    reads = [read_line(line, dialect) if line else None for line in lines]
    numbered = [(number, read) for number, read in enumerate(reads, 1) if read is not None]
    findings = chain(
        map(_reading, count(1), lines, reads, repeat(dialect)),
        _of_marks(body, dialect),
        _of_keys(numbered),
        _of_bytes(body, dialect),
        _of_groups(all_groups(body, dialect), numbered, dialect),
        _of_records(read_other_records(body, dialect, _KNOWN_FIELDS)),
        [Finding(max(len(lines), 1), FindingKind.TRUNCATED)] if truncated else [],
    )
    # What a line was taken for stays its first one.
    return sorted(findings, key=attrgetter("line"))


# -- what a line was taken for ---------------------------------------------------


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


# -- how it is written -------------------------------------------------------------

# Tabs are white space. What else is around a key or a value is stripped as well.
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


def _of_marks(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    if body.startswith(UTF16_MARKS):
        is_read = dialect.utf16 and utf16_of(body)
        yield Finding(1, FindingKind.UTF_16 if is_read else FindingKind.UTF_16_UNREAD)
    # Part of a mark is skipped as well.
    elif body.startswith(codecs.BOM_UTF8[:1]):
        yield Finding(1, FindingKind.BYTE_ORDER_MARK)


def _of_keys(numbered: list[tuple[int, Line]]) -> Iterator[Finding]:
    for number, read in numbered:
        if read.field is Field.UNKNOWN:
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


# -- groups and rules ----------------------------------------------------------------


def _of_groups(
    groups: list[Group], numbered: list[tuple[int, Line]], dialect: Dialect
) -> Iterator[Finding]:
    yield from _of_lines_without_group(groups, numbered)
    yield from _of_names(groups)
    yield from _of_joints(groups, numbered)
    shared = _shared_names(groups)
    for group in groups:
        alone = shared.isdisjoint(lowered(name) for name, _ in group.agents)
        for line, why, because in redundant_rules(group, dialect, alone):
            yield Finding(line, FindingKind[why.name], (because,) if because else ())
    for number, read in numbered:
        if read.field is Field.USER_AGENT and dialect.naming is Naming.TOKEN:
            name = group_name(read.value, dialect)
            if name not in ("", EVERYONE, read.value.decode("latin-1")):
                yield Finding(number, FindingKind.CUT_NAME, (name,))
        elif read.field in RULES and dialect.wildcards and b"$" in read.value[:-1]:
            yield Finding(number, FindingKind.LITERAL_DOLLAR)


def _of_lines_without_group(
    groups: list[Group], numbered: list[tuple[int, Line]]
) -> Iterator[Finding]:
    """User-agent lines without rules, and rules without user-agent lines."""
    rules = {line for group in groups for line, _, _ in group.rules}
    agents = {line for group in groups if group.rules for _, line in group.agents}
    for number, read in numbered:
        if read.field in RULES and number not in rules:
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
    names = Counter(chain.from_iterable({lowered(n) for n, _ in group.agents} for group in groups))
    return {name for name, count in names.items() if count > 1}


def _of_joints(groups: list[Group], numbered: list[tuple[int, Line]]) -> Iterator[Finding]:
    """Where a group goes on though a record seems to end it (RFC 9309 §2.2.4)."""
    others = [number for number, read in numbered if read.field not in REP_FIELDS]
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
