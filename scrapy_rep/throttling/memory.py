"""Turns for the crawls of one process, or for a crawl that shares its sites with nobody."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable

from scrapy_rep.throttling.backend import Answer, Slowed
from scrapy_rep.throttling.turns import Turns

#: What the crawls of this process know together.
PROCESS: OrderedDict[str, Turns] = OrderedDict()
if hasattr(os, "register_at_fork"):
    # The crawls of the parent are not those of the child.
    os.register_at_fork(after_in_child=PROCESS.clear)

# So many sites are remembered, those that were asked for last.
_MAX_SITES = 10_000


class MemoryBackend:
    """A :class:`~scrapy_rep.throttling.backend.Backend` for all who share *sites*.

    *clock* is monotonic.
    """

    def __init__(
        self, clock: Callable[[], float], sites: OrderedDict[str, Turns] | None = None
    ) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, Turns] = OrderedDict() if sites is None else sites
        self._name = secrets.token_hex(8)

    def ask(  # noqa: D102
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        turns = self._turns(site)
        wait, asked = turns.asked(self._name, delay, since, self._clock(), is_held=True)
        self._keep(site, asked)
        answer(wait or None)

    def ended(self, site: str, delay: float, *, sent: bool) -> None:  # noqa: D102
        turns = self._turns(site)
        self._keep(site, turns.ended(self._name, self._clock(), sent=sent))

    def sent_without_turn(self, site: str, delay: float) -> None:  # noqa: D102
        self._keep(site, self._turns(site).sent(self._clock()))

    def slow(self, site: str, delay: float) -> None:  # noqa: D102
        self._keep(site, self._turns(site).slowed(delay, self._clock()))

    def slowed(self, answer: Slowed) -> None:  # noqa: D102
        now = self._clock()
        slow = ((site, turns.slow_at(now)) for site, turns in self._sites.items() if turns.slow)
        answer({site: delay for site, delay in slow if delay})

    def _turns(self, site: str) -> Turns:
        return self._sites.get(site) or Turns()

    def _keep(self, site: str, turns: Turns) -> None:
        self._sites[site] = turns
        self._sites.move_to_end(site)
        if len(self._sites) > _MAX_SITES:
            self._sites.popitem(last=False)
