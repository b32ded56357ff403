"""What this package raises."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.rep.rules.verdict import Verdict


class RobotsForbidden(IgnoreRequest):
    """robots.txt refuses a request. Raised to the errback of the request.

    :attr:`verdict` says why: which line of which file, or why there is none.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.verdict}"


class ConfigurationError(ValueError):
    """A setting is invalid, or settings contradict each other.

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
    """A robots.txt was not fetched because the crawl is stopping."""
