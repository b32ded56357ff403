"""``.. state-table:: now|after|later|outage``: where an origin stands, worked out by the code.

``now``: by what is known of its robots.txt. ``after``: once a fetch has ended.
``later``: as time goes by without one. In the default dialect, with default bounds.
``outage``: while it is unreachable, in each dialect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.caching.freshness import Bounds, Evaluation, evaluate, update
from scrapy_rep.rep.dialects import DIALECTS, RFC9309, Access, WhenUnreachable
from scrapy_rep.rep.parsing.urls import Origin

_ORIGIN = Origin("https", "example.com", 443)
_URL = _ORIGIN.robots_url
# Any time will do.
_NOW = 1_800_000_000.0
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 24 * 3600.0

_RESULTS = {
    "200": FetchResult(_URL, 200),
    "304": FetchResult(_URL, 304),
    "404": FetchResult(_URL, 404),
    "503": FetchResult(_URL, 503),
    "no answer": FetchResult(_URL, failure=Failure.NO_ANSWER),
}

_AGES = {
    "at once": 0.0,
    "2 hours": 2 * _HOUR,
    "23 hours": 23 * _HOUR,
    "24 hours": 24 * _HOUR,
    "2 days": 2 * _DAY,
    "31 days": 31 * _DAY,
}


def _known(
    status: int | None = None,
    age: float = 0.0,
    *,
    since: float | None = None,
    last: float = _MINUTE,
) -> CacheEntry:
    """A copy of *age*, and an outage *since*, its last attempt *last* ago."""
    stored = outage = None
    if status is not None:
        stored = StoredResponse(FetchResult(_URL, status), _NOW - age, _NOW - age)
    if since is not None:
        outage = Outage(_RESULTS["503"], _NOW - since, _NOW - last, attempts=20)
    return CacheEntry(_ORIGIN, stored, outage)


_KNOWN: dict[str, CacheEntry | None] = {
    "nothing": None,
    "a file": _known(200, _HOUR),
    "a file, 23 hours old": _known(200, 23 * _HOUR),
    "a file, 25 hours old": _known(200, 25 * _HOUR),
    "a file; unreachable for a day, to retry later": _known(200, 2 * _DAY, since=_DAY),
    "a file; unreachable for a day, to retry now": _known(
        200, 2 * _DAY, since=_DAY, last=2 * _HOUR
    ),
    "a file; unreachable for 31 days": _known(200, 32 * _DAY, since=31 * _DAY),
    "a 404": _known(404, _HOUR),
    "a 404, 23 hours old": _known(404, 23 * _HOUR),
    "a 404, 25 hours old": _known(404, 25 * _HOUR),
    "a 404; unreachable for an hour": _known(404, 2 * _HOUR, since=_HOUR),
    "a 404, 2 days old; unreachable for a day": _known(404, 2 * _DAY, since=_DAY),
    "unreachable for a day, to retry later": _known(since=_DAY),
    "unreachable for a day, to retry now": _known(since=_DAY, last=2 * _HOUR),
    "unreachable for 31 days, to retry later": _known(since=31 * _DAY),
    "unreachable for 31 days, to retry now": _known(since=31 * _DAY, last=2 * _HOUR),
}

# What is known, what a fetch then gets.
_LATER = [
    ("nothing", "200"),
    ("nothing", "404"),
    ("nothing", "503"),
    ("a file", "503"),
    ("a file", "304"),
    ("a 404", "503"),
    ("unreachable for 31 days, to retry now", "503"),
]

# For how long files and other answers are fresh differs: of these, each age is beyond any
# lifetime that does not last as long as the crawl.
_IN_OUTAGE: dict[str, CacheEntry] = {
    "a file, an hour old": _known(200, _HOUR, since=_MINUTE),
    "a file, 8 days old": _known(200, 8 * _DAY, since=_DAY),
    "a file, 32 days old; unreachable for 31 days": _known(200, 32 * _DAY, since=31 * _DAY),
    "a 404, 8 days old": _known(404, 8 * _DAY, since=_DAY),
    "nothing; unreachable for a day": _known(since=_DAY),
    "nothing; unreachable for 31 days": _known(since=31 * _DAY),
}

_UNREACHABLE = {
    WhenUnreachable.DISALLOW: "refused",
    WhenUnreachable.DEFER: "held",
    WhenUnreachable.ALLOW: "allowed",
}

_REQUESTS = {
    None: "wait for a fetch",
    Access.SUCCESSFUL: "by the file",
    Access.UNAVAILABLE: "allowed",
    Access.UNREACHABLE: "refused",
    Access.DISALLOWED: "refused",
}


def _now(entry: CacheEntry | None, age: float = 0.0) -> Evaluation:
    return evaluate(entry, RFC9309, None, Bounds(), _NOW + age)


def _after(known: str, result: str) -> CacheEntry:
    found = _RESULTS[result]
    access = access_result(found, RFC9309)
    return update(_KNOWN[known], _ORIGIN, found, access, _NOW, conditional=result == "304")


def _fetch(evaluation: Evaluation) -> str:
    if not evaluation.due:
        return "no"
    return "at once" if evaluation.access is None else "in the background"


def _in_short(evaluation: Evaluation) -> str:
    refreshed = evaluation.due and evaluation.access is not None
    requests = _REQUESTS[evaluation.access] + (", fetched in the background" if refreshed else "")
    return f"**{evaluation.freshness.value}**: {requests}"


def now() -> Iterator[list[str]]:
    """What is known, and what that lets a crawler do."""
    yield ["known", "freshness", "requests", "fetch"]
    for known, entry in _KNOWN.items():
        evaluation = _now(entry)
        requests = _REQUESTS[evaluation.access]
        yield [known, f"**{evaluation.freshness.value}**", requests, _fetch(evaluation)]


def after() -> Iterator[list[str]]:
    """What is known, and where an origin stands after one more fetch."""
    yield ["known, then fetched:", *_RESULTS]
    for known in _KNOWN:
        yield [known, *(_in_short(_now(_after(known, result))) for result in _RESULTS)]


def later() -> Iterator[list[str]]:
    """What is known and was fetched, and where an origin stands after that."""
    yield ["after", *_AGES]
    for known, result in _LATER:
        entry = _after(known, result)
        cells = [_in_short(_now(entry, age)) for age in _AGES.values()]
        yield [f"{known}, then {result}", *cells]


def outage() -> Iterator[list[str]]:
    """What is known while a robots.txt is unreachable, and what requests may do."""
    yield ["known", *(f"``{name}``" for name in DIALECTS)]
    for known, entry in _IN_OUTAGE.items():
        cells = []
        for dialect in DIALECTS.values():
            access = evaluate(entry, dialect, None, Bounds(), _NOW).access
            unreachable = access is Access.UNREACHABLE
            cells.append(
                _UNREACHABLE[dialect.when_unreachable] if unreachable else _REQUESTS[access]
            )
        yield [known, *cells]


_TABLES = {"now": now, "after": after, "later": later, "outage": outage}


class StateTable(SphinxDirective):
    """One of the tables."""

    required_arguments = 1

    # Nodes of docutils, which has no types of its own.
    def run(self) -> list[Any]:
        """Called by docutils."""
        rows = _TABLES.get(self.arguments[0])
        if rows is None:
            raise self.error(f"state-table takes one of: {', '.join(_TABLES)}")
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for first, *rest in rows():
            lines.append(f"   * - {first}")
            lines += [f"     - {cell}" for cell in rest]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_directive("state-table", StateTable)
    return {"version": "1", "parallel_read_safe": True}
