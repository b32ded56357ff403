"""Tables and words."""

from __future__ import annotations

import io

import pytest

from scrapy_rep.cli.output import Column, Printer, Style, Table, print_table, span


def test_a_table_that_is_written_line_by_line() -> None:
    out = io.StringIO()
    table = Table(Printer(out), [Column("answer", 2), Column("line", 6, right=True), Column("url")])
    table.add(["yes", "12", "https://a.example/"], Style.GOOD)
    table.add(["something", "1234567", "x" * 100])
    assert out.getvalue().splitlines() == [
        "answer    line  url",
        "------  ------  ---",
        "yes         12  https://a.example/",
        "som...  123...  " + "x" * 100,
    ]


def test_a_table_with_columns_as_wide_as_needed() -> None:
    out = io.StringIO()
    print_table(
        Printer(out),
        ("site", "pages", "decided by"),
        [("a.example", "3", "abcdefghijklmnop"), ("b", "12", "")],
        widest=12,
    )
    assert out.getvalue().splitlines() == [
        "site       pages  decided by",
        "---------  -----  ------------",
        "a.example      3  abcdefghi...",
        "b             12",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text
