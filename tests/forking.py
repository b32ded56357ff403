"""Processes that have imported Scrapy when they begin: that is most of what a short crawl costs.

All are forked from one process, which has imported it, and has neither a reactor nor
threads. What is registered with :mod:`atexit` is not called at their end. Where it matters
how Python starts or ends, a test starts one by itself.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryFile

from scrapy.settings import default_settings

from tests.conditions import HANGS

#: Names of all that is part of every crawl.
_COMPONENTS = [
    *default_settings.DOWNLOAD_HANDLERS_BASE.values(),
    *default_settings.DOWNLOADER_MIDDLEWARES_BASE,
    *default_settings.EXTENSIONS_BASE,
    *default_settings.SPIDER_MIDDLEWARES_BASE,
    default_settings.DUPEFILTER_CLASS,
    default_settings.LOG_FORMATTER,
    default_settings.SCHEDULER_PRIORITY_QUEUE,
    default_settings.STATS_CLASS,
]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "scrapy_rep.addon",
        "scrapy_rep.stores.sqlite",
        "scrapy_rep.cli.command",
        "tests.integration.crawl_process",
        *(str(path).rpartition(".")[0] for path in _COMPONENTS),
    ]
)
# Seconds in which a process that hangs writes where its threads are.
_DYING = 10.0
#: Starting one looks how others have ended. Of two threads that look, one would be told.
_LOCK = threading.Lock()


class DidNotEnd(AssertionError):
    """A process hung; with where it was, and what else it wrote."""


def run(
    main: Callable[..., object],
    *arguments: object,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    types: str = "",
    timeout: float = HANGS,
) -> subprocess.CompletedProcess[str]:
    """Call *main* in a process, with *types* on its standard input."""
    ours, theirs = zip(os.pipe(), os.pipe(), strict=True)
    with TemporaryFile() as stdin:
        stdin.write(types.encode())
        stdin.seek(0)
        streams = [stdin.fileno(), *theirs]
        process = start(main, *arguments, cwd=cwd, env=env, streams=streams)
    for stream in theirs:
        os.close(stream)
    with ThreadPoolExecutor(len(ours)) as readers:
        written = readers.map(_read, ours)
        try:
            returncode = end_of(process, timeout)
        except DidNotEnd as hung:
            raise DidNotEnd("\n".join([str(hung), *written])) from None
    return subprocess.CompletedProcess(main.__name__, returncode, *written)


def _read(stream: int) -> str:
    with open(stream, encoding="utf-8", newline="") as file:
        return file.read()


def start(
    main: Callable[..., object],
    *arguments: object,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    streams: Sequence[int],
) -> ForkServerProcess:
    """Begin to call *main* in a process that has copies of *streams* as its standard streams."""
    environment = dict(os.environ if env is None else env)
    # Which is how a descriptor gets into another process.
    connections = [Connection(os.dup(stream)) for stream in streams]
    process = _CONTEXT.Process(
        target=_begin, args=(main, arguments, str(cwd), environment, connections)
    )
    with _LOCK:
        process.start()
    for connection in connections:
        connection.close()
    return process


def end_of(process: ForkServerProcess, timeout: float) -> int:
    """Wait for the end of *process*, and return its exit code."""
    ended = wait([process.sentinel], timeout)
    if not ended:
        assert process.pid is not None
        # It writes where its threads are.
        os.kill(process.pid, signal.SIGABRT)
        if not wait([process.sentinel], _DYING):
            process.kill()
    with _LOCK:
        process.join()
    if not ended:
        raise DidNotEnd(f"not ended after {timeout} s")
    assert process.exitcode is not None
    return process.exitcode


def _begin(
    main: Callable[..., object],
    arguments: Sequence[object],
    cwd: str,
    environment: Mapping[str, str],
    connections: Sequence[Connection],
) -> None:
    """In the process: call *main* as if Python had been started for it."""
    for number, connection in enumerate(connections):
        os.dup2(connection.fileno(), number)
        connection.close()
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    faulthandler.enable(sys.stderr)
    # Ignored, where the tests run in the background of a shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(*arguments))  # type: ignore[arg-type]
