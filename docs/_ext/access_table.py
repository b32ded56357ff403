"""``.. access-table::``: what each answer means in each dialect, read from the code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep.rep.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import DIALECTS

_STATUSES = range(100, 600)


def rows() -> Iterator[tuple[str, list[str]]]:
    """What was answered, and its access result in each of ``DIALECTS``."""
    for results, group in groupby(_STATUSES, lambda status: _results(FetchResult("", status))):
        statuses = list(group)
        first, last = statuses[0], statuses[-1]
        yield f"{first}" if first == last else f"{first} to {last}", results
    for failure in Failure:
        yield failure.value, _results(FetchResult("", failure=failure))


def _results(result: FetchResult) -> list[str]:
    return [access_result(result, dialect).value for dialect in DIALECTS.values()]


class AccessTable(SphinxDirective):
    """The table."""

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for first, rest in [("answer", [f"``{name}``" for name in DIALECTS]), *rows()]:
            lines.append(f"   * - {first}")
            lines += [f"     - {cell}" for cell in rest]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("access-table", AccessTable)
    return {"version": "1", "parallel_read_safe": True}
