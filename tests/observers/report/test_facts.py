"""What a report says of the crawl itself."""

from __future__ import annotations

import scrapy
from scrapy.settings import Settings

from scrapy_rep import __version__
from scrapy_rep.observers.report.facts import facts
from scrapy_rep.settings import RepSettings


def test_agents_dialect_and_versions() -> None:
    settings = Settings({"REP_DIALECT": "google"})
    agents = {("examplebot",): 1, ("newsbot", "example\x1bbot"): 2_000}
    found = facts(settings, RepSettings.read(settings), agents)
    assert found[:4] == (
        ("product token", "examplebot (1 request)"),
        ("product token", "newsbot, example\\x1bbot (2,000 requests)"),
        ("dialect", "google"),
        ("REP_DIALECT", "'google'"),
    )
    assert ("scrapy-rep", __version__) in found
    assert ("Scrapy", scrapy.__version__) in found


def test_settings_that_are_the_defaults_are_left_out() -> None:
    settings = Settings({"REP_MIN_AGE": 300.0})
    assert ("settings", "the defaults") in facts(settings, RepSettings.read(settings))


def test_secrets_are_left_out() -> None:
    settings = Settings(
        {
            "REP_STORE": "redis://:hunter2@cache.example:6379/0",
            "REP_FETCH_HEADERS": {"Authorization": "Bearer hunter2"},
        }
    )
    text = str(facts(settings, RepSettings.read(settings)))
    assert "REP_STORE" in text
    assert "REP_FETCH_HEADERS" in text
    assert "hunter2" not in text
