"""Plain words beside the terms of RFC 9309 and of this package."""

from __future__ import annotations

import time

from scrapy_rep.observers.report.model import UNKNOWN
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.rules.verdict import Reason

#: What is done with requests to an origin whose robots.txt is unreachable.
WHEN_UNREACHABLE = {
    WhenUnreachable.DISALLOW.value: "all requests refused",
    WhenUnreachable.DEFER.value: "all requests held",
    WhenUnreachable.ALLOW.value: "all requests allowed",
}

#: What a reason for a refusal means.
REASONS = {
    Reason.RULE.value: "a rule in robots.txt",
    Reason.MATCHING_LIMIT.value: "matching its rules would take too long",
    Reason.UNREACHABLE.value: "robots.txt cannot be fetched",
    Reason.DISALLOWED.value: "the answer to the robots.txt request",
    Reason.OTHER_PARSER.value: "the configured parser",
    Reason.UNREADABLE.value: "no parser could read robots.txt",
    Reason.INVALID_URL.value: "the URL is not valid",
    Reason.OTHER_SCHEME.value: "the URL has no robots.txt",
    Reason.PURPOSE.value: "the purpose of the crawl",
    Reason.VISIT_TIME.value: "the time of the day",
}


def access_meanings(when_unreachable: str) -> dict[str, str]:
    """What each access result means, in the order of the chart."""
    return {
        Access.SUCCESSFUL.value: "its rules apply",
        Access.UNAVAILABLE.value: "no usable robots.txt, all requests allowed",
        Access.DISALLOWED.value: "all requests refused",
        Access.UNREACHABLE.value: f"cannot be fetched, {WHEN_UNREACHABLE[when_unreachable]}",
        UNKNOWN: "must be fetched first",
    }


def because(reason: Reason, detail: str) -> str:
    """Why a request was refused for *reason*, of which *detail* is known."""
    words = REASONS.get(reason.value, reason.value)
    return f"{words} ({detail})" if detail else words


def moment(at: float) -> str:
    """The time *at* in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
