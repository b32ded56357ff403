"""The tables of the policy cache: every combination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_rep.policies.states import (
    Action,
    FetchWith,
    Phase,
    State,
    Stored,
    UseStored,
    WaitForPeer,
    action_for,
    after_claim,
    lease_seconds,
    state_of,
    stored,
)
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import MAX_LEASE, Lease
from tests.policy_examples import NOON, unreachable, with_rules

CURRENT = with_rules(b"")
DUE = replace(CURRENT, due=True)
DOWN = unreachable()
LEASE = Lease(Origin.of("https://example.com/"), "token", NOON)

# Policy, phase and whether it is due; then the state, and what a request makes the cache do.
ROWS: list[tuple[Policy | None, Phase | None, bool, State, Action]] = [
    (None, None, False, State.UNKNOWN, Action.START),
    (None, Phase.LOADING, False, State.LOADING, Action.WAIT),
    (None, Phase.FETCHING, False, State.FETCHING, Action.WAIT),
    (None, Phase.WRITING, False, State.FETCHING, Action.WAIT),
    (CURRENT, None, False, State.USABLE, Action.USE),
    (CURRENT, Phase.LOADING, False, State.REVALIDATING, Action.USE),
    (CURRENT, Phase.FETCHING, False, State.REVALIDATING, Action.USE),
    (CURRENT, Phase.WRITING, False, State.REVALIDATING, Action.USE),
    (DUE, None, True, State.USABLE, Action.USE_AND_REVALIDATE),
    # Somebody else revalidates it, and it is not yet time to look for the outcome.
    (DUE, None, False, State.USABLE, Action.USE),
    # One revalidation at a time.
    (DUE, Phase.LOADING, True, State.REVALIDATING, Action.USE),
    (DUE, Phase.FETCHING, True, State.REVALIDATING, Action.USE),
    (DUE, Phase.WRITING, True, State.REVALIDATING, Action.USE),
    (DOWN, None, False, State.UNREACHABLE, Action.USE),
    (DOWN, Phase.LOADING, False, State.UNREACHABLE, Action.USE),
    (DOWN, Phase.FETCHING, False, State.UNREACHABLE, Action.USE),
    (DOWN, Phase.WRITING, False, State.UNREACHABLE, Action.USE),
]


@pytest.mark.parametrize(("policy", "phase", "is_due", "state", "action"), ROWS)
def test_state_and_action(
    policy: Policy | None, phase: Phase | None, is_due: bool, state: State, action: Action
) -> None:
    assert state_of(policy, phase) is state
    assert action_for(policy, phase, is_due=is_due) is action


def test_the_table_has_all_combinations() -> None:
    known = [CURRENT, DOWN, None]
    combinations = {(known.index(row[0]), row[1]) for row in ROWS if row[0] is not DUE}
    assert len(combinations) == len(known) * (len(Phase) + 1)
    assert {row[3] for row in ROWS} == set(State)
    assert {row[4] for row in ROWS} == set(Action)


def test_how_far_a_policy_can_be_used() -> None:
    assert stored(None) is Stored.NOTHING
    assert stored(DUE) is Stored.DUE
    assert stored(CURRENT) is Stored.CURRENT


@pytest.mark.parametrize("waits", [0, 2, 3, 4])
def test_a_lease_that_is_granted_is_for_a_fetch(waits: int) -> None:
    assert after_claim(Stored.NOTHING, LEASE, waits) == FetchWith(LEASE)
    assert after_claim(Stored.DUE, LEASE, waits) == FetchWith(LEASE)


def test_a_lease_that_is_not_needed_is_given_back() -> None:
    assert after_claim(Stored.CURRENT, LEASE, 0) == UseStored(release=LEASE)
    assert after_claim(Stored.CURRENT, None, 0) == UseStored(release=None)


def test_a_policy_that_somebody_else_revalidates_is_used_briefly() -> None:
    for waits in (0, 3, 4):
        assert after_claim(Stored.DUE, None, waits) == UseStored(briefly=True)


def test_somebody_elses_fetch_is_waited_for_three_times() -> None:
    steps = [after_claim(Stored.NOTHING, None, waits) for waits in range(5)]
    assert steps == [WaitForPeer()] * 3 + [FetchWith(None)] * 2


def test_a_lease_lasts_as_long_as_a_fetch_may_with_its_time_in_queues() -> None:
    assert lease_seconds(15) == 30
    assert lease_seconds(MAX_LEASE) == MAX_LEASE
