"""The whole installation in one setting."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from scrapy_rep import Addon, RepMiddleware
from scrapy_rep.pages.nofollow import NofollowMiddleware
from scrapy_rep.settings import downloader_middlewares

SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
OURS = "scrapy_rep.RepMiddleware"


def updated(values: dict[str, Any] | None = None, priority: str = "project") -> Settings:
    settings = Settings(values, priority)
    Addon().update_settings(settings)
    return settings


def robots_middlewares(settings: Settings) -> list[Any]:
    return [
        middleware
        for middleware in downloader_middlewares(settings)
        if middleware in (RepMiddleware, RobotsTxtMiddleware)
    ]


def with_middlewares(middlewares: dict[Any, Any]) -> dict[str, Any]:
    return {"DOWNLOADER_MIDDLEWARES": middlewares}


@pytest.mark.parametrize(
    "middlewares",
    [
        {},
        {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 10},
        {SCRAPYS: None},
        {SCRAPYS: 50},
        {RobotsTxtMiddleware: 50},
        {OURS: 120},
        {RepMiddleware: 120},
        {"scrapy_rep.middleware.RepMiddleware": 120},
        {OURS: 120, SCRAPYS: 130},
        {RepMiddleware: 120, RobotsTxtMiddleware: 130},
    ],
    ids=str,
)
@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_ours_takes_the_place_of_scrapys(middlewares: dict[Any, Any], priority: str) -> None:
    settings = updated(with_middlewares(middlewares), priority)
    assert robots_middlewares(settings) == [RepMiddleware]


@pytest.mark.parametrize("ours", [OURS, RepMiddleware, "scrapy_rep.middleware.RepMiddleware"])
def test_scrapys_stays_where_ours_is_switched_off(ours: Any) -> None:
    assert robots_middlewares(updated(with_middlewares({ours: None}))) == [RobotsTxtMiddleware]


@pytest.mark.parametrize(
    ("middlewares", "position"),
    [
        ({}, 100),
        ({SCRAPYS: None}, 100),
        ({SCRAPYS: 50}, 50),
        ({RobotsTxtMiddleware: 50}, 50),
        ({OURS: 120}, 120),
        ({OURS: 120, SCRAPYS: 50}, 120),
    ],
    ids=str,
)
def test_ours_stands_where_scrapys_stood(middlewares: dict[Any, Any], position: int) -> None:
    settings = updated(with_middlewares(middlewares))
    assert settings.getdict("DOWNLOADER_MIDDLEWARES")[OURS] == position


def test_other_middlewares_are_left_alone() -> None:
    other = "scrapy.downloadermiddlewares.retry.RetryMiddleware"
    settings = updated(with_middlewares({other: 10}))
    assert settings.getdict("DOWNLOADER_MIDDLEWARES") == {other: 10, SCRAPYS: None, OURS: 100}


def test_a_middleware_that_does_not_exist_is_for_scrapy_to_mention() -> None:
    # Switched off, it harms nobody; else Scrapy says so when the crawl starts.
    gone = {"no_such_package.Middleware": None, "scrapy.NoSuchMiddleware": 10}
    settings = updated(with_middlewares(gone))
    assert settings.getdict("DOWNLOADER_MIDDLEWARES") == {**gone, SCRAPYS: None, OURS: 100}


def test_doing_it_twice_changes_nothing() -> None:
    settings = updated()
    once = settings.copy_to_dict()
    Addon().update_settings(settings)
    assert settings.copy_to_dict() == once


def test_robots_txt_is_obeyed_and_read_by_our_parser() -> None:
    settings = updated()
    assert settings.getbool("ROBOTSTXT_OBEY")
    assert settings.get("ROBOTSTXT_PARSER") == "scrapy_rep.RepRobotParser"


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_what_a_project_says_wins(priority: str) -> None:
    parser = "scrapy.robotstxt.PythonRobotParser"
    settings = updated({"ROBOTSTXT_OBEY": False, "ROBOTSTXT_PARSER": parser}, priority)
    assert not settings.getbool("ROBOTSTXT_OBEY")
    assert settings.get("ROBOTSTXT_PARSER") == parser


NOFOLLOW = "scrapy_rep.pages.nofollow.NofollowMiddleware"
OBEY = {"REP_PAGE_RULES": "obey", "ROBOTSTXT_OBEY": True}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        ({"REP_PAGE_RULES": "annotate"}, {}),
        (OBEY, {NOFOLLOW: 950}),
        (OBEY | {"SPIDER_MIDDLEWARES": {"no.Such": 1}}, {"no.Such": 1, NOFOLLOW: 950}),
        (OBEY | {"SPIDER_MIDDLEWARES": {NOFOLLOW: None}}, {NOFOLLOW: None}),
        (OBEY | {"SPIDER_MIDDLEWARES": {NofollowMiddleware: 10}}, {NofollowMiddleware: 10}),
        (OBEY | {"REP_NOFOLLOW": []}, {}),
        (OBEY | {"ROBOTSTXT_OBEY": False}, {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_links_are_checked_where_page_rules_are_obeyed(
    values: dict[str, Any], expected: dict[Any, Any], priority: str
) -> None:
    assert updated(values, priority).getdict("SPIDER_MIDDLEWARES") == expected
