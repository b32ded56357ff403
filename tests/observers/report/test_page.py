"""The page of a report: what is in it, and what never is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.observers.report import page as page_module
from scrapy_rep.observers.report.file import read_file
from scrapy_rep.observers.report.model import CrawlReport, Decisions, OriginReport, RefusedURL
from scrapy_rep.observers.report.page import render, write_page
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.text import printable
from tests.observers.report.pages import (
    HOSTILE,
    NOON,
    RULES,
    SETTINGS,
    crawl_report,
    origin_report,
    page_of,
    read,
)

ONE = "https://one.example"
TWO = "https://two.example"


def test_a_crawl() -> None:
    page = page_of(
        crawl_report(
            origin_report(ONE),
            origin_report(
                TWO,
                access="unreachable",
                status=None,
                file=None,
                event_count=40,
                decisions=Decisions(0, 9),
                disagreement_count=0,
            ),
            notes=("3 requests are in the totals only.",),
        )
    )
    # The one that refused most is the first.
    assert list(page.rows) == [TWO, ONE]
    assert page.rows[ONE] == {
        "origin": ONE,
        "access": "successful",
        "status": 200,
        "allowed": 1_300,
        "refused": 7,
        "fetches": 2,
        "lines": 5,
        "errors": 0,
        "warnings": 1,
        "disagreements": 1,
    }
    assert page.rows[TWO]["status"] is None
    assert page.rows[TWO]["lines"] is None
    details = page.of(ONE)
    assert details["details"][0] == ["URL", f"{ONE}/robots.txt"]
    assert details["lines"][:3] == [
        "User-agent: *",
        ["Disallow: /private/", [], 0, 7],
        ["Allow: /private/open", [], 1200, 0],
    ]
    assert details["lines"][4][1][0][0] == "warning"
    assert details["refused"] == [[f"{ONE}/private/1", 2, "Disallow: /private/"]]
    assert details["events"] == [
        ["2027-01-15 08:00:00 UTC", "status 200", "0.25 s"],
        ["2027-01-15 08:01:00 UTC", "status 304", "0.01 s"],
    ]
    assert details["disagreements"] == [[f"{ONE}/typo", "protego", False, True, 5, "typo"]]
    assert page.of(TWO)["eventCount"] == 40
    for text in (
        "Crawl of the spider books",
        "2027-01-15 08:00:00 to 2027-01-15 09:00:00 UTC",
        "3 requests are in the totals only.",
        "A bar chart: successful 1, unreachable 1.",
        "A bar chart: rule 7.",
    ):
        assert text in page.text


def test_of_a_store_only_what_it_knows_is_shown() -> None:
    stored = origin_report(
        ONE,
        freshness="stale",
        access="unknown",
        file=read_file(FetchResult(ONE, 200, RULES), SETTINGS),
        decisions=None,
        refused_urls=(),
        disagreements=(),
        disagreement_count=0,
    )
    page = page_of(
        CrawlReport(subject="Store /a.sqlite", made_at=NOON, origins=(stored,)),
    )
    assert page.columns == [
        "origin",
        "access",
        "freshness",
        "status",
        "lines",
        "errors",
        "warnings",
    ]
    assert page.rows[ONE]["freshness"] == "stale"
    for word in ("refused", "allowed", "by reason", "disagreements"):
        assert word not in page.text.lower()


def test_a_crawl_of_nothing() -> None:
    page = page_of(crawl_report(decisions=None, refusals=()))
    assert page.rows == {}
    assert page.text.count("None.") == 1


def test_it_names_nothing_outside_itself() -> None:
    page = page_of(crawl_report(origin_report(ONE)))
    links = {value for name, value in page.attributes if name in ("src", "href", "action")}
    assert links == {"data:,", "#origin-0"}
    contents = [value or "" for name, value in page.attributes if name == "content"]
    (policy,) = [content for content in contents if "src" in content]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def without_texts(origin: OriginReport) -> OriginReport:
    """The same with harmless texts in its file."""
    assert origin.file is not None
    lines = (
        replace(line, text="x", findings=tuple((severity, "x") for severity, _ in line.findings))
        for line in origin.file.lines
    )
    return replace(origin, file=replace(origin.file, lines=tuple(lines)))


NOTED = page_of(crawl_report(origin_report(ONE), notes=("a note",)))


@given(st.one_of(st.sampled_from([text.encode() for text in HOSTILE]), st.binary(max_size=300)))
def test_no_bytes_of_a_file_become_markup(body: bytes) -> None:
    origin = origin_report(ONE, body)
    page = page_of(crawl_report(origin))
    harmless = page_of(crawl_report(without_texts(origin)))
    assert page.tags == harmless.tags
    assert page.attributes == harmless.attributes
    lines = page.of(ONE)["lines"]
    text = "".join(line if isinstance(line, str) else line[0] for line in lines)
    assert text.isprintable()


@given(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=100)))
def test_no_text_becomes_markup(text: str) -> None:
    text = printable(text)
    origin = origin_report(
        text,
        details=((text, text),),
        reasons=(text,),
        refused_urls=(RefusedURL(text, 1, text),),
        notes=(text,),
    )
    page = page_of(crawl_report(origin, subject=text, notes=(text,)))
    assert page.tags == NOTED.tags
    assert list(page.rows) == [text]
    assert page.of(text)["notes"] == [text]
    assert text in page.text


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_style_and_script_stay_within_their_elements(name: str) -> None:
    import scrapy_rep.observers.report

    template = Path(scrapy_rep.observers.report.__file__).parent / "template" / name
    assert "</" not in template.read_text("utf-8")
    assert "<!--" not in template.read_text("utf-8")


def test_the_script_makes_no_markup() -> None:
    import scrapy_rep.observers.report

    template = Path(scrapy_rep.observers.report.__file__).parent / "template"
    script = (template / "page.js").read_text("utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function", script
    )
    assert "safe" not in (template / "page.html").read_text("utf-8")


# -- the file -------------------------------------------------------------------------


def test_it_is_written_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "robots.html"
    path.write_text("the one of before")
    report = crawl_report(origin_report(ONE))
    size = write_page(path, report)
    assert read(path).rows.keys() == {ONE}
    assert path.stat().st_size == size == len("".join(render(report)).encode())
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_one_of_before(tmp_path: Path) -> None:
    path = tmp_path / "robots.html"
    path.write_text("the one of before")
    with pytest.raises(KeyError):
        write_page(path, crawl_report(origin_report(ONE), when_unreachable="no such value"))
    assert path.read_text() == "the one of before"
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "robots"
    folder.mkdir()
    for path in (folder, tmp_path / "missing" / "robots.html"):
        with pytest.raises(OSError, match="robots"):
            write_page(path, crawl_report())
    assert list(tmp_path.iterdir()) == [folder]


def test_the_script_reads_only_names_that_the_page_has() -> None:
    # Without a browser, nothing else would notice that a name was changed on one side.
    script = Path(page_module.__file__).parent.joinpath("template", "page.js").read_text("utf-8")
    read_by_script = set(re.findall(r"\bknown\.(\w+)", script))
    written = page_of(crawl_report(origin_report(ONE))).of(ONE).keys()
    assert read_by_script == set(written)
