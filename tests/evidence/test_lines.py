"""What the lines of an audit log say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scrapy_rep.evidence import lines
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from tests.policy_examples import NOON, unreachable, with_rules

ORIGIN = Origin.of("https://example.com/")
BODIES = {lines.digest_of_body(body): body for body in (b"User-agent: *\n", b"\xff\0")}
FILE = FetchResult(
    ORIGIN.robots_url,
    200,
    b"User-agent: *\n",
    redirects=2,
    detail="status 200",
    headers=(("etag", '"é"'), ("vary", "a")),
    cut=True,
    via=((("age", "1"),), ()),
    user_agent="ExampleBot/1.0",
)
FAILED = FetchResult(ORIGIN.robots_url, failure=Failure.NO_ANSWER, detail="time-out")


@pytest.mark.parametrize(
    "entry",
    [
        CacheEntry(ORIGIN, StoredResponse(FILE, NOON, NOON + 0.1)),
        CacheEntry(ORIGIN, outage=Outage(FAILED, NOON, NOON + 1 / 3, 2)),
        CacheEntry(
            ORIGIN,
            StoredResponse(replace(FILE, body=b"\xff\0"), NOON, NOON),
            Outage(replace(FAILED, status=503, failure=None), NOON, NOON, 1),
        ),
        CacheEntry(ORIGIN, StoredResponse(replace(FILE, body=b""), NOON, NOON)),
    ],
)
def test_an_entry_is_read_as_it_was_written(entry: CacheEntry) -> None:
    fields = json.loads(json.dumps(lines.entry_fields(entry)))
    assert lines.read_entry(ORIGIN, fields, BODIES.__getitem__) == entry


def test_a_body_that_nobody_has_is_not_read() -> None:
    entry = CacheEntry(ORIGIN, StoredResponse(FILE, NOON, NOON))
    nobody: dict[str, bytes] = {}
    with pytest.raises(LookupError):
        lines.read_entry(ORIGIN, lines.entry_fields(entry), nobody.__getitem__)


def test_a_verdict_says_which_line_decides() -> None:
    policy = with_rules(b"User-agent: ExampleBot\nUser-agent: *\nDisallow: /no\x1b\n")
    refused = policy.verdict("https://example.com/no%1B", "ExampleBot", NOON)
    assert lines.verdict_fields(refused) == {
        "allowed": False,
        "reason": "rule",
        "rule": "Disallow: /no\\x1b",
        "line": 3,
        "group": (("ExampleBot", 1),),
    }
    allowed = policy.verdict("https://example.com/", "OtherBot", NOON)
    assert lines.verdict_fields(allowed) == {
        "allowed": True,
        "reason": "no-rule",
        "group": (("*", 2),),
    }


def test_a_group_of_thousands_of_names_does_not_fill_the_line() -> None:
    policy = with_rules(b"User-agent: ExampleBot\n" * 20_000 + b"Disallow: /\n")
    verdict = policy.verdict("https://example.com/", "ExampleBot", NOON)
    assert len(verdict.group) == 20_000
    assert len(json.dumps(lines.verdict_fields(verdict))) < 1_000


def answered(status: int, access: Access, failure: Failure | None = None) -> Policy:
    result = FetchResult(ORIGIN.robots_url, status, failure=failure)
    stored = StoredResponse(result, NOON, NOON)
    entry = CacheEntry(ORIGIN, stored)
    return replace(with_rules(b""), rules=None, access=access, entry=entry, stored=stored)


@pytest.mark.parametrize(
    ("policy", "overrides"),
    [
        (with_rules(b"x" * 10), []),
        (with_rules(b"x" * 11), ["REP_MAX_SIZE"]),
        (with_rules(b"x", cut=True), ["REP_MAX_SIZE"]),
        (unreachable(), []),
        (replace(unreachable(), when_unreachable=WhenUnreachable.ALLOW), ["REP_UNREACHABLE"]),
        (answered(404, Access.UNAVAILABLE), []),
        (answered(403, Access.DISALLOWED), ["REP_STATUS_OVERRIDES"]),
        (answered(403, Access.UNAVAILABLE, Failure.TOO_MANY_REDIRECTS), []),
    ],
)
def test_settings_that_override_the_standard_are_named(
    policy: Policy, overrides: list[str]
) -> None:
    status_overrides = {403: Access.DISALLOWED}
    assert lines.overrides_of(policy, status_overrides, max_size=10) == overrides
