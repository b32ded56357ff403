"""From a URL to clients of redis-py.

Here may live: what a URL says, and what of redis-py's options is ours to choose.
Only this module and its users import redis-py, which an extra brings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from redis.asyncio import Redis, connection
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

#: What the keys of this package begin with, where the URL does not say.
DEFAULT_PREFIX = "scrapy-rep:"
#: Seconds that an operation may take, where the URL does not say.
DEFAULT_TIMEOUT = 0.25

# The ports of the hosts, by what is after the "+" of the scheme.
_PORTS = {"": 6379, "sentinel": 26379, "cluster": 6379}
# What is not left to the options of a URL.
_OURS: dict[str, Any] = {
    "decode_responses": False,
    "socket_timeout": None,
    "socket_connect_timeout": None,
    "retry": Retry(NoBackoff(), 1),
    "retry_on_error": [NoConnection],
    # Of RESP3, nothing is used, and it takes two more round trips to connect.
    "protocol": 2,
}
_HOST = r"(\[[^]]+\]|[^][:]+)(?::([0-9]{1,5}))?"
# Printable ASCII. Braces would decide on which server of a cluster keys are.
_PREFIX = r"[ -z|~]{1,200}"
_ENCODE = "in a password, write special characters as %XX, such as %2F for a slash"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """Which Redis, and what of it is ours: :func:`parse_url` makes it.

    Keys begin with *prefix*; an operation may take *timeout* seconds. *name* is the URL for
    people, without passwords and options; *url* is for redis-py. It has no host where the
    servers of the data are asked for: *hosts* are nodes of a cluster, or, with the name of a
    *service*, sentinels.
    """

    url: str = field(repr=False)
    name: str
    prefix: str
    timeout: float
    hosts: tuple[tuple[str, int], ...] = ()
    service: str = ""

    def client(self) -> Any:
        """A client that is not connected yet; one for each event loop.

        It waits for as long as its user does, and tries again once: a connection that was
        not used for long may have been closed.
        """
        if self.service:
            return self._master()
        if self.hosts:
            nodes = [ClusterNode(*place) for place in self.hosts]
            return RedisCluster.from_url(self.url, startup_nodes=nodes, **_OURS)
        return Redis.from_url(self.url, **_OURS)

    def _master(self) -> Any:
        """A client of whatever server the sentinels call the master."""
        options = _OURS | connection.parse_url(self.url)
        if options.pop("connection_class", None) is not None:
            options["ssl"] = True
        # A certificate is that of the sentinels, too; a user and a password are not.
        of_sentinels = _OURS | {name: options[name] for name in options if name.startswith("ssl")}
        for name in ("username", "password"):
            if f"sentinel_{name}" in options:
                of_sentinels[name] = options.pop(f"sentinel_{name}")
        sentinel = Sentinel(self.hosts, sentinel_kwargs=of_sentinels, **options)  # type: ignore[no-untyped-call]
        return sentinel.master_for(self.service)


def parse_url(value: str) -> RedisUrl:
    """The Redis that *value* names: a URL of redis-py's, or of Sentinel, or of a cluster.

    Raises :exc:`ValueError` that says what is wrong with it, without any part of it: a
    password with a "/" in it may have been read as a port, a path or an option.

    >>> url = parse_url("redis://:secret@10.0.0.1:6379/3?prefix=shop:&socket_timeout=0.5")
    >>> url.name, url.prefix, url.timeout
    ('redis://10.0.0.1:6379/3', 'shop:', 0.5)
    >>> parse_url("redis+sentinel://10.0.0.1,10.0.0.2:7000/main/3").name
    'redis+sentinel://10.0.0.1:26379,10.0.0.2:7000/main/3'
    """
    if "#" in value:
        raise ValueError(f"has a fragment; {_ENCODE}")
    whole_scheme, _, rest = value.partition("://")
    scheme, _, kind = whole_scheme.partition("+")
    place, _, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    credentials, sign, shown = netloc.rpartition("@")
    options = dict(parse_qsl(query, keep_blank_values=True))
    prefix = options.pop("prefix", DEFAULT_PREFIX)
    if not re.fullmatch(_PREFIX, prefix):
        raise ValueError("prefix is 1 to 200 characters of ASCII, without braces")
    timeout = _seconds(options.pop("socket_timeout", str(DEFAULT_TIMEOUT)))
    hosts, service, db = _place(whole_scheme, shown, path)
    host = shown
    if kind:
        addresses = [f"[{at}]:{port}" if ":" in at else f"{at}:{port}" for at, port in hosts]
        host, shown = "", ",".join(addresses)
    query = urlencode({name: options[name] for name in options if name not in _OURS})
    url = f"{scheme}://{credentials}{sign}{host}/{db}?{query}"
    name = f"{whole_scheme}://{shown}/{path}".rstrip("/")
    parsed = RedisUrl(url, name, prefix, timeout, hosts if kind else (), service)
    _check_options(parsed)
    return parsed


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("socket_timeout is a number of seconds above 0")
    return seconds


def _place(scheme: str, netloc: str, path: str) -> tuple[tuple[tuple[str, int], ...], str, str]:
    """The hosts and their ports, the name of Sentinel's service, and the database or socket."""
    if scheme == "unix":
        if netloc or not path:
            raise ValueError("the path of the socket is missing: unix:///path")
        return (), "", path
    base, _, kind = scheme.partition("+")
    if base not in ("redis", "rediss") or kind not in _PORTS:
        raise ValueError("its scheme is not known")
    hosts = tuple(_host(each, _PORTS[kind]) for each in netloc.split(","))
    if "@" in path:
        raise ValueError(f"has a slash before the host; {_ENCODE}")
    service, _, db = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "sentinel" and not service:
        raise ValueError("the service is missing: redis+sentinel://host:port,host:port/service/db")
    if kind == "cluster" and db.strip("0/"):
        raise ValueError("a cluster has only the database 0")
    # redis-py would take 0 for what is not a number.
    if db.strip("/") and not db.strip("/").isdecimal():
        raise ValueError(f"the path is the number of a database; {_ENCODE}")
    return hosts, unquote(service), db


def _host(place: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(_HOST, place)
    if found is None or int(found[2] or port) > 65_535:
        raise ValueError(f"a host is host:port, or [IPv6 address]:port; {_ENCODE}")
    return found[1].strip("[]"), int(found[2] or port)


def _check_options(url: RedisUrl) -> None:
    """Raise :exc:`ValueError` for what redis-py would refuse only when it connects."""
    try:
        client = url.client()
        if not isinstance(client, RedisCluster):
            pool = client.connection_pool
            pool.connection_class(**pool.connection_kwargs)
    except (TypeError, AttributeError, ValueError, RedisError):
        # What they say may name parts of a password.
        raise ValueError(
            f"redis-py does not take one of its options, or the value of one; {_ENCODE}"
        ) from None
