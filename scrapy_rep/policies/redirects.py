"""Where a redirect leads, and whether to follow it (RFC 9309 §2.3.1.2).

Here may live: the decision about the next hop, from an answer and the hops so far. Here may
not live: requests and downloads.
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
    """To *url*, which is asked next, unless there is a *failure*."""

    url: str
    failure: Failure | None = None


def next_hop(
    status: int, location: str | None, hops: Sequence[str], max_redirects: int
) -> Redirect | None:
    """What follows from an answer with *status* and *location*; ``None`` if it is the last.

    *hops* are the URLs asked so far, the one that gave this answer at the end. *location* is
    the header's value, its bytes as Latin-1.
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
    """Where the answer to *url* redirects to; ``None`` where it does not.

    Without userinfo and fragment. Any scheme, but if http or https, a URL that can be asked.
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
    """Whether *url*, a hop of the robots.txt of *origin*, gives up its https."""
    return origin.scheme == "https" and urlsplit(url).scheme != "https"


def may_authenticate(url: str, origin: Origin, http_auth_domain: str | None) -> bool:
    """Whether a request for *url*, a hop of the robots.txt of *origin*, may have credentials.

    Not for another origin, unless *http_auth_domain* says for which; and never in plain text
    where the origin is https, whatever it says.
    """
    if is_downgrade(url, origin):
        return False
    return bool(http_auth_domain) or _is_same_site(Origin.of(url), origin)


def _is_same_site(first: Origin, second: Origin) -> bool:
    """Whether both are of one site, whatever file of it they are about."""
    sites = [(each.scheme, each.host, each.port) for each in (first, second)]
    return sites[0] == sites[1]
