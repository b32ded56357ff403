"""Which observers a crawl has, by its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.summary import Summary

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings


def enabled_observers(
    crawler: Crawler, settings: RepSettings, clock: Callable[[], float]
) -> Iterator[Observer]:
    """The observers of *crawler*."""
    yield Summary(crawler)
    # Most crawls do without these, and without what they import.
    recorder = None
    if settings.report is not None:
        from scrapy_rep.observers.report.recorder import Recorder

        recorder = Recorder(crawler, settings, settings.report, clock)
        yield recorder
    if settings.compare_with:
        from scrapy_rep.parsers.shadow import ShadowParsers

        yield ShadowParsers(crawler, settings, recorder)
