"""What the specifications say about fetching, and no other crawl here shows: docs/conformance."""

from __future__ import annotations

import asyncio

import pytest
import pytest_twisted

from scrapy_rep import Reason, Verdict
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers
from tests.integration.crawling import RULES, ok, redirect, site
from tests.integration.in_process import ScriptedSpider, crawl, robots_count


@pytest.mark.clause("Google status-4")
@pytest_twisted.ensureDeferred
async def test_a_meta_refresh_in_a_robots_txt_is_not_followed(servers: LoopbackServers) -> None:
    html = b'<html><meta http-equiv="refresh" content="0; url=/rules/robots.txt"></html>'

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(ok(html, ("Content-Type", "text/html")))
        else:
            writer.write(ok(b"User-agent: *\nDisallow: /\n"))

    one = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/page") == 200

    await crawl(script, {"REP_DIALECT": "google"})
    assert one.targets() == ["/robots.txt", "/page"]


def hops(count: int) -> Answer:
    """So many redirects in a row, then rules; any other path is a page."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        place = "0" if asked.target == "/robots.txt" else asked.target.removeprefix("/hop")
        if not place.isdigit() or int(place) == count:
            writer.write(ok())
        else:
            writer.write(redirect(f"/hop{int(place) + 1}", 302))

    return answer


@pytest.mark.clause("Koster 1996 3.1-9")
@pytest_twisted.ensureDeferred
async def test_twenty_redirects_are_followed_in_the_dialect_of_1996(
    servers: LoopbackServers,
) -> None:
    enough, too_many = servers.serve(hops(20)), servers.serve(hops(21))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{enough.url}/yes") == 200
        by_rule = await spider.ask(f"{enough.url}/no")
        assert isinstance(by_rule, Verdict)
        assert by_rule.reason is Reason.RULE
        unreachable = await spider.ask(f"{too_many.url}/yes")
        assert isinstance(unreachable, Verdict)
        assert unreachable.reason is Reason.UNREACHABLE

    # Not held, as there is nobody who would wait.
    await crawl(script, {"REP_DIALECT": "koster1996", "REP_UNREACHABLE": "disallow"})
    assert len(enough.targets()) == 22
    assert len(too_many.targets()) == 21


@pytest.mark.clause("Koster 1996 3.2.2-2")
@pytest_twisted.ensureDeferred
async def test_rules_apply_to_any_method(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
            assert await spider.ask(f"{one.url}/yes", method=method) == 200
            assert isinstance(await spider.ask(f"{one.url}/no", method=method), Verdict)

    await crawl(script, {"REP_DIALECT": "koster1996"})
    assert robots_count(one) == 1
    assert "/no" not in one.targets()


@pytest.mark.clause("Google format-5")
@pytest_twisted.ensureDeferred
async def test_a_crawl_in_the_google_dialect_reads_500_kib(servers: LoopbackServers) -> None:
    start, end = b"User-agent: *\nDisallow: /within\n", b"\nDisallow: /beyond\n"
    body = start + b"#" * (512_000 - len(start)) + end
    one = servers.serve(site(ok(body)))

    async def script(spider: ScriptedSpider) -> None:
        assert isinstance(await spider.ask(f"{one.url}/within"), Verdict)
        assert await spider.ask(f"{one.url}/beyond") == 200

    await crawl(script, {"REP_DIALECT": "google"})


@pytest.mark.clause("RFC 9111 3-1", "RFC 9111 4.3.1-1")
@pytest_twisted.ensureDeferred
async def test_the_robots_txt_is_requested_by_get(servers: LoopbackServers) -> None:
    methods: list[str] = []

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        methods.append(f"{asked.method} {asked.target}")
        writer.write(ok())

    one = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes", method="POST", body=b"a=b") == 200

    await crawl(script)
    assert methods == ["GET /robots.txt", "POST /yes"]


@pytest.mark.clause("RFC 9111 5.2.1-1")
@pytest_twisted.ensureDeferred
async def test_cache_control_of_a_page_has_no_influence(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for directives in ("no-cache", "no-store", "max-age=0"):
            headers = {"Cache-Control": directives}
            assert await spider.ask(f"{one.url}/yes", headers=headers) == 200

    await crawl(script)
    assert robots_count(one) == 1


@pytest.mark.clause("Google status-3")
@pytest_twisted.ensureDeferred
async def test_a_redirect_is_followed_to_a_path_that_is_refused_there(
    servers: LoopbackServers,
) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        rules = b"User-agent: *\nDisallow: /private/\n" if asked.target == "/robots.txt" else RULES
        writer.write(ok(rules))

    other = servers.serve(answer)
    one = servers.serve(site(redirect(f"{other.url}/private/rules.txt")))

    async def script(spider: ScriptedSpider) -> None:
        assert isinstance(await spider.ask(f"{other.url}/private/rules.txt"), Verdict)
        assert await spider.ask(f"{one.url}/yes") == 200
        assert isinstance(await spider.ask(f"{one.url}/no"), Verdict)

    await crawl(script, {"REP_DIALECT": "google"})
    assert other.targets() == ["/robots.txt", "/private/rules.txt"]


@pytest.mark.clause("RFC 9111 4.4-1")
@pytest_twisted.ensureDeferred
async def test_a_crawl_that_writes_a_robots_txt_does_not_fetch_it_again(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200
        assert await spider.ask(f"{one.url}/robots.txt", method="PUT", body=b"") == 200
        assert await spider.ask(f"{one.url}/yes") == 200

    await crawl(script)
    methods = [asked.method for asked in one.asked if asked.target == "/robots.txt"]
    assert methods == ["GET", "PUT"]
