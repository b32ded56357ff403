"""The hops of a fetch: from the responses of servers to its result (RFC 9309 §2.3.1.2).

Only values and pure functions. They send no requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from w3lib.url import safe_url_string

from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.decompress import decompress
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.freshness import KEPT_HEADERS, of_lifetime
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

#: The most bytes of headers that are stored: a download handler may return megabytes.
MAX_KEPT = 7 * 1024
# A longer Content-Encoding header is an error.
_MAX_ENCODING = 1024
# RFC 9111 §4.2.1: "the most restrictive directive should be honored". It may be among
# those that did not fit.
_MOST_RESTRICTIVE = ("cache-control", "no-cache")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SCHEMES = ("http", "https")


@dataclass(slots=True)
class Hops:
    """The hops of one fetch so far, with at most *max_redirects* and *max_size* bytes of body."""

    #: The URLs requested so far, and the next one.
    urls: list[str]
    max_redirects: int
    max_size: int
    #: For each redirect that was followed, the headers that determine its lifetime.
    via: list[Headers] = field(default_factory=list)

    def add(self, exchange: Exchange) -> FetchResult | None:
        """The result, if *exchange* is the last one; ``None`` if a redirect leads to another URL.

        Raises :exc:`FetchFailed` if the body cannot be read.
        """
        url, count, response = self.urls[-1], len(self.urls), exchange.response
        location, headers = keep(response.headers.getlist)
        target = target_of(response.status, location, url)
        if target is None:
            body, is_cut = _read(exchange, self.max_size)
            return FetchResult(
                url,
                response.status,
                body,
                redirects=count - 1,
                detail=f"status {response.status}",
                headers=headers,
                cut=is_cut,
                via=tuple(self.via),
                user_agent=user_agent_of(exchange.request),
            )
        if failure := self._failure(target):
            detail = f"{count} redirects, the last one to {printable(target)}"
            return FetchResult(url, response.status, b"", count, failure, detail)
        self.via.append(of_lifetime(headers))
        self.urls.append(target)
        return None

    def _failure(self, target: str) -> Failure | None:
        """Why *target* is not requested."""
        if urlsplit(target).scheme not in _SCHEMES:
            return Failure.REDIRECT_TO_OTHER_SCHEME
        if target in self.urls or len(self.urls) > self.max_redirects:
            return Failure.TOO_MANY_REDIRECTS
        return None


def keep(values_of: Callable[[str], list[bytes]]) -> tuple[str | None, Headers]:
    """The Location, and the headers for caching, with names in lower case.

    *values_of* returns the values of a header. Headers that do not fit are ignored, and can never
    extend the lifetime of a response.
    """
    kept: dict[str, list[str]] = {}
    left, is_cut = MAX_KEPT, False
    # The Location is first, because a redirect needs it.
    for name in ("location", *sorted(KEPT_HEADERS)):
        kept[name] = []
        for value in values_of(name):
            size = len(f"{name}: \r\n") + len(value)
            if size > left:
                is_cut = True
                break
            left -= size
            kept[name].append(value.decode("latin-1"))
    locations = kept.pop("location")
    headers = tuple((name, value) for name, values in kept.items() for value in values)
    return locations[0] if locations else None, (*headers, _MOST_RESTRICTIVE) if is_cut else headers


def target_of(status: int, location: str | None, url: str) -> str | None:
    """The target of a redirect from *url*, without userinfo and fragment; ``None`` if invalid.

    *location* is the header, decoded as Latin-1.
    """
    if status not in _REDIRECTS or not location:
        return None
    try:
        target = urljoin(url, safe_url_string(location.encode("latin-1")))
        parts = urlsplit(target)
        if parts.scheme not in _SCHEMES:
            return target
        query = f"?{parts.query}" if parts.query else ""
        return f"{Origin.of(target)}{parts.path or '/'}{query}"
    except ValueError:
        return None


def _read(exchange: Exchange, max_size: int) -> tuple[bytes, bool]:
    """The decoded body up to *max_size* bytes and one more, and whether it is cut."""
    response, encoding, is_cut = exchange.response, exchange.content_encoding, exchange.is_cut
    # RFC 9309 §2.3.1.3, §2.3.1.4: for other responses, only the status counts, even if their
    # body is broken.
    if not 200 <= response.status < 300:
        return b"", False
    if "dataloss" in response.flags:
        raise FetchFailed("the connection closed before the end of the body")
    if "download_stopped" in response.flags and not is_cut:
        raise FetchFailed("an extension raised StopDownload")
    if len(encoding) > _MAX_ENCODING:
        raise FetchFailed(f"the Content-Encoding header has more than {_MAX_ENCODING} bytes")
    # One byte more shows whether the body is longer.
    limit = max_size + 1
    body = decompress(response.body, encoding.decode("latin-1").split(","), limit, cut=is_cut)
    return body, is_cut or len(body) == limit


def user_agent_of(request: Request) -> str:
    """The User-Agent header of *request*; after it was sent, the one that was sent."""
    return (request.headers.get("User-Agent") or b"").decode("utf-8", "replace")


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
