"""What each specification says, as data."""

from __future__ import annotations

import dataclasses
import math

import pytest

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, MIN_PARSED_SIZE, RFC9309, Dialect


def test_dialects_are_found_by_the_name_they_have() -> None:
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {
        "rfc9309": "rfc9309",
        "google": "google",
        "koster1996": "koster1996",
        "koster1994": "koster1994",
    }


@pytest.mark.clause("Koster 1996 5-2", "RFC 9309 2.5-2")
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_no_dialect_reads_less_than_the_rfc_demands(dialect: Dialect) -> None:
    assert dialect.max_size is None or dialect.max_size >= MIN_PARSED_SIZE


@pytest.mark.clause(
    "Google caching-1", "Koster 1994 method-d2", "Koster 1996 3.4-5", "RFC 9309 2.4-3"
)
def test_how_long_a_copy_is_used() -> None:
    days = {name: dialect.lifetime / 86_400 for name, dialect in DIALECTS.items()}
    assert days == {"rfc9309": 1, "google": 1, "koster1996": 7, "koster1994": math.inf}


def test_a_dialect_is_a_value_that_can_be_varied_but_not_changed() -> None:
    longer = dataclasses.replace(RFC9309, lifetime=2 * RFC9309.lifetime)
    assert longer != RFC9309
    with pytest.raises(dataclasses.FrozenInstanceError):
        GOOGLE.lifetime = 0  # type: ignore[misc]
