"""Origins, and the form of a path in which URLs and patterns are compared.

Here may live: everything that looks inside a URL or a path pattern. Here may
not live: which of several patterns wins (:mod:`.matching`).

Canonical form (RFC 9309 §2.2.2, used by dialects with ``PathForm.CANONICAL``)
is the same for a URL and for the literal parts of a pattern: ASCII only; an
octet is either itself or ``%XX`` in upper case, never both. A literal ``*`` or
``$`` is always ``%2A`` or ``%24``, so that in a canonical pattern ``*`` is a
wildcard and ``$`` an anchor wherever they stand.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from .dialects import Dialect, PathForm

#: Where the rules of an origin are (RFC 9309 §2.3).
ROBOTS_TXT = "/robots.txt"

_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}

# The URL standard: controls and spaces around a URL are no part of it, tabs
# and newlines inside it are dropped, and what is not ASCII is UTF-8.
_AROUND = "".join(map(chr, range(0x21)))
_DROPPED = {ord(character): None for character in "\t\n\r"}

# Scheme and authority; "\" ends an authority as "/" does, as in browsers.
_AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//[^/\\?#]*")

# RFC 3986 §2.3, unreserved: means the same encoded or not, so is decoded.
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
# RFC 3986 §2.2, reserved: "%2F" is not "/", so these keep the form they have.
# Left out: "'", "[" and "]", which clients encode at some places and not at
# others; "*" and "$", which have a meaning in patterns; "#", the fragment.
_KEPT = "!&()+,/:;=?@"


def _canonical_octets() -> dict[str, str]:
    """Every octet, and every way to write it percent-encoded, to its canonical form."""
    table: dict[str, str] = {}
    for octet in range(256):
        character = chr(octet)
        encoded = f"%{octet:02X}"
        table[character] = character if character in _UNRESERVED + _KEPT else encoded
        for high in {encoded[1], encoded[1].lower()}:
            for low in {encoded[2], encoded[2].lower()}:
                table[f"%{high}{low}"] = character if character in _UNRESERVED else encoded
    # A "%" that encodes nothing stays as it is: no client touches it.
    table["%"] = "%"
    table["*"] = "%2A"
    table["$"] = "%24"
    return table


_CANONICAL = _canonical_octets()
_NOT_CANONICAL = re.compile(f"%[0-9A-Fa-f]{{2}}|[^{re.escape(_UNRESERVED + _KEPT)}]")


class InvalidURL(ValueError):
    """A URL from which no origin can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: what one robots.txt is about (RFC 9309 §2.3).

    The host is lower-case ASCII (IDNA), IPv6 addresses without brackets; the
    port is never ``None``. Userinfo has no place in it.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        """The origin of an absolute http, https or ftp *url*.

        Raises :exc:`InvalidURL` for any other URL.

        >>> str(Origin.of("HTTP://user@Example.COM:80/page"))
        'http://example.com'
        """
        try:
            parts = urlsplit(_strip(url).replace("\\", "/"))
            port = parts.port
        except ValueError as error:
            raise InvalidURL(f"{url!r} is no URL: {error}") from None
        if parts.scheme not in _DEFAULT_PORTS:
            raise InvalidURL(f"{url!r} is no http, https or ftp URL")
        if not parts.hostname:
            raise InvalidURL(f"{url!r} names no host")
        return cls(
            parts.scheme,
            _ascii_host(parts.hostname),
            _DEFAULT_PORTS[parts.scheme] if port is None else port,
        )

    @property
    def robots_url(self) -> str:
        """The URL of the robots.txt that holds for this origin."""
        return f"{self}{ROBOTS_TXT}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return f"{self.scheme}://{host}"
        return f"{self.scheme}://{host}:{self.port}"


def _ascii_host(host: str) -> str:
    """*host* as it goes over the wire: IDNA, lower case."""
    # Where IDNA fails (too long a label, say) no name server knows the host; what
    # matters is that equal spellings stay equal.
    if not host.isascii():
        with contextlib.suppress(UnicodeError):
            host = host.encode("idna").decode("ascii")
    return host.lower()


def path_to_match(url: str | bytes, dialect: Dialect) -> str:
    """The part of *url* that rules are about: path, parameters and query.

    *url* is absolute, or a path that starts with ``/``. The result is in the
    form that *dialect* compares and starts with ``/``.

    >>> from scrapy_rep.rep.dialects import RFC9309
    >>> path_to_match("https://example.com/a/../b c?q=%7e#top", RFC9309)
    '/b%20c?q=~'
    """
    if dialect.path_form is PathForm.VERBATIM:
        return _verbatim_path(_octets(url))
    return _canonical_path(url)


def is_robots_txt(url: str | bytes, dialect: Dialect) -> bool:
    """Whether *url* may be accessed because it is that of the robots.txt itself.

    RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
    """
    return dialect.robots_txt_allowed and path_to_match(url, dialect) == ROBOTS_TXT


def canonical_pattern(value: bytes, dialect: Dialect) -> str:
    """The value of a rule in the form that *dialect* compares.

    In the result ``*`` is a wildcard, and ``$`` an anchor where it comes last.
    """
    text = value.decode("latin-1")
    if dialect.path_form is PathForm.VERBATIM:
        return _ESCAPED.sub(_escape, text)
    anchor = "$" if text.endswith("$") else ""
    if anchor:
        text = text[:-1]
    return "*".join(map(_canonical, text.split("*"))) + anchor


# -- canonical form -----------------------------------------------------------


def _canonical(text: str) -> str:
    """*text*, one character an octet, in canonical form."""
    return _NOT_CANONICAL.sub(lambda match: _CANONICAL[match.group()], text)


def _canonical_path(url: str | bytes) -> str:
    text = _strip(_octets(url))
    authority = _AUTHORITY.match(text)
    if authority:
        text = text[authority.end() :]
    text = text.partition("#")[0]
    path, _, query = text.partition("?")
    path = _canonical(path.replace("\\", "/")) or "/"
    if not path.startswith("/"):
        path = "/" + path
    if "/." in path:
        path = _without_dot_segments(path)
    # "/?" and "/" are one resource to every client that Scrapy has.
    return f"{path}?{_canonical(query)}" if query else path


def _without_dot_segments(path: str) -> str:
    """*path* with ``.`` and ``..`` resolved (RFC 3986 §5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _octets(url: str | bytes) -> str:
    """*url* with one character an octet, what is not ASCII in UTF-8."""
    if isinstance(url, str):
        if url.isascii():
            return url
        url = url.encode("utf-8", "surrogatepass")
    return url.decode("latin-1")


def _strip(url: str) -> str:
    return url.strip(_AROUND).translate(_DROPPED)


# -- verbatim form: the reference library -------------------------------------

# robots.cc, MaybeEscapePattern: "%aa" becomes "%AA", octets with the highest
# bit set become "%XX", nothing is ever decoded.
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")


def _escape(match: re.Match[str]) -> str:
    text = match.group()
    return text.upper() if len(text) > 1 else f"%{ord(text):02X}"


_PATH_START = re.compile(r"[/?;]")


def _verbatim_path(url: str) -> str:
    """robots.cc, GetPathParamsQuery: nothing is normalised."""
    start = 2 if url.startswith("//") else 0
    early_path = _PATH_START.search(url, start)
    scheme_end = url.find("://", start)
    if scheme_end >= 0 and (early_path is None or early_path.start() >= scheme_end):
        start_of_authority = scheme_end + 3
    else:
        start_of_authority = start
    path = _PATH_START.search(url, start_of_authority)
    if path is None:
        return "/"
    fragment = url.find("#", start)
    if 0 <= fragment < path.start():
        return "/"
    found = url[path.start() : fragment if fragment >= 0 else None]
    return found if found.startswith("/") else "/" + found
