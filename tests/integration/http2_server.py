"""An HTTP/2 server that notes what it is asked for, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from tests.integration.certificates import tls_context


class Http2Site:
    """Where it is, and the headers of each request, ``:path`` among them."""

    def __init__(self, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self.asked: list[dict[str, str]] = []

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer each request of a connection: 404 for the robots.txt, 200 for pages."""
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        with contextlib.suppress(ConnectionError):
            while received := await reader.read(65536):
                for event in connection.receive_data(received):
                    if isinstance(event, RequestReceived):
                        self._answer(connection, event)
                writer.write(connection.data_to_send())
                await writer.drain()
        writer.close()

    def _answer(self, connection: H2Connection, event: RequestReceived) -> None:
        headers = {str(name): str(value) for name, value in event.headers or ()}
        self.asked.append(headers)
        status = "404" if headers[":path"] == "/robots.txt" else "200"
        assert event.stream_id is not None
        connection.send_headers(event.stream_id, [(":status", status)], end_stream=True)


@contextlib.asynccontextmanager
async def http2_site() -> AsyncIterator[Http2Site]:
    """A site on loopback, in the event loop of whoever asks."""
    site = Http2Site(0)
    server = await asyncio.start_server(site.converse, "127.0.0.1", ssl=tls_context("h2"))
    site.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        # Its connections are the client's to close.
        server.close()
