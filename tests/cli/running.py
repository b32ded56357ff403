"""``scrapy robots`` in a process, in a pipe or in a terminal.

The process has Scrapy imported when it begins; ``tests/test_docs.py`` types commands as
anyone does.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from tests import forking
from tests.conditions import HANGS

Done = subprocess.CompletedProcess[str]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", "robots", *arguments]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf-8", **changes}


def execute_robots(*arguments: str) -> None:
    """``scrapy robots`` with *arguments* and the settings of the project here."""
    execute(["scrapy", "robots", *arguments])


def robots(cwd: Path, *arguments: str, types: str = "", **changes: str) -> Done:
    """``scrapy robots`` in a pipe, with *types* on its standard input."""
    return forking.run(execute_robots, *arguments, cwd=cwd, env=environment(**changes), types=types)


def from_json(done: Done) -> list[dict[str, Any]]:
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_in_process(*arguments: str) -> int:
    """The exit code of ``scrapy robots`` with *arguments*, none of which may crawl."""
    with pytest.raises(SystemExit) as exit_:
        execute(["scrapy", "robots", *arguments], Settings())
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


def type_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let standard input of this process be *content*."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def in_a_terminal(
    cwd: Path, *arguments: str, types: str = "", columns: str = "80", **changes: str
) -> tuple[int, str]:
    """The exit code, and all that a terminal shows; *types* is what a person answers."""
    fcntl, pty, struct, termios = (
        pytest.importorskip(name) for name in ("fcntl", "pty", "struct", "termios")
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    process = forking.start(
        execute_robots,
        *arguments,
        cwd=cwd,
        env=environment(TERM="xterm", **changes),
        streams=[theirs] * 3,
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], HANGS)[0]:
        try:
            read = os.read(ours, 65536)
        except OSError:  # EIO: the other side is closed.
            break
        shown += read
        if not read:
            break
        if types and shown.rstrip().endswith(b"[y/N]"):
            os.write(ours, types.encode())
            types = ""
    os.close(ours)
    return forking.end_of(process, HANGS), shown.decode().replace("\r\n", "\n")
