"""The Redis server of the tests comes back on its port, however many connections there are."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.stores.redis_server import RedisServer, free_port

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_connection_takes_the_port_of_a_server_that_is_gone() -> None:
    if not RANGE.exists():
        pytest.skip("only Linux says which ports it gives to connections")
    lowest, highest = map(int, RANGE.read_text().split())
    for _ in range(3):
        for port in (free_port(), free_port() + 10_000):
            assert not lowest <= port <= highest


def test_ports_are_not_used_twice(own_redis: RedisServer) -> None:
    ports = [free_port() for _ in range(20)]
    assert len({*ports, own_redis.port}) == 21
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", ports[-1] + 1))
        assert free_port() != ports[-1] + 1
