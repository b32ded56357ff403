"""Who sees what a crawl learns and decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_rep.observers.observer import Observer, Observers
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from tests.policy_examples import with_rules

POLICY = with_rules(b"")
REQUEST = Request("https://example.com/")
YES = Verdict(True, Reason.NO_RULE)
NO = Verdict(False, Reason.UNREACHABLE)


class Sees(Observer):
    """Remembers what it is told."""

    def __init__(self, *, observes_allowed: bool) -> None:
        self.observes_allowed = observes_allowed
        self.seen: list[object] = []

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        self.seen.append((policy, result, seconds))

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        self.seen.append((request, policy, agents, verdict))


class Fails(Sees):
    """Raises whatever it is told."""

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        raise RuntimeError("cannot \x1b[2J learn")

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        raise RuntimeError("cannot \x1b[2J see")


def test_all_are_told_what_is_learned_and_refused_and_some_what_is_allowed() -> None:
    everything, refused = Sees(observes_allowed=True), Sees(observes_allowed=False)
    observers = Observers(Crawler(Spider), [everything, refused])
    observers.on_policy(POLICY, None, 0.0)
    observers.on_decision(REQUEST, POLICY, ("x",), YES)
    observers.on_decision(REQUEST, None, (), NO)
    assert refused.seen == [(POLICY, None, 0.0), (REQUEST, None, (), NO)]
    assert everything.seen == [
        (POLICY, None, 0.0),
        (REQUEST, POLICY, ("x",), YES),
        (REQUEST, None, (), NO),
    ]


@pytest.mark.parametrize("anybody", [True, False])
def test_it_is_known_whether_anybody_watches_what_is_allowed(anybody: bool) -> None:
    observers = [Sees(observes_allowed=False), Sees(observes_allowed=anybody)]
    assert Observers(Crawler(Spider), observers).observe_allowed is anybody
    assert not Observers(Crawler(Spider)).observe_allowed


def test_one_that_raises_is_logged_once_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    other = Sees(observes_allowed=True)
    observers = Observers(Crawler(Spider), [Fails(observes_allowed=True), other])
    for _ in range(3):
        observers.on_policy(POLICY, None, 0.0)
        observers.on_decision(REQUEST, POLICY, (), YES)
    assert len(other.seen) == 6
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info
    assert record.getMessage().startswith(
        f"{__name__}.Fails failed (RuntimeError: cannot \\x1b[2J learn)"
    )
