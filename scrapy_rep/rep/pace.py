"""How fast, and when, a site wants to be visited.

Here may live: what Crawl-delay, Request-rate and Visit-time come to at a time.
Here may not live: their syntax (:mod:`.records`), clocks, and waiting.

None of the three is a standard. Crawl-delay counts as Yandex documented it: from
the end of one download to the start of the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .lines import Field
from .records import OtherRecord, RequestRate, TimeWindow

_DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What some records ask for. Times are seconds, *now* is since the epoch."""

    crawl_delay: float = 0.0
    rates: tuple[RequestRate, ...] = ()
    visit_times: tuple[TimeWindow, ...] = ()

    @classmethod
    def of(cls, records: Iterable[OtherRecord]) -> Pace:
        """What *records*, all of them about us, ask for. Of several Crawl-delays, the longest."""
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
        """The seconds to leave between two requests; 0 where nothing is asked."""
        minute = now % _DAY / 60
        hold = (rate for rate in self.rates if rate.window is None or rate.window.contains(minute))
        return max([self.crawl_delay, *(rate.delay for rate in hold)])

    def seconds_until_open(self, now: float) -> float:
        """How long it is until a visit is welcome; 0 where it is."""
        return min(
            (window.seconds_until_open(now % _DAY) for window in self.visit_times), default=0.0
        )
