"""The delay after an answer: each case of the table."""

from __future__ import annotations

import pytest

from scrapy_rep.throttling.backoff import LONGEST_GUESS, Backoff

NOW = 1000.0
FINE = Backoff()
LONGEST = 60.0


def slow(delay: float) -> Backoff:
    """A site that is slow since a while."""
    return Backoff(delay, NOW - 50)


@pytest.mark.parametrize(
    ("before", "status", "retry_after", "asked", "delay"),
    [
        # Without Retry-After: from one second on, doubled.
        (FINE, 429, 0, 0, 1),
        (FINE, 503, 0, 0, 1),
        (slow(1), 429, 0, 0, 2),
        (slow(2), 503, 0, 0, 4),
        (slow(10), 503, 0, 0, LONGEST_GUESS),
        (slow(16), 503, 0, 0, 16),
        # A longer Retry-After stays.
        (slow(40), 503, 0, 0, 40),
        # Twice what robots.txt asks for.
        (FINE, 429, 0, 0.25, 1),
        (FINE, 429, 0, 3, 6),
        (slow(6), 429, 0, 3, 12),
        (FINE, 429, 0, 30, LONGEST_GUESS),
        # With Retry-After: that, bounded.
        (FINE, 429, 3, 0, 3),
        (FINE, 503, 0.5, 0, 0.5),
        (FINE, 503, 3600, 0, LONGEST),
        (slow(2), 429, 3, 0, 3),
        (slow(8), 429, 3, 0, 8),
        # Fine answers: half, until it is less than a second or than robots.txt asks for.
        (slow(16), 200, 0, 0, 8),
        (slow(3), 304, 0, 0, 1.5),
        (slow(2), 404, 0, 0, 1),
        (slow(1.5), 200, 0, 0, 0),
        (slow(1), 301, 0, 0, 0),
        (slow(12), 200, 0, 3, 6),
        (slow(6), 200, 0, 3, 0),
        (FINE, 200, 0, 0, 0),
        # On those, Retry-After is about something else.
        (slow(8), 301, 30, 0, 4),
        # Other failures say nothing about the pace.
        (slow(8), 500, 0, 0, 8),
        (slow(8), 502, 30, 0, 8),
        (FINE, 504, 0, 0, 0),
    ],
)
def test_the_delay_after_an_answer(
    before: Backoff, status: int, retry_after: float, asked: float, delay: float
) -> None:
    after = before.after(status, retry_after, NOW - 1, NOW, asked=asked, longest=LONGEST)
    assert after.delay == delay
    assert after.since == (before.since if delay == before.delay else NOW)


def test_the_setting_bounds_what_is_guessed_too() -> None:
    assert FINE.after(503, 0, NOW, NOW, asked=0, longest=0.2).delay == 0.2


@pytest.mark.parametrize("status", [429, 503, 200])
def test_answers_to_requests_from_before_a_change_say_nothing_new(status: int) -> None:
    changed = Backoff(4.0, NOW - 5)
    assert changed.after(status, 0, NOW - 5.1, NOW, asked=0, longest=LONGEST) is changed
    assert changed.after(status, 0, NOW - 5, NOW, asked=0, longest=LONGEST) is not changed


def test_but_a_longer_retry_after_counts() -> None:
    changed = Backoff(4.0, NOW - 5)
    assert changed.after(429, 9, NOW - 6, NOW, asked=0, longest=LONGEST).delay == 9
