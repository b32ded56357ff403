"""The next step after a claim: every combination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_rep.policies.states import Step, after_claim
from tests.policy_examples import with_rules

CURRENT = with_rules(b"")
DUE = replace(CURRENT, due=True)


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
def test_a_lease_that_is_granted_is_for_a_fetch(waits: int) -> None:
    assert after_claim(None, waits, granted=True) is Step.FETCH
    assert after_claim(DUE, waits, granted=True) is Step.FETCH


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
def test_what_the_store_has_is_used(waits: int) -> None:
    assert after_claim(CURRENT, waits, granted=True) is Step.USE_STORED
    assert after_claim(CURRENT, waits, granted=False) is Step.USE_STORED


def test_a_policy_that_somebody_else_revalidates_is_used() -> None:
    for waits in (0, 3, 4):
        assert after_claim(DUE, waits, granted=False) is Step.USE_STORED


def test_somebody_elses_fetch_is_waited_for_three_times() -> None:
    steps = [after_claim(None, waits, granted=False) for waits in range(5)]
    assert steps == [Step.WAIT_FOR_PEER] * 3 + [Step.FETCH] * 2
