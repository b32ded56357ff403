"""Responses are annotated with the rules of their pages, or refused by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_rep.exceptions import RobotsForbidden
from scrapy_rep.pages.responses import ResponseRules
from scrapy_rep.pages.statements import PAGE_RULES, PageRules, Source, Statement, TdmPolicy
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.tokens import AgentTokens
from tests.policy_examples import NOON, with_rules

SITE = "https://example.com"
NOAI = {"X-Robots-Tag": "noai"}
RESERVED = Statement(Source.TDM_FILE, "the file", frozenset({"tdm"}), is_tdm=True)


class TdmFiles:
    """The file of each site reserves its pages."""

    def stated(self, policy: Policy | None, request: Request) -> tuple[Any, ...]:
        assert policy is not None
        return RESERVED, TdmPolicy("https://example.com/policy")


class Crawl:
    """The page rules of a crawl with *settings*, on a site with *robots*."""

    def __init__(self, robots: str | None = None, tdm: Any = None, **settings: Any) -> None:
        usual = {"ROBOTSTXT_OBEY": True, "REP_PAGE_RULES": "obey", "USER_AGENT": "ExampleBot"}
        self.crawler = get_crawler(Spider, usual | settings)
        self.crawler.spider = spider = self.crawler._create_spider("name")  # noqa: SLF001
        read = RepSettings.read(self.crawler.settings)
        policy = None if robots is None else with_rules(robots.encode())
        self.policy = policy and replace(policy, robots=RobotsTxt.parse(str(robots).encode()))
        self.told: list[tuple[Any, ...]] = []
        tokens = AgentTokens(read, spider)
        self.rules = ResponseRules(
            self.crawler, read, tokens, lambda: NOON, lambda request: self.policy, tdm, self.refused
        )

    def refused(self, policy: Policy | None, request: Request, verdict: Verdict) -> RobotsForbidden:
        self.told.append((policy, request))
        return RobotsForbidden(verdict)

    def page(self, headers: dict[str, Any] | None = None, head: str = "") -> PageRules:
        """The rules that a page gets; raises as the middleware does."""
        request = Request(f"{SITE}/page")
        response = HtmlResponse(request.url, 200, headers, f"<head>{head}</head><body>".encode())
        assert self.rules.process_response(request, response) is response
        rules = request.meta[PAGE_RULES]
        assert isinstance(rules, PageRules)
        return rules

    def stopped_by(self, headers: dict[str, Any], **meta: Any) -> Request | None:
        """The request, if its download is stopped when these headers come."""
        request = Request(f"{SITE}/page", meta=meta)
        sent = self.crawler.signals.send_catch_log(
            signals.headers_received,
            headers=Headers(headers),
            request=request,
            dont_log=StopDownload,
        )
        stops = [result for _, result in sent if result is not None]
        assert all(isinstance(each.value, StopDownload) and each.value.fail for each in stops)
        return request if stops else None

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"robotstxt/page_rules/{name}")


TRAINS: dict[str, Any] = {"REP_PURPOSES": ["train-ai"]}


def test_all_sources_of_a_page_count() -> None:
    robots = "User-agent: *\nContent-Signal: search=no\n"
    crawl = Crawl(robots, TdmFiles(), REP_PAGE_RULES="annotate")
    rules = crawl.page(
        {"X-Robots-Tag": ["noarchive", "examplebot: noimageindex", "other: noai"]},
        '<meta name="robots" content="noimageai"><meta name="otherbot" content="noai">',
    )
    texts = [str(each) for each in rules.statements]
    assert texts[:3] == ["Content-Signal: search=no (line 2 of robots.txt)"] * 3
    assert texts[3:] == [
        "the file",
        "X-Robots-Tag: noarchive",
        "X-Robots-Tag: examplebot: noimageindex",
        '<meta name="robots">: noimageai',
    ]
    refused = {"search", "snippet", "images", "archive", "ai-train-images", "tdm"}
    assert set(rules.refused) == refused
    assert rules.tdm_policy == "https://example.com/policy"
    assert crawl.stat("page_count") == 1
    assert crawl.stat("refused/search") == 1
    assert crawl.stat("refused/ai-train") is None
    # Nothing is refused, whatever the rules are.
    assert crawl.told == []


def test_a_page_is_refused_if_every_purpose_is() -> None:
    crawl = Crawl("User-agent: *\nContent-Signal: search=no\n", REP_PURPOSES=["train-ai", "search"])
    assert crawl.page().refused == ("search", "snippet", "images")
    with pytest.raises(RobotsForbidden) as caught:
        crawl.page(head='<meta name="robots" content="noai">')
    verdict = caught.value.verdict
    assert (verdict.allowed, verdict.reason, str(verdict.origin)) == (False, Reason.RESERVED, SITE)
    assert verdict.detail == (
        'ai-train: refused by <meta name="robots">: noai; '
        "search: refused by Content-Signal: search=no (line 2 of robots.txt)"
    )
    ((policy, request),) = crawl.told
    assert policy is crawl.policy
    # Who handles the refusal sees the rules.
    assert not request.meta[PAGE_RULES].allowed("ai-train")


def test_a_page_without_a_policy_or_an_origin() -> None:
    crawl = Crawl(**TRAINS)
    with pytest.raises(RobotsForbidden) as caught:
        crawl.page(NOAI)
    assert str(caught.value.verdict.origin) == SITE
    request = Request("s3://bucket/key")
    with pytest.raises(RobotsForbidden) as caught:
        crawl.rules.process_response(request, Response(request.url, headers=NOAI))
    assert caught.value.verdict.origin is None


def test_purposes_of_our_own_have_verdicts_too() -> None:
    robots = "User-agent: *\nContent-Signal: cooking=no\n"
    with pytest.raises(RobotsForbidden):
        Crawl(robots, REP_PURPOSES=["cooking"]).page()
    rules = Crawl(robots, REP_PURPOSES=["cooking"], REP_PAGE_RULES="annotate").page()
    assert rules.refused == ("cooking",)
    assert Crawl(robots, REP_PAGE_RULES="annotate").page().statements == ()


def test_a_statement_may_hold_from_a_time_on() -> None:
    crawl = Crawl(REP_PAGE_RULES="annotate")
    for year, refused in ((2020, True), (2100, False)):
        rules = crawl.page({"X-Robots-Tag": f"unavailable_after: {year}-01-01"})
        assert rules.allowed("search") is not refused


@pytest.mark.parametrize(
    ("status", "kind", "meta", "is_page", "has_tags"),
    [
        (200, HtmlResponse, {}, True, True),
        (299, HtmlResponse, {}, True, True),
        (200, Response, {}, True, False),
        (199, HtmlResponse, {}, False, False),
        (300, HtmlResponse, {}, False, False),
        (404, HtmlResponse, {}, False, False),
        (200, HtmlResponse, {"dont_obey_robotstxt": True}, False, False),
    ],
)
def test_only_a_successful_response_is_a_page(
    status: int, kind: type[Response], meta: dict[str, Any], is_page: bool, has_tags: bool
) -> None:
    crawl = Crawl(REP_PAGE_RULES="annotate")
    request = Request(f"{SITE}/page", meta=meta)
    body = b'<meta name="robots" content="noindex"><body>'
    response = kind(request.url, status, body=body)
    assert crawl.rules.process_response(request, response) is response
    assert (PAGE_RULES in request.meta) is is_page
    if is_page:
        assert request.meta[PAGE_RULES].allowed("search") is not has_tags


def test_without_a_statement_nothing_is_counted() -> None:
    crawl = Crawl("User-agent: *\nDisallow: /x\n", **TRAINS)
    assert crawl.page({"X-Other": "noai"}).statements == ()
    assert crawl.stat("page_count") is None


@pytest.mark.parametrize(
    ("headers", "meta", "stops"),
    [
        (NOAI, {}, True),
        (NOAI, {"dont_obey_robotstxt": True}, False),
        # A redirect is followed.
        (NOAI | {"Location": "/"}, {}, False),
        ({"X-Robots-Tag": "noindex"}, {}, False),
        ({}, {}, False),
        # A tag may lift a reservation, but only in HTML.
        ({"tdm-reservation": "1"}, {}, False),
        ({"tdm-reservation": "1", "Content-Type": "Text/HTML; charset=utf-8"}, {}, False),
        ({"tdm-reservation": "1", "Content-Type": "application/xhtml+xml"}, {}, False),
        ({"tdm-reservation": "1", "Content-Type": "image/gif"}, {}, True),
        ({"tdm-reservation": "1", "Content-Type": "text/html", **NOAI}, {}, True),
    ],
)
def test_headers_stop_a_download(
    headers: dict[str, Any], meta: dict[str, Any], stops: bool
) -> None:
    assert bool(Crawl(**TRAINS).stopped_by(headers, **meta)) is stops


def test_no_download_is_stopped_without_a_purpose_or_if_only_annotated() -> None:
    assert Crawl().stopped_by(NOAI) is None
    assert Crawl(REP_PAGE_RULES="annotate", **TRAINS).stopped_by(NOAI) is None
    assert Crawl(REP_PAGE_RULES="annotate", **TRAINS).page(NOAI).refused == (
        *("ai-train", "ai-train-images"),
    )


def stop(status: int = 200, **headers: str) -> StopDownload:
    stopping = StopDownload(fail=True)
    stopping.response = HtmlResponse(f"{SITE}/page", status, headers)
    return stopping


def test_a_stopped_download_refuses_its_request() -> None:
    crawl = Crawl(**TRAINS)
    request = crawl.stopped_by(NOAI)
    assert request is not None
    with pytest.raises(RobotsForbidden):
        crawl.rules.process_exception(request, stop())
    assert crawl.told == [(None, request)]
    assert not request.meta[PAGE_RULES].allowed("ai-train")
    # A retry of it is another download.
    assert list(request.meta) == [PAGE_RULES]


def test_an_error_whose_download_was_stopped_is_a_response() -> None:
    crawl = Crawl(**TRAINS)
    request = crawl.stopped_by(NOAI)
    assert request is not None
    stopping = stop(503, **{"Content-Encoding": "gzip", "X-Robots-Tag": "noai"})
    response = crawl.rules.process_exception(request, stopping)
    assert response is stopping.response
    assert response is not None
    assert list(response.headers) == [b"X-Robots-Tag"]
    assert (crawl.told, request.meta) == ([], {})


def test_other_exceptions_are_none_of_its_business() -> None:
    crawl = Crawl(**TRAINS)
    assert crawl.rules.process_exception(Request(SITE), stop()) is None
    request = crawl.stopped_by(NOAI)
    assert request is not None
    assert crawl.rules.process_exception(request, OSError()) is None


@pytest.mark.parametrize(
    ("settings", "warns"),
    [({}, True), (TRAINS, False), ({"REP_PAGE_RULES": "annotate"}, False)],
)
def test_who_obeys_without_a_purpose_is_warned(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], warns: bool
) -> None:
    crawl = Crawl(**settings)
    crawl.crawler.signals.send_catch_log(signals.spider_opened, spider=crawl.crawler.spider)
    assert ("REP_PURPOSES is empty" in caplog.text) is warns
