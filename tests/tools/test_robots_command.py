"""``scrapy robots``: dispatch, help, usage errors. Nothing here starts a crawl."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings


def run_in_process(*arguments: str) -> int:
    """The exit code of ``scrapy robots`` with *arguments*, none of which may crawl."""
    with pytest.raises(SystemExit) as exit_:
        execute(["scrapy", "robots", *arguments], Settings())
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


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
        ("frobnicate", "frobnicate"),
        ("demo --frobnicate", "unrecognized arguments: --frobnicate"),
        ("demo surplus", "unrecognized arguments: surplus"),
        ("demo -s ROBOTSTXT_OBEY=0", "no -s"),
        ("demo -L LOUD", "'LOUD' is no log level"),
        ("demo --sites 5", "--sites is for --corpus ZIP"),
        ("demo --corpus good.zip --sites 0", "--sites 0: must be 1 or more"),
        ("demo --corpus good.zip --sites -3", "--sites -3: must be 1 or more"),
        ("demo --corpus good.zip --sites many", "invalid int value: 'many'"),
        ("demo --corpus missing.zip", "cannot read missing.zip"),
        ("demo --corpus .", "cannot read ."),
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
    assert "1 sites need 513 open files, but the limit is 256" in capsys.readouterr().err


def test_a_soft_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    from scrapy_rep.tools.demo.limits import allow_open_files_for

    limits = (256, resource.RLIM_INFINITY)
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: calls.append(limits))
    allow_open_files_for(1000)
    assert calls == [(1512, resource.RLIM_INFINITY)]


def test_help_of_the_command_lists_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("--help") == 0
    printed = capsys.readouterr().out
    assert "scrapy robots <demo|cache> [options]" in printed
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


def test_loading_the_command_imports_no_demo_and_no_reactor() -> None:
    script = (
        "import sys, scrapy_rep.tools.command\n"
        "print([name for name in sys.modules if name.startswith('scrapy_rep.tools.demo.')])\n"
        "print('twisted.internet.reactor' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["['scrapy_rep.tools.demo.subcommand']", "False"]
