"""All non-public names of Scrapy that this package uses.

For each name: its use, the version that introduced it if that is later than 2.14, and the
consequence if it is missing, as in another downloader or a later Scrapy: the crawl continues
safely. A test fails if another file of the package uses one of these names.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later

logger = logging.getLogger(__name__)

_NO_RETURN = "held requests do not return to the scheduler when the crawl stops"
_MAY_BE_LOST = "held requests may be lost when the crawl stops"
_HELD_KEEP_CONCURRENCY = "held requests keep their share of CONCURRENT_REQUESTS"

#: The consequence if a name is missing, for the warning at the start. Without
#: ``request._headers``, requests only take longer.
_CONSEQUENCES = {
    "engine.running": _NO_RETURN,
    "engine._slot": _NO_RETURN,
    "engine._slot.closing": _NO_RETURN,
    "engine._slot.add_request": _MAY_BE_LOST,
    "engine._slot.remove_request": _MAY_BE_LOST,
    "engine._slot.nextcall": "other requests start late when a request is held",
    "downloader.total_concurrency": _HELD_KEEP_CONCURRENCY,
    "downloader.active": _HELD_KEEP_CONCURRENCY,
    "downloader.slots": "robots.txt requests wait behind the pages in their download slot",
    "downloader.get_slot_key": "held requests may wait in the queue of their download slot",
    "downloader.handlers._get_handler": "hanging robots.txt requests may take all connections "
    "of the download handlers for httpx and aiohttp",
}


class Engine:
    """The undocumented parts of the engine and the downloader of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def missing(self) -> list[str]:
        """The names that are missing, without attributes of missing objects."""
        owners = SimpleNamespace(engine=self._crawler.engine, downloader=self._downloader)
        missing: list[str] = []
        for name in _CONSEQUENCES:
            try:
                attrgetter(name)(owners)
            except AttributeError:
                if name.rpartition(".")[0] not in missing:
                    missing.append(name)
        return missing

    def warn(self) -> None:
        """Log one warning with the missing names and the consequences."""
        if missing := self.missing():
            logger.warning(
                "Scrapy or its downloader lacks %s: %s. The crawl continues.",
                ", ".join(missing),
                "; ".join(dict.fromkeys(_CONSEQUENCES[name] for name in missing)),
                extra={"spider": self._crawler.spider},
            )

    @property
    def _downloader(self) -> Any:
        """``engine.downloader``, set by DOWNLOADER; ``None`` if there is none."""
        return getattr(self._crawler.engine, "downloader", None)

    # -- the crawl's end -----------------------------------------------------------

    @property
    def _slot(self) -> Any:
        """``engine._slot`` (2.14): the engine's own requests."""
        return getattr(self._crawler.engine, "_slot", None)

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop and waits for its last requests.

        By ``engine.running`` (false as soon as the process stops) and ``engine._slot.closing``
        (set by ``close_spider``), because Scrapy has no signal for it. Without them, the crawl
        ends after all held requests have continued.
        """
        closing = getattr(self._slot, "closing", None)
        return not getattr(self._crawler.engine, "running", True) or bool(closing)

    def keep_open(self, seconds: float) -> None:
        """Let the crawl end only after *seconds*.

        By ``engine._slot.add_request`` and ``remove_request``. While a request returns to the
        scheduler, the engine does not count it for a moment, and the crawl could end.
        """
        slot, placeholder = self._slot, Request("data:,")
        if hasattr(slot, "add_request") and hasattr(slot, "remove_request"):
            slot.add_request(placeholder)
            call_later(seconds, slot.remove_request, placeholder)

    # -- concurrency ---------------------------------------------------------------

    @property
    def concurrency(self) -> int:
        """``downloader.total_concurrency``: the downloader's limit.

        0 if there is none, or if the active requests are unknown: held requests then keep theirs.
        """
        if not hasattr(self._downloader, "active"):
            return 0
        return int(getattr(self._downloader, "total_concurrency", 0))

    def raise_concurrency(self, number: int) -> None:
        """Raise the downloader's concurrency limit by *number*, which may be negative.

        The engine then looks for work, by ``engine._slot.nextcall``. Without that, it looks every
        five seconds, and whenever a request ends.
        """
        if number and self.concurrency:
            self._downloader.total_concurrency += number
            if hasattr(self._slot, "nextcall"):
                self._slot.nextcall.schedule()

    @property
    def active_count(self) -> int:
        """The number of requests in ``downloader.active``, with those in middlewares."""
        return len(getattr(self._downloader, "active", ()))

    def is_active(self, request: Request) -> bool:
        """Whether *request* is still in ``downloader.active``.

        There is no signal for a request that leaves without having been sent. Without this name,
        each request counts as active until the signal that it left.
        """
        active = getattr(self._downloader, "active", None)
        return active is None or request in active

    @property
    def reports_sent_requests(self) -> bool:
        """Whether the downloader is Scrapy's, which sends request_reached_downloader.

        With another, an admitted request that is gone counts as sent, until the first such signal.
        """
        return isinstance(self._downloader, Downloader)

    # -- download slots ------------------------------------------------------------

    def slot_key(self, request: Request) -> str | None:
        """``downloader.get_slot_key(request)``: in which slot *request* would be.

        Without it, ``None``: all requests count as requests of one slot.
        """
        key_of = getattr(self._downloader, "get_slot_key", None)
        return key_of and str(key_of(request))

    def slot_is_free(self, key: str | None) -> bool:
        """Whether a request would start at once in the download slot *key*.

        By ``slot.queue`` and ``slot.free_transfer_slots()``. Without them, it would.
        """
        slot = self._download_slot(key)
        is_full = hasattr(slot, "free_transfer_slots") and slot.free_transfer_slots() <= 0
        return not (is_full or getattr(slot, "queue", ()))

    def move_to_front(self, request: Request) -> bool:
        """Move *request* to the front of its download slot's queue; whether it is in the queue.

        Without ``slot.queue``, a request counts as sent as soon as the downloader has it, and
        waits behind earlier pages.
        """
        taken = self.take_queued(request, lambda queued: queued is request)
        self._queue_of(request).extendleft(taken)
        return bool(taken)

    def take_queued(
        self, request: Request, is_wanted: Callable[[Request], bool]
    ) -> list[tuple[Request, Any]]:
        """Take the requests that are wanted out of the queue of the download slot of *request*.

        By ``slot.queue``: pairs of a request and a Deferred for what the downloader returns for
        it, a response or a request that the engine schedules. Without it, none is taken.
        """
        queue = self._queue_of(request)
        taken = [entry for entry in queue if is_wanted(entry[0])]
        for entry in taken:
            queue.remove(entry)
        return taken

    def _queue_of(self, request: Request) -> deque[tuple[Request, Any]]:
        return getattr(self._download_slot(request.meta.get("download_slot")), "queue", deque())

    def _download_slot(self, key: str | None) -> Any:
        """``downloader.slots``, usually one for each host."""
        return getattr(self._downloader, "slots", {}).get(key)

    # -- download handlers -----------------------------------------------------------

    def widen_pools(self, connections: int) -> int:
        """Allow *connections* more in the handlers, before the first one is open.

        By ``downloader.handlers._get_handler``. The handlers for httpx and aiohttp (2.15) open
        CONCURRENT_REQUESTS connections, so hanging robots.txt fetches would leave none for pages.
        Returns the number that fetches may use: *connections*, or half of a limit that cannot be
        changed.
        """
        get_handler = getattr(getattr(self._downloader, "handlers", None), "_get_handler", None)
        if get_handler is None:
            return connections
        return min(_widen(get_handler(scheme), connections) for scheme in ("http", "https"))


def _widen(handler: Any, connections: int) -> int:
    """By ``handler._pool_size_total`` (2.15), in handlers with a limit of their own.

    aiohttp's has ``_session.connector._limit``; httpx's ``_limits``, ``_default_client`` and
    ``_make_client``.
    """
    pool = getattr(handler, "_pool_size_total", 0)
    connector: Any = getattr(getattr(handler, "_session", None), "connector", None)
    limits: Any = getattr(handler, "_limits", None)
    if not pool:
        return connections
    if hasattr(connector, "_limit"):
        connector._limit += connections  # noqa: SLF001
    elif hasattr(limits, "max_connections") and hasattr(handler, "_default_client"):
        handler._limits = type(limits)(  # noqa: SLF001
            max_connections=limits.max_connections + connections,
            max_keepalive_connections=limits.max_keepalive_connections,
        )
        handler._default_client = handler._make_client()  # noqa: SLF001
    else:
        return max(1, min(connections, pool // 2))
    return connections


def has_no_headers(request: Request) -> bool:
    """Whether *request* certainly has no headers, without creating the headers, which is slow.

    ``request._headers`` (2.15) is ``None`` until the headers are first used.
    """
    return getattr(request, "_headers", True) is None
