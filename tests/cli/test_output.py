"""Tables and words."""

from __future__ import annotations

import io
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.cli.output import Column, Cut, Printer, Records, Style, Table

COLUMNS = [
    Column("answer"),
    Column("reason", cut=Cut.END),
    Column("source", shared=True),
    Column("url", cut=Cut.MIDDLE, shared=True),
]
SITE = "https://a.example:8080"


def written(*rows: list[str], width: int | None = None) -> list[str]:
    """What a table of *rows* is on a terminal of *width* columns, or in a pipe."""
    out = io.StringIO()
    printer = Printer(out)
    with mock.patch.object(Printer, "width", width):
        Table(printer, COLUMNS).write(rows)
    return out.getvalue().splitlines()


def test_columns_are_as_wide_as_the_first_rows_need() -> None:
    out = io.StringIO()
    table = Table(Printer(out), [Column("answer"), Column("line", right=True), Column("url")])
    table.write([["yes", "12", "/a"], ["no", "3", "/"]], [Style.GOOD, Style.BAD], [[], ["a note"]])
    table.write([["something", "12345", "/b"]])
    table.write([])
    assert out.getvalue().splitlines() == [
        "answer  line  url",
        "------  ----  ---",
        "yes       12  /a",
        "no         3  /",
        "    a note",
        "something  12345  /b",
    ]


@pytest.mark.parametrize(("width", "least"), [(None, 6), (20, 6), (13, 4)])
def test_a_least_width_is_kept_where_there_is_room(width: int | None, least: int) -> None:
    out = io.StringIO()
    with mock.patch.object(Printer, "width", width):
        table = Table(Printer(out), [Column("line", width=6), Column("url", width=6)])
        table.write([["1", "/a/b/c"]])
    title, line, row = out.getvalue().splitlines()
    assert (title, row) == (f"{'line':<{least}}  url", f"{'1':<{least}}  /a/b/c")
    assert line == f"{'-' * least}  {'------' if least == 6 else '---'}"


def test_nothing_is_cut_in_a_pipe() -> None:
    row = ["refused", "Disallow: /" + "a" * 200, "fetched", f"{SITE}/{'b' * 300}"]
    assert written(row)[2] == "  ".join(row)


def test_a_table_that_fits_is_left_alone() -> None:
    row = ["refused", "Disallow: /", "fetched", f"{SITE}/b"]
    assert written(row, width=80)[2] == "  ".join(row)


def test_what_all_rows_share_is_written_once() -> None:
    rows = [["refused", "Disallow: /", "fetched", f"{SITE}/{path}"] for path in ("a" * 40, "")]
    assert written(*rows, width=70) == [
        f"for all: source fetched, {SITE}",
        "answer   reason       url",
        "-------  -----------  ---",
        f"refused  Disallow: /  /{'a' * 40}",
        "refused  Disallow: /  /",
    ]


def test_other_origins_and_sources_stay_in_the_rows() -> None:
    rows = [
        ["refused", "Disallow: /", "fetched", f"{SITE}/{'a' * 60}"],
        ["refused", "Disallow: /", "store", f"https://b.example/{'a' * 60}"],
    ]
    _, _, *lines = written(*rows, width=80)
    assert [line.split()[3] for line in lines] == ["fetched", "store"]
    assert all("https://" in line and len(line) == 80 for line in lines)


@given(
    st.integers(40, 120),
    st.lists(
        st.tuples(st.text("ab", max_size=90), st.text("ab", max_size=90)),
        min_size=1,
        max_size=4,
        unique=True,
    ),
)
def test_rows_can_be_told_apart_at_any_width(width: int, paths: list[tuple[str, str]]) -> None:
    rows = [["refused", "Disallow: /" + "a" * 30, "store", f"{SITE}/{a}/{b}"] for a, b in paths]
    lines = [line for line in written(*rows, width=width) if line.startswith("refused")]
    assert len(set(lines)) == len(rows)


def test_shortened_urls_keep_their_ends() -> None:
    rows = [["refused", "-", "store", f"{SITE}/{'a' * 100}/page-{page}"] for page in range(20)]
    lines = written(*rows, width=60)
    assert max(map(len, lines)) == 60
    assert [line.rpartition("-")[2] for line in lines[3:]] == [str(page) for page in range(20)]


def test_cells_of_csv(capsys: pytest.CaptureFixture[str]) -> None:
    records = Records("csv", ["text", "number", "flag", "names", "group", "missing"])
    group = [{"name": "a", "line": 1}, {"name": "b", "line": 2}]
    records.write({"text": 'a,"b"', "number": 1, "flag": False, "names": ["x"], "group": group})
    # What a spreadsheet would run is text there.
    records.write({"text": "=cmd()", "number": None, "flag": True, "names": ["-x", "y"]})
    assert capsys.readouterr().out.splitlines() == [
        "text,number,flag,names,group,missing",
        '"a,""b""",1,false,x,"a, b",',
        "'=cmd(),,true,\"'-x, y\",,",
    ]
