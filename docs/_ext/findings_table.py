"""``.. findings-table::``: the kinds of findings, read from the code."""

from __future__ import annotations

from collections.abc import Iterator

from list_table import ListTable
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep.rep.lint.findings import FindingKind


class FindingsTable(ListTable):
    """The table."""

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Name, severity and sentence of each kind."""
        yield "kind", "severity", "sentence"
        for kind in FindingKind:
            sentence = kind.template.replace("{}", "…").replace("*", "\\*")
            yield f"``{kind.value}``", kind.severity.value, sentence


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("findings-table", FindingsTable)
    return {"version": "1", "parallel_read_safe": True}
