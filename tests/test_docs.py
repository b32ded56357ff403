"""What README and docs say must be so."""

from __future__ import annotations

import asyncio
import doctest
import json
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

import scrapy_rep
from scrapy_rep import RepMiddleware
from scrapy_rep.cli.command import RobotsCommand
from scrapy_rep.cli.servers import Asked, LoopbackServers, http_response
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import DEFAULTS, RepSettings, downloader_middlewares
from tests.cli.stored import DEFAULT, copied, failing, fill
from tests.consoles import Reader
from tests.stores.examples import DAY, HOUR

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.rst", *sorted(DOCS.rglob("*.rst"))]

# What is said of a setting is read from the code when the page is made.
SETTING = re.compile(
    r"^\.\. setting:: (?P<name>REP_\w+)\n\n(?P=name)\n-+\n\n"
    r"\.\. default-and-accepted:: (?P=name)$",
    re.MULTILINE,
)

# What becomes of it is shown in docs/troubleshooting.rst.
A_MISSPELT_SETTING = "REP_MAX_SISE"

CODE_BLOCK = re.compile(r"^\.\. code(?:-block)?:: python\n\n((?: .*\n|\n)+)", re.MULTILINE)
PYTHON_BLOCKS = [
    pytest.param(textwrap.dedent(block), id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(CODE_BLOCK.findall(page.read_text("utf-8")), 1)
]

# Pages whose commands are typed; those of one list one after the other, in one folder.
TYPED = [
    ["README.rst"],
    ["docs/cache.rst"],
    ["docs/cli.rst"],
    ["docs/tutorial.rst", "docs/troubleshooting.rst", "docs/comparison.rst", "docs/report.rst"],
]
# Run with other numbers in tests/integration/test_fleet.py.
TYPED_ELSEWHERE = ["docs/deployment.rst"]
PROMPT = re.compile(r"^ +\$ ", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_are_true(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert not failed


def test_some_examples_are_run() -> None:
    # A change to the mark-up must not leave the test above without work.
    examples = doctest.DocTestParser().get_examples((DOCS / "dialects.rst").read_text("utf-8"))
    assert len(examples) > 5


@pytest.mark.once
@pytest.mark.parametrize("pages", TYPED, ids=lambda pages: pages[0])
def test_what_is_typed_writes_what_is_shown(pages: list[str], tmp_path: Path) -> None:
    if "docs/cache.rst" in pages:
        fill(tmp_path / DEFAULT, *known_to_the_page_about_the_store(time.time()))
    with Reader(tmp_path) as reader:
        for page in pages:
            prompts = PROMPT.findall((ROOT / page).read_text("utf-8"))
            assert reader.read(ROOT / page) == len(prompts) > 0


def known_to_the_page_about_the_store(now: float) -> list[CacheEntry]:
    """An origin for each freshness."""
    body = b"User-agent: *\nDisallow: /private/\nDisallow: /\x1b[31mred\n"
    an_hour = (("cache-control", "max-age=3600"), ("etag", '"v1"'))
    old = copied("https://outage.example", now - 5 * DAY, body, headers=an_hour)
    refused, given_up = (
        CacheEntry(Origin.of(f"https://{name}.example")) for name in ("refused", "givenup")
    )
    return [
        copied("https://due.example", now - HOUR + 180, body, headers=an_hour),
        copied("https://example.com", now - HOUR / 6, body, headers=an_hour),
        failing(given_up, now - 31 * DAY, now - 30, 800),
        copied("http://none.example", now - 60, b"", 404),
        failing(old, now - 3 * DAY, now - 20, 30),
        failing(refused, now - 15 * 60, now - 20, 4),
        copied("https://stale.example", now - 2 * DAY, body),
    ]


def test_no_page_has_commands_that_nobody_types() -> None:
    with_commands = [page for page in PAGES if PROMPT.search(page.read_text("utf-8"))]
    typed = [ROOT / page for pages in [*TYPED, TYPED_ELSEWHERE] for page in pages]
    assert sorted(with_commands) == sorted(typed)


async def a_small_site(asked: Asked, writer: asyncio.StreamWriter) -> None:
    site = f"http://{asked.headers['host']}"
    bodies = {
        "/robots.txt": f"User-agent: *\nDisallow: /search\nSitemap: {site}/sitemap.xml\n",
        "/sitemap.xml": f"<urlset><url><loc>{site}/page</loc></url></urlset>",
    }
    body = bodies.get(asked.target, '<a href="/page">a page</a> <a href="/search">refused</a>')
    writer.write(http_response(200, body.encode(), [("Content-Type", "text/html")]))


@pytest.mark.once
@pytest.mark.parametrize("block", PYTHON_BLOCKS)
def test_code_blocks_do_what_they_are_for(block: str, tmp_path: Path) -> None:
    if "class " in block:
        crawl(block, tmp_path)
        return
    values: dict[str, Any] = {}
    exec(block, values)
    written = {name: value for name, value in values.items() if name.isupper()}
    settings = get_crawler(settings_dict=written).settings
    RepSettings.read(settings)
    enables = not written.keys().isdisjoint({"ADDONS", "DOWNLOADER_MIDDLEWARES"})
    assert (RepMiddleware in downloader_middlewares(settings)) == enables


def crawl(spider: str, folder: Path) -> None:
    """Run *spider*, which must write items, and nothing into the log."""
    file, items = folder / "spider.py", folder / "items.jsonl"
    addons = json.dumps({"scrapy_rep.Addon": 500})
    options = ["-L", "WARNING", "-O", str(items), "-s", f"ADDONS={addons}"]
    with LoopbackServers() as servers:
        url = servers.serve(a_small_site).url
        file.write_text(spider.replace("https://example.com", url), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", "runspider", file, *options],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stderr == ""
    assert items.read_text("utf-8")


def test_the_example_of_second_opinions_writes_what_is_shown() -> None:
    script = DOCS / "examples" / "second_opinion.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    shown = script.with_suffix(".txt").read_text("utf-8")
    port = re.compile(r"(?<=http://)127[0-9.]+:[0-9]+")
    assert port.sub("SITE", done.stdout) == port.sub("SITE", shown)
    assert shown.count('"parser_allowed"') == 3


def test_settings_page_has_every_setting_once() -> None:
    text = (DOCS / "settings.rst").read_text("utf-8")
    assert sorted(SETTING.findall(text)) == sorted(DEFAULTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_settings_exist(page: Path) -> None:
    # In capitals: "REP_" alone is the prefix.
    named = set(re.findall(r"\bREP_[A-Z_]+", page.read_text("utf-8")))
    assert named - {A_MISSPELT_SETTING} <= set(DEFAULTS)


def test_api_page_has_every_public_name() -> None:
    text = (DOCS / "api.rst").read_text("utf-8")
    documented = re.findall(r"^\.\. (?:auto\w+|data):: scrapy_rep\.(\w+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(scrapy_rep.__all__)


def test_every_module_is_in_the_architecture() -> None:
    text = (DOCS / "architecture.rst").read_text("utf-8")
    package = ROOT / "scrapy_rep"
    modules = [*package.glob("[a-z]*.py"), *(package / "rep").rglob("[a-z]*.py")]
    assert [module.name for module in modules if f"``{module.name}``" not in text] == []


def test_command_line_page_has_every_subcommand_in_order() -> None:
    text = (DOCS / "cli.rst").read_text("utf-8")
    documented = re.findall(r"^   \* - ``(\w+)", text, re.MULTILINE)
    assert documented[0] == "scrapy"
    assert documented[1:] == [each.name for each in RobotsCommand().subcommands]


def test_decision_page_has_the_steps_of_the_diagram() -> None:
    text = (DOCS / "decision.rst").read_text("utf-8")
    listed = re.findall(r"^#\. \*\*", text, re.MULTILINE)
    # Not imported: Sphinx is in the environment of the documentation only.
    diagram = (DOCS / "_ext" / "decision_diagram.py").read_text("utf-8")
    assert len(listed) == diagram.count("yield Step(") > 0


def test_stats_page_has_every_stat() -> None:
    text = (DOCS / "stats.rst").read_text("utf-8")
    for module in (ROOT / "scrapy_rep").rglob("*.py"):
        for stat in re.findall(r'"(robotstxt/[a-z_]+)', module.read_text("utf-8")):
            assert f"``{stat}" in text
