"""``scrapy robots``: dispatch, help, usage errors. Nothing here starts a crawl."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from scrapy_rep.cli.command import RobotsCommand
from scrapy_rep.cli.demo import allow_open_files
from tests.cli.running import run_in_process


@pytest.fixture
def bad_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.zip").write_bytes(b"this is no archive")
    with zipfile.ZipFile("empty.zip", "w") as archive:
        archive.writestr("directory/", b"")
    with zipfile.ZipFile("good.zip", "w") as archive:
        archive.writestr("example.com", b"User-agent: *\nDisallow: /\n")
    damaged = bytearray(Path("good.zip").read_bytes())
    damaged[damaged.index(b"Disallow")] ^= 0xFF
    Path("damaged.zip").write_bytes(damaged)


@pytest.mark.usefixtures("bad_archives")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "required: <subcommand>"),
        ("check", "scrapy robots check: error: the following arguments are required: URL"),
        ("check - -", "can be the only URL, or the file, but not both"),
        ("check --file - -", "can be the only URL, or the file, but not both"),
        (
            "check --agent Bot/1.0 a.example",
            "error: --agent: 'Bot/1.0' is not a valid product token",
        ),
        ("check --dialect klingon a.example", "REP_DIALECT = 'klingon': accepted"),
        (
            "check --file missing.txt /a",
            ": cannot read missing.txt: No such file or directory",
        ),
        ("explain", "required: URL"),
        ("explain data:,x", "no origin: 'data:,x' is not an http, https or ftp URL"),
        ("explain a.example b.example", "unrecognized arguments: b.example"),
        ("compare", "required: URL"),
        ("compare --corpus good.zip /a", "unrecognized arguments: --corpus"),
        ("compare --with nosuch /a", "'nosuch' cannot be loaded"),
        ("compare --with scrapy.Spider /a", "no subclass of scrapy.robotstxt.RobotParser"),
        ("compare --file - -", "can be the only URL, or the file, but not both"),
        ("lint missing.txt", "there is no file missing.txt (a URL has a scheme, such as"),
        ("lint .", "cannot read .: Is a directory"),
        ("lint --json --format sarif bad.zip", "--json and --format sarif exclude each other"),
        ("lint --format xml bad.zip", "invalid choice: 'xml'"),
        ("fetch --body --json a.example", "--body and --json exclude each other"),
        ("fetch https://", "no origin"),
        ("sitemaps missing.txt", "there is no file missing.txt"),
        ("frobnicate", "frobnicate"),
        ("demo --frobnicate", "unrecognized arguments: --frobnicate"),
        ("demo surplus", "unrecognized arguments: surplus"),
        ("demo -s ROBOTSTXT_OBEY=0", "no -s"),
        ("demo -L LOUD", "'LOUD' is no log level"),
        ("demo --sites 5", "--sites is for --corpus ZIP"),
        ("demo --corpus good.zip --sites 0", "--sites 0: must be 1 or more"),
        ("demo --corpus good.zip --sites -3", "--sites -3: must be 1 or more"),
        ("demo --corpus good.zip --sites many", "invalid int value: 'many'"),
        ("demo --corpus missing.zip", "scrapy robots demo: cannot read missing.zip: No such file"),
        ("demo --corpus .", "cannot read .: Is a directory"),
        ("demo --corpus bad.zip", "bad.zip is no ZIP archive"),
        ("demo --corpus damaged.zip", "damaged.zip is no ZIP archive that can be read"),
        ("demo --corpus empty.zip", "empty.zip has no files in it"),
    ],
)
def test_usage_errors(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process(*arguments.split()) == 2
    printed = capsys.readouterr()
    error = printed.err.strip().splitlines()[-1]
    assert message in error
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_too_low_a_limit_on_open_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, bad_archives: None
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert run_in_process("demo", "--corpus", "good.zip") == 2
    assert (
        "1 site and the crawl take 513 open files, but the limit is 256" in capsys.readouterr().err
    )


def test_a_soft_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    limits = (256, resource.RLIM_INFINITY)
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: calls.append(limits))
    allow_open_files(1000)
    assert calls == [(1512, resource.RLIM_INFINITY)]


def test_help_of_the_command_lists_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("--help") == 0
    printed = capsys.readouterr().out
    assert "<check|explain|compare|lint|fetch|sitemaps|cache|report|demo> [options]" in printed
    assert "crawl demonstration sites on this machine" in printed


def test_help_of_the_demo_reads_as_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("demo", "--help") == 0
    printed = capsys.readouterr().out
    for text in (
        "scrapy robots demo [--corpus ZIP",
        "exit code is 0",
        "--sites N",
        "--loglevel LEVEL",
    ):
        assert text in printed
    # Not for the demo, so not in its help.
    assert "NAME=VALUE" not in printed


def test_scrapy_lists_the_command() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "scrapy"], capture_output=True, text=True, check=True
    )
    assert "  robots  " in listed.stdout


@pytest.mark.parametrize("name", ["check", "explain", "compare", "lint", "fetch", "sitemaps"])
def test_help_reads_as_documentation(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process(name, "--help") == 0
    printed = capsys.readouterr().out
    for text in (f"scrapy robots {name} ", "examples:", "Exit codes: 0", "--json"):
        assert text in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_loading_the_command_imports_no_subcommand_and_no_reactor() -> None:
    script = (
        "import sys, scrapy_rep.cli.command\n"
        "print(sorted(name for name in sys.modules if name.startswith('scrapy_rep.cli.')))\n"
        "print('twisted.internet.reactor' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["['scrapy_rep.cli.command']", "False"]


@pytest.mark.parametrize("subcommand", [each.name for each in RobotsCommand().root.subcommands])
def test_no_line_of_a_help_text_is_taken_for_a_heading(
    subcommand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Scrapy makes a heading of every line that ends with a colon.
    assert run_in_process(subcommand, "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    headings = {line for line, below in pairwise(lines) if below and set(below) == {"="}}
    assert headings <= {"Usage", "Positional Arguments", "Options", "Subcommands"}
