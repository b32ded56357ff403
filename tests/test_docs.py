"""What README and docs say must be so."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import scrapy_rep
from scrapy_rep.settings import DEFAULTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.rst", *sorted(DOCS.glob("*.rst"))]

SETTING = re.compile(
    r"^\.\. setting:: (?P<name>REP_\w+)\n\n(?P=name)\n(?P<underline>-+)\n\n"
    r"Default: ``(?P<default>.+?)``$",
    re.MULTILINE | re.DOTALL,
)

CODE_BLOCK = re.compile(r"^\.\. code(?:-block)?:: python\n\n((?: .*\n|\n)+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_are_true(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert not failed


def test_some_examples_are_run() -> None:
    # A change to the mark-up must not leave the test above without work.
    examples = doctest.DocTestParser().get_examples((DOCS / "dialects.rst").read_text("utf-8"))
    assert len(examples) > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_compile(page: Path) -> None:
    for block in CODE_BLOCK.findall(page.read_text("utf-8")):
        compile(textwrap.dedent(block), str(page), "exec")


def test_the_example_of_second_opinions_writes_what_is_shown() -> None:
    script = DOCS / "examples" / "second_opinion.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    shown = script.with_suffix(".txt").read_text("utf-8")
    port = re.compile(r"(?<=http://)127[0-9.]+:[0-9]+")
    assert port.sub("SITE", done.stdout) == port.sub("SITE", shown)
    assert shown.count('"parser_allowed"') == 3


def test_settings_and_defaults() -> None:
    text = (DOCS / "settings.rst").read_text("utf-8")
    documented = {
        match["name"]: ast.literal_eval(match["default"]) for match in SETTING.finditer(text)
    }
    assert documented == DEFAULTS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_settings_exist(page: Path) -> None:
    # In capitals: "REP_" alone is the prefix.
    assert set(re.findall(r"\bREP_[A-Z_]+", page.read_text("utf-8"))) <= set(DEFAULTS)


def test_api_page_has_every_public_name() -> None:
    text = (DOCS / "api.rst").read_text("utf-8")
    documented = re.findall(r"^\.\. (?:auto\w+|data):: scrapy_rep\.(\w+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(scrapy_rep.__all__)


def test_every_module_is_in_the_architecture() -> None:
    text = (DOCS / "architecture.rst").read_text("utf-8")
    package = ROOT / "scrapy_rep"
    modules = [*package.glob("[a-z]*.py"), *(package / "rep").glob("[a-z]*.py")]
    assert [module.name for module in modules if f"``{module.name}``" not in text] == []


def test_stats_page_has_every_stat() -> None:
    text = (DOCS / "stats.rst").read_text("utf-8")
    for module in (ROOT / "scrapy_rep").glob("*.py"):
        for stat in re.findall(r'"(robotstxt/[a-z_]+)', module.read_text("utf-8")):
            assert f"``{stat}" in text
