"""What is compared with the rules is what the server receives, whatever sends it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import pytest
import pytest_twisted
import scrapy
from packaging.version import Version

from scrapy_rep import Verdict
from scrapy_rep.cli.servers import LoopbackServers, http_response
from scrapy_rep.parsers.chain import ParserChain
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings
from tests.integration.crawling import ok, site
from tests.integration.http2_server import http2_site
from tests.integration.in_process import ScriptedSpider, crawl
from tests.integration.odd_urls import odd_paths

_HANDLERS = "scrapy.core.downloader.handlers"
_HTTP11 = f"{_HANDLERS}.http11.HTTP11DownloadHandler"
_HTTP2 = f"{_HANDLERS}.http2.H2DownloadHandler"
_HTTPX = f"{_HANDLERS}._httpx.HttpxDownloadHandler"
_AIOHTTP = f"{_HANDLERS}._aiohttp.AiohttpDownloadHandler"
# Scrapy 2.15 brought the last two. Where one is there, its library has to be installed.
HANDLERS = [_HTTP11]
if Version(scrapy.__version__) >= Version("2.15"):
    HANDLERS += [_HTTPX, _AIOHTTP]
META = pytest.mark.parametrize(
    "meta", [{}, {"verbatim_url": True}], ids=["as Scrapy writes URLs", "verbatim"]
)

#: How many URLs: all of them once, fewer on other Pythons and versions of Scrapy.
COUNT = pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.once)])

#: The requests that were sent, each with the target that the server received.
Sent = list[tuple[scrapy.Request, str]]


async def send(
    spider: ScriptedSpider, requests: list[scrapy.Request], targets: Callable[[], dict[str, str]]
) -> Sent:
    """Download all of *requests*; *targets* returns what was received, by number."""
    engine = spider.crawler.engine
    assert engine is not None

    async def download(request: scrapy.Request) -> None:
        request.headers["X-Number"] = request.meta["number"]
        # Each handler has URLs that it cannot send at all.
        with contextlib.suppress(Exception):
            await engine.download_async(request)

    for start in range(0, len(requests), 50):
        await asyncio.gather(*map(download, requests[start : start + 50]))
    received = targets()
    return [
        (request, received[number])
        for request in requests
        if (number := request.meta["number"]) in received
    ]


def requests_for(url: str, paths: Iterable[str], meta: dict[str, Any]) -> list[scrapy.Request]:
    """A request for each of *paths*, with its number."""
    return [
        scrapy.Request(url + path, meta={**meta, "number": str(number)})
        for number, path in enumerate(paths)
    ]


def can_be_named(target: str) -> bool:
    """Whether a rule can refuse *target*.

    That is so unless it has ``.`` or ``..`` as a segment, or is the robots.txt.
    """
    path = unquote(target.partition("?")[0].replace("%2F", "-").replace("%2f", "-"))
    if not target.startswith("/") or path == "/robots.txt":
        return False
    return not {".", ".."} & set(path.split("/"))


def allowed_by_mistake(spider: ScriptedSpider, sent: Sent) -> list[tuple[str, str]]:
    """Each URL that is allowed by rules that refuse nothing but what was then received."""
    chain = ParserChain(spider.crawler, RepSettings.read(spider.crawler.settings))
    mistakes = []
    for request, target in sent:
        if not can_be_named(target):
            continue
        rule = target.replace("*", "%2A").replace("$", "%24").encode("latin-1")
        body = b"User-agent: *\nDisallow: " + rule + b"$\n"
        origin = Origin.of(request.url)
        rules = chain.read(origin, FetchResult(origin.robots_url, 200, body))
        allowed = rules.allowed(request.url, "Scrapy")
        assert rules.verdict(request.url, "Scrapy").allowed is allowed
        if allowed:
            mistakes.append((request.url, target))
    return mistakes


@COUNT
@META
@pytest.mark.parametrize("handler", HANDLERS)
@pytest_twisted.ensureDeferred
async def test_no_handler_sends_what_rules_refuse(
    servers: LoopbackServers, handler: str, meta: dict[str, Any], count: int
) -> None:
    one = servers.serve(site(http_response(404)))

    def targets() -> dict[str, str]:
        asked = [each for each in one.asked if "x-number" in each.headers]
        return {each.headers["x-number"]: each.target for each in asked}

    async def script(spider: ScriptedSpider) -> None:
        requests = requests_for(one.url, odd_paths(count), meta)
        sent = await send(spider, requests, targets)
        assert len([None for _, target in sent if can_be_named(target)]) > count / 2
        assert allowed_by_mistake(spider, sent) == []

    await crawl(script, {"DOWNLOAD_HANDLERS": {"http": handler}, "LOG_LEVEL": "ERROR"})


@COUNT
@pytest_twisted.ensureDeferred
async def test_the_handler_for_http2_sends_nothing_that_rules_refuse(count: int) -> None:
    async def script(spider: ScriptedSpider) -> None:
        async with http2_site() as one:

            def targets() -> dict[str, str]:
                asked = [each for each in one.asked if "x-number" in each]
                return {each["x-number"]: each[":path"] for each in asked}

            requests = requests_for(one.url, odd_paths(count), {})
            sent = await send(spider, requests, targets)
            assert len([None for _, target in sent if can_be_named(target)]) > count / 2
            assert allowed_by_mistake(spider, sent) == []

    await crawl(script, {"DOWNLOAD_HANDLERS": {"https": _HTTP2}, "LOG_LEVEL": "ERROR"})


#: What a server receives for a URL, by the handler, where that is not what the URL says.
REWRITTEN = [
    (_HTTP11, "/secret;", "/secret"),
    (_HTTP11, "/doc;?id=1", "/doc?id=1"),
    (_AIOHTTP, "/%40me", "/@me"),
    (_AIOHTTP, "/100%", "/100%25"),
    (_HTTPX, "/a/.", "/a"),
]


@pytest.mark.parametrize(
    ("handler", "path", "target"), [case for case in REWRITTEN if case[0] in HANDLERS]
)
@pytest_twisted.ensureDeferred
async def test_a_rule_for_what_is_sent_refuses_the_url(
    servers: LoopbackServers, handler: str, path: str, target: str
) -> None:
    one = servers.serve(site(ok(f"User-agent: *\nDisallow: {target}$\n".encode())))
    other = servers.serve(site(http_response(404)))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(one.url + path)
        assert isinstance(verdict, Verdict)
        assert verdict.line == 2
        assert verdict.sent_as == one.url + target
        assert str(verdict).endswith(f"; the request may be sent as {one.url}{target}")
        assert await spider.ask(other.url + path) == 200

    await crawl(script, {"DOWNLOAD_HANDLERS": {"http": handler}})
    assert one.targets() == ["/robots.txt"]
    assert other.targets() == ["/robots.txt", target]
