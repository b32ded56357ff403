"""Second opinions, and the summary, in crawls."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.integration.crawling import RULES, Job, ok, pages, reset, site

PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
OURS = "scrapy_rep.parser.RepRobotParser"
PARSERS = "tests.integration.parsers"
STORAGES = {
    "thread": "tests.integration.storages.InThread",
    "broken": "tests.integration.storages.Broken",
}
# 100 KiB, with which Protego would hold the loop for seconds.
HOSTILE = b"".join(b"User-agent: b%d\n" % number for number in range(2500))
HOSTILE += b"User-agent: *\n"
HOSTILE += b"".join(b"Disallow: /no%d\n" % number for number in range(2500))


def counts(stats: dict[str, str], parser: str) -> dict[str, int]:
    prefix = f"robotstxt/compare/{parser}/"
    return {
        key.removeprefix(prefix): int(value)
        for key, value in stats.items()
        if key.startswith(prefix)
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_protego_is_asked_too_and_changes_nothing(
    servers: LoopbackServers, loop: str, tmp_path: Path
) -> None:
    good, dead = servers.serve(site(ok())), servers.serve(site(reset))
    # That "/./no" is "/no" is what Protego does not know.
    paths = ["/yes", "/no", "/./no", "/./no/2", "/robots.txt"]
    urls = [*(good.url + path for path in paths), f"{dead.url}/yes"]
    feed = tmp_path / "differences.jsonl"
    settings = {
        "REP_COMPARE_WITH": PROTEGO,
        "REP_COMPARE_FEED": str(feed),
    }
    result = Job(pages(*urls), loop, settings).run()
    outcomes = ["fetched", "refused", "refused", "refused", "fetched", "refused"]
    assert [result.outcome(url) for url in urls] == outcomes
    assert counts(result.stats, PROTEGO) == {"agree": 2, "looser": 2}
    differences = sorted(lines(feed), key=lambda line: str(line["url"]))
    assert [line["url"] for line in differences] == urls[2:4]
    assert differences[0] == {
        "url": urls[2],
        "agents": ["Scrapy"],
        "allowed": False,
        "parser": PROTEGO,
        "parser_allowed": True,
        "reason": "rule",
        "rule": "Disallow: /no",
        "line": 2,
        "origin": good.url,
        "difference": "dot segments",
    }
    [logged] = [line for line in result.our_log() if "scrapy_rep.parsers.shadow" in line]
    assert logged.startswith(f"INFO scrapy_rep.parsers.shadow {good.url}/./no")
    assert f'"Disallow: /no" (line 2, group *) of {good.url}/robots.txt' in logged
    assert logged.endswith(f". {PROTEGO} disagrees: allowed.")


def test_ours_is_asked_where_protego_decides(servers: LoopbackServers, loop: str) -> None:
    # To Protego, a part of our token names us.
    good = servers.serve(site(ok(b"User-agent: Scrap\nAllow: /\n\n" + RULES)))
    urls = [f"{good.url}/yes", f"{good.url}/no"]
    settings = {"ROBOTSTXT_PARSER": PROTEGO, "REP_COMPARE_WITH": ["scrapy_rep.RepRobotParser"]}
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "fetched"]
    assert counts(result.stats, OURS) == {"agree": 1, "stricter": 1}


def test_second_opinions_that_fail_do_no_harm(servers: LoopbackServers, loop: str) -> None:
    good, hostile = servers.serve(site(ok())), servers.serve(site(ok(HOSTILE)))
    urls = [f"{good.url}/yes", f"{good.url}/no", f"{hostile.url}/yes", f"{hostile.url}/no1"]
    raises, cannot_read = f"{PARSERS}.FailsWhenAsked", f"{PARSERS}.FailsToParse"
    settings = {"REP_COMPARE_WITH": [raises, cannot_read, PROTEGO]}
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused"] * 2
    assert counts(result.stats, raises) == {"error": 2, "skipped": 2}
    assert counts(result.stats, cannot_read) == {"error": 2, "skipped": 2}
    assert counts(result.stats, PROTEGO) == {"agree": 2, "skipped": 2}
    warnings = [line for line in result.our_log() if "are not compared" in line]
    assert sorted(line.split()[2] for line in warnings) == [cannot_read, raises]


@pytest.mark.parametrize("scheme", ["thread", "broken"])
def test_a_feed_storage_of_the_project(
    servers: LoopbackServers, loop: str, tmp_path: Path, scheme: str
) -> None:
    good = servers.serve(site(ok()))
    feed = tmp_path / "job.jsonl"
    settings = {
        "REP_COMPARE_WITH": PROTEGO,
        "REP_COMPARE_FEED": f"{scheme}:{tmp_path}/%(name)s.jsonl",
        "FEED_STORAGES": STORAGES,
    }
    result = Job(pages(f"{good.url}/./no", f"{good.url}/yes"), loop, settings).run()
    assert result.outcome(f"{good.url}/./no") == "refused"
    assert result.outcome(f"{good.url}/yes") == "fetched"
    about_feed = [line for line in result.our_log() if "scrapy_rep.observers.feed" in line]
    if scheme == "thread":
        assert [line["line"] for line in lines(feed)] == [2]
        assert about_feed == [
            f"INFO scrapy_rep.observers.feed Stored 1 lines in thread:{tmp_path}/job.jsonl"
        ]
    else:
        [error] = about_feed
        assert error.startswith("ERROR scrapy_rep.observers.feed Cannot write the feed broken:")
        assert "ConnectionError: the cloud is gone" in error


def test_the_crawl_ends_with_a_summary(servers: LoopbackServers, loop: str) -> None:
    good, dead = servers.serve(site(ok())), servers.serve(site(reset))
    urls = [f"{good.url}/yes", *(f"{good.url}/no/{number}" for number in range(3))]
    urls += [f"{dead.url}/yes"]
    result = Job(pages(*urls), loop).run()
    [summary] = result.summaries()
    *told, failure = summary.split("\n")
    assert re.fullmatch(r" {7}1  \w+: .+", failure)
    assert told == [
        "robots.txt summary:",
        "origins: 2 (successful 1, unreachable 1)",
        "requests refused: 4 (rule 3, unreachable 1)",
        "origins with most refusals:",
        f'       3  {good.url}: "Disallow: /no" (line 2)',
        f"       1  {dead.url}: unreachable",
        "failed fetches of robots.txt:",
    ]


def test_a_crawl_that_obeys_no_robots_txt_has_no_summary(
    servers: LoopbackServers, loop: str
) -> None:
    good = servers.serve(site(ok()))
    page = pages(f"{good.url}/no", dont_obey_robotstxt=True)
    result = Job(page, loop).run()
    assert result.outcome(f"{good.url}/no") == "fetched"
    assert result.summaries() == []
