"""What the result of a fetch means, and what it lets a crawler do.

Here may live: RFC 9309 §2.3.1, from status or failure to an access result.
Here may not live: how a robots.txt is fetched, and for how long the result
may be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from .dialects import Access, Dialect

#: RFC 9309 §2.3.1.2: "at least five consecutive redirects" are followed.
MAX_REDIRECTS = 5


class Failure(Enum):
    """Why a fetch has no final answer."""

    #: No connection, no name, a reset, a broken body, a time-out, …
    NO_ANSWER = "no answer"
    #: §2.3.1.2: more than five redirects in a row, or a loop of them.
    TOO_MANY_REDIRECTS = "too many redirects"
    #: A redirect from http or https to something else.
    REDIRECT_TO_OTHER_SCHEME = "redirect to another scheme"


_FAILURES = {
    Failure.NO_ANSWER: Access.UNREACHABLE,
    # §2.3.1.2: then "crawlers MAY assume that the robots.txt is unavailable".
    Failure.TOO_MANY_REDIRECTS: Access.UNAVAILABLE,
    Failure.REDIRECT_TO_OTHER_SCHEME: Access.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class FetchResult:
    """How a fetch of robots.txt ended.

    *url* is the last one asked, after *redirects* hops; *status* the HTTP
    status of the last answer, if there was one; *failure* is set where that
    answer is not the final one. *body* is decoded (no Content-Encoding), and
    has more octets than the limit where it was cut. *detail* is text for
    people, safe to print.
    """

    url: str
    status: int | None = None
    body: bytes = b""
    redirects: int = 0
    failure: Failure | None = None
    detail: str = ""


def access_result(
    result: FetchResult, dialect: Dialect, overrides: Mapping[int, Access] | None = None
) -> Access:
    """What *result* means in *dialect*; *overrides* replace it by status."""
    if result.failure is not None:
        return _FAILURES[result.failure]
    if result.status is None:
        return Access.UNREACHABLE
    if overrides and result.status in overrides:
        return overrides[result.status]
    for statuses in dialect.statuses:
        if statuses.first <= result.status <= statuses.last:
            return statuses.access
    # §2.3.1.4, 500-599; and what the standard leaves undefined (304 unasked,
    # a redirect to nowhere): what cannot be understood cannot allow anything.
    return Access.UNREACHABLE
