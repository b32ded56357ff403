"""Turns for the crawls of one process, or for a crawl that shares its sites with nobody."""
# What methods do stands in throttle.Backend.
# ruff: noqa: D102

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable

from scrapy_rep.throttling.throttle import Answer, Slowed
from scrapy_rep.throttling.turns import Event, Turns

#: What the crawls of this process know together.
PROCESS: OrderedDict[str, Turns] = OrderedDict()
if hasattr(os, "register_at_fork"):
    # The crawls of the parent are not those of the child.
    os.register_at_fork(after_in_child=PROCESS.clear)

# So many sites are remembered, those that were asked for last.
_MAX_SITES = 10_000


class MemoryBackend:
    """A :class:`~.throttle.Backend` for all who share *sites*. *clock* is monotonic."""

    def __init__(self, clock: Callable[[], float], sites: OrderedDict[str, Turns]) -> None:
        self._clock = clock
        self._sites = sites
        self._name = secrets.token_hex(8)

    def ask(self, site: str, delay: float, since: float, *, again: bool, answer: Answer) -> None:
        turns, now = self._sites.get(site, Turns()), self._clock()
        wait, asked = turns.asked(self._name, delay, since, now, is_held=True)
        self._keep(site, asked)
        answer(wait)

    def tell(self, event: Event, site: str, delay: float) -> None:
        turns = self._sites.get(site, Turns())
        self._keep(site, turns.after(event, self._name, delay, self._clock()))

    def slowed(self, answer: Slowed) -> None:
        now = self._clock()
        slow = ((site, turns.slow_at(now)) for site, turns in self._sites.items() if turns.slow)
        answer({site: delay for site, delay in slow if delay})

    def _keep(self, site: str, turns: Turns) -> None:
        self._sites[site] = turns
        self._sites.move_to_end(site)
        if len(self._sites) > _MAX_SITES:
            self._sites.popitem(last=False)
