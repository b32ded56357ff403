"""The public names."""

from __future__ import annotations

import ast
import pickle
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from scrapy.utils.misc import load_object

import scrapy_rep
from scrapy_rep import Reason, RepMiddleware, Verdict


def imports_for_type_checkers() -> dict[str, str]:
    """Names and the modules that they are imported from."""
    tree = ast.parse(Path(scrapy_rep.__file__).read_text(encoding="utf-8"))
    return {
        alias.name: node.module or ""
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_are_told_what_python_does() -> None:
    assert imports_for_type_checkers() == scrapy_rep._MODULES  # noqa: SLF001


def test_all_lists_what_can_be_imported() -> None:
    assert sorted(scrapy_rep.__all__) == sorted(imports_for_type_checkers())
    assert len(set(scrapy_rep.__all__)) == len(scrapy_rep.__all__)


@pytest.mark.parametrize(("name", "module"), imports_for_type_checkers().items())
def test_a_name_is_that_of_its_module(name: str, module: str) -> None:
    value = getattr(scrapy_rep, name)
    assert value is getattr(import_module(module), name)
    # Not of one that only imports it.
    assert getattr(value, "__module__", module) == module


def test_star_imports_all() -> None:
    names: dict[str, object] = {}
    exec("from scrapy_rep import *", names)
    assert set(scrapy_rep.__all__) <= set(names)


def test_dir_lists_what_is_not_imported_yet() -> None:
    assert {*scrapy_rep.__all__, "__version__", "__all__"} <= set(dir(scrapy_rep))


def test_a_misspelt_name_is_told_as_everywhere() -> None:
    with pytest.raises(AttributeError, match="module 'scrapy_rep' has no attribute 'RobotTxt'"):
        _ = scrapy_rep.RobotTxt  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'RobotTxt' from 'scrapy_rep'"):
        exec("from scrapy_rep import RobotTxt")


def test_the_version_is_that_of_the_distribution() -> None:
    assert scrapy_rep.__version__ == version("scrapy-rep")


def test_scrapy_loads_a_component_by_its_public_path() -> None:
    assert load_object("scrapy_rep.RepMiddleware") is RepMiddleware


def test_values_can_be_pickled() -> None:
    verdict = Verdict(True, Reason.NO_GROUP)
    assert pickle.loads(pickle.dumps(verdict)) == verdict
