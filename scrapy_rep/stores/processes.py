"""Names for processes of this machine, by which others see that one has ended.

A process id alone is not enough: the system gives it to another process later, and in each
container it means another process.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")


def this_process() -> str:
    """The name of this process: its id, its start time and where both are valid."""
    return _name(os.getpid())


def is_dead(name: object) -> bool:
    """Whether the process of this *name* has certainly ended.

    False where that cannot be known: the process is in another container, on another
    machine or ran before a restart of this one; the system does not say; or *name* is not
    from :func:`this_process`.
    """
    if os.name != "posix" or not isinstance(name, str):
        return False
    pid, _, rest = name.partition(" ")
    start, _, place = rest.partition(" ")
    if not (pid.isascii() and pid.isdigit() and 0 < int(pid) < 2**31) or place != _place():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        # It is another user's.
        pass
    state, started = _look(int(pid))
    # A zombie has ended; its parent has not asked for its status yet.
    return state in ("Z", "X") or "" != started != start


@lru_cache(maxsize=1)
def _name(pid: int) -> str:
    return f"{pid} {_look(pid)[1]} {_place()}"


@lru_cache(maxsize=1)
def _place() -> str:
    """Where process ids mean the same as here, and since when."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("utf-8").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return os.name


def _look(pid: int) -> tuple[str, str]:
    """The state and the start time of a process, each "" where the system does not say."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return "", ""
    # proc(5): "pid (name) state …"; the name may contain anything; field 22 is the start.
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
