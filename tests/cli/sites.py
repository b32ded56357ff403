"""Servers that ``scrapy robots`` is run against."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from scrapy_rep.cli.demo.server import Asked, LoopbackServers, Site, http_response

RULES = b"""\
User-agent: *
Disallow: /private/
Allow: /private/open
Sitemap: https://example.com/a.xml
Sitemap: /\x1b[31m.xml

User-agent: ExampleBot
Disallow: /*.pdf$
Allow: /docs/%61.pdf
"""
HEADERS = [("ETag", '"v1"'), ("Cache-Control", "max-age=7200"), ("Content-Type", "text/plain")]


def serve(servers: LoopbackServers, answers: Mapping[str, bytes]) -> Site:
    """A site that answers each target with the octets that *answers* has for it."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answers[asked.target])

    return servers.serve(answer)


def serve_rules(servers: LoopbackServers, body: bytes = RULES) -> Site:
    """A site with *body* as its robots.txt."""
    return serve(servers, {"/robots.txt": http_response(200, body, HEADERS)})


def serve_status(servers: LoopbackServers, status: int) -> Site:
    """A site that answers with *status*, and a body that is none of a robots.txt."""
    return serve(servers, {"/robots.txt": http_response(status, b"User-agent: *\nDisallow: /\n")})


def serve_nothing(servers: LoopbackServers) -> Site:
    """A site that never answers."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    return servers.serve(answer)
