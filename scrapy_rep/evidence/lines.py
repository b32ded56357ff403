"""What the lines of an audit log say, as values that JSON can hold.

Whether a line is true is for :mod:`.verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Verdict

if TYPE_CHECKING:
    from scrapy_rep.settings import RepSettings

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
        "headers": result.headers,
        "via": result.via,
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
    stored, outage = (
        {**each, "result": read_result(each["result"], bodies)} if each else None
        for each in (fields["copy"], fields["outage"])
    )
    return CacheEntry(
        origin,
        stored=StoredResponse(**stored) if stored else None,
        outage=Outage(**outage) if outage else None,
    )


# -- decisions -----------------------------------------------------------------------


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """*verdict*, without what is empty in it, its origin and its age."""
    decisive = verdict.rule or verdict.record
    fields = {
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "rule": decisive and str(decisive),
        "line": verdict.line,
        "group": verdict.group[:_MOST_NAMES],
        "merged": verdict.merged,
        "sent_as": verdict.sent_as,
        "detail": verdict.detail,
    }
    return {name: value for name, value in fields.items() if value or name == "allowed"}


def policy_fields(policy: Policy, rests_on: str | None, settings: RepSettings) -> dict[str, Any]:
    """*policy*, which rests on the line with the digest *rests_on*."""
    return {
        "origin": str(policy.origin),
        "fetched_at": policy.fetched_at,
        "sha256": policy.file and digest_of_body(policy.file.body),
        "rests_on": rests_on,
        "overrides": overrides_of(policy, settings.status_overrides, settings.max_size),
    }


def overrides_of(
    policy: Policy, status_overrides: Mapping[int, Access], max_size: int
) -> list[str]:
    """The settings by which *policy* is another one than the standard says."""
    last, file = policy.stored.result if policy.stored else policy.entry.last, policy.file
    is_unreachable = policy.access is Access.UNREACHABLE
    applies = {
        "REP_STATUS_OVERRIDES": last.failure is None and last.status in status_overrides,
        "REP_UNREACHABLE": is_unreachable and policy.when_unreachable is WhenUnreachable.ALLOW,
        "REP_MAX_SIZE": file is not None and (file.cut or len(file.body) > max_size),
    }
    return [name for name, value in applies.items() if value]
