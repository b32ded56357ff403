"""Real HTTP servers on loopback addresses, for the demo and the tests.

They speak HTTP/1.1 by hand, one request a connection, because most of what
they are for is answering wrongly: streams that never end, chunks that lie,
silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

# Every address of 127.0.0.0/8 is this machine on Linux. Elsewhere only
# 127.0.0.1 is, and origins differ by port alone.
_ADDRESSES = (f"127.0.{third}.{fourth}" for third in range(1, 256) for fourth in range(1, 255))
_FALLBACK_ADDRESS = "127.0.0.1"


class Asked(NamedTuple):
    """A request that a server got, and when, in seconds of :func:`time.monotonic`.

    Header names are lower-case.
    """

    method: str
    target: str
    headers: dict[str, str]
    at: float


#: Writes the answer to a request; the connection is closed when it returns.
Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """One listening server: where it is, and what it has been asked so far."""

    scheme: str
    host: str
    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The origin of the site, without a slash at the end."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def targets(self) -> list[str]:
        """What was asked for, in order: paths, or URLs where the site is a proxy."""
        return [asked.target for asked in self.asked]


def http_response(
    status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = (), reason: str = "-"
) -> bytes:
    """A whole response as octets, with its Content-Length."""
    head = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(body)}", "Connection: close"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


class LoopbackServers:
    """Sites on loopback addresses, served from a thread with its own event loop.

    A context manager: leaving it closes every site and connection.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._addresses = itertools.chain(_ADDRESSES, itertools.repeat(_FALLBACK_ADDRESS))

    def __enter__(self) -> LoopbackServers:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def serve(
        self,
        answer: Answer,
        *,
        host: str | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> Site:
        """Start a site that answers with *answer*; on an address of its own by default."""
        coroutine = self._listen(answer, host, port, tls)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _listen(
        self, answer: Answer, host: str | None, port: int, tls: ssl.SSLContext | None
    ) -> Site:
        site = Site("https" if tls else "http", host or next(self._addresses), port)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            try:
                await _converse(site, answer, reader, writer)
            finally:
                self._connections.discard(task)

        try:
            server = await asyncio.start_server(connected, site.host, port, ssl=tls)
        except OSError:
            if host is not None:
                raise
            site.host = _FALLBACK_ADDRESS
            server = await asyncio.start_server(connected, site.host, port, ssl=tls)
        self._servers.append(server)
        site.port = server.sockets[0].getsockname()[1]
        return site

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


async def _converse(
    site: Site, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One request, its answer, and the end of the connection."""
    # Clients that have seen enough hang up; that is what many of them are for.
    # And the end of a site ends the answers that are still being given.
    gone = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError)
    with contextlib.suppress(*gone):
        try:
            asked = await _read_request(reader)
            site.asked.append(asked)
            await answer(asked, writer)
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.strip().split("\r\n")
    # Some clients send spaces inside the target.
    method, rest = request_line.split(" ", 1)
    target = rest.rpartition(" ")[0]
    fields = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    return Asked(method, target, headers, time.monotonic())
