"""``scrapy robots cache``: look at and manage the store of robots.txt policies."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.cache_refresh import refresh, show_change
from scrapy_rep.cli.crawling import with_crawler
from scrapy_rep.cli.errors import FAILED, FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand, SubcommandGroup
from scrapy_rep.cli.output import Column, Printer, Style, Table, iso, number, span, write_json
from scrapy_rep.cli.sources import origin_of
from scrapy_rep.cli.store import DUE, NewCrawl, OriginState, sorted_origins, store_place, use_store
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import Freshness
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store

_T = TypeVar("_T")

_STYLES = {
    Freshness.FRESH.value: Style.GOOD,
    DUE: Style.GOOD,
    Freshness.STALE.value: Style.DOUBTFUL,
    Freshness.OUTAGE.value: Style.DOUBTFUL,
    Freshness.REFUSED.value: Style.BAD,
    Freshness.GIVEN_UP.value: Style.BAD,
}
# The columns of the list after the origin. Their widths are fixed, so that a line can be
# written before the next origin is read.
_COLUMNS = (
    Column("standing", 8),
    Column("access", 11),
    Column("status", 6, right=True),
    Column("age", 7, right=True),
    Column("left", 7, right=True),
    Column("bytes", 9, right=True),
)

_DESCRIPTION = """\
Looks at and manages what crawls remember of robots.txt: the store that the
setting REP_STORE names, by default rep/robots.sqlite in the data directory of
the project. Outside a project, that is .scrapy/rep/robots.sqlite below the
working directory. Another one: -s REP_STORE=sqlite:///path/of/the.file,
or the URL of a Redis

What is shown is what a crawl that began now would make of it, with the
settings of the project and of -s. Settings of single spiders and of add-ons are
not considered. Crawls may be running: nothing here gets in their way.

Exit codes: 0 done; 1 nothing is known of the origin, or you said no; 2 usage,
settings, a store in memory or one that does not work, no answer to a refresh.

examples:
  scrapy robots cache list
  scrapy robots cache show example.com
  scrapy robots cache refresh https://example.com
  scrapy robots cache clear --yes"""

_LIST = """\
One line for each origin of which something is known, by host.

  standing  fresh: used as it is
            due: used, and fetched again in the background
            stale: fetched again before the next page
            outage: unreachable; the copy from before goes on being used
            refused: unreachable, and there is no such copy
            given up: for so long that it counts as if there were none
  access    successful: its rules are followed; unavailable: all is allowed;
            unreachable: as REP_UNREACHABLE says; disallowed: all is refused;
            -: a page has to wait for a fetch
  status    of the last answer, - if there was none
  age       since the copy came or was confirmed, or since the last attempt
  left      until it is used no longer
  bytes    of the copy's body

--json writes JSON Lines: an object for each origin, times in seconds or as ISO
8601 in UTC, null for what is not there.

Exit codes: 0, also if nothing is known; 2 a store that does not work."""

_SHOW = """\
All that is known of one origin, what it means for a crawl, and the robots.txt
with line numbers, as far as a crawl reads it (REP_MAX_SIZE). Whatever is not
printable in it is escaped, and long lines are cut.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: that of "list", and headers, hops, times and the body.
Bytes of the body that are not UTF-8 are written as \\xNN.

Exit codes: 0; 1 nothing is known of the origin; 2 no origin, or a store that
does not work."""

_REFRESH = """\
Fetches the robots.txt of one origin now, whatever is known of it, as a crawl
would: through a crawler with the project's settings, with its proxies, handlers
and User-Agent, and conditionally where a copy is known. Keeps the outcome, and
says what has changed. Pipelines, feeds, JOBDIR and spiders of the project have
no part in it. The log starts at WARNING, unless -L says otherwise.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: outcome (new, confirmed, same, changed or
unreachable), and what was known before and is now, each as "list" shows it.

Exit codes: 0; 2 the robots.txt is unreachable, the outcome could not be kept, or
usage."""

_CLEAR = """\
Forgets one origin or, without ORIGIN, all of them, and says how many. The next
crawl fetches them anew. Asks before it forgets all of them; without a terminal
to ask at, --yes is needed. Crawls that are running go on with what they have
in memory.

ORIGIN is any URL of the origin, or a host; without a scheme, https is meant.

--json writes one object: {"forgotten": N}.

Exit codes: 0; 1 nothing was known of the origin, or you said no; 2 --yes is
needed, or a store that does not work."""

_PATH = """\
Prints where the store is, or would be: its file, or the URL of its Redis. What is
there is not looked at. --json writes one object: {"path": "..."}.

Exit codes: 0; 2 the store is in memory, or REP_STORE makes no sense."""


class _Cache:
    """The store of a project, and where the output goes."""

    def __init__(self, options: argparse.Namespace, scrapy_settings: BaseSettings) -> None:
        self.scrapy_settings = scrapy_settings
        self.settings = RepSettings.read(scrapy_settings)
        self.place = store_place(self.settings)
        self.printer = Printer(sys.stdout)
        self.as_json: bool = options.json

    def crawl(self) -> NewCrawl:
        """A crawl that begins now."""
        return NewCrawl(self.settings, time.time())

    def use(self, use: Callable[[Store], Coroutine[Any, Any, _T]], otherwise: _T) -> _T:
        """As :func:`use_store`."""
        return use_store(self.settings, use, otherwise)


# -- path, list and show -------------------------------------------------------------


def _path(options: argparse.Namespace, settings: BaseSettings) -> int:
    cache = _Cache(options, settings)
    if cache.as_json:
        write_json({"path": cache.place})
    else:
        cache.printer.line(cache.place)
    return FINE


def _list(options: argparse.Namespace, settings: BaseSettings) -> int:
    cache = _Cache(options, settings)

    async def write_all(store: Store) -> int:
        origins = await sorted_origins(store)
        add = _adder(cache, origins)
        async for state in cache.crawl().states(store, origins):
            add(state)
        return len(origins)

    if not cache.use(write_all, 0) and not cache.as_json:
        sys.stderr.write(f"Nothing is known: {cache.place}\n")
    return FINE


def _adder(cache: _Cache, origins: list[Origin]) -> Callable[[OriginState], None]:
    """The function that writes the line of one of *origins*."""
    if cache.as_json:
        return lambda state: write_json(state.summary())
    if not origins:
        return lambda state: None
    widest = max(len(printable(str(origin))) for origin in origins)
    table = Table(cache.printer, [Column("origin", widest), *_COLUMNS], styled=1)
    return lambda state: table.add(_cells(state), _STYLES[state.standing])


def _cells(state: OriginState) -> list[str]:
    return [
        state.origin,
        state.standing,
        state.access or "-",
        "-" if state.last.status is None else str(state.last.status),
        span(state.age),
        span(state.left),
        "-" if state.size is None else str(state.size),
    ]


def _show(options: argparse.Namespace, settings: BaseSettings) -> int:
    cache = _Cache(options, settings)
    origin = origin_of(options.origin)
    nothing: CacheEntry | None = None
    entry = cache.use(lambda store: store.read(origin), nothing)
    if entry is None:
        return _nothing_known(origin)
    state = cache.crawl().state(entry)
    if cache.as_json:
        write_json(state.everything())
        return FINE
    printer = cache.printer
    printer.line(printer.styled(state.origin, Style.BOLD))
    for label, text in _fields(state):
        shown = printer.styled(text, _STYLES[text] if label == "standing" else None)
        printer.line(f"  {label:<15}  {shown}".rstrip())
    _show_file(state, printer)
    return FINE


def _nothing_known(origin: Origin) -> int:
    sys.stderr.write(f"Nothing is known of {printable(str(origin))}\n")
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


def _refresh(options: argparse.Namespace, settings: BaseSettings) -> int:
    cache = _Cache(options, settings)
    origin = origin_of(options.origin)
    refreshed = with_crawler(settings, lambda crawler: refresh(origin, crawler), {}, "WARNING")
    crawl = cache.crawl()
    before = crawl.state(refreshed.before) if refreshed.before else None
    now = crawl.state(refreshed.now)
    if cache.as_json:
        states = {"before": before.summary() if before else None, "now": now.summary()}
        write_json({"outcome": refreshed.outcome} | states)
    else:
        show_change(before, now, refreshed.outcome, cache.printer)
    if not refreshed.kept:
        raise CommandError(f"{cache.place}: the outcome could not be kept")
    return FAILED if refreshed.outcome == "unreachable" else FINE


# -- clear ---------------------------------------------------------------------------


def _clear(options: argparse.Namespace, settings: BaseSettings) -> int:
    cache = _Cache(options, settings)
    if options.origin is not None:
        origin = origin_of(options.origin)
        deleted = cache.use(lambda store: store.delete(origin), False)
        _report_deleted(cache, int(deleted))
        return FINE if deleted else _nothing_known(origin)
    if not options.yes and not _confirmed(cache):
        sys.stderr.write("Nothing was forgotten\n")
        return WRONG
    _report_deleted(cache, cache.use(lambda store: store.clear(), 0))
    return FINE


def _confirmed(cache: _Cache) -> bool:
    """Whether the user agrees to delete everything. Raises :exc:`UsageError` without a terminal."""
    if not sys.stdin.isatty():
        message = "this would forget all origins: add --yes, or name one origin"
        raise UsageError(message, print_help=False)

    async def count(store: Store) -> int:
        return sum([1 async for _ in store.origins()])

    origins = number(cache.use(count, 0), "origin")
    sys.stderr.write(f"Forget all {origins} in {cache.place}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report_deleted(cache: _Cache, count: int) -> None:
    if cache.as_json:
        write_json({"forgotten": count})
    else:
        cache.printer.line(f"{number(count, 'origin')} forgotten")


# -- options -------------------------------------------------------------------------


def _add_origin(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "origin", metavar="ORIGIN", nargs=nargs, help="a URL of the origin, or a host"
    )
    common.add_json(parser)


def _add_clear_options(parser: argparse.ArgumentParser) -> None:
    _add_origin(parser, "?")
    parser.add_argument("--yes", action="store_true", help="do not ask before all is forgotten")


CACHE = SubcommandGroup(
    "cache",
    "look at and manage what crawls remember of robots.txt",
    _DESCRIPTION,
    (
        Subcommand(
            "list",
            "[options]",
            "what is known, one line for each origin",
            _LIST,
            common.add_json,
            _list,
        ),
        Subcommand(
            "show",
            "ORIGIN [options]",
            "all that is known of one origin",
            _SHOW,
            _add_origin,
            _show,
        ),
        Subcommand(
            "refresh",
            "ORIGIN [options]",
            "fetch the robots.txt of one origin now",
            _REFRESH,
            _add_origin,
            _refresh,
        ),
        Subcommand(
            "clear",
            "[ORIGIN] [options]",
            "forget one origin, or all",
            _CLEAR,
            _add_clear_options,
            _clear,
        ),
        Subcommand("path", "[options]", "where the store is", _PATH, common.add_json, _path),
    ),
)
