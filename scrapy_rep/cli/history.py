"""``scrapy robots history``: when a robots.txt changed, and by how much."""

from __future__ import annotations

import argparse
import difflib
from itertools import zip_longest
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.cli.errors import FINE, WRONG
from scrapy_rep.cli.options import DIALECT, argument, format_of, subcommand
from scrapy_rep.cli.output import Column, Cut, Printer, Records, Table, iso, write_json
from scrapy_rep.cli.sources import Session, origin_of
from scrapy_rep.cli.store import Version, versions_in_store
from scrapy_rep.evidence.changes import Changes, changes
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.text import printable

_COLUMNS = (
    Column("version", right=True),
    *(Column("fetched"), Column("last seen")),
    *(Column(title, right=True) for title in ("status", "bytes", "added", "removed")),
    Column("change", cut=Cut.END),
)
_FIELDS = ("number", "fetched_at", "confirmed_at", "status", "size", "added", "removed", "changed")
_ORIGIN = argument("origin", metavar="URL", help="a URL of the site, or its host")
_SUMMARY = "list when a robots.txt changed, and by how much"


@subcommand("URL [options]", _SUMMARY, _ORIGIN, DIALECT, format_of("csv"))
def history(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Lists the versions of a robots.txt in the store (see REP_HISTORY), newest first,
    and whether each one changed anything for any crawler.

    Exit codes: 0 done, 1 not cached, 2 error

    Examples:
      scrapy robots history https://example.com
      scrapy robots history --format csv example.com
      scrapy robots history --json example.com
    """
    session = Session.of(options, settings)
    origin = origin_of(options.origin)
    versions = versions_in_store(session, origin)
    rows = [_row(*pair) for pair in zip_longest(versions, versions[1:])]
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


def _row(version: Version, before: Version | None) -> dict[str, Any]:
    stored, result = version.stored, version.stored.result
    added = removed = changed = None
    if before is not None:
        added, removed = _line_counts(before, version)
        changed = _meaning(changes(before.robots, version.robots))
        if before.stored.result.status != result.status:
            changed = f"status {before.stored.result.status} before"
    known = (version.number, stored.fetched_at, stored.confirmed_at, result.status)
    values = (*known, len(result.body), added, removed, changed)
    return dict(zip(_FIELDS, values, strict=True))


def _line_counts(old: Version, new: Version) -> tuple[int, int]:
    """How many lines came, and how many went."""
    before, after = (split_lines(each.robots.body, each.robots.dialect) for each in (old, new))
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
