"""``scrapy robots fetch``: how a robots.txt is answered, and what that means."""

from __future__ import annotations

import argparse
import codecs
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_rep.cli import options as common
from scrapy_rep.cli.crawling import with_crawler
from scrapy_rep.cli.errors import FAILED, FINE, WRONG, CommandError
from scrapy_rep.cli.options import Subcommand
from scrapy_rep.cli.output import Printer, Style, number, span, write_json
from scrapy_rep.cli.sources import Session, origin_of
from scrapy_rep.cli.store import NewCrawl, OriginState
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.rep.caching.freshness import validators
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.lint.findings import Severity
from scrapy_rep.rep.parsing.lines import utf16_of
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings

_STYLES = {
    Access.SUCCESSFUL: Style.GOOD,
    Access.UNAVAILABLE: Style.GOOD,
    Access.UNREACHABLE: Style.BAD,
    Access.DISALLOWED: Style.BAD,
}

_DESCRIPTION = """\
Fetches the robots.txt of an origin now, and shows how the server answered and
what that means for a crawl. It neither reads nor changes the store.

Exit codes: 0 fetched or not found, 1 the answer refuses all, 2 error or
unreachable"""
_EXAMPLES = """\
  scrapy robots fetch https://example.com
  scrapy robots fetch --body example.com > robots.txt
  scrapy robots fetch --json -s USER_AGENT=ExampleBot/1.0 example.com"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="a URL of the site, or its host")
    parser.add_argument("--body", action="store_true", help="write only the robots.txt itself")
    common.add(parser, "--dialect")
    common.add_json(parser)


def _run(options: argparse.Namespace, settings: BaseSettings) -> int:
    if options.body and options.format == "json":
        raise CommandError("--body and --format json exclude each other")
    if options.body and sys.stdout.isatty():
        raise CommandError("--body writes untrusted bytes: not to a terminal")
    session = Session.of(options, settings)
    origin = origin_of(options.url)
    memory = {"REP_STORE": "memory"}
    fetched = with_crawler(
        session.scrapy_settings, lambda crawler: _fetch(crawler, origin, session), memory
    )
    if options.format == "json":
        write_json(_as_json(fetched))
    elif options.body:
        sys.stdout.buffer.write(fetched.state.entry.last.body if fetched.has_file else b"")
        sys.stdout.buffer.flush()
    else:
        _show(fetched, Printer(sys.stdout))
    if fetched.access is Access.UNREACHABLE:
        return FAILED
    return WRONG if fetched.access is Access.DISALLOWED else FINE


# -- fetching ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Hop:
    """One request and its answer, if there was one. *bytes* is the size of its body."""

    url: str
    status: int | None = None
    location: str | None = None
    content_type: str | None = None
    bytes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The result, as a crawl that begins now evaluates it."""

    state: OriginState
    access: Access
    session: Session
    hops: tuple[_Hop, ...]
    user_agent: str

    @property
    def has_file(self) -> bool:
        """Whether there is a file to follow."""
        return self.access is Access.SUCCESSFUL and self.state.entry.copy is not None


@dataclass
class _Recorder:
    """Records requests, and responses as the downloader gets them."""

    hops: list[_Hop] = field(default_factory=list)
    user_agent: str = ""

    def requested(self, request: Request) -> None:
        """Signal request_reached_downloader."""
        self.user_agent = _header(request.headers.get("User-Agent")) or ""
        self.hops.append(_Hop(request.url))

    def responded(self, response: Response, request: Request) -> None:
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


async def _fetch(crawler: Crawler, origin: Origin, session: Session) -> _Fetched:
    recorder = _Recorder()
    crawler.signals.connect(recorder.requested, signals.request_reached_downloader)
    crawler.signals.connect(recorder.responded, signals.response_downloaded)
    settings = RepSettings.read(crawler.settings)
    cache = PolicyCache(crawler, settings, steady())
    policy = await cache.revalidate(origin, Request(origin.robots_url))
    state = NewCrawl(settings, time.time()).state(policy.entry)
    return _Fetched(state, policy.access, session, tuple(recorder.hops), recorder.user_agent)


# -- output --------------------------------------------------------------------------


def _encoding(body: bytes) -> str:
    if utf16_of(body):
        return "UTF-16, by its byte order mark"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "not UTF-8; bytes are compared as they are"
    return "UTF-8, with a byte order mark" if body.startswith(codecs.BOM_UTF8) else "UTF-8"


def _findings(fetched: _Fetched) -> dict[str, int]:
    last = fetched.state.entry.last
    counts = Counter(finding.severity for finding in fetched.session.parse(last).findings)
    shown = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    return {severity.value: counts[severity] for severity in shown}


def _as_json(fetched: _Fetched) -> dict[str, Any]:
    state, last, has_file = fetched.state, fetched.state.entry.last, fetched.has_file
    return {
        "origin": str(state.entry.origin),
        "access": fetched.access.value,
        "meaning": state.meaning,
        "status": last.status,
        "detail": last.detail,
        "user_agent": fetched.user_agent,
        "hops": [asdict(hop) for hop in fetched.hops],
        "url": last.url,
        "headers": [list(header) for header in last.headers],
        "validators": dict(validators(state.entry)),
        "lifetime": state.lifetime,
        "size": len(last.body) if has_file else None,
        "cut": last.cut,
        "encoding": _encoding(last.body) if has_file else None,
        "findings": _findings(fetched) if has_file else None,
    }


def _show(fetched: _Fetched, printer: Printer) -> None:
    printer.line(printer.styled(printable(fetched.state.entry.origin.robots_url), Style.BOLD))
    for place, hop in enumerate(fetched.hops, 1):
        url = printable(hop.url)
        if hop.status is None:
            printer.field(f"hop {place}", f"-    {url}  (no answer)")
        else:
            printer.field(f"hop {place}", f"{hop.status}  {url}  ({hop.seconds:g} s)")
        if hop.location is not None:
            printer.field("", f"to {printable(hop.location)}")
    for label, text in _fields(fetched):
        printer.field(label, text, _STYLES[fetched.access] if label == "access" else None)


def _fields(fetched: _Fetched) -> Iterator[tuple[str, str]]:
    state, last = fetched.state, fetched.state.entry.last
    yield "user agent", printable(fetched.user_agent) or "-"
    yield "answer", printable(last.detail) or f"status {last.status}"
    yield "access", fetched.access.value
    yield "crawls", state.meaning
    for name, value in last.headers:
        yield "header", f"{printable(name)}: {printable(value)}"
    for name, value in validators(state.entry):
        yield "validator", f"{name}: {printable(value)}"
    if state.entry.copy is not None:
        yield "lifetime", "the crawl" if state.lifetime is None else span(state.lifetime)
    if fetched.has_file:
        cut = ", cut: there was more (REP_MAX_SIZE)" if last.cut else ""
        yield "size", f"{len(last.body):,} bytes{cut}"
        if (content_type := fetched.hops[-1].content_type if fetched.hops else None) is not None:
            yield "type", printable(content_type)
        yield "encoding", _encoding(last.body)
        counts = _findings(fetched)
        yield "findings", ", ".join(number(count, name) for name, count in counts.items())


FETCH = Subcommand(
    "fetch",
    "URL [options]",
    "show how the server answers, and what that means",
    _DESCRIPTION,
    _add_options,
    _run,
    _EXAMPLES,
)
