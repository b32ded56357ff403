"""The processes of the tests are as others are, but for what they have imported."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests import forking

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


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"not ended after 0\.5 s"):
        forking.run(end_by, signal.SIGCONT, cwd=tmp_path, timeout=0.5)
