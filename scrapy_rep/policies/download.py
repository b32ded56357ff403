"""The requests for one robots.txt, through the crawler's engine.

Here may live: what bounds them (their size, time and number), and the signals of Scrapy that
tell about them. Here may not live: where redirects lead, and what an answer means.

Through ``engine.download_async`` and never around it: proxies, handlers, stats and throttling
keep working. Every middleware sees the requests; none may change what they mean, nor make
them last longer than their time.

Fetches take no concurrency from pages (:mod:`scrapy_rep.holding.concurrency`), and go before
them in the queue of their download slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.engine import Engine
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.redirects import is_downgrade

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager

    from scrapy_rep.holding.concurrency import ConcurrencyLimit
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.settings import RepSettings

#: Requests for one hop: middlewares that repeat a request are allowed so many in all.
MAX_REQUESTS = 5

# Where the signals of the engine find the download that a request is for.
_DOWNLOAD = "rep_download"
# Seconds between looks at whether a request has left its slot's queue.
_QUEUE_POLL = 0.25
# Seconds after which a handler gives up what nobody waits for any more.
_HANDLER_GRACE = 1.0


class Download:
    """The download of the robots.txt of *origin*: a request for each hop, one at a time.

    Cut at REP_MAX_SIZE bytes, given up after REP_FETCH_TIMEOUT seconds. Time in the queue of a
    download slot, or before a throttle, does not count: with a DOWNLOAD_DELAY of 20 s, a host
    would be unreachable for no fault of its own. Whatever else happens while a hop is under way
    counts.
    """

    def __init__(
        self,
        crawler: Crawler,
        concurrency: ConcurrencyLimit,
        settings: RepSettings,
        origin: Origin,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._crawler = crawler
        self._concurrency = concurrency
        self._limit = settings.max_size
        self._origin = origin
        self._clock = clock
        self._left = self._seconds = settings.fetch_timeout
        self._counted_since: float | None = None
        self._timer: CallLaterResult | None = None
        # From when the downloader has it until it leaves: never longer than it counts
        # there, or a page too many could be asked for in between.
        self._permit = ExitStack()
        #: Why it was given up.
        self._given_up: Exception | None = None
        self._outcome: Deferred[Response] = Deferred()
        self._engine: Deferred[Response] | None = None
        # Requests that a middleware has seen, and that the downloader has got.
        self._admitted = self._sent = 0
        self._received = 0
        #: The Content-Encoding that the body of the last answer came with.
        self.encoding = b""
        #: Whether that body is only the start of what was sent.
        self.is_cut = False

    async def run(self, request: Request) -> Response:
        """Download *request*, for the next hop.

        Raises what the engine raises, or what :meth:`give_up` is told.
        """
        if self._given_up is not None:
            raise self._given_up
        assert self._crawler.engine is not None
        self._outcome = Deferred()
        self._admitted = self._sent = 0
        request.meta[_DOWNLOAD] = self
        # Later than ours, so that one of the two decides, whatever the handler.
        request.meta["download_timeout"] = self.seconds_left + _HANDLER_GRACE
        self.start_clock()
        self._engine = deferred_from_coro(self._crawler.engine.download_async(request))
        self._engine.addBoth(self._finish)
        try:
            return await maybe_deferred_to_future(self._outcome)
        finally:
            self._permit.close()
            self.stop_clock()

    def give_up(self, why: Exception) -> None:
        """Wait no longer, but have :meth:`run` raise *why*."""
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
        """The seconds that are left; not above 0 when the time is over."""
        since = self._counted_since
        return self._left if since is None else self._left - (self._clock() - since)

    def start_clock(self) -> None:
        """Count time from now on."""
        self.stop_clock()
        if not self._outcome.called:
            self._counted_since = self._clock()
            expired = FetchFailed(f"no answer within {self._seconds:g} s")
            self._timer = call_later(max(self._left, 0.0), self.give_up, expired)

    def stop_clock(self) -> None:
        """Count no time until the clock is started again."""
        self._left, self._counted_since = self.seconds_left, None
        if self._timer is not None:
            self._timer.cancel()

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """While a request waits for its turn: no time counts."""
        self.stop_clock()
        try:
            yield
        finally:
            self.start_clock()

    # -- what happens to its requests -----------------------------------------------

    def admit(self) -> None:
        """Our middleware has got a request for this hop, the first one or a repeated one.

        Raises :exc:`~scrapy.exceptions.IgnoreRequest` if it must not be sent.
        """
        self._admitted += 1
        self._check_number(self._admitted)
        if self._given_up is not None:
            raise IgnoreRequest("the robots.txt fetch has ended")

    def _check_number(self, requests: int) -> None:
        if requests > MAX_REQUESTS and self._given_up is None:
            self.give_up(
                FetchFailed(f"a middleware repeats the request more than {MAX_REQUESTS - 1} times")
            )

    def on_queued(self, request: Request) -> None:
        """*request* has been put into the queue of its download slot."""
        self._received = 0
        self.is_cut = False
        self.encoding = b""
        self._permit.close()
        self._sent += 1
        self._check_number(self._sent)
        if self._given_up is not None:
            return
        if is_downgrade(request.url, self._origin):
            # Scrapy's own middleware adds the credentials of the spider and the settings to
            # all requests for a domain.
            request.headers.pop("Authorization", None)
        self._permit.enter_context(self._concurrency.released())
        self.stop_clock()
        self._timer = call_later(0, self._look_whether_queued, request)

    def _look_whether_queued(self, request: Request) -> None:
        # Before the pages of its host, which may wait for it, or for hours.
        if Engine(self._crawler).move_to_front(request):
            self._timer = call_later(_QUEUE_POLL, self._look_whether_queued, request)
        else:
            self.start_clock()

    def on_left_downloader(self) -> None:
        """Its request is about to be over."""
        self._permit.close()
        # It may never have been sent.
        self.start_clock()

    def on_bytes(self, count: int) -> None:
        """*count* more bytes of the body are there.

        Raises :exc:`~scrapy.exceptions.StopDownload` when they are enough, or
        nobody waits for them any more.
        """
        if self._given_up is not None:
            raise StopDownload(fail=True)
        self._received += count
        if self._received > self._limit:
            self.is_cut = True
            raise StopDownload(fail=False)

    def on_response(self, response: Response) -> None:
        """*response* is there, and no middleware has seen it yet.

        HttpCompressionMiddleware undoes what this header says without a limit
        that would leave us a body; without the header, it leaves it to us.
        """
        self.encoding = b",".join(response.headers.getlist("Content-Encoding"))
        response.headers.pop("Content-Encoding", None)


# -- by request -------------------------------------------------------------------


def download_of(request: Request) -> Download | None:
    """The download that *request* is for, if it is one of ours for a robots.txt."""
    return request.meta.get(_DOWNLOAD)


def connect_downloads(manager: SignalManager) -> None:
    """Have downloads be told by the signals of *manager*."""
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
