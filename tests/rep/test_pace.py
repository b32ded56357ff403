"""How fast and when a site wants to be visited."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.pace import Pace
from scrapy_rep.rep.records import RequestRate, TimeWindow
from scrapy_rep.rep.robotstxt import RobotsTxt

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
