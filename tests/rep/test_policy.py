"""All that is known of one origin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import GOOGLE, RFC9309, Access, Dialect, WhenUnreachable
from scrapy_rep.rep.directives.directives import Directives, HonouredDirectives
from scrapy_rep.rep.directives.pace import Pace
from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import ContentUse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy, Rules
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason

ORIGIN = Origin.of("https://example.com/")
COPY = StoredResponse(FetchResult(ORIGIN.robots_url, 999), 900.0, 1000.0)
PAGE = "https://example.com/a"
ITSELF = "https://example.com/robots.txt"


HEEDED = HonouredDirectives(
    frozenset({Field.CRAWL_DELAY, Field.VISIT_TIME}), ("search", "ai-input")
)


def policy(
    access: Access, rules: Rules | None = None, dialect: Dialect = RFC9309, detail: str = ""
) -> Policy:
    robots = rules if isinstance(rules, RobotsTxt) else None
    return Policy(
        origin=ORIGIN,
        access=access,
        dialect=dialect,
        rules=rules,
        entry=CacheEntry(ORIGIN, COPY),
        stored=StoredResponse(FetchResult(ORIGIN.robots_url, 999, detail=detail), 900.0, 1000.0),
        until=2000.0,
        robots=robots,
        directives=Directives.of(robots, HEEDED) if robots is not None else None,
    )


@pytest.mark.parametrize(
    ("access", "allowed", "reason"),
    [
        (Access.UNAVAILABLE, True, Reason.UNAVAILABLE),
        (Access.UNREACHABLE, False, Reason.UNREACHABLE),
        (Access.DISALLOWED, False, Reason.DISALLOWED),
    ],
)
def test_what_holds_without_rules(access: Access, allowed: bool, reason: Reason) -> None:
    found = policy(access, detail="status 999").verdict(PAGE, "x", now=1001.0)
    assert (found.allowed, found.reason) == (allowed, reason)
    assert (found.line, found.group, found.detail) == (0, (), "status 999")
    assert policy(access).allowed(PAGE, "x") is allowed


@pytest.mark.parametrize("access", [Access.UNAVAILABLE, Access.UNREACHABLE, Access.DISALLOWED])
def test_the_robots_txt_itself_is_always_allowed(access: Access) -> None:
    found = policy(access).verdict(ITSELF, "x", now=1000.0)
    assert found.allowed
    assert found.reason is Reason.ROBOTS_TXT_ITSELF
    assert policy(access).allowed(ITSELF, "x")


def test_the_robots_txt_is_a_page_like_any_other_in_the_google_dialect() -> None:
    unreachable = policy(Access.UNREACHABLE, dialect=GOOGLE)
    assert not unreachable.allowed(ITSELF, "x")
    assert not unreachable.verdict(ITSELF, "x", now=1000.0).allowed


def test_rules_decide_where_there_are_some() -> None:
    rules = RobotsTxt.parse(b"User-agent: *\nDisallow: /a\n")
    successful = policy(Access.SUCCESSFUL, rules)
    found = successful.verdict(PAGE, "x", now=1000.0)
    assert not found.allowed
    assert found.line == 2
    assert not successful.allowed(PAGE, "x")
    assert successful.allowed("https://example.com/b", "x")


@pytest.mark.parametrize(("now", "age"), [(1000.0, 0.0), (1060.5, 60.5), (900.0, 0.0)])
@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("url", [PAGE, ITSELF])
def test_every_verdict_knows_its_origin_and_the_age_of_the_copy(
    now: float, age: float, access: Access, url: str
) -> None:
    rules = RobotsTxt.parse(b"") if access is Access.SUCCESSFUL else None
    found = policy(access, rules).verdict(url, "x", now)
    assert (found.origin, found.age) == (ORIGIN, age)


# -- beyond rules -------------------------------------------------------------------

NOON = 20_000.5 * 86_400
AT_NIGHT = b"User-agent: *\nCrawl-delay: 3\nVisit-time: 2200-0559\nVisit-time: 0700-0800\n"
NO_SEARCH = b"""
User-agent: Other
User-agent: ExampleBot
Content-Signal: /a search=no, ai-input=no
Sitemap: /s.xml
Disallow: /b
"""


def test_what_a_file_says_beside_its_rules() -> None:
    found = policy(Access.SUCCESSFUL, RobotsTxt.parse(NO_SEARCH + b"\n" + AT_NIGHT))
    assert found.sitemaps == ("/s.xml",)
    assert found.crawl_delay("x") == 3.0
    assert found.crawl_delay("ExampleBot") is None
    assert found.pace("x").delay(NOON) == 3.0


def test_without_a_file_there_are_no_directives() -> None:
    found = policy(Access.UNAVAILABLE)
    assert found.sitemaps == ()
    assert found.crawl_delay("x") is None
    assert found.pace("x") == Pace()
    assert found.objection(PAGE, "x", NOON) is None
    assert policy(Access.SUCCESSFUL, RobotsTxt.parse(b"")).objection(PAGE, "x", NOON) is None


def test_an_objection_knows_its_origin_and_the_age_of_the_copy() -> None:
    for body in (NO_SEARCH, AT_NIGHT):
        found = policy(Access.SUCCESSFUL, RobotsTxt.parse(body))
        # The copy is of second 1000 of the first day, a time at which nobody is to come.
        for now, age in ((1060.5 + 43_200, 43_260.5), (1000.0 + 43_200, 43_200.0)):
            verdict = found.objection(PAGE, "ExampleBot", now)
            assert verdict is not None
            assert verdict.allowed is False
            assert (verdict.origin, verdict.age) == (ORIGIN, age)
    # As after a clock was set back.
    verdict = policy(Access.SUCCESSFUL, RobotsTxt.parse(NO_SEARCH)).objection(PAGE, "ExampleBot", 1)
    assert verdict is not None
    assert verdict.age == 0.0


def test_no_purpose_is_left() -> None:
    found = policy(Access.SUCCESSFUL, RobotsTxt.parse(NO_SEARCH))
    verdict = found.objection(PAGE, ["x", "ExampleBot"], NOON)
    assert verdict is not None
    assert not verdict.allowed
    assert (verdict.reason, verdict.line, verdict.rule) == (Reason.PURPOSE, 4, None)
    assert verdict.group == (AgentLine("ExampleBot", 3),)
    assert str(verdict) == (
        'disallowed by "Content-Signal: /a search=no, ai-input=no" (line 4, group ExampleBot) of '
        "https://example.com/robots.txt; it refuses every purpose of this crawl"
    )
    for url in ("https://example.com/c", ITSELF):
        assert found.objection(url, "ExampleBot", NOON) is None
    assert found.objection(PAGE, "x", NOON) is None


def test_an_objection_to_another_url_that_a_request_may_be_sent_as_names_it() -> None:
    found = replace(
        policy(Access.SUCCESSFUL, RobotsTxt.parse(NO_SEARCH)),
        spellings=lambda url: (url + "#", url.replace("/[", "/a")),
    )
    for url, sent_as in ((PAGE, ""), ("https://example.com/[", PAGE)):
        verdict = found.objection(url, "ExampleBot", NOON)
        assert verdict is not None
        assert (verdict.reason, verdict.line) == (Reason.PURPOSE, 4)
        assert verdict.sent_as == sent_as
    assert found.objection("https://example.com/c", "ExampleBot", NOON) is None


def test_an_objection_names_our_user_agent_line_of_the_group() -> None:
    # No record is directly below it, so that of its group counts.
    body = b"User-agent: ExampleBot\nSitemap: s\nUser-agent: y\n"
    body += b"Content-Signal: search=no, ai-input=no\n"
    verdict = policy(Access.SUCCESSFUL, RobotsTxt.parse(body)).objection(PAGE, "ExampleBot", NOON)
    assert verdict is not None
    assert verdict.group == (AgentLine("ExampleBot", 1),)


def test_more_is_shown_of_a_page_than_its_site_allows() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nContent-Signal: search=yes, use=reference\n")
    directives = Directives.of(robots, HonouredDirectives(content_use=ContentUse.FULL))
    found = replace(policy(Access.SUCCESSFUL, robots), directives=directives)
    verdict = found.objection(PAGE, "ExampleBot", NOON)
    assert verdict is not None
    assert (verdict.allowed, verdict.reason, verdict.line) == (False, Reason.PURPOSE, 2)
    assert str(verdict) == (
        'disallowed by "Content-Signal: search=yes, use=reference" (line 2, group *) of '
        "https://example.com/robots.txt; this crawl shows more of its pages than that: full"
    )


def test_preferences_change_nothing_about_access() -> None:
    found = policy(Access.SUCCESSFUL, RobotsTxt.parse(NO_SEARCH))
    assert found.allowed(PAGE, "ExampleBot")
    assert found.verdict(PAGE, "ExampleBot", NOON).allowed
    assert not found.allowed("https://example.com/b", "ExampleBot")


def test_other_times_of_the_day() -> None:
    found = policy(Access.SUCCESSFUL, RobotsTxt.parse(AT_NIGHT))
    verdict = found.objection(PAGE, "x", NOON)
    assert verdict is not None
    assert (verdict.allowed, verdict.reason, verdict.line) == (False, Reason.VISIT_TIME, 0)
    assert str(verdict) == (
        "disallowed because https://example.com/robots.txt allows visits only at other times "
        "(22:00-05:59 UTC, 07:00-08:00 UTC)"
    )
    assert found.objection(PAGE, "x", NOON + 11 * 3600) is None
    assert found.objection(ITSELF, "x", NOON) is None


def known(stored: StoredResponse | None, outage: Outage | None) -> Policy:
    access = Access.SUCCESSFUL if stored else Access.UNREACHABLE
    entry = CacheEntry(ORIGIN, stored, outage)
    return Policy(ORIGIN, access, RFC9309, None, entry, stored, until=2000.0)


def test_a_policy_tells_of_the_answer_that_it_comes_from() -> None:
    moved = FetchResult("https://example.org/robots.txt", 200, detail="status 200")
    failed = Outage(FetchResult(ORIGIN.robots_url, detail="no answer"), 950.0, 960.0, attempts=2)
    stored = StoredResponse(moved, 900.0, 940.0)
    fresh, outage, refused = known(stored, None), known(stored, failed), known(None, failed)
    for found in (fresh, outage):
        assert (found.url, found.status, found.detail) == (moved.url, 200, "status 200")
        assert found.fetched_at == 940.0
    assert (refused.url, refused.status, refused.detail) == (ORIGIN.robots_url, None, "no answer")
    assert refused.fetched_at == 960.0


def test_requests_are_kept_where_unreachable_means_defer() -> None:
    refused = known(None, Outage(FetchResult(ORIGIN.robots_url), 950.0, 960.0, attempts=1))
    deferring = replace(refused, when_unreachable=WhenUnreachable.DEFER)
    assert deferring.defers
    assert not refused.defers
    assert not replace(deferring, access=Access.UNAVAILABLE).defers
