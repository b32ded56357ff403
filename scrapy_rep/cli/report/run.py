"""``scrapy robots report`` from start to end. Exit codes are those of the help."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Printer
from scrapy_rep.cli.ending import FINE, WRONG, Trouble, ended
from scrapy_rep.cli.known import Reader
from scrapy_rep.cli.report.stored import read_report
from scrapy_rep.cli.store import store_place, use_store
from scrapy_rep.cli.wording import number
from scrapy_rep.observers.report.model import CrawlReport
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Make the page, and return the exit code."""
    return ended("scrapy robots report", lambda: _run(options, settings))


def _run(options: argparse.Namespace, scrapy_settings: BaseSettings) -> int:
    try:
        from scrapy_rep.observers.report.page import render, write_page
    except ImportError as error:
        raise Trouble(f"Jinja2 is needed ({error}): pip install 'scrapy-rep[report]'") from None
    if options.store is not None:
        scrapy_settings = scrapy_settings.copy()
        scrapy_settings.set("REP_STORE", _store(options.store), "cmdline")
    settings = RepSettings.read(scrapy_settings)
    report = _report(settings)
    if report is None or not report.origins:
        sys.stderr.write(f"Nothing is known: {printable(store_place(settings), most=None)}\n")
        return WRONG
    if options.output == "-":
        sys.stdout.flush()
        # In UTF-8 whatever a terminal has: the page says that it is.
        for piece in render(report):
            sys.stdout.buffer.write(piece.encode())
        sys.stdout.buffer.flush()
        return FINE
    path = Path(options.output)
    if path.is_dir():
        raise Trouble(f"cannot write {options.output}: Is a directory")
    try:
        octets = write_page(path, report)
    except OSError as error:
        raise Trouble(f"cannot write {options.output}: {error.strerror or error}") from None
    written = f"{number(len(report.origins), 'origin')}, {number(octets, 'octet')}"
    Printer(sys.stdout).line(f"{printable(options.output, most=None)}: {written}")
    return FINE


def _store(value: str) -> str:
    """*value* as ``REP_STORE`` takes it: it may be the path of a file."""
    return value if "://" in value or value in ("memory", "sqlite") else f"sqlite:///{value}"


def _report(settings: RepSettings) -> CrawlReport | None:
    subject = f"Store {printable(store_place(settings), most=None)}"
    nothing: CrawlReport | None = None
    reader = Reader(settings, time.time())
    return use_store(settings, lambda store: read_report(store, subject, reader), nothing)
