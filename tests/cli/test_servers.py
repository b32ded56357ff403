"""The servers that the demo and the tests share."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading

import pytest

from scrapy_rep.cli.servers import LoopbackServers, hang, stream
from tests.conditions import wait_until


def test_a_connection_that_its_client_has_left_stays_until_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with LoopbackServers() as servers:
        site = servers.serve(hang)
        with socket.create_connection((site.host, site.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            wait_until(lambda: bool(site.asked))
        # The loop of the servers hears that the client has gone.
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.1), vars(servers)["_loop"]).result()
        gc.collect()
    # asyncio logs an error for a task that is destroyed while it waits.
    assert not caplog.records


def test_a_client_that_does_not_read_does_not_keep_the_servers_from_their_end() -> None:
    """Such as a crawl that has ended, or was interrupted, in the middle of an endless body."""
    servers = LoopbackServers().__enter__()
    site = servers.serve(stream(b"", b"#" * 65_000))
    with socket.create_connection((site.host, site.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        # More has come than fits, or is about to.
        client.recv(1)
        leaving = threading.Thread(target=servers.__exit__, daemon=True)
        leaving.start()
        wait_until(lambda: not leaving.is_alive())
