"""A robots.txt as it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_rep.observers.report import file as file_module
from scrapy_rep.observers.report.file import read_file
from scrapy_rep.observers.report.model import FileReport
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.lint.findings import Severity
from scrapy_rep.settings import RepSettings
from tests.observers.report.pages import RULES, SETTINGS

URL = "https://a.example/robots.txt"


def read(body: bytes, *, cut: bool = False, settings: RepSettings = SETTINGS) -> FileReport:
    return read_file(FetchResult(URL, 200, body, cut=cut), settings)


def test_lines_findings_and_how_often_they_decided() -> None:
    decided = {(2, False): 7, (3, True): 9, (3, False): 1}
    file = read_file(FetchResult(URL, 200, RULES), SETTINGS, decided)
    assert [line.text for line in file.lines] == RULES.decode().splitlines()
    assert [(line.allowed, line.refused) for line in file.lines] == [
        (0, 0),
        (0, 7),
        (9, 1),
        (0, 0),
        (0, 0),
    ]
    assert [[severity for severity, _ in line.findings] for line in file.lines] == [
        [],
        [],
        [],
        [],
        [Severity.WARNING],
    ]
    assert "misspelling" in file.lines[4].findings[0][1]
    assert (file.errors, file.warnings, file.lines_left_out) == (0, 1, 0)


def test_it_is_read_as_the_crawl_reads_it() -> None:
    settings = RepSettings.read(Settings({"REP_DIALECT": "koster1994"}))
    body = b"User-agent: *\nAllow: /a\n"
    assert read(body).lines[1].findings == ()
    assert read(body, settings=settings).lines[1].findings != ()


@pytest.mark.parametrize("cut", [True, False])
def test_a_file_that_was_cut(cut: bool) -> None:
    file = read(b"User-agent: *\nDisallow: /priv", cut=cut)
    assert [line.text for line in file.lines] == ["User-agent: *", "Disallow: /priv"][: 2 - cut]
    assert file.errors == cut


def test_no_bytes() -> None:
    assert read(b"") == FileReport((), 0, 0, 0)
    # Something is wrong with it, though it has no line.
    assert len(read(b"Disallow: /", cut=True).lines) == 1


def test_a_file_of_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_module, "MAX_LINES", 3)
    file = read(b"User-agent: *\n" + b"Disallow: no\n" * 5)
    assert len(file.lines) == 3
    assert file.lines_left_out == 3
    assert file.errors == 5


@given(st.binary(max_size=200))
def test_any_bytes_are_safe_to_show(body: bytes) -> None:
    for line in read(body).lines:
        assert line.text == "" or line.text.isprintable()
        for _, sentence in line.findings:
            assert sentence.isprintable()
