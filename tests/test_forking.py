"""The processes of the tests are as others are, but for what they have imported."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests import forking
from tests.conditions import wait_until

HTTP_HANDLER = "scrapy.core.downloader.handlers.http11"


def show(*names: str) -> None:
    """Write which of the modules are imported."""
    sys.stdout.write(" ".join(name for name in names if name in sys.modules))


def tell(code: int) -> None:
    """Write what is known of the surroundings, and end."""
    sys.stdout.write(f"{Path.cwd()} {dict(os.environ)} {sys.stdin.read()}")
    sys.stderr.write("é")
    sys.exit(code)


def fail() -> None:
    raise ValueError("of no use")


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def test_scrapy_is_imported_before_they_begin_and_no_reactor(tmp_path: Path) -> None:
    # No error says so, if it could not be imported.
    done = forking.run(show, HTTP_HANDLER, "twisted.internet.reactor", cwd=tmp_path)
    assert done.stdout == HTTP_HANDLER


def test_streams_directory_and_environment_are_their_own(tmp_path: Path) -> None:
    done = forking.run(tell, 3, cwd=tmp_path, env={"A": "b"}, types="ü\n" * 100_000)
    assert done.returncode == 3
    assert done.stdout == f"{tmp_path} {{'A': 'b'}} " + "ü\n" * 100_000
    assert done.stderr == "é"


def test_an_exception_ends_them(tmp_path: Path) -> None:
    done = forking.run(fail, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: of no use\n")


def test_signals_do_what_they_do_elsewhere(tmp_path: Path) -> None:
    assert forking.run(end_by, signal.SIGTERM, cwd=tmp_path).returncode == -signal.SIGTERM
    assert forking.run(end_by, signal.SIGINT, cwd=tmp_path).stderr.endswith("KeyboardInterrupt\n")


def hang(ignored: int) -> None:
    """Wait for good, in a thread too, and ignore a signal."""
    signal.signal(ignored, signal.SIG_IGN)
    threading.Thread(target=wait_in_a_thread, daemon=True).start()
    signal.pause()


def wait_in_a_thread() -> None:
    sys.stdout.write("first words")
    sys.stdout.flush()
    threading.Event().wait()


def end_of_one_that_hangs(path: Path, ignored: int) -> str:
    """What it has written when it was ended."""
    written = path / "written"
    with written.open("wb") as file:
        process = forking.start(hang, ignored, cwd=path, streams=[file.fileno()] * 3)
    wait_until(lambda: written.read_text() == "first words")
    with pytest.raises(forking.DidNotEnd, match=r"not ended after 0\.1 s"):
        forking.end_of(process, 0.1)
    return written.read_text()


def test_one_that_does_not_end_says_where_it_is(tmp_path: Path) -> None:
    said = end_of_one_that_hangs(tmp_path, signal.SIGUSR1)
    assert " in hang\n" in said
    assert " in wait_in_a_thread\n" in said


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "_DYING", 0.1)
    assert end_of_one_that_hangs(tmp_path, signal.SIGABRT) == "first words"


def test_what_one_that_does_not_end_has_written_is_told(tmp_path: Path) -> None:
    # Nothing, where it has not begun by then.
    with pytest.raises(forking.DidNotEnd, match=r"^not ended after 0\.5 s\n(first words)?\n"):
        forking.run(hang, signal.SIGUSR1, cwd=tmp_path, timeout=0.5)
