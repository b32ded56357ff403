"""What is done with a request: a table of all that may meet."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from scrapy_rep.rep.decision import Admit, Hold, Refuse, RequestFacts, decide, verdict_now
from scrapy_rep.rep.dialects import GOOGLE, KOSTER1994, RFC9309, Dialect
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from tests.decision_cases import (
    AGENTS,
    CASES,
    DEFERRED,
    HOUR,
    MAX_WAIT,
    NO_TRAINING,
    OPENS_LATER,
    RULES,
    SITE,
    Case,
    asking_for,
    shown,
)
from tests.policy_examples import NOON


def test_every_combination() -> None:
    wrong = [
        (case.path, case.held_for, case.until_open, case.expected, shown(case.decision))
        for case in CASES
        if shown(case.decision) != case.expected
    ]
    assert wrong == []


def test_the_table_has_every_answer() -> None:
    kinds = {case.expected.split(" ")[0].rstrip(":") for case in CASES}
    assert kinds == {"admit", "refuse", "hold", "fetch"}
    assert len(CASES) == len(set(map(repr, CASES)))


def test_the_verdict_of_a_refusal_is_complete() -> None:
    facts = RequestFacts(f"{SITE}/no", AGENTS)
    decision = decide(RULES, facts, CASES[0].terms, NOON + 90)
    assert decision.verdict == RULES.verdict(f"{SITE}/no", AGENTS, NOON + 90)  # type: ignore[union-attr]
    assert decision.verdict.age == 90  # type: ignore[union-attr]
    assert decision.verdict.line == 2  # type: ignore[union-attr]


def test_a_policy_that_has_just_expired_is_used() -> None:
    """It was fetched for those that wait for it, however short its lifetime is."""
    expired = replace(RULES, until=NOON - 1)
    assert decide(expired, RequestFacts(f"{SITE}/yes", AGENTS), CASES[0].terms, NOON) == Admit()


def test_a_deferring_policy_that_has_expired_is_fetched_again_at_once() -> None:
    expired = replace(DEFERRED, until=NOON - 1)
    held = decide(expired, RequestFacts(f"{SITE}/yes", AGENTS), CASES[0].terms, NOON)
    assert isinstance(held, Hold)
    assert held.until <= NOON


@pytest.mark.parametrize("held_since", [None, NOON, NOON + HOUR])
def test_no_hold_is_longer_than_the_limit(held_since: float | None) -> None:
    """Also by a clock that was set back."""
    far = replace(DEFERRED, until=NOON + 10 * MAX_WAIT)
    facts = RequestFacts(f"{SITE}/yes", AGENTS, held_since)
    held = decide(far, facts, CASES[0].terms, NOON)
    assert isinstance(held, Hold)
    assert held.until == NOON + MAX_WAIT


def test_a_site_that_opens_at_the_last_moment() -> None:
    opens = asking_for("Visit-time: 1000-1100")
    case = Case(opens, "/yes", "hold 7200 s: visit-time", until_open=True)
    assert MAX_WAIT == 7200
    assert shown(case.decision) == case.expected


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE, KOSTER1994], ids=lambda each: each.name)
def test_whether_robots_txt_itself_is_allowed_is_for_the_dialect_to_say(dialect: Dialect) -> None:
    facts = RequestFacts(f"{SITE}/robots.txt", AGENTS)
    terms = replace(CASES[0].terms, dialect=dialect)
    expected = "admit" if dialect.robots_txt_allowed else f"fetch {SITE}"
    assert shown(decide(None, facts, terms, NOON)) == expected


@pytest.mark.parametrize("case", [case for case in CASES if case.held_for is None])
def test_verdict_now_is_what_is_decided(case: Case) -> None:
    if case.policy is None:
        return
    verdict = verdict_now(case.policy, case.url, AGENTS, case.terms, NOON)
    if case.expected.endswith("visit-time") and case.expected.startswith("hold"):
        # It will be let through, if not now.
        assert verdict.allowed
    else:
        assert verdict.allowed is case.expected.startswith("admit")
    if not verdict.allowed:
        assert verdict.reason.value == case.expected.split(": ")[1]


def test_verdict_now_of_what_is_refused_beyond_rules() -> None:
    for policy, reason in [(NO_TRAINING, Reason.PURPOSE), (OPENS_LATER, Reason.VISIT_TIME)]:
        verdict = verdict_now(policy, f"{SITE}/yes", AGENTS, CASES[0].terms, NOON)
        assert verdict.reason is reason


def test_decisions_are_values() -> None:
    assert Admit() == Admit()
    with pytest.raises(FrozenInstanceError):
        Refuse(Verdict(False, Reason.RULE)).verdict = Verdict(True, Reason.RULE)  # type: ignore[misc]
