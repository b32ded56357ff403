"""Tables that are read from the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sphinx.util.docutils import SphinxDirective


class ListTable(SphinxDirective):
    """A table of cells in reStructuredText."""

    def rows(self) -> Iterable[Sequence[str]]:
        """The header and the rows."""
        raise NotImplementedError

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for first, *rest in self.rows():
            lines.append(f"   * - {first}")
            lines += [f"     - {cell}" for cell in rest]
        return self.parse_text_to_nodes("\n".join(lines))
