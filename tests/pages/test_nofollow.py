"""Requests for links that are not to be followed are dropped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_rep.pages.nofollow import NofollowMiddleware
from scrapy_rep.pages.statements import PAGE_RULES, Source, Statement, evaluate

PAGE = "https://example.com/a/page"
NOFOLLOW = evaluate([Statement(Source.HEADER, "", frozenset({"follow"}))], 0.0)
LINKS = b"""<base href="/b/">
<a href="no" rel="nofollow">1</a> <a href="both" rel="NoFollow x">2</a> <a href="both">3</a>
<a href=" /sp ace#top" rel="nofollow">4</a> <a href=" /end " rel="nofollow">8</a>
<a href="ugc" rel="ugc">5</a>
<a href="http://[" rel="nofollow">6</a> <a rel="nofollow">7</a>
"""


def middleware(**settings: Any) -> NofollowMiddleware:
    obeying = {"ROBOTSTXT_OBEY": True, "REP_PAGE_RULES": "obey"}
    crawler = get_crawler(settings_dict=obeying | settings)
    # get_crawler() creates neither.
    crawler.spider = crawler._create_spider("name")  # noqa: SLF001
    return NofollowMiddleware.from_crawler(crawler)


def page(
    body: bytes = LINKS, kind: type[Response] = HtmlResponse, rules: object = None
) -> Response:
    return kind(PAGE, body=body, request=Request(PAGE, meta={PAGE_RULES: rules}))


def followed(one: NofollowMiddleware, response: Response, *paths: str) -> list[str]:
    requests = [Request(f"https://example.com{path}") for path in paths]
    left = one.process_spider_output(response, requests)
    return [request.url.removeprefix("https://example.com") for request in left]


def dropped(one: NofollowMiddleware) -> int:
    stats = one._crawler.stats  # noqa: SLF001
    assert stats is not None
    return int(stats.get_value("robotstxt/page_rules/not_followed_count", 0))


def test_requests_for_links_with_a_rel_are_dropped() -> None:
    one = middleware()
    paths = ("/b/no", "/b/no#x", "/b/both", "/sp%20ace", "/end", "/b/ugc", "/other")
    assert followed(one, page(), *paths) == ["/b/both", "/b/ugc", "/other"]
    assert dropped(one) == 4


def test_the_setting_has_the_rels() -> None:
    one = middleware(REP_NOFOLLOW=["ugc"])
    assert followed(one, page(), "/b/no", "/b/ugc") == ["/b/no"]
    ours = middleware(REP_NOFOLLOW=["nofollow", "ugc"])
    assert followed(ours, page(LINKS.upper()), "/B/NO", "/B/UGC", "/B/BOTH") == ["/B/BOTH"]


@pytest.mark.parametrize(
    "settings",
    [{"REP_NOFOLLOW": []}, {"REP_PAGE_RULES": "annotate"}, {"REP_PAGE_RULES": "off"}],
)
def test_it_does_not_work_where_nothing_is_to_be_dropped(settings: dict[str, Any]) -> None:
    with pytest.raises(NotConfigured):
        middleware(**settings)


def test_all_requests_of_a_page_that_is_nofollow_are_dropped() -> None:
    one = middleware()
    nofollow = page(b"", rules=NOFOLLOW)
    assert followed(one, nofollow, "/x", "/a/page", "/a/page?x") == ["/a/page"]
    assert dropped(one) == 2
    # Whatever a spider has put there.
    assert followed(one, page(b"", rules="x"), "/x") == ["/x"]
    assert followed(one, page(b"", rules=evaluate([], 0.0)), "/x") == ["/x"]


def test_the_page_again_is_not_a_link() -> None:
    body = b'<a href="/a/page" rel="nofollow">1</a>'
    assert followed(middleware(), page(body), "/a/page") == ["/a/page"]


def test_only_html_has_links() -> None:
    one = middleware()
    assert followed(one, page(kind=Response), "/b/no") == ["/b/no"]
    assert followed(one, HtmlResponse(PAGE, body=LINKS), "/b/no", "/x") == ["/x"]


def test_items_and_requests_that_do_not_obey_pass() -> None:
    one = middleware()
    request = Request("https://example.com/b/no", meta={"dont_obey_robotstxt": True})
    results = [{"an": "item"}, request, "text"]
    assert list(one.process_spider_output(page(), results)) == results


async def test_asynchronous_callbacks() -> None:
    one = middleware()

    async def results() -> AsyncIterator[Any]:
        yield {"an": "item"}
        for path in ("/b/no", "/b/both"):
            yield Request(f"https://example.com{path}")

    left = [each async for each in one.process_spider_output_async(page(), results())]
    assert left == [{"an": "item"}, left[1]]
    assert left[1].url == "https://example.com/b/both"


def test_a_dropped_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "scrapy_rep"):
        followed(middleware(), page(), "/b/no")
    (message,) = [each.getMessage() for each in caplog.records if "scrapy_rep" in each.name]
    assert message == f"Not followed from <200 {PAGE}>: <GET https://example.com/b/no>"
