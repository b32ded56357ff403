"""``scrapy robots cache``: look at and manage the store of robots.txt policies."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.cache_refresh import refresh, show_change
from scrapy_rep.cli.crawling import with_crawler
from scrapy_rep.cli.errors import FAILED, FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand, SubcommandGroup
from scrapy_rep.cli.output import (
    Column,
    Cut,
    Printer,
    Records,
    Style,
    Table,
    iso,
    number,
    span,
    write_json,
)
from scrapy_rep.cli.sources import origin_of
from scrapy_rep.cli.store import DUE, NewCrawl, OriginState, sorted_origins, store_place, use_store
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import Freshness
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store

_STYLES = {
    Freshness.FRESH.value: Style.GOOD,
    DUE: Style.GOOD,
    Freshness.STALE.value: Style.DOUBTFUL,
    Freshness.OUTAGE.value: Style.DOUBTFUL,
    Freshness.REFUSED.value: Style.BAD,
    Freshness.GIVEN_UP.value: Style.BAD,
}
_COLUMNS = (
    Column("origin"),
    Column("standing", width=8),
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


# -- path, list and show -------------------------------------------------------------


def _path(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    place = store_place(RepSettings.read(scrapy_settings))
    if options.format == "json":
        write_json({"path": place})
    else:
        Printer(sys.stdout).line(place)
    return FINE


def _list(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    settings = RepSettings.read(scrapy_settings)
    titles = [column.title for column in _COLUMNS]
    records = None
    if options.format != "text":
        records = Records(options.format, titles)

    async def write_all(store: Store) -> int:
        crawl = NewCrawl(settings, time.time())
        origins = await sorted_origins(store)
        widest = max((len(str(origin)) for origin in origins), default=0)
        origin = Column("origin", cut=Cut.MIDDLE, width=widest)
        table = Table(Printer(sys.stdout), (origin, *_COLUMNS[1:]), styled=1)
        for start in range(0, len(origins), _PORTION):
            portion = origins[start : start + _PORTION]
            states = [state async for state in crawl.states(store, portion)]
            if records is None:
                table.write(list(map(_cells, states)), [_STYLES[each.standing] for each in states])
            else:
                for state in states:
                    records.write(state.summary())
        return len(origins)

    if not use_store(settings, write_all, 0) and records is None:
        sys.stderr.write(f"Nothing is cached: {store_place(settings)}\n")
    return FINE


def _cells(state: OriginState) -> list[str]:
    return [
        state.origin,
        state.standing,
        state.access or "-",
        "-" if state.entry.last.status is None else str(state.entry.last.status),
        span(state.age),
        span(state.left),
        "-" if state.size is None else str(state.size),
    ]


def _show(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    settings = RepSettings.read(scrapy_settings)
    origin = origin_of(options.origin)
    nothing: CacheEntry | None = None
    entry = use_store(settings, lambda store: store.read(origin), nothing)
    if entry is None:
        return _not_cached(origin)
    state = NewCrawl(settings, time.time()).state(entry)
    if options.format == "json":
        write_json(state.everything())
        return FINE
    printer = Printer(sys.stdout)
    printer.line(printer.styled(state.origin, Style.BOLD))
    for label, text in _fields(state):
        printer.field(label, text, _STYLES[text] if label == "standing" else None, _LABEL)
    _show_file(state, printer)
    return FINE


def _not_cached(origin: Origin) -> int:
    sys.stderr.write(f"Not cached: {printable(str(origin))}\n")
    return WRONG


def _fields(state: OriginState) -> Iterator[tuple[str, str]]:
    now = state.crawl.now
    yield "standing", state.standing
    yield "for a crawl", state.meaning
    if state.left:
        yield "until", _moment(state.end, now)
    copy, outage = state.entry.copy, state.entry.outage
    if copy is not None:
        yield "copy", printable(copy.result.url)
        yield from _response(copy.result)
        yield "  bytes", f"{state.size}{', cut: there was more' if copy.result.cut else ''}"
        yield "  fetched", _moment(copy.fetched_at, now)
        yield "  confirmed", _moment(copy.confirmed_at, now)
        yield "  lifetime", "the crawl" if state.lifetime is None else span(state.lifetime)
    if outage is not None:
        yield "outage", printable(outage.result.url)
        yield from _response(outage.result)
        yield "  since", _moment(outage.since, now)
        yield "  last attempt", f"{_moment(outage.last_at, now)}, number {outage.attempts}"
        yield "  next attempt", f"from {_moment(state.retry_at or now, now)}"


def _response(result: FetchResult) -> Iterator[tuple[str, str]]:
    if result.redirects:
        yield "  redirects", str(result.redirects)
    yield "  answer", printable(result.detail) or f"status {result.status}"
    for name, value in result.headers:
        yield f"  {printable(name)}", printable(value)


def _moment(at: float, now: float) -> str:
    relative = f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"
    return f"{iso(at)} ({relative})"


def _show_file(state: OriginState, printer: Printer) -> None:
    lines = state.lines()
    if not lines:
        return
    printer.line()
    width = len(str(len(lines)))
    for count, line in enumerate(lines, 1):
        printer.line(f"{printer.styled(str(count).rjust(width), Style.FAINT)}  {line}".rstrip())
    if (state.size or 0) > state.crawl.settings.max_size:
        printer.line("The rest of the file is not read (REP_MAX_SIZE).")


# -- refresh -------------------------------------------------------------------------


def _refresh(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    settings = RepSettings.read(scrapy_settings)
    place, origin = store_place(settings), origin_of(options.origin)
    refreshed = with_crawler(
        scrapy_settings, lambda crawler: refresh(origin, crawler), {}, "WARNING"
    )
    crawl = NewCrawl(settings, time.time())
    before = crawl.state(refreshed.before) if refreshed.before else None
    now = crawl.state(refreshed.now)
    if options.format == "json":
        states = {"before": before.summary() if before else None, "now": now.summary()}
        write_json({"outcome": refreshed.outcome} | states)
    else:
        show_change(before, now, refreshed.outcome, Printer(sys.stdout))
    if not refreshed.kept:
        raise CommandError(f"{place}: the outcome could not be stored")
    return FAILED if refreshed.outcome == "unreachable" else FINE


# -- clear ---------------------------------------------------------------------------


def _clear(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    settings = RepSettings.read(scrapy_settings)
    if options.origin is not None:
        origin = origin_of(options.origin)
        deleted = int(use_store(settings, lambda store: store.delete(origin), False))
    else:
        origin = None
        if not options.yes and not _confirmed(settings):
            sys.stderr.write("Nothing was deleted\n")
            return WRONG
        deleted = use_store(settings, lambda store: store.clear(), 0)
    if options.format == "json":
        write_json({"deleted": deleted})
    else:
        Printer(sys.stdout).line(f"{number(deleted, 'origin')} deleted")
    return _not_cached(origin) if origin is not None and not deleted else FINE


def _confirmed(settings: RepSettings) -> bool:
    """Whether the user agrees to delete all. Raises :exc:`CommandError` without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError("this would delete all origins: add --yes, or name one origin")

    async def count(store: Store) -> int:
        return sum([1 async for _ in store.origins()])

    origins = number(use_store(settings, count, 0), "origin")
    sys.stderr.write(f"Delete all {origins} in {store_place(settings)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# -- options -------------------------------------------------------------------------


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    common.add_json(parser, "csv")


def _add_origin(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "origin", metavar="ORIGIN", nargs=nargs, help="a URL of the site, or its host"
    )
    common.add_json(parser)


def _add_clear_options(parser: argparse.ArgumentParser) -> None:
    _add_origin(parser, "?")
    parser.add_argument("--yes", action="store_true", help="do not ask before deleting all")


CACHE = SubcommandGroup(
    "cache",
    "look at and manage the store of robots.txt policies",
    """\
Looks at and manages the store of robots.txt policies (REP_STORE), even while
crawls run. Another store: -s REP_STORE=sqlite:///path/of/the.file, or the URL
of a Redis.""",
    (
        Subcommand(
            "list",
            "[options]",
            "list cached origins",
            """\
Lists cached origins by host, and what they mean for a crawl that begins now.

Exit codes: 0 done, 2 error""",
            _add_list_options,
            _list,
            """\
  scrapy robots cache list
  scrapy robots cache list --format csv > cache.csv
  scrapy robots cache list -s REP_STORE=sqlite:///crawls/robots.sqlite""",
        ),
        Subcommand(
            "show",
            "ORIGIN [options]",
            "show the cache entry of one origin",
            """\
Shows the cache entry of one origin: its robots.txt, how it was answered, when,
and for how long a crawl uses it.

Exit codes: 0 done, 1 not cached, 2 error""",
            _add_origin,
            _show,
            """\
  scrapy robots cache show example.com
  scrapy robots cache show http://127.0.0.1:8000
  scrapy robots cache show --json example.com""",
        ),
        Subcommand(
            "refresh",
            "ORIGIN [options]",
            "fetch the robots.txt of one origin now",
            """\
Fetches the robots.txt of one origin now, stores it, and shows what has changed.

Exit codes: 0 done, 2 error or robots.txt unreachable""",
            _add_origin,
            _refresh,
            """\
  scrapy robots cache refresh example.com
  scrapy robots cache refresh --json example.com
  scrapy robots cache refresh -L DEBUG example.com""",
        ),
        Subcommand(
            "clear",
            "[ORIGIN] [options]",
            "delete one origin, or all",
            """\
Deletes one origin or, without ORIGIN, all of them. The next crawl fetches their
robots.txt again. Running crawls keep what they have in memory.

Exit codes: 0 done, 1 not cached or you said no, 2 error""",
            _add_clear_options,
            _clear,
            """\
  scrapy robots cache clear example.com
  scrapy robots cache clear
  scrapy robots cache clear --yes""",
        ),
        Subcommand(
            "path",
            "[options]",
            "print where the store is",
            """\
Prints the file or the URL of the store, whether or not it exists yet.

Exit codes: 0 done, 2 error""",
            common.add_json,
            _path,
            """\
  scrapy robots cache path
  ls -l $(scrapy robots cache path)""",
        ),
    ),
    """\
  scrapy robots cache list
  scrapy robots cache show example.com
  scrapy robots cache clear --yes""",
)
