"""``scrapy robots compare`` over URLs, from start to end."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy.exceptions import UsageError
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings

from scrapy_rep.cli.compare.asking import Row, Said, files_of, row_of
from scrapy_rep.cli.compare.parsers import find_parser, short_name
from scrapy_rep.cli.console import Columns, Printer, Style
from scrapy_rep.cli.ending import FINE, TROUBLE, WRONG, ended
from scrapy_rep.cli.sources import (
    STDIN,
    Asking,
    absolute,
    check_use_of_stdin,
    lines_of_stdin,
)
from scrapy_rep.rep.dialects import DIALECTS
from scrapy_rep.rep.text import printable

# Characters of a URL for which there must be room beside the columns.
_LEAST_URL = 20
_WIDEST_CELL = len("allowed 1234")
_STYLES = {True: Style.GOOD, False: Style.BAD, None: None}


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Compare all, and return the exit code. Raises :exc:`UsageError`."""
    parsers = parsers_of(options)
    check_use_of_stdin(options.urls, options.file)
    return ended("scrapy robots compare", lambda: _compare(options, settings, parsers))


def parsers_of(options: argparse.Namespace) -> list[type[RobotParser]]:
    """Those that --with names. Raises :exc:`UsageError`."""
    names = [name.strip() for name in options.parsers.split(",") if name.strip()]
    try:
        return list(dict.fromkeys(map(find_parser, names)))
    except ValueError as error:
        message = f"--with: {printable(str(error), most=None)}"
        raise UsageError(message, print_help=False) from None


def _compare(
    options: argparse.Namespace, settings: BaseSettings, parsers: list[type[RobotParser]]
) -> int:
    asking = Asking.of(options, settings)
    given = lines_of_stdin() if options.urls == [STDIN] else options.urls
    urls = list(map(absolute, given))
    with _silence():
        rows = [row_of(url, files) for url, files in files_of(urls, options.file, asking, parsers)]
    rows.sort(key=lambda row: row.agree)
    if options.json:
        sys.stdout.write(json.dumps(_as_json(rows, asking)) + "\n")
    elif rows:
        names = [*DIALECTS, *map(short_name, parsers)]
        _show(rows, names, Printer(sys.stdout), asking)
    if any(row.trouble for row in rows):
        return TROUBLE
    return FINE if all(row.agree for row in rows) else WRONG


@contextmanager
def _silence() -> Iterator[None]:
    """Without what Scrapy's parsers log of files that they cannot decode."""
    logger = logging.getLogger("scrapy.robotstxt")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


# -- showing -----------------------------------------------------------------------


def _as_json(rows: list[Row], asking: Asking) -> dict[str, Any]:
    return {
        "agents": list(asking.agents),
        "urls": [
            {
                "url": row.url,
                "agree": row.agree,
                "answers": {name: _said_as_json(said) for name, said in row.said.items()},
            }
            for row in rows
        ],
    }


def _said_as_json(said: Said) -> dict[str, Any]:
    return {
        "allowed": said.allowed,
        "line": said.line or None,
        "reason": said.reason or None,
        "class": said.known_class or None,
        "error": said.error or None,
    }


def _show(rows: list[Row], names: list[str], printer: Printer, asking: Asking) -> None:
    printer.line(f"asked as {asking.as_whom}")
    printer.line()
    cells = [[_cell(row.said.get(name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    if printer.width and sum(widths) + 2 * len(widths) + _LEAST_URL > printer.width:
        _show_one_below_the_other(rows, printer)
    else:
        columns = Columns(printer, [*names, "url"], widths)
        for row, texts in zip(rows, cells, strict=True):
            columns.add([*texts, printable(row.url, most=None)], _STYLES[row.ours.allowed])
            for name, said in row.said.items():
                if said.why:
                    printer.line(f"    {name}: {said.why}")
    differing = sum(not row.agree for row in rows)
    printer.line()
    printer.line(f"{differing:,} of {len(rows):,} differ")


def _show_one_below_the_other(rows: list[Row], printer: Printer) -> None:
    """The same where a terminal has too few columns for ours."""
    for row in rows:
        printer.line(printer.styled(printable(row.url, most=None), Style.BOLD))
        for name, said in row.said.items():
            cell = _cell(said).ljust(_WIDEST_CELL)
            style = _STYLES[said.allowed]
            shown = printer.styled(cell, style) if style else cell
            printer.line(f"  {name:<10}  {shown}  {said.why}".rstrip())


def _cell(said: Said | None) -> str:
    if said is None or said.allowed is None:
        return "-"
    word = "allowed" if said.allowed else "refused"
    return f"{word} {said.line}" if said.line else word
