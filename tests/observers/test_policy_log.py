"""Log lines and stats about robots.txt files."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.pages.tdmrep import TdmOrigin
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from tests.policy_examples import NOON, unreachable, with_rules

TIMEOUT = FetchResult("https://example.com/robots.txt", detail="timeout")
ORIGIN = Origin.of("https://example.com/")
WILL_RETRY = "Will retry on the next request after 60 s."


class Log:
    """The log of a crawl with *settings*, 5 seconds after noon."""

    def __init__(self, caplog: pytest.LogCaptureFixture, **settings: Any) -> None:
        caplog.set_level(logging.DEBUG, "scrapy_rep.observers.policy_log")
        self._caplog = caplog
        self.crawler = get_crawler(Spider, settings)
        settings_read = RepSettings.read(self.crawler.settings)
        self.log = PolicyLog(self.crawler, settings_read, lambda: NOON + 5)

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(record.levelname, record.getMessage()) for record in self._caplog.records]

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_stats()


def in_outage(policy: Policy, **changes: Any) -> Policy:
    outage = Outage(TIMEOUT, NOON, NOON, 1)
    return replace(policy, entry=replace(policy.entry, outage=outage), **changes)


@pytest.mark.parametrize(
    ("settings", "policy", "consequence"),
    [
        ({}, unreachable(), "All pages of this origin are refused"),
        ({"REP_UNREACHABLE": "defer"}, unreachable(), "Requests for this origin are held"),
        (
            {"REP_UNREACHABLE": "allow"},
            unreachable(),
            "All pages of this origin are allowed (REP_UNREACHABLE)",
        ),
        ({}, with_rules(b""), "The cached robots.txt stays in use"),
        (
            {},
            replace(unreachable(), access=Access.UNAVAILABLE),
            "It has been unreachable for longer than REP_UNREACHABLE_GRACE, so all pages are "
            "allowed",
        ),
    ],
)
def test_an_outage_is_one_warning_with_its_consequence(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], policy: Policy, consequence: str
) -> None:
    log = Log(caplog, **settings)
    policy = in_outage(policy)
    log.log.on_fetch(policy, None, TIMEOUT, Access.UNREACHABLE)
    log.log.on_fetch(policy, policy.entry, TIMEOUT, Access.UNREACHABLE)
    line = f"Cannot reach https://example.com/robots.txt (timeout). {consequence}. {WILL_RETRY}"
    assert log.lines == [("WARNING", line), ("DEBUG", line)]
    assert log.stats == {"robotstxt/access_count/unreachable": 2}


def test_the_end_of_an_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log, policy = Log(caplog), with_rules(b"")
    assert policy.stored is not None
    for before in (in_outage(policy).entry, policy.entry):
        log.log.on_fetch(policy, before, policy.stored.result, Access.SUCCESSFUL)
    assert log.lines == [("INFO", "Reached https://example.com/robots.txt again")]


def test_a_confirmed_response_is_no_new_one(caplog: pytest.LogCaptureFixture) -> None:
    log, policy = Log(caplog), with_rules(b"")
    not_modified = FetchResult(policy.url, 304)
    log.log.on_fetch(policy, policy.entry, not_modified, Access.SUCCESSFUL)
    log.log.on_fetch(in_outage(policy), policy.entry, not_modified, Access.UNREACHABLE)
    assert log.stats == {"robotstxt/confirmed_count": 1, "robotstxt/access_count/unreachable": 1}


def test_an_outage_that_the_store_knows(caplog: pytest.LogCaptureFixture) -> None:
    log = Log(caplog)
    log.log.on_stored(with_rules(b""))
    log.log.on_stored(in_outage(unreachable()))
    line = (
        "Could not reach https://example.com/robots.txt 5 s ago (timeout). All pages of this "
        "origin are refused. Will retry on the next request after 55 s."
    )
    assert log.lines == [("WARNING", line)]
    assert log.stats == {"robotstxt/store_count": 2}


def test_a_file_about_mining_refuses_nothing_and_so_is_counted_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, policy = Log(caplog), in_outage(unreachable())
    origin = TdmOrigin.beside(policy.origin)
    policy = replace(policy, origin=origin)
    log.log.on_fetch(policy, None, TIMEOUT, Access.UNREACHABLE)
    log.log.on_fetch(
        replace(policy, entry=CacheEntry(origin, StoredResponse(TIMEOUT, 0, 0))),
        policy.entry,
        TIMEOUT,
        Access.UNAVAILABLE,
    )
    log.log.on_stored(policy)
    assert log.lines == []
    assert log.stats == {
        "tdmrep/access_count/unreachable": 1,
        "tdmrep/access_count/unavailable": 1,
        "tdmrep/store_count": 1,
    }


@pytest.mark.parametrize(
    ("body", "cut", "stat", "level"),
    [
        (b"x" * 512_000, False, None, None),
        (b"x" * 512_001, False, "truncated_count", "INFO"),
        (b"x", True, "truncated_count", "INFO"),
        (b"\n <!DOCTYPE html>\n", False, "html_count", "WARNING"),
        (b"<HTML><head>", False, "html_count", "WARNING"),
        (b"# <html>", False, None, None),
    ],
)
def test_files_that_are_too_large_or_pages(
    caplog: pytest.LogCaptureFixture, body: bytes, cut: bool, stat: str | None, level: str | None
) -> None:
    log = Log(caplog)
    log.log.on_parsed(unreachable().origin, FetchResult("", 200, body, cut=cut))
    assert log.stats == ({f"robotstxt/{stat}": 1} if stat else {})
    assert [each for each, _ in log.lines] == ([level] if level else [])
    assert all("https://example.com/robots.txt" in line for _, line in log.lines)


def test_exceptions_have_their_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    log, origin = Log(caplog), unreachable().origin
    log.log.on_exception(origin, KeyError("x"))
    try:
        raise RuntimeError
    except RuntimeError:
        log.log.on_bug(origin, copy_in_use=False)
    assert [(level, line.partition(".")[0]) for level, line in log.lines] == [
        ("DEBUG", "The robots"),
        ("ERROR", "Cannot get https://example"),
    ]
    kinds = [record.exc_info and record.exc_info[0] for record in caplog.records]
    assert kinds == [KeyError, RuntimeError]
    assert all("https://example.com" in line for _, line in log.lines)


@pytest.mark.parametrize(
    ("origin", "copy_in_use", "consequence"),
    [
        (ORIGIN, False, "All pages of this origin are refused until the next attempt"),
        (ORIGIN, True, "The cached robots.txt stays in use"),
        (TdmOrigin.beside(ORIGIN), False, "It is not used until the next attempt"),
        (TdmOrigin.beside(ORIGIN), True, "The cached tdmrep.json stays in use"),
    ],
)
def test_the_consequence_of_a_bug(
    caplog: pytest.LogCaptureFixture, origin: Origin, copy_in_use: bool, consequence: str
) -> None:
    log = Log(caplog)
    log.log.on_bug(origin, copy_in_use=copy_in_use)
    line = (
        f"Cannot get {origin.robots_url} because of a bug in scrapy-rep. {consequence}. "
        "Please report this traceback."
    )
    assert log.lines == [("ERROR", line)]
