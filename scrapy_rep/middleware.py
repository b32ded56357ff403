"""One request in: let through, or refused with the verdict."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from scrapy_rep.exceptions import ConfigurationError, CrawlStopping, RobotsForbidden
from scrapy_rep.holding.concurrency import Places
from scrapy_rep.holding.hold_queue import KEPT_SINCE, RETURNED, WaitingRoom, from_scheduler
from scrapy_rep.observers.matching_limit import MatchingLimit
from scrapy_rep.observers.observer import Observer, Observers
from scrapy_rep.observers.stats import count
from scrapy_rep.observers.summary import Summary
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.policies.fetcher import is_fetch, stop_clock
from scrapy_rep.rep.agents import Agents
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin, is_robots_txt
from scrapy_rep.rep.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.settings import (
    RepSettings,
    VisitTime,
    downloader_middlewares,
    obeys_robotstxt,
    tokens,
)
from scrapy_rep.throttling.pacing import Pacing
from scrapy_rep.tokens import AgentTokens

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.holding.concurrency import Loan

logger = logging.getLogger(__name__)

_STOPPING = Verdict(False, Reason.UNREACHABLE, detail="the crawl is stopping")


class _Turn(Enum):
    """How a request has come here."""

    FIRST = auto()
    #: The scheduler had got it back.
    HANDED_OUT_AGAIN = auto()
    #: Somebody who asks the engine by himself, such as a media pipeline, had got it back.
    ASKED_FOR_AGAIN = auto()


# For how many seconds a request waits at most that finds no place in the waiting room, on
# one of CONCURRENT_REQUESTS, before the scheduler gets it back.
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
        self._tokens.warn()
        self._clock = clock or steady()
        self._observers = Observers(crawler, _observers(crawler, self._settings, self._clock))
        self._observe_allowed = self._observers.observe_allowed
        places = Places(crawler)
        # First, so that who waits leaves before there is an answer from fetches given up.
        self._room = WaitingRoom(crawler, places, self._settings.max_waiting)
        self._policies = PolicyCache(crawler, self._settings, self._clock, places, self._observers)
        self._pacing = Pacing(crawler, self._settings, self._clock, places)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        """Made by Scrapy. Raises
        :exc:`~scrapy_rep.exceptions.ConfigurationError` for settings that make
        no sense."""
        return cls(crawler)

    # -- for spiders --------------------------------------------------------------

    async def policy(self, url: str) -> Policy:
        """All that is known of the origin of *url*, fetched where it has to be.

        Raises :exc:`ValueError` if that has no robots.txt: see
        :class:`~scrapy_rep.Origin`. An origin that cannot be reached has a policy, too.
        Raises :exc:`~scrapy_rep.CrawlStopping` if the crawl stops before it is known.
        """
        asking = Request(url)
        obtained = self._policies.get(Origin.of(asking.url), asking)
        return await maybe_deferred_to_future(obtained)

    async def verdict(self, url: str, agents: Agents | None = None) -> Verdict:
        """What a request for *url* made now would come to, and why.

        *agents* is one product token or several in order of preference, by default
        those of the spider. The verdict is also against *url* where
        ``REP_UNREACHABLE`` says that its request would be kept. Raises
        :exc:`ValueError` for agents that no group can name.
        """
        asking = _asking(url)
        if isinstance(asking, Verdict):
            return asking
        try:
            policy = await self.policy(asking.url)
        except CrawlStopping:
            return _STOPPING
        return self._verdict(policy, asking, agents)

    async def allowed(self, url: str, agents: Agents | None = None) -> bool:
        """Whether the :meth:`verdict` is for *url*."""
        return (await self.verdict(url, agents)).allowed

    def known_verdict(self, url: str, agents: Agents | None = None) -> Verdict | None:
        """The :meth:`verdict`, where it takes no waiting; ``None`` where it would."""
        asking = _asking(url)
        if isinstance(asking, Verdict):
            return asking
        policy = self._policies.peek(f"{Origin.of(asking.url)}/")
        return None if policy is None else self._verdict(policy, asking, agents)

    def _verdict(self, policy: Policy, asking: Request, agents: Agents | None) -> Verdict:
        agents = self._tokens.of(asking) if agents is None else tokens(agents)
        return verdict_now(policy, asking.url, agents, self._settings, self._clock())

    # -- requests -----------------------------------------------------------------

    def process_request(self, request: Request) -> Awaitable[Request | None] | None:
        """Let *request* through, or raise :exc:`~scrapy_rep.RobotsForbidden`.

        Waits only where the robots.txt has to be fetched first, or where
        ``REP_UNREACHABLE`` or ``REP_VISIT_TIME`` say that requests are kept.
        """
        meta = request.meta
        if meta.get("dont_obey_robotstxt"):
            return self._pace_fetch(request) if is_fetch(request) else None
        url = request.url
        policy = self._policies.peek(url)
        if policy is None or RETURNED in meta:
            return self._process_unknown(request)
        if policy.allowed(url, self._tokens.of(request)):
            # Most files ask for nothing else, and most crawls come to none that does.
            if policy.directives is None and not self._pacing.asked and not self._observe_allowed:
                return None
            return self._heed(policy, request)
        if policy.defers:
            return self._heed(policy, request)
        raise self._refused(policy, request)

    def _pace_fetch(self, request: Request) -> Awaitable[Request | None] | None:
        """Have *request*, for a robots.txt, wait for its turn."""
        pace = self._pacing.admit_fetch(request)
        if pace is None:
            return None

        async def wait(pace: Deferred[None]) -> None:
            await maybe_deferred_to_future(pace)

        stop_clock(request)
        return wait(pace)

    def _process_unknown(self, request: Request) -> Awaitable[Request | None] | None:
        """The same where the policy is not at hand."""
        origin = origin_or_verdict(request.url)
        if isinstance(origin, Verdict) and origin.allowed:
            return None
        turn = self._turn(request)
        if isinstance(origin, Verdict):
            raise self._forbidden(request, origin)
        policy = self._policies.usable(origin, request)
        if policy is not None:
            return self._heed(policy, request, turn)
        if is_robots_txt(request.url, self._settings.dialect):
            # Allowed whatever is in it, so not asked for first.
            return None
        return self._wait_and_judge(origin, request, turn)

    def _turn(self, request: Request) -> _Turn:
        """How *request* has come here, which is then written on it no longer."""
        if RETURNED not in request.meta:
            return _Turn.FIRST
        if not self._room.has_given_back(request):
            from_scheduler(request)
            return _Turn.HANDED_OUT_AGAIN
        if self._room.is_closing:
            raise self._forbidden(request, _STOPPING)
        from_scheduler(request)
        return _Turn.ASKED_FOR_AGAIN

    def _heed(
        self, policy: Policy, request: Request, turn: _Turn = _Turn.FIRST
    ) -> Awaitable[Request | None] | None:
        """Judge *request* by all that *policy* says, and wait only if it says so."""
        if self._seconds_to_keep(policy, request) is not None:
            return self._wait_and_judge(policy.origin, request, turn)
        pace = self._judge(policy, request)
        if pace is not None:
            return self._wait_and_judge(policy.origin, request, turn, pace)
        self._let_through(policy, request)
        return None

    # -- requests that wait ---------------------------------------------------------

    async def _wait_and_judge(
        self, origin: Origin, request: Request, turn: _Turn, pace: Deferred[None] | None = None
    ) -> Request | None:
        """Judge *request* when all is known, and let it through when it is its turn."""
        if self._room.has_place_for(origin):
            with self._room.place(origin) as loan:
                done = await self._wait(origin, request, None, pace, loan)
        else:
            patience = _PATIENCE[turn]
            with self._room.doorway(patience) as loan:
                done = await self._wait(origin, request, patience, pace, loan)
        return None if done else self._room.give_back(request)

    async def _wait(
        self,
        origin: Origin,
        request: Request,
        patience: float | None,
        pace: Deferred[None] | None,
        loan: Loan | None,
    ) -> bool:
        """Whether *request* may go on now, with its place back if that is on *loan*.

        ``False`` if the crawl stops before that, or *patience*, in seconds, is over.
        """
        while True:
            if pace is not None:
                await self._room.wait(pace, patience=patience)
                if not pace.called:
                    pace.cancel()
                    return False
                await _take_back(loan, request)
            # It may have been a while.
            policy = await self._known(origin, request, patience)
            if policy is None:
                return False
            try:
                if pace is not None and self._pacing.has_turn(request):
                    self._check(policy, request)
                    break
                pace = self._judge(policy, request)
            except RobotsForbidden:
                if loan is not None:
                    await self._room.turn_to_be_refused()
                raise
            if pace is None:
                await _take_back(loan, request)
                break
        if self._room.is_closing:
            return False
        self._let_through(policy, request)
        return True

    async def _known(
        self, origin: Origin, request: Request, patience: float | None
    ) -> Policy | None:
        """What holds for *origin* when *request* need not be, or has long enough been, kept.

        ``None`` if the crawl stops before that, or *patience*, in seconds, is over.
        """
        policy = await self._room.wait(self._policies.get(origin, request), patience=patience)
        while policy is not None:
            seconds = self._seconds_to_keep(policy, request)
            if seconds is None:
                break
            now = self._clock()
            if KEPT_SINCE not in request.meta:
                count(self._crawler, "robotstxt/kept_count")
            # The clock may have been set back since an earlier run of the crawl.
            since = request.meta[KEPT_SINCE] = min(request.meta.get(KEPT_SINCE, now), now)
            left = since + self._settings.max_wait - now
            if left <= 0:
                break
            if patience is not None:
                await self._room.wait(Deferred(), patience=min(patience, left))
                return None
            await self._room.wait(Deferred(), min(seconds, left))
            if self._room.is_closing:
                return None
            policy = await self._room.wait(self._policies.get(origin, request))
        return policy

    def _seconds_to_keep(self, policy: Policy, request: Request) -> float | None:
        """How long until there may be news for *request*; ``None`` if it need not be kept."""
        if policy.defers and not is_robots_txt(request.url, policy.dialect):
            return max(policy.until - self._clock(), 0.0)
        if policy.directives is None:
            return None
        agents, now = self._tokens.of(request), self._clock()
        objection = policy.objection(request.url, agents, now)
        if objection is None or not policy.allowed(request.url, agents):
            return None
        return _seconds_until_open(objection, policy, agents, self._settings, now)

    # -- judging --------------------------------------------------------------------

    def _judge(self, policy: Policy, request: Request) -> Deferred[None] | None:
        """What *request* has to wait for so as to come at the pace that *policy* asks for.

        Raises :exc:`~scrapy_rep.RobotsForbidden` if it must not be made.
        """
        self._check(policy, request)
        return self._pacing.admit(policy, request, self._tokens.of(request))

    def _check(self, policy: Policy, request: Request) -> None:
        agents = self._tokens.of(request)
        # Or a request that is made from this one's meta would be taken for as old.
        request.meta.pop(KEPT_SINCE, None)
        if not policy.allowed(request.url, agents):
            raise self._refused(policy, request)
        objection = policy.objection(request.url, agents, self._clock())
        if objection is not None:
            raise self._forbidden(request, objection, policy, agents)

    def _let_through(self, policy: Policy, request: Request) -> None:
        """Show what is let through to those who watch."""
        if self._observe_allowed:
            agents = self._tokens.of(request)
            verdict = policy.verdict(request.url, agents, now=self._clock())
            self._observers.on_decision(request, policy, agents, verdict)

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
        self._observers.on_decision(request, policy, agents, verdict)
        return RobotsForbidden(verdict)


def _observers(
    crawler: Crawler, settings: RepSettings, clock: Callable[[], float]
) -> Iterator[Observer]:
    """Whoever is to see what this crawl learns and decides."""
    yield Summary(crawler)
    yield MatchingLimit(crawler)
    # Most crawls do without these.
    recorder = None
    if settings.report is not None:
        from scrapy_rep.observers.report.recorder import Recorder

        recorder = Recorder(crawler, settings, settings.report, clock)
        yield recorder
    if settings.compare_with:
        from scrapy_rep.parsers.shadow import ShadowParsers

        yield ShadowParsers(crawler, settings, recorder)


async def _take_back(loan: Loan | None, request: Request) -> None:
    # Who downloads for others, such as media pipelines, is asked by them one at a time.
    if loan is not None and request.callback is not NO_CALLBACK:
        await loan.take_back(request)


def verdict_now(
    policy: Policy, url: str, agents: Agents, settings: RepSettings, now: float
) -> Verdict:
    """What a request for *url* that *agents* make *now* comes to, by all that a crawl heeds.

    One that would be kept until the site opens counts as allowed.
    """
    verdict = policy.verdict(url, agents, now)
    objection = policy.objection(url, agents, now) if verdict.allowed else None
    if objection is None or _seconds_until_open(objection, policy, agents, settings, now):
        return verdict
    return objection


def _seconds_until_open(
    objection: Verdict, policy: Policy, agents: Agents, settings: RepSettings, now: float
) -> float | None:
    """How long requests are kept because of *objection*; ``None`` if they are refused."""
    waits = settings.visit_time is VisitTime.WAIT
    if objection.reason is not Reason.VISIT_TIME or not waits:
        return None
    seconds = policy.pace(agents).seconds_until_open(now)
    # What is over before the site opens need not be waited for.
    return seconds if seconds <= settings.max_wait else None


def _asking(url: str) -> Request | Verdict:
    """A request for *url*, or the verdict where no robots.txt has a say."""
    try:
        request = Request(url)
    except ValueError as error:
        return Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))
    origin = origin_or_verdict(request.url)
    return origin if isinstance(origin, Verdict) else request


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
