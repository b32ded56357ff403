"""The effect of Crawl-delay, Request-rate and Visit-time at a given time.

:mod:`.records` has their syntax. None of the three is a standard. A Crawl-delay is the time from
the end of one download to the start of the next, as Yandex documented it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from ..parsing.records import OtherRecord, RequestRate, TimeWindow
from ..text import listed

_MINUTES = 24 * 60
_DAY = _MINUTES * 60.0


@dataclass(frozen=True)
class Pace:
    """The delays and times of some records. Times are in seconds, *now* since the epoch.

    A file may have tens of thousands of such records, and each request needs the result. So it
    is computed once, for each minute of the day.
    """

    crawl_delay: float = 0.0
    rates: tuple[RequestRate, ...] = ()
    visit_times: tuple[TimeWindow, ...] = ()

    @classmethod
    def of(cls, records: Iterable[OtherRecord]) -> Pace:
        """The pace by *records*, which apply to us. Of several Crawl-delays, the longest counts."""
        values = [record.value for record in records]
        return cls(
            # A number is the value of a Crawl-delay only.
            max((value for value in values if isinstance(value, float)), default=0.0),
            tuple(value for value in values if isinstance(value, RequestRate)),
            tuple(value for value in values if isinstance(value, TimeWindow)),
        )

    def delay(self, now: float) -> float:
        """The seconds between two requests; 0 without a delay."""
        if not self.rates:
            return self.crawl_delay
        return max(self.crawl_delay, self._delays[int(now % _DAY / 60)])

    def seconds_until_open(self, now: float) -> float:
        """The seconds until visits are allowed; 0 if they are allowed now."""
        second = now % _DAY
        minute = int(second / 60)
        if not self.visit_times or self._open[minute]:
            return 0.0
        # The first open minute of today or tomorrow.
        return (self._open * 2).index(1, minute) * 60 - second

    @property
    def times(self) -> str:
        """The times of visits as text; of many, the first ones."""
        return listed(self.visit_times)

    @cached_property
    def _delays(self) -> array[float]:
        """The longest delay of the rates in each minute of the day."""
        delays = array("d", [0.0]) * _MINUTES
        # The longest one is written last.
        for rate in sorted(self.rates, key=attrgetter("delay")):
            for minutes in _minutes(rate.window):
                delays[minutes.start : minutes.stop] = array("d", [rate.delay]) * len(minutes)
        return delays

    @cached_property
    def _open(self) -> bytearray:
        """Whether visits are allowed in each minute of the day."""
        is_open = bytearray(_MINUTES)
        for window in self.visit_times:
            for minutes in _minutes(window):
                is_open[minutes.start : minutes.stop] = b"\1" * len(minutes)
        return is_open


def _minutes(window: TimeWindow | None) -> Iterator[range]:
    """The parts of *window* that are in one day."""
    if window is None:
        yield range(_MINUTES)
    elif window.start <= window.end:
        yield range(window.start, window.end + 1)
    else:
        yield range(window.end + 1)
        yield range(window.start, _MINUTES)
