"""What a report knows of the one before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scrapy_rep.observers.report.model import PreviousReport
from scrapy_rep.observers.report.page import write_page
from scrapy_rep.observers.report.path import ReportPath
from scrapy_rep.observers.report.previous import read_previous
from tests.observers.report.pages import HOSTILE, NOON, crawl_report, origin_report

SUBJECT = "Crawl of the spider books"


def test_a_page_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "robots.html"
    write_page(path, crawl_report(origin_report("https://a.example", digest="abc")))
    assert read_previous(path, SUBJECT) == PreviousReport(
        NOON + 3600, {"https://a.example": ("successful", "abc")}
    )
    # A page about something else is not the previous one.
    assert read_previous(path, "Store robots.sqlite") is None


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_read_back_whatever_they_are(tmp_path: Path, text: str) -> None:
    path = tmp_path / "robots.html"
    write_page(path, crawl_report(origin_report(text)))
    previous = read_previous(path, SUBJECT)
    assert previous is not None
    ((name, _),) = previous.origins.items()
    assert name.isprintable()


LINE = '<script type="application/json" id="snapshot">{}</script>\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!doctype html>\n",
        LINE.format("{"),
        LINE.format("[]"),
        LINE.format("null"),
        LINE.format('{"subject": "Crawl of the spider books"}'),
        LINE.format('{"subject": "Crawl of the spider books", "made_at": 1, "origins": []}'),
        LINE.format('{"subject": "Crawl of the spider books", "made_at": 1, "origins": {"a": 3}}'),
        LINE.format('{"subject": "Crawl of the spider books", "made_at": [], "origins": {}}'),
        LINE.format("[" * 100_000),
    ],
)
def test_anything_else_is_no_previous_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "robots.html"
    path.write_text(text)
    assert read_previous(path, SUBJECT) is None


def test_no_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    assert read_previous(None, SUBJECT) is None
    assert read_previous(tmp_path / "missing.html", SUBJECT) is None
    (tmp_path / "robots.html").write_bytes(b"\xff\xfe")
    assert read_previous(tmp_path / "robots.html", SUBJECT) is None


# -- which file that is ------------------------------------------------------------------------


def test_the_file_that_is_replaced(tmp_path: Path) -> None:
    path = ReportPath(str(tmp_path / "[a] %(name)s.html"))
    assert path.previous("books") is None
    path.path("books", NOON).touch()
    path.path("films", NOON).touch()
    assert path.previous("books") == tmp_path / "[a] books.html"


def test_the_newest_of_those_with_the_time_in_their_names(tmp_path: Path) -> None:
    path = ReportPath(str(tmp_path / "%(name)s-%(time)s.html"))
    for name, began in (("books", NOON), ("books", NOON + 60), ("books-new", NOON + 120)):
        path.path(name, began).touch()
        os.utime(path.path(name, began), (NOON, NOON))
    assert path.previous("books") == path.path("books", NOON + 60)
