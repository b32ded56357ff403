"""``scrapy robots history``: when a robots.txt changed, and by how much."""

from __future__ import annotations

import argparse
import difflib
import sys
from itertools import zip_longest
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, WRONG
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Column, Cut, Printer, Records, Table, iso, write_json
from scrapy_rep.cli.sources import Session, origin_of
from scrapy_rep.cli.store import Version, versions_in_store
from scrapy_rep.evidence.changes import Changes, changes
from scrapy_rep.rep.parsing.lines import split_lines
from scrapy_rep.rep.text import printable

_COLUMNS = (
    Column("version", right=True),
    Column("fetched"),
    Column("last seen"),
    Column("status", right=True),
    Column("bytes", right=True),
    Column("added", right=True),
    Column("removed", right=True),
    Column("change", cut=Cut.END),
)
_NAMES = ("number", "fetched_at", "confirmed_at", "status", "size", "added", "removed", "changed")

_DESCRIPTION = """\
Lists the versions of a robots.txt in the store (see REP_HISTORY), newest first,
and whether each one changed anything for any crawler.

Exit codes: 0 done, 1 not cached, 2 error"""
_EXAMPLES = """\
  scrapy robots history https://example.com
  scrapy robots history --format csv example.com
  scrapy robots history --json example.com"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("origin", metavar="URL", help="a URL of the site, or its host")
    common.add(parser, "--dialect")
    common.add_json(parser, "csv")


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    session = Session.of(options, settings)
    origin = origin_of(options.origin)
    versions = versions_in_store(session, origin)
    rows = [_row(*pair) for pair in zip_longest(versions, versions[1:])]
    name = printable(str(origin))
    if options.format == "json":
        write_json({"origin": name, "versions": rows})
    elif options.format == "csv":
        records = Records("csv", _NAMES)
        for row in rows:
            records.write(row)
    elif not rows:
        Printer(sys.stdout).line(f"Not cached: {name}")
    else:
        Table(Printer(sys.stdout), _COLUMNS).write([_cells(row) for row in rows])
    return FINE if rows else WRONG


def _row(version: Version, before: Version | None) -> dict[str, Any]:
    stored, result = version.stored, version.stored.result
    added = removed = changed = None
    if before is not None:
        added, removed = _line_counts(before, version)
        changed = _meaning(changes(before.robots, version.robots))
        if before.stored.result.status != result.status:
            changed = f"status {before.stored.result.status} before"
    values = (
        version.number,
        stored.fetched_at,
        stored.confirmed_at,
        result.status,
        len(result.body),
    )
    return dict(zip(_NAMES, (*values, added, removed, changed), strict=True))


def _line_counts(old: Version, new: Version) -> tuple[int, int]:
    """How many lines came, and how many went."""
    before, after = (split_lines(each.robots.body, each.robots.dialect) for each in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return len(after) - same, len(before) - same


def _meaning(found: Changes) -> str:
    if found.is_nothing:
        return "nothing"
    parts = []
    if any(change.lost for change in found.agents):
        parts.append("access lost")
    if any(change.gained for change in found.agents):
        parts.append("access gained")
    if found.records_added or found.records_removed:
        parts.append("other records")
    if found.ai_agents_added or found.ai_agents_removed:
        parts.append("AI agents")
    return ", ".join(parts) or "other rules"


def _cells(row: dict[str, Any]) -> list[str]:
    times = {name: iso(row[name]) for name in ("fetched_at", "confirmed_at")}
    return ["-" if value is None else str(value) for value in (row | times).values()]


HISTORY = Subcommand(
    "history",
    "URL [options]",
    "list when a robots.txt changed, and by how much",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
