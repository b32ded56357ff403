"""Exceptions of a fetch, as text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy.utils.url import guess_scheme

from scrapy_rep.policies.errors import describe, raised_in


def caught(call: Any, *arguments: Any) -> Exception:
    try:
        call(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing is raised")


def middleware() -> None:
    deeper({})


def deeper(options: dict[str, int]) -> int:
    return options["proxy"]


def test_the_first_code_that_is_not_scrapys_is_named() -> None:
    error = caught(middleware)
    # What it calls is further down the traceback.
    assert error.__traceback__ is not None
    first = error.__traceback__.tb_lineno
    assert raised_in(error) == f"{__name__}.caught, line {first}"
    error.__traceback__ = error.__traceback__.tb_next
    assert (raised_in(error) or "").startswith(f"{__name__}.middleware, line ")
    text = describe(error)
    assert text.startswith(f"KeyError (in {__name__}.middleware, line ")
    assert text.endswith("): 'proxy'")


def test_scrapys_own_code_is_not_named() -> None:
    error = caught(guess_scheme, 3)
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    assert raised_in(error) is None
    assert describe(error) == f"{type(error).__name__}: {error}"


def test_an_exception_that_was_not_raised_has_no_place() -> None:
    assert describe(ValueError("no")) == "ValueError: no"


def test_of_several_failures_each_is_told() -> None:
    error = ValueError("several")
    reasons = [SimpleNamespace(value=OSError("first")), SimpleNamespace(value=OSError("second"))]
    error.reasons = reasons  # type: ignore[attr-defined]
    assert describe(error) == "ValueError: OSError: first; OSError: second"
    outer = RuntimeError("outer")
    outer.__cause__ = error
    assert describe(outer) == "RuntimeError: OSError: first; OSError: second"
