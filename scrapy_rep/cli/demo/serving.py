"""The sites of the demo as servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from scrapy_rep.cli.demo.server import Answer, Asked, LoopbackServers, Site, http_response
from scrapy_rep.cli.demo.sites import (
    DemoSite,
    Redirects,
    RefusesConnections,
    Reply,
    Says,
    Streams,
)

_PAGE = http_response(200, b"<p>A page.</p>\n", [("Content-Type", "text/html")], "OK")


@dataclass(frozen=True, slots=True)
class ServedSite:
    """A site and its server, which knows what it was asked."""

    site: DemoSite
    server: Site


@contextmanager
def serving(sites: Iterable[DemoSite]) -> Iterator[tuple[ServedSite, ...]]:
    """Serve *sites*, each on an origin of its own, for as long as the block runs."""
    served: list[ServedSite] = []
    # For sites that mention another one; the latest of that name.
    by_name: dict[str, Site] = {}
    with LoopbackServers() as servers, ExitStack() as closed_ports:
        for site in sites:
            if isinstance(site.robots, RefusesConnections):
                port = closed_ports.enter_context(_closed_port())
                server = Site("http", *port.getsockname())
            else:
                host = by_name[site.beside].host if site.beside else None
                answer = _answer(site, lambda name: by_name[name].url)
                server = servers.serve(answer, host=host)
            by_name[site.name] = server
            served.append(ServedSite(site, server))
        yield tuple(served)


def _closed_port() -> socket.socket:
    """A port where nobody listens, and nobody will while the socket is open."""
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    return port


def _answer(site: DemoSite, origin_of: Callable[[str], str]) -> Answer:
    """How the server of *site* answers; redirects find other sites by *origin_of*."""
    replies = {"/robots.txt": site.robots, **dict(site.hops)}

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        reply = replies.get(asked.target)
        if reply is None:
            writer.write(_PAGE)
        else:
            await _send(reply, writer, origin_of)

    return answer


async def _send(
    reply: Reply, writer: asyncio.StreamWriter, origin_of: Callable[[str], str]
) -> None:
    if isinstance(reply, Says):
        writer.write(http_response(reply.status, reply.body, reply.headers))
    elif isinstance(reply, Redirects):
        location = (origin_of(reply.site) if reply.site else "") + reply.path
        writer.write(http_response(reply.status, headers=[("Location", location)]))
    elif isinstance(reply, Streams):
        # Without Content-Length, the body ends with the connection.
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + reply.start)
        while True:
            # Raises ConnectionError once the client has hung up.
            await writer.drain()
            writer.write(reply.forever)
    else:
        # Until the server is closed.
        await asyncio.Event().wait()
