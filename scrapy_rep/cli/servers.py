"""Real HTTP servers on loopback addresses, for the demo, the tests and the benchmarks.

They write HTTP/1.1 by hand, one request per connection, because many of them must answer
wrongly: bodies that never end, chunk sizes that are false, no answer at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

# On Linux, every address of 127.0.0.0/8 is this machine. Elsewhere only 127.0.0.1 is, and
# origins differ by port alone.
_ADDRESSES = (f"127.0.{third}.{fourth}" for third in range(1, 256) for fourth in range(1, 255))
_FALLBACK_ADDRESS = "127.0.0.1"
# The client hung up, or the servers are being closed.
_ENDED = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError)


class Asked(NamedTuple):
    """A request that a server got, with header names in lower case, and when (monotonic time)."""

    method: str
    target: str
    headers: dict[str, str]
    at: float


#: Writes the answer to a request. The connection is closed when it returns.
Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A listening server: its address, and the requests that it got so far."""

    scheme: str
    host: str
    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The origin of the site, without a slash at the end."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def targets(self) -> list[str]:
        """The request targets in order: paths, or URLs where the site is a proxy."""
        return [asked.target for asked in self.asked]


def http_response(
    status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = (), reason: str = "-"
) -> bytes:
    """A whole response, with its Content-Length."""
    head = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(body)}", "Connection: close"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Send nothing, and leave the connection open."""
    await asyncio.Event().wait()


def stream(start: bytes, chunk: bytes) -> Answer:
    """Send *start*, then *chunk* again and again until the client hangs up."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + start)
        while True:
            writer.write(chunk)
            await writer.drain()

    return answer


class LoopbackServers:
    """Sites on loopback addresses, served by a thread with its own event loop.

    A context manager: leaving it closes every site and connection.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        # asyncio has weak references only: one whose client has gone would be destroyed.
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def __enter__(self) -> LoopbackServers:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def serve(
        self, answer: Answer, *, host: str = "", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> Site:
        """Start a site that answers with *answer*, by default at an address of its own."""
        try:
            listening = socket.create_server((host or next(_ADDRESSES, _FALLBACK_ADDRESS), port))
        except OSError:
            if host:
                raise
            listening = socket.create_server((_FALLBACK_ADDRESS, port))
        site = Site("https" if tls else "http", *listening.getsockname())

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(_converse(site, answer, reader, writer))
            self._connections[task] = writer
            task.add_done_callback(self._connections.pop)

        starting = asyncio.start_server(connected, sock=listening, ssl=tls)
        self._servers.append(asyncio.run_coroutine_threadsafe(starting, self._loop).result())
        return site

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for connection, writer in self._connections.items():
            # Otherwise, a client that does not read would keep it open.
            writer.transport.abort()
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


async def _converse(
    site: Site, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Read one request, answer it, and close the connection."""
    with contextlib.suppress(*_ENDED):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request_line, *lines = head.strip().split("\r\n")
            # Some clients send spaces inside the target.
            method, rest = request_line.split(" ", 1)
            target = rest.rpartition(" ")[0]
            fields = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in fields}
            site.asked.append(Asked(method, target, headers, time.monotonic()))
            await answer(site.asked[-1], writer)
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()
