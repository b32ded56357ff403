"""The target of a redirect, and whether to follow it (RFC 9309 §2.3.1.2).

Pure functions of a response and the hops so far. They send no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

from w3lib.url import safe_url_string

from scrapy_rep.rep.caching.access import Failure
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SCHEMES = ("http", "https")


@dataclass(frozen=True, slots=True)
class Redirect:
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
    """The URL to which the response for *url* redirects; ``None`` if it does not redirect.

    It has no userinfo and no fragment. An http or https URL is valid; other schemes are possible.
    """
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

    Another origin gets none, unless *http_auth_domain* is set. If the origin is https, they are
    never sent in plain text.
    """
    if is_downgrade(url, origin):
        return False
    return bool(http_auth_domain) or _is_same_site(Origin.of(url), origin)


def _is_same_site(first: Origin, second: Origin) -> bool:
    """Whether both are of one site, whatever file of it they are about."""
    sites = [(each.scheme, each.host, each.port) for each in (first, second)]
    return sites[0] == sites[1]
