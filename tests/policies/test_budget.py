"""The time that a fetch may take."""

from __future__ import annotations

from scrapy_rep.policies.download import Budget


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_runs_down_only_while_it_is_on() -> None:
    clock = Clock()
    budget = Budget(15, clock)
    clock.now += 100
    assert budget.left == 15
    budget.start()
    clock.now += 4
    assert budget.left == 11
    budget.stop()
    clock.now += 100
    assert budget.left == 11


def test_it_does_not_start_anew() -> None:
    clock = Clock()
    budget = Budget(15, clock)
    for _ in range(5):
        budget.start()
        clock.now += 4
        budget.start()
        budget.stop()
        budget.stop()
    assert budget.left == -5
