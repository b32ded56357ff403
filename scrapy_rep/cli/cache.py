"""``scrapy robots cache``: look at and manage the store of robots.txt policies."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from ..policies.cache import PolicyCache, steady
from ..rep.caching.access import FetchResult
from ..rep.caching.cache_entry import CacheEntry, StoredResponse
from ..rep.caching.freshness import Freshness
from ..rep.parsing.urls import Origin
from ..rep.text import plural, printable, span
from ..settings import RepSettings
from ..stores.base import Store, time_of
from ..stores.open import open_store
from .crawling import with_crawler
from .errors import FAILED, FINE, WRONG, CommandError
from .options import Options, Settings, Subcommand, argument, format_of, subcommand
from .output import Column, Cut, Printer, Records, Style, Table, iso, write_json
from .sources import origin_of
from .store import DUE, OriginState, read_states, sorted_origins, state_of, store_place, use_store

_STYLES = {
    Freshness.FRESH.value: Style.GOOD,
    DUE: Style.GOOD,
    Freshness.STALE.value: Style.DOUBTFUL,
    Freshness.OUTAGE.value: Style.DOUBTFUL,
    Freshness.REFUSED.value: Style.BAD,
    Freshness.GIVEN_UP.value: Style.BAD,
}
_COLUMNS = (
    Column("origin", cut=Cut.MIDDLE),
    Column("freshness", styled=True),
    Column("access", width=11),
    Column("status", right=True),
    Column("age", right=True, width=7),
    Column("left", right=True, width=7),
    Column("bytes", right=True, width=9),
)
# So many origins are in memory at a time.
_PORTION = 1000
# The width of the labels of "show".
_LABEL = 15
# Files with more lines are not compared line by line, because that takes long.
_MOST_COMPARED = 2000
_HEADLINES = {
    "new": "cached now",
    "confirmed": "confirmed by the server, not changed",
    "same": "fetched again, not changed",
    "changed": "fetched again, and changed",
    "unreachable": "unreachable",
}
_HELP = "a URL of the site, or its host"
_ORIGIN = argument("origin", metavar="ORIGIN", help=_HELP)


@subcommand("[options]", "print where the store is", format_of())
def path(options: Options, scrapy_settings: Settings) -> int:
    """Prints the file or the URL of the store, whether or not it exists yet.

    Exit codes: 0 done, 2 error

    Examples:
      scrapy robots cache path
      ls -l $(scrapy robots cache path)
    """
    place = store_place(RepSettings.read(scrapy_settings))
    if options.format == "json":
        write_json({"path": place})
    else:
        Printer().line(place)
    return FINE


@subcommand("[options]", "list cached origins", format_of("csv"))
def list_(options: Options, scrapy_settings: Settings) -> int:
    """Lists cached origins by host, and what they mean for a crawl that begins now.

    Exit codes: 0 done, 2 error

    Examples:
      scrapy robots cache list
      scrapy robots cache list --format csv > cache.csv
      scrapy robots cache list -s REP_STORE=sqlite:///crawls/robots.sqlite
    """
    settings = RepSettings.read(scrapy_settings)
    records = None
    if options.format != "text":
        records = Records(options.format, [column.title for column in _COLUMNS])

    async def write_all(store: Store) -> int:
        now = time.time()
        origins = await sorted_origins(store)
        widest = max((len(str(origin)) for origin in origins), default=0)
        table = Table(Printer(), (_COLUMNS[0]._replace(width=widest), *_COLUMNS[1:]))
        for start in range(0, len(origins), _PORTION):
            portion = origins[start : start + _PORTION]
            states = [state async for state in read_states(store, portion, settings, now)]
            if records is None:
                rows = [list(_texts(state).values()) for state in states]
                table.write(rows, [_STYLES[state.freshness] for state in states])
            else:
                records.write(*map(_summary, states))
        return len(origins)

    if not use_store(settings, write_all) and records is None:
        sys.stderr.write(f"Nothing is cached: {store_place(settings)}\n")
    return FINE


def _summary(state: OriginState) -> dict[str, Any]:
    """The main points, as JSON, by the titles of the columns."""
    return {
        "origin": str(state.entry.origin),
        "freshness": state.freshness,
        "access": state.access,
        "status": state.entry.last.status,
        "age": round(state.age, 3),
        "left": None if state.left is None else round(state.left, 3),
        "bytes": state.size,
    }


def _texts(state: OriginState) -> dict[str, str]:
    """The same for people."""
    values = _summary(state) | {"age": span(state.age), "left": span(state.left)}
    return {name: "-" if value is None else printable(str(value)) for name, value in values.items()}


@subcommand("ORIGIN [options]", "show the cache entry of one origin", _ORIGIN, format_of())
def show(options: Options, scrapy_settings: Settings) -> int:
    """Shows the cache entry of one origin: its robots.txt, how it was answered, when,
    and for how long a crawl uses it.

    Exit codes: 0 done, 1 not cached, 2 error

    Examples:
      scrapy robots cache show example.com
      scrapy robots cache show http://127.0.0.1:8000
      scrapy robots cache show --json example.com
    """
    settings = RepSettings.read(scrapy_settings)
    origin = origin_of(options.origin)
    entry = use_store(settings, lambda store: store.read(origin))
    if entry is None:
        return _not_cached(origin)
    state = state_of(entry, settings, time.time())
    if options.format == "json":
        write_json(everything(state))
        return FINE
    printer = Printer()
    printer.line(printer.styled(printable(str(origin)), Style.BOLD))
    for label, text in _fields(state):
        printer.field(label, text, _STYLES[text] if label == "freshness" else None, _LABEL)
    show_file(state, printer)
    return FINE


def _not_cached(origin: Origin) -> int:
    sys.stderr.write(f"Not cached: {printable(str(origin))}\n")
    return WRONG


def everything(state: OriginState) -> dict[str, Any]:
    """What ``show --json`` writes."""
    stored, outage = state.entry.stored, state.entry.outage
    value = _summary(state) | {"meaning": state.meaning, "copy": None, "outage": None}
    if stored is not None:
        value["copy"] = _result(stored.result) | {
            "fetched_at": iso(stored.fetched_at),
            "confirmed_at": iso(stored.confirmed_at),
            "lifetime": state.lifetime,
            "cut": stored.result.cut,
            "body": stored.result.body.decode("utf-8", "backslashreplace"),
        }
    if outage is not None and state.retry_at is not None:
        value["outage"] = _result(outage.result) | {
            "since": iso(outage.since),
            "last_at": iso(outage.last_at),
            "attempts": outage.attempts,
            "retry_at": iso(state.retry_at),
        }
    return value


def _result(result: FetchResult) -> dict[str, Any]:
    return {
        "url": result.url,
        "redirects": result.redirects,
        "status": result.status,
        "failure": result.failure.value if result.failure else None,
        "detail": result.detail,
        "headers": [list(field) for field in result.headers],
    }


def _fields(state: OriginState) -> Iterator[tuple[str, str]]:
    stored, outage, now = state.entry.stored, state.entry.outage, state.now
    yield "freshness", state.freshness
    yield "for a crawl", state.meaning
    if state.left:
        yield "until", _moment(state.end, now)
    if stored is not None:
        yield "copy", printable(stored.result.url)
        yield from _response(stored.result)
        yield "  bytes", f"{state.size}{', cut: there was more' if stored.result.cut else ''}"
        yield "  fetched", _moment(stored.fetched_at, now)
        yield "  confirmed", _moment(stored.confirmed_at, now)
        yield "  lifetime", "the crawl" if state.lifetime is None else span(state.lifetime)
    if outage is not None and state.retry_at is not None:
        yield "outage", printable(outage.result.url)
        yield from _response(outage.result)
        yield "  since", _moment(outage.since, now)
        yield "  last attempt", f"{_moment(outage.last_at, now)}, number {outage.attempts}"
        yield "  next attempt", f"from {_moment(state.retry_at, now)}"


def _response(result: FetchResult) -> Iterator[tuple[str, str]]:
    if result.redirects:
        yield "  redirects", str(result.redirects)
    yield "  answer", printable(result.detail) or f"status {result.status}"
    for name, value in result.headers:
        yield f"  {printable(name)}", printable(value)


def _moment(at: float, now: float) -> str:
    relative = f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"
    return f"{iso(at)} ({relative})"


def show_file(state: OriginState, printer: Printer) -> None:
    """Write the lines of the copy with their numbers."""
    lines = state.lines()
    if not lines:
        return
    printer.line()
    width = len(str(len(lines)))
    for count, line in enumerate(lines, 1):
        printer.line(f"{printer.styled(str(count).rjust(width), Style.FAINT)}  {line}".rstrip())
    if (state.size or 0) > state.settings.max_size:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


@subcommand("ORIGIN [options]", "fetch the robots.txt of one origin now", _ORIGIN, format_of())
def refresh(options: Options, scrapy_settings: Settings) -> int:
    """Fetches the robots.txt of one origin now, stores it, and shows what has changed.

    Exit codes: 0 done, 2 error or robots.txt unreachable

    Examples:
      scrapy robots cache refresh example.com
      scrapy robots cache refresh --json example.com
      scrapy robots cache refresh -L DEBUG example.com
    """
    settings = RepSettings.read(scrapy_settings)
    place, origin = store_place(settings), origin_of(options.origin)
    old, new, stored = with_crawler(
        scrapy_settings, lambda crawler: _fetch(origin, crawler), {}, "WARNING"
    )
    outcome = "unreachable"
    if new.stored is not None and new.outage is None:
        outcome = outcome_of(old.stored if old else None, new.stored)
    at = time.time()
    before = state_of(old, settings, at) if old else None
    now = state_of(new, settings, at)
    if options.format == "json":
        states = {"before": _summary(before) if before else None, "now": _summary(now)}
        write_json({"outcome": outcome} | states)
    else:
        _show_change(before, now, outcome, Printer())
    if not stored:
        raise CommandError(f"{place}: the outcome could not be stored")
    return FAILED if outcome == "unreachable" else FINE


async def _fetch(origin: Origin, crawler: Crawler) -> tuple[CacheEntry | None, CacheEntry, bool]:
    """Fetch the robots.txt of *origin* now, whatever the store has.

    Returns the entry before, the one now, and whether the store has that.
    """
    settings = RepSettings.read(crawler.settings)
    store = open_store(settings.store, settings.max_origins)
    try:
        cache = PolicyCache(crawler, settings, steady())
        before = await store.read(origin)
        policy = await cache.revalidate(origin, Request(origin.robots_url))
        stored = await store.read(origin)
    finally:
        await store.close()
    # Another process may have written a later entry.
    is_stored = stored is not None and time_of(stored) >= time_of(policy.entry)
    return before, policy.entry, is_stored


def outcome_of(old: StoredResponse | None, new: StoredResponse) -> str:
    """What a refresh that got *new* did to *old*: a key of the headlines."""
    if old is None:
        return "new"
    if new.fetched_at < new.confirmed_at:
        return "confirmed"
    is_same = (old.result.status, old.result.body) == (new.result.status, new.result.body)
    return "same" if is_same else "changed"


def _show_change(
    before: OriginState | None, now: OriginState, outcome: str, printer: Printer
) -> None:
    printer.line(f"{printable(str(now.entry.origin))}: {_HEADLINES[outcome]}")
    old, new = _compared(before) if before else {}, _compared(now)
    for label in ("freshness", "access", "answer", "url", "bytes", "left"):
        was, text = old.get(label, "-"), new[label]
        printer.line(f"  {label:<9} {text}" if was == text else f"  {label:<9} {was} -> {text}")
    printer.line(f"  for a crawl: {now.meaning}")
    show_difference(before.lines() if before else [], now.lines(), printer)


def _compared(state: OriginState) -> dict[str, str]:
    last = state.entry.last
    return _texts(state) | {"answer": printable(last.detail) or "-", "url": printable(last.url)}


def show_difference(before: list[str], now: list[str], printer: Printer) -> None:
    """Write the lines that came and went."""
    if before == now:
        return
    printer.line()
    if max(len(before), len(now)) > _MOST_COMPARED:
        printer.line(f"{len(before)} lines before, {len(now)} now")
        return
    styles = {"-": Style.BAD, "+": Style.GOOD}
    for line in difflib.unified_diff(before, now, "before", "now", lineterm=""):
        printer.line(printer.styled(line, styles.get(line[:1])))


@subcommand(
    "[ORIGIN] [options]",
    "delete one origin, or all",
    argument("origin", metavar="ORIGIN", nargs="?", help=_HELP),
    format_of(),
    argument("--yes", action="store_true", help="do not ask before deleting all"),
)
def clear(options: Options, scrapy_settings: Settings) -> int:
    """Deletes one origin or, without ORIGIN, all of them. The next crawl fetches their
    robots.txt again. Running crawls keep what they have in memory.

    Exit codes: 0 done, 1 not cached or you said no, 2 error

    Examples:
      scrapy robots cache clear example.com
      scrapy robots cache clear
      scrapy robots cache clear --yes
    """
    settings = RepSettings.read(scrapy_settings)
    origin = None
    if options.origin is not None:
        origin = origin_of(options.origin)
        deleted = int(use_store(settings, lambda store: store.delete(origin)) or 0)
    elif options.yes or _confirmed(settings):
        deleted = use_store(settings, lambda store: store.clear()) or 0
    else:
        sys.stderr.write("Nothing was deleted\n")
        return WRONG
    if options.format == "json":
        write_json({"deleted": deleted})
    else:
        Printer().line(f"{plural(deleted, 'origin')} deleted")
    return _not_cached(origin) if origin is not None and not deleted else FINE


def _confirmed(settings: RepSettings) -> bool:
    """Whether the user agrees to delete all. Raises :exc:`CommandError` without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError("this would delete all origins: add --yes, or name one origin")
    origins = plural(len(use_store(settings, sorted_origins) or ()), "origin")
    sys.stderr.write(f"Delete all {origins} in {store_place(settings)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


cache = Subcommand(
    "cache",
    "<list|show|refresh|clear|path> [options]",
    "look at and manage the store of robots.txt policies",
    """\
Looks at and manages the store of robots.txt policies (REP_STORE), even while
crawls run. Another store: -s REP_STORE=sqlite:///path/of/the.file, or the URL
of a Redis.""",
    """\
  scrapy robots cache list
  scrapy robots cache show example.com
  scrapy robots cache clear --yes""",
    subcommands=(list_, show, refresh, clear, path),
)
