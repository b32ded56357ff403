"""Crawls that write a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy.utils.test import get_crawler

from scrapy_rep import ConfigurationError, RepMiddleware
from scrapy_rep.cli.servers import LoopbackServers, http_response
from scrapy_rep.observers.report import recorder
from scrapy_rep.observers.report.file import takes
from scrapy_rep.observers.report.model import Disagreement
from scrapy_rep.observers.report.recorder import MAX_EVENTS, MAX_EXAMPLES, Recorder
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.policy import Policy
from tests.integration.crawling import RULES, Job, ok, pages, site
from tests.integration.in_process import HOUR, ScriptedSpider, crawl
from tests.observers.report.pages import read

TWO_RULES = b"User-agent: *\nDisallow: /no\nAllow: /no/but\nUnknown: line\n"


def report_lines(log: list[str]) -> list[str]:
    return [line for line in log if " the report " in line]


def test_a_crawl_writes_its_report(servers: LoopbackServers, loop: str, tmp_path: Path) -> None:
    rules = servers.serve(site(ok(TWO_RULES)))
    absent = servers.serve(site(http_response(404)))
    broken = servers.serve(site(http_response(503)))
    path = tmp_path / "reports" / "made" / "%(name)s.html"
    crawl = Job(
        pages=pages(
            *(f"{rules.url}/yes/{number}" for number in range(3)),
            *(f"{rules.url}/no/{number}" for number in range(12)),
            f"{rules.url}/no/but/this",
            f"{absent.url}/page",
            f"{broken.url}/page",
        ),
        setup=loop,
        settings={"REP_REPORT": str(path)},
    ).run()
    assert report_lines(crawl.log) == [
        f"INFO scrapy_rep.observers.report.recorder Wrote the report on robots.txt to "
        f"{path.with_name('job.html')}"
    ]
    page = read(path.with_name("job.html"))
    assert page.rows[rules.url] == {
        "origin": rules.url,
        "access": "successful",
        "status": 200,
        "allowed": 4,
        "refused": 12,
        "fetches": 1,
        "lines": 4,
        "errors": 0,
        "warnings": 1,
    }
    assert page.rows[absent.url]["access"] == "unavailable"
    assert page.rows[broken.url]["access"] == "unreachable"
    assert page.rows[broken.url]["refused"] == 1
    assert "A bar chart: rule 12, unreachable 1." in page.text
    details = page.of(rules.url)
    assert details["lines"][1] == ["Disallow: /no", [], 0, 12]
    assert details["lines"][2] == ["Allow: /no/but", [], 1, 0]
    assert details["lines"][3][1][0][0] == "warning"
    assert len(details["refused"]) == MAX_EXAMPLES
    assert all(
        line == 2 and why == "Disallow: /no" and url.startswith(f"{rules.url}/no/")
        for url, line, why in details["refused"]
    )
    ((_, what, took),) = details["events"]
    assert what == "status 200"
    assert took.endswith(" s")
    assert page.of(broken.url)["refused"] == []
    assert page.of(broken.url)["reasons"] == [
        "1 request refused: robots.txt cannot be fetched (status 503)"
    ]
    for text in (
        "Unreachable: all requests refused",
        "Disallow: /no (line 2)",
        "There is no previous report",
        "product token",
    ):
        assert text in page.text


@pytest.mark.once
@pytest.mark.parametrize("trouble", ["file for a folder", "full disk"])
def test_a_page_that_cannot_be_written_is_one_line_in_the_log(
    servers: LoopbackServers, tmp_path: Path, trouble: str
) -> None:
    full = trouble == "full disk"
    taken = tmp_path / "taken"
    taken.touch()
    path = (tmp_path if full else taken) / "robots.html"
    one = servers.serve(site(ok()))
    crawl = Job(
        pages=pages(f"{one.url}/yes", f"{one.url}/no"),
        setup="asyncio",
        settings={"REP_REPORT": str(path)},
        file_limit=5_000 if full else 0,
    ).run()
    assert crawl.outcome(f"{one.url}/yes") == "fetched"
    assert crawl.outcome(f"{one.url}/no") == "refused"
    (line,) = report_lines(crawl.log)
    assert line.startswith(
        f"ERROR scrapy_rep.observers.report.recorder Cannot write the report {path}: [Errno "
    )
    assert list(tmp_path.iterdir()) == [taken]
    assert crawl.stats["finish_reason"] == "finished"


def test_without_the_template_engine_the_crawl_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "scrapy_rep.observers.report.page")
    scrapys = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
    settings = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {scrapys: None},
        "REP_REPORT": "robots.html",
    }
    crawler = get_crawler(settings_dict=settings)
    with pytest.raises(ConfigurationError, match=r"REP_REPORT needs Jinja2 .*pip install"):
        RepMiddleware(crawler)


# -- with time injected ---------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.html"


@pytest_twisted.ensureDeferred
async def test_of_more_origins_than_are_kept_requests_are_in_the_totals_only(
    servers: LoopbackServers, path: Path
) -> None:
    first, second, third = (servers.serve(site(ok())) for _ in range(3))

    async def script(spider: ScriptedSpider) -> None:
        for one in (first, second, third, third):
            assert await spider.ask(f"{one.url}/yes") == 200
        await spider.ask(f"{third.url}/no")

    await crawl(script, {"REP_MAX_ORIGINS": 2, "REP_REPORT": path})
    page = read(path)
    assert page.rows.keys() == {first.url, second.url}
    assert "3 requests are in the totals only" in page.text
    assert "A bar chart: rule 1." in page.text


@pytest_twisted.ensureDeferred
async def test_a_file_that_changes_begins_anew(servers: LoopbackServers, path: Path) -> None:
    answers = [ok(b"User-agent: *\nDisallow: /no\n"), ok(b"# new\nUser-agent: *\nDisallow: /no\n")]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0) if answers else http_response(503))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(3):
            await spider.ask(f"{one.url}/no")
            await spider.ask(f"{one.url}/no/again")
            spider.clock.now += 25 * HOUR

    await crawl(script, {"REP_REPORT": path})
    page = read(path)
    details = page.of(one.url)
    # Of the last file; it is used in the outage as well.
    assert details["lines"] == ["# new", "User-agent: *", ["Disallow: /no", [], 0, 4]]
    assert page.rows[one.url]["refused"] == 6
    assert page.rows[one.url]["status"] == 503
    assert "this is version 2" in details["notes"][0]
    assert [what for _, what, _ in details["events"]] == ["status 200", "status 200", "status 503"]


@pytest_twisted.ensureDeferred
async def test_sites_that_the_throttle_names(servers: LoopbackServers, path: Path) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/yes")
        site = {"site": "127.0.0.1", "requests": 3, "seconds": 7200.0, "why": "by a line"}
        spider.crawler.stats.set_value("robotstxt/slowest_sites", [site])

    await crawl(script, {"REP_REPORT": path, "REP_MAX_AGE": 600})
    text = " ".join(read(path).text.split())
    assert "The delay between requests took most of the crawl" in text
    assert "by a line 3 2.0 h" in text or "by a line32.0 h" in text
    # What differs from the defaults.
    assert "REP_MAX_AGE600" in text.replace(" ", "")
    assert "REP_DIALECT" not in text


@pytest_twisted.ensureDeferred
async def test_what_is_new_since_the_last_crawl(servers: LoopbackServers, path: Path) -> None:
    answers = [ok(), ok(b"User-agent: *\nDisallow: /\n")]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one, other = servers.serve(site(robots)), servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/yes")
        if answers:
            await spider.ask(f"{other.url}/yes")

    for _ in range(2):
        await crawl(script, {"REP_REPORT": path, "REP_STORE": "memory"})
    text = read(path).text
    _, _, new = text.partition("What is new")
    assert "robots.txt changed 1 origin" in " ".join(new.split())
    assert "Not in this report 1 origin" in " ".join(new.split())


@pytest_twisted.ensureDeferred
async def test_a_file_that_is_gone_is_still_shown(servers: LoopbackServers, path: Path) -> None:
    answers = [ok(), http_response(404)]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/no")
        spider.clock.now += 25 * HOUR
        assert await spider.ask(f"{one.url}/no") == 200

    await crawl(script, {"REP_REPORT": path})
    page = read(path)
    assert page.rows[one.url]["access"] == "unavailable"
    assert page.of(one.url)["lines"][1] == ["Disallow: /no", [], 0, 1]
    assert "not in use" in page.of(one.url)["notes"][0]


@pytest_twisted.ensureDeferred
async def test_what_the_store_knew_is_no_fetch(
    servers: LoopbackServers, path: Path, tmp_path: Path
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/no")

    for _ in range(2):
        await crawl(
            script, {"REP_REPORT": path, "REP_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
        )
    page = read(path)
    assert page.rows[one.url]["fetches"] == 0
    assert [what for _, what, _ in page.of(one.url)["events"]] == ["status 200 (from the store)"]
    assert page.of(one.url)["lines"][1] == ["Disallow: /no", [], 0, 1]


@pytest_twisted.ensureDeferred
async def test_news_and_files_are_bounded(
    servers: LoopbackServers, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "ROOM", takes(FetchResult("", 200, RULES)))
    small, large = servers.serve(site(ok())), servers.serve(site(ok(b"#" + RULES)))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(MAX_EVENTS + 5):
            await spider.ask(f"{small.url}/yes")
            spider.clock.now += 25 * HOUR
        await spider.ask(f"{large.url}/yes")

    await crawl(script, {"REP_REPORT": path})
    page = read(path)
    details = page.of(small.url)
    assert len(details["events"]) == MAX_EVENTS
    assert details["eventCount"] == page.rows[small.url]["fetches"] == MAX_EVENTS + 5
    # However often it was fetched, it takes its room once.
    assert len(details["lines"]) == 2
    assert page.of(large.url)["lines"] is None
    assert "not shown" in page.of(large.url)["notes"][0]


@pytest_twisted.ensureDeferred
async def test_disagreements(servers: LoopbackServers, path: Path) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/no")

    class Comparing(Recorder):
        def on_decision(self, request: Any, policy: Policy | None, *rest: Any) -> None:
            super().on_decision(request, policy, *rest)
            assert policy is not None
            for number in range(MAX_EXAMPLES + 2):
                url = f"{request.url}/{number}"
                self.compared(policy, Disagreement(url, "protego", False, True, 2, "a class"))

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(recorder, "Recorder", Comparing)
        await crawl(script, {"REP_REPORT": path})
    page = read(path)
    assert page.rows[one.url]["disagreements"] == MAX_EXAMPLES + 2
    shown = page.of(one.url)["disagreements"]
    assert len(shown) == MAX_EXAMPLES
    assert shown[0] == [f"{one.url}/no/0", "protego", False, True, 2, "a class"]


@pytest_twisted.ensureDeferred
async def test_second_opinions_that_differ(servers: LoopbackServers, path: Path) -> None:
    one = servers.serve(site(ok(b"User-agent: *\nDisallow: /*.pdf\n")))

    async def script(spider: ScriptedSpider) -> None:
        for name in ("a.pdf", "b.pdf", "c.html"):
            await spider.ask(f"{one.url}/{name}")

    parser = "scrapy.robotstxt.PythonRobotParser"
    await crawl(script, {"REP_REPORT": path, "REP_COMPARE_WITH": parser})
    page = read(path)
    assert page.rows[one.url]["disagreements"] == 2
    assert page.of(one.url)["disagreements"] == [
        [f"{one.url}/{name}", parser, False, True, 2, "wildcards"] for name in ("a.pdf", "b.pdf")
    ]


@pytest_twisted.ensureDeferred
async def test_a_recorder_that_fails_harms_nothing(
    servers: LoopbackServers, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(2):
            assert await spider.ask(f"{one.url}/yes") == 200

    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Recorder, "_seen", fail)
        monkeypatch.setattr(Recorder, "_report", fail)
        await crawl(script, {"REP_REPORT": path})
    ours = [record for record in caplog.records if record.name.startswith("scrapy_rep")]
    assert [
        record.getMessage().partition(" (")[0] for record in ours if record.levelname == "ERROR"
    ] == [
        "scrapy_rep.observers.report.recorder.Recorder failed",
        f"Cannot make the report {path}: RuntimeError('a bug')",
    ]
    assert not path.exists()
