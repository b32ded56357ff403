"""Crawls by the rules that come with pages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, http_response
from tests.integration.crawling import Crawl, Job, ok, pages

HTML = ("Content-Type", "text/html")
# More than fits in the buffers of a connection.
LARGE = 20_000_000


def page(*headers: tuple[str, str], head: str = "", body: str = "", status: int = 200) -> bytes:
    html = f"<html><head>{head}</head><body>{body}</body></html>"
    return http_response(status, html.encode(), [HTML, *headers])


def site_of(answers: dict[str, bytes | Answer], robots: bytes = b"") -> Answer:
    """A site with *answers* by path, and an empty page elsewhere."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(ok(robots))
            return
        found = answers.get(asked.target, page())
        if isinstance(found, bytes):
            writer.write(found)
        else:
            await found(asked, writer)

    return answer


def run(urls: list[str], loop: str, settings: dict[str, Any], **spider: Any) -> Crawl:
    ours = {"USER_AGENT": "ExampleBot/1.0", "REP_TDM_FILE": False}
    return Job(pages(*urls), loop, ours | settings, spider).run()


PAGES: dict[str, bytes | Answer] = {
    "/header": page(("X-Robots-Tag", "noai")),
    "/tag": page(head='<meta name="robots" content="noai">'),
    "/ours": page(("X-Robots-Tag", "ExampleBot: noai")),
    "/others": page(("X-Robots-Tag", "otherbot: noai")),
    "/usage": page(("Content-Usage", "train-ai=n")),
    "/reserved": page(("tdm-reservation", "1"), ("tdm-policy", "https://a/p")),
    "/lifted": page(("tdm-reservation", "1"), head='<meta name="tdm-reservation" content="0">'),
    "/error": page(("X-Robots-Tag", "noai"), body="an error", status=404),
    "/image": http_response(200, b"GIF", [("Content-Type", "image/gif"), ("tdm-reservation", "1")]),
}


def test_responses_are_annotated(servers: LoopbackServers, loop: str) -> None:
    robots = b"User-agent: *\nContent-Signal: /usage search=no, ai-train=yes\n"
    one = servers.serve(site_of(PAGES, robots))
    urls = [one.url + path for path in ["/plain", *PAGES]]
    crawl = run(urls, loop, {"REP_PAGE_RULES": "annotate", "REP_PURPOSES": ["ai-train"]})

    def rules(path: str) -> Any:
        assert crawl.outcome(one.url + path) == "fetched"
        return crawl.outcomes[one.url + path].get("page_rules")

    assert rules("/plain") == {}
    assert rules("/header")["ai-train"] == "ai-train: refused by X-Robots-Tag: noai"
    assert rules("/tag")["ai-train"] == 'ai-train: refused by <meta name="robots">: noai'
    assert rules("/ours")["ai-train"] == "ai-train: refused by X-Robots-Tag: examplebot: noai"
    assert rules("/others") == {}
    assert rules("/usage") == {
        use: f"{use}: refused by Content-Signal: /usage search=no, ai-train=yes "
        "(line 2 of robots.txt)"
        for use in ("search", "snippet", "images")
    } | {
        use: f"{use}: refused by Content-Usage: train-ai=n"
        for use in ("ai-train", "ai-train-images")
    }
    assert rules("/reserved")["tdm"] == "tdm: refused by tdm-reservation: 1"
    assert rules("/lifted")["tdm"] == 'tdm: allowed by <meta name="tdm-reservation">: 0'
    # Not a page, but an error.
    assert rules("/error") is None
    assert crawl.stats["robotstxt/page_rules/page_count"] == "7"
    assert crawl.our_log() == []


def test_reserved_responses_are_refused(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site_of(PAGES))
    urls = [one.url + path for path in ["/plain", *PAGES]]
    crawl = run(urls, loop, {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"]})
    outcomes = {path: crawl.outcome(one.url + path) for path in ["/plain", *PAGES]}
    assert outcomes == {
        "/plain": "fetched",
        "/header": "refused",
        "/tag": "refused",
        "/ours": "refused",
        "/others": "fetched",
        "/usage": "refused",
        "/reserved": "refused",
        "/lifted": "fetched",
        # An error page is none of the site's pages: it is for who asked to handle it.
        "/error": "fetched",
        "/image": "refused",
    }
    refused = crawl.outcomes[one.url + "/header"]
    assert refused["reason"] == "reserved"
    assert refused["text"] == (
        "disallowed because its page rules refuse every purpose of this crawl "
        "(ai-train: refused by X-Robots-Tag: noai)"
    )
    assert crawl.stats["robotstxt/forbidden/reserved"] == "6"
    assert "requests refused: 6 (reserved 6)" in crawl.summaries()[0]
    assert crawl.our_log() == []


def test_a_response_is_refused_if_no_purpose_is_left(servers: LoopbackServers, loop: str) -> None:
    robots = b"User-agent: *\nContent-Signal: ai-train=no\n"
    answers: dict[str, bytes | Answer] = {
        "/both": page(("X-Robots-Tag", "noindex")),
        "/one": page(("X-Robots-Tag", "noai")),
    }
    one = servers.serve(site_of(answers, robots))
    settings = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["train-ai", "search"]}
    crawl = run([f"{one.url}/both", f"{one.url}/one"], loop, settings)
    assert crawl.outcome(f"{one.url}/one") == "fetched"
    # The file refuses one purpose, the header the other one.
    assert crawl.outcome(f"{one.url}/both") == "refused"
    assert "Content-Signal: ai-train=no (line 2" in crawl.outcomes[f"{one.url}/both"]["text"]


def large(*headers: tuple[str, str], status: int = 200) -> tuple[Answer, list[int]]:
    """A body of :data:`LARGE` bytes, and how many of them were taken off the server's hands."""
    sent: list[int] = []

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        head = [("Content-Length", str(LARGE)), ("Content-Type", "text/html"), *headers]
        lines = [f"HTTP/1.1 {status} OK", *(f"{name}: {value}" for name, value in head), "", ""]
        writer.write("\r\n".join(lines).encode())
        for _ in range(LARGE // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent.append(100_000)

    return answer, sent


@pytest.mark.parametrize("header", [("X-Robots-Tag", "noai"), ("Content-Usage", "train-ai=n")])
def test_a_body_that_its_headers_reserve_is_not_downloaded(
    servers: LoopbackServers, loop: str, header: tuple[str, str]
) -> None:
    answer, sent = large(header)
    one = servers.serve(site_of({"/large": answer}))
    settings = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"]}
    crawl = run([f"{one.url}/large"], loop, settings)
    assert crawl.outcome(f"{one.url}/large") == "refused"
    assert sum(sent) < LARGE
    assert one.targets() == ["/robots.txt", "/large"]


def test_a_body_of_another_status_may_be_cut_and_is_retried_as_ever(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(
        site_of({"/a": page(("X-Robots-Tag", "noai"), ("Content-Encoding", "gzip"), status=503)})
    )
    settings = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"]}
    retry = {"RETRY_ENABLED": True, "RETRY_TIMES": 1}
    crawl = run([f"{one.url}/a"], loop, settings | retry)
    assert crawl.outcome(f"{one.url}/a") == "fetched"
    assert crawl.outcomes[f"{one.url}/a"]["status"] == 503
    assert one.targets() == ["/robots.txt", "/a", "/a"]


def test_a_redirect_is_followed_and_its_target_has_rules(
    servers: LoopbackServers, loop: str
) -> None:
    moved = http_response(301, b"", [("Location", "/header"), ("X-Robots-Tag", "none")])
    one = servers.serve(site_of(PAGES | {"/moved": moved}))
    settings = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"], "REP_TDM_FILE": False}
    job = Job(pages(f"{one.url}/moved", handle_httpstatus_all=False), loop, settings)
    crawl = job.run()
    assert crawl.outcome(f"{one.url}/moved") == "refused"
    assert one.targets() == ["/robots.txt", "/moved", "/header"]


def test_rules_of_one_page_do_not_stay_in_the_meta_of_another(
    servers: LoopbackServers, loop: str
) -> None:
    # Many spiders pass the meta of a response on.
    one = servers.serve(site_of({"/a": page(status=404)}))
    job = Job(
        pages(f"{one.url}/a", rep_page_rules="of another page"),
        loop,
        {"REP_PAGE_RULES": "annotate"},
    )
    crawl = job.run()
    assert crawl.outcomes[f"{one.url}/a"]["meta"] == []


def test_dont_obey_robotstxt_is_about_page_rules_too(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site_of(PAGES))
    job = Job(
        pages(f"{one.url}/header", f"{one.url}/tag", dont_obey_robotstxt=True),
        loop,
        {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["ai-train"]},
    )
    crawl = job.run()
    assert {each["outcome"] for each in crawl.outcomes.values()} == {"fetched"}
    assert "robotstxt/page_rules/page_count" not in crawl.stats


def test_without_the_setting_nothing_is_done(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site_of(PAGES))
    crawl = run([f"{one.url}/header"], loop, {"REP_PURPOSES": ["ai-train"]})
    assert crawl.outcome(f"{one.url}/header") == "fetched"
    assert crawl.outcomes[f"{one.url}/header"]["meta"] == []


def test_who_obeys_without_a_purpose_is_told(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site_of(PAGES))
    crawl = run([f"{one.url}/header"], loop, {"REP_PAGE_RULES": "obey"})
    assert crawl.outcome(f"{one.url}/header") == "fetched"
    (line,) = crawl.our_log()
    assert "REP_PURPOSES is empty" in line


# -- links ---------------------------------------------------------------------------

LINKS = """
<a href="/plain#top">a</a> <a href="/no?a=b c" rel="nofollow">b</a> <a href="/ugc" rel="ugc">c</a>
"""
LINKING: dict[str, bytes | Answer] = {
    "/links": page(body=LINKS),
    "/nofollow": page(("X-Robots-Tag", "nofollow"), body='<a href="/from-nofollow">d</a>'),
    "/tagged": page(
        head='<meta name="robots" content="none">', body='<a href="/from-tagged">e</a>'
    ),
}


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        ({}, {"/no?a=b%20c", "/from-nofollow", "/from-tagged"}),
        (
            {"REP_NOFOLLOW": ["nofollow", "ugc"]},
            {"/no?a=b%20c", "/ugc", "/from-nofollow", "/from-tagged"},
        ),
        ({"REP_NOFOLLOW": []}, set()),
        ({"REP_PAGE_RULES": "annotate"}, set()),
    ],
)
def test_links_are_not_followed(
    servers: LoopbackServers, loop: str, settings: dict[str, Any], dropped: set[str]
) -> None:
    one = servers.serve(site_of(LINKING))
    obey = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["tdm"]}
    crawl = run([one.url + path for path in LINKING], loop, obey | settings, follows_links=True)
    linked = {"/plain", "/no?a=b%20c", "/ugc", "/from-nofollow", "/from-tagged"}
    assert set(one.targets()) == {"/robots.txt", *LINKING} | linked - dropped
    stat = crawl.stats.get("robotstxt/page_rules/not_followed_count")
    assert stat == (str(len(dropped)) if dropped else None)
    told = f"links not followed (nofollow): {len(dropped)}" in crawl.summaries()[0]
    assert told is bool(dropped)


# -- tdmrep.json ---------------------------------------------------------------------

FILE = b"""[
  {"location": "/free/", "tdm-reservation": 0},
  {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.example/policy.json"}
]"""
TDM_PATH = "/.well-known/tdmrep.json"
WITH_FILE: dict[str, bytes | Answer] = {
    TDM_PATH: ok(FILE, ("Content-Type", "application/json")),
    "/lifted": page(("tdm-reservation", "0")),
    "/free/reserved": page(head='<meta name="tdm-reservation" content="1">'),
}
OBEY = {"REP_PAGE_RULES": "obey", "REP_PURPOSES": ["tdm"], "REP_TDM_FILE": None}


def test_a_file_reserves_what_no_header_or_tag_lifts(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site_of(WITH_FILE))
    paths = ["/a", "/b", "/free/c", "/lifted", "/free/reserved"]
    crawl = run([one.url + path for path in paths], loop, OBEY)
    outcomes = {path: crawl.outcome(one.url + path) for path in paths}
    assert outcomes == {
        "/a": "refused",
        "/b": "refused",
        "/free/c": "fetched",
        "/lifted": "fetched",
        "/free/reserved": "refused",
    }
    text = crawl.outcomes[f"{one.url}/a"]["text"]
    assert "tdm: refused by tdmrep.json, rule 2 for /: tdm-reservation: 1" in text
    # One fetch of each file, however many pages wait, and before any page.
    assert one.targets()[:2] == ["/robots.txt", TDM_PATH]
    assert sorted(one.targets()[2:]) == sorted(paths)
    assert crawl.stats["tdmrep/request_count"] == "1"
    assert crawl.stats["robotstxt/request_count"] == "1"
    assert "origins: 1 (successful 1)" in crawl.summaries()[0]
    assert crawl.our_log() == []


@pytest.mark.parametrize(
    "settings",
    [
        OBEY | {"REP_PURPOSES": ["search"]},
        OBEY | {"REP_TDM_FILE": False},
        OBEY | {"REP_PAGE_RULES": "off"},
    ],
)
def test_a_file_is_fetched_only_if_asked_for(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site_of(WITH_FILE))
    assert run([f"{one.url}/a"], loop, settings).outcome(f"{one.url}/a") == "fetched"
    assert one.targets() == ["/robots.txt", "/a"]


@pytest.mark.parametrize(
    "settings",
    [
        {"REP_PAGE_RULES": "annotate", "REP_TDM_FILE": True},
        {
            "REP_PAGE_RULES": "annotate",
            "REP_TDM_FILE": None,
            "REP_PURPOSES": ["ai-train", "search"],
        },
    ],
)
def test_annotated_responses_name_the_file(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site_of(WITH_FILE))
    crawl = run([f"{one.url}/a"], loop, settings)
    rules = crawl.outcomes[f"{one.url}/a"]["page_rules"]
    assert rules["tdm"] == "tdm: refused by tdmrep.json, rule 2 for /: tdm-reservation: 1"


@pytest.mark.parametrize(
    ("robots", "answer", "is_fetched"),
    [
        (b"", page(status=404), True),
        (b"", page(status=500), True),
        (b"", page(), True),
        (b"", ok(b"[not JSON"), True),
        # A file that robots.txt refuses is not fetched.
        (b"User-agent: *\nDisallow: /.well-known/\n", ok(FILE), False),
    ],
)
def test_without_a_file_nothing_is_reserved(
    servers: LoopbackServers, loop: str, robots: bytes, answer: bytes, is_fetched: bool
) -> None:
    one = servers.serve(site_of({TDM_PATH: answer}, robots))
    crawl = run([f"{one.url}/a"], loop, OBEY)
    assert crawl.outcome(f"{one.url}/a") == "fetched"
    assert (TDM_PATH in one.targets()) is is_fetched
    assert crawl.our_log() == []


def test_a_file_is_kept_in_the_store(servers: LoopbackServers, loop: str, tmp_path: Path) -> None:
    one = servers.serve(site_of(WITH_FILE))
    store = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite"}
    for number in range(2):
        crawl = run([f"{one.url}/{number}"], loop, OBEY | store)
        assert crawl.outcome(f"{one.url}/{number}") == "refused"
    assert one.targets() == ["/robots.txt", TDM_PATH, "/0", "/1"]
    assert crawl.stats["tdmrep/store_count"] == "1"
