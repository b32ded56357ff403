"""The fuzzer's targets hold for what it begins with, on every Python."""

from __future__ import annotations

import pytest

from tests.fuzz.targets import TARGETS

SEEDS = [(name, seed) for name, target in TARGETS.items() for seed in target.seeds]


@pytest.mark.parametrize(
    ("name", "seed"), SEEDS, ids=[f"{name}-{number}" for number, (name, _) in enumerate(SEEDS)]
)
def test_a_seed_holds(name: str, seed: bytes) -> None:
    target = TARGETS[name]
    assert len(seed) <= target.longest
    target.check(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_stands_next_to_nothing(name: str) -> None:
    for data in (b"", b"\0", b"\n", b"\n\n\n", b"\xff" * 64):
        TARGETS[name].check(data)
