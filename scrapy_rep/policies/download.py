"""One hop of a robots.txt fetch: one download through the crawler's engine.

Here may live: what bounds one download (its size, its time, its number of requests), and the
signals of Scrapy that tell about it. Here may not live: redirects, and what an answer means.

Through ``engine.download_async`` and never around it: proxies, handlers, stats and throttling
keep working. Every middleware sees the request; none may change what it means, nor make it
last longer than its time.

Fetches take no concurrency from pages (:mod:`scrapy_rep.holding.concurrency`), and go before
them in the queue of their download slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.engine import Engine
from scrapy_rep.policies.decompress import BrokenBody, decompress
from scrapy_rep.policies.headers import MAX_ENCODING, KeptHeaders, keep

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager

    from scrapy_rep.holding.concurrency import ConcurrencyLimit

#: Requests for one hop: middlewares that repeat a request are allowed so many in all.
MAX_REQUESTS = 5

# Where the signals of the engine find the download that a request is for.
_DOWNLOAD = "rep_download"
# Seconds between looks at whether a request has left its slot's queue.
_QUEUE_POLL = 0.25
# Seconds after which a handler gives up what nobody waits for any more.
_HANDLER_GRACE = 1.0
_ENCODING = "content-encoding"


class Expired(Exception):
    """The time for a fetch is over."""


class TooManyRequests(Exception):
    """A middleware repeats the request for one hop again and again."""


class Exchange(NamedTuple):
    """A request, as it was sent, and its *response*.

    *content_encoding* is what :class:`Download` has taken out of the response's headers;
    *is_cut* says that there was more of the body.
    """

    request: Request
    response: Response
    content_encoding: list[bytes]
    is_cut: bool


class Budget:
    """The seconds that a fetch may take: they run down from :meth:`start` to :meth:`stop`."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = seconds
        self._since: float | None = None

    @property
    def left(self) -> float:
        """The seconds that are left; not above 0 when the time is over."""
        running = 0.0 if self._since is None else self._clock() - self._since
        return self._left - running

    def start(self) -> None:
        """Count the time from now on, if it is not counted already."""
        if self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        """Count it no longer, until the next :meth:`start`."""
        self._left = self.left
        self._since = None


class Download:
    """The download of one hop: cut at *limit* bytes, given up when *budget* is spent.

    *in_plain_text*: a hop from https to http, which must not carry credentials.

    Time in the queue of a download slot, or before a throttle, does not count: with a
    DOWNLOAD_DELAY of 20 s, a host would be unreachable for no fault of its own. Whatever
    else happens between the first request and the last answer counts.
    """

    def __init__(
        self,
        crawler: Crawler,
        concurrency: ConcurrencyLimit,
        limit: int,
        budget: Budget,
        *,
        in_plain_text: bool = False,
    ) -> None:
        self._crawler = crawler
        self._concurrency = concurrency
        # From when the downloader has it until it leaves: never longer than it has a
        # place, or a page too many could be asked for in between.
        self._permit = ExitStack()
        self._limit = limit
        self._budget = budget
        self._in_plain_text = in_plain_text
        self._received = 0
        self._is_given_up = False
        # Requests that a middleware has seen, and that the downloader has got.
        self._admitted = 0
        self._sent = 0
        self._outcome: Deferred[Response] = Deferred()
        self._engine: Deferred[Response] | None = None
        self._timer: CallLaterResult | None = None
        #: The Content-Encoding that the body came with.
        self._encoding = KeptHeaders(())
        #: Whether the body is only the start of what was sent.
        self.is_cut = False
        #: The Content-Encoding headers, whole.
        self.content_encoding: list[bytes] = []

    async def run(self, request: Request) -> Response:
        """Download *request*.

        Raises what the engine raises, :exc:`Expired`, :exc:`TooManyRequests` or what
        :meth:`give_up` is told.
        """
        if self._budget.left <= 0:
            raise Expired
        assert self._crawler.engine is not None
        request.meta[_DOWNLOAD] = self
        # Later than ours, so that one of the two decides, whatever the handler.
        request.meta["download_timeout"] = self._budget.left + _HANDLER_GRACE
        self.start_clock()
        self._engine = deferred_from_coro(self._crawler.engine.download_async(request))
        self._engine.addBoth(self._finish)
        try:
            return await maybe_deferred_to_future(self._outcome)
        except StopDownload:
            raise Expired from None
        finally:
            self._permit.close()
            self.stop_clock()

    def decoded(self, body: bytes, limit: int) -> bytes:
        """At most *limit* bytes of what *body*, the answer's, is without its Content-Encoding.

        Raises :exc:`~.decompress.BrokenBody`.
        """
        if self._encoding.is_cut:
            raise BrokenBody(f"its Content-Encoding has more than {MAX_ENCODING} bytes")
        encodings = [one for _, value in self._encoding.fields for one in value.split(",")]
        return decompress(body, encodings, limit, cut=self.is_cut)[:limit]

    def give_up(self, why: Exception) -> None:
        """Wait no longer, but have :meth:`run` raise *why*."""
        self._is_given_up = True
        self._permit.close()
        self._finish(Failure(why))  # type: ignore[no-untyped-call]
        if self._engine is not None:
            self._engine.cancel()

    def _finish(self, result: Any) -> None:
        if not self._outcome.called:
            self._outcome.callback(result)

    # -- time -----------------------------------------------------------------------

    def start_clock(self) -> None:
        """Count time from now on."""
        self.stop_clock()
        if not self._outcome.called:
            self._budget.start()
            self._timer = call_later(max(self._budget.left, 0.0), self._expire)

    def stop_clock(self) -> None:
        """Count no time until the clock is started again."""
        self._budget.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.give_up(Expired())

    # -- what happens to its requests -----------------------------------------------

    def admit(self) -> None:
        """A middleware has got a request for this hop, the first one or a repeated one.

        Raises :exc:`~scrapy.exceptions.IgnoreRequest` if it must not be sent.
        """
        self._admitted += 1
        self._check_number(self._admitted)
        if self._is_given_up:
            raise IgnoreRequest("this robots.txt fetch is over")

    def _check_number(self, requests: int) -> None:
        if requests > MAX_REQUESTS and not self._is_given_up:
            self.give_up(TooManyRequests(f"a middleware repeats it after {MAX_REQUESTS} requests"))

    def reached_downloader(self, request: Request) -> None:
        """*request* has been put into the queue of its download slot."""
        self._received = 0
        self.is_cut = False
        self._encoding = KeptHeaders(())
        self.content_encoding = []
        self._permit.close()
        self._sent += 1
        self._check_number(self._sent)
        if self._is_given_up:
            return
        if self._in_plain_text:
            # Scrapy's own middleware adds the credentials of the spider and the settings to
            # all requests for a domain.
            request.headers.pop("Authorization", None)
        self._permit.enter_context(self._concurrency.released())
        self.stop_clock()
        self._timer = call_later(0, self._look_whether_queued, request)

    def _look_whether_queued(self, request: Request) -> None:
        engine = Engine(self._crawler)
        if engine.queue_position(request) is None:
            self.start_clock()
            return
        # Before the pages of its host, which may wait for it, or for hours.
        engine.move_to_front(request)
        self._timer = call_later(_QUEUE_POLL, self._look_whether_queued, request)

    def left_downloader(self) -> None:
        """It is about to be over."""
        self._permit.close()
        # It may never have been sent.
        self.start_clock()

    def bytes_received(self, count: int) -> None:
        """*count* more bytes of the body are there.

        Raises :exc:`~scrapy.exceptions.StopDownload` when they are enough, or
        nobody waits for them any more.
        """
        if self._is_given_up:
            raise StopDownload(fail=True)
        self._received += count
        if self._received > self._limit:
            self.is_cut = True
            raise StopDownload(fail=False)

    def downloaded(self, response: Response) -> None:
        """*response* is there, and no middleware has seen it yet.

        HttpCompressionMiddleware undoes what this header says without a limit
        that would leave us a body; without the header, it leaves it to us.
        """
        self._encoding = keep(response.headers.getlist, (_ENCODING,), MAX_ENCODING)
        self.content_encoding = response.headers.getlist(_ENCODING)
        response.headers.pop("Content-Encoding", None)


# -- by request -------------------------------------------------------------------


def _download_of(request: Request) -> Download | None:
    return request.meta.get(_DOWNLOAD)


def is_fetch(request: Request) -> bool:
    """Whether *request* is one of ours, for a robots.txt."""
    return _DOWNLOAD in request.meta


def admit(request: Request) -> None:
    """Let *request*, one of ours, pass the middleware.

    Raises :exc:`~scrapy.exceptions.IgnoreRequest` if its fetch is over, or if it has been
    repeated too often.
    """
    if download := _download_of(request):
        download.admit()


@contextmanager
def clock_stopped(request: Request) -> Iterator[None]:
    """While *request*, one of ours, waits for its turn: no time counts."""
    download = _download_of(request)
    if download:
        download.stop_clock()
    try:
        yield
    finally:
        if download:
            download.start_clock()


def connect(manager: SignalManager) -> None:
    """Have downloads be told by the signals of *manager*."""
    manager.connect(_request_reached_downloader, signals.request_reached_downloader)
    manager.connect(_request_left_downloader, signals.request_left_downloader)
    manager.connect(_bytes_received, signals.bytes_received)
    manager.connect(_response_downloaded, signals.response_downloaded)


def _request_reached_downloader(request: Request) -> None:
    if download := _download_of(request):
        download.reached_downloader(request)


def _request_left_downloader(request: Request) -> None:
    if download := _download_of(request):
        download.left_downloader()


def _bytes_received(data: bytes, request: Request) -> None:
    if download := _download_of(request):
        download.bytes_received(len(data))


def _response_downloaded(response: Response, request: Request) -> None:
    if download := _download_of(request):
        download.downloaded(response)
