"""Bodies that are made to hurt: too long, without an end, bombs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from scrapy_rep.cli.servers import Answer, LoopbackServers, http_response
from tests.integration.crawling import RULES, Crawl, Job, gzipped, ok, pages, site, stream

MEGABYTE = 1_000_000
LINE = b"Disallow: /no/such/page/as/this/one\n"


def gzip_bomb(start: bytes, megabytes: int) -> bytes:
    """A gzip file of *start* and so many megabytes of empty lines.

    Written by hand, since compressing that much takes long: a block that ends
    with a full flush depends on nothing before it, and so can be repeated.
    """
    empty = b"\n" * MEGABYTE
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    head = deflate.compress(start) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(empty) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc = zlib.crc32(start)
    for _ in range(megabytes):
        crc = zlib.crc32(empty, crc)
    size = len(start) + megabytes * MEGABYTE
    trailer = crc.to_bytes(4, "little") + size.to_bytes(4, "little")
    last = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
    header = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return header + head + block * megabytes + last + trailer


def test_the_bombs_are_real() -> None:
    assert gzip.decompress(gzip_bomb(RULES, 2)) == RULES + b"\n" * 2 * MEGABYTE


def rules(megabytes: int) -> bytes:
    return RULES + LINE * (megabytes * MEGABYTE // len(LINE))


def bomb(megabytes: int) -> bytes:
    return ok(gzip_bomb(RULES, megabytes), ("Content-Encoding", "gzip"))


#: Each is made by the test that needs it: every process of pytest imports this file.
BODIES: dict[str, tuple[Callable[[], Answer | bytes], str]] = {
    "10 MB file": (lambda: ok(rules(10)), "refused"),
    "endless stream": (lambda: stream(RULES, LINE * 100), "refused"),
    "10 MB in one line": (
        lambda: ok(b"User-agent: *\nDisallow: /no" + b"n" * 10 * MEGABYTE),
        "fetched",
    ),
    "gzip bomb of 300 MB": (lambda: bomb(300), "refused"),
    "gzip bomb of 1.5 GB": (lambda: bomb(1500), "refused"),
    "20 MB of gzipped rules": (lambda: gzipped(rules(20)), "refused"),
}


def crawl(servers: LoopbackServers, loop: str, robots: Answer | bytes) -> tuple[Crawl, str]:
    ordinary = servers.serve(site(ok()))
    hostile = servers.serve(site(robots))
    job = Job(
        pages(f"{hostile.url}/yes", f"{hostile.url}/no"),
        loop,
        warm_up=[f"{ordinary.url}/yes"],
    )
    return job.run(), hostile.url


@pytest.mark.clause("Google format-5", "Koster 1996 5-2", "RFC 9309 2.5-1", "RFC 9309 3-2")
@pytest.mark.parametrize(("make", "no"), BODIES.values(), ids=BODIES.keys())
def test_the_first_500_kib_are_used_and_nothing_else(
    servers: LoopbackServers, loop: str, make: Callable[[], Answer | bytes], no: str
) -> None:
    result, url = crawl(servers, loop, make())
    assert result.outcome(f"{url}/yes") == "fetched"
    assert result.outcome(f"{url}/no") == no
    # All of a bomb would take several.
    assert max(outcome["cpu_seconds"] for outcome in result.outcomes.values()) < 2
    assert result.robots_bytes < MEGABYTE
    assert result.memory_growth < 30 * MEGABYTE
    (line,) = result.our_log()
    assert "more than 512000 bytes" in line


@pytest.mark.clause("RFC 9309 2.5-2")
def test_a_file_of_exactly_the_limit_is_whole(servers: LoopbackServers, loop: str) -> None:
    body = rules(1)[: 512_000 - len("\nDisallow: /end")] + b"\nDisallow: /end"
    assert len(body) == 512_000
    hostile = servers.serve(site(ok(body)))
    result = Job(pages(f"{hostile.url}/end", f"{hostile.url}/yes"), loop).run()
    assert result.outcome(f"{hostile.url}/end") == "refused"
    assert result.outcome(f"{hostile.url}/yes") == "fetched"
    assert result.our_log() == []


# Protego keeps each rule once for each user-agent line above it.
STACKED = b"".join(b"User-agent: bot%d\n" % n for n in range(2_500)) + b"".join(
    b"Disallow: /%d\n" % n for n in range(3_500)
)


def test_stacked_agents_never_reach_protego_that_was_chosen(
    servers: LoopbackServers, loop: str
) -> None:
    result, url = crawl_stacked(
        servers, loop, settings={"ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    )
    # Ours is asked instead, and can tell one from the other.
    assert result.outcome(f"{url}/7") == "refused"
    assert result.outcomes[f"{url}/7"]["reason"] == "rule"
    assert result.outcome(f"{url}/yes") == "fetched"


def test_stacked_agents_never_reach_protego_as_fallback(
    servers: LoopbackServers, loop: str
) -> None:
    result, url = crawl_stacked(servers, loop, own_parser_fails=True)
    for path in ("/7", "/yes"):
        assert result.outcome(url + path) == "refused"
        assert result.outcomes[url + path]["reason"] == "unreadable"


def crawl_stacked(servers: LoopbackServers, loop: str, **options: Any) -> tuple[Crawl, str]:
    """A crawl over stacked agents, in which no step was long and no memory was used."""
    hostile = servers.serve(site(ok(b"User-agent: Scrapy\n" + STACKED)))
    warm_up = servers.serve(site(http_response(404)))
    job = Job(
        pages(f"{hostile.url}/7", f"{hostile.url}/yes"),
        loop,
        warm_up=[f"{warm_up.url}/yes"],
        **options,
    )
    result = job.run()
    # Seconds; Protego would take ten.
    assert result.longest_step < 1
    assert result.memory_growth < 30 * MEGABYTE
    assert result.stats["robotstxt/too_costly_count"] == "1"
    (warning,) = [line for line in result.our_log() if " skipped " in line]
    assert warning.startswith("WARNING")
    return result, hostile.url
