"""All that is known of one origin."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.access import FetchResult
from scrapy_rep.rep.dialects import GOOGLE, RFC9309, Access, Dialect
from scrapy_rep.rep.facts import Copy, Facts
from scrapy_rep.rep.policy import Policy, Rules
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.urls import Origin
from scrapy_rep.rep.verdict import Reason

ORIGIN = Origin.of("https://example.com/")
COPY = Copy(FetchResult(ORIGIN.robots_url, 999), 900.0, 1000.0)
PAGE = "https://example.com/a"
ITSELF = "https://example.com/robots.txt"


def policy(
    access: Access, rules: Rules | None = None, dialect: Dialect = RFC9309, detail: str = ""
) -> Policy:
    return Policy(
        origin=ORIGIN,
        access=access,
        dialect=dialect,
        rules=rules,
        facts=Facts(ORIGIN, COPY),
        copy=Copy(FetchResult(ORIGIN.robots_url, 999, detail=detail), 900.0, 1000.0),
        until=2000.0,
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
