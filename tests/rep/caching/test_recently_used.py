"""The bounds in number and in size."""

from __future__ import annotations

from scrapy_rep.rep.caching.recently_used import RecentlyUsed


def of_sizes(*sizes: int, room: int = 100, most: int | None = None) -> RecentlyUsed[int, bytes]:
    """The values 0, 1, …, each with its size, added in this order."""
    values: RecentlyUsed[int, bytes] = RecentlyUsed(len, room, most)
    for key, size in enumerate(sizes):
        values.put(key, bytes(size))
    return values


def test_at_most_so_many_values() -> None:
    values = of_sizes(5, 6, 7, most=2)
    assert list(values) == [1, 2]
    assert values.taken == 13


def test_any_number_by_default() -> None:
    assert len(of_sizes(*[0] * 50)) == 50


def test_at_most_so_much_in_all_and_no_more_is_removed_than_necessary() -> None:
    assert list(of_sizes(40, 40, 20)) == [0, 1, 2]
    values = of_sizes(40, 40, 21)
    assert list(values) == [1, 2]
    assert values.taken == 61
    assert list(of_sizes(10, 10, 90)) == [1, 2]


def test_the_least_recently_used_value_is_removed() -> None:
    values = of_sizes(40, 40)
    assert values.use(0) == bytes(40)
    values.put(2, bytes(40))
    assert list(values) == [0, 2]


def test_a_replaced_value_counts_once_and_as_used() -> None:
    values = of_sizes(30, 40)
    values.put(0, bytes(50))
    assert values.taken == 90
    values.put(2, bytes(30))
    assert dict(values) == {0: bytes(50), 2: bytes(30)}
    assert values.taken == 80


def test_a_value_may_be_replaced_when_there_is_no_room() -> None:
    values = of_sizes(50, 50, most=2)
    values.put(0, bytes(50))
    assert list(values) == [1, 0]


def test_the_value_that_was_added_last_stays_whatever_its_size() -> None:
    values = of_sizes(40, 101)
    assert list(values) == [1]
    assert values.taken == 101
    values.put(0, bytes(1))
    assert list(values) == [0]
    assert values.taken == 1


def test_a_key_without_a_value() -> None:
    values = of_sizes(1)
    assert values.use(1) is None
    assert list(values) == [0]
