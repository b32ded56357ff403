"""A log line now and then, so that nobody takes a crawl that waits for a dead one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_rep.rep.parsing.urls import Origin

logger = logging.getLogger(__name__)

# Requests wait for this many seconds before the first line, and this many lie between two.
_FIRST_LINE = 10.0
_NEXT_LINE = 60.0


class Progress:
    """For which origins requests are held, and since when."""

    def __init__(self, spider: Spider | None, clock: Callable[[], float] | None = None) -> None:
        self._spider = spider
        self.clock = clock or time.monotonic
        #: By origin, the one that has waited for longest first.
        self._since: dict[Origin, float] = {}
        self._next_line = 0.0

    def begin(self, origin: Origin) -> None:
        """The first request for *origin* is held."""
        now = self.clock()
        if not self._since:
            self._next_line = now + _FIRST_LINE
        self._since[origin] = now

    def end(self, origin: Origin) -> None:
        """No request for *origin* is held any more."""
        del self._since[origin]

    def tell(self, requests: int) -> None:
        """Write the line that so many *requests* are held, if it is time to."""
        now = self.clock()
        if not self._since or now < self._next_line:
            return
        self._next_line = now + _NEXT_LINE
        slowest, since = next(iter(self._since.items()))
        logger.info(
            "requests waiting for a robots.txt or their turn: %(requests)d (origins: %(origins)d; "
            "for longest, %(seconds).0f s: %(slowest)s)",
            {
                "requests": requests,
                "origins": len(self._since),
                "seconds": now - since,
                "slowest": printable(str(slowest)),
            },
            extra={"spider": self._spider},
        )
