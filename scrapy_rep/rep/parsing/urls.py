"""Origins, and the form of a path in which URLs and patterns are compared.

Here may live: everything that looks inside a URL or a path pattern. Here may
not live: which of several patterns wins (:mod:`.matching`).

Canonical form (RFC 9309 §2.2.2, used by dialects with ``PathForm.CANONICAL``)
is the same for a URL and for the literal parts of a pattern: ASCII only; an
byte is either itself or ``%XX`` in upper case, never both. A literal ``*`` or
``$`` is always ``%2A`` or ``%24``, so that in a canonical pattern ``*`` is a
wildcard and ``$`` an anchor wherever they stand.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from ..dialects import Dialect, PathForm
from .lines import WHITE_SPACE

#: Where the rules of an origin are (RFC 9309 §2.3).
ROBOTS_TXT = "/robots.txt"

_LAST_PORT = 65_535
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
# How URLs begin that have a robots.txt (RFC 9309 §2.3 names HTTP and FTP as examples), and
# how those do that can be requested at all: localhost:8000/page has no scheme.
_WITH_ROBOTS_TXT = re.compile(f"(?:{'|'.join(_DEFAULT_PORTS)}):", re.ASCII | re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://|(?i:about|data):")

# The URL standard: controls and spaces around a URL are no part of it, tabs
# and newlines inside it are dropped, and what is not ASCII is UTF-8.
_AROUND = "".join(map(chr, range(0x21)))
_DROPPED = {ord(character): None for character in "\t\n\r"}

# Scheme and authority; "\" begins and ends an authority as "/" does, as in browsers. Without
# a scheme, what starts with "//" is a path.
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}[^/\\?#]*")

# Where what a URL is about is plain to see, and no client reads it otherwise.
_SITE = re.compile(r"https?://[A-Za-z0-9.\-]+(?::([0-9]{1,5}))?/")

# RFC 3986 §2.3, unreserved: means the same encoded or not, so is decoded.
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
# RFC 3986 §2.2, reserved: "%2F" is not "/", so these keep the form they have.
# Left out: "'", "[" and "]", which clients encode at some places and not at
# others; "*" and "$", which have a meaning in patterns; "#", the fragment.
_KEPT = "!&()+,/:;=?@"


#: The bytes that are the same in every form, in a URL and in a pattern. What follows the
#: authority in a URL is the path to match as it stands if it has no others and no "/." in it.
PLAIN = (_UNRESERVED + _KEPT).encode("ascii")
_PLAIN_OR_META = PLAIN + b"*$\n"
# Of values between line ends, one that has others, after its line end.
_ODD = re.compile(b"\n(?![*%b]*[$]?\n)(.+)" % re.escape(PLAIN))


class _Form(NamedTuple):
    """A table for bytes that stand as they are, one for percent-encoded ones."""

    raw: dict[int, str]
    encoded: dict[int, str]


def _canonical_form() -> _Form:
    encoded = {byte: f"%{byte:02X}" for byte in range(256)}
    # A "%" that begins no encoded byte stays as clients send it.
    raw = encoded | {ord(character): character for character in _UNRESERVED + _KEPT + "%"}
    return _Form(raw, encoded | {ord(character): character for character in _UNRESERVED})


def _decoded_form() -> _Form:
    # The draft of 1996, §3.2.2: "If a %xx encoded byte is encountered it is
    # unencoded prior to comparison, unless it is the "/" character". "%" keeps
    # one form, or the bytes of "%252F" would be those of "%2F".
    same = {byte: chr(byte) for byte in range(256)} | {ord("%"): "%25"}
    return _Form(same, same | {ord("/"): "%2F"})


_FORMS = {PathForm.CANONICAL: _canonical_form(), PathForm.DECODED: _decoded_form()}
_ENCODED = re.compile("((?:%[0-9A-Fa-f]{2})+)")


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
        text = _strip(url)
        if not _WITH_ROBOTS_TXT.match(text):
            raise InvalidURL(f"{url!r} is no http, https or ftp URL")
        scheme, host, port = _split(text)
        return cls(scheme, _ascii_host(host), _DEFAULT_PORTS[scheme] if port is None else port)

    @property
    def robots_url(self) -> str:
        """The URL of the robots.txt that holds for this origin."""
        return f"{self}{ROBOTS_TXT}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return f"{self.scheme}://{host}"
        return f"{self.scheme}://{host}:{self.port}"


def has_other_scheme(url: str) -> bool:
    """Whether *url* has a scheme of which no URL has a robots.txt: not http, https or ftp.

    >>> [has_other_scheme(url) for url in ("data:,x", "s3://bucket/key")]
    [True, True]
    >>> [has_other_scheme(url) for url in ("HTTP://example.com", "example.com:80/", "/a")]
    [False, False, False]
    """
    text = _strip(url)
    return bool(_ANY_SCHEME.match(text)) and not _WITH_ROBOTS_TXT.match(text)


def by_host(origin: Origin) -> tuple[str, str, int]:
    """The key by which lists of origins are sorted for people."""
    return origin.host, origin.scheme, origin.port


def _split(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of *url*; raises :exc:`InvalidURL`."""
    try:
        parts = urlsplit(url.replace("\\", "/"))
        port = parts.port
    except ValueError as error:
        raise InvalidURL(f"{url!r} is no URL: {error}") from None
    if not parts.hostname:
        raise InvalidURL(f"{url!r} names no host")
    return parts.scheme, parts.hostname, port


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
    form that *dialect* compares and starts with ``/``. Raises
    :exc:`InvalidURL` for anything else, but in dialects that take URLs as they
    come.

    >>> from scrapy_rep.rep.dialects import RFC9309
    >>> path_to_match("https://example.com/a/../b c?q=%7e#top", RFC9309)
    '/b%20c?q=~'
    """
    text = _bytes(url)
    if dialect.path_form is PathForm.VERBATIM:
        return _verbatim_path(text)
    text = _strip(text)
    authority = _AUTHORITY.match(text)
    if authority:
        _split(text)
        text = text[authority.end() :]
    elif not text.startswith("/"):
        raise InvalidURL(f"{url!r} is neither an absolute URL nor a path that starts with '/'")
    return _normal(text, _FORMS[dialect.path_form])


def rest_to_match(rest: str, dialect: Dialect) -> str:
    """The same for what follows the authority in a URL, which starts with ``/``."""
    plain = rest.isascii() and not rest.encode().translate(None, PLAIN)
    if plain and "/." not in rest:
        return rest
    text = _bytes(rest)
    if dialect.path_form is PathForm.VERBATIM:
        return _c_string(text.partition("#")[0])
    return _normal(_strip(text), _FORMS[dialect.path_form])


def site_of(url: str) -> str:
    """Scheme and authority of *url*, where they and a slash after them are plain to see, else "".

    Of every URL that begins with both, :func:`rest_to_match` tells the path.
    """
    match = _SITE.match(url)
    return match.group()[:-1] if match and int(match.group(1) or 0) <= _LAST_PORT else ""


def is_robots_txt(url: str | bytes, dialect: Dialect) -> bool:
    """Whether *url* may be accessed because it is that of the robots.txt itself.

    RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed."
    """
    try:
        return dialect.robots_txt_allowed and path_to_match(url, dialect) == ROBOTS_TXT
    except InvalidURL:
        return False


def canonical_patterns(values: Sequence[bytes], dialect: Dialect) -> list[str]:
    """The values of rules in the form that *dialect* compares.

    White space around them does not count. In the result, where *dialect* has
    wildcards, ``*`` is one, and ``$`` an anchor where it comes last.
    """
    # What is decoded may have a line end in it.
    if not dialect.wildcards or dialect.path_form is PathForm.DECODED:
        return [_canonical_pattern(value.strip(WHITE_SPACE), dialect) for value in values]
    # Of most files no value needs work, and of the others few do: quick to see of all
    # at once. No value has a line end in it, and none gets one.
    together = b"\n".join([b"", *values, b""])
    literal_dollars = together.count(b"$") - together.count(b"$\n")
    if literal_dollars or together.translate(None, _PLAIN_OR_META):
        together = b"\n".join([b"", *[value.strip(WHITE_SPACE) for value in values], b""])
        together = _ODD.sub(
            lambda odd: b"\n" + _canonical_pattern(odd.group(1), dialect).encode("ascii"), together
        )
    return together.decode("ascii").split("\n")[1:-1]


def _canonical_pattern(value: bytes, dialect: Dialect) -> str:
    text = value.decode("latin-1")
    if dialect.path_form is PathForm.VERBATIM:
        return _ESCAPED.sub(_escape, text)
    form = _FORMS[dialect.path_form]
    if not dialect.wildcards:
        return _in_form(text, form)
    anchor = "$" if text.endswith("$") else ""
    if anchor:
        text = text[:-1]
    return "*".join([_in_form(piece, form) for piece in text.split("*")]) + anchor


# -- canonical and decoded form -----------------------------------------------


def _in_form(text: str, form: _Form) -> str:
    """*text*, one character a byte, in *form*."""
    if "%" not in text:
        return text.translate(form.raw)
    parts = _ENCODED.split(text)
    parts[::2] = [part.translate(form.raw) for part in parts[::2]]
    parts[1::2] = [_unquoted(part).translate(form.encoded) for part in parts[1::2]]
    return "".join(parts)


def _unquoted(encoded: str) -> str:
    """*encoded*, which is all ``%XX``, as the bytes that it stands for."""
    return bytes.fromhex(encoded.replace("%", "")).decode("latin-1")


def _normal(rest: str, form: _Form) -> str:
    path, mark, query = rest.partition("#")[0].partition("?")
    path = _in_form(path.replace("\\", "/"), form)
    if not path.startswith("/"):
        path = "/" + path
    if "/." in path:
        path = _without_dot_segments(path)
    # RFC 9309 §2.2.2 compares bytes: the "?" of an empty query is one.
    return path + mark + _in_form(query, form)


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


def _bytes(url: str | bytes) -> str:
    """*url* with one character a byte, what is not ASCII in UTF-8."""
    if isinstance(url, str):
        if url.isascii():
            return url
        url = url.encode("utf-8", "surrogatepass")
    return url.decode("latin-1")


def _strip(url: str) -> str:
    return url.strip(_AROUND).translate(_DROPPED)


# -- verbatim form: the reference library -------------------------------------

# robots.cc, MaybeEscapePattern: "%aa" becomes "%AA", bytes with the highest
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
    found = _c_string(url[path.start() : fragment if fragment >= 0 else None])
    return found if found.startswith("/") else "/" + found


def _c_string(path: str) -> str:
    """robots.cc, InitUserAgentsAndPath, takes a path that ends at its first NUL."""
    return path.partition("\0")[0]
