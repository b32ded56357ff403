"""``scrapy robots cache …`` from start to end. Exit codes are those of the help."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_rep.cli.cache import layout
from scrapy_rep.cli.console import Printer
from scrapy_rep.cli.ending import FINE, TROUBLE, WRONG, Trouble, ended
from scrapy_rep.cli.known import Known, Reader
from scrapy_rep.cli.sources import origin_of
from scrapy_rep.cli.store import store_place, use_store
from scrapy_rep.cli.wording import number
from scrapy_rep.rep.cache_entry import CacheEntry
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin, by_host
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store

_T = TypeVar("_T")

_HEADLINES = {
    "new": "known from now on",
    "confirmed": "confirmed by the server, nothing has changed",
    "same": "fetched again, nothing has changed",
    "changed": "fetched again, and changed",
    "unreachable": "unreachable",
}


def run(name: str, options: argparse.Namespace, settings: BaseSettings) -> int:
    """Do what the subcommand *name* is for, and return the exit code.

    Raises :exc:`UsageError`.
    """

    def do() -> int:
        cache = _Cache.open(settings, as_json=options.json)
        return _ACTIONS[name](cache, options)

    return ended(f"scrapy robots cache {name}", do)


@dataclass(frozen=True, slots=True)
class _Cache:
    """The store of a project that is at *place*, and where to write to."""

    place: str
    scrapy_settings: BaseSettings
    settings: RepSettings
    printer: Printer
    as_json: bool

    @classmethod
    def open(cls, scrapy_settings: BaseSettings, *, as_json: bool) -> _Cache:
        settings = RepSettings.read(scrapy_settings)
        return cls(store_place(settings), scrapy_settings, settings, Printer(sys.stdout), as_json)

    def reader(self) -> Reader:
        """What a crawl that begins now takes it for."""
        return Reader(self.settings, time.time())

    def use(self, use: Callable[[Store], Coroutine[Any, Any, _T]], otherwise: _T) -> _T:
        """What *use* makes of the store; *otherwise*, and no file is made, if there is none."""
        return use_store(self.settings, use, otherwise)

    def write_json(self, value: dict[str, Any]) -> None:
        """Write *value* as a line of its own."""
        self.printer.line(json.dumps(value))


# -- the subcommands ------------------------------------------------------------


def _path(cache: _Cache, options: argparse.Namespace) -> int:
    if cache.as_json:
        cache.write_json({"path": cache.place})
    else:
        cache.printer.line(cache.place)
    return FINE


def _list(cache: _Cache, options: argparse.Namespace) -> int:
    async def write_all(store: Store) -> int:
        # Their names only: bodies are read one at a time.
        origins = sorted([origin async for origin in store.origins()], key=by_host)
        add = _adder(cache, origins)
        reader = cache.reader()
        for origin in origins:
            entry = await store.read(origin)
            # Somebody may have forgotten it by now.
            if entry is not None:
                add(reader.read(entry))
        return len(origins)

    if not cache.use(write_all, 0) and not cache.as_json:
        sys.stderr.write(f"Nothing is known: {cache.place}\n")
    return FINE


def _adder(cache: _Cache, origins: list[Origin]) -> Callable[[Known], None]:
    """What writes one of *origins*."""
    if cache.as_json:
        return lambda known: cache.write_json(known.summary())
    if not origins:
        return lambda known: None
    widest = max(len(printable(str(origin))) for origin in origins)
    return layout.List(cache.printer, widest).add


def _show(cache: _Cache, options: argparse.Namespace) -> int:
    origin = origin_of(options.origin)
    nothing: CacheEntry | None = None
    entry = cache.use(lambda store: store.read(origin), nothing)
    if entry is None:
        return _nothing_known(origin)
    known = cache.reader().read(entry)
    if cache.as_json:
        cache.write_json(known.everything())
    else:
        layout.show(known, cache.printer)
    return FINE


def _nothing_known(origin: Origin) -> int:
    sys.stderr.write(f"Nothing is known of {printable(str(origin))}\n")
    return WRONG


def _refresh(cache: _Cache, options: argparse.Namespace) -> int:
    from scrapy_rep.cli.cache.refresh import refresh

    refreshed = refresh(origin_of(options.origin), cache.scrapy_settings)
    reader = cache.reader()
    before = reader.read(refreshed.before) if refreshed.before else None
    now = reader.read(refreshed.now)
    if cache.as_json:
        cache.write_json(
            {
                "outcome": refreshed.outcome,
                "before": before.summary() if before else None,
                "now": now.summary(),
            }
        )
    else:
        layout.show_change(before, now, _HEADLINES[refreshed.outcome], cache.printer)
    if not refreshed.kept:
        raise Trouble(f"{cache.place}: the outcome could not be kept")
    return TROUBLE if refreshed.outcome == "unreachable" else FINE


def _clear(cache: _Cache, options: argparse.Namespace) -> int:
    if options.origin is not None:
        return _clear_one(cache, origin_of(options.origin))
    if not options.yes:
        _check_terminal()
        if not _agreed(cache.use(_count, 0), cache.place):
            sys.stderr.write("Nothing was forgotten\n")
            return WRONG
    _tell_forgotten(cache, cache.use(lambda store: store.clear(), 0))
    return FINE


def _clear_one(cache: _Cache, origin: Origin) -> int:
    forgotten = cache.use(lambda store: store.delete(origin), False)
    _tell_forgotten(cache, int(forgotten))
    return FINE if forgotten else _nothing_known(origin)


async def _count(store: Store) -> int:
    return sum([1 async for _ in store.origins()])


def _check_terminal() -> None:
    if not sys.stdin.isatty():
        message = "this would forget all origins: add --yes, or name one origin"
        raise UsageError(message, print_help=False)


def _agreed(count: int, place: str) -> bool:
    sys.stderr.write(f"Forget all {number(count, 'origin')} in {place}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell_forgotten(cache: _Cache, count: int) -> None:
    if cache.as_json:
        cache.write_json({"forgotten": count})
    else:
        cache.printer.line(f"{number(count, 'origin')} forgotten")


_ACTIONS: dict[str, Callable[[_Cache, argparse.Namespace], int]] = {
    "path": _path,
    "list": _list,
    "show": _show,
    "refresh": _refresh,
    "clear": _clear,
}
