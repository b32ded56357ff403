"""Whether a process has ended, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_rep.stores import processes
from scrapy_rep.stores.processes import is_dead, this_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")

CODE = (
    "from scrapy_rep.stores.processes import this_process\n"
    "print(this_process(), flush=True)\n"
    "input()\n"
)


def test_a_process_is_dead_when_it_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert name.startswith(f"{child.pid} ")
        assert not is_dead(name)
        child.send_signal(signal.SIGKILL)
        # It has ended, and is not reaped: its id is not free yet.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(name)
    assert is_dead(name)


def test_this_process_lives() -> None:
    assert not is_dead(this_process())


def test_an_id_that_another_process_has_now() -> None:
    pid, start, place = this_process().split(" ", 2)
    assert is_dead(f"{pid} {int(start) - 1} {place}")


def test_a_child_has_another_name() -> None:
    hear, tell = os.pipe()
    before = this_process()
    child = os.fork()
    if child == 0:
        os.write(tell, this_process().encode())
        os._exit(0)
    os.waitpid(child, 0)
    name = os.read(hear, 1000).decode()
    assert name != before
    assert is_dead(name)


def free_pid() -> int:
    """The id of no process."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


@pytest.mark.parametrize("place", ["", "other-boot 1", "posix"])
def test_what_another_machine_or_container_says_is_not_known(place: str) -> None:
    assert not is_dead(f"{free_pid()} 1 {place}")


@pytest.mark.parametrize("pid", ["0", "-1", "x", "", "9" * 30, "²", "1.5"])
def test_a_name_that_is_none(pid: str) -> None:
    _, start, place = this_process().split(" ", 2)
    assert not is_dead(f"{pid} {start} {place}")
    assert not is_dead(None)
    assert not is_dead(b"1 1 x")


@pytest.fixture
def no_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A system that does not tell start times, such as macOS."""
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    cached = (processes._name, processes._place)  # noqa: SLF001
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def test_a_system_without_start_times(no_proc: None) -> None:
    name = this_process()
    assert not is_dead(name)
    # An id that is in use proves nothing; one that is not does.
    assert is_dead(name.replace(str(os.getpid()), str(free_pid()), 1))
