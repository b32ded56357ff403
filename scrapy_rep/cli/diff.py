"""``scrapy robots diff``: what the change from one robots.txt to another changes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from ..evidence.changes import AgentChange, Changes, changes
from ..rep.parsing.lines import split_lines
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.text import listed, plural, printable
from .errors import FINE, WRONG, CommandError
from .options import AGENT, DIALECT, Options, Settings, argument, format_of, subcommand
from .output import Printer, Style, write_json
from .sources import STDIN, Session, absolute, is_url, lines_of_stdin, origin_of
from .store import versions_in_store

_ARGUMENTS = (
    argument("source", metavar="OLD|URL", help="a file, or a URL of the origin"),
    argument("others", metavar="NEW|A B", nargs="*", help="a file, or two numbers"),
    argument("--urls", metavar="FILE", help="URLs that are tried with both"),
    argument("--fail-on-change", action="store_true", help="exit with 1 if anything changes"),
    argument("--text", action="store_true", help="show the lines that differ, too"),
    *(AGENT, DIALECT, format_of()),
)


@subcommand("OLD NEW | URL [A B] [options]", "what a change of a robots.txt changes", *_ARGUMENTS)
def diff(options: Options, settings: Settings) -> int:
    """Shows what a change of a robots.txt changes: which agents gain or lose access,
    which records come or go, and which URLs get another answer. OLD and NEW are
    files. With a URL, A and B are versions in the store: see "history".

    Exit codes: 0 done, 1 something changes (with --fail-on-change), 2 error

    Examples:
      scrapy robots diff live.txt proposed.txt --urls urls.txt --fail-on-change
      scrapy robots diff https://example.com
      scrapy robots diff https://example.com 3 1 --urls audit/books.jsonl
    """
    session = Session(options, settings)
    old, new = _files(options, session)
    urls = list(_urls(options.urls)) if options.urls else []
    found = changes(old, new, urls, session.agents)
    if options.format == "json":
        fields = asdict(found)
        about = {"same_file": fields.pop("is_same_file"), "changed": not found.is_nothing}
        flips = {"urls": len(urls), "flips": fields.pop("flips")}
        write_json(about | fields | flips)
    else:
        _show(found, len(urls), session, Printer())
        if options.text:
            before, after = map(_printable_lines, (old, new))
            for line in difflib.unified_diff(before, after, "old", "new", lineterm=""):
                Printer().line(line)
    changed = not found.is_nothing or bool(found.flips)
    return WRONG if options.fail_on_change and changed else FINE


def _files(options: Options, session: Session) -> tuple[RobotsTxt, RobotsTxt]:
    """The old file and the new one."""
    if not is_url(options.source):
        if len(options.others) != 1:
            raise CommandError("two files, or a URL, are expected")
        old, new = (session.read_file(path).file for path in (options.source, *options.others))
        assert old is not None
        assert new is not None
        return old, new
    origin = origin_of(options.source)
    try:
        first, second = map(int, options.others or ("2", "1"))
    except ValueError:
        raise CommandError("A and B are numbers of versions") from None
    versions = dict(enumerate((robots for _, robots in versions_in_store(session, origin)), 1))
    for number in (first, second):
        if number not in versions:
            missing = f"version {number} of {printable(origin.robots_url)}"
            number_of = plural(len(versions), "version")
            raise CommandError(f"the store does not have {missing}, but {number_of}")
    return versions[first], versions[second]


def _urls(path: str) -> Iterator[str]:
    """The URLs in the file at *path*, once each, whether in lines or in an audit log."""
    if path == STDIN:
        lines: Iterable[str] = lines_of_stdin()
    else:
        try:
            lines = Path(path).read_text("utf-8", "backslashreplace").splitlines()
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from None
    yield from dict.fromkeys(filter(None, map(_url_of_line, lines)))


def _url_of_line(line: str) -> str | None:
    line = line.strip()
    if not line.startswith("{"):
        return absolute(line) if line else None
    try:
        url = json.loads(line).get("url")
    except ValueError:
        return None
    return url if isinstance(url, str) else None


def _printable_lines(file: RobotsTxt) -> list[str]:
    return [printable(line) for line in split_lines(file.body, file.dialect)]


def _show(found: Changes, tried: int, session: Session, printer: Printer) -> None:
    if found.is_same_file:
        printer.line("Nothing changes: it is the same file.")
    elif found.is_nothing:
        printer.line("Nothing changes: only comments, order or spelling are different.")
    for change in found.agents:
        _show_agents(change, printer)
    if found.ai_agents_added:
        printer.line(f"AI agents that are named now: {', '.join(found.ai_agents_added)}")
    if found.ai_agents_removed:
        printer.line(f"AI agents that are no longer named: {', '.join(found.ai_agents_removed)}")
    for text in found.records_added:
        printer.line(printer.styled(f"added: {text}", Style.GOOD))
    for text in found.records_removed:
        printer.line(printer.styled(f"removed: {text}", Style.BAD))
    if tried:
        flipped = f"{len(found.flips):,} of {plural(tried, 'URL')} flip"
        printer.line(f"{flipped} for {session.agent_names}")
    for flip in found.flips:
        word, style = ("allowed", Style.GOOD) if flip.allowed else ("refused", Style.BAD)
        printer.line(f"  {printer.styled(f'now {word}', style)}  {printable(flip.url, most=None)}")


def _show_agents(change: AgentChange, printer: Printer) -> None:
    names = listed(change.names)
    tried = f"{plural(change.tried, 'path')} that were tried"
    for verb, paths, style in (
        ("gained", change.gained, Style.GOOD),
        ("lost", change.lost, Style.BAD),
    ):
        if paths:
            said = printer.styled(f"{names} {verb} access", style)
            examples = change.examples(paths)
            printer.line(f"{said}: {len(paths):,} of {tried}, such as {examples}")
    if not (change.gained or change.lost):
        printer.line(f"{names}: other rules, but {tried} are as before")
