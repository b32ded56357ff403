"""Every name of Scrapy that is not public and that this package uses.

Here may live: such a name, what it is used for, since which version it exists, and what
happens without it. Here may not live: any decision. A test fails where another file of
the package uses one of these names.

Another downloader, or a later Scrapy, may lack some of them. :meth:`Engine.warn` then says
at the start of a crawl what works less well; the crawl goes on safely.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_SCHEMES = ("http", "https")

#: What works less well without each name, for the warning at the start.
_CONSEQUENCES = {
    "engine._slot": "held requests do not return to the scheduler when the crawl stops",
    "downloader.total_concurrency": "held requests keep their share of CONCURRENT_REQUESTS",
    "downloader.active": "held requests keep their share of CONCURRENT_REQUESTS",
    "downloader.slots": "robots.txt requests wait behind the pages in their download slot",
    "downloader.get_slot_key": "held requests may wait in the queue of their download slot",
}


class Engine:
    """The engine of one crawl and its downloader, as far as Scrapy does not document them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def missing(self) -> list[str]:
        """The names that this crawl lacks, of those that :mod:`scrapy_rep.engine` uses."""
        engine, downloader = self._engine, self._downloader
        found = {
            "engine._slot": hasattr(engine, "_slot"),
            "downloader.total_concurrency": hasattr(downloader, "total_concurrency"),
            "downloader.active": hasattr(downloader, "active"),
            "downloader.slots": hasattr(downloader, "slots"),
            "downloader.get_slot_key": hasattr(downloader, "get_slot_key"),
        }
        return [name for name, is_there in found.items() if not is_there]

    def warn(self) -> None:
        """Log one warning that names what is missing, and what works less well without it."""
        missing = self.missing()
        if missing:
            consequences = dict.fromkeys(_CONSEQUENCES[name] for name in missing)
            logger.warning(
                "Scrapy or its downloader lacks %(names)s: %(consequences)s. The crawl goes on",
                {"names": ", ".join(missing), "consequences": "; ".join(consequences)},
                extra={"spider": self._crawler.spider},
            )

    @property
    def _engine(self) -> Any:
        return self._crawler.engine

    @property
    def _downloader(self) -> Any:
        return getattr(self._crawler.engine, "downloader", None)

    # -- the crawl's end -----------------------------------------------------------

    @property
    def _slot(self) -> Any:
        """``engine._slot`` (since 2.14; ``engine.slot`` before): the engine's own requests.

        Scrapy has no signal for the begin of a stop. Without it, a stop is noticed when the
        engine no longer runs.
        """
        return getattr(self._engine, "_slot", None)

    @property
    def is_closing(self) -> bool:
        """Whether the crawl is about to stop, and waits for requests under way."""
        slot = self._slot
        return not self._engine.running or bool(getattr(slot, "closing", None))

    def keep_open(self, seconds: float) -> None:
        """Let the crawl end only after *seconds*.

        Between two steps of a request that returns to the scheduler, the engine counts no
        request under way, and a crawl that waits for the last one would end.
        """
        slot = self._slot
        if slot is not None:
            placeholder = Request("data:,")
            slot.add_request(placeholder)
            call_later(seconds, slot.remove_request, placeholder)

    # -- concurrency ---------------------------------------------------------------

    @property
    def total_concurrency(self) -> int:
        """``downloader.total_concurrency``: the downloader's limit; 0 where it has none."""
        return int(getattr(self._downloader, "total_concurrency", 0))

    def raise_concurrency(self, number: int) -> None:
        """Raise the downloader's concurrency limit by *number*, which may be negative.

        And have the engine look for work, which it otherwise does every five seconds.
        """
        if number and hasattr(self._downloader, "total_concurrency"):
            self._downloader.total_concurrency += number
            slot = self._slot
            if slot is not None:
                slot.nextcall.schedule()

    @property
    def active_count(self) -> int:
        """How many requests are with the downloader, from its first middleware to its last."""
        return len(getattr(self._downloader, "active", ()))

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has this very *request* still (``downloader.active``).

        No signal tells that a request left without having been sent. Without this name,
        every request counts as active until a signal says that it left.
        """
        active = getattr(self._downloader, "active", None)
        return active is None or request in active

    @property
    def reports_sent_requests(self) -> bool:
        """Whether the downloader is Scrapy's: it sends request_reached_downloader for each.

        Another one may not. Then a request that was admitted and is gone counts as sent,
        until the first such signal.
        """
        return isinstance(self._downloader, Downloader)

    # -- download slots ------------------------------------------------------------

    def slot_key(self, request: Request) -> str | None:
        """``downloader.get_slot_key(request)`` (public name since 2.12); ``None`` without it."""
        key_of = getattr(self._downloader, "get_slot_key", None)
        return None if key_of is None else str(key_of(request))

    def slot_is_free(self, key: str | None) -> bool:
        """Whether a request would start at once in the download slot *key*."""
        slot = self._download_slot(key)
        return slot is None or (not slot.queue and slot.free_transfer_slots() > 0)

    def queue_position(self, request: Request) -> int | None:
        """How many requests are before *request* in its download slot; ``None`` once it is sent."""
        queue = self._queue_of(request)
        return next((n for n, (queued, _) in enumerate(queue) if queued is request), None)

    def move_to_front(self, request: Request) -> None:
        """Have *request* be the next one of its download slot, in whose queue it waits."""
        position = self.queue_position(request)
        if position:
            queue = self._queue_of(request)
            entry = queue[position]
            del queue[position]
            queue.appendleft(entry)

    def _queue_of(self, request: Request) -> deque[tuple[Request, Any]]:
        slot = self._download_slot(request.meta.get("download_slot"))
        return deque() if slot is None else slot.queue

    def _download_slot(self, key: str | None) -> Any:
        return getattr(self._downloader, "slots", {}).get(key)

    # -- download handlers -----------------------------------------------------------

    def widen_pools(self, connections: int) -> int:
        """Make room for *connections* more in the handlers, before the first one is open.

        The handlers for httpx and aiohttp (Scrapy 2.15) open as many connections as
        CONCURRENT_REQUESTS says; robots.txt fetches that hang would leave none for pages.
        Returns for how many there is room: *connections*, or half of what a handler opens
        whose limit cannot be changed.
        """
        get_handler = getattr(getattr(self._downloader, "handlers", None), "_get_handler", None)
        handlers = [get_handler(scheme) if get_handler else None for scheme in _SCHEMES]
        return min(_widen(handler, connections) for handler in handlers)


def _widen(handler: Any, connections: int) -> int:
    pool = getattr(handler, "_pool_size_total", 0)
    if not pool or _widen_aiohttp(handler, connections) or _widen_httpx(handler, connections):
        return connections
    return max(1, min(connections, pool // 2))


def _widen_aiohttp(handler: Any, connections: int) -> bool:
    connector: Any = getattr(getattr(handler, "_session", None), "connector", None)
    if not hasattr(connector, "_limit"):
        return False
    connector._limit += connections  # noqa: SLF001
    return True


def _widen_httpx(handler: Any, connections: int) -> bool:
    limits: Any = getattr(handler, "_limits", None)
    if not hasattr(limits, "max_connections") or not hasattr(handler, "_default_client"):
        return False
    handler._limits = type(limits)(  # noqa: SLF001
        max_connections=limits.max_connections + connections,
        max_keepalive_connections=limits.max_keepalive_connections,
    )
    handler._default_client = handler._make_client()  # noqa: SLF001
    return True


def has_no_headers(request: Request) -> bool:
    """Whether *request* certainly has no headers, found without making them.

    ``request._headers`` (2.15) is ``None`` until somebody asks for the headers, and to make
    them takes a while. Without this name, the headers are made.
    """
    return getattr(request, "_headers", True) is None
