"""``.. clauses:: rfc9309``: the clauses of one document, and the tests that show each.

``.. clause-counts::`` is a table of how many there are. The build ends where a clause has
neither a test nor a reason, and where a test names a clause that does not exist.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from clauses import (
    FOLDER,
    Clause,
    Document,
    Status,
    by_clause,
    problems,
    read_documents,
    read_marks,
)
from list_table import ListTable
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

_STATUSES = [Status.AS_WRITTEN, Status.DEVIATES, Status.NOT_OURS, Status.DECISION]


@dataclass(frozen=True)
class _Read:
    documents: dict[str, Document]
    tests: dict[str, list[str]]


@cache
def _read() -> _Read:
    documents, marks = read_documents(), read_marks()
    if found := list(problems(documents.values(), marks)):
        raise ExtensionError("\n".join(found))
    return _Read(documents, by_clause(marks))


def _target(full_name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", full_name.lower())


def _literally(text: str) -> str:
    """*text* so that reStructuredText finds no markup in it."""
    return re.sub(r"([^A-Za-z0-9\s])", r"\\\1", text)


class Clauses(SphinxDirective):
    """All clauses of a document, by section; then what is decided where it is silent."""

    required_arguments = 1

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        name = self.arguments[0]
        self.env.note_dependency(str(FOLDER / f"{name}.ini"))
        document = _read().documents.get(name)
        if document is None:
            raise self.error(f"clauses takes one of: {', '.join(_read().documents)}")
        return self.parse_text_to_nodes("\n".join(_page(document)))


def _page(document: Document) -> Iterator[str]:
    yield from _at_a_glance(document)
    decided = [clause for clause in document.clauses if clause.status is Status.DECISION]
    said = [clause for clause in document.clauses if clause.status is not Status.DECISION]
    for section, clauses in groupby(said, lambda clause: clause.section):
        number = f"§{section} " if section[0].isdigit() else ""
        yield from [f".. rubric:: {number}{document.sections[section]}", ""]
        for clause in clauses:
            beside = [each.number for each in decided if each.beside == clause.number]
            yield from _entry(document, clause, beside)
    if decided:
        yield from [".. rubric:: Decisions where the document is silent", ""]
        for clause in decided:
            yield from _entry(document, clause, [clause.beside])


def _at_a_glance(document: Document) -> Iterator[str]:
    """The counts, and where to look for all that is not as written."""
    yield from [".. list-table::", "   :header-rows: 1", ""]
    for status in _STATUSES:
        yield f"   {'* ' if status is _STATUSES[0] else '  '}- {status.value}"
    yield "     - tests"
    counts = _counts([document], _read())
    for index, count in enumerate(counts):
        yield f"   {'  ' if index else '* '}- {count}"
    yield ""
    for status in (Status.DEVIATES, Status.NOT_OURS):
        clauses = [clause for clause in document.clauses if clause.status is status]
        if clauses:
            links = ", ".join(_link(document, clause.number) for clause in clauses)
            yield from [f"*{status.value.capitalize()}*: {links}.", ""]


def _link(document: Document, number: str) -> str:
    return f":ref:`{number} <{_target(f'{document.name} {number}')}>`"


def _entry(document: Document, clause: Clause, others: list[str]) -> Iterator[str]:
    full_name = document.full_name(clause)
    text = _literally(clause.text)
    if clause.status is not Status.DECISION:
        text = f"“{text}”"
    yield from [f".. _{_target(full_name)}:", ""]
    yield f"**{clause.number}** ({clause.status.value}): {text}"
    yield from [f"    {clause.here}", ""]
    if clause.reason:
        yield from [f"    *Reason*: {clause.reason}", ""]
    if others:
        links = ", ".join(_link(document, number) for number in others)
        yield from [f"    *{'Beside' if clause.beside else 'Left open'}*: {links}.", ""]
    for test in _read().tests.get(full_name, ()):
        yield f"    - ``{test}``"
    yield ""


class ClauseCounts(ListTable):
    """How many clauses each document has, by what the package does about them."""

    required_arguments = 1
    final_argument_whitespace = True

    def rows(self) -> Iterator[list[str]]:
        """A row for each document, and one for all."""
        yield ["document", *(status.value for status in _STATUSES), "tests"]
        read = _read()
        names = self.arguments[0].split()
        if sorted(names) != list(read.documents):
            raise self.error(f"clause-counts takes all of: {', '.join(read.documents)}")
        for document in (read.documents[name] for name in names):
            first = _target(document.full_name(document.clauses[0]))
            yield [f":ref:`{document.title} <{first}>`", *_counts([document], read)]
        yield ["all", *_counts(list(read.documents.values()), read)]


def _counts(documents: list[Document], read: _Read) -> list[str]:
    statuses = Counter(clause.status for each in documents for clause in each.clauses)
    tests = {
        test
        for document in documents
        for clause in document.clauses
        for test in read.tests.get(document.full_name(clause), ())
    }
    return [*(f"{statuses[status]}" for status in _STATUSES), f"{len(tests)}"]


def _check(_app: Sphinx) -> None:
    _read.cache_clear()
    _read()


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.connect("builder-inited", _check)
    app.add_directive("clauses", Clauses)
    app.add_directive("clause-counts", ClauseCounts)
    return {"version": "1", "parallel_read_safe": True}
