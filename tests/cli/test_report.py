"""``scrapy robots report``, for real: processes, files, pipes and terminals."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scrapy_rep.stores.sqlite import SqliteStore
from tests.cli.running import Done, command, environment, in_a_terminal, robots
from tests.cli.stored import DEFAULT, HOSTILE, copied, examples, failing, fill
from tests.conditions import HANGS
from tests.observers.report.pages import Page, read
from tests.stores.examples import Clock, run


def report(cwd: Path, *arguments: str) -> Done:
    """``scrapy robots report`` in a pipe."""
    return robots(cwd, "report", *arguments)


def from_a_new_python(
    cwd: Path, *arguments: str, **changes: str
) -> subprocess.CompletedProcess[bytes]:
    """The same, with changes in the environment that Python reads when it starts."""
    return subprocess.run(
        command("report", *arguments),
        cwd=cwd,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANGS,
        check=False,
    )


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A directory with an origin of each freshness in the store of a crawl there."""
    fill(tmp_path / DEFAULT, *examples(time.time()).values())
    return tmp_path


def test_the_store_of_the_project(filled: Path) -> None:
    done = report(filled)
    page = read(filled / "robots.html")
    size = (filled / "robots.html").stat().st_size
    assert done.stdout == f"robots.html: 6 origins, {size:,} bytes\n"
    assert (done.returncode, done.stderr) == (0, "")
    # By host; what only a crawl knows is left out.
    assert [row["freshness"] for row in page.rows.values()] == [
        "due",
        "fresh",
        "given up",
        "outage",
        "refused",
        "stale",
    ]
    assert page.rows["https://stale.example"] == {
        "origin": "https://stale.example",
        "access": "unknown",
        "freshness": "stale",
        "status": 200,
        "lines": 2,
        "errors": 0,
        "warnings": 0,
    }
    assert page.rows["https://refused.example"]["lines"] is None
    details = page.of("https://outage.example")
    assert details["lines"] == ["User-agent: *", "Disallow: /private/"]
    assert dict(details["details"])["for a crawl"].startswith("pages are allowed or refused by")
    assert [what for _, what, _ in details["events"]] == [
        "status 200",
        "unreachable from then on",
        "attempt 9: status 503",
    ]
    assert f"Store {filled / DEFAULT}" in page.text


@pytest.mark.once
@pytest.mark.parametrize("spelling", ["sqlite:///{}", "{}"])
def test_another_store_to_another_file(tmp_path: Path, spelling: str) -> None:
    fill(tmp_path / "other.sqlite", copied("https://a.example", time.time(), HOSTILE))
    done = report(tmp_path, spelling.format("other.sqlite"), "-o", "a b.html")
    assert done.returncode == 0
    page = read(tmp_path / "a b.html")
    line = page.of("https://a.example")["lines"][1]
    assert line[0] == "Disallow: /\\x1b[31m<script>\\xff"
    assert page.tags.count("script") == 4


@pytest.mark.once
def test_standard_output(filled: Path) -> None:
    # Whatever Python makes of the pipe's encoding.
    done = from_a_new_python(filled, "-o", "-", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(Page(done.stdout.decode("utf-8")).rows) == 6
    assert not (filled / "robots.html").exists()


@pytest.mark.once
def test_a_pipe_that_is_closed_early(filled: Path) -> None:
    now = time.time()
    body = b"Disallow: /" + b"a" * 190
    fill(filled / DEFAULT, copied("https://long.example", now, b"\n".join([body] * 2000)))
    with subprocess.Popen(
        command("report", "-o", "-"), cwd=filled, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.once
def test_in_a_terminal(filled: Path) -> None:
    code, shown = in_a_terminal(filled, "report", "-o", "page.html")
    assert code == 0
    assert shown.startswith("page.html: 6 origins, ")
    assert "\x1b" not in shown


@pytest.mark.once
def test_by_the_settings_of_the_project(filled: Path) -> None:
    assert report(filled, "-s", "REP_MAX_ORIGINS=2", "-s", "REP_MAX_AGE=600").returncode == 0
    page = read(filled / "robots.html")
    assert [row["freshness"] for row in page.rows.values()] == ["stale", "stale"]
    assert "Only the first 2 of 6 origins (REP_MAX_ORIGINS)." in page.text


@pytest.mark.once
def test_a_copy_that_is_confirmed_and_an_outage_that_has_just_begun(tmp_path: Path) -> None:
    from dataclasses import replace

    now = time.time()
    entry = copied("https://a.example", now - 7200)
    assert entry.stored is not None
    entry = replace(entry, stored=replace(entry.stored, confirmed_at=now - 60))
    fill(
        tmp_path / DEFAULT,
        failing(entry, now, now, 1),
        copied("https://b.example", now, status=404),
    )
    assert report(tmp_path).returncode == 0
    page = read(tmp_path / "robots.html")
    assert [what for _, what, _ in page.of("https://a.example")["events"]] == [
        "status 200",
        "confirmed by the server",
        "unreachable from then on",
    ]
    # Whatever came with it is no robots.txt.
    assert page.of("https://b.example")["lines"] is None


@pytest.mark.once
def test_nothing_is_known(tmp_path: Path) -> None:
    run(SqliteStore(tmp_path / "empty.sqlite", Clock()).close())
    for store in ([], ["missing.sqlite"], ["empty.sqlite"]):
        done = report(tmp_path, *store)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Nothing is cached: /")
    assert not (tmp_path / "robots.html").exists()
    assert not (tmp_path / "missing.sqlite").exists()


@pytest.mark.once
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("memory", "report: error: REP_STORE = 'memory': nothing is stored"),
        ("mysql://x", "report: error: REP_STORE = 'mysql://x': accepted: memory"),
        ("-o missing/robots.html", "report: error: cannot write missing/robots.html: No such file"),
        ("-o .", "report: error: cannot write .: Is a directory"),
        ("a b", "unrecognized argument: 'b'"),
        ("-s REP_DIALECT=no", "report: error: REP_DIALECT = 'no'"),
    ],
)
def test_errors(filled: Path, words: str, message: str) -> None:
    done = report(filled, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[-1]


@pytest.mark.once
def test_without_the_template_engine(filled: Path) -> None:
    (filled / "jinja2.py").write_text("raise ImportError('no module named jinja2')")
    done = from_a_new_python(filled, PYTHONPATH=str(filled) + ":" + ":".join(sys.path))
    assert done.returncode == 2
    assert b"the report needs Jinja2 (no module named jinja2): pip install jinja2" in done.stderr
