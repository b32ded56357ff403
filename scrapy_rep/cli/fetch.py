"""``scrapy robots fetch``: how a robots.txt is answered, and what that means."""

from __future__ import annotations

import codecs
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrapy import Request, signals
from scrapy.http import Response

from ..rep.caching.freshness import validators
from ..rep.dialects import Access
from ..rep.lint.findings import Severity
from ..rep.parsing.lines import utf16_of
from ..rep.parsing.urls import Origin
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.text import plural, printable, span
from .crawling import header
from .errors import FAILED, FINE, WRONG, CommandError
from .options import DIALECT, Options, Settings, argument, format_of, subcommand
from .output import Printer, Style, write_json
from .sources import Robots, RobotsGetter, Session, origin_of
from .store import state_of

_STYLES = {
    Access.SUCCESSFUL.value: Style.GOOD,
    Access.UNAVAILABLE.value: Style.GOOD,
    Access.UNREACHABLE.value: Style.BAD,
    Access.DISALLOWED.value: Style.BAD,
}
_EXIT_CODES = {Access.UNREACHABLE.value: FAILED, Access.DISALLOWED.value: WRONG}
_SHOWN = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_ARGUMENTS = (
    argument("url", metavar="URL", help="a URL of the site, or its host"),
    argument("--body", action="store_true", help="write only the robots.txt itself"),
    *(DIALECT, format_of()),
)
#: A request, and its response, if one came.
_Hop = tuple[Request, Response | None]


@subcommand("URL [options]", "show how the server answers, and what that means", *_ARGUMENTS)
def fetch(options: Options, settings: Settings) -> int:
    """Fetches the robots.txt of an origin now, and shows how the server answered and
    what that means for a crawl. It neither reads nor changes the store.

    Exit codes: 0 fetched or not found, 1 the answer refuses all, 2 error or
    unreachable

    Examples:
      scrapy robots fetch https://example.com
      scrapy robots fetch --body example.com > robots.txt
      scrapy robots fetch --json -s USER_AGENT=ExampleBot/1.0 example.com
    """
    if options.body and options.format == "json":
        raise CommandError("--body and --format json exclude each other")
    if options.body and sys.stdout.isatty():
        raise CommandError("--body writes untrusted bytes: not to a terminal")
    session, origin = Session(options, settings), origin_of(options.url)
    session.fresh = True
    robots, hops = session.crawl(lambda getter: _fetch(getter, origin), in_memory=True)
    found = _as_json(robots, hops)
    if options.format == "json":
        write_json(found)
    elif options.body:
        sys.stdout.buffer.write(robots.result.body if robots.file else b"")
    else:
        _show(found, Printer())
    return _EXIT_CODES.get(found["access"], FINE)


async def _fetch(getter: RobotsGetter, origin: Origin) -> tuple[Robots, list[_Hop]]:
    hops: list[_Hop] = []

    def requested(request: Request) -> None:
        hops.append((request, None))

    def answered(response: Response, request: Request) -> None:
        hops[-1] = (request, response)

    getter.crawler.signals.connect(requested, signals.request_reached_downloader)
    getter.crawler.signals.connect(answered, signals.response_downloaded)
    return await getter.get(origin), hops


def _as_json(robots: Robots, hops: list[_Hop]) -> dict[str, Any]:
    policy, last, file = robots.policy, robots.result, robots.file
    assert policy is not None
    state = state_of(policy.entry, robots.session.settings, time.time())
    return {
        "origin": str(policy.origin),
        "access": robots.access,
        "meaning": state.meaning,
        "status": last.status,
        "detail": last.detail,
        "user_agent": (header(hops[-1][0], "User-Agent") if hops else None) or "",
        "hops": [_hop_as_json(*each) for each in hops],
        "url": last.url,
        "headers": [list(each) for each in last.headers],
        "validators": dict(validators(policy.entry)),
        "lifetime": state.lifetime,
        "size": len(last.body) if file else None,
        "cut": last.cut,
        "encoding": _encoding(last.body) if file else None,
        "findings": _findings(file) if file else None,
    }


def _hop_as_json(request: Request, response: Response | None) -> dict[str, Any]:
    """One request, and what was answered, if it was."""
    answer = dict.fromkeys(("status", "location", "content_type", "bytes", "seconds"))
    if response is not None:
        headers = (header(response, name) for name in ("Location", "Content-Type"))
        seconds = round(request.meta.get("download_latency", 0.0), 3)
        values = (response.status, *headers, len(response.body), seconds)
        answer = dict(zip(answer, values, strict=True))
    return {"url": request.url, **answer}


def _encoding(body: bytes) -> str:
    if utf16_of(body):
        return "UTF-16, by its byte order mark"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "not UTF-8; bytes are compared as they are"
    return "UTF-8, with a byte order mark" if body.startswith(codecs.BOM_UTF8) else "UTF-8"


def _findings(file: RobotsTxt) -> dict[str, int]:
    counts = Counter(finding.severity for finding in file.findings)
    return {severity.value: counts[severity] for severity in _SHOWN}


def _show(found: dict[str, Any], printer: Printer) -> None:
    printer.line(printer.styled(f"{printable(found['origin'])}/robots.txt", Style.BOLD))
    for place, hop in enumerate(found["hops"], 1):
        status, url = hop["status"] or "-  ", printable(hop["url"])
        answer = "no answer" if hop["status"] is None else f"{hop['seconds']:g} s"
        printer.field(f"hop {place}", f"{status}  {url}  ({answer})")
        if hop["location"] is not None:
            printer.field("", f"to {printable(hop['location'])}")
    for label, text in _fields(found):
        printer.field(label, text, _STYLES[text] if label == "access" else None)


def _fields(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "user agent", printable(found["user_agent"]) or "-"
    yield "answer", printable(found["detail"]) or f"status {found['status']}"
    yield "access", found["access"]
    yield "crawls", found["meaning"]
    for name, value in found["headers"]:
        yield "header", f"{printable(name)}: {printable(value)}"
    for name, value in found["validators"].items():
        yield "validator", f"{name}: {printable(value)}"
    if found["access"] != Access.UNREACHABLE.value:
        yield "lifetime", "the crawl" if found["lifetime"] is None else span(found["lifetime"])
    if found["size"] is not None:
        cut = ", cut: there was more (REP_MAX_SIZE)" if found["cut"] else ""
        yield "size", f"{found['size']:,} bytes{cut}"
        content_type = found["hops"][-1]["content_type"] if found["hops"] else None
        if content_type is not None:
            yield "type", printable(content_type)
        yield "encoding", found["encoding"]
        findings = found["findings"].items()
        yield "findings", ", ".join(plural(count, name) for name, count in findings)
