"""The access result of a fetch (RFC 9309 §2.3.1), from its status or failure.

Here may not live: how a robots.txt is fetched, and for how long the result may be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ..dialects import Access, Dialect

#: Names, in lower case, and values.
Headers = tuple[tuple[str, str], ...]


class Failure(Enum):
    """Why a fetch has no final answer."""

    #: No connection, no name, a reset, a broken body, a timeout, …
    NO_ANSWER = "no answer"
    #: §2.3.1.2: more redirects in a row than the limit, or a loop.
    TOO_MANY_REDIRECTS = "too many redirects"
    #: A redirect from http or https to something else.
    REDIRECT_TO_OTHER_SCHEME = "redirect to another scheme"


@dataclass(frozen=True, slots=True)
class FetchResult:
    """How a fetch of robots.txt ended.

    *url* is the last one requested, after *redirects* hops; *status* the HTTP status of the last
    answer, if there was one; *failure* is set if that is not the final answer. *body* is decoded
    (no Content-Encoding); *cut* says that it is not whole. *detail* is text for people, safe to
    print. *headers* are those of the last answer that are about HTTP caching.
    """

    url: str
    status: int | None = None
    body: bytes = b""
    redirects: int = 0
    failure: Failure | None = None
    detail: str = ""
    headers: Headers = ()
    cut: bool = False
    #: The headers of each redirect on the way that determine its lifetime.
    via: tuple[Headers, ...] = ()
    #: The User-Agent that was sent; empty if unknown.
    user_agent: str = ""


def access_result(
    result: FetchResult, dialect: Dialect, overrides: Mapping[int, Access] | None = None
) -> Access:
    """The access result of *result* in *dialect*; *overrides* are access results by status."""
    if result.failure in (Failure.TOO_MANY_REDIRECTS, Failure.REDIRECT_TO_OTHER_SCHEME):
        return dialect.too_many_redirects
    if result.failure is not None or result.status is None:
        return dialect.otherwise
    if overrides and result.status in overrides:
        return overrides[result.status]
    accesses = (access for statuses, access in dialect.statuses if result.status in statuses)
    return next(accesses, dialect.otherwise)
