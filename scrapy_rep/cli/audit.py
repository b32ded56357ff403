"""``scrapy robots audit verify``: whether an audit log follows from its archive."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.errors import FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand, SubcommandGroup
from scrapy_rep.cli.output import Printer, write_json
from scrapy_rep.rep.text import plural

if TYPE_CHECKING:
    from scrapy_rep.evidence.verify import Problem, Summary

_DESCRIPTION = """\
Checks an audit log (REP_AUDIT) against the archive of the same crawl
(REP_ARCHIVE), offline: the digests of all lines, and each fetch and decision
again. Without ARCHIVE, only the digests are checked.

Exit codes: 0 all lines follow, 1 some do not, 2 error"""
_EXAMPLES = """\
  scrapy robots audit verify audit/books.jsonl archive/
  scrapy robots audit verify audit/books.jsonl archive/ --digest 5f2d...
  scrapy robots audit verify audit/books.jsonl --unfinished"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="the audit log")
    parser.add_argument(
        "archive", metavar="ARCHIVE", nargs="?", help="the archive, or the directory that has it"
    )
    parser.add_argument("--digest", metavar="HEX", help="what the digest of the last line must be")
    parser.add_argument(
        "--unfinished", action="store_true", help="accept the log of a crawl that was killed"
    )
    common.add_json(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    try:
        from scrapy_rep.evidence.verify import Problem, Verifier
    except ImportError as error:
        message = f"this needs warcio ({error}): pip install warcio"
        raise CommandError(message) from None
    log_path = Path(options.log)
    archive_path = options.archive and _archive_file(Path(options.archive), log_path)
    opened = archive_path.open("rb") if archive_path else nullcontext()
    with opened as archive, log_path.open("rb") as log:
        verifier = Verifier(archive, settings, unfinished=options.unfinished)
        problems = list(verifier.check(log))
    summary = verifier.summary
    if options.digest and options.digest.lower() != summary.digest:
        problems.append(Problem(0, f"the digest of the last line is {summary.digest}"))
    if options.format == "json":
        listed = [{"line": each.number or None, "problem": each.what} for each in problems]
        write_json({"problems": listed, **asdict(summary)})
    else:
        _show(problems, summary)
    return WRONG if problems else FINE


def _archive_file(given: Path, log: Path) -> Path:
    """The file of the archive: *given*, or in that directory the one that *log* names."""
    if not given.is_dir():
        return given
    try:
        with log.open("rb") as lines:
            return given / Path(json.loads(lines.readline())["archive_file"]).name
    except (ValueError, LookupError, TypeError):
        raise CommandError("the first line of the log names no archive") from None


def _show(problems: list[Problem], summary: Summary) -> None:
    printer = Printer(sys.stdout)
    for problem in problems:
        where = f"line {problem.number:,}: " if problem.number else ""
        printer.line(f"{where}{problem.what}")
    fetches = f"{summary.fetches:,} {'fetch' if summary.fetches == 1 else 'fetches'}"
    parts = [plural(summary.lines, "line"), fetches]
    parts += [plural(summary.decisions, "decision"), f"{summary.recomputed:,} of them recomputed"]
    printer.line(", ".join(parts))
    found = plural(len(problems), "problem") if problems else "all lines follow"
    printer.line(f"{found}; the digest of the last line is {summary.digest}")


AUDIT = SubcommandGroup(
    "audit",
    "check the evidence that a crawl has left",
    _DESCRIPTION,
    (
        Subcommand(
            "verify",
            "LOG [ARCHIVE] [options]",
            "check an audit log against its archive, offline",
            _DESCRIPTION,
            _add_options,
            _run,
            _EXAMPLES,
        ),
    ),
    _EXAMPLES,
)
