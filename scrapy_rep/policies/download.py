"""The download of one robots.txt through the engine, with limits of size, time and number.

It always uses ``engine.download_async``, so proxies, handlers, stats and throttling keep working.
Every middleware sees the requests, but none can change their meaning or exceed their time.
Fetches take no concurrency from pages, and are first in the queue of their download slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.hops import is_downgrade
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings

#: The most requests for one hop, including those that middlewares repeat.
MAX_REQUESTS = 5

# Meta key: the download that a request belongs to.
_DOWNLOAD = "rep_download"
# Seconds between two checks whether a request has left the queue of its slot.
_QUEUE_POLL = 0.25
# Seconds after our own timeout at which the handler gives up too.
_HANDLER_GRACE = 1.0


@dataclass(eq=False, repr=False)
class Download:
    """The download of the robots.txt of *origin*: a request for each hop, one at a time.

    It is cut at REP_MAX_SIZE bytes and fails after REP_FETCH_TIMEOUT seconds. Time in the queue of
    a download slot or in a throttle does not count: otherwise, with a DOWNLOAD_DELAY of 20 s, every
    host would be unreachable. All other time counts.
    """

    crawler: Crawler
    concurrency: ConcurrencyLimit
    settings: RepSettings
    origin: Origin
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._left = self.settings.fetch_timeout
        self._counted_since: float | None = None
        self._timer: CallLaterResult | None = None
        # Held exactly as long as the downloader counts the request. If it were held longer, one
        # page too many could be requested.
        self._permit = ExitStack()
        # Why it was given up.
        self._given_up: Exception | None = None
        self._outcome: Deferred[Response] = Deferred()
        self._engine: Deferred[Response] | None = None
        # Requests for this hop that a middleware has seen, and that the downloader has got.
        self._admitted = self._sent = 0
        self._forget_answer()

    async def run(self, request: Request) -> Response:
        """Download *request*, for the next hop.

        Raises the exceptions of the engine, or the one passed to :meth:`give_up`.
        """
        if self._given_up is not None:
            raise self._given_up
        assert self.crawler.engine is not None
        self._outcome = Deferred()
        self._admitted = self._sent = 0
        self._forget_answer()
        request.meta[_DOWNLOAD] = self
        # Later than our timeout, so that ours decides with every handler.
        request.meta["download_timeout"] = self.seconds_left + _HANDLER_GRACE
        self.start_clock()
        self._engine = deferred_from_coro(self.crawler.engine.download_async(request))
        self._engine.addBoth(self._finish)
        try:
            return await maybe_deferred_to_future(self._outcome)
        finally:
            self._permit.close()
            self.stop_clock()

    def _forget_answer(self) -> None:
        self._received = 0
        #: The Content-Encoding that the body of the last answer came with.
        self.encoding = b""
        #: Whether that body is only the start of what was sent.
        self.is_cut = False

    def give_up(self, why: Exception) -> None:
        """Stop waiting, and let :meth:`run` raise *why*."""
        self._given_up = why
        self._permit.close()
        self._finish(Failure(why))  # type: ignore[no-untyped-call]
        if self._engine is not None:
            self._engine.cancel()

    def _finish(self, result: Any) -> None:
        if not self._outcome.called:
            self._outcome.callback(result)

    # -- time -----------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """The remaining seconds; 0 or less after the timeout."""
        since = self._counted_since
        return self._left if since is None else self._left - (self.clock() - since)

    def start_clock(self) -> None:
        """Count time from now on."""
        self.stop_clock()
        if not self._outcome.called:
            self._counted_since = self.clock()
            expired = FetchFailed(f"no answer within {self.settings.fetch_timeout:g} s")
            self._timer = call_later(max(self._left, 0.0), self.give_up, expired)

    def stop_clock(self) -> None:
        """Do not count time until :meth:`start_clock`."""
        self._left, self._counted_since = self.seconds_left, None
        if self._timer is not None:
            self._timer.cancel()

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Do not count time in this context, while a request waits for its turn."""
        self.stop_clock()
        try:
            yield
        finally:
            self.start_clock()

    # -- what happens to its requests -----------------------------------------------

    def admit(self) -> None:
        """Called for each request that reaches our middleware, the first one and repeated ones.

        Raises :exc:`~scrapy.exceptions.IgnoreRequest` if it must not be sent.
        """
        self._admitted += 1
        self._check_number(self._admitted)
        if self._given_up is not None:
            raise IgnoreRequest("the robots.txt fetch has ended")

    def _check_number(self, requests: int) -> None:
        if requests > MAX_REQUESTS and self._given_up is None:
            why = f"a middleware repeats the request more than {MAX_REQUESTS - 1} times"
            self.give_up(FetchFailed(why))

    def on_queued(self, request: Request) -> None:
        """Called when *request* is in the queue of its download slot."""
        self._forget_answer()
        self._permit.close()
        self._sent += 1
        self._check_number(self._sent)
        if self._given_up is not None:
            return
        if is_downgrade(request.url, self.origin):
            # HttpAuthMiddleware adds the credentials of the spider to all requests for a domain.
            request.headers.pop("Authorization", None)
        self._permit.enter_context(self.concurrency.released())
        self.stop_clock()
        self._timer = call_later(0, self._look_whether_queued, request)

    def _look_whether_queued(self, request: Request) -> None:
        # In front of the pages of its host: these may wait for it, and the queue may take hours.
        if Engine(self.crawler).move_to_front(request):
            self._timer = call_later(_QUEUE_POLL, self._look_whether_queued, request)
        else:
            self.start_clock()

    def on_left_downloader(self) -> None:
        """Called when its request leaves the downloader."""
        self._permit.close()
        # It may have left without having been sent.
        self.start_clock()

    def on_bytes(self, count: int) -> None:
        """Called when *count* more bytes of the body have arrived.

        Raises :exc:`~scrapy.exceptions.StopDownload` after the last one that is needed.
        """
        if self._given_up is not None:
            raise StopDownload(fail=True)
        self._received += count
        if self._received > self.settings.max_size:
            self.is_cut = True
            raise StopDownload(fail=False)

    def on_response(self, response: Response) -> None:
        """Called with *response* before any middleware."""
        # HttpCompressionMiddleware would decode the body, and drop it if it is too large.
        self.encoding = b",".join(response.headers.getlist("Content-Encoding"))
        response.headers.pop("Content-Encoding", None)


# -- by request -------------------------------------------------------------------


def download_of(request: Request) -> Download | None:
    """The download that *request* belongs to; ``None`` if it is not a robots.txt request."""
    return request.meta.get(_DOWNLOAD)


def connect_downloads(manager: SignalManager) -> None:
    """Connect the signals of *manager* to the downloads."""
    manager.connect(_request_reached_downloader, signals.request_reached_downloader)
    manager.connect(_request_left_downloader, signals.request_left_downloader)
    manager.connect(_bytes_received, signals.bytes_received)
    manager.connect(_response_downloaded, signals.response_downloaded)


def _request_reached_downloader(request: Request) -> None:
    if download := download_of(request):
        download.on_queued(request)


def _request_left_downloader(request: Request) -> None:
    if download := download_of(request):
        download.on_left_downloader()


def _bytes_received(data: bytes, request: Request) -> None:
    if download := download_of(request):
        download.on_bytes(len(data))


def _response_downloaded(response: Response, request: Request) -> None:
    if download := download_of(request):
        download.on_response(response)
