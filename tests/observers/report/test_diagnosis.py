"""What a report puts first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scrapy_rep.observers.report import diagnosis
from scrapy_rep.observers.report.diagnosis import Concern, Item, Span
from scrapy_rep.observers.report.model import (
    CrawlReport,
    Decisions,
    Event,
    OriginReport,
    PreviousReport,
    SlowSite,
)
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import Outage
from tests.observers.report.pages import NOON, crawl_report, origin_report

ONE = "https://one.example"
TWO = "http://two.example:8000"
TIMEOUT = Outage(FetchResult(ONE, detail="timeout after 15 s"), NOON, NOON, 3)


def healthy(name: str = ONE, **changes: Any) -> OriginReport:
    """An origin that needs no attention, unless *changes* do."""
    harmless = {"disagreements": (), "disagreement_count": 0}
    return origin_report(name, **{**harmless, **changes})


def unreachable(name: str = ONE, **changes: Any) -> OriginReport:
    values = {"access": "unreachable", "file": None, "decisions": Decisions(0, 12)}
    return healthy(name, outage=TIMEOUT, **{**values, **changes})


def only_concern(report: CrawlReport) -> Concern:
    (concern,) = diagnosis.attention(report)
    return concern


# -- needs attention --------------------------------------------------------------------


def test_a_healthy_crawl_needs_no_attention() -> None:
    assert diagnosis.attention(crawl_report(healthy())) == []


def test_an_unreachable_origin_with_cause_and_time() -> None:
    concern = only_concern(crawl_report(unreachable()))
    assert concern == Concern(
        "Unreachable: all requests refused",
        1,
        (
            Item(
                ONE,
                "timeout after 15 s; since 2027-01-15 08:00:00 UTC, 3 attempts; "
                "12 requests refused",
            ),
        ),
        access="unreachable",
    )


def test_what_happens_to_requests_depends_on_the_setting() -> None:
    report = crawl_report(unreachable(decisions=Decisions(12, 0)), when_unreachable="allow")
    concern = only_concern(report)
    assert concern.title.endswith("all requests allowed")
    assert "refused" not in concern.items[0].text


def test_an_outage_that_the_last_copy_outlives() -> None:
    concern = only_concern(crawl_report(healthy(outage=TIMEOUT)))
    assert concern.title == "Unreachable: the last copy is in use"


def test_an_origin_that_refused_everything() -> None:
    concern = only_concern(crawl_report(healthy(decisions=Decisions(0, 7))))
    assert concern.title == "Every request refused"
    assert concern.items == (Item(ONE, "7 requests; Disallow: /private/ (line 2)"),)


def test_an_origin_that_refused_everything_by_its_status() -> None:
    forbidden = healthy(
        access="disallowed", file=None, decisions=Decisions(0, 1), reasons=("status 403",)
    )
    assert only_concern(crawl_report(forbidden)).items[0].text == "1 request; status 403"
    # In a store, requests are not counted.
    stored = replace(forbidden, decisions=None, status=403)
    assert only_concern(crawl_report(stored)).items[0].text == "status 403"


def test_one_allowed_request_is_enough() -> None:
    assert diagnosis.attention(crawl_report(healthy(decisions=Decisions(1, 7)))) == []


def test_a_file_with_errors() -> None:
    # The first line is worth a warning only.
    origin = origin_without_disagreements(b"Unknown: line\nDisallow: /\n")
    assert origin.file is not None
    assert origin.file.warnings == 1
    concern = only_concern(crawl_report(origin))
    assert concern.title == "Errors in robots.txt"
    assert concern.items[0].text.startswith("1 error; line 2: ")


def origin_without_disagreements(body: bytes) -> OriginReport:
    return replace(origin_report(ONE, body), disagreements=[], disagreement_count=0)


def test_disagreements() -> None:
    concern = only_concern(crawl_report(origin_report(ONE)))
    assert concern.items[0].text == f"1 URL; {ONE}/typo is refused here, allowed by protego"


def test_a_slow_fetch() -> None:
    events = (Event(NOON, "status 200", 5.26), Event(NOON, "status 304", 0.1))
    failed = healthy(TWO, events=(Event(NOON, "timeout", 15.0, failed=True),))
    concern = only_concern(crawl_report(healthy(events=events), failed))
    assert concern.items == (Item(ONE, "5.3 s"),)


def test_a_delay_that_dominates_the_crawl() -> None:
    slow = SlowSite("two.example", 90, 2400.0, 'by "Crawl-delay: 20" (line 2)')
    quick = replace(slow, site="one.example", seconds=1_700.0)
    concern = only_concern(crawl_report(healthy(), healthy(TWO), slow_sites=(slow, quick)))
    assert concern.title == "The delay between requests took most of the crawl"
    # By the name of its row.
    assert concern.items == (
        Item(TWO, '40.0 min of 60.0 min; asked for by "Crawl-delay: 20" (line 2)'),
    )


def test_of_many_origins_ten_are_named() -> None:
    report = crawl_report(*(unreachable(f"https://host{n:03}.example") for n in range(25)))
    concern = only_concern(report)
    assert concern.count == 25
    assert len(concern.items) == diagnosis.MAX_LISTED


# -- tables ---------------------------------------------------------------------------------


def test_the_rules_that_refused_most() -> None:
    assert diagnosis.top_rules(crawl_report(healthy(), healthy(TWO))) == [
        Item(ONE, "Disallow: /private/ (line 2)", ("7",)),
        Item(TWO, "Disallow: /private/ (line 2)", ("7",)),
    ]


def test_the_slowest_fetches_first() -> None:
    slow = healthy(TWO, events=(Event(NOON, "status 200", 1.5),))
    stored = healthy("https://stored.example", events=(Event(NOON, "status 200"),))
    assert diagnosis.slowest_fetches(crawl_report(healthy(), slow, stored)) == [
        Item(TWO, "", ("1.50 s",)),
        Item(ONE, "", ("0.25 s",)),
    ]


def test_sites_with_a_delay() -> None:
    other = SlowSite("other.example", 1_234, 70.0, "why")
    assert diagnosis.paced_sites(crawl_report(healthy(), slow_sites=(other,))) == [
        Item("other.example", "why", ("1,234", "70.0 s")),
    ]


def test_the_time_line() -> None:
    events = [Event(NOON, "status 200", 0.1), Event(NOON + 96, "timeout", 15.0, failed=True)]
    # Not a fetch of this crawl.
    events.append(Event(NOON - 5_000, "status 200 (from the store)"))
    spans = diagnosis.timeline(crawl_report(healthy(events=tuple(events)), healthy(TWO, events=())))
    assert len(spans) == 48
    assert spans[0] == Span(NOON, 1, 0)
    assert spans[-1] == Span(NOON + 94, 1, 1)
    assert sum(span.fetches for span in spans) == 2


def test_the_time_line_of_one_moment_and_of_nothing() -> None:
    at_once = healthy(events=(Event(NOON, "status 200", 0.1),) * 3)
    assert diagnosis.timeline(crawl_report(at_once)) == [Span(NOON, 3, 0)]
    assert diagnosis.timeline(crawl_report()) == []


# -- what is new -----------------------------------------------------------------------------


def test_what_differs_from_the_previous_report() -> None:
    before = PreviousReport(
        NOON - 1,
        {
            ONE: ("successful", "aaaa"),
            TWO: ("successful", ""),
            "https://same.example": ("successful", "cccc"),
            "https://gone.example": ("unavailable", ""),
            "https://unread.example": ("successful", ""),
        },
    )
    report = crawl_report(
        healthy(ONE, digest="bbbb"),
        unreachable(TWO),
        healthy("https://same.example", digest="cccc"),
        healthy("https://unread.example", digest="dddd"),
        healthy("https://new.example"),
        previous=before,
    )
    assert [(each.title, each.count, each.items) for each in diagnosis.changes(report)] == [
        ("Access result changed", 1, (Item(TWO, "successful, now unreachable"),)),
        ("robots.txt changed", 1, (Item(ONE, ""),)),
        ("New", 1, (Item("https://new.example", "successful"),)),
        ("Not in this report", 1, (Item("https://gone.example", "unavailable"),)),
    ]


def test_nothing_is_new() -> None:
    before = PreviousReport(NOON - 1, {ONE: ("successful", "")})
    assert diagnosis.changes(crawl_report(healthy(), previous=before)) == []
    assert diagnosis.changes(crawl_report(healthy())) == []
