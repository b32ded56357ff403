"""What a crawl that begins now makes of cache entries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_rep.cli.cache import everything
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.cli.store import OriginState, state_of, store_place
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings
from tests.cli.stored import copied, examples
from tests.stores.examples import DAY, HOUR, NOON


def state(entry: CacheEntry, **settings: Any) -> OriginState:
    return state_of(entry, RepSettings.read(Settings(settings)), NOON)


def states_of(**settings: Any) -> dict[str, tuple[str, str | None, float | None, str]]:
    states = {name: state(entry, **settings) for name, entry in examples(NOON).items()}
    return {name: (s.freshness, s.access, s.left, s.meaning) for name, s in states.items()}


def test_states() -> None:
    rules = "pages are allowed or refused by its rules"
    waits = "a page waits until robots.txt has been fetched again"
    assert states_of() == {
        "stale": ("stale", None, 0, waits),
        "fresh": ("fresh", "successful", 23 * HOUR, rules),
        "due": ("due", "successful", HOUR, f"{rules}; robots.txt is fetched again"),
        "outage": ("outage", "successful", DAY + HOUR, rules),
        "refused": ("refused", "unreachable", HOUR, "all pages are refused"),
        "given up": ("given up", "unavailable", DAY + HOUR, "all pages are allowed"),
    }


def test_states_by_another_dialect() -> None:
    states = states_of(REP_DIALECT="koster1994")
    # Lifetimes are "the crawl" there, and this one begins now.
    assert states["fresh"][:3] == ("stale", None, 0)


def test_a_copy_that_this_crawl_cannot_use() -> None:
    found = state(copied("https://a.example", NOON, b"", status=429), REP_DIALECT="google")
    assert (found.freshness, found.access, found.left) == ("stale", None, 0)


def test_a_failure_without_a_status() -> None:
    origin = Origin.of("https://a.example")
    result = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail="refused")
    value = everything(state(CacheEntry(origin, outage=Outage(result, NOON, NOON, 1))))
    assert value["status"] is None
    assert value["outage"]["failure"] == "no answer"


def test_only_a_copy_has_a_lifetime() -> None:
    entries = examples(NOON)
    assert state(entries["fresh"]).lifetime == DAY
    assert state(entries["refused"]).lifetime is None


def test_the_age_is_since_the_copy_was_confirmed() -> None:
    entry = copied("https://a.example", NOON - HOUR)
    assert entry.stored is not None
    confirmed = replace(entry, stored=replace(entry.stored, confirmed_at=NOON - 60))
    assert state(confirmed).age == 60
    assert state(examples(NOON)["refused"]).age == 0


def test_the_place_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def place(store: str) -> str:
        return store_place(RepSettings.read(Settings({"REP_STORE": store})))

    monkeypatch.chdir(tmp_path)
    assert place("sqlite:///a/b") == str(tmp_path / "a" / "b")
    assert place("redis://me:secret@host/1?prefix=x") == "redis://host/1"
    with pytest.raises(CommandError, match="REP_STORE = 'memory'"):
        place("memory")
