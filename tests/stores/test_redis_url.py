from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.connection import Connection
from redis.asyncio.sentinel import SentinelConnectionPool

from scrapy_rep.stores.redis_url import DEFAULT_PREFIX, DEFAULT_TIMEOUT, parse_url


def options(url: str) -> dict[str, Any]:
    """What redis-py's connections get from *url*."""
    kwargs: dict[str, Any] = parse_url(url).client().connection_pool.connection_kwargs
    return kwargs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h", {"host": "h"}),
        ("redis://u:p%40@h:1/2", {"host": "h", "port": 1, "db": 2, "username": "u"}),
        ("rediss://h?ssl_ca_certs=/etc/x.pem", {"host": "h", "ssl_ca_certs": "/etc/x.pem"}),
        ("unix:///run/x.sock?db=3", {"path": "/run/x.sock", "db": 3}),
        ("redis://[::1]:7/1", {"host": "::1", "port": 7, "db": 1}),
        ("redis://h?decode_responses=yes", {"decode_responses": False}),
        ("redis://h?socket_timeout=9", {"socket_timeout": None}),
    ],
)
def test_as_redis_py_takes_them(url: str, expected: dict[str, Any]) -> None:
    assert options(url).items() >= expected.items()


def test_what_is_ours() -> None:
    assert parse_url("redis://h").prefix == DEFAULT_PREFIX
    assert parse_url("redis://h").timeout == DEFAULT_TIMEOUT
    url = parse_url("redis://h/1?prefix=shop%3A&socket_timeout=2&client_name=x")
    assert (url.prefix, url.timeout) == ("shop:", 2.0)
    assert options("redis://h/1?prefix=shop%3A&client_name=x")["client_name"] == "x"


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_sentinel(scheme: str) -> None:
    text = f"{scheme}+sentinel://u:p@a,b:2,[::1]:3/main/4?sentinel_password=s&ssl_ca_certs=/x"
    url = parse_url(text.replace("&ssl_ca_certs=/x", "") if scheme == "redis" else text)
    pool = url.client().connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert pool.service_name == "main"
    assert pool.is_master
    kwargs = pool.connection_kwargs
    assert (kwargs["username"], kwargs["password"], kwargs["db"]) == ("u", "p", 4)
    assert "host" not in kwargs
    sentinels = pool.sentinel_manager.sentinels
    asked = [one.connection_pool.connection_kwargs for one in sentinels]
    assert [(one["host"], one["port"]) for one in asked] == [("a", 26379), ("b", 2), ("::1", 3)]
    assert {one["password"] for one in asked} == {"s"}
    secure = ["SSL" in one.connection_pool.connection_class.__name__ for one in sentinels]
    assert secure == [scheme == "rediss"] * 3
    assert ("SSL" in pool.connection_class.__name__) == (scheme == "rediss")
    if scheme == "rediss":
        assert {one["ssl_ca_certs"] for one in [*asked, kwargs]} == {"/x"}


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_cluster(scheme: str) -> None:
    client = parse_url(f"{scheme}+cluster://u:p%40@a,b:2,[::1]:3?client_name=x").client()
    assert isinstance(client, RedisCluster)
    nodes = client.nodes_manager.startup_nodes.values()
    assert [(node.host, node.port) for node in nodes] == [("a", 6379), ("b", 2), ("::1", 3)]
    kwargs = client.connection_kwargs
    assert (kwargs["username"], kwargs["password"], kwargs["client_name"]) == ("u", "p@", "x")
    assert ("SSL" in kwargs.get("connection_class", Connection).__name__) == (scheme == "rediss")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://u:secret@h:1/2?prefix=x", "redis://h:1/2"),
        ("unix://u@/x.sock?password=secret", "unix:///x.sock"),
        ("redis+sentinel://:secret@a,[::1]:3/m", "redis+sentinel://a:26379,[::1]:3/m"),
        ("rediss+cluster://u:secret@a,[::1]:3/0?prefix=x", "rediss+cluster://a:6379,[::1]:3/0"),
        ("redis+cluster://a", "redis+cluster://a:6379"),
        ("rediss+sentinel://a/m/1?sentinel_password=secret", "rediss+sentinel://a:26379/m/1"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert parse_url(url).name == shown
    assert "secret" not in repr(parse_url(url))
