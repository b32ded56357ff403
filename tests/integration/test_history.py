"""A robots.txt that changes while crawls see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from scrapy_rep import Origin, RobotsTxt
from scrapy_rep.cli.servers import LoopbackServers, http_response
from scrapy_rep.signals import robots_changed
from tests.cli.running import Done, from_json, robots
from tests.integration.crawling import ok, site
from tests.integration.in_process import HOUR, ScriptedSpider, crawl

FIRST = b"User-agent: *\nDisallow: /a\n"
SECOND = b"User-agent: *\nDisallow: /b\n\nUser-agent: GPTBot\nDisallow: /\n"


@pytest_twisted.ensureDeferred
async def test_changes_are_told_of_and_kept(servers: LoopbackServers, tmp_path: Path) -> None:
    answers = [ok(FIRST), ok(SECOND), http_response(503), ok(b"# new\n" + SECOND)]
    answers += [http_response(404), ok(FIRST)]
    told: list[tuple[Any, Any, Any]] = []

    async def answer(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one = servers.serve(site(answer))

    def changed(old: RobotsTxt | None, new: RobotsTxt | None, origin: Origin) -> None:
        told.append((old and old.body, new and new.body, str(origin)))

    async def script(spider: ScriptedSpider) -> None:
        spider.crawler.signals.connect(changed, robots_changed)
        while answers:
            await spider.ask(f"{one.url}/1")
            spider.clock.now += 25 * HOUR

    store = f"REP_STORE=sqlite:///{tmp_path}/store.sqlite"
    await crawl(script, {"REP_STORE": store.partition("=")[2]})
    newer = b"# new\n" + SECOND
    assert told == [
        (FIRST, SECOND, one.url),
        (SECOND, newer, one.url),
        (newer, None, one.url),
        (None, FIRST, one.url),
    ]

    def run(*arguments: str) -> Done:
        return robots(tmp_path, *arguments, "-s", store)

    [listed] = from_json(run("history", one.url, "--json"))
    versions = listed["versions"]
    assert [version["status"] for version in versions] == [200, 404, 200, 200, 200]
    assert [version["changed"] for version in versions] == [
        "status 404 before",
        "status 200 before",
        "nothing",
        "access lost, access gained, AI agents",
        None,
    ]
    assert versions[3]["added"] == 4
    assert versions[3]["removed"] == 1
    assert len(run("history", one.url).stdout.splitlines()) == 7
    assert "gptbot lost access" in run("diff", one.url, "5", "4").stdout
    assert run("diff", one.url, "4", "3", "--fail-on-change").returncode == 0
    assert run("diff", one.url, "--fail-on-change").returncode == 1
    missing = run("diff", one.url, "9", "1")
    assert missing.returncode == 2
    assert "does not have version 9" in missing.stderr
    assert run("history", "https://unknown.example").returncode == 1
    in_memory = robots(tmp_path, "history", one.url, "-s", "REP_STORE=memory")
    assert in_memory.returncode == 2
