"""``scrapy robots page``, for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers, http_response
from tests.cli.running import from_json, robots
from tests.cli.sites import serve
from tests.integration.crawl_process import SETUPS

HTML = ("Content-Type", "text/html")
TDM = (
    b'[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.example/\\u001b[2Jpolicy"}]'
)
ROBOTS = b"""\
User-agent: *
Content-Signal: ai-input=no
Allow: /
User-agent: other
Disallow: /page
"""


def site(servers: LoopbackServers, status: int = 200) -> str:
    """The URL of a page with rules of each kind."""
    page = http_response(
        status,
        b'<head><meta name="robots" content="noindex"><meta name="other" content="noai"></head>',
        [HTML, ("X-Robots-Tag", "max-image-preview: large"), ("Content-Usage", "train-ai=y")],
    )
    answers = {
        "/robots.txt": http_response(200, ROBOTS, [("Content-Type", "text/plain")]),
        "/.well-known/tdmrep.json": http_response(200, TDM, [("Content-Type", "text/html")]),
        "/moved": http_response(301, b"", [("Location", "/page")]),
        "/page": page,
    }
    return f"{serve(servers, answers).url}/page"


def test_each_use_with_the_statement_that_decides(
    servers: LoopbackServers, tmp_path: Path, loop: str
) -> None:
    url = site(servers)
    words = [f"-s{name}={value}" for name, value in SETUPS[loop].items()]
    done = robots(tmp_path, "page", url, "-sREP_STORE=memory", *words)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        url,
        "  status 200",
        "",
        "use              answer   by",
        "---------------  -------  --",
        'search           refused  <meta name="robots">: noindex',
        'snippet          refused  <meta name="robots">: noindex',
        'images           refused  <meta name="robots">: noindex',
        "archive          allowed  -",
        "ai-input         refused  Content-Signal: ai-input=no (line 2 of robots.txt)",
        "ai-train         refused  tdmrep.json, rule 1 for /: tdm-reservation: 1",
        "ai-train-images  refused  tdmrep.json, rule 1 for /: tdm-reservation: 1",
        "tdm              refused  tdmrep.json, rule 1 for /: tdm-reservation: 1",
        "follow           allowed  -",
        "",
        r"TDM policy: https://a.example/\x1b[2Jpolicy",
    ]


def test_json(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    url = site(servers)
    moved = url.replace("/page", "/moved")
    words = [f"-s{name}={value}" for name, value in SETUPS[loop].items()]
    done = robots(tmp_path, "page", "--json", moved, "-sREP_STORE=memory", *words, "--nolog")
    (value,) = from_json(done)
    assert (value["url"], value["status"], value["robots_txt"]) == (url, 200, "allowed")
    assert value["uses"]["archive"] == {"allowed": True, "by": None}
    assert value["uses"]["search"] == {"allowed": False, "by": '<meta name="robots">: noindex'}
    assert "Content-Usage: train-ai=y" in value["statements"]
    assert value["tdm_policy"] == "https://a.example/\x1b[2Jpolicy"


@pytest.mark.parametrize(
    ("purposes", "exit_code"),
    [("", 1), ("archive", 0), ("archive,search", 1), ("train-ai", 1), ("ai-input", 1)],
)
def test_the_exit_code_is_about_the_purposes(
    servers: LoopbackServers, tmp_path: Path, purposes: str, exit_code: int
) -> None:
    words = [f"-sREP_PURPOSES={purposes}", "-sREP_STORE=memory"]
    assert robots(tmp_path, "page", site(servers), *words).returncode == exit_code


def test_a_page_that_robots_txt_refuses_is_not_fetched(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    done = robots(tmp_path, "page", site(servers), "--agent", "other", "-sREP_STORE=memory")
    assert done.returncode == 1
    assert 'not fetched: disallowed by "Disallow: /page" (line 5, group other)' in done.stdout


def test_an_error_is_not_a_page(servers: LoopbackServers, tmp_path: Path) -> None:
    done = robots(tmp_path, "page", site(servers, 404), "-sREP_STORE=memory")
    assert done.returncode == 2
    assert "status 404" in done.stdout
    assert "not a page" in done.stdout


def test_a_page_that_cannot_be_fetched(tmp_path: Path) -> None:
    settings = ["-sREP_STORE=memory", "-sRETRY_ENABLED=0", "-sREP_UNREACHABLE=allow"]
    done = robots(tmp_path, "page", "http://127.0.0.1:1/", *settings)
    assert done.returncode == 2
    assert done.stderr.startswith("scrapy robots page: error: http://127.0.0.1:1/: ")
