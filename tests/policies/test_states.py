"""The next step after a claim: every combination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_rep.policies.states import FetchWith, UseStored, WaitForPeer, after_claim
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import Lease
from tests.policy_examples import NOON, with_rules

CURRENT = with_rules(b"")
DUE = replace(CURRENT, due=True)
LEASE = Lease(Origin.of("https://example.com/"), "token", NOON)


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
def test_a_lease_that_is_granted_is_for_a_fetch(waits: int) -> None:
    for policy in (None, DUE):
        step = after_claim(policy, LEASE, waits)
        assert isinstance(step, FetchWith)
        assert step.lease is LEASE


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
@pytest.mark.parametrize("lease", [LEASE, None])
def test_what_the_store_has_is_used(waits: int, lease: Lease | None) -> None:
    step = after_claim(CURRENT, lease, waits)
    assert isinstance(step, UseStored)
    assert step.policy is CURRENT


def test_a_policy_that_somebody_else_revalidates_is_used() -> None:
    for waits in (0, 3, 4):
        step = after_claim(DUE, None, waits)
        assert isinstance(step, UseStored)
        assert step.policy is DUE


def test_somebody_elses_fetch_is_waited_for_three_times() -> None:
    steps = [after_claim(None, None, waits) for waits in range(5)]
    assert [type(step) for step in steps] == [WaitForPeer] * 3 + [FetchWith] * 2
    assert steps[3:] == [FetchWith(None)] * 2
