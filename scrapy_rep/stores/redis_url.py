"""From a URL to clients of redis-py.

Here may live: what a URL says, and what of redis-py's options is ours to choose.
Only this module and its users import redis-py, which an extra brings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

#: What the keys of this package begin with, where the URL does not say.
DEFAULT_PREFIX = "scrapy-rep:"
#: Seconds that an operation may take, where the URL does not say.
DEFAULT_TIMEOUT = 0.25

_SENTINEL, _CLUSTER = "sentinel", "cluster"
_PORTS = {_SENTINEL: 26379, _CLUSTER: 6379}
_MAX_PREFIX = 200
_ENCODE = "in a password, write special characters as %XX, such as %2F for a slash"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """Which Redis, and what of it is ours.

    *url* as redis-py takes it. Where *hosts*, sentinels or nodes of a cluster, are asked for
    the servers of the data, it has no host. Keys begin with *prefix*; an operation may take
    *timeout* seconds.
    """

    url: str = field(repr=False)
    prefix: str = DEFAULT_PREFIX
    timeout: float = DEFAULT_TIMEOUT
    #: ``sentinel``, ``cluster``, or empty for one server.
    kind: str = ""
    hosts: tuple[tuple[str, int], ...] = ()
    #: The name under which the sentinels have the master.
    service: str = ""
    #: What the sentinels want to know: ``username``, ``password``.
    sentinel_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Without passwords and options, for people."""
        scheme, place, path, *_ = urlsplit(self.url)
        if not self.kind:
            return urlunsplit((scheme, place.rpartition("@")[2], path, "", ""))
        hosts = ",".join(map(_address, self.hosts))
        more = f"/{self.service}{path}" if self.service else path
        return f"{scheme}+{self.kind}://{hosts}{more.rstrip('/')}"

    def client(self) -> Any:
        """A client that is not connected yet; one for each event loop.

        It waits for as long as its user does, and tries again once: a connection that was
        not used for long may have been closed.
        """
        ours: dict[str, Any] = {
            "decode_responses": False,
            "socket_timeout": None,
            "socket_connect_timeout": None,
            "retry": Retry(NoBackoff(), 1),
            "retry_on_error": [NoConnection],
        }
        if self.kind == _CLUSTER:
            nodes = [ClusterNode(*place) for place in self.hosts]
            return RedisCluster.from_url(self.url, startup_nodes=nodes, protocol=2, **ours)
        # Of RESP3, nothing is used, and it takes two more round trips to connect.
        pool = ConnectionPool.from_url(self.url, protocol=2)
        if not self.kind:
            pool.connection_kwargs.update(ours)
            return Redis.from_pool(pool)
        return self._master({**pool.connection_kwargs, **ours}, ours)

    def _master(self, options: dict[str, Any], ours: dict[str, Any]) -> Any:
        """A client of whatever server the sentinels call the master."""
        options = {name: options[name] for name in options if name not in ("host", "port")}
        if self.url.startswith("rediss:"):
            options["ssl"] = True
        # A certificate is that of the sentinels, too.
        secure = {name: options[name] for name in options if name.startswith("ssl")}
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            self.hosts,
            sentinel_kwargs={**ours, **secure, **dict(self.sentinel_options)},
            **options,
        )
        return sentinel.master_for(self.service)


def parse_url(value: str) -> RedisUrl:
    """The Redis that *value* names: a URL of redis-py's, or of Sentinel, or of a cluster.

    Raises :exc:`ValueError` that says what is wrong with it, without any part of it: a
    password with a "/" in it may have been read as a port, a path or an option.

    >>> url = parse_url("redis://:secret@10.0.0.1:6379/3?prefix=shop:&socket_timeout=0.5")
    >>> str(url), url.prefix, url.timeout
    ('redis://10.0.0.1:6379/3', 'shop:', 0.5)
    >>> str(parse_url("redis+sentinel://10.0.0.1,10.0.0.2:7000/main/3"))
    'redis+sentinel://10.0.0.1:26379,10.0.0.2:7000/main/3'
    """
    if "#" in value:
        raise ValueError(f"has a fragment; {_ENCODE}")
    scheme, _, rest = value.partition("://")
    scheme, _, kind = scheme.partition("+")
    place, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    prefix = _prefix(options.pop("prefix", DEFAULT_PREFIX))
    timeout = _seconds(options.pop("socket_timeout", str(DEFAULT_TIMEOUT)))
    sentinel_options = tuple(
        (name, options.pop(f"sentinel_{name}"))
        for name in ("username", "password")
        if f"sentinel_{name}" in options
    )
    hosts: tuple[tuple[str, int], ...] = ()
    service = ""
    if kind:
        place, hosts, service = _hosts(scheme, place, kind)
    url = f"{scheme}://{place}" + (f"?{urlencode(options)}" if options else "")
    parsed = RedisUrl(url, prefix, timeout, kind, hosts, service, sentinel_options)
    _check(parsed)
    return parsed


def _hosts(scheme: str, place: str, kind: str) -> tuple[str, tuple[tuple[str, int], ...], str]:
    """The place of the data, without a host; the hosts to ask for it; and the service."""
    if kind not in _PORTS or not scheme.startswith("redis"):
        raise ValueError("its scheme is not known")
    credentials, at, place = place.rpartition("@")
    if "/" in credentials:
        raise ValueError(f"has a slash before the first host; {_ENCODE}")
    hosts, _, path = place.partition("/")
    service, _, db = ("", "", path) if kind == _CLUSTER else path.partition("/")
    if kind == _SENTINEL and not service:
        raise ValueError("names no service: redis+sentinel://host:port,host:port/service/db")
    if kind == _CLUSTER and db.strip("0/"):
        raise ValueError("a cluster has no databases but 0")
    places = tuple(_host(host, _PORTS[kind]) for host in hosts.split(","))
    return f"{credentials}{at}/{db}", places, unquote(service)


def _prefix(text: str) -> str:
    # Braces would decide on which server of a cluster keys are.
    printable = text.isascii() and text.isprintable() and not set(text) & set("{}")
    if not printable or not 0 < len(text) <= _MAX_PREFIX:
        raise ValueError(f"prefix is 1 to {_MAX_PREFIX} characters of ASCII, without braces")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("socket_timeout is a number of seconds above 0")
    return seconds


def _host(place: str, port: int) -> tuple[str, int]:
    split = _split(f"redis://{place}")
    if not split.hostname:
        raise ValueError("a host is host:port, or [IPv6 address]:port")
    return split.hostname, split.port or port


def _address(place: tuple[str, int]) -> str:
    host, port = place
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split(url: str) -> SplitResult:
    try:
        split = urlsplit(url)
        # Looked at, it may raise.
        _ = split.port
    except ValueError:
        raise ValueError(f"its host or port cannot be read; {_ENCODE}") from None
    return split


def _check(url: RedisUrl) -> None:
    """Raise :exc:`ValueError` for what redis-py would refuse only when it connects."""
    split = _split(url.url)
    if split.scheme == "unix":
        if not split.path or (split.netloc and not split.netloc.endswith("@")):
            raise ValueError("names no socket: unix:///path")
    elif not url.kind:
        if not split.hostname:
            raise ValueError("names no host")
        if split.path.strip("/") and not split.path.strip("/").isdecimal():
            raise ValueError(f"the path is the number of a database; {_ENCODE}")
    try:
        client = url.client()
        if url.kind != _CLUSTER:
            pool = client.connection_pool
            pool.connection_class(**pool.connection_kwargs)
    except (TypeError, AttributeError, ValueError, RedisError):
        # What they say may name parts of a password.
        raise ValueError(
            f"redis-py does not take one of its options, or the value of one; {_ENCODE}"
        ) from None
