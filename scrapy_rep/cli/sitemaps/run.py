"""``scrapy robots sitemaps`` from start to end."""

from __future__ import annotations

import argparse
import json
import sys

from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Printer
from scrapy_rep.cli.ending import FINE, Trouble, ended
from scrapy_rep.cli.sources import Asking
from scrapy_rep.rep.text import printable


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Print them, and return the exit code. Raises :exc:`UsageError`."""
    return ended("scrapy robots sitemaps", lambda: _sitemaps(options, settings))


def _sitemaps(options: argparse.Namespace, settings: BaseSettings) -> int:
    known = Asking.of(options, settings).look_at(options.source)
    if known.unreachable:
        detail = known.policy.detail if known.policy else ""
        raise Trouble(f"{known.name} could not be fetched: {detail}")
    sitemaps = known.file.sitemaps if known.file else ()
    if options.json:
        sys.stdout.write(json.dumps({"sitemaps": list(sitemaps)} | known.told()) + "\n")
    else:
        printer = Printer(sys.stdout)
        for sitemap in sitemaps:
            printer.line(printable(sitemap, most=None))
    return FINE
