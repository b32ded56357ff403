"""Many hosts on loopback addresses, at one port, served by a process of their own.

Needs Linux, where every address of 127.0.0.0/8 is this machine.
"""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from scrapy_rep.cli.demo.server import Answer, Asked, LoopbackServers, http_response

RULES = b"User-agent: *\nDisallow: /private\n"
PAGE = http_response(200, b"<html>A page.</html>", [("Content-Type", "text/html")])
_TEXT = ("Content-Type", "text/plain")
_GZIP = ("Content-Encoding", "gzip")
#: Where a redirect leads to, on its own host or on another one.
_MOVED = "/moved.txt"
_COMMENTS = b"# comment\n" * 10_000

#: What is answered: a whole response, or whoever writes it.
Reply = bytes | Answer
#: A reply, and the seconds before it, by the host and the target of a request. It
#: is pickled, so it is a function of a module or an object of a class of one.
Behaviour = Callable[[str, str], tuple[Reply, float]]


def address(number: int) -> str:
    """A host of its own for each number."""
    return f"127.{number // 62500 + 1}.{number // 250 % 250}.{number % 250 + 1}"


# -- replies --------------------------------------------------------------------


async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """No answer, until the server ends."""
    await asyncio.Event().wait()


async def _reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _elsewhere(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A redirect to another host."""
    port = asked.headers["host"].rpartition(":")[2]
    writer.write(_redirect(f"http://127.200.0.1:{port}{_MOVED}"))


async def _further(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A redirect to a place that redirects, and so on."""
    hops = asked.target.count("/further")
    writer.write(_redirect("/further" * (hops + 1) + "/robots.txt"))


async def _endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + RULES)
    while True:
        # Raises ConnectionError once the client has hung up.
        await writer.drain()
        writer.write(_COMMENTS)


def _redirect(to: str) -> bytes:
    return http_response(302, b"", [("Location", to)])


#: Ways to answer a robots.txt, by what RFC 9309 and its access table make of them:
#: these have the rules,
RULED: Mapping[str, Reply] = {
    "rules": http_response(200, RULES, [_TEXT, ("ETag", '"rules"')]),
    "rules, gzip": http_response(200, gzip.compress(RULES), [_TEXT, _GZIP]),
    "redirect": _redirect(_MOVED),
    "redirect to another host": _elsewhere,
    "huge": http_response(200, RULES + _COMMENTS * 20, [_TEXT]),
    "endless": _endless,
}
#: these allow everything,
ALLOWING: Mapping[str, Reply] = {
    **{str(status): http_response(status) for status in (401, 403, 404, 410, 429)},
    "HTML": http_response(200, b"<!DOCTYPE html><html>A page.", [("Content-Type", "text/html")]),
    "redirect loop": _redirect("/robots.txt"),
    "redirects without end": _further,
}
#: and these nothing.
UNREACHABLE: Mapping[str, Reply] = {
    **{str(status): http_response(status) for status in (500, 503)},
    "304 unasked": http_response(304),
    "redirect to nowhere": http_response(302),
    "no answer": hang,
    "reset": _reset,
    "closed": b"",
    "cut body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + RULES,
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + RULES,
    "bad gzip": http_response(200, RULES, [_TEXT, _GZIP]),
}
ROBOTS: Mapping[str, Reply] = {**RULED, **ALLOWING, **UNREACHABLE}


# -- the process ----------------------------------------------------------------


@dataclass
class Hosts:
    """The process, for as long as the block takes."""

    behaviour: Behaviour
    port: int = 0
    _process: Any = field(init=False, default=None)
    _connection: Connection = field(init=False)

    def __enter__(self) -> Hosts:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Listen: at the same port as before, if this is not the first time."""
        processes = multiprocessing.get_context("spawn")
        self._connection, theirs = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(theirs, self.behaviour, self.port))
        self._process.start()
        theirs.close()
        self.port = self._connection.recv()

    def stop(self) -> None:
        """Close the listening socket and all connections."""
        self._connection.send("stop")
        self._process.join()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()

    def behave(self, behaviour: Behaviour) -> None:
        """From now on, answer as *behaviour* says."""
        self.behaviour = behaviour
        self._connection.send(behaviour)
        self._connection.recv()

    def asked(self) -> list[tuple[str, str]]:
        """Host and target of all requests so far, in order."""
        self._connection.send("asked")
        asked: list[tuple[str, str]] = self._connection.recv()
        return asked

    def url(self, number: int) -> str:
        """The origin of host *number*, without a slash at the end."""
        return f"http://{address(number)}:{self.port}"


def _serve(connection: Connection, behaviour: Behaviour, port: int) -> None:
    """In the process: listen, and do what is said."""
    answering = _Answering(behaviour)
    with LoopbackServers() as servers:
        site = servers.serve(answering, host="0.0.0.0", port=port)
        connection.send(site.port)
        while (command := connection.recv()) != "stop":
            if command == "asked":
                connection.send([(_host(asked), asked.target) for asked in site.asked])
            else:
                answering.behaviour = command
                connection.send(None)


def _host(asked: Asked) -> str:
    return asked.headers["host"].partition(":")[0]


@dataclass
class _Answering:
    behaviour: Behaviour

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == _MOVED:
            reply, silence = ROBOTS["rules"], 0.0
        elif asked.target.startswith("/further"):
            reply, silence = _further, 0.0
        else:
            reply, silence = self.behaviour(_host(asked), asked.target)
        await asyncio.sleep(silence)
        if isinstance(reply, bytes):
            writer.write(reply)
        else:
            await reply(asked, writer)


def closed_port() -> socket.socket:
    """A port where nobody listens, and nobody will while the socket is open.

    That is so on all loopback addresses.
    """
    port = socket.socket()
    port.bind(("0.0.0.0", 0))
    return port
