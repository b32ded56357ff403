"""How fast and when a site wants to be visited."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.rep.directives.pace import Pace
from scrapy_rep.rep.parsing.records import RequestRate, TimeWindow
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

DAY = 86_400.0
NOON = 20_000 * DAY + 12 * 3600


def pace(*lines: str) -> Pace:
    others = ["Disallow: /no", "User-agent: Other", "Crawl-delay: 1000"]
    body = "\n".join(["User-agent: *", *lines, *others])
    return Pace.of(RobotsTxt.parse(body.encode()).records_for("ExampleBot"))


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ([], 0.0),
        (["Crawl-delay: 2.5"], 2.5),
        (["Crawl-delay: 2", "Crawl-delay: 7", "Crawl-delay: 5"], 7.0),
        (["Crawl-delay: 0"], 0.0),
        (["Crawl-delay: -1"], 0.0),
        (["Crawl-delay: 10s"], 0.0),
        (["Request-rate: 4/1m"], 15.0),
        (["Request-rate: 4/1m", "Request-rate: 1/20"], 20.0),
        (["Request-rate: 4/1m", "Crawl-delay: 16"], 16.0),
        (["Request-rate: 4/1m", "Crawl-delay: 14"], 15.0),
        (["Request-rate: 1/9 1200-1259"], 9.0),
        (["Request-rate: 1/9 1300-1159"], 0.0),
        (["Request-rate: 1/9 2200-1159", "Request-rate: 1/3"], 3.0),
        (["Noindex: /a", "Content-Signal: search=no", "Visit-time: 0000-0100"], 0.0),
    ],
)
def test_the_delay(lines: list[str], delay: float) -> None:
    assert pace(*lines).delay(NOON) == delay


def test_the_delay_depends_on_the_time_of_the_day() -> None:
    rates = (RequestRate(1, 60.0, TimeWindow(8 * 60, 17 * 60 + 59)), RequestRate(1, 2.0))
    delays = [Pace(rates=rates).delay(NOON + hours * 3600) for hours in (-5, 0, 5.99, 6, 24)]
    assert delays == [2.0, 60.0, 60.0, 2.0, 60.0]


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([], 0.0),
        (["Visit-time: 1200-1300"], 0.0),
        (["Visit-time: 1100-1200"], 0.0),
        (["Visit-time: 1201-1300"], 60.0),
        (["Visit-time: 1100-1159"], 23 * 3600.0),
        (["Visit-time: 1100-1159", "Visit-time: 1800-1900"], 6 * 3600.0),
        (["Visit-time: 1100-1159", "Visit-time: 2300-1200"], 0.0),
        (["Visit-time: at night"], 0.0),
    ],
)
def test_when_it_is_open(lines: list[str], seconds: float) -> None:
    assert pace(*lines).seconds_until_open(NOON) == seconds


_MINUTES_OF_DAY = st.integers(0, 1439)
_WINDOWS = st.builds(TimeWindow, _MINUTES_OF_DAY, _MINUTES_OF_DAY)
_SECONDS = st.floats(0, 2 * DAY)


@given(
    rates=st.lists(
        st.builds(RequestRate, st.integers(1, 9), st.integers(1, 9), st.none() | _WINDOWS)
    ),
    now=_SECONDS,
)
def test_the_delay_is_the_longest_of_the_rates_that_hold(
    rates: list[RequestRate], now: float
) -> None:
    minute = now % DAY / 60
    hold = [rate for rate in rates if rate.window is None or rate.window.contains(minute)]
    found = Pace(rates=tuple(rates)).delay(now)
    assert found == max((rate.delay for rate in hold), default=0.0)


@given(windows=st.lists(_WINDOWS), now=_SECONDS)
def test_it_opens_when_the_first_window_does(windows: list[TimeWindow], now: float) -> None:
    waits = [window.seconds_until_open(now % DAY) for window in windows]
    assert Pace(visit_times=tuple(windows)).seconds_until_open(now) == min(waits, default=0.0)


def test_of_many_times_the_first_are_shown() -> None:
    times = tuple(TimeWindow(minute, minute) for minute in range(12))
    shown = "00:00-00:00 UTC, 00:01-00:01 UTC"
    assert Pace(visit_times=times[:2]).times == shown
    assert Pace(visit_times=times[:10]).times.startswith(shown)
    assert Pace(visit_times=times[:10]).times.endswith("00:09-00:09 UTC")
    assert Pace(visit_times=times).times.endswith("00:09-00:09 UTC and 2 more")


def test_records_are_read_once_however_many_requests_there_are() -> None:
    windows = (TimeWindow(0, 0), TimeWindow(1, 1))
    found = Pace(rates=(RequestRate(1, 9.0, windows[0]),), visit_times=windows)
    with patch.object(TimeWindow, "contains", side_effect=AssertionError):
        assert [found.delay(second) for second in (0, 59.9, 60)] == [9.0, 9.0, 0.0]
        assert [found.seconds_until_open(second) for second in (119.9, 120)] == [0, DAY - 120]
