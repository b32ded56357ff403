"""``scrapy robots report``: the page of a report, made from a store."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..observers.report.file import NO_ROOM, ROOM, digest, read_file, takes
from ..observers.report.model import UNKNOWN, CrawlReport, Event, OriginReport
from ..rep.caching.access import FetchResult, access_result
from ..rep.dialects import Access
from ..rep.text import plural, printable, span
from ..settings import RepSettings
from ..stores.base import Store
from .errors import FINE, WRONG, CommandError
from .options import Options, Settings, argument, subcommand
from .output import Printer
from .store import OriginState, read_states, sorted_origins, store_place, use_store

_ARGUMENTS = (
    argument("store", metavar="STORE", nargs="?", help="store, or path of its file"),
    argument(
        "-o",
        "--output",
        metavar="FILE",
        default="robots.html",
        help="where to write the page; - is standard output (%(default)s by default)",
    ),
)


@subcommand("[STORE] [-o FILE] [options]", "write an HTML page about the store", *_ARGUMENTS)
def report(options: Options, scrapy_settings: Settings) -> int:
    """Writes an HTML page about all origins in the store: their robots.txt files, the
    mistakes in them, and when they were fetched. STORE is a value of REP_STORE or
    the path of a SQLite file (default: the store of the project). Needs Jinja2.

    Exit codes: 0 written, 1 the store is empty, 2 error

    Examples:
      scrapy robots report
      scrapy robots report sqlite:///crawls/robots.sqlite -o robots-monday.html
      scrapy robots report robots.sqlite -o - | gzip > robots.html.gz
    """
    try:
        from ..observers.report.facts import facts
        from ..observers.report.page import render, write_page
        from ..observers.report.previous import read_previous
    except ImportError as error:
        raise CommandError(f"the report needs Jinja2 ({error}): pip install jinja2") from None
    settings = _settings(options.store, scrapy_settings)
    place = printable(store_place(settings), most=None)
    found = use_store(settings, lambda store: read_report(store, f"Store {place}", settings))
    if found is None or not found.origins:
        sys.stderr.write(f"Nothing is cached: {place}\n")
        return WRONG
    found = replace(found, facts=facts(scrapy_settings, settings))
    if options.output == "-":
        # The page says that it is in UTF-8, so that does not depend on the terminal.
        for piece in render(found):
            sys.stdout.buffer.write(piece.encode())
        return FINE
    path = Path(options.output)
    if path.is_dir():
        raise CommandError(f"cannot write {options.output}: Is a directory")
    try:
        size = write_page(path, replace(found, previous=read_previous(path, found.subject)))
    except OSError as error:
        raise CommandError(f"cannot write {options.output}: {error.strerror or error}") from None
    written = f"{plural(len(found.origins), 'origin')}, {plural(size, 'byte')}"
    Printer().line(f"{printable(options.output, most=None)}: {written}")
    return FINE


def _settings(store: str | None, scrapy_settings: Settings) -> RepSettings:
    """Those of the project, with *store* as REP_STORE. It may be the path of a file."""
    if store is not None:
        is_file = "://" not in store and store not in ("memory", "sqlite")
        scrapy_settings = scrapy_settings.copy()
        scrapy_settings.set("REP_STORE", f"sqlite:///{store}" if is_file else store, "cmdline")
    return RepSettings.read(scrapy_settings)


async def read_report(store: Store, subject: str, settings: RepSettings) -> CrawlReport:
    """The report on all origins in *store*."""
    origins = await sorted_origins(store)
    limit, now = settings.max_origins, time.time()
    reports = []
    room = ROOM
    async for state in read_states(store, origins[:limit], settings, now):
        file = _file(state)
        fits = file is None or takes(file) <= room
        room -= takes(file) if file and fits else 0
        reports.append(_report(state, file if fits else None, () if fits else (NO_ROOM,)))
    left_out = f"Only the first {limit:,} of {len(origins):,} origins (REP_MAX_ORIGINS)."
    return CrawlReport(
        subject,
        now,
        tuple(reports),
        when_unreachable=settings.when_unreachable.value,
        notes=(left_out,) if len(origins) > limit else (),
    )


def _file(state: OriginState) -> FetchResult | None:
    """The robots.txt that is stored, whether or not it may still be used."""
    stored, settings = state.entry.stored, state.settings
    if stored is None:
        return None
    access = access_result(stored.result, settings.dialect, settings.status_overrides)
    return stored.result if access is Access.SUCCESSFUL else None


def _report(state: OriginState, file: FetchResult | None, notes: tuple[str, ...]) -> OriginReport:
    events = sorted(_events(state), key=lambda event: event.at)
    return OriginReport(
        origin=printable(str(state.entry.origin)),
        access=state.access or UNKNOWN,
        status=state.entry.last.status,
        details=list(_fields(state)),
        file=read_file(file, state.settings) if file else None,
        digest=digest(file) if file else "",
        outage=state.entry.outage,
        freshness=state.freshness,
        events=events,
        event_count=len(events),
        notes=notes,
    )


def _fields(state: OriginState) -> Iterator[tuple[str, str]]:
    yield "URL", printable(state.entry.last.url)
    yield "last answer", printable(state.entry.last.detail)
    yield "for a crawl", state.meaning
    if state.left:
        yield "for another", span(state.left)
    stored = state.entry.stored
    for name, value in stored.result.headers if stored else ():
        yield printable(name), printable(value)


def _events(state: OriginState) -> Iterator[Event]:
    stored, outage = state.entry.stored, state.entry.outage
    if stored is not None:
        yield Event(stored.fetched_at, printable(stored.result.detail))
        if stored.confirmed_at > stored.fetched_at:
            yield Event(stored.confirmed_at, "confirmed by the server")
    if outage is not None:
        yield Event(outage.since, "unreachable from then on", failed=True)
        if outage.attempts > 1:
            detail = printable(outage.result.detail)
            yield Event(outage.last_at, f"attempt {outage.attempts}: {detail}", failed=True)
