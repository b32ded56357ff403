"""The tables of the policy cache: every combination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_rep.policies.states import (
    FetchWith,
    State,
    UseStored,
    WaitForPeer,
    after_claim,
    state_of,
)
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import Lease
from tests.policy_examples import NOON, unreachable, with_rules

CURRENT = with_rules(b"")
DUE = replace(CURRENT, due=True)
DOWN = unreachable()
LEASE = Lease(Origin.of("https://example.com/"), "token", NOON)

# Policy, what its lookup does, and the state.
ROWS: list[tuple[Policy | None, State | None, State]] = [
    (None, None, State.UNKNOWN),
    (None, State.LOADING, State.LOADING),
    (None, State.FETCHING, State.FETCHING),
    (CURRENT, None, State.USABLE),
    (CURRENT, State.LOADING, State.REVALIDATING),
    (CURRENT, State.FETCHING, State.REVALIDATING),
    (DUE, None, State.USABLE),
    (DUE, State.LOADING, State.REVALIDATING),
    (DUE, State.FETCHING, State.REVALIDATING),
    (DOWN, None, State.UNREACHABLE),
    (DOWN, State.LOADING, State.UNREACHABLE),
    (DOWN, State.FETCHING, State.UNREACHABLE),
]


@pytest.mark.parametrize(("policy", "lookup", "state"), ROWS)
def test_state(policy: Policy | None, lookup: State | None, state: State) -> None:
    assert state_of(policy, lookup) is state


def test_the_table_has_all_states() -> None:
    assert {row[2] for row in ROWS} == set(State)


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
def test_a_lease_that_is_granted_is_for_a_fetch(waits: int) -> None:
    assert after_claim(None, LEASE, waits) == FetchWith(LEASE)
    assert after_claim(DUE, LEASE, waits) == FetchWith(LEASE)


def test_a_lease_that_is_not_needed_is_given_back() -> None:
    assert after_claim(CURRENT, LEASE, 0) == UseStored(CURRENT, release=LEASE)
    assert after_claim(CURRENT, None, 0) == UseStored(CURRENT, release=None)


def test_a_policy_that_somebody_else_revalidates_is_used_briefly() -> None:
    for waits in (0, 3, 4):
        assert after_claim(DUE, None, waits) == UseStored(DUE, briefly=True)


def test_somebody_elses_fetch_is_waited_for_three_times() -> None:
    steps = [after_claim(None, None, waits) for waits in range(5)]
    assert steps == [WaitForPeer()] * 3 + [FetchWith(None)] * 2
