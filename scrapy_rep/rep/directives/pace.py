"""The effect of Crawl-delay, Request-rate and Visit-time at a given time.

Here may not live: their syntax (:mod:`.records`), clocks, and waiting.

None of the three is a standard. A Crawl-delay is from the end of one download to the start of
the next, as Yandex documented it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

from ..parsing.lines import Field
from ..parsing.records import OtherRecord, RequestRate, TimeWindow
from ..text import listed

_MINUTES = 24 * 60
_DAY = _MINUTES * 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The delays and times of some records. Times are in seconds, *now* since the epoch.

    A file may have tens of thousands of such records, and each request needs the result. So it
    is computed once, for each minute of the day.
    """

    crawl_delay: float = 0.0
    rates: tuple[RequestRate, ...] = ()
    visit_times: tuple[TimeWindow, ...] = ()
    #: The delay in each minute of the day; empty where it is always the same.
    _delays: list[float] = field(init=False, repr=False, compare=False)
    #: Whether visits are allowed in each minute of the day; empty where they always are.
    _open: list[bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_delays", _delays(self.rates) if self.rates else [])
        object.__setattr__(self, "_open", _open(self.visit_times) if self.visit_times else [])

    @classmethod
    def of(cls, records: Iterable[OtherRecord]) -> Pace:
        """Those of *records*, which are about us. Of several Crawl-delays, the longest counts."""
        crawl_delay = 0.0
        rates: list[RequestRate] = []
        visit_times: list[TimeWindow] = []
        for record in records:
            value = record.value
            if record.field is Field.CRAWL_DELAY and isinstance(value, float):
                crawl_delay = max(crawl_delay, value)
            elif isinstance(value, RequestRate):
                rates.append(value)
            elif isinstance(value, TimeWindow):
                visit_times.append(value)
        return cls(crawl_delay, tuple(rates), tuple(visit_times))

    def delay(self, now: float) -> float:
        """The seconds between two requests; 0 without a delay."""
        if not self._delays:
            return self.crawl_delay
        return max(self.crawl_delay, self._delays[int(now % _DAY / 60)])

    def seconds_until_open(self, now: float) -> float:
        """How long it is until visits are allowed; 0 if they are."""
        second = now % _DAY
        minute = int(second / 60)
        if not self._open or self._open[minute]:
            return 0.0
        # Tomorrow, if no more today.
        later = (self._open + self._open).index(True, minute)
        return later * 60 - second

    @property
    def times(self) -> str:
        """When visits are allowed, for people; of many times, the first ones."""
        return listed(self.visit_times)


def _spans(window: TimeWindow | None) -> Iterator[tuple[int, int]]:
    """The first and the last minute of the parts of *window* that are in one day."""
    if window is None:
        yield 0, _MINUTES - 1
    elif window.start <= window.end:
        yield window.start, window.end
    else:
        yield 0, window.end
        yield window.start, _MINUTES - 1


def _delays(rates: Iterable[RequestRate]) -> list[float]:
    """The longest delay of *rates* in each minute of the day."""
    starting: list[list[tuple[float, int]]] = [[] for _ in range(_MINUTES)]
    for rate in rates:
        for first, last in _spans(rate.window):
            starting[first].append((-rate.delay, last))
    delays: list[float] = []
    # Those that have started, the longest first. One that is over is removed when it is first.
    heap: list[tuple[float, int]] = []
    for minute in range(_MINUTES):
        for each in starting[minute]:
            heappush(heap, each)
        while heap and heap[0][1] < minute:
            heappop(heap)
        delays.append(-heap[0][0] if heap else 0.0)
    return delays


def _open(windows: Iterable[TimeWindow]) -> list[bool]:
    """Whether each minute of the day is in one of *windows*."""
    changes = [0] * (_MINUTES + 1)
    for window in windows:
        for first, last in _spans(window):
            changes[first] += 1
            changes[last + 1] -= 1
    return [count > 0 for count in accumulate(changes[:-1])]
