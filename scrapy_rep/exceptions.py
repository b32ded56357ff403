"""What this package raises."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.rep.rules.verdict import Verdict


class RobotsForbidden(IgnoreRequest):
    """A request that robots.txt refuses; arrives at its errback.

    :attr:`verdict` says why: which line of which file, or what kept us from
    knowing.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.verdict}"


class ConfigurationError(ValueError):
    """A setting that makes no sense, or settings that contradict each other.

    Raised when a crawl starts, never while it runs. The message names the
    setting, the value and what is accepted.
    """

    @property
    def __traceback__(self) -> None:
        """``None``: loggers write it, and 79 lines of code would hide the message."""

    @__traceback__.setter
    def __traceback__(self, value: object) -> None:
        # contextlib sets it.
        pass


class CrawlStopping(Exception):
    """The crawl is about to stop, so a robots.txt was not fetched: nothing is known by it."""
