"""``scrapy robots history``: when a robots.txt changed, and by how much."""

from __future__ import annotations

import difflib
from itertools import zip_longest
from typing import Any

from ..evidence.changes import Changes, changes
from ..rep.caching.cache_entry import StoredResponse
from ..rep.parsing.lines import split_lines
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.text import printable
from .errors import FINE, WRONG
from .options import DIALECT, Options, Settings, argument, format_of, subcommand
from .output import Column, Cut, Printer, Records, Table, iso, write_json
from .sources import Session, origin_of
from .store import versions_in_store

_COLUMNS = (
    Column("version", right=True),
    *(Column("fetched"), Column("last seen")),
    *(Column(title, right=True) for title in ("status", "bytes", "added", "removed")),
    Column("change", cut=Cut.END),
)
_FIELDS = ("number", "fetched_at", "confirmed_at", "status", "size", "added", "removed", "changed")
_ORIGIN = argument("origin", metavar="URL", help="a URL of the site, or its host")
_Version = tuple[StoredResponse, RobotsTxt]
_SUMMARY = "list when a robots.txt changed, and by how much"


@subcommand("URL [options]", _SUMMARY, _ORIGIN, DIALECT, format_of("csv"))
def history(options: Options, settings: Settings) -> int:
    """Lists the versions of a robots.txt in the store (see REP_HISTORY), newest first,
    and whether each one changed anything for any crawler.

    Exit codes: 0 done, 1 not cached, 2 error

    Examples:
      scrapy robots history https://example.com
      scrapy robots history --format csv example.com
      scrapy robots history --json example.com
    """
    session = Session(options, settings)
    origin = origin_of(options.origin)
    versions = versions_in_store(session, origin)
    pairs = zip_longest(versions, versions[1:])
    rows = [_row(number, *pair) for number, pair in enumerate(pairs, 1)]
    name = printable(str(origin))
    if options.format == "json":
        write_json({"origin": name, "versions": rows})
    elif options.format == "csv":
        Records("csv", _FIELDS).write(*rows)
    elif rows:
        Table(Printer(), _COLUMNS).write([_cells(row) for row in rows])
    else:
        Printer().line(f"Not cached: {name}")
    return FINE if rows else WRONG


def _row(number: int, version: _Version, before: _Version | None) -> dict[str, Any]:
    stored, robots = version
    status = stored.result.status
    added = removed = changed = None
    if before is not None:
        added, removed = _line_counts(before[1], robots)
        changed = _meaning(changes(before[1], robots))
        if before[0].result.status != status:
            changed = f"status {before[0].result.status} before"
    size = len(stored.result.body)
    known = (number, stored.fetched_at, stored.confirmed_at, status, size)
    return dict(zip(_FIELDS, (*known, added, removed, changed), strict=True))


def _line_counts(old: RobotsTxt, new: RobotsTxt) -> tuple[int, int]:
    """How many lines came, and how many went."""
    before, after = (split_lines(each.body, each.dialect) for each in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return len(after) - same, len(before) - same


def _meaning(found: Changes) -> str:
    if found.is_nothing:
        return "nothing"
    parts = {
        "access lost": any(change.lost for change in found.agents),
        "access gained": any(change.gained for change in found.agents),
        "other records": found.records_added or found.records_removed,
        "AI agents": found.ai_agents_added or found.ai_agents_removed,
    }
    return ", ".join(part for part, is_there in parts.items() if is_there) or "other rules"


def _cells(row: dict[str, Any]) -> list[str]:
    times = {name: iso(row[name]) for name in ("fetched_at", "confirmed_at")}
    return ["-" if value is None else str(value) for value in (row | times).values()]
