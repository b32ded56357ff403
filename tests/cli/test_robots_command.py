"""``scrapy robots``: dispatch, help, usage errors. Nothing here starts a crawl."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import scrapy

import scrapy_rep
from scrapy_rep.cli.command import RobotsCommand
from scrapy_rep.cli.options import Subcommand
from tests.cli.running import run_in_process


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_bytes(b"User-agent: *\nDisallow: /\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "scrapy robots: error: the following arguments are required: <subcommand>"),
        ("chekc", "argument <subcommand>: invalid choice: 'chekc': did you mean check?"),
        ("cache lits", "invalid choice: 'lits': did you mean list?"),
        ("frobnicate", "invalid choice: 'frobnicate' (choose from check, explain, compare, lint,"),
        ("check", "scrapy robots check: error: the following arguments are required: URL"),
        ("check - -", "check: error: -, standard input, can be the only URL, or the file, but not"),
        ("check --file - -", "can be the only URL, or the file, but not both"),
        ("check --agent Bot/1.0 a.example", "check: error: argument --agent: 'Bot/1.0' is not"),
        ("check --dialect gogle a.example", "argument --dialect: invalid choice: 'gogle': did you"),
        ("check -s REP_DIALECT=klingon a.example", "check: error: REP_DIALECT = 'klingon': accept"),
        ("check -s REP_DIALECT a.example", "error: Invalid -s value, use -s NAME=VALUE"),
        ("check -L LOUD a.example", "argument -L/--loglevel: invalid choice: 'LOUD'"),
        ("check --jsno a.example", "unrecognized argument: '--jsno': did you mean --json?"),
        ("check --json --format csv a.example", "argument --format: not allowed with argument"),
        ("check --file missing.txt /a", "cannot read missing.txt: No such file or directory"),
        # A path without its slash, and a server on this machine without a scheme.
        ("check --file rules.txt books", "'books' is neither a path nor a URL: did you mean /boo"),
        ("check --file rules.txt books/1", "'books/1' is neither a path nor a URL: did you mean"),
        ("check --file rules.txt a.html", "'a.html' is neither a path nor a URL: did you mean"),
        ("explain --file rules.txt books", "'books' is neither a path nor a URL: did you mean /"),
        ("compare --file rules.txt /a books", "'books' is neither a path nor a URL: did you mea"),
        ("check 127.0.0.1:8000/books", "has no scheme: did you mean http://127.0.0.1:8000/books?"),
        ("explain localhost:8000/books", "no scheme: did you mean http://localhost:8000/books?"),
        ("fetch 192.168.1.5", "'192.168.1.5' has no scheme: did you mean http://192.168.1.5?"),
        ("fetch [::1]:80/a", "'[::1]:80/a' has no scheme: did you mean http://[::1]:80/a?"),
        ("explain", "required: URL"),
        (
            "explain data:,x",
            "explain: error: no origin: 'data:,x' is not an http, https or ftp URL",
        ),
        ("explain a.example b.example", "unrecognized argument: 'b.example'"),
        ("compare", "required: URL"),
        ("compare --with nosuch /a", "compare: error: argument --with: 'nosuch' cannot be loaded"),
        ("compare --with scrapy.Spider /a", "not a subclass of scrapy.robotstxt.RobotParser"),
        ("compare --file - -", "can be the only URL, or the file, but not both"),
        ("lint missing.txt", "there is no file missing.txt; for a URL, write https://missing.txt"),
        ("lint .", "lint: error: cannot read .: Is a directory"),
        ("lint --json --format sarif rules.txt", "--format: not allowed with argument --json"),
        ("lint --format srif rules.txt", "invalid choice: 'srif': did you mean sarif?"),
        ("fetch --body --json a.example", "--body and --format json exclude each other"),
        ("fetch https://", "fetch: error: no origin"),
        ("sitemaps missing.txt", "there is no file missing.txt"),
        ("demo --frobnicate", "unrecognized argument: '--frobnicate'"),
        ("demo surplus", "unrecognized argument: 'surplus'"),
        ("demo -s ROBOTSTXT_OBEY=0", "demo: error: the demo has its own settings and does not"),
        ("completion fish", "argument SHELL: invalid choice: 'fish'"),
    ],
)
def test_usage_errors(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process(*arguments.split()) == 2
    printed = capsys.readouterr()
    # The message is all that is written.
    (error,) = printed.err.splitlines()
    assert message in error
    assert re.match(r"scrapy robots[a-z ]*: error: ", error)
    assert printed.out == ""


def test_help_of_the_command_lists_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("--help") == 0
    printed = capsys.readouterr().out
    for subcommand in RobotsCommand().subcommands:
        assert re.search(rf"^    {subcommand.name} +\w", printed, re.MULTILINE)


@pytest.mark.parametrize("arguments", ["lint rules.txt", "lint missing.txt"])
def test_interrupts_are_handled_as_before_afterwards(arguments: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_in_process(*arguments.split())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("--version") == 0
    versions = f"scrapy-rep {scrapy_rep.__version__} (Scrapy {scrapy.__version__})\n"
    assert capsys.readouterr().out == versions


def test_scrapy_lists_the_command() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "scrapy"], capture_output=True, text=True, check=True
    )
    assert "  robots  " in listed.stdout


def words_of(subcommands: tuple[Subcommand, ...]) -> Iterator[list[str]]:
    """What is typed for each of *subcommands*."""
    for each in subcommands:
        yield [each.name]
        yield from ([each.name, *words] for words in words_of(each.subcommands))


@pytest.mark.parametrize("words", list(words_of(RobotsCommand().subcommands)), ids=" ".join)
def test_help(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_in_process(*words, "--help") == 0
    printed = capsys.readouterr().out
    typed = f"scrapy robots {' '.join(words)}"
    assert f"Usage\n=====\n  {typed} " in printed
    lines = printed.splitlines()
    start = lines.index("Examples")
    examples = lines[start + 2 : lines.index("", start)]
    assert 2 <= len(examples) <= 3
    assert all(typed in example for example in examples)
    assert lines[-1].startswith("Documentation: ")
    assert max(map(len, lines)) <= 80
    assert len(lines) < 50
    # Scrapy makes a heading of every line that ends with a colon.
    headings = {line for line, below in pairwise(lines) if below and set(below) == {"="}}
    assert headings <= {
        *("Usage", "Positional Arguments", "Options", "Options Of All Subcommands"),
        *("Subcommands", "Examples"),
    }


@pytest.mark.parametrize("words", list(words_of(RobotsCommand().subcommands)), ids=" ".join)
def test_options_have_one_meaning(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever can write JSON does so with --json and --format."""
    run_in_process(*words, "--help")
    printed = capsys.readouterr().out
    assert ("--json" in printed) == ("--format FORMAT" in printed)
    for name in ("-s NAME=VALUE", "-L LEVEL"):
        assert (name in printed) == (
            words not in (["cache"], ["audit"]) and (words, name[:2]) != (["demo"], "-s")
        )


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_in_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert run_in_process("completion", shell) == 0
    script = capsys.readouterr().out
    for name in ("robots", "check", "refresh", "--dialect", "koster1996", "runspider"):
        assert name in script


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    run_in_process("completion", "bash")
    Path("completion.bash").write_text(capsys.readouterr().out)
    script = """
source completion.bash
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_scrapy scrapy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
}
complete_words scrapy rob
complete_words scrapy robots ch
complete_words scrapy robots cache re
complete_words scrapy robots check --fo
complete_words scrapy robots lint --format s
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["robots", "check", "refresh", "--format", "sarif"]


def test_without_shtab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert run_in_process("completion", "bash") == 2
    assert capsys.readouterr().err.endswith("pip install shtab\n")


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
