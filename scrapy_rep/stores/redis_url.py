"""From a URL to clients of redis-py.

Here may live: what a URL says, and what of redis-py's options is ours to choose.
Only this module and its users import redis-py, which an extra brings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

#: What the keys of this package begin with, where the URL does not say.
DEFAULT_PREFIX = "scrapy-rep:"
#: Seconds that an operation may take, where the URL does not say.
DEFAULT_TIMEOUT = 0.25

_SENTINEL = "+sentinel"
_SENTINEL_PORT = 26379
_MAX_PREFIX = 200
_ENCODE = "in a password, write special characters as %XX, such as %2F for a slash"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """Which Redis, and what of it is ours.

    *url* as redis-py takes it; for Sentinel that of the data, without a host, and
    *sentinels* and *service* besides. Keys begin with *prefix*; an operation may
    take *timeout* seconds.
    """

    url: str = field(repr=False)
    prefix: str = DEFAULT_PREFIX
    timeout: float = DEFAULT_TIMEOUT
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    #: What the sentinels want to know: ``username``, ``password``.
    sentinel_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Without passwords and options, for people."""
        scheme, place, path, *_ = urlsplit(self.url)
        if self.sentinels:
            hosts = ",".join(map(_address, self.sentinels))
            return f"{scheme}{_SENTINEL}://{hosts}/{self.service}{path.rstrip('/')}"
        return urlunsplit((scheme, place.rpartition("@")[2], path, "", ""))

    def client(self) -> Redis:
        """A client that is not connected yet; one for each event loop.

        It does not retry, and waits for as long as its user does.
        """
        ours: dict[str, Any] = {
            "decode_responses": False,
            "socket_timeout": None,
            "socket_connect_timeout": None,
            "retry": Retry(NoBackoff(), 0),
        }
        # Of RESP3, nothing is used, and it takes two more round trips to connect.
        pool = ConnectionPool.from_url(self.url, retry_on_error=[], protocol=2)
        if not self.sentinels:
            pool.connection_kwargs.update(ours)
            return Redis(connection_pool=pool)
        options = {**pool.connection_kwargs, **ours}
        options = {name: options[name] for name in options if name not in ("host", "port")}
        # A certificate is that of the sentinels, too.
        secure = {name: options[name] for name in options if name.startswith("ssl")}
        if self.url.startswith("rediss:"):
            secure["ssl"] = options["ssl"] = True
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            self.sentinels,
            sentinel_kwargs={**ours, **secure, **dict(self.sentinel_options)},
            **options,
        )
        client: Redis = sentinel.master_for(self.service)
        return client


def parse_url(value: str) -> RedisUrl:
    """The Redis that *value* names: a URL of redis-py's, or of Sentinel.

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
    place, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    prefix = options.pop("prefix", DEFAULT_PREFIX)
    if not prefix.isascii() or not prefix.isprintable() or not 0 < len(prefix) <= _MAX_PREFIX:
        raise ValueError(f"prefix is 1 to {_MAX_PREFIX} characters of ASCII")
    timeout = _seconds(options.pop("socket_timeout", str(DEFAULT_TIMEOUT)))
    sentinel_options = tuple(
        (name, options.pop(f"sentinel_{name}"))
        for name in ("username", "password")
        if f"sentinel_{name}" in options
    )
    sentinels: tuple[tuple[str, int], ...] = ()
    service = ""
    if scheme.endswith(_SENTINEL):
        credentials, at, place = place.rpartition("@")
        if "/" in credentials:
            raise ValueError(f"has a slash before the first host; {_ENCODE}")
        hosts, _, path = place.partition("/")
        service, _, db = path.partition("/")
        service = unquote(service)
        sentinels = tuple(map(_sentinel, hosts.split(",")))
        if not service:
            raise ValueError("names no service: redis+sentinel://host:port,host:port/service/db")
        scheme, place = scheme[: -len(_SENTINEL)], f"{credentials}{at}/{db}"
    url = f"{scheme}://{place}" + (f"?{urlencode(options)}" if options else "")
    parsed = RedisUrl(url, prefix, timeout, sentinels, service, sentinel_options)
    _check(parsed)
    return parsed


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("socket_timeout is a number of seconds above 0")
    return seconds


def _sentinel(place: str) -> tuple[str, int]:
    split = _split(f"redis://{place}")
    if not split.hostname:
        raise ValueError("a sentinel is host:port, or [IPv6 address]:port")
    return split.hostname, split.port or _SENTINEL_PORT


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
    elif not url.sentinels:
        if not split.hostname:
            raise ValueError("names no host")
        if split.path.strip("/") and not split.path.strip("/").isdecimal():
            raise ValueError(f"the path is the number of a database; {_ENCODE}")
    try:
        pool = url.client().connection_pool
        pool.connection_class(**pool.connection_kwargs)
    except (TypeError, AttributeError, ValueError, RedisError):
        # What they say may name parts of a password.
        raise ValueError(
            f"redis-py does not take one of its options, or the value of one; {_ENCODE}"
        ) from None
