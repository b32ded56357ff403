"""The log line about requests that wait for long."""

from __future__ import annotations

import logging

import pytest

from scrapy_rep.holding.progress import Progress
from scrapy_rep.rep.parsing.urls import Origin

SLOW, OTHER = Origin.of("http://slow.example/"), Origin.of("http://other.example/")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO)
    return Clock()


def test_after_ten_seconds_and_each_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress(None, clock)
    progress.begin(SLOW)
    lines: list[int] = []
    for second in range(132):
        clock.now = 1_000.0 + second
        if second == 5:
            progress.begin(OTHER)
        progress.tell(7)
        if len(caplog.messages) > len(lines):
            lines.append(second)
    assert lines == [10, 70, 130]
    assert caplog.messages[0] == (
        "requests waiting for a robots.txt or their turn: 7 "
        "(origins: 2; for longest, 10 s: http://slow.example)"
    )


def test_none_for_what_is_over(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress(None, clock)
    progress.begin(SLOW)
    clock.now += 30
    progress.end(SLOW)
    progress.tell(0)
    assert caplog.messages == []
    # The next one has not waited for long.
    progress.begin(OTHER)
    progress.tell(1)
    clock.now += 9
    progress.tell(1)
    assert caplog.messages == []
    clock.now += 2
    progress.tell(1)
    assert "11 s: http://other.example" in caplog.text


def test_the_one_that_waits_for_longest_of_those_that_do(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    progress = Progress(None, clock)
    progress.begin(SLOW)
    clock.now += 2
    progress.begin(OTHER)
    progress.end(SLOW)
    clock.now += 10
    progress.tell(1)
    assert "origins: 1; for longest, 10 s: http://other.example" in caplog.text
