"""Origins, and the form of a path in which URLs and patterns are compared.

The canonical form (RFC 9309 §2.2.2) is the same for a URL and for the literal parts of a pattern.
It is ASCII; each byte has one form, itself or ``%XX`` in upper case. A literal ``*`` or ``$`` is
``%2A`` or ``%24``, so that ``*`` and ``$`` in a pattern are always a wildcard and an anchor.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar
from urllib.parse import urlsplit

from ..dialects import Dialect, PathForm

#: Where the rules of an origin are (RFC 9309 §2.3).
ROBOTS_TXT = "/robots.txt"

_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
# The starts of URLs with a robots.txt (RFC 9309 §2.3 has HTTP and FTP as examples), and of all
# URLs with a scheme; localhost:8000/page has none.
_WITH_ROBOTS_TXT = re.compile(f"(?:{'|'.join(_DEFAULT_PORTS)}):", re.ASCII | re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://|(?i:about|data):")

# The URL standard: controls and spaces around a URL are removed, and tabs and line ends inside
# it; other characters than ASCII are UTF-8.
_AROUND = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")
# Scheme and authority; "\" begins and ends an authority like "/", as in browsers. Without a
# scheme, text that starts with "//" is a path.
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}[^/\\?#]*")
# A scheme and authority that every client reads in the same way.
_SITE = re.compile(r"https?://[A-Za-z0-9.\-]+(?::([0-9]{1,5}))?/")

# RFC 3986 §2.3, unreserved: decoded, because both forms mean the same.
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
# RFC 3986 §2.2, reserved: "%2F" is not "/", so both forms stay. Without "'", "[" and "]", which
# clients encode only in some places; "*" and "$", which have a meaning in patterns; and "#".
_RESERVED = "!&()+,/:;=?@"

# The bytes that are the same in all forms. A path of these without "/." is already normalised.
_PLAIN = (_UNRESERVED + _RESERVED).encode("ascii")
_PLAIN_OR_META = _PLAIN + b"*$\n"
# In values separated by line ends: a value with other bytes, and the line end before it.
_ODD = re.compile(b"\n(?![*%b]*[$]?\n)(.+)" % re.escape(_PLAIN))

_AS_ENCODED = {byte: f"%{byte:02X}" for byte in range(256)}
_AS_IS = {byte: chr(byte) for byte in range(256)}
# For each form, a table for raw bytes and one for percent-encoded bytes.
_FORMS = {
    # Clients send a "%" without two hexadecimal digits unchanged.
    PathForm.CANONICAL: (
        _AS_ENCODED | {byte: chr(byte) for byte in [*_PLAIN, ord("%")]},
        _AS_ENCODED | {ord(character): character for character in _UNRESERVED},
    ),
    # The draft of 1996, §3.2.2: "If a %xx encoded octet is encountered it is
    # unencoded prior to comparison, unless it is the "/" character". "%" has
    # one form, or the bytes of "%252F" would be those of "%2F".
    PathForm.DECODED: (
        _AS_IS | {ord("%"): "%25"},
        _AS_IS | {ord("%"): "%25", ord("/"): "%2F"},
    ),
}
_ENCODED = re.compile("((?:%[0-9A-Fa-f]{2})+)")


class InvalidURL(ValueError):
    """A URL without a valid origin. The message has the reason."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: the scope of one robots.txt (RFC 9309 §2.3).

    The host is lower-case ASCII (IDNA), an IPv6 address without brackets. There is no userinfo.
    """

    stats: ClassVar[str] = "robotstxt"  #: What the stats about the file of an origin begin with.
    refuses: ClassVar[bool] = True  #: Whether pages may be refused if the file is unreachable.

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        """The origin of an absolute http, https or ftp *url*; others raise :exc:`InvalidURL`.

        >>> str(Origin.of("HTTP://user@Example.COM:80/page"))
        'http://example.com'
        """
        text = _strip(url)
        if not _WITH_ROBOTS_TXT.match(text):
            raise InvalidURL(f"{url!r} is not an http, https or ftp URL")
        scheme, host, port = _split(text)
        # If IDNA fails, for example for a label that is too long, the host has no address. Equal
        # spellings must stay equal all the same.
        if not host.isascii():
            with contextlib.suppress(UnicodeError):
                host = host.encode("idna").decode("ascii")
        return cls(scheme, host.lower(), _DEFAULT_PORTS[scheme] if port is None else port)

    @property
    def robots_url(self) -> str:
        """The URL of the robots.txt of this origin."""
        return f"{self}{ROBOTS_TXT}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return f"{self.scheme}://{host}"
        return f"{self.scheme}://{host}:{self.port}"


def has_other_scheme(url: str) -> bool:
    """Whether *url* has a scheme without robots.txt: not http, https or ftp.

    >>> [has_other_scheme(url) for url in ("data:,x", "s3://bucket/key")]
    [True, True]
    >>> [has_other_scheme(url) for url in ("HTTP://example.com", "example.com:80/", "/a")]
    [False, False, False]
    """
    text = _strip(url)
    return bool(_ANY_SCHEME.match(text)) and not _WITH_ROBOTS_TXT.match(text)


#: The sort key for displayed lists of origins.
by_host = attrgetter("host", "scheme", "port")


def _split(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of *url*; raises :exc:`InvalidURL`."""
    try:
        parts = urlsplit(url.replace("\\", "/"))
        port = parts.port
    except ValueError as error:
        raise InvalidURL(f"{url!r} is not a URL: {error}") from None
    if not parts.hostname:
        raise InvalidURL(f"{url!r} has no host")
    return parts.scheme, parts.hostname, port


def path_to_match(url: str | bytes, dialect: Dialect) -> str:
    """The path and query of *url* in the form that *dialect* compares with patterns.

    *url* is absolute, or a path that starts with ``/``; :exc:`InvalidURL` is raised for any
    other, except in the google dialect. The result starts with ``/``.

    >>> from scrapy_rep.rep.dialects import RFC9309
    >>> path_to_match("https://example.com/a/../b c?q=%7e#top", RFC9309)
    '/b%20c?q=~'
    """
    if dialect.path_form is PathForm.VERBATIM:
        return _verbatim_path(_bytes(url))
    path, mark, query = path_as_written(url)
    path = _in_form(path, dialect.path_form)
    if "/." in path:
        path = without_dot_segments(path)
    # RFC 9309 §2.2.2 compares bytes: the "?" of an empty query is one.
    return path + mark + _in_form(query, dialect.path_form)


def path_as_written(url: str | bytes) -> tuple[str, str, str]:
    """The path, the ``?`` and the query of *url* as in :func:`path_to_match`, but as written.

    They have one character per byte.
    """
    text = _strip(_bytes(url))
    if authority := _AUTHORITY.match(text):
        _split(text)
        text = text[authority.end() :]
    elif not text.startswith("/"):
        raise InvalidURL(f"{url!r} is neither an absolute URL nor a path that starts with '/'")
    path, mark, query = text.partition("#")[0].partition("?")
    path = path.replace("\\", "/")
    return path if path.startswith("/") else "/" + path, mark, query


def rest_to_match(rest: str, dialect: Dialect) -> str:
    """:func:`path_to_match` for a URL after its authority; *rest* starts with ``/``."""
    if rest.isascii() and "/." not in rest and not rest.encode().translate(None, _PLAIN):
        return rest
    if dialect.path_form is PathForm.VERBATIM:
        return _bytes(rest).partition("#")[0].partition("\0")[0]
    return path_to_match(rest, dialect)


def site_of(url: str) -> str:
    """Scheme and authority of *url*; "" if clients may read them differently."""
    match = _SITE.match(url)
    return match.group()[:-1] if match and int(match.group(1) or 0) <= 65_535 else ""


def is_robots_txt(url: str | bytes, dialect: Dialect) -> bool:
    """Whether *url* is a robots.txt (RFC 9309 §2.2.2: "is implicitly allowed")."""
    try:
        return dialect.robots_txt_allowed and path_to_match(url, dialect) == ROBOTS_TXT
    except InvalidURL:
        return False


def canonical_patterns(values: Sequence[bytes], dialect: Dialect) -> list[str]:
    """*values* of rules, without white space around them, in the form that *dialect* compares."""
    # Decoding can give a line end.
    if not dialect.wildcards or dialect.path_form is PathForm.DECODED:
        return [_canonical_pattern(value, dialect) for value in values]
    # Most values do not change, so all are checked at once, which is fast.
    together = b"\n".join([b"", *values, b""])
    literal_dollars = together.count(b"$") - together.count(b"$\n")
    if literal_dollars or together.translate(None, _PLAIN_OR_META):
        together = _ODD.sub(
            lambda odd: b"\n" + _canonical_pattern(odd.group(1), dialect).encode("ascii"), together
        )
    return together.decode("ascii").split("\n")[1:-1]


def _canonical_pattern(value: bytes, dialect: Dialect) -> str:
    text = value.decode("latin-1")
    if dialect.path_form is PathForm.VERBATIM:
        return _ESCAPED.sub(_escape, text)
    if not dialect.wildcards:
        return _in_form(text, dialect.path_form)
    core = text.removesuffix("$")
    pieces = [_in_form(piece, dialect.path_form) for piece in core.split("*")]
    return "*".join(pieces) + text[len(core) :]


def _in_form(text: str, form: PathForm) -> str:
    """*text*, one character per byte, in *form*."""
    raw, encoded = _FORMS[form]
    if "%" not in text:
        return text.translate(raw)
    parts = _ENCODED.split(text)
    parts[::2] = [part.translate(raw) for part in parts[::2]]
    for index in range(1, len(parts), 2):
        decoded = bytes.fromhex(parts[index].replace("%", "")).decode("latin-1")
        parts[index] = decoded.translate(encoded)
    return "".join(parts)


def without_dot_segments(path: str) -> str:
    """*path* with ``.`` and ``..`` resolved (RFC 3986 §5.2.4)."""
    resolved: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del resolved[-1:]
        elif segment != ".":
            resolved.append(segment)
    if segments[-1] in (".", ".."):
        resolved.append("")
    return "/" + "/".join(resolved)


def _bytes(url: str | bytes) -> str:
    """*url* as UTF-8 with one character per byte."""
    if isinstance(url, str):
        if url.isascii():
            return url
        url = url.encode("utf-8", "surrogatepass")
    return url.decode("latin-1")


def _strip(url: str) -> str:
    return url.strip(_AROUND).translate(_DROPPED)


# robots.cc, MaybeEscapePattern: "%aa" becomes "%AA", bytes with the highest
# bit set become "%XX", nothing is ever decoded.
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_PATH_START = re.compile(r"[/?;]")


def _escape(match: re.Match[str]) -> str:
    text = match.group()
    return text.upper() if len(text) > 1 else f"%{ord(text):02X}"


def _verbatim_path(url: str) -> str:
    """robots.cc, GetPathParamsQuery: nothing is normalised."""
    start = 2 if url.startswith("//") else 0
    path = _PATH_START.search(url, start)
    scheme_end = url.find("://", start)
    if scheme_end >= 0 and (path is None or path.start() >= scheme_end):
        path = _PATH_START.search(url, scheme_end + 3)
    fragment = url.find("#", start)
    if path is None or 0 <= fragment < path.start():
        return "/"
    # InitUserAgentsAndPath takes a path that ends at its first NUL.
    found = url[path.start() : fragment if fragment >= 0 else None].partition("\0")[0]
    return found if found.startswith("/") else "/" + found
