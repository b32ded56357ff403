"""What a throttle asks before it sends a request: who may go next, and when.

:class:`~scrapy_rep.throttling.memory.MemoryBackend` is for a worker by itself. Several
workers that share a site share a backend, which asks a store: see
:mod:`scrapy_rep.throttling.fleet`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

#: Takes ``None`` if the turn is ours, or the seconds after which to ask again.
Answer = Callable[[float | None], None]


class Backend(Protocol):
    """Grants turns: a turn is the permission to send one request to a site.

    Sites are host names. All times are seconds; *delay* is what the site asks for between
    the end of one request and the start of the next.
    """

    def free_at(self, delay: float, left_at: float | None, began: float) -> float:
        """When to ask for a turn at the earliest, by the throttle's clock.

        The last request of this worker left the downloader at *left_at*, which is ``None``
        where that is not known; the next one has waited since *began*.
        """
        ...

    def ask(
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        """Ask for a turn, and call *answer* once: before this returns, or later.

        *since* is how many seconds ago the last request of this worker left the downloader.
        *again*: the backend has told us to ask now.
        """
        ...

    def give_back(self, site: str, delay: float) -> None:
        """The turn was not used: no request was sent."""
        ...

    def ended(self, site: str, delay: float) -> None:
        """The request that had the turn has left the downloader."""
        ...

    def sent_without_turn(self, site: str, delay: float) -> None:
        """A request that had no turn, such as one that need not obey, left the downloader."""
        ...
