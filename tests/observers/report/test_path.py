"""Where a report goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.observers.report.path import parse_path


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("robots.html", "robots.html"),
        (Path("a", "robots.html"), "a/robots.html"),
        ("/var/%(name)s/%(time)s.html", "/var/books/2027-01-15T08-00-00.html"),
        ("100%%.html", "100%.html"),
    ],
)
def test_a_path(value: Any, path: str) -> None:
    assert parse_path(value).path("books", 1_800_000_000.0) == Path(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "accepted: the path of a file"),
        (b"robots.html", "accepted: the path of a file"),
        ("robots\0.html", "accepted: the path of a file"),
        ("s3://bucket/robots.html", "no URL"),
        ("%(nam)s.html", "KeyError: 'nam'"),
        ("100%.html", "ValueError: "),
        ("%(name)d.html", "TypeError: "),
        ("reports/", "names no file"),
        (".", "names no file"),
    ],
)
def test_what_is_no_path(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match="accepted: the path of a file") as raised:
        parse_path(value)
    assert message in str(raised.value)
