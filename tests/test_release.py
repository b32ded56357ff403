"""What is said of a release in several files is the same."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import scrapy_rep

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def config(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(read(name))
    return parser


def test_the_version_is_the_one_that_changes_are_listed_for() -> None:
    version = config("setup.cfg")["metadata"]["version"]
    assert version == scrapy_rep.__version__
    first = re.search(r"^(\d\S*) \((.+)\)\n=+$", read("CHANGES.rst"), re.MULTILINE)
    assert first is not None
    assert first[1] == version
    assert re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", first[2])


def test_the_oldest_python_is_the_same_everywhere() -> None:
    setup = config("setup.cfg")
    pythons = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    assert setup["options"]["python_requires"] == f">={pythons[0]}"
    assert f"Python {pythons[0]} or newer" in read("README.rst")
    assert f'target-version = "py{pythons[0].replace(".", "")}"' in read("pyproject.toml")
    workflow = set(re.findall(r'python: "(3\.\d+)"', read(".github/workflows/tests.yml")))
    assert workflow == set(pythons)


def test_the_workflow_runs_what_tox_runs() -> None:
    tox = config("tox.ini")
    workflow = read(".github/workflows/tests.yml")
    run = {*re.findall(r"env: ([\w-]+),", workflow), *re.findall(r"tox -e (\w+)", workflow)}
    assert set(tox["tox"]["env_list"].split()) <= run
    assert {f"testenv:{name}" for name in run - {"py"}} <= set(tox.sections())
