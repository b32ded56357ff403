"""Examples of Google's description that are not tables of one rule: docs/conformance."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage
from scrapy_rep.rep.caching.freshness import Bounds, evaluate
from scrapy_rep.rep.dialects import GOOGLE, Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason

SITE = "https://example.com"


def refused(body: str, paths: str, agent: str) -> str:
    """Those of *paths* that *agent* may not access."""
    robots = RobotsTxt.parse(body.encode(), GOOGLE)
    verdicts = {path: robots.verdict(f"{SITE}{path}", agent) for path in paths.split()}
    for path, verdict in verdicts.items():
        assert robots.allowed(f"{SITE}{path}", agent) is verdict.allowed
    return " ".join(path for path, verdict in verdicts.items() if not verdict.allowed)


@pytest.mark.clause("Google introduction-3")
def test_the_example_of_the_introduction() -> None:
    body = """\
# This robots.txt file controls crawling of URLs under https://example.com.
# All crawlers are disallowed to crawl files in the "includes" directory, such
# as .css, .js, but Google needs them for rendering, so Googlebot is allowed
# to crawl them.
User-agent: *
Disallow: /includes/

User-agent: Googlebot
Allow: /includes/

Sitemap: https://example.com/sitemap.xml
"""
    paths = "/ /includes/a.css /page"
    assert refused(body, paths, "otherbot") == "/includes/a.css"
    assert refused(body, paths, "Googlebot") == ""
    assert RobotsTxt.parse(body.encode(), GOOGLE).sitemaps == (f"{SITE}/sitemap.xml",)


@pytest.mark.clause(
    "Google urls-1",
    "Google urls-2",
    "Google urls-4",
    "Google urls-5",
    "Google urls-6",
    "Google urls-7",
    "Google urls-8",
)
@pytest.mark.parametrize(
    ("robots_url", "valid", "not_valid"),
    [
        (
            "https://example.com/robots.txt",
            "https://example.com/ https://example.com/folder/file",
            "https://other.example.com/ http://example.com/ https://example.com:8181/",
        ),
        (
            "https://www.example.com/robots.txt",
            "https://www.example.com/",
            "https://example.com/ https://shop.www.example.com/ https://www.shop.example.com/",
        ),
        (
            "https://www.exämple.com/robots.txt",
            # The table has "xn--exmple-cua.com", without "www.".
            "https://www.exämple.com/ https://www.xn--exmple-cua.com/",
            "https://www.example.com/ https://xn--exmple-cua.com/",
        ),
        ("ftp://example.com/robots.txt", "ftp://example.com/", "https://example.com/"),
        ("https://212.96.82.21/robots.txt", "https://212.96.82.21/", "https://example.com/"),
        (
            "https://example.com:443/robots.txt",
            "https://example.com:443/ https://example.com/",
            "https://example.com:444/",
        ),
        (
            "https://example.com:8181/robots.txt",
            "https://example.com:8181/",
            "https://example.com/",
        ),
        # "Standard port numbers (80 for HTTP, 443 for HTTPS, 21 for FTP)".
        ("http://example.com:80/robots.txt", "http://example.com/", "https://example.com:80/"),
        ("ftp://example.com:21/robots.txt", "ftp://example.com/", "ftp://example.com:22/"),
    ],
)
def test_the_examples_of_valid_robots_txt_urls(robots_url: str, valid: str, not_valid: str) -> None:
    holds_for = Origin.of(robots_url)
    assert {Origin.of(url) for url in valid.split()} == {holds_for}
    assert holds_for not in {Origin.of(url) for url in not_valid.split()}


@pytest.mark.clause("Google urls-3")
def test_a_robots_txt_in_a_folder_is_a_page_like_others() -> None:
    assert Origin.of(f"{SITE}/folder/robots.txt").robots_url == f"{SITE}/robots.txt"
    body = "User-agent: *\nDisallow: /folder/\n"
    assert refused(body, "/folder/robots.txt", "x") == "/folder/robots.txt"


@pytest.mark.clause("Google status-10")
@pytest.mark.parametrize(
    ("days", "access"),
    [(0, Access.UNREACHABLE), (29, Access.UNREACHABLE), (31, Access.UNAVAILABLE)],
)
@pytest.mark.parametrize("status", [429, 500, 503, None])
def test_after_30_days_without_a_copy_everything_is_allowed(
    status: int | None, days: float, access: Access
) -> None:
    now = 1_800_000_000.0
    result = FetchResult(f"{SITE}/robots.txt", status)
    outage = Outage(result, since=now - days * 86_400, last_at=now, attempts=9)
    entry = CacheEntry(Origin.of(SITE), None, outage)
    assert evaluate(entry, GOOGLE, None, Bounds(), now).access is access


@pytest.mark.clause("Google format-3")
def test_rules_in_a_page_of_html_count() -> None:
    body = "<html>\n<body>\nUser-agent: *\nDisallow: /a\n<p>\nDisallow: /b\n</html>\n"
    assert refused(body, "/ /a /b /c", "x") == "/a /b"


@pytest.mark.clause("Google allow-3")
def test_allow_is_case_sensitive() -> None:
    body = "User-agent: *\nDisallow: /\nAllow: /Fish\n"
    assert refused(body, "/Fish /fish /FISH", "x") == "/fish /FISH"


@pytest.mark.clause("Google sitemap-2", "Google sitemap-3", "Google sitemap-4", "Google sitemap-6")
def test_the_example_of_sitemaps() -> None:
    sitemaps = (
        "https://example.com/sitemap.xml",
        "https://cdn.example.org/other-sitemap.xml",
        "https://ja.example.org/テスト-サイトマップ.xml",
    )
    lines = [f"sitemap: {url}" for url in sitemaps]
    body = "\n".join(["user-agent: otherbot", "disallow: /kale", "", *lines])
    robots = RobotsTxt.parse(body.encode(), GOOGLE)
    assert robots.sitemaps == sitemaps
    assert [record.problem for record in robots.records] == [""] * 3
    # "The value of the sitemap field is case-sensitive."
    assert RobotsTxt.parse(b"Sitemap: https://example.com/Map.XML", GOOGLE).sitemaps == (
        "https://example.com/Map.XML",
    )


FOUR_GROUPS = """\
user-agent: a
disallow: /c

user-agent: b
disallow: /d

user-agent: e
user-agent: f
disallow: /g

user-agent: h
"""


@pytest.mark.clause("Google grouping-1", "Google grouping-2")
@pytest.mark.parametrize(
    ("agent", "paths"), [("a", "/c"), ("b", "/d"), ("e", "/g"), ("f", "/g"), ("h", ""), ("i", "")]
)
def test_the_example_of_four_groups(agent: str, paths: str) -> None:
    assert refused(FOUR_GROUPS, "/c /d /g /", agent) == paths


@pytest.mark.clause("Google grouping-2")
def test_a_group_without_rules_is_the_group_of_its_crawler() -> None:
    body = FOUR_GROUPS.replace("user-agent: a", "user-agent: *")
    found = RobotsTxt.parse(body.encode(), GOOGLE).verdict(f"{SITE}/c", "h")
    assert (found.reason, [agent.name for agent in found.group]) == (Reason.NO_RULE, ["h"])


GROUPS = ["user-agent: googlebot-news\ndisallow: /1\n", "user-agent: *\ndisallow: /2\n"]
GROUPS += ["user-agent: googlebot\ndisallow: /3\n"]


@pytest.mark.clause("Google agents-5")
@pytest.mark.parametrize("order", ["012", "021", "102", "120", "201", "210"])
def test_the_order_of_groups_is_irrelevant(order: str) -> None:
    body = "\n".join(GROUPS[int(place)] for place in order)
    found = [refused(body, "/1 /2 /3", agent) for agent in ("googlebot-news", "x", "googlebot")]
    assert found == ["/1", "/2", "/3"]


@pytest.mark.clause("Google matching-2")
@pytest.mark.parametrize("pattern", ["/サ", "/%E3%82%B5", "/%e3%82%b5"])
def test_characters_outside_ascii_in_both_forms(pattern: str) -> None:
    body = f"User-agent: *\nDisallow: {pattern}\n"
    assert refused(body, "/%E3%82%B5イト /a", "x") == "/%E3%82%B5イト"
