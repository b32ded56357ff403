"""Crawls with a Scrapy that lacks one of the names that are not public: they go on safely."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrapy_rep import engine
from scrapy_rep.cli.servers import Asked, LoopbackServers
from tests.integration.crawling import PAGE, Job, ok, pages, paths, reset, site

#: All that a warning is about, and names that are less than that.
WARNED = list(engine._CONSEQUENCES)  # noqa: SLF001
SILENT = ["slot.queue", "slot.free_transfer_slots", "request._headers"]


async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A robots.txt that others must not wait for."""
    if asked.target == "/robots.txt":
        await asyncio.sleep(0.5)
        writer.write(ok())
    else:
        writer.write(PAGE)


@pytest.mark.parametrize("name", [*WARNED, *SILENT])
def test_a_crawl_without_a_name(servers: LoopbackServers, loop: str, name: str) -> None:
    paced = servers.serve(site(ok(b"User-agent: *\nDisallow: /no\nCrawl-delay: 0.2\n")))
    sites = [servers.serve(slow), servers.serve(slow), servers.serve(site(ok())), paced]
    dead = servers.serve(reset)
    settings: dict[str, Any] = {
        "ADDONS": {"scrapy_rep.Addon": 500, "tests.integration.hiding.Hides": 1},
        "HIDDEN": [name],
        "CONCURRENT_REQUESTS": 3,
        "REP_MAX_WAITING": 12,
    }
    allowed = [url for one in sites for url in paths(one, 6)]
    refused = [f"{one.url}/no" for one in [*sites, dead]]
    result = Job(pages(*refused, *allowed), loop, settings=settings).run()
    assert [result.outcome(url) for url in allowed] == ["fetched"] * len(allowed)
    assert [result.outcome(url) for url in refused] == ["refused"] * len(refused)
    warnings = [line for line in result.log if "scrapy_rep.engine" in line]
    assert len(warnings) == (name in WARNED)
    for warning in warnings:
        assert warning.startswith("WARNING")
        assert f"lacks {name}:" in warning
    assert [line for line in result.log if line.startswith("ERROR")] == []


def test_no_warning_where_all_are_there(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok()))
    result = Job(pages(*paths(one, 2)), loop).run()
    assert [line for line in result.log if "scrapy_rep.engine" in line] == []


@pytest.mark.parametrize("stop_by", ["close_spider", "SIGINT"])
@pytest.mark.parametrize("name", ["engine.running", "engine._slot", "engine._slot.closing"])
def test_a_stop_without_a_name(
    servers: LoopbackServers, loop: str, stop_by: str, name: str
) -> None:
    one = servers.serve(slow)
    settings: dict[str, Any] = {
        "ADDONS": {"scrapy_rep.Addon": 500, "tests.integration.hiding.Hides": 1},
        "HIDDEN": [name],
        "CONCURRENT_REQUESTS": 1,
    }
    spider = {"stop_at": 5, "stop_stat": "robotstxt/waiting_count", "stop_by": stop_by}
    result = Job(pages(*paths(one, 5)), loop, settings=settings, spider=spider).run()
    # It ends; nothing is asked for that must not be.
    assert 0 < result.seconds_to_close < 30
    assert set(one.targets()) <= {"/robots.txt", *(f"/{number}" for number in range(5))}
