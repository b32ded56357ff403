"""The access result of a fetch (RFC 9309 §2.3.1), from its status or failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ..dialects import Access, Dialect
from ..parsing.lines import within_limit

#: Names, in lower case, and values.
Headers = tuple[tuple[str, str], ...]
#: Access results of statuses, from ``REP_STATUS_OVERRIDES``.
Overrides = Mapping[int, Access] | None


class Failure(Enum):
    """Why a fetch has no final response."""

    NO_ANSWER = "no answer"  #: No connection, no name, a reset, a broken body, a timeout, …
    #: §2.3.1.2: more redirects in a row than the limit, or a loop.
    TOO_MANY_REDIRECTS = "too many redirects"
    REDIRECT_TO_OTHER_SCHEME = "redirect to another scheme"  #: From http or https to another one.


@dataclass(frozen=True, slots=True)
class FetchResult:
    """How a fetch of robots.txt ended.

    *url* is the last one requested, after *redirects* redirects. *status* is the HTTP status of
    the last response, if there was one; *failure* is set if that response is not final. *body* has
    no Content-Encoding; *cut* says that it is incomplete. *detail* is a description that is safe to
    print. *headers* are the headers of the last response that concern HTTP caching.
    """

    url: str
    status: int | None = None
    body: bytes = b""
    redirects: int = 0
    failure: Failure | None = None
    detail: str = ""
    headers: Headers = ()
    cut: bool = False
    #: For each redirect that was followed, the headers that determine its lifetime.
    via: tuple[Headers, ...] = ()
    user_agent: str = ""  #: The User-Agent that was sent; empty if unknown.

    def size_to_read(self, max_size: int) -> int:
        """How many bytes of the body are parsed if *max_size* is the limit."""
        # The last line of a cut body is incomplete. The limit of that crawl may have been smaller.
        return min(max_size, max(len(self.body) - self.cut, 0))

    def body_to_read(self, max_size: int) -> bytes:
        """The whole lines in these bytes."""
        return within_limit(self.body, self.size_to_read(max_size))


def access_result(result: FetchResult, dialect: Dialect, overrides: Overrides = None) -> Access:
    """The access result of *result* in *dialect*."""
    if result.failure in (Failure.TOO_MANY_REDIRECTS, Failure.REDIRECT_TO_OTHER_SCHEME):
        return dialect.too_many_redirects
    if result.failure is not None or result.status is None:
        return dialect.otherwise
    if overrides and result.status in overrides:
        return overrides[result.status]
    accesses = (access for statuses, access in dialect.statuses if result.status in statuses)
    return next(accesses, dialect.otherwise)
