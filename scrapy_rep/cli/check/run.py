"""``scrapy robots check`` from start to end."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Columns, Printer, Style
from scrapy_rep.cli.ending import FINE, TROUBLE, WRONG, ended
from scrapy_rep.cli.progress import Progress
from scrapy_rep.cli.sources import (
    STDIN,
    Asking,
    Origins,
    Robots,
    absolute,
    check_use_of_stdin,
    lines_of_stdin,
)
from scrapy_rep.cli.wording import answer, because, names, span, verdict_as_json
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin
from scrapy_rep.rep.verdict import Reason, Verdict, origin_or_verdict

# URLs that are in memory at a time.
_PORTION = 10_000
# How wide columns may become, and where there is less room.
_WIDEST_RULE = 60
_WIDEST_RULE_IN_TERMINAL = 30
_WIDE_TERMINAL = 160
_WIDEST_GROUP = 12
_AGE = 6
_LINE = 5


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Check all, and return the exit code. Raises :exc:`UsageError`."""
    check_use_of_stdin(options.urls, options.file)
    return ended("scrapy robots check", lambda: _check(options, settings))


def _check(options: argparse.Namespace, settings: BaseSettings) -> int:
    asking = Asking.of(options, settings)
    urls = _Urls(options.urls)
    output = _Json(asking) if options.json else _Table(with_source=options.file is None)
    if options.file is None:
        asking.ask_with(lambda origins: _check_live(urls, origins, asking, output))
    else:
        known = asking.read(options.file)
        for portion in urls.portions():
            checked = [_Checked(url, known, known.verdict(url, asking.agents)) for url in portion]
            urls.progress.clear()
            output.write(checked)
    urls.progress.clear()
    return output.exit_code


async def _check_live(urls: _Urls, origins: Origins, asking: Asking, output: _Output) -> None:
    for portion in urls.portions():
        by_url = {url: origin_or_verdict(url) for url in portion}
        wanted = dict.fromkeys(origin for origin in by_url.values() if isinstance(origin, Origin))
        fetched = 0

        def tell(total: int = len(wanted)) -> None:
            nonlocal fetched
            fetched += 1
            urls.progress.show(f"{fetched:,} of {total:,} origins", fetched, total)

        known = await origins.get(wanted, tell)
        urls.progress.clear()
        output.write([_checked(url, by_url[url], known, asking) for url in portion])


@dataclass(frozen=True, slots=True)
class _Checked:
    """What came of one URL; without *known* where no robots.txt has a say."""

    url: str
    known: Robots | None
    verdict: Verdict

    @property
    def trouble(self) -> bool:
        """Whether something has to be done before the answer can be relied on."""
        unreachable = self.known is not None and self.known.unreachable
        return unreachable or self.verdict.reason is Reason.INVALID_URL


def _checked(
    url: str, origin: Origin | Verdict, known: Mapping[Origin, Robots], asking: Asking
) -> _Checked:
    if isinstance(origin, Verdict):
        return _Checked(url, None, origin)
    return _Checked(url, known[origin], known[origin].verdict(url, asking.agents))


# -- what goes in ------------------------------------------------------------------


class _Urls:
    """The URLs to check, a portion at a time."""

    def __init__(self, arguments: list[str]) -> None:
        self.progress = Progress()
        self._count = self._octets = 0
        self._size = None
        self._lines: Iterable[str] = arguments
        if arguments == [STDIN]:
            self._size = _size_of_stdin()
            self._lines = lines_of_stdin(self._read)

    def portions(self) -> Iterator[list[str]]:
        """Lists of them, in order."""
        lines = map(absolute, self._lines)
        while portion := list(islice(lines, _PORTION)):
            yield portion
            self._count += len(portion)
            self.progress.show(f"{self._count:,} URLs", self._octets, self._size)

    def _read(self, octets: int) -> None:
        self._octets += octets


def _size_of_stdin() -> int | None:
    """Octets of the file that standard input is, if it is one."""
    status = os.fstat(sys.stdin.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


# -- what comes out ----------------------------------------------------------------


class _Output:
    """Writes what came of URLs, and remembers what that means."""

    def __init__(self) -> None:
        self.exit_code = FINE

    def write(self, portion: list[_Checked]) -> None:
        """Write *portion*."""
        for checked in portion:
            if checked.trouble:
                self.exit_code = TROUBLE
            elif not checked.verdict.allowed:
                self.exit_code = max(self.exit_code, WRONG)


class _Json(_Output):
    def __init__(self, asking: Asking) -> None:
        super().__init__()
        self._agents = list(asking.agents)

    def write(self, portion: list[_Checked]) -> None:
        super().write(portion)
        for url, known, verdict in ((each.url, each.known, each.verdict) for each in portion):
            value = {"url": url} | verdict_as_json(verdict) | {"agents": self._agents}
            sys.stdout.write(json.dumps(value | (known.told() if known else {})) + "\n")
        sys.stdout.flush()


class _Table(_Output):
    """A table, with columns as wide as the first portion needs them."""

    def __init__(self, *, with_source: bool) -> None:
        super().__init__()
        self._with_source = with_source
        self._columns: Columns | None = None

    def write(self, portion: list[_Checked]) -> None:
        super().write(portion)
        rows = [self._cells(each) for each in portion]
        if self._columns is None:
            self._columns = self._begin(rows)
        for each, row in zip(portion, rows, strict=True):
            self._columns.add(row, Style.GOOD if each.verdict.allowed else Style.BAD)

    def _begin(self, rows: list[list[str]]) -> Columns:
        printer = Printer(sys.stdout)
        narrow = (printer.width or _WIDE_TERMINAL) < _WIDE_TERMINAL
        widest = _WIDEST_RULE_IN_TERMINAL if narrow else _WIDEST_RULE
        titles = ["answer", "line", "reason", "group"]
        widths = [
            len("refused"),
            _LINE,
            min(max(len(row[2]) for row in rows), widest),
            min(max(len(row[3]) for row in rows), _WIDEST_GROUP),
        ]
        if self._with_source:
            titles += ["source", "age"]
            widths += [len("fetched"), _AGE]
        numeric = ("line", "age")
        return Columns(printer, [*titles, "url"], widths, numeric)

    def _cells(self, each: _Checked) -> list[str]:
        verdict = each.verdict
        cells = [
            answer(verdict),
            str(verdict.line or "-"),
            because(verdict),
            names(verdict.group),
        ]
        if self._with_source:
            known = each.known
            cells += [known.source.value, span(known.age)] if known else ["-", "-"]
        return [*cells, printable(each.url, most=None)]
