"""Every way in which a robots.txt is answered, and what that means for pages."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, http_response
from tests.integration.crawling import (
    RULES,
    Crawl,
    Job,
    drip,
    gzipped,
    hang,
    ok,
    pages,
    redirect,
    reset,
    site,
)

HTML = b"<!DOCTYPE html><html><body>User-agent: *<br>Disallow: /</body></html>"
HTML_TYPE = ("Content-Type", "text/html")
ALLOW_ALL = b"User-agent: *\nAllow: /\n"
DISALLOW_ALL = b"User-agent: *\nDisallow: /\n"


def raw(head: str, body: bytes) -> bytes:
    return head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body


BY_THE_RULES: dict[str, Answer | bytes] = {
    "200": ok(),
    "206": http_response(206, RULES),
    "text/html": ok(RULES, HTML_TYPE),
    "no Content-Type": raw(f"HTTP/1.1 200 OK\nContent-Length: {len(RULES)}", RULES),
    "BOM": ok(b"\xef\xbb\xbf" + RULES),
    "UTF-16LE with BOM": ok(RULES.decode().encode("utf-16")),
    "UTF-16BE with BOM": ok(b"\xfe\xff" + RULES.decode().encode("utf-16-be")),
    "CR only": ok(RULES.replace(b"\n", b"\r")),
    "gzip-encoded": gzipped(RULES),
    "gzip in two members": ok(
        gzip.compress(RULES[:9]) + gzip.compress(RULES[9:]), ("Content-Encoding", "gzip")
    ),
    "gzip and zeros": ok(gzip.compress(RULES) + bytes(100), ("Content-Encoding", "gzip")),
    "x-gzip": ok(gzip.compress(RULES), ("Content-Encoding", "x-gzip")),
    "deflate": ok(zlib.compress(RULES), ("Content-Encoding", "deflate")),
    "raw deflate": ok(zlib.compress(RULES)[2:-4], ("Content-Encoding", "deflate")),
    "identity": ok(RULES, ("Content-Encoding", "identity")),
    "charset as encoding": ok(RULES, ("Content-Encoding", "UTF-8")),
    "chunked": raw(
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked",
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(RULES), RULES),
    ),
    "until the connection closes": raw("HTTP/1.0 200 OK", RULES),
}

ALLOWED: dict[str, Answer | bytes] = {
    "204": http_response(204),
    "empty": ok(b""),
    "HTML page": ok(HTML, HTML_TYPE),
    **{
        f"{status} with {name}": http_response(status, body)
        for status in (400, 401, 403, 404, 410, 418, 429, 451, 499)
        for name, body in {"nothing": b"", "rules": DISALLOW_ALL}.items()
    },
    "404 with a cut body": raw("HTTP/1.1 404 Not Found\nContent-Length: 10000", DISALLOW_ALL),
    "404 with bad gzip": http_response(404, DISALLOW_ALL, [("Content-Encoding", "gzip")]),
    "redirect to file:": redirect("file:///etc/hostname"),
    "redirect to data:": redirect("data:text/plain,User-agent:*%0ADisallow:/"),
    "redirect to ftp:": redirect("ftp://127.0.0.1/robots.txt"),
    "redirect to javascript:": redirect("javascript:alert(1)"),
}

REFUSED: dict[str, Answer | bytes] = {
    **{
        f"{status} with {name}": http_response(status, body)
        for status in (500, 502, 503, 599)
        for name, body in {"nothing": b"", "rules": ALLOW_ALL}.items()
    },
    "304 unasked": http_response(304),
    "301 without Location": http_response(301, ALLOW_ALL),
    "redirect to nonsense": redirect("http://[nonsense/"),
    "300 with Location": http_response(300, ALLOW_ALL, [("Location", "/other")]),
    "600": http_response(600, ALLOW_ALL),
    "reset": reset,
    "hanging": hang,
    "drip": drip(ALLOW_ALL, every=0.05),
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "cut body": raw("HTTP/1.1 200 OK\nContent-Length: 10000", ALLOW_ALL),
    "bad chunk": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"zz\r\n" + ALLOW_ALL),
    "cut chunk": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"fff\r\n" + ALLOW_ALL),
    "bad gzip": ok(ALLOW_ALL, ("Content-Encoding", "gzip")),
    "cut gzip": ok(gzip.compress(ALLOW_ALL)[:-12], ("Content-Encoding", "gzip")),
    "bad deflate": ok(b"\xff" + ALLOW_ALL, ("Content-Encoding", "deflate")),
    "unknown encoding": ok(ALLOW_ALL, ("Content-Encoding", "rot13")),
}


def after_hops(count: int, status: int) -> Answer:
    """*count* redirects, then rules."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        hops = asked.target.removeprefix("/hop") if "hop" in asked.target else "0"
        if asked.target in ("/yes", "/no"):
            writer.write(ok(b"a page"))
        elif int(hops) < count:
            writer.write(redirect(f"/hop{int(hops) + 1}", status))
        else:
            writer.write(ok())

    return answer


async def loop_of_two(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """/robots.txt leads to /again, which leads to /robots.txt."""
    if asked.target in ("/yes", "/no"):
        writer.write(ok(b"a page"))
    else:
        writer.write(redirect("/again" if asked.target == "/robots.txt" else "/robots.txt"))


@dataclass(frozen=True)
class Row:
    """A site, and what must become of its pages /yes and /no."""

    site: Site
    yes: str
    no: str


@dataclass(frozen=True)
class Table:
    """All rows of one crawl."""

    rows: dict[str, Row]
    crawl: Crawl


def make_rows(servers: LoopbackServers, closed: list[Site]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for answers, yes, no in (
        (BY_THE_RULES, "fetched", "refused"),
        (ALLOWED, "fetched", "fetched"),
        (REFUSED, "refused", "refused"),
    ):
        for name, answer in answers.items():
            rows[name] = Row(servers.serve(site(answer)), yes, no)
    for status in (301, 302, 303, 307, 308):
        for count in (1, 5):
            hops = servers.serve(after_hops(count, status))
            rows[f"{count} hops by {status}"] = Row(hops, "fetched", "refused")
    rows["6 hops"] = Row(servers.serve(after_hops(6, 302)), "fetched", "fetched")
    rows["redirect loop"] = Row(servers.serve(loop_of_two), "fetched", "fetched")
    rows["redirect to itself"] = Row(
        servers.serve(site(redirect("/robots.txt"))), "fetched", "fetched"
    )
    other = servers.serve(site(ok()))
    rows["redirect to another origin"] = Row(
        servers.serve(site(redirect(f"{other.url}/robots.txt#fragment"))), "fetched", "refused"
    )
    rows["redirect to a 404"] = Row(
        servers.serve(site(redirect(missing(servers)))), "fetched", "fetched"
    )
    rows["redirect to a refused connection"] = Row(
        servers.serve(site(redirect(f"{closed[0].url}/robots.txt"))),
        "refused",
        "refused",
    )
    rows["refused connection"] = Row(closed[1], "refused", "refused")
    rows["DNS failure"] = Row(Site("http", "no-such-host.invalid", 80), "refused", "refused")
    return rows


def missing(servers: LoopbackServers) -> str:
    return servers.serve(site(http_response(404))).url + "/robots.txt"


def closed_port(stack: ExitStack) -> Site:
    """Where nobody listens, and no other process will until *stack* is closed."""
    bound = stack.enter_context(socket.socket())
    bound.bind(("127.0.0.1", 0))
    return Site("http", *bound.getsockname())


@pytest.fixture(scope="module")
def table(loop: str) -> Iterator[Table]:
    with LoopbackServers() as servers, ExitStack() as stack:
        rows = make_rows(servers, [closed_port(stack), closed_port(stack)])
        urls = [f"{row.site.url}{path}" for row in rows.values() for path in ("/yes", "/no")]
        # Six hops at once with a hundred other sites take long on a busy machine.
        settings = {"REP_FETCH_TIMEOUT": 15, "DOWNLOAD_TIMEOUT": 100}
        job = Job(pages(*urls), loop, settings)
        yield Table(rows, job.run())


NAMES = [
    *BY_THE_RULES,
    *ALLOWED,
    *REFUSED,
    *(f"{count} hops by {status}" for status in (301, 302, 303, 307, 308) for count in (1, 5)),
    "6 hops",
    "redirect loop",
    "redirect to itself",
    "redirect to another origin",
    "redirect to a 404",
    "redirect to a refused connection",
    "refused connection",
    "DNS failure",
]


@pytest.mark.clause(
    "Draft 2019 1-1",
    "Draft 2019 2.3.1.4-1",
    "Google introduction-1",
    "Google status-2",
    "Google status-13",
    "Koster 1996 3-1",
    "Koster 1996 3-2",
    "RFC 9110 15.4.5-1",
    "RFC 9111 3-3",
    "RFC 9111 3.3-1",
    "RFC 9309 1-1",
    "RFC 9309 2.2.2-1",
    "RFC 9309 2.3-3",
    "RFC 9309 2.3.1.1-1",
    "RFC 9309 2.3.1.2-1",
    "RFC 9309 2.3.1.2-2",
    "RFC 9309 2.3.1.2-3",
    "RFC 9309 2.3.1.2-4",
    "RFC 9309 2.3.1.2-5",
    "RFC 9309 2.3.1.3-2",
    "RFC 9309 2.3.1.4-1",
    "RFC 9309 2.3.1.4-d1",
    "RFC 9309 2.3.1.4-d3",
)
@pytest.mark.parametrize("name", NAMES)
def test_row(table: Table, name: str) -> None:
    row = table.rows[name]
    for path, expected in (("/yes", row.yes), ("/no", row.no)):
        assert table.crawl.outcome(row.site.url + path) == expected
        # What the server saw; what was refused has never been asked for.
        assert row.site.targets().count(path) == (expected == "fetched")
    # aiohttp asks again, by itself, where a connection broke.
    assert row.site.targets().count("/robots.txt") <= (2 if name == "reset" else 1)


def test_every_row_is_tested(table: Table) -> None:
    assert list(table.rows) == NAMES


def test_refusals_say_why(table: Table) -> None:
    refused = table.crawl.outcomes
    by_rule = refused[table.rows["200"].site.url + "/no"]
    assert by_rule["reason"] == "rule"
    assert by_rule["line"] == 2
    assert 'by "Disallow: /no" (line 2, group *)' in by_rule["text"]
    hanging = refused[table.rows["hanging"].site.url + "/yes"]
    assert hanging["reason"] == "unreachable"
    assert "no answer within 15 s" in hanging["text"]
    assert "status 503" in refused[table.rows["503 with rules"].site.url + "/yes"]["text"]


def test_no_row_makes_noise_above_a_warning(table: Table) -> None:
    assert [line for line in table.crawl.log if line.startswith(("ERROR", "CRITICAL"))] == []


def test_rows_are_counted(table: Table) -> None:
    stats = table.crawl.stats
    assert stats["robotstxt/request_count"] == str(len(table.rows))
    refused = [o for o in table.crawl.outcomes.values() if o["outcome"] == "refused"]
    assert stats["robotstxt/forbidden"] == str(len(refused))
    assert stats["robotstxt/forbidden/unreachable"] == str(
        len([o for o in refused if o["reason"] == "unreachable"])
    )
    assert stats["robotstxt/html_count"] == "1", table.crawl.our_log()
