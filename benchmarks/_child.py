"""Work in processes of its own: for what a process can do or be once, or may never end."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def in_child(function: Callable[..., T], *arguments: Any, limit: float, copy: bool = False) -> T:
    """What *function* returns in a new process.

    That is a new interpreter, in which there is nothing yet that would hide what
    is measured, or, sooner there, a *copy* of this process.

    Raises :exc:`TimeoutError` where that takes more than *limit* seconds, and
    :exc:`ChildProcessError` where it fails there.
    """
    processes = multiprocessing.get_context("fork" if copy else "spawn")
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_send, args=(theirs, function, arguments))  # type: ignore[attr-defined]
    child.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            raise TimeoutError
        result: T = ours.recv()
    except EOFError:
        raise ChildProcessError(f"{function.__name__}{arguments} failed") from None
    finally:
        child.kill()
        child.join()
    return result


def _send(connection: Connection, function: Callable[..., object], arguments: Any) -> None:
    connection.send(function(*arguments))


def run_job(module: str, job: object, limit: float) -> dict[str, Any]:
    """What ``python -m module`` writes on stdout for *job* on stdin, both as JSON.

    Raises :exc:`subprocess.TimeoutExpired` where that takes more than *limit*
    seconds, and :exc:`subprocess.CalledProcessError` where it fails.
    """
    # No proxy of the environment knows our loopback addresses.
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(job).encode(),
        stdout=subprocess.PIPE,
        env=environment,
        cwd=Path(__file__).parents[1],
        timeout=limit,
        check=True,
    )
    came: dict[str, Any] = json.loads(done.stdout)
    return came
