"""The download of one robots.txt through the engine, with limits of size, time and number.

It always uses ``engine.download_async``, so proxies, handlers, stats and throttling keep working.
Every middleware sees the requests, but none can change their meaning or exceed their time.
Fetches take no concurrency from pages, and are first in the queue of their download slot.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.engine import Engine
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.hops import is_downgrade
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings

# The most requests for one hop, including those that middlewares repeat.
_MAX_REQUESTS = 5
# Meta key: the download that a request belongs to.
_DOWNLOAD = "rep_download"
# Seconds between two checks whether a request has left the queue of its slot.
_QUEUE_POLL = 0.25
# Seconds after our own timeout at which the handler gives up too.
_HANDLER_GRACE = 1.0


@dataclass(eq=False, repr=False)
class Download:
    """The download for one hop of the robots.txt of *origin*.

    It is cut at REP_MAX_SIZE bytes and fails when no *seconds* are left. Time in the queue of a
    download slot or in a throttle does not count: otherwise, with a DOWNLOAD_DELAY of 20 s, every
    host would be unreachable. All other time counts.
    """

    crawler: Crawler
    concurrency: ConcurrencyLimit
    settings: RepSettings
    origin: Origin
    seconds: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._counted_since = inf
        self._timer: CallLaterResult | None = None
        # Held exactly as long as the downloader counts the request. If it were held longer, one
        # page too many could be requested.
        self._permit = ExitStack()
        self._engine: Deferred[Response] | None = None
        self._given_up: Exception | None = None
        self._outcome: Deferred[Response] = Deferred()
        # How many requests have reached our middleware, and the downloader.
        self._requests: Counter[str] = Counter()
        self._received, self._encoding = 0, b""

    async def run(self, request: Request) -> Exchange:
        """Send *request*. Raises the exceptions of the engine and of :meth:`give_up`."""
        assert self.crawler.engine is not None
        request.meta[_DOWNLOAD] = self
        # Later than our timeout, so that ours decides with every handler.
        request.meta["download_timeout"] = self.seconds + _HANDLER_GRACE
        self._start_clock()
        self._engine = deferred_from_coro(self.crawler.engine.download_async(request))
        self._engine.addBoth(self._finish)
        try:
            response = await maybe_deferred_to_future(self._outcome)
        finally:
            self._permit.close()
            self._stop_clock()
        is_cut = self._received > self.settings.max_size
        return Exchange(request, response, self._encoding, is_cut)

    def give_up(self, why: Exception) -> None:
        """Stop waiting, and let :meth:`run` raise *why*."""
        self._given_up = why
        self._finish(Failure(why))  # type: ignore[no-untyped-call]
        if self._engine is not None:
            self._engine.cancel()

    def _finish(self, result: Any) -> None:
        if not self._outcome.called:
            self._outcome.callback(result)

    def _start_clock(self) -> None:
        self._stop_clock()
        if not self._outcome.called:
            self._counted_since = self.clock()
            expired = FetchFailed(f"no answer within {self.settings.fetch_timeout:g} s")
            self._timer = call_later(max(self.seconds, 0.0), self.give_up, expired)

    def _stop_clock(self) -> None:
        self.seconds -= max(self.clock() - self._counted_since, 0.0)
        self._counted_since = inf
        if self._timer is not None:
            self._timer.cancel()

    # -- what happens to its requests, the first one and repeated ones ---------------

    def admit(self) -> None:
        """Called when a request reaches our middleware. Raises IgnoreRequest to drop it."""
        if not self._may_continue("middleware"):
            raise IgnoreRequest("the robots.txt fetch has ended")

    def _may_continue(self, reached: str) -> bool:
        """Whether a request may continue that has *reached* the middleware or the downloader."""
        self._requests[reached] += 1
        if self._requests[reached] > _MAX_REQUESTS and self._given_up is None:
            why = f"a middleware repeats the request more than {_MAX_REQUESTS - 1} times"
            self.give_up(FetchFailed(why))
        return self._given_up is None

    async def wait_for_turn(self, turn: Deferred[None]) -> None:
        """Wait for the *turn* of a request at a throttle. This takes no concurrency."""
        self._stop_clock()
        try:
            with self.concurrency.released():
                await maybe_deferred_to_future(turn)
        finally:
            self._start_clock()

    def on_queued(self, request: Request, **_: Any) -> None:
        """Called when *request* is in the queue of its download slot."""
        self._received, self._encoding = 0, b""
        self._permit.close()
        if not self._may_continue("downloader"):
            return
        if is_downgrade(request.url, self.origin):
            # HttpAuthMiddleware adds the credentials of the spider to all requests for a domain.
            request.headers.pop("Authorization", None)
        self._permit.enter_context(self.concurrency.released())
        self._stop_clock()
        self._timer = call_later(0, self._look_whether_queued, request)

    def _look_whether_queued(self, request: Request) -> None:
        # In front of the pages of its host: these may wait for it, and the queue may take hours.
        if Engine(self.crawler).move_to_front(request):
            self._timer = call_later(_QUEUE_POLL, self._look_whether_queued, request)
        else:
            self._start_clock()

    def on_left_downloader(self, **_: Any) -> None:
        """Called when a request leaves the downloader, sent or not."""
        self._permit.close()
        self._start_clock()

    def on_bytes(self, data: bytes, **_: Any) -> None:
        """Called with *data*, a part of the body. Raises StopDownload if no more is needed."""
        self._received += len(data)
        if self._given_up is not None or self._received > self.settings.max_size:
            raise StopDownload(fail=self._given_up is not None)

    def on_response(self, response: Response, **_: Any) -> None:
        """Called with *response* before any middleware."""
        # HttpCompressionMiddleware would decode the body, and drop it if it is too large.
        self._encoding = b",".join(response.headers.pop("Content-Encoding", []))


def download_of(request: Request) -> Download | None:
    """The download that *request* belongs to; ``None`` if it is not a robots.txt request."""
    return request.meta.get(_DOWNLOAD)


def connect_downloads(manager: SignalManager) -> None:
    """Connect the signals of *manager* to the downloads."""

    def connect(signal: object, method: Callable[..., None]) -> None:
        def receive(request: Request, **event: Any) -> None:
            if download := download_of(request):
                method(download, request=request, **event)

        # Nothing else has a reference to the receiver.
        manager.connect(receive, signal, weak=False)

    connect(signals.request_reached_downloader, Download.on_queued)
    connect(signals.request_left_downloader, Download.on_left_downloader)
    connect(signals.bytes_received, Download.on_bytes)
    connect(signals.response_downloaded, Download.on_response)
