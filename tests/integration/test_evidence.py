"""Crawls that leave an audit log and an archive, and what is found when these are checked."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_twisted
from scrapy.settings import Settings
from warcio.archiveiterator import ArchiveIterator
from warcio.cli import main as warcio

from scrapy_rep.cli.demo_sites import Served, demo_sites, serving
from scrapy_rep.cli.servers import LoopbackServers, http_response
from scrapy_rep.evidence.verify import Problem, Verifier
from tests.integration.crawling import ROOT, RULES, Job, gzipped, ok, pages, redirect, site
from tests.integration.evidence import Evidence, resealed, settings
from tests.integration.in_process import HOUR, ScriptedSpider, crawl, stat

# More take minutes: set EVIDENCE_CHANGES to 1000 and EVIDENCE_KILLS to 20.
CHANGES = int(os.environ.get("EVIDENCE_CHANGES", "60"))
KILLS = int(os.environ.get("EVIDENCE_KILLS", "4"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Served], dict[str, Any]]:
    """The evidence of a crawl of the demo's sites, which are closed by now."""
    directory = tmp_path_factory.mktemp("demo")
    with serving(demo_sites()) as served:
        asked = [each.url(path) for each in served for path in each.site.pages]
        crawled = Job(
            pages=pages(*asked),
            setup="asyncio",
            settings={
                **settings(directory),
                "USER_AGENT": "ExampleBot/1.0",
                # One site never answers, and others are slow on a busy machine.
                "REP_FETCH_TIMEOUT": 15,
            },
        ).run()
    return directory, served, crawled.stats


def test_the_demos_sites_are_verified_without_a_network(
    demo: tuple[Path, list[Served], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, served, stats = demo

    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("the network is gone")

    monkeypatch.setattr(socket, "socket", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    evidence = Evidence.read(directory)
    problems, summary = evidence.verify()
    assert problems == []
    asked = [each.url(path) for each in served for path in each.site.pages]
    assert summary.decisions == summary.recomputed == len(asked)
    assert summary.digest == stats["robotstxt/audit/digest"].strip("'")
    decisions = evidence.decisions()
    assert {url: line["allowed"] for url, line in decisions.items()} == {
        each.url(path): not why for each in served for path, why in each.site.pages.items()
    }


def test_warcio_reads_the_archive(
    demo: tuple[Path, list[Served], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, _, stats = demo
    [path] = directory.glob("*.warc.gz")
    with pytest.raises(SystemExit) as exited:
        warcio(["check", "-v", str(path)])
    assert exited.value.code == 0
    checked = capsys.readouterr().out
    assert "digest pass" in checked
    assert "no digest" not in checked
    warcio(["index", "-f", "offset,warc-type", str(path)])
    index = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(index) == int(stats["robotstxt/archive/record_count"])
    assert {record["warc-type"] for record in index} == {
        "warcinfo",
        "response",
        "request",
        "metadata",
        "revisit",
    }


def changes(content: bytes, times: int) -> Iterator[bytes]:
    """*content* with one byte changed, so many *times*."""
    random = Random(23)
    for _ in range(times):
        changed = bytearray(content)
        changed[random.randrange(len(changed))] ^= random.randrange(1, 256)
        yield bytes(changed)


def check_changes(evidence: Evidence, times: int) -> None:
    """Change a byte of the log and one of the archive, so many *times*: each is found."""
    for log in changes(evidence.log, times):
        problem = Evidence(log, evidence.archive).first_problem()
        changed = next(
            number
            for number, (ours, theirs) in enumerate(
                zip(log.split(b"\n"), evidence.log.split(b"\n"), strict=False), 1
            )
            if ours != theirs
        )
        assert problem is not None
        assert problem.number == changed
    for archive in changes(evidence.archive, times):
        assert Evidence(evidence.log, archive).first_problem() is not None


def test_a_changed_byte_is_found(demo: tuple[Path, list[Served], dict[str, Any]]) -> None:
    check_changes(Evidence.read(demo[0]), 20)


@pytest.mark.once
def test_each_of_many_changed_bytes_is_found(
    demo: tuple[Path, list[Served], dict[str, Any]],
) -> None:
    check_changes(Evidence.read(demo[0]), CHANGES)


def test_a_cut_end_is_found(demo: tuple[Path, list[Served], dict[str, Any]]) -> None:
    evidence = Evidence.read(demo[0])
    lines = evidence.log.splitlines(keepends=True)
    without_end = Evidence(b"".join(lines[:-1]), evidence.archive)
    [problem] = without_end.problems()
    assert "no last line" in problem.what
    assert without_end.problems(unfinished=True) == []
    half = Evidence(evidence.log[:-100], evidence.archive)
    assert half.problems()
    assert half.problems(unfinished=True) == []
    assert Evidence(b"".join(lines[1:]), evidence.archive).problems()
    assert Evidence(b"", evidence.archive).problems()
    assert Evidence(evidence.log, evidence.archive[:-1]).problems()
    assert Evidence(evidence.log, evidence.archive + b"\0").problems()
    assert Evidence(evidence.log + lines[-1], evidence.archive).problems()


def test_another_digest_is_named(demo: tuple[Path, list[Served], dict[str, Any]]) -> None:
    # Whoever can write all of the log can make a chain that is right.
    evidence = Evidence.read(demo[0])
    lines = evidence.lines
    del lines[-3]
    lines[-1]["lines"] -= 1
    forged = Evidence(resealed(lines), evidence.archive)
    problems, summary = forged.verify()
    # That a decision is missing cannot be seen, but by the digest.
    assert problems == []
    assert summary.digest != evidence.verify()[1].digest


def refused(line: dict[str, Any]) -> bool:
    return (line["type"], line.get("reason"), line.get("allowed")) == ("decision", "rule", False)


def fetched(line: dict[str, Any]) -> bool:
    return (line["type"], line.get("access")) == ("fetch", "successful")


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], bool], dict[str, Any], str]] = {
    "allowed": (refused, {"allowed": True}, "its verdict is"),
    "url": (refused, {"url": "http://127.0.1.1:1/"}, "about another origin"),
    "line": (refused, {"line": 77}, "its verdict is"),
    "rule": (refused, {"rule": "Disallow: /else"}, "its verdict is"),
    "agents": (refused, {"agents": []}, "its verdict is"),
    "reason": (refused, {"reason": "no-rule"}, "its verdict is"),
    "sha256": (refused, {"sha256": "0" * 64}, "the SHA-256 of its robots.txt"),
    "rests_on": (refused, {"rests_on": "0" * 64}, "no earlier line"),
    "override": (refused, {"overrides": ["REP_UNREACHABLE"]}, "settings that override"),
    "age": (refused, {"age": 99.0}, "its copy was"),
    "too late": (refused, {"time": 2e9}, "too old"),
    "too early": (refused, {"time": 1e9}, "before the line that it rests on"),
    "fetched_at": (refused, {"fetched_at": 5.0}, "the time of its copy"),
    "access": (fetched, {"access": "unavailable"}, "the access result is"),
    "entry": (fetched, {"entry": {"copy": None, "outage": None}}, "what is known after"),
    "archive": (fetched, {"archive": [0, 5, "0" * 64]}, "its records begin at"),
    "type": (refused, {"type": "rumour"}, "unknown type"),
    "not a number": (refused, {"time": "noon"}, "cannot be read"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_line_that_does_not_follow_is_named_though_all_digests_are_right(
    demo: tuple[Path, list[Served], dict[str, Any]], name: str
) -> None:
    evidence = Evidence.read(demo[0])
    is_meant, change, why = FORGERIES[name]
    lines = evidence.lines
    number = next(number for number, line in enumerate(lines) if is_meant(line))
    if name == "agents":
        # One whose verdict depends on who asks.
        number = next(
            number
            for number, line in enumerate(lines)
            if refused(line) and line["group"][0][0] == "examplebot"
        )
    lines[number] = lines[number] | copy.deepcopy(change)
    problems = Evidence(resealed(lines), evidence.archive).problems()
    assert problems[0].number == number + 1
    assert why in problems[0].what


def test_a_robots_txt_that_is_exchanged_is_named(
    demo: tuple[Path, list[Served], dict[str, Any]],
) -> None:
    evidence = Evidence.read(demo[0])
    lines = evidence.lines
    first, second, *_ = (number for number, line in enumerate(lines) if fetched(line))
    origin = lines[first]["origin"]
    lines[first]["origin"], lines[second]["origin"] = lines[second]["origin"], origin
    problems = Evidence(resealed(lines), evidence.archive).problems()
    assert {first + 1, second + 1} <= {problem.number for problem in problems}


# -- over time ---------------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_304_outage_and_what_the_store_knew_are_verified(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    etag = ("ETag", '"1"')
    answers = [
        ok(RULES, etag),
        http_response(304, b"", [etag]),
        http_response(503),
        ok(b"User-agent: *\nDisallow: /other\n"),
    ]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one = servers.serve(site(robots))
    store = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite"}

    async def first(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200

    async def second(spider: ScriptedSpider) -> None:
        # What the first crawl has fetched, then a 304, then an outage, then another file.
        spider.clock.now += HOUR
        await spider.ask(f"{one.url}/no")
        for path in ("no/1", "no/2", "no/3"):
            spider.clock.now += 25 * HOUR
            await spider.ask(f"{one.url}/{path}")

    await crawl(first, settings(tmp_path / "first") | store)
    assert Evidence.read(tmp_path / "first").problems() == []
    await crawl(second, settings(tmp_path / "second") | store)
    assert answers == []
    evidence = Evidence.read(tmp_path / "second")
    problems, summary = evidence.verify()
    assert problems == []
    assert summary.recomputed == 4
    assert [line["type"] for line in evidence.lines[1:3]] == ["stored", "decision"]
    assert [line["result"]["status"] for line in evidence.of_type("fetch")] == [304, 503, 200]
    assert [line["allowed"] for line in evidence.decisions().values()] == [False] * 3 + [True]
    kinds = [each.rec_type for each in ArchiveIterator(BytesIO(evidence.archive))]
    assert kinds.count("resource") == 1
    assert kinds.count("revisit") == 1


@pytest_twisted.ensureDeferred
async def test_an_answer_that_may_not_be_kept_serves_those_that_wait(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(ok(RULES, ("Cache-Control", "max-age=0"))))

    async def script(spider: ScriptedSpider) -> None:
        for path in ("1", "no", "2"):
            await spider.ask(f"{one.url}/{path}")
            spider.clock.now += 30

    await crawl(script, settings(tmp_path) | {"REP_MIN_AGE": 10})
    assert len(Evidence.read(tmp_path).of_type("fetch")) == 3
    assert Evidence.read(tmp_path).problems() == []


@pytest_twisted.ensureDeferred
async def test_origins_beyond_the_bound_are_described_again(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    several = [servers.serve(site(ok())) for _ in range(3)]

    async def script(spider: ScriptedSpider) -> None:
        for path in ("1", "no", "2"):
            await ask_all(spider, [f"{one.url}/{path}" for one in several])

    store = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite", "REP_MAX_ORIGINS": 1}
    await crawl(script, settings(tmp_path) | store)
    evidence = Evidence.read(tmp_path)
    assert evidence.problems() == []
    assert len(evidence.of_type("fetch")) == 3
    # Each origin makes the log forget the one before.
    assert len(evidence.of_type("stored")) == 6
    kinds = [each.rec_type for each in ArchiveIterator(BytesIO(evidence.archive))]
    # But no body is archived again.
    assert kinds.count("resource") == 0


@pytest_twisted.ensureDeferred
async def test_a_page_that_refuses_by_its_header_is_in_the_log(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    page = http_response(200, b"a page", [("X-Robots-Tag", "noai"), ("TDM-Reservation", "1")])

    async def answer(asked: Any, writer: Any) -> None:
        writer.write(http_response(404) if asked.target == "/robots.txt" else page)

    one = servers.serve(answer)
    options = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"], "REP_TDM_FILE": False}

    async def script(spider: ScriptedSpider) -> None:
        await ask_all(spider, [f"{one.url}/1"])

    await crawl(script, settings(tmp_path) | options)
    evidence = Evidence.read(tmp_path)
    assert [line["reason"] for line in evidence.of_type("decision")] == ["unavailable", "reserved"]
    assert evidence.problems() == []


@pytest_twisted.ensureDeferred
async def test_a_request_that_waited_in_vain_is_verified(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(http_response(503)))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/1")

    await crawl(script, settings(tmp_path) | {"REP_UNREACHABLE": "defer", "REP_MAX_WAIT": 1e-9})
    evidence = Evidence.read(tmp_path)
    assert [line["allowed"] for line in evidence.of_type("decision")] == [False]
    assert evidence.problems() == []


async def ask_all(spider: ScriptedSpider, urls: list[str], **options: Any) -> None:
    for url in urls:
        await spider.ask(url, **options)


@pytest_twisted.ensureDeferred
async def test_what_overrides_the_standard_is_in_the_log(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    forbidden = servers.serve(site(http_response(403)))
    down = servers.serve(site(http_response(503)))
    long = servers.serve(site(ok(RULES + b"#" * 600_000)))
    fine = servers.serve(site(ok()))
    options = {
        "REP_STATUS_OVERRIDES": {403: "disallow"},
        "REP_UNREACHABLE": "allow",
    }

    async def script(spider: ScriptedSpider) -> None:
        await ask_all(spider, [f"{each.url}/no" for each in (forbidden, down, long, fine)])
        await spider.ask(f"{fine.url}/no/2", meta={"dont_obey_robotstxt": True})
        await spider.ask(f"{fine.url}/robots.txt")
        await spider.ask("data:,a")

    await crawl(script, settings(tmp_path) | options)
    evidence = Evidence.read(tmp_path)
    assert evidence.problems() == []
    found = {
        url: (line["allowed"], line["reason"], line.get("overrides"))
        for url, line in evidence.decisions().items()
    }
    assert found == {
        f"{forbidden.url}/no": (False, "disallowed", ["REP_STATUS_OVERRIDES"]),
        f"{down.url}/no": (True, "unreachable", ["REP_UNREACHABLE"]),
        f"{long.url}/no": (False, "rule", ["REP_MAX_SIZE"]),
        f"{fine.url}/no": (False, "rule", []),
        f"{fine.url}/no/2": (True, "dont_obey_robotstxt", ["dont_obey_robotstxt"]),
        f"{fine.url}/robots.txt": (True, "robots-txt-itself", []),
        "data:,a": (True, "other-scheme", None),
    }


FILES = {
    "purposes": (b"User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n", ["/1"]),
    "visit time": (b"User-agent: *\nVisit-time: 0100-0200\nDisallow: /no\n", ["/1", "/no"]),
    "several agents": (
        b"User-agent: b\nDisallow: /b\n\nUser-agent: a\nDisallow: /a\n",
        ["/a", "/b"],
    ),
    "spellings": (b"User-agent: *\nDisallow: /secret$\n", ["/secret;", "/x"]),
    "costly": (
        b"User-agent: *\n" + b"".join(b"Disallow: /*a*%03x\n" % n for n in range(2_000)),
        ["/abc" + "a" * 200, "/b"],
    ),
    "a verdict of length": (b"User-agent: *\nDisallow: /" + b"x" * 3_000, ["/" + "x" * 3_000]),
}


@pytest.mark.parametrize("dialect", ["rfc9309", "google", "koster1996", "koster1994"])
@pytest_twisted.ensureDeferred
async def test_all_dialects_and_directives_are_verified(
    servers: LoopbackServers, tmp_path: Path, dialect: str
) -> None:
    sites = {name: servers.serve(site(ok(body))) for name, (body, _) in FILES.items()}
    packed = servers.serve(site(gzipped(RULES)))
    moved = servers.serve(site(redirect(f"{packed.url}/robots.txt")))

    async def script(spider: ScriptedSpider) -> None:
        for name, one in sites.items():
            await ask_all(spider, [one.url + path for path in FILES[name][1]])
        await ask_all(spider, [f"{packed.url}/no", f"{moved.url}/no"])

    options = {
        "REP_DIALECT": dialect,
        "REP_PURPOSES": ["ai-train"],
        "REP_VISIT_TIME": "refuse",
        "REP_AGENT_TOKENS": ["A", "B"],
    }
    crawler = await crawl(script, settings(tmp_path) | options)
    evidence = Evidence.read(tmp_path)
    problems, summary = evidence.verify()
    assert problems == []
    assert (
        summary.recomputed == summary.decisions == 2 + sum(len(each[1]) for each in FILES.values())
    )
    assert stat(crawler, "robotstxt/audit/line_count") == summary.lines
    assert any(not line["allowed"] for line in evidence.of_type("decision"))


@pytest_twisted.ensureDeferred
async def test_a_parser_of_the_project_is_asked_only_if_the_project_has_it(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(ok()))
    chosen = {"ROBOTSTXT_PARSER": "tests.integration.parsers.FailsWhenAsked"}

    async def script(spider: ScriptedSpider) -> None:
        await ask_all(spider, [f"{one.url}/1"])

    await crawl(script, settings(tmp_path) | chosen)
    evidence = Evidence.read(tmp_path)
    [first, *_] = evidence.problems()
    assert first.number == 1
    assert "-s ROBOTSTXT_PARSER=" in first.what
    verifier = Verifier(BytesIO(evidence.archive), Settings(chosen))
    assert list(verifier.check(BytesIO(evidence.log))) == []


@pytest_twisted.ensureDeferred
async def test_without_an_archive_the_digests_are_checked(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await ask_all(spider, [f"{one.url}/1", f"{one.url}/no"])

    await crawl(script, {"REP_AUDIT": str(tmp_path / "a.jsonl")})
    log = (tmp_path / "a.jsonl").read_bytes()
    verifier = Verifier(None, Settings())
    assert list(verifier.check(BytesIO(log))) == []
    assert (verifier.summary.decisions, verifier.summary.recomputed) == (2, 0)
    changed = log.replace(b'"allowed":false', b'"allowed":true')
    [problem] = Verifier(None, Settings()).check(BytesIO(changed))
    assert isinstance(problem, Problem)


@pytest_twisted.ensureDeferred
async def test_an_archive_alone(
    servers: LoopbackServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        await ask_all(spider, [f"{one.url}/1", f"{one.url}/no"])

    await crawl(script, {"REP_ARCHIVE": str(tmp_path / "%(name)s")})
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    [path] = (tmp_path / "scripted").iterdir()
    kinds = [each.rec_type for each in ArchiveIterator(BytesIO(path.read_bytes()))]
    assert kinds == ["warcinfo", "response", "request", "metadata"]


@pytest_twisted.ensureDeferred
async def test_a_password_in_a_url_is_not_logged(servers: LoopbackServers, tmp_path: Path) -> None:
    one = servers.serve(site(ok()))
    url = one.url.replace("://", "://me:secret@")

    async def script(spider: ScriptedSpider) -> None:
        with contextlib.suppress(Exception):
            await spider.ask(f"{url}/1")

    await crawl(script, settings(tmp_path))
    evidence = Evidence.read(tmp_path)
    assert b"secret" not in evidence.log
    assert list(evidence.decisions()) == [f"{one.url}/1"]
    assert evidence.problems() == []


@pytest_twisted.ensureDeferred
async def test_files_that_cannot_be_written_do_not_stop_the_crawl(
    servers: LoopbackServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(site(ok()))
    (tmp_path / "file").write_text("")

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/1") == 200

    nowhere = str(tmp_path / "file" / "x")
    await crawl(script, {"REP_AUDIT": nowhere, "REP_ARCHIVE": nowhere})
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 2
    assert all("The crawl continues without it." in error for error in errors)


# -- several processes, and their end ---------------------------------------------------------


def test_two_workers_write_two_files(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    one = servers.serve(site(ok()))
    job = Job(pages=pages(f"{one.url}/1", f"{one.url}/no"), setup=loop, settings=settings(tmp_path))
    workers = [threading.Thread(target=job.run) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    logs = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert logs == ["job-2.jsonl", "job.jsonl"]
    for log in logs:
        content = (tmp_path / log).read_bytes()
        archive = tmp_path / json.loads(content.splitlines()[0])["archive_file"]
        assert Evidence(content, archive.read_bytes()).problems() == []


_ENDLESS = """
import asyncio
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Endless(scrapy.Spider):
    name = "endless"
    async def start(self):
        for number in range(1_000_000):
            # While the downloader is full, Scrapy takes all of them before anything else.
            await asyncio.sleep(0)
            yield scrapy.Request(f"{sys.argv[1]}/{number}")
            yield scrapy.Request(f"{sys.argv[1]}/no/{number}", errback=lambda failure: None)
    def parse(self, response):
        pass

process = CrawlerProcess({
    "ADDONS": {"scrapy_rep.Addon": 500}, "REP_STORE": "memory", "ROBOTSTXT_OBEY": True,
    "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
    "REP_AUDIT": sys.argv[2] + "/%(name)s.jsonl", "REP_ARCHIVE": sys.argv[2],
})
process.crawl(Endless)
process.start()
"""


def kill_after(lines: int, url: str, directory: Path) -> Evidence:
    """The evidence of a crawl that was killed when its log had so many *lines*."""
    worker = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, url, str(directory)], cwd=ROOT, stderr=subprocess.PIPE
    )
    log = directory / "endless.jsonl"
    try:
        while not log.exists() or log.read_bytes().count(b"\n") < lines:
            assert worker.poll() is None, worker.communicate()
            # Only to leave the processor to the worker.
            time.sleep(0.01)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
        worker.communicate()
    return Evidence.read(directory)


def check_killed(servers: LoopbackServers, directory: Path, lines: int) -> None:
    one = servers.serve(site(ok()))
    evidence = kill_after(lines, one.url, directory)
    assert evidence.problems()
    problems, summary = evidence.verify(unfinished=True)
    assert problems == []
    assert summary.lines >= lines
    # No page was asked for that the log does not know of.
    whole = evidence.log[: evidence.log.rindex(b"\n") + 1]
    logged = Evidence(whole, b"").decisions()
    asked = [f"{one.url}{target}" for target in one.targets() if target != "/robots.txt"]
    assert all(logged[url]["allowed"] for url in asked)


def test_a_killed_crawl_leaves_its_evidence(servers: LoopbackServers, tmp_path: Path) -> None:
    check_killed(servers, tmp_path, 20)


@pytest.mark.once
@pytest.mark.parametrize("number", range(0, 20, 20 // KILLS))
def test_killed_crawls_leave_their_evidence(
    servers: LoopbackServers, tmp_path: Path, number: int
) -> None:
    check_killed(servers, tmp_path, 3 + 17 * number)
