"""``.. access-table::``: what each answer means in each dialect, read from the code."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from list_table import ListTable
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import DIALECTS, Access, Dialect

_STATUSES = range(100, 600)


def rows(dialects: Collection[Dialect]) -> Iterator[tuple[str, list[Access]]]:
    """What was answered, and its access result in each of *dialects*."""

    def results_of(result: FetchResult) -> list[Access]:
        return [access_result(result, dialect) for dialect in dialects]

    for results, group in groupby(_STATUSES, lambda status: results_of(FetchResult("", status))):
        statuses = list(group)
        first, last = statuses[0], statuses[-1]
        yield f"{first}" if first == last else f"{first} to {last}", results
    for failure in Failure:
        yield failure.value, results_of(FetchResult("", failure=failure))


class AccessTable(ListTable):
    """The table."""

    def rows(self) -> Iterator[list[str]]:
        """What was answered, and its access result in each of ``DIALECTS``."""
        yield ["answer", *(f"``{name}``" for name in DIALECTS)]
        for answer, results in rows(DIALECTS.values()):
            yield [answer, *(result.value for result in results)]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("access-table", AccessTable)
    return {"version": "1", "parallel_read_safe": True}
