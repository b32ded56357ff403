"""The clauses of the specifications, and the tests that show what the package does about each.

Each ``docs/conformance/*.ini`` has the clauses of one document. A test names clauses with
``@pytest.mark.clause("RFC 9309 2.2.2-3")``. Both are read here, the tests without importing
them. The pages are made from both by ``clause_table.py``, and ``tests/test_clauses.py`` looks
for the same errors.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]
FOLDER = _ROOT / "docs" / "conformance"
TESTS = _ROOT / "tests"

# The section, and the number in it; "d" marks what the package decides where the document is
# silent.
_NUMBER = re.compile(r"(?P<section>[0-9a-z.-]+)-(?P<decision>d?)(?P<number>[1-9][0-9]*)")
_DOCUMENT = "document"
_SECTIONS = "sections"
_KEYS_OF_DOCUMENTS = {"name", "title"}
_KEYS = {"quote", "status", "here", "reason"}
_KEYS_OF_DECISIONS = {"question", "beside", "here"}


class Status(Enum):
    """What the package does about a clause."""

    AS_WRITTEN = "as written"
    DEVIATES = "deviates"
    NOT_OURS = "not a crawler's duty"
    #: The document is silent, and the package does something all the same.
    DECISION = "decision"


_STATUSES = {status.value: status for status in Status if status is not Status.DECISION}


@dataclass(frozen=True)
class Clause:
    """One statement of a document, or one decision where it is silent."""

    number: str
    #: What the document says, in few of its words; of a decision, the question.
    text: str
    status: Status
    #: What the package does, in reStructuredText.
    here: str
    #: Why it deviates, or why the clause is not for crawlers.
    reason: str = ""
    #: Of a decision, the clause that leaves it open.
    beside: str = ""

    @property
    def section(self) -> str:
        """The section of the document."""
        return self.number.rpartition("-")[0]


@dataclass(frozen=True)
class Document:
    """The clauses of one specification, in its order."""

    name: str
    title: str
    #: The titles of its sections by their numbers.
    sections: Mapping[str, str]
    clauses: tuple[Clause, ...]

    def full_name(self, clause: Clause) -> str:
        """How tests name *clause*, which is one of these."""
        return f"{self.name} {clause.number}"


class ClauseError(ValueError):
    """A file of clauses, or a marker, cannot be read; the message says where and why."""


# -- the documents ---------------------------------------------------------------------------


def read_documents(folder: Path = FOLDER) -> dict[str, Document]:
    """The documents in *folder*, by the names of their files without the suffix."""
    return {path.stem: _read_document(path) for path in sorted(folder.glob("*.ini"))}


def _read_document(path: Path) -> Document:
    parser = ConfigParser(
        delimiters=("=",), comment_prefixes=(";",), empty_lines_in_values=False, interpolation=None
    )
    parser.read_string(path.read_text("utf-8"), path.name)
    about = _fields(parser, _DOCUMENT, path)
    _expect_keys(about, _KEYS_OF_DOCUMENTS, set(), f"{path.name} [{_DOCUMENT}]")
    sections = _fields(parser, _SECTIONS, path)
    clauses = [
        _clause(number, _fields(parser, number, path), f"{path.name} [{number}]")
        for number in parser.sections()
        if number not in (_DOCUMENT, _SECTIONS)
    ]
    _expect_in_order(clauses, path.name)
    if sections.keys() != (used := {clause.section for clause in clauses}):
        raise ClauseError(f"{path.name}: without title or clauses: {sections.keys() ^ used}")
    return Document(about["name"], about["title"], sections, tuple(clauses))


def _fields(parser: ConfigParser, section: str, path: Path) -> dict[str, str]:
    if not parser.has_section(section):
        raise ClauseError(f"{path.name} has no section [{section}]")
    return {key: " ".join(value.split()) for key, value in parser.items(section)}


def _clause(number: str, fields: Mapping[str, str], where: str) -> Clause:
    match = _NUMBER.fullmatch(number)
    if not match:
        raise ClauseError(f"{where}: a number is such as 2.2.2-3 or 2.2.2-d1")
    if match["decision"]:
        _expect_keys(fields, _KEYS_OF_DECISIONS, set(), where)
        return Clause(
            number, fields["question"], Status.DECISION, fields["here"], beside=fields["beside"]
        )
    _expect_keys(fields, _KEYS, {"reason"}, where)
    status = _STATUSES.get(fields["status"])
    if status is None:
        raise ClauseError(f"{where}: {fields['status']!r} is not a status")
    return Clause(number, fields["quote"], status, fields["here"], fields.get("reason", ""))


def _expect_keys(fields: Mapping[str, str], keys: set[str], optional: set[str], where: str) -> None:
    if not keys - optional <= fields.keys() <= keys:
        raise ClauseError(f"{where} has {sorted(fields)}; expected: {sorted(keys)}")
    if empty := [key for key, value in fields.items() if not value]:
        raise ClauseError(f"{where}: {empty} must not be empty")


def _expect_in_order(clauses: Iterable[Clause], where: str) -> None:
    """Numbers of a section count from 1, so that a clause cannot get lost."""
    last: dict[str, int] = defaultdict(int)
    for clause in clauses:
        match = _NUMBER.fullmatch(clause.number)
        assert match
        kind = f"{match['section']}-{match['decision']}"
        last[kind] += 1
        if int(match["number"]) != last[kind]:
            raise ClauseError(f"{where} [{clause.number}]: expected {kind}{last[kind]}")


# -- the tests -------------------------------------------------------------------------------


class Mark(NamedTuple):
    """That a test shows what the package does about a clause."""

    clause: str
    #: As pytest names it, without parameters.
    test: str


def read_marks(folder: Path = TESTS) -> list[Mark]:
    """The marks of all tests in *folder*, ordered by file and line."""
    found: list[Mark] = []
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder.parent).as_posix()
        tree = ast.parse(path.read_text("utf-8"), name)
        marks = list(_marks(tree, name))
        calls = sum(map(_is_mark, ast.walk(tree)))
        if len({id(call) for call, _ in marks}) != calls:
            raise ClauseError(f"{name}: a clause marker decorates neither a test nor a test class")
        found += [Mark(clause, test) for call, test in marks for clause in _names(call, name)]
    return found


def _marks(node: ast.AST, name: str) -> Iterator[tuple[ast.Call, str]]:
    """The markers in *node*, each with the test that it decorates."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        test = f"{name}::{child.name}"
        if child.name.startswith(("test_", "Test")):
            for decorator in child.decorator_list:
                if isinstance(decorator, ast.Call) and _is_mark(decorator):
                    yield decorator, test
        if isinstance(child, ast.ClassDef):
            yield from _marks(child, test)


def _is_mark(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "clause"
        and ast.unparse(node.func) == "pytest.mark.clause"
    )


def _names(call: ast.Call, where: str) -> Iterator[str]:
    if call.keywords or not call.args:
        raise ClauseError(f"{where}:{call.lineno}: a clause marker takes names of clauses")
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            raise ClauseError(f"{where}:{argument.lineno}: the name of a clause is a plain string")
        yield argument.value


# -- both ------------------------------------------------------------------------------------


def by_clause(marks: Iterable[Mark]) -> dict[str, list[str]]:
    """The tests of each clause that *marks* name, by its full name."""
    tests: dict[str, list[str]] = defaultdict(list)
    for mark in marks:
        tests[mark.clause].append(mark.test)
    return dict(tests)


def problems(documents: Iterable[Document], marks: Sequence[Mark]) -> Iterator[str]:
    """What is wrong with *documents* and the *marks* of tests, a sentence for each error."""
    tests = by_clause(marks)
    known: set[str] = set()
    for document in documents:
        numbers = {clause.number for clause in document.clauses}
        for clause in document.clauses:
            name = document.full_name(clause)
            known.add(name)
            yield from _problems_of(clause, name, bool(tests.get(name)))
            if clause.beside and clause.beside not in numbers:
                yield f"{name} is beside {clause.beside}, which is not a clause."
    for mark in marks:
        if mark.clause not in known:
            yield f"{mark.test} names {mark.clause!r}, which is not a clause."
    for mark in sorted({mark for mark in marks if marks.count(mark) > 1}):
        yield f"{mark.test} names {mark.clause!r} twice."


def _problems_of(clause: Clause, name: str, has_tests: bool) -> Iterator[str]:
    if clause.status in (Status.AS_WRITTEN, Status.DECISION):
        if not has_tests:
            yield f"{name} ({clause.status.value}) has no test."
        if clause.reason:
            yield f"{name} ({clause.status.value}) needs no reason."
    elif not clause.reason:
        yield f"{name} ({clause.status.value}) has no reason."
