"""How a crawl starts: with the add-on or without, and not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.integration.crawling import Job, ok, pages, site

SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"

INSTALLATIONS: dict[str, dict[str, Any]] = {
    "the add-on": {},
    "the add-on, ROBOTSTXT_OBEY on": {"ROBOTSTXT_OBEY": True},
    "the add-on, Scrapy's moved": {"DOWNLOADER_MIDDLEWARES": {SCRAPYS: 543}},
    "the add-on, Scrapy's off": {"DOWNLOADER_MIDDLEWARES": {SCRAPYS: None}},
    "the add-on, ours placed": {"DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RepMiddleware": 200}},
    "the add-on, ours by its other path": {
        "DOWNLOADER_MIDDLEWARES": {"scrapy_rep.middleware.RepMiddleware": 200}
    },
    "two settings": {
        "ADDONS": {},
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {SCRAPYS: None, "scrapy_rep.RepMiddleware": 100},
    },
}


@pytest.mark.parametrize("settings", INSTALLATIONS.values(), ids=INSTALLATIONS.keys())
def test_ours_alone_is_enabled(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site(ok()))
    result = Job(pages(f"{one.url}/yes", f"{one.url}/no"), loop, settings).run()
    assert result.outcome(f"{one.url}/yes") == "fetched"
    assert result.outcome(f"{one.url}/no") == "refused"
    (enabled,) = [line for line in result.log if "Enabled downloader middlewares" in line]
    assert enabled.count("RepMiddleware") == 1
    assert SCRAPYS not in enabled


def test_scrapys_own_stays_where_ours_is_switched_off_by_name(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(site(ok()))
    settings = {"DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RepMiddleware": None}}
    result = Job(pages(f"{one.url}/no"), loop, settings).run()
    (enabled,) = [line for line in result.log if "Enabled downloader middlewares" in line]
    assert SCRAPYS in enabled
    assert "RepMiddleware" not in enabled
    assert "Forbidden by robots.txt" in result.outcomes[f"{one.url}/no"]["text"]


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "both, without the add-on": (
        {
            "ADDONS": {},
            "ROBOTSTXT_OBEY": True,
            "DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RepMiddleware": 99},
        },
        f'add "{SCRAPYS}": None to DOWNLOADER_MIDDLEWARES',
    ),
    "both, Scrapy's as a subclass": (
        {"DOWNLOADER_MIDDLEWARES": {"tests.integration.middlewares.OwnRobotsTxtMiddleware": 100}},
        'add "tests.integration.middlewares.OwnRobotsTxtMiddleware": None',
    ),
    "a setting without sense": (
        {"REP_FETCH_TIMEOUT": "soon"},
        "REP_FETCH_TIMEOUT = 'soon': accepted: a number of seconds above 0",
    ),
    "a token that matches nothing": (
        {"REP_AGENT_TOKENS": ["ExampleBot/1.0"]},
        "REP_AGENT_TOKENS = ['ExampleBot/1.0']",
    ),
    "no such parser": (
        {"ROBOTSTXT_PARSER": "no.such.Parser"},
        "ROBOTSTXT_PARSER = 'no.such.Parser'",
    ),
}


@pytest.mark.parametrize(
    ("settings", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys()
)
def test_a_crawl_that_cannot_be_right_does_not_start(
    servers: LoopbackServers, loop: str, settings: dict[str, Any], message: str
) -> None:
    one = servers.serve(site(ok()))
    result = Job(pages(f"{one.url}/yes"), loop, settings).run()
    assert result.outcomes == {}
    assert one.asked == []
    assert message in "\n".join(result.log)


def test_a_crawl_does_not_start_on_somebody_elses_file(
    servers: LoopbackServers, loop: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("Buy milk.", "utf-8")
    one = servers.serve(site(ok()))
    settings = {"REP_STORE": f"sqlite:///{notes}"}
    result = Job(pages(f"{one.url}/yes"), loop, settings).run()
    assert one.asked == []
    assert f"{notes}: this is not a store of scrapy-rep" in "\n".join(result.log)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert notes.read_text("utf-8") == "Buy milk."


def test_an_unknown_setting_is_mentioned(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok()))
    result = Job(pages(f"{one.url}/yes"), loop, {"REP_FETCH_TIMOUT": 3}).run()
    assert result.outcome(f"{one.url}/yes") == "fetched"
    (line,) = result.our_log()
    assert "Unknown setting REP_FETCH_TIMOUT is ignored. Did you mean REP_FETCH_TIMEOUT?" in line
