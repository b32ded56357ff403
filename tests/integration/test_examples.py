"""The spiders of examples/, run as their first lines say, against sites on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, hang, http_response

EXAMPLES = Path(__file__).parents[2] / "examples"
HTML = [("Content-Type", "text/html")]
LINKS = "".join(f'<a href="/page/{number}">{number}</a>' for number in range(20))

pytestmark = pytest.mark.once


def site(robots: str, pages: dict[str, str]) -> Answer:
    """Answers with *robots* and *pages*, by path; ``SITE`` in them stands for its URL."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        body = {"/robots.txt": robots, **pages}.get(asked.target, "<p>a page</p>")
        body = body.replace("SITE", f"http://{asked.headers['host']}")
        writer.write(http_response(200, body.encode(), HTML))

    return answer


def run(folder: Path, example: str, *options: str) -> list[dict[str, Any]]:
    """The items of a crawl with *example* in *folder*, sorted by URL."""
    items = folder / "items.jsonl"
    command = [sys.executable, "-m", "scrapy", "runspider", str(EXAMPLES / example)]
    done = subprocess.run(
        [*command, *options, "-O", str(items), "-s", "TELNETCONSOLE_ENABLED=False"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ERROR" not in done.stderr
    found = [json.loads(line) for line in items.read_text("utf-8").splitlines()]
    return sorted(found, key=lambda item: str(item["url"]))


def test_broad_crawl(tmp_path: Path) -> None:
    with LoopbackServers() as servers:
        healthy = [
            servers.serve(site("User-agent: *\nDisallow: /page/1\n", {"/": LINKS}))
            for _ in range(3)
        ]
        dead = servers.serve(hang)
        (tmp_path / "hosts.txt").write_text(
            "".join(f"{each.url}/\n" for each in [dead, *healthy]), "utf-8"
        )
        found = run(tmp_path, "broad_crawl.py", "-s", "REP_FETCH_TIMEOUT=10")
        targets = [each.targets() for each in healthy]
    # Of the four links that are followed, the second one is refused.
    pages = {"/", "/page/0", "/page/2", "/page/3"}
    assert [item["url"] for item in found] == sorted(
        each.url + path for each in healthy for path in pages
    )
    assert all(set(asked) == {"/robots.txt", *pages} for asked in targets)
    assert dead.targets() == ["/robots.txt"]


def test_news(tmp_path: Path) -> None:
    today = datetime.now(timezone.utc).date()
    entries = "".join(
        f"<url><loc>SITE/{name}</loc><lastmod>{today - timedelta(days=age)}</lastmod></url>"
        for name, age in (("new", 0), ("old", 30), ("private/new", 0))
    )
    robots = (
        "User-agent: *\nDisallow: /\n\n"
        "User-agent: ExampleBot\nDisallow: /private/\n\nSitemap: SITE/sitemap.xml\n"
    )
    with LoopbackServers() as servers:
        pages = {"/sitemap.xml": f"<urlset>{entries}</urlset>", "/new": "<title>News</title>"}
        news = servers.serve(site(robots, pages))
        found = run(tmp_path, "news.py", "-a", f"sites={news.url}", "-s", "DOWNLOAD_DELAY=0")
        targets = news.targets()
    assert found == [{"url": f"{news.url}/new", "title": "News"}]
    assert targets == ["/robots.txt", "/sitemap.xml", "/new"]


def test_training_data(tmp_path: Path) -> None:
    refuses = "User-agent: *\nContent-Signal: search=yes, ai-train=no\n"
    with LoopbackServers() as servers:
        closed = servers.serve(site(refuses, {}))
        start = f'<body><p>text</p><a href="{closed.url}/">other</a></body>'
        open_ = servers.serve(site("User-agent: *\nContent-Signal: ai-train=yes\n", {"/": start}))
        found = run(tmp_path, "training_data.py", "-a", f"urls={open_.url}/")
    by_url = {item["url"]: item for item in found}
    assert by_url[f"{open_.url}/"]["text"].split() == ["text", "other"]
    assert by_url[f"{closed.url}/"]["reason"] == "purpose"
    assert "ai-train=no" in by_url[f"{closed.url}/"]["because"]
    assert closed.targets() == ["/robots.txt"]
    assert (tmp_path / "training_data.html").exists()
