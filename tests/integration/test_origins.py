"""Which robots.txt a page's is, through which way it is got, and what has none.

A proxy stands in for every host of the web here: it sees whole URLs, and so
everything that is asked for by whatever spelling.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site
from tests.integration.certificates import tls_context
from tests.integration.crawling import PAGE, RULES, Job, ok, pages, redirect, site


async def web(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A proxy behind which each host refuses /HOST/."""
    parts = urlsplit(asked.target)
    if parts.path == "/robots.txt":
        writer.write(ok(f"User-agent: *\nDisallow: /{parts.netloc}/\n".encode()))
    else:
        writer.write(PAGE)


def robots_of(site: Site) -> list[str]:
    return [target for target in site.targets() if target.endswith("/robots.txt")]


SAME = {
    "default port": ["http://a.example/1", "http://a.example:80/2"],
    "case": ["http://a.example/1", "HTTP://A.Example/2"],
    "userinfo": ["http://a.example/1", "http://user:secret@a.example/2"],
    "IDN": ["http://bücher.example/1", "http://xn--bcher-kva.example/2", "http://BÜCHER.example/3"],
}


@pytest.mark.parametrize("urls", SAME.values(), ids=SAME.keys())
@pytest.mark.parametrize("turn", [1, -1], ids=["one first", "the other first"])
def test_equal_spellings_share_one_fetch(
    servers: LoopbackServers, loop: str, urls: list[str], turn: int
) -> None:
    proxy = servers.serve(web)
    result = Job(pages(*urls[::turn], proxy=proxy.url), loop).run()
    assert [result.outcome(url) for url in urls] == ["fetched"] * len(urls)
    (robots,) = robots_of(proxy)
    assert robots in ("http://a.example/robots.txt", "http://xn--bcher-kva.example/robots.txt")
    (headers,) = (asked.headers for asked in proxy.asked if asked.target == robots)
    assert "authorization" not in headers


@pytest.mark.clause("Google location-6")
def test_other_ports_and_a_trailing_dot_are_other_origins(
    servers: LoopbackServers, loop: str
) -> None:
    proxy = servers.serve(web)
    hosts = ["a.example", "a.example:8080", "a.example.", "www.a.example"]
    urls = [f"http://{host}/{path}/" for host in hosts for path in hosts]
    result = Job(pages(*urls, proxy=proxy.url), loop).run()
    for host in hosts:
        for path in hosts:
            expected = "refused" if host == path else "fetched"
            assert result.outcome(f"http://{host}/{path}/") == expected
    assert sorted(robots_of(proxy)) == sorted(f"http://{host}/robots.txt" for host in hosts)


@pytest.mark.clause("Google location-3", "RFC 9309 2.3-5")
def test_http_and_https_of_one_host_have_their_own(servers: LoopbackServers, loop: str) -> None:
    plain = servers.serve(site(ok(b"User-agent: *\nDisallow: /plain\n")))
    secure = servers.serve(
        site(ok(b"User-agent: *\nDisallow: /secure\n")), host=plain.host, tls=tls_context()
    )
    urls = [f"{origin.url}/{path}/" for origin in (plain, secure) for path in ("plain", "secure")]
    result = Job(pages(*urls), loop).run()
    outcomes = [result.outcome(url) for url in urls]
    assert outcomes == ["refused", "fetched", "fetched", "refused"]
    assert len(robots_of(plain)) == len(robots_of(secure)) == 1


@pytest.mark.clause("Koster 1994 method-2", "RFC 9111 4-5")
def test_a_hundred_pages_at_once_make_one_fetch(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok()))
    urls = [f"{one.url}/{n}" for n in range(100)]
    result = Job(pages(*urls), loop).run()
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert len(robots_of(one)) == 1
    assert result.stats["robotstxt/request_count"] == "1"


def test_robots_txt_goes_through_the_proxy_of_the_page(servers: LoopbackServers, loop: str) -> None:
    direct = servers.serve(site(ok()))
    elsewhere = servers.serve(site(ok()))

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == f"{direct.url}/robots.txt":
            writer.write(redirect(f"{elsewhere.url}/robots.txt"))
        else:
            writer.write(ok() if asked.target.endswith("/robots.txt") else PAGE)

    proxy = servers.serve(answer)
    with_password = proxy.url.replace("://", "://user:secret@")
    urls = [f"{direct.url}/yes", f"{direct.url}/no"]
    result = Job(pages(*urls, proxy=with_password), loop).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused"]
    assert direct.asked == elsewhere.asked == []
    assert proxy.targets() == [
        f"{direct.url}/robots.txt",
        f"{elsewhere.url}/robots.txt",
        f"{direct.url}/yes",
    ]
    credentials = {asked.headers.get("proxy-authorization") for asked in proxy.asked}
    assert credentials == {"Basic dXNlcjpzZWNyZXQ="}


def test_a_page_that_is_let_through_off_site_is_judged_by_its_robots_txt(
    servers: LoopbackServers, loop: str
) -> None:
    home, away = servers.serve(site(ok())), servers.serve(site(ok()))
    urls = [f"{away.url}/yes", f"{away.url}/no"]
    for meta in ({"allow_offsite": True}, {}):
        # Without that key, as start requests are let through: by dont_filter.
        spider = {"allowed_domains": [home.host]}
        result = Job(pages(*urls, **meta), loop, spider=spider).run()
        assert [result.outcome(url) for url in urls] == ["fetched", "refused"]
    assert len(robots_of(away)) == 2


def test_credentials_do_not_follow_a_redirect_to_another_origin(
    servers: LoopbackServers, loop: str
) -> None:
    other = servers.serve(site(ok()))
    one = servers.serve(site(redirect(f"{other.url}/robots.txt")))
    Job(pages(f"{one.url}/yes", http_user="user", http_pass="secret"), loop).run()
    robots, page = one.asked
    assert (robots.target, page.target) == ("/robots.txt", "/yes")
    # Scrapy knows these meta keys since 2.17; before, there is nothing to pass on.
    assert robots.headers.get("authorization") == page.headers.get("authorization")
    assert "authorization" not in other.asked[0].headers


@pytest.mark.clause("RFC 9309 2.3.1.2-3")
def test_userinfo_in_a_location_is_dropped(servers: LoopbackServers, loop: str) -> None:
    other = servers.serve(site(ok()))
    location = other.url.replace("://", "://user:secret@") + "/robots.txt"
    one = servers.serve(site(redirect(location)))
    result = Job(pages(f"{one.url}/no"), loop).run()
    assert result.outcome(f"{one.url}/no") == "refused"
    assert "authorization" not in other.asked[0].headers


@pytest.mark.clause("RFC 9111 4.3.1-1")
def test_robots_txt_is_asked_for_plain_and_as_the_page_would_be(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(site(ok()))
    page = {"url": f"{one.url}/yes", "headers": {"User-Agent": "ExampleBot/2", "Cookie": "a=1"}}
    Job([page], loop).run()
    robots, got = one.asked
    assert (robots.target, got.target) == ("/robots.txt", "/yes")
    assert robots.headers["user-agent"] == got.headers["user-agent"] == "ExampleBot/2"
    assert robots.headers["accept-encoding"] == "identity"
    assert "cookie" not in robots.headers


@pytest.mark.clause("Google introduction-2", "RFC 9309 2.3-5")
def test_what_has_no_robots_txt_is_not_touched(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok(b"User-agent: *\nDisallow: /\n")))
    obeying = [{"url": f"{one.url}/robots.txt"}, {"url": "data:,a"}, {"url": "file:///etc/hosts"}]
    ignoring = pages(f"{one.url}/any", dont_obey_robotstxt=True)
    result = Job([*obeying, *ignoring, {"url": "s3://bucket/key"}], loop).run()
    for page in [*obeying, *ignoring]:
        assert result.outcome(page["url"]) == "fetched"
    # There is no such bucket; what matters is that robots.txt was not the reason.
    assert result.outcome("s3://bucket/key") == "failed"
    # The one that the spider asked for.
    assert len(robots_of(one)) == 1
    assert "robotstxt/request_count" not in result.stats


def test_robotstxt_obey_false_switches_it_off(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok(b"User-agent: *\nDisallow: /\n")))
    result = Job(pages(f"{one.url}/any"), loop, {"ROBOTSTXT_OBEY": False}).run()
    assert result.outcome(f"{one.url}/any") == "fetched"
    assert robots_of(one) == []


@pytest.mark.once
def test_waiting_in_the_queue_of_a_slot_is_no_time_on_the_wire(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(hops_at_one_host())
    urls = [f"{one.url}/yes", f"{one.url}/no"]
    settings = {"DOWNLOAD_DELAY": 4, "RANDOMIZE_DOWNLOAD_DELAY": False, "REP_FETCH_TIMEOUT": 3.5}
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused"]


def hops_at_one_host() -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(redirect("/robots"))
        else:
            writer.write(ok(RULES) if asked.target == "/robots" else PAGE)

    return answer
