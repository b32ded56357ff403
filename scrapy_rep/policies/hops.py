"""The hops of a fetch: from the responses of servers to its result (RFC 9309 §2.3.1.2).

Only values and pure functions. They send no requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

from w3lib.url import safe_url_string

from scrapy_rep.policies.decompress import decompress
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.freshness import KEPT_HEADERS, of_lifetime
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin
from scrapy_rep.rep.text import printable

#: The most bytes of headers that are stored: a download handler may return megabytes.
MAX_KEPT = 7 * 1024
# A longer Content-Encoding header is an error.
_MAX_ENCODING = 1024
# The colon, the space and the line end of a header.
_AROUND = 4
# It is read first, because a redirect needs it.
_LOCATION = "location"
# RFC 9111 §4.2.1: "the most restrictive directive should be honored". It may be among
# those that did not fit.
_MOST_RESTRICTIVE = ("cache-control", "no-cache")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SCHEMES = ("http", "https")

#: Returns the values of all headers with a name in lower case.
Lines = Callable[[str], Iterable[bytes]]


class Answer(NamedTuple):
    """A response. *is_cut*: we stopped reading the body. *is_broken*: the connection closed."""

    status: int
    lines: Lines
    body: bytes
    encoding: bytes
    is_cut: bool
    is_broken: bool

    def read(self, max_size: int) -> tuple[bytes, bool]:
        """The decoded body up to *max_size* bytes and one more, and whether it is cut.

        Raises :exc:`FetchFailed`.
        """
        # RFC 9309 §2.3.1.3, §2.3.1.4: for other responses, only the status counts, even if their
        # body is broken.
        if not 200 <= self.status < 300:
            return b"", False
        if self.is_broken:
            raise FetchFailed("the connection closed before the end of the body")
        if len(self.encoding) > _MAX_ENCODING:
            raise FetchFailed(f"the Content-Encoding header has more than {_MAX_ENCODING} bytes")
        encodings = self.encoding.decode("latin-1").split(",")
        # One byte more shows whether the body is longer.
        limit = max_size + 1
        body = decompress(self.body, encodings, limit, cut=self.is_cut)[:limit]
        return body, self.is_cut or len(body) == limit


@dataclass(slots=True)
class Hops:
    """The responses of one fetch so far, up to *max_redirects* and *max_size* bytes of the body."""

    #: The URLs requested so far, and the next one.
    urls: list[str]
    max_redirects: int
    max_size: int
    #: For each redirect that was followed, the headers that determine its lifetime.
    via: list[Headers] = field(default_factory=list)

    def add(self, answer: Answer, user_agent: str) -> FetchResult | None:
        """The result, if *answer* is the last one; ``None`` if a redirect leads to another URL.

        *user_agent* is the one that was sent. Raises :exc:`FetchFailed` if the body cannot be read.
        """
        location, headers = keep(answer.lines)
        redirect = next_hop(answer.status, location, self.urls, self.max_redirects)
        url, count = self.urls[-1], len(self.urls)
        if redirect is None:
            body, is_cut = answer.read(self.max_size)
            return FetchResult(
                url,
                answer.status,
                body,
                redirects=count - 1,
                detail=f"status {answer.status}",
                headers=headers,
                cut=is_cut,
                via=tuple(self.via),
                user_agent=user_agent,
            )
        if redirect.failure is not None:
            detail = f"{count} redirects, the last one to {printable(redirect.url)}"
            return FetchResult(url, answer.status, b"", count, redirect.failure, detail)
        self.via.append(of_lifetime(headers))
        self.urls.append(redirect.url)
        return None


# -- headers ----------------------------------------------------------------------


def keep(lines: Lines) -> tuple[str | None, Headers]:
    """The Location, and the headers for caching, with names in lower case.

    Headers that do not fit are ignored, and can never extend the lifetime of a response.
    """
    left = MAX_KEPT
    kept: list[tuple[str, str]] = []
    is_cut = False
    for name in (_LOCATION, *sorted(KEPT_HEADERS)):
        for value in lines(name):
            size = len(name) + len(value) + _AROUND
            if size > left:
                is_cut = True
                break
            left -= size
            kept.append((name, value.decode("latin-1")))
    location = next((value for name, value in kept if name == _LOCATION), None)
    headers = tuple(field for field in kept if field[0] != _LOCATION)
    return location, (*headers, _MOST_RESTRICTIVE) if is_cut else headers


# -- redirects --------------------------------------------------------------------


class Redirect(NamedTuple):
    """A redirect to *url*, which is requested next unless there is a *failure*."""

    url: str
    failure: Failure | None = None


def next_hop(
    status: int, location: str | None, hops: Sequence[str], max_redirects: int
) -> Redirect | None:
    """The redirect in a response with *status* and *location*; ``None`` if it is not a redirect.

    *hops* are the URLs requested so far, the URL of this response last. *location* is the value of
    the header, decoded as Latin-1.
    """
    url = _target(status, location, hops[-1])
    if url is None:
        return None
    if urlsplit(url).scheme not in _SCHEMES:
        return Redirect(url, Failure.REDIRECT_TO_OTHER_SCHEME)
    if url in hops or len(hops) > max_redirects:
        return Redirect(url, Failure.TOO_MANY_REDIRECTS)
    return Redirect(url)


def _target(status: int, location: str | None, url: str) -> str | None:
    """The target without userinfo and fragment: a valid http or https URL, or another scheme."""
    if status not in _REDIRECTS or not location:
        return None
    try:
        target = urldefrag(urljoin(url, safe_url_string(location.encode("latin-1"))))[0]
        parts = urlsplit(target)
        if parts.scheme not in _SCHEMES:
            return target
        origin = Origin.of(target)
    except (InvalidURL, ValueError):
        return None
    return f"{origin}{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def is_downgrade(url: str, origin: Origin) -> bool:
    """Whether *url*, a hop of the robots.txt of *origin*, leaves https."""
    return origin.scheme == "https" and urlsplit(url).scheme != "https"


def may_authenticate(url: str, origin: Origin, http_auth_domain: str | None) -> bool:
    """Whether a request for *url*, a hop of the robots.txt of *origin*, may have credentials.

    Another site gets none, unless *http_auth_domain* is set. If the origin is https, they are
    never sent in plain text.
    """
    if is_downgrade(url, origin):
        return False
    # The file may be another one than the robots.txt.
    site = Origin(origin.scheme, origin.host, origin.port)
    return bool(http_auth_domain) or Origin.of(url) == site
