"""The warning about origins whose rules would take too long to try."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_rep.observers import matching_limit
from scrapy_rep.observers.matching_limit import MatchingLimit
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.matching import MOST_PIECES
from tests.policy_examples import NOON, with_rules

RULES = "\n".join(f"Disallow: /*abcd*{number:03x}" for number in range(MOST_PIECES // 2 + 1))
BODY = f"User-agent: *\nDisallow: /no\n{RULES}\n".encode()


def refuse(observer: MatchingLimit, policy: Policy, path: str) -> None:
    request = Request(f"{policy.origin}{path}")
    verdict = policy.verdict(request.url, ("ExampleBot",), NOON)
    assert not verdict.allowed
    observer.on_decision(request, policy, ("ExampleBot",), verdict)


def test_there_is_one_warning_for_each_origin(caplog: pytest.LogCaptureFixture) -> None:
    observer = MatchingLimit(Crawler(Spider))
    one, other = with_rules(BODY), with_rules(BODY, "https://other")
    observer.on_policy(one, None, 0.0)
    with caplog.at_level(logging.WARNING):
        for policy in (one, one, other):
            for path in ("/no", "/abcd/1", "/abcd/2"):
                refuse(observer, policy, path)
    assert [record.getMessage().partition(" because ")[0] for record in caplog.records] == [
        "Refused https://example.com/abcd/1",
        "Refused https://other/abcd/1",
    ]
    assert "https://example.com/robots.txt" in caplog.messages[0]
    assert caplog.messages[0].endswith("scrapy robots fetch https://example.com")


def test_of_many_origins_some_are_forgotten(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching_limit, "_MAX_ORIGINS", 2)
    observer = MatchingLimit(Crawler(Spider))
    policies = [with_rules(BODY, f"https://h{number}") for number in range(3)]
    for policy in (*policies, policies[2], policies[0]):
        refuse(observer, policy, "/abcd")
    # The third one makes room, so the first one is forgotten, and the third is not.
    warned = [message.partition("/abcd")[0] for message in caplog.messages]
    assert warned == [f"Refused https://h{number}" for number in (0, 1, 2, 0)]
