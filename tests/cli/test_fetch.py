"""``scrapy robots fetch``, for real."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import Asked, LoopbackServers, http_response
from tests.cli.running import command, from_json, in_a_terminal, robots
from tests.cli.sites import HEADERS, RULES, serve, serve_rules, serve_status
from tests.cli.stored import DEFAULT, copied, fill
from tests.integration.crawl_process import SETUPS


def test_every_hop(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    rules = serve(servers, {"/rules": http_response(200, RULES, HEADERS)})
    site = serve(
        servers,
        {
            "/robots.txt": http_response(301, headers=[("Location", "/moved")]),
            "/moved": http_response(302, headers=[("Location", f"{rules.url}/rules")]),
        },
    )
    words = [f"-s{name}={value}" for name, value in SETUPS[loop].items()]
    done = robots(tmp_path, "fetch", "--json", f"{site.url}/page", *words, "--nolog")
    (value,) = from_json(done)
    assert done.returncode == 0
    hops = value.pop("hops")
    assert all(hop.pop("seconds") >= 0 for hop in hops)
    assert hops == [
        {
            "url": f"{site.url}/robots.txt",
            "status": 301,
            "location": "/moved",
            "content_type": None,
            "bytes": 0,
        },
        {
            "url": f"{site.url}/moved",
            "status": 302,
            "location": f"{rules.url}/rules",
            "content_type": None,
            "bytes": 0,
        },
        {
            "url": f"{rules.url}/rules",
            "status": 200,
            "location": None,
            "content_type": "text/plain",
            "bytes": len(RULES),
        },
    ]
    assert value.pop("user_agent").startswith("Scrapy/")
    assert value == {
        "origin": site.url,
        "access": "successful",
        "meaning": "pages are allowed or refused by its rules",
        "status": 200,
        "detail": "status 200",
        "url": f"{rules.url}/rules",
        "headers": [["cache-control", "max-age=7200"], ["etag", '"v1"']],
        "validators": {"If-None-Match": '"v1"'},
        "lifetime": 7200,
        "size": len(RULES),
        "cut": False,
        "encoding": "UTF-8",
        "findings": {"error": 0, "warning": 2, "note": 0},
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_in_a_pipe(servers: LoopbackServers, tmp_path: Path) -> None:
    body = b"User-agent: *\nDisallow: /\xe9\n"
    headers = [("Last-Modified", "\x1b[31m"), ("ETag", '"\x1b"')]
    site = serve(servers, {"/robots.txt": http_response(200, body, headers)})
    done = robots(tmp_path, "fetch", site.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for line in (
        "  access      successful",
        "  lifetime    24 h",
        f"  size        {len(body)} bytes",
        "  encoding    not UTF-8; bytes are compared as they are",
        "  findings    0 errors, 1 warning, 0 notes",
    ):
        assert line in done.stdout.splitlines()
    assert "validator" not in done.stdout


@pytest.mark.once
def test_what_an_answer_means(servers: LoopbackServers, tmp_path: Path) -> None:
    none, broken, secret = (serve_status(servers, status) for status in (404, 500, 403))
    done = robots(tmp_path, "fetch", none.url)
    assert (done.returncode, "all pages are allowed" in done.stdout) == (0, True)
    done = robots(tmp_path, "fetch", broken.url)
    assert (done.returncode, "all pages are refused" in done.stdout) == (2, True)
    assert "lifetime" not in done.stdout
    done = robots(tmp_path, "fetch", "--dialect", "koster1996", secret.url)
    assert (done.returncode, "  access      disallowed" in done.stdout) == (1, True)
    (value,) = from_json(robots(tmp_path, "fetch", "--json", none.url))
    assert (value["status"], value["size"], value["encoding"]) == (404, None, None)
    done = robots(tmp_path, "fetch", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert "  hop 1       -    http://127.0.0.1:9/robots.txt  (no answer)" in done.stdout


@pytest.mark.once
def test_the_reason_of_a_failure_is_in_words(servers: LoopbackServers, tmp_path: Path) -> None:
    async def hang_up(asked: Asked, writer: asyncio.StreamWriter) -> None:
        pass

    (value,) = from_json(robots(tmp_path, "fetch", "--json", servers.serve(hang_up).url))
    assert value["access"] == "unreachable"
    assert "clos" in value["detail"]
    # How Python writes an object.
    assert "<" not in value["detail"]


@pytest.mark.once
def test_a_redirect_to_another_encoding(servers: LoopbackServers, tmp_path: Path) -> None:
    moved = http_response(301, headers=[("Location", "/moved")])
    body = http_response(200, RULES.decode().encode("utf-16"))
    site = serve(servers, {"/robots.txt": moved, "/moved": body})
    done = robots(tmp_path, "fetch", site.url)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "              to /moved" in lines
    assert "  encoding    UTF-16, by its byte order mark" in lines


@pytest.mark.once
def test_the_store_is_neither_read_nor_changed(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    headers = (("etag", '"v0"'),)
    fill(tmp_path / DEFAULT, copied(site.url, time.time(), b"# stored", headers=headers))
    before = (tmp_path / DEFAULT).read_bytes()
    (value,) = from_json(robots(tmp_path, "fetch", "--json", site.url))
    assert value["size"] == len(RULES)
    assert "if-none-match" not in site.asked[0].headers
    assert (tmp_path / DEFAULT).read_bytes() == before
    assert [path.name for path in (tmp_path / DEFAULT).parent.iterdir()] == [DEFAULT.name]


@pytest.mark.once
def test_the_body(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    done = subprocess.run(
        command("fetch", "--body", site.url), cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, RULES, b"")
    code, shown = in_a_terminal(tmp_path, "fetch", "--body", site.url)
    assert code == 2
    assert "untrusted bytes: not to a terminal" in shown


@pytest.mark.once
def test_in_a_terminal(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    code, shown = in_a_terminal(tmp_path, "fetch", site.url, NO_COLOR="")
    assert code == 0
    assert "  access      \x1b[32msuccessful\x1b[0m\n" in shown
    assert "\x1b" not in in_a_terminal(tmp_path, "fetch", site.url, NO_COLOR="1")[1]


@pytest.mark.once
def test_the_command_line_decides_what_is_logged(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    assert robots(tmp_path, "fetch", site.url, "-L", "INFO").stderr.count("INFO") > 1
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = some_settings\n")
    (tmp_path / "some_settings.py").write_text("LOG_LEVEL = 'INFO'\n")
    assert robots(tmp_path, "fetch", site.url).stderr == ""


@pytest.mark.once
def test_a_crawl_that_cannot_start(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    words = ["-s", 'DOWNLOADER_MIDDLEWARES={"no.such.Middleware": 1}']
    done = robots(tmp_path, "fetch", site.url, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "scrapy robots fetch: error: the crawl that was to fetch it failed: "
        "ModuleNotFoundError: No module named 'no'\n"
    )
