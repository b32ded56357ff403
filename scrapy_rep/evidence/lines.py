"""What the lines of an audit log say, as values that JSON can hold.

Here may live: the fields of each kind of line, written and read. Here may not live: files, and
whether a line is true (:mod:`.verify`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Verdict

#: The version of the format.
FORMAT = 1

# The kinds of lines.
START = "start"
FETCH = "fetch"
STORED = "stored"
DECISION = "decision"
END = "end"

# What a request with this meta key is admitted for, without a look at any robots.txt.
DONT_OBEY = "dont_obey_robotstxt"

# A hostile file may have tens of thousands of user-agent lines in a group.
_MOST_NAMES = 10
#: The body with a SHA-256. Raises :exc:`LookupError` if nobody has it.
Bodies = Callable[[str], bytes]


class NotAsClaimed(Exception):
    """A line of a log does not follow; the message says why."""


def digest_of_body(body: bytes) -> str:
    """The SHA-256 of *body*, in hexadecimal digits."""
    return sha256(body).hexdigest()


# -- results of fetches, and what they add up to ------------------------------------


def result_fields(result: FetchResult) -> dict[str, Any]:
    """*result* without its body, of which the digest and the size are given."""
    return {
        "url": result.url,
        "status": result.status,
        "sha256": digest_of_body(result.body),
        "size": len(result.body),
        "cut": result.cut,
        "redirects": result.redirects,
        "failure": result.failure and result.failure.value,
        "detail": result.detail,
        "headers": [list(field) for field in result.headers],
        "via": [[list(field) for field in headers] for headers in result.via],
        "user_agent": result.user_agent,
    }


def read_result(fields: Mapping[str, Any], bodies: Bodies) -> FetchResult:
    """The result of which :func:`result_fields` made *fields*."""
    return FetchResult(
        url=fields["url"],
        status=fields["status"],
        body=bodies(fields["sha256"]) if fields["size"] else b"",
        redirects=fields["redirects"],
        failure=Failure(fields["failure"]) if fields["failure"] else None,
        detail=fields["detail"],
        headers=_headers(fields["headers"]),
        cut=fields["cut"],
        via=tuple(map(_headers, fields["via"])),
        user_agent=fields["user_agent"],
    )


def _headers(fields: list[list[str]]) -> Headers:
    return tuple((name, value) for name, value in fields)


def entry_fields(entry: CacheEntry) -> dict[str, Any]:
    """*entry* without its bodies and its origin."""
    stored, outage = entry.stored, entry.outage
    return {
        "copy": stored
        and {
            "result": result_fields(stored.result),
            "fetched_at": stored.fetched_at,
            "confirmed_at": stored.confirmed_at,
        },
        "outage": outage
        and {
            "result": result_fields(outage.result),
            "since": outage.since,
            "last_at": outage.last_at,
            "attempts": outage.attempts,
        },
    }


def read_entry(origin: Origin, fields: Mapping[str, Any], bodies: Bodies) -> CacheEntry:
    """The entry of *origin* of which :func:`entry_fields` made *fields*."""
    stored, outage = fields["copy"], fields["outage"]
    return CacheEntry(
        origin,
        stored
        and StoredResponse(
            read_result(stored["result"], bodies), stored["fetched_at"], stored["confirmed_at"]
        ),
        outage
        and Outage(
            read_result(outage["result"], bodies),
            outage["since"],
            outage["last_at"],
            outage["attempts"],
        ),
    )


# -- decisions -----------------------------------------------------------------------


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """*verdict*, without what is empty in it, its origin and its age."""
    fields: dict[str, Any] = {"allowed": verdict.allowed, "reason": verdict.reason.value}
    if verdict.rule is not None:
        fields["rule"] = str(verdict.rule)
        fields["line"] = verdict.rule.line
    elif verdict.record is not None:
        fields["rule"] = str(verdict.record)
        fields["line"] = verdict.record.line
    if verdict.group:
        fields["group"] = verdict.group[:_MOST_NAMES]
    if verdict.merged:
        fields["merged"] = True
    if verdict.sent_as:
        fields["sent_as"] = verdict.sent_as
    if verdict.detail:
        fields["detail"] = verdict.detail
    return fields


def overrides_of(
    policy: Policy, status_overrides: Mapping[int, Access], max_size: int
) -> list[str]:
    """The settings by which *policy* is another one than the standard says."""
    found = []
    last = policy.stored.result if policy.stored is not None else policy.entry.last
    if last.failure is None and last.status in status_overrides:
        found.append("REP_STATUS_OVERRIDES")
    is_unreachable = policy.access is Access.UNREACHABLE
    if is_unreachable and policy.when_unreachable is WhenUnreachable.ALLOW:
        found.append("REP_UNREACHABLE")
    is_file = policy.access is Access.SUCCESSFUL and policy.stored is not None
    if is_file and (last.cut or len(last.body) > max_size):
        found.append("REP_MAX_SIZE")
    return found
