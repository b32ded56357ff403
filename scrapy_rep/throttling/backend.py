"""What a throttle asks before it sends a request: who may go next, and when.

========================  =====================  =========================================
crawls that share          backend                where turns are kept
========================  =====================  =========================================
nothing, or one process   ``memory.py``          a dict
an SQLite file            ``fleet.py``           a :class:`TurnStore`, ``sqlite.py``
a Redis                   ``fleet.py``           a :class:`TurnStore`, ``redis.py``
========================  =====================  =========================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

#: Takes ``None`` if the turn is ours, or the seconds after which to ask again.
Answer = Callable[[float | None], None]
#: Seconds that are nothing: what is left of a delay when a clock has rounded.
ROUNDING = 1e-6


class Backend(Protocol):
    """Grants turns: a turn is the permission to send one request to a site.

    Sites are host names. All times are seconds; *delay* is what the site asks for between
    the end of one request and the start of the next.
    """

    def ask(
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        """Ask for a turn, and call *answer* once: before this returns, or later.

        *since* is how many seconds ago the last request of this crawl left the downloader;
        ``None`` where that is not known. *again*: the backend has told us to ask now.
        """
        ...

    def ended(self, site: str, delay: float, *, sent: bool) -> None:
        """The turn is over: its request has left the downloader, or was not *sent*."""
        ...

    def sent_without_turn(self, site: str, delay: float) -> None:
        """A request that had no turn, such as one that need not obey, left the downloader."""
        ...
