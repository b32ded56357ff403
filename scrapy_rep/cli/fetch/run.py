"""``scrapy robots fetch`` from start to end."""

from __future__ import annotations

import argparse
import codecs
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_rep.cli.console import Printer, Style
from scrapy_rep.cli.crawling import crawl
from scrapy_rep.cli.ending import FINE, TROUBLE, WRONG, ended
from scrapy_rep.cli.known import Known, Reader
from scrapy_rep.cli.sources import Asking, origin_of
from scrapy_rep.cli.wording import number, span
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.findings import Severity
from scrapy_rep.rep.freshness import validators
from scrapy_rep.rep.lines import utf16_of
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin
from scrapy_rep.settings import RepSettings

_STYLES = {
    Access.SUCCESSFUL: Style.GOOD,
    Access.UNAVAILABLE: Style.GOOD,
    Access.UNREACHABLE: Style.BAD,
    Access.DISALLOWED: Style.BAD,
}


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Fetch it, and return the exit code. Raises :exc:`UsageError`."""
    if options.body and options.json:
        raise UsageError("--body and --json exclude each other", print_help=False)
    if options.body and sys.stdout.isatty():
        message = "--body writes untrusted octets: not to a terminal; see --help"
        raise UsageError(message, print_help=False)
    return ended("scrapy robots fetch", lambda: _fetch(options, settings))


def _fetch(options: argparse.Namespace, settings: BaseSettings) -> int:
    asking = Asking.of(options, settings)
    origin = origin_of(options.url)
    memory = {"REP_STORE": "memory"}
    fetched = crawl(asking.scrapy_settings, lambda c: _fetch_with(c, origin, asking), memory)
    if options.json:
        sys.stdout.write(json.dumps(_as_json(fetched)) + "\n")
    elif options.body:
        sys.stdout.buffer.write(fetched.known.last.body if fetched.has_file else b"")
        sys.stdout.buffer.flush()
    else:
        _show(fetched, Printer(sys.stdout))
    if fetched.access is Access.UNREACHABLE:
        return TROUBLE
    return WRONG if fetched.access is Access.DISALLOWED else FINE


# -- fetching ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Hop:
    """One request and its answer, if there was one. *octets* are those of its body."""

    url: str
    status: int | None = None
    location: str | None = None
    content_type: str | None = None
    octets: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """What came of it, for a crawl that begins now."""

    known: Known
    access: Access
    asking: Asking
    hops: tuple[_Hop, ...]
    user_agent: str

    @property
    def has_file(self) -> bool:
        """Whether there is a file to follow."""
        return self.access is Access.SUCCESSFUL and self.known.entry.copy is not None


@dataclass
class _Witness:
    """What is asked, and what the downloader gets before anybody else sees it."""

    hops: list[_Hop] = field(default_factory=list)
    user_agent: str = ""

    def asked(self, request: Request) -> None:
        """Signal request_reached_downloader."""
        self.user_agent = _header(request.headers.get("User-Agent")) or ""
        self.hops.append(_Hop(request.url))

    def answered(self, response: Response, request: Request) -> None:
        """Signal response_downloaded."""
        self.hops[-1] = _Hop(
            request.url,
            response.status,
            _header(response.headers.get("Location")),
            _header(response.headers.get("Content-Type")),
            len(response.body),
            round(request.meta.get("download_latency", 0.0), 3),
        )


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


async def _fetch_with(crawler: Crawler, origin: Origin, asking: Asking) -> _Fetched:
    witness = _Witness()
    crawler.signals.connect(witness.asked, signals.request_reached_downloader)
    crawler.signals.connect(witness.answered, signals.response_downloaded)
    settings = RepSettings.read(crawler.settings)
    cache = PolicyCache(crawler, settings, steady())
    policy = await cache.revalidate(origin, Request(origin.robots_url))
    known = Reader(settings, time.time()).read(policy.entry)
    return _Fetched(known, policy.access, asking, tuple(witness.hops), witness.user_agent)


# -- what there is to say --------------------------------------------------------------


def _encoding(body: bytes) -> str:
    if utf16_of(body):
        return "UTF-16, by its byte order mark"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "not UTF-8; octets are compared as they are"
    return "UTF-8, with a byte order mark" if body.startswith(codecs.BOM_UTF8) else "UTF-8"


def _findings(fetched: _Fetched) -> dict[str, int]:
    last = fetched.known.last
    file = fetched.asking.parse(last.body, cut=last.cut)
    counts = Counter(finding.severity for finding in file.findings)
    told = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    return {severity.value: counts[severity] for severity in told}


def _as_json(fetched: _Fetched) -> dict[str, Any]:
    known, last = fetched.known, fetched.known.last
    value: dict[str, Any] = {
        "origin": str(known.entry.origin),
        "access": fetched.access.value,
        "meaning": known.meaning,
        "status": last.status,
        "detail": last.detail,
        "user_agent": fetched.user_agent,
        "hops": [
            {
                "url": hop.url,
                "status": hop.status,
                "location": hop.location,
                "content_type": hop.content_type,
                "octets": hop.octets,
                "seconds": hop.seconds,
            }
            for hop in fetched.hops
        ],
        "url": last.url,
        "headers": [list(header) for header in last.headers],
        "validators": dict(validators(known.entry)),
        "lifetime": known.lifetime,
        "size": None,
        "cut": last.cut,
        "encoding": None,
        "findings": None,
    }
    if fetched.has_file:
        value |= {
            "size": len(last.body),
            "encoding": _encoding(last.body),
            "findings": _findings(fetched),
        }
    return value


def _show(fetched: _Fetched, printer: Printer) -> None:
    printer.line(printer.styled(printable(fetched.known.entry.origin.robots_url), Style.BOLD))
    for place, hop in enumerate(fetched.hops, 1):
        label = f"hop {place}"
        url = printable(hop.url)
        if hop.status is None:
            printer.line(f"  {label:<10}  -    {url}  (no answer)")
        else:
            printer.line(f"  {label:<10}  {hop.status}  {url}  ({hop.seconds:g} s)")
        if hop.location is not None:
            printer.line(f"{'':<14}to {printable(hop.location)}")
    for label, text in _fields(fetched):
        shown = printer.styled(text, _STYLES[fetched.access]) if label == "access" else text
        printer.line(f"  {label:<10}  {shown}")


def _fields(fetched: _Fetched) -> Iterator[tuple[str, str]]:
    known, last = fetched.known, fetched.known.last
    yield "asked as", printable(fetched.user_agent) or "nobody in particular"
    yield "answer", printable(last.detail) or f"status {last.status}"
    yield "access", fetched.access.value
    yield "crawls", known.meaning
    for name, value in last.headers:
        yield "header", f"{printable(name)}: {printable(value)}"
    for name, value in validators(known.entry):
        yield "validator", f"{name}: {printable(value)}"
    if known.entry.copy is not None:
        yield "lifetime", "the crawl" if known.lifetime is None else span(known.lifetime)
    if fetched.has_file:
        cut = ", cut: there was more (REP_MAX_SIZE)" if last.cut else ""
        yield "size", f"{len(last.body):,} octets{cut}"
        if (content_type := fetched.hops[-1].content_type if fetched.hops else None) is not None:
            yield "type", printable(content_type)
        yield "encoding", _encoding(last.body)
        counts = _findings(fetched)
        yield "findings", ", ".join(number(count, name) for name, count in counts.items())
