"""``scrapy robots sitemaps``, for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.cli.running import from_json, in_a_terminal, robots, run_in_process, type_in
from tests.cli.sites import RULES, serve_rules, serve_status

LONG = "https://example.com/" + "a" * 500


def test_one_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, RULES + f"Sitemap: {LONG}\nSitemap: https://example.com/a.xml".encode())
    assert run_in_process("sitemaps", "-") == 0
    assert capsys.readouterr().out.splitlines() == [
        "https://example.com/a.xml",
        r"/\x1b[31m.xml",
        # Whoever is to fetch it needs all of it.
        LONG,
    ]


def test_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_bytes(b"User-agent: *\nDisallow:\n")
    assert run_in_process("sitemaps", "rules.txt") == 0
    assert capsys.readouterr().out == ""
    assert run_in_process("sitemaps", "--json", "rules.txt") == 0
    assert json.loads(capsys.readouterr().out) == {
        "sitemaps": [],
        "robots_txt": "rules.txt",
        "source": "file",
        "age": None,
        "access": None,
    }


@pytest.mark.once
def test_live(servers: LoopbackServers, tmp_path: Path) -> None:
    site, none, broken = (
        serve_rules(servers),
        serve_status(servers, 404),
        serve_status(servers, 503),
    )
    (value,) = from_json(robots(tmp_path, "sitemaps", "--json", f"{site.url}/page"))
    assert value["sitemaps"] == ["https://example.com/a.xml", "/\x1b[31m.xml"]
    assert (value["source"], value["access"]) == ("fetched", "successful")
    done = robots(tmp_path, "sitemaps", none.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = robots(tmp_path, "sitemaps", broken.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"scrapy robots sitemaps: error: {broken.url}/robots.txt could not be fetched: status 503\n"
    )


@pytest.mark.once
def test_in_a_terminal(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    code, shown = in_a_terminal(tmp_path, "sitemaps", site.url)
    assert code == 0
    assert shown.splitlines()[-2:] == ["https://example.com/a.xml", r"/\x1b[31m.xml"]
