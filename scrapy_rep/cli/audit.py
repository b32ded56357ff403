"""``scrapy robots audit verify``: whether an audit log follows from its archive."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from ..rep.text import plural
from .errors import FINE, WRONG, CommandError
from .options import Options, Settings, Subcommand, argument, format_of, subcommand
from .output import Printer, write_json

_ARGUMENTS = (
    argument("log", metavar="LOG", help="the audit log"),
    argument(
        "archive", metavar="ARCHIVE", nargs="?", help="the archive, or the directory that has it"
    ),
    argument("--digest", metavar="HEX", help="what the digest of the last line must be"),
    argument("--unfinished", action="store_true", help="accept the log of a crawl that was killed"),
    format_of(),
)
_SUMMARY = "check an audit log against its archive, offline"


@subcommand("LOG [ARCHIVE] [options]", _SUMMARY, *_ARGUMENTS)
def verify(options: Options, settings: Settings) -> int:
    """Checks an audit log (REP_AUDIT) against the archive of the same crawl
    (REP_ARCHIVE), offline: the digests of all lines, and each fetch and decision
    again. Without ARCHIVE, only the digests are checked.

    Exit codes: 0 all lines follow, 1 some do not, 2 error

    Examples:
      scrapy robots audit verify audit/books.jsonl archive/
      scrapy robots audit verify audit/books.jsonl archive/ --digest 5f2d...
      scrapy robots audit verify audit/books.jsonl --unfinished
    """
    try:
        from ..evidence.verify import Problem, Verifier
    except ImportError as error:
        message = f"this needs warcio ({error}): pip install warcio"
        raise CommandError(message) from None
    log_path = Path(options.log)
    archive_path = options.archive and _archive_file(Path(options.archive), log_path)
    opened = archive_path.open("rb") if archive_path else nullcontext()
    with opened as archive, log_path.open("rb") as log:
        verifier = Verifier(archive, settings, unfinished=options.unfinished)
        problems = list(verifier.check(log))
    found = verifier.summary
    if options.digest and options.digest.lower() != found.digest:
        problems.append(Problem(0, f"the digest of the last line is {found.digest}"))
    if options.format == "json":
        listed = [{"line": each.number or None, "problem": each.what} for each in problems]
        write_json({"problems": listed, **asdict(found)})
        return WRONG if problems else FINE
    printer = Printer()
    for problem in problems:
        printer.line(f"line {problem.number:,}: {problem.what}" if problem.number else problem.what)
    fetches = f"{found.fetches:,} {'fetch' if found.fetches == 1 else 'fetches'}"
    decisions = f"{plural(found.decisions, 'decision')}, {found.recomputed:,} of them recomputed"
    printer.line(f"{plural(found.lines, 'line')}, {fetches}, {decisions}")
    follows = plural(len(problems), "problem") if problems else "all lines follow"
    printer.line(f"{follows}; the digest of the last line is {found.digest}")
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


audit = Subcommand(
    "audit",
    "<verify> [options]",
    "check the evidence that a crawl has left",
    verify.description,
    verify.examples,
    subcommands=(verify,),
)
