"""The clauses of the specifications, docs/conformance, and the tests that show them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs._ext.clauses import (
    FOLDER,
    Clause,
    ClauseError,
    Document,
    Mark,
    Status,
    by_clause,
    problems,
    read_documents,
    read_marks,
)


def test_every_clause_has_a_test_or_a_reason_and_every_marker_a_clause() -> None:
    found = list(problems(read_documents().values(), read_marks()))
    assert not found, "\n".join(found)


def test_every_document_has_a_page_that_shows_it() -> None:
    pages = "".join(page.read_text("utf-8") for page in FOLDER.glob("*.rst"))
    shown = re.findall(r"^\.\. clauses:: (\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == list(read_documents())
    assert len(shown) >= 6


# -- what the check finds ------------------------------------------------------------------


def document(*clauses: Clause) -> Document:
    return Document("RFC 1", "RFC 1", {"1": "One"}, clauses)


WRITTEN = Clause("1-1", "MUST", Status.AS_WRITTEN, "It does.")
DEVIATES = Clause("1-2", "SHOULD", Status.DEVIATES, "It does not.", "Files need it.")
DECISION = Clause("1-d1", "What of tabs?", Status.DECISION, "They count.", beside="1-1")
MARKS = [Mark("RFC 1 1-1", "test_a"), Mark("RFC 1 1-d1", "test_b")]


@pytest.mark.parametrize(
    ("clauses", "marks", "found"),
    [
        ([WRITTEN, DEVIATES, DECISION], MARKS, []),
        ([WRITTEN], [], ["RFC 1 1-1 (as written) has no test."]),
        (
            [WRITTEN],
            [*MARKS[:1], Mark("RFC 1 1-7", "test_c")],
            ["test_c names 'RFC 1 1-7', which is not a clause."],
        ),
        ([WRITTEN], MARKS[:1] * 2, ["test_a names 'RFC 1 1-1' twice."]),
        ([DECISION], MARKS[1:], ["RFC 1 1-d1 is beside 1-1, which is not a clause."]),
        ([WRITTEN, DECISION], MARKS[:1], ["RFC 1 1-d1 (decision) has no test."]),
        (
            [Clause("1-1", "MUST", Status.DEVIATES, "It does not.")],
            MARKS[:1],
            ["RFC 1 1-1 (deviates) has no reason."],
        ),
        (
            [Clause("1-1", "MUST", Status.NOT_OURS, "Nothing.")],
            [],
            ["RFC 1 1-1 (not a crawler's duty) has no reason."],
        ),
        (
            [Clause("1-1", "MUST", Status.AS_WRITTEN, "It does.", "Why not?")],
            MARKS[:1],
            ["RFC 1 1-1 (as written) needs no reason."],
        ),
    ],
)
def test_problems(clauses: list[Clause], marks: list[Mark], found: list[str]) -> None:
    assert list(problems([document(*clauses)], marks)) == found


# -- files of clauses ----------------------------------------------------------------------

HEAD = "[document]\nname = RFC 1\ntitle = The RFC\n[sections]\n1 = One\n"
CLAUSE = "quote = a # b; %41\nstatus = deviates\nhere = No.\nreason = Files\n    need it.\n"


def read(folder: Path, text: str) -> Document:
    (folder / "rfc1.ini").write_text(text, "utf-8")
    return read_documents(folder)["rfc1"]


def test_a_document_is_read_as_written(tmp_path: Path) -> None:
    decision = "[1-d1]\nbeside = 1-1\nquestion = Why?\nhere = So.\n"
    found = read(tmp_path, f"{HEAD}[1-1]\n{CLAUSE}{decision}")
    assert found == Document(
        "RFC 1",
        "The RFC",
        {"1": "One"},
        (
            Clause("1-1", "a # b; %41", Status.DEVIATES, "No.", "Files need it."),
            Clause("1-d1", "Why?", Status.DECISION, "So.", beside="1-1"),
        ),
    )
    assert found.full_name(found.clauses[0]) == "RFC 1 1-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sections]\n1 = One\n", r"no section \[document\]"),
        ("[document]\nname = RFC 1\n[sections]\n", "expected: \\['name', 'title'\\]"),
        (f"{HEAD}[first]\n{CLAUSE}", "a number is such as"),
        (f"{HEAD}[1-2]\n{CLAUSE}", "expected 1-1"),
        (f"{HEAD}[1-1]\n{CLAUSE}[1-3]\n{CLAUSE}", "expected 1-2"),
        (f"{HEAD}[2-1]\n{CLAUSE}", "without title or clauses"),
        (f"{HEAD}[1-1]\n{CLAUSE}note = x\n", "has .*'note'"),
        (f"{HEAD}[1-1]\n{CLAUSE.replace('No.', '')}", "'here'.* must not be empty"),
        (f"{HEAD}[1-1]\n{CLAUSE.replace('deviates', 'decision')}", "is not a status"),
        (f"{HEAD}[1-d1]\n{CLAUSE}", "expected: .*'question'"),
    ],
)
def test_a_file_with_an_error_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ClauseError, match=message):
        read(tmp_path, text)


# -- markers -------------------------------------------------------------------------------

MARKED = """
import pytest

@pytest.mark.clause("RFC 1 1-1", "RFC 1 1-2")
@pytest.mark.parametrize("a", [1])
def test_a(a): ...

@pytest.mark.clause("RFC 1 1-1")
class TestThem:
    @pytest.mark.clause("RFC 1 1-3")
    async def test_b(self): ...
"""


def test_markers_are_read_with_the_tests_that_have_them(tmp_path: Path) -> None:
    (tmp_path / "tests" / "rep").mkdir(parents=True)
    (tmp_path / "tests" / "rep" / "test_x.py").write_text(MARKED, "utf-8")
    marks = read_marks(tmp_path / "tests")
    assert by_clause(marks) == {
        "RFC 1 1-1": ["tests/rep/test_x.py::test_a", "tests/rep/test_x.py::TestThem"],
        "RFC 1 1-2": ["tests/rep/test_x.py::test_a"],
        "RFC 1 1-3": ["tests/rep/test_x.py::TestThem::test_b"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@pytest.mark.clause('RFC 1 1-1')\ndef helper(): ...\n", "decorates neither"),
        ("pytestmark = pytest.mark.clause('RFC 1 1-1')\n", "decorates neither"),
        ("@pytest.mark.clause(NAME)\ndef test_a(): ...\n", ":1: .* a plain string"),
        ("@pytest.mark.clause()\ndef test_a(): ...\n", ":1: .* takes names"),
    ],
)
def test_a_marker_that_shows_nothing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(text, "utf-8")
    with pytest.raises(ClauseError, match=message):
        read_marks(tmp_path)
