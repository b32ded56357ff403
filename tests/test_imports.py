"""Imports point one way, and functions are short."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scrapy_rep
from tests.loading import loaded_by

PACKAGE = Path(scrapy_rep.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
REP = [path for path in MODULES if path.is_relative_to(PACKAGE / "rep")]
NOT_CLI = [path for path in MODULES if not path.is_relative_to(PACKAGE / "cli")]


def _id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def imported(path: Path) -> set[str]:
    """The absolute names of the modules that *path* imports, wherever in it."""
    package = ["scrapy_rep", *path.relative_to(PACKAGE).parent.parts]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            # What is imported from a package may be a module of it.
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def test_modules_are_found() -> None:
    assert {"lines.py", "urls.py", "robotstxt.py"} <= {path.name for path in REP}
    assert PACKAGE / "middleware.py" in NOT_CLI
    assert len(NOT_CLI) < len(MODULES)


@pytest.mark.parametrize("path", MODULES, ids=_id)
def test_functions_are_short_enough_to_see_whole(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = {node.name: (node.end_lineno or 0) + 1 - node.lineno for node in functions}
    assert {name: number for name, number in lines.items() if number > 40} == {}


def test_what_tests_share_stands_in_no_module_of_tests() -> None:
    of_tests = re.compile(r"^(from|import) tests(\.\w+)*\.test_", re.MULTILINE)
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert Path(__file__) in files
    assert [file for file in files if of_tests.search(file.read_text(encoding="utf-8"))] == []


def test_relative_imports_are_resolved() -> None:
    assert "scrapy_rep.rep.dialects" in imported(PACKAGE / "rep" / "parsing" / "lines.py")
    assert "scrapy_rep.rep.parsing.urls" in imported(PACKAGE / "middleware.py")


@pytest.mark.parametrize("path", REP, ids=_id)
def test_rep_imports_the_standard_library_and_itself_alone(path: Path) -> None:
    foreign = {
        name
        for name in imported(path)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not within(name, "scrapy_rep.rep")
    }
    assert foreign == set()


@pytest.mark.parametrize("path", REP, ids=_id)
def test_rep_has_no_clock_no_network_and_no_log(path: Path) -> None:
    banned = {"time", "logging", "socket", "asyncio", "os", "threading", "subprocess"}
    assert {name.partition(".")[0] for name in imported(path)} & banned == set()
    # Of datetime, only what computes with dates.
    tree = ast.parse(path.read_text(encoding="utf-8"))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert read & {"now", "today", "utcnow"} == set()


@pytest.mark.parametrize("path", NOT_CLI, ids=_id)
def test_nothing_but_cli_imports_cli(path: Path) -> None:
    assert [name for name in imported(path) if within(name, "scrapy_rep.cli")] == []


#: What may import what: only what stands before it, and itself.
LAYERS = [
    "rep",
    "exceptions",
    "signals",
    "stores",
    "settings",
    "engine",
    "tokens",
    "parser",
    "observers",
    "parsers",
    "holding",
    "throttling",
    "pages",
    "policies",
    "evidence",
    "middleware",
    "addon",
    "spiders",
    "__init__",
    "cli",
]
#: Except for values that settings are read into.
VALUES = {"settings.py": {"scrapy_rep.observers.report.path"}}


#: The same within rep/.
REP_LAYERS = [
    "text",
    "dialects",
    "parsing",
    "lint",
    "rules",
    "caching",
    "directives",
    "policy",
    "decision",
    "__init__",
]


def layer(path: Path) -> str:
    """The folder or file at the top of the package that *path* is in."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_room_has_its_place() -> None:
    assert sorted(LAYERS) == sorted({layer(path) for path in MODULES})


def test_few_files_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 12


@pytest.mark.parametrize("path", MODULES, ids=_id)
def test_imports_point_one_way(path: Path) -> None:
    allowed = LAYERS[: LAYERS.index(layer(path)) + 1]
    values = VALUES.get(_id(path), set())
    rooms = {
        parts[1]
        for name in imported(path)
        if (parts := name.split("."))[0] == "scrapy_rep"
        and len(parts) > 1
        and parts[1] in LAYERS
        and not any(within(name, value) for value in values)
    }
    assert rooms - set(allowed) == set()


def test_every_part_of_rep_has_its_place() -> None:
    parts = {path.relative_to(PACKAGE / "rep").with_suffix("").parts[0] for path in REP}
    assert sorted(REP_LAYERS) == sorted(parts)


@pytest.mark.parametrize("path", REP, ids=_id)
def test_imports_within_rep_point_one_way(path: Path) -> None:
    here = path.relative_to(PACKAGE / "rep").with_suffix("").parts[0]
    allowed = REP_LAYERS[: REP_LAYERS.index(here) + 1]
    parts = {
        name.split(".")[2]
        for name in imported(path)
        if within(name, "scrapy_rep.rep") and name.split(".")[2:3]
    }
    assert parts & {*REP_LAYERS} <= {*allowed}


_NEVER = {"redis", "jinja2", "sqlite3", "scrapy_rep.stores.sqlite", "twisted.internet.reactor"}
_ENTRY_POINT = """\
from importlib.metadata import entry_points
(point,) = entry_points(group="scrapy.commands", name="robots")
point.load()().short_desc()
"""


def test_the_package_alone_loads_nothing() -> None:
    loaded = loaded_by("import scrapy_rep")
    assert {name for name in loaded if within(name, "scrapy_rep")} == {"scrapy_rep"}
    assert not loaded & {*_NEVER, "scrapy", "twisted"}


def test_any_command_of_scrapy_loads_of_us_what_its_help_needs() -> None:
    loaded = loaded_by(_ENTRY_POINT)
    ours = [name.split(".") for name in loaded if within(name, "scrapy_rep")]
    modules = {parts[-1] for parts in ours if not PACKAGE.parent.joinpath(*parts).is_dir()}
    assert modules == {"command"}
    assert not loaded & _NEVER


def test_our_command_loads_no_store_no_reactor_and_no_template_engine() -> None:
    loaded = loaded_by(f"{_ENTRY_POINT}point.load()().subcommands")
    assert "scrapy_rep.cli.report" in loaded
    assert not loaded & _NEVER


def test_the_middleware_loads_neither_cli_nor_stores_that_nobody_chose() -> None:
    loaded = loaded_by("from scrapy_rep import RepMiddleware")
    assert "scrapy_rep.policies.cache" in loaded
    assert not loaded & {*_NEVER, "scrapy_rep.cli"}


def test_without_page_rules_their_extra_is_not_imported() -> None:
    modules = ("middleware", "spiders", "addon", "cli.page")
    names = ", ".join(f"scrapy_rep.{module}" for module in modules)
    code = f"import sys, {names}; print('http_sf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
