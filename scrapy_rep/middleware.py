"""One request in: let through, or refused with the verdict."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from scrapy_rep.exceptions import ConfigurationError, RobotsForbidden
from scrapy_rep.keeper import PolicyKeeper, steady
from scrapy_rep.places import Places
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import InvalidURL, Origin, is_robots_txt
from scrapy_rep.rep.verdict import Reason, Verdict
from scrapy_rep.settings import RepSettings, downloader_middlewares, obeys_robotstxt
from scrapy_rep.stats import count
from scrapy_rep.summary import Summary
from scrapy_rep.tokens import AgentTokens
from scrapy_rep.waiting import KEPT_SINCE, RETURNED, WaitingRoom, from_scheduler
from scrapy_rep.watching import Watcher, Watchers

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

# What has a robots.txt: RFC 9309 §2.3 names HTTP and FTP as examples.
_SCHEMES = ("http:", "https:", "ftp:")


class _Turn(Enum):
    """How a request has come here."""

    FIRST = auto()
    #: The scheduler had got it back.
    HANDED_OUT_AGAIN = auto()
    #: Somebody who asks the engine by himself, such as a media pipeline, had got it back.
    ASKED_FOR_AGAIN = auto()


# For how many seconds a request waits that finds no place in the waiting room, on one
# of CONCURRENT_REQUESTS, before the scheduler gets it back.
_PATIENCE = {_Turn.FIRST: 0.0, _Turn.HANDED_OUT_AGAIN: 0.25, _Turn.ASKED_FOR_AGAIN: None}


class RepMiddleware:
    """The downloader middleware that takes the place of Scrapy's own.

    Use :class:`scrapy_rep.Addon` to enable it, or set both::

        ROBOTSTXT_OBEY = True
        DOWNLOADER_MIDDLEWARES = {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy_rep.RepMiddleware": 100,
        }
    """

    def __init__(self, crawler: Crawler, clock: Callable[[], float] | None = None) -> None:
        if not obeys_robotstxt(crawler.settings):
            raise NotConfigured
        _check_alone(crawler)
        self._crawler = crawler
        self._settings = RepSettings.read(crawler.settings)
        self._tokens = AgentTokens(self._settings, crawler.spider)
        self._clock = clock or steady()
        self._watchers = Watchers(crawler, _watchers(crawler, self._settings))
        self._watch_allowed = self._watchers.watch_allowed
        places = Places(crawler)
        # First, so that who waits leaves before there is an answer from fetches given up.
        self._room = WaitingRoom(crawler, places, self._settings.max_waiting)
        self._keeper = PolicyKeeper(crawler, self._settings, self._clock, places, self._watchers)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        """Made by Scrapy. Raises
        :exc:`~scrapy_rep.exceptions.ConfigurationError` for settings that make
        no sense."""
        return cls(crawler)

    def process_request(self, request: Request) -> Coroutine[Any, Any, Request | None] | None:
        """Let *request* through, or raise :exc:`~scrapy_rep.RobotsForbidden`.

        Waits only where the robots.txt has to be fetched first, or where
        ``REP_UNREACHABLE`` says that requests are kept.
        """
        meta = request.meta
        if meta.get("dont_obey_robotstxt"):
            return None
        url = request.url
        policy = self._keeper.known(url)
        if policy is None or RETURNED in meta:
            return self._process_unknown(request)
        if policy.allowed(url, self._tokens.of(request)):
            if self._watch_allowed:
                self._watch(policy, request)
            return None
        if policy.defers:
            return self._obtain_and_judge(policy.origin, request)
        raise self._refused(policy, request)

    def _process_unknown(self, request: Request) -> Coroutine[Any, Any, Request | None] | None:
        """The same where the policy is not at hand."""
        if not request.url.startswith(_SCHEMES):
            return None
        turn = self._turn(request)
        try:
            origin = Origin.of(request.url)
        except InvalidURL as error:
            verdict = Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))
            raise self._forbidden(request, verdict) from None
        policy = self._keeper.current(origin, request)
        if policy is None:
            if is_robots_txt(request.url, self._settings.dialect):
                # Allowed whatever is in it, so not asked for first.
                return None
            return self._obtain_and_judge(origin, request, turn)
        if policy.defers:
            return self._obtain_and_judge(origin, request, turn)
        self._judge(policy, request)
        return None

    def _turn(self, request: Request) -> _Turn:
        """How *request* has come here, which is then written on it no longer."""
        if RETURNED not in request.meta:
            return _Turn.FIRST
        if not self._room.has_given_back(request):
            from_scheduler(request)
            return _Turn.HANDED_OUT_AGAIN
        if self._room.is_closing:
            verdict = Verdict(False, Reason.UNREACHABLE, detail="the crawl is stopping")
            raise self._forbidden(request, verdict)
        from_scheduler(request)
        return _Turn.ASKED_FOR_AGAIN

    async def _obtain_and_judge(
        self, origin: Origin, request: Request, turn: _Turn = _Turn.FIRST
    ) -> Request | None:
        if self._room.has_place_for(origin):
            with self._room.place(origin):
                policy = await self._wait(origin, request, None)
        else:
            policy = await self._wait(origin, request, _PATIENCE[turn])
        if policy is None:
            return self._room.give_back(request)
        self._judge(policy, request)
        return None

    async def _wait(
        self, origin: Origin, request: Request, patience: float | None
    ) -> Policy | None:
        """What holds for *origin* when *request* need wait no longer.

        ``None`` if the crawl stops before that, or *patience*, in seconds, is over.
        """
        policy = await self._room.wait(self._keeper.obtain(origin, request), patience)
        if policy is None or is_robots_txt(request.url, policy.dialect):
            return policy
        if policy.defers and KEPT_SINCE not in request.meta:
            count(self._crawler, "robotstxt/kept_count")
        while policy is not None and policy.defers:
            now = self._clock()
            # The clock may have been set back since an earlier run of the crawl.
            since = request.meta[KEPT_SINCE] = min(request.meta.get(KEPT_SINCE, now), now)
            left = since + self._settings.max_wait - now
            if left <= 0:
                break
            if patience is not None:
                await self._room.wait(Deferred(), min(patience, left))
                return None
            await self._room.wait(Deferred(), min(max(policy.until - now, 0.0), left))
            if self._room.is_closing:
                return None
            policy = await self._room.wait(self._keeper.obtain(origin, request))
        return policy

    def _judge(self, policy: Policy, request: Request) -> None:
        # Or a request that is made from this one's meta would be taken for as old.
        request.meta.pop(KEPT_SINCE, None)
        if not policy.allowed(request.url, self._tokens.of(request)):
            raise self._refused(policy, request)
        if self._watch_allowed:
            self._watch(policy, request)

    def _watch(self, policy: Policy, request: Request) -> None:
        """Show what is let through to those who watch."""
        agents = self._tokens.of(request)
        verdict = policy.verdict(request.url, agents, now=self._clock())
        self._watchers.decided(request, policy, agents, verdict)

    def _refused(self, policy: Policy, request: Request) -> RobotsForbidden:
        agents = self._tokens.of(request)
        verdict = policy.verdict(request.url, agents, now=self._clock())
        return self._forbidden(request, verdict, policy, agents)

    def _forbidden(
        self,
        request: Request,
        verdict: Verdict,
        policy: Policy | None = None,
        agents: Sequence[str] = (),
    ) -> RobotsForbidden:
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "Forbidden by robots.txt: %(request)s is %(verdict)s",
                {"request": request, "verdict": verdict},
                extra={"spider": self._crawler.spider},
            )
        count(self._crawler, "robotstxt/forbidden")
        count(self._crawler, f"robotstxt/forbidden/{verdict.reason.value}")
        self._watchers.decided(request, policy, agents, verdict)
        return RobotsForbidden(verdict)


def _watchers(crawler: Crawler, settings: RepSettings) -> Iterator[Watcher]:
    """Whoever is to see what this crawl learns and decides."""
    yield Summary(crawler)
    if settings.compare_with:
        # Most crawls do without.
        from scrapy_rep.comparison import Comparison

        yield Comparison(crawler, settings)


def _check_alone(crawler: Crawler) -> None:
    """Refuse to start beside a middleware that does the same by other rules."""
    for middleware in downloader_middlewares(crawler.settings):
        if isinstance(middleware, type) and issubclass(middleware, RobotsTxtMiddleware):
            path = global_object_name(middleware)
            raise ConfigurationError(
                f"{path} and scrapy_rep.RepMiddleware are both enabled, and would obey "
                f"robots.txt by different rules. Switch one of them off: add "
                f'"{path}": None to DOWNLOADER_MIDDLEWARES to keep scrapy-rep'
            )
