"""The other records that a crawl honours."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.dialects import DIALECTS, RFC9309, Dialect
from scrapy_rep.rep.directives.directives import Directives, HonouredDirectives
from scrapy_rep.rep.directives.pace import Pace
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import ContentUse
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

PACING = frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME})
EVERYTHING = HonouredDirectives(PACING, ("search",))
NOTHING = HonouredDirectives()
BODY = b"User-agent: *\nDisallow: /no\nCrawl-delay: 3\nContent-Signal: search=no\n"


def directives(
    body: bytes, honoured: HonouredDirectives = EVERYTHING, dialect: Dialect = RFC9309
) -> Directives | None:
    return Directives.of(RobotsTxt.parse(body, dialect), honoured)


@pytest.mark.parametrize(
    ("body", "honoured", "has_some"),
    [
        (b"", EVERYTHING, False),
        (b"User-agent: *\nDisallow: /\nSitemap: https://a/\n", EVERYTHING, False),
        (BODY, EVERYTHING, True),
        (BODY, NOTHING, False),
        (BODY, HonouredDirectives(frozenset({Field.REQUEST_RATE})), False),
        (BODY, HonouredDirectives(purposes=("ai-train",)), True),
        (BODY, HonouredDirectives(content_use=ContentUse.FULL), True),
        (b"User-agent: *\nCrawl-delay: 3", HonouredDirectives(content_use=ContentUse.FULL), False),
        (b"User-agent: *\nCONTENT-USAGE: search=n", EVERYTHING, True),
        (b"User-agent: *\rcrawl-Delay:5", EVERYTHING, True),
        ("\ufeffUser-agent: *\nVisit-time: 0600-0800\n".encode("utf-16-le"), EVERYTHING, True),
    ],
)
def test_most_files_have_none(body: bytes, honoured: HonouredDirectives, has_some: bool) -> None:
    assert (directives(body, honoured) is not None) is has_some


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_they_are_found_in_every_dialect(dialect: Dialect) -> None:
    found = directives(BODY, dialect=dialect)
    assert found is not None
    assert found.pace("x") == Pace(crawl_delay=3.0)
    refusal = found.refusal("https://example.com/", "x")
    assert refusal is not None
    assert str(refusal.record) == "Content-Signal: search=no"


def test_what_is_not_honoured_is_not_there() -> None:
    found = directives(
        BODY + b"Request-rate: 1/9\n", HonouredDirectives(frozenset({Field.REQUEST_RATE}))
    )
    assert found is not None
    assert found.pace("x").crawl_delay == 0
    assert found.pace("x").delay(0) == 9
    assert found.refusal("https://example.com/", "x") is None


def test_one_agent_is_not_a_list_of_letters() -> None:
    found = directives(
        b"User-agent: Bot\nCrawl-delay: 3\nDisallow:\nUser-agent: b\nCrawl-delay: 5\n"
    )
    assert found is not None
    assert found.pace("Bot") == found.pace(["Bot"]) == Pace(crawl_delay=3.0)


def test_they_are_read_once_for_the_same_agents() -> None:
    found = directives(BODY)
    assert found is not None
    assert found.pace(["x", "y"]) is found.pace(("x", "y"))
    agents = [f"agent-{number}" for number in range(100)]
    assert [found.pace(agent).crawl_delay for agent in agents] == [3.0] * 100
