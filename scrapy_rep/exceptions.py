"""The exceptions of this package."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.rep.rules.verdict import Verdict


class RobotsForbidden(IgnoreRequest):
    """robots.txt refuses a request. The errback of the request receives this exception.

    :attr:`verdict` has the reason: the line that decided, or why no line did.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.verdict}"


class ConfigurationError(ValueError):
    """A setting is invalid, or settings contradict each other.

    Raised when a crawl starts. The message names the setting, the value and what is accepted.
    """

    @property
    def __traceback__(self) -> None:
        """``None``: otherwise, logs would show 79 lines of code before the message."""

    @__traceback__.setter
    def __traceback__(self, value: object) -> None:
        # contextlib sets it.
        pass


class CrawlStopping(Exception):
    """A robots.txt was not fetched because the crawl is stopping."""
