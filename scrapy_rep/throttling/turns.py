"""Whose turn it is at a site that several crawls share, in one process or on one machine.

Here may live: what is known of a site, and what becomes of it. No I/O and no clock: times are
seconds of a clock that all crawls share. Where it is kept is said in
:mod:`scrapy_rep.throttling.memory` and :mod:`scrapy_rep.throttling.sqlite`; the same for
workers that share a Redis is Lua, in :mod:`scrapy_rep.throttling.redis`.

Nothing is reserved: a turn is granted when it is used. So a crawl that dies while it waits holds
up nobody for longer than :data:`STEP`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto

#: Seconds that are nothing: what is left of a delay when a clock has rounded.
ROUNDING = 1e-6
#: Seconds after which a crawl is to ask again while another one has the turn, or its delay if
#: that is shorter. So long it takes to notice that the other one is dead.
LOOK_AGAIN = 1.0
#: Seconds between the times that crawls are told which wait for the same turn. The first one to
#: ask gets it: this puts them in order, and is all that one costs that does not come.
STEP = 0.02
#: Seconds after the time that it was told that a crawl counts as one that waits.
LATE = 1.0
#: Seconds for which the delay of a site holds that has not been asked since, and more.
KEPT = 60.0

_LONG_AGO = -float("inf")


class Event(Enum):
    """What a crawl tells the others about a site."""

    #: The request of its turn has left the downloader.
    OVER = auto()
    #: Its turn is over; the request was not sent.
    UNUSED = auto()
    #: Its turn is not over yet.
    HELD = auto()
    #: A request that had no turn, such as one that need not obey, has left the downloader.
    SENT = auto()
    #: By its answers, the site asks all crawls for a delay; 0: for none any more.
    SLOW = auto()


@dataclass(frozen=True, slots=True)
class Turns:
    """What is known of a site."""

    #: When the last request was over, or was granted its turn.
    last: float = _LONG_AGO
    #: The same before the turn that is held.
    before: float = _LONG_AGO
    #: The delay that the site asks for by its answers, and since when.
    slow: float = 0.0
    slow_since: float = _LONG_AGO
    #: The crawl that has the turn, "" where none has.
    holder: str = ""
    #: The crawls that wait, the first one first, and when each is to ask again.
    waiting: dict[str, float] = field(default_factory=dict)

    def slow_at(self, now: float) -> float:
        """The delay that the site asks for by its answers; 0 where it has not lately."""
        return self.slow if self.slow_since <= now < self.slow_since + self.slow + KEPT else 0.0

    def asked(
        self, crawl: str, delay: float, since: float, now: float, *, is_held: bool
    ) -> tuple[float, Turns]:
        """*crawl* asks for a turn: the seconds to wait, and what is known then.

        0 seconds: it has the turn. *since* is how many seconds ago its last request left.
        *is_held*: the holder is alive.
        """
        last = max(min(self.last, now), now - since)
        is_held = is_held and self.holder not in ("", crawl)
        if self.holder not in ("", crawl) and not is_held:
            # A crawl that died may have sent its request until now.
            last = now
        delay = max(delay, self.slow_at(now))
        latest = now + delay + LOOK_AGAIN
        waiting = {other: at for other, at in self.waiting.items() if now - LATE < at < latest} | {
            crawl: self.waiting.get(crawl, now)
        }
        if is_held:
            at = now + min(delay, LOOK_AGAIN)
        else:
            at = last + delay + STEP * list(waiting).index(crawl)
            if at <= now + ROUNDING:
                del waiting[crawl]
                return 0.0, replace(self, last=now, before=last, holder=crawl, waiting=waiting)
        waiting[crawl] = at
        holder = self.holder if is_held else ""
        return at - now, replace(self, last=last, holder=holder, waiting=waiting)

    def after(self, event: Event, crawl: str, delay: float, now: float) -> Turns:
        """What is known after *event*, which *crawl* tells."""
        last = max(self.last, now)
        is_ours = self.holder == crawl
        match event:
            case Event.SLOW:
                return replace(self, slow=delay, slow_since=now)
            case Event.SENT:
                # Who has the turn keeps it.
                return replace(self, last=last, before=last)
            case Event.OVER:
                return replace(self, last=last, holder="" if is_ours else self.holder)
            case Event.HELD if is_ours:
                return replace(self, last=last)
            case Event.UNUSED if is_ours:
                return replace(self, last=self.before, holder="")
        return self
