"""The downloader middleware: it admits, refuses or holds each request, as decided."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import ConfigurationError, CrawlStopping, RobotsForbidden
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.holding.hold_queue import RETURNED, Arrival, HeldRequest, HoldQueue, MustLeave
from scrapy_rep.observers.change_signal import ChangeSignal
from scrapy_rep.observers.matching_limit import MatchingLimit
from scrapy_rep.observers.observer import Observer, Observers
from scrapy_rep.observers.stats import count
from scrapy_rep.observers.summary import Summary
from scrapy_rep.pages.statements import PAGE_RULES
from scrapy_rep.pages.tdmrep import TdmFiles, asks_for_tdm_file
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.policies.download import download_of
from scrapy_rep.rep.decision import Admit, Fetch, Hold, Refuse, RequestFacts, decide, verdict_now
from scrapy_rep.rep.parsing.agents import Agents
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import PageRuleMode, RepSettings, downloader_middlewares, tokens
from scrapy_rep.throttling.pacing import Pacing
from scrapy_rep.throttling.slow_sites import SlowSites
from scrapy_rep.tokens import AgentTokens

logger = logging.getLogger(__name__)

#: Request meta key: the time (seconds since the epoch) since which the request has been held.
HELD_SINCE = "rep_held_since"
_STOPPING = Verdict(False, Reason.UNREACHABLE, detail="the crawl is stopping")


class RepMiddleware:
    """The downloader middleware that replaces Scrapy's own.

    Use :class:`scrapy_rep.Addon` to enable it, or set both::

        ROBOTSTXT_OBEY = True
        DOWNLOADER_MIDDLEWARES = {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy_rep.RepMiddleware": 100,
        }
    """

    def __init__(self, crawler: Crawler, clock: Callable[[], float] | None = None) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        _check_alone(crawler)
        settings = RepSettings.read(crawler.settings)
        self._crawler = crawler
        self._terms = settings.terms
        self._clock = clock or steady()
        self._tokens = AgentTokens(settings, crawler.spider)
        self._tokens.warn()
        self._limit = ConcurrencyLimit.from_crawler(crawler)
        # First, so that held requests leave before fetches are given up.
        self._queue = HoldQueue(crawler, self._limit, settings.max_waiting)
        # Before the summary, which names the slowest sites.
        self._pacing = pacing = Pacing(crawler, settings, self._clock)
        if settings.backoff:
            of_pacing = (pacing.throttle, pacing.log, settings.backoff_max)
            self._slow_sites = SlowSites(crawler, *of_pacing, self._queue.give_back, download_of)
        observers = enabled_observers(crawler, settings, self._clock)
        self._observers = Observers(crawler, observers)
        self._observe_allowed = self._observers.observe_allowed
        self._policies = PolicyCache(crawler, settings, self._clock, self._limit, self._observers)
        # Signals do not keep what they call.
        self._warn = Engine(crawler).warn
        crawler.signals.connect(self._warn, signals.spider_opened)
        self._tdm_files: TdmFiles | None = None
        if settings.page_rules is not PageRuleMode.OFF:
            self._add_page_rules(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        """Called by Scrapy. Raises :exc:`~.ConfigurationError` for invalid settings."""
        return cls(crawler)

    def _add_page_rules(self, settings: RepSettings) -> None:
        # Most crawls do without these, and without what they import.
        from scrapy_rep.pages.responses import ResponseRules

        if asks_for_tdm_file(settings):
            self._tdm_files = TdmFiles(self._policies.usable, self._policies.get, self._tokens)
        of_crawl = (self._crawler, settings, self._tokens, self._clock)
        responses = ResponseRules(*of_crawl, self._known_policy, self._tdm_files, self._refused)
        # Scrapy calls these where they exist.
        self.process_response = responses.process_response
        self.process_exception = responses.process_exception

    def _known_policy(self, request: Request) -> Policy | None:
        """The policy for *request*, where it takes no waiting."""
        policy = self._policies.peek(request.url)
        if policy is None and isinstance(origin := origin_or_verdict(request.url), Origin):
            policy = self._policies.usable(origin, request)
        return policy

    # -- for spiders --------------------------------------------------------------

    async def policy(self, url: str) -> Policy:
        """The policy of the origin of *url*. Its robots.txt is fetched if necessary.

        An origin whose robots.txt is unreachable has a policy too. Raises :exc:`ValueError` if
        *url* has no origin (see :class:`~scrapy_rep.Origin`), and
        :exc:`~scrapy_rep.CrawlStopping` if the crawl stops before the policy is known.
        """
        asking = Request(url)
        return await maybe_deferred_to_future(self._policies.get(Origin.of(asking.url), asking))

    async def verdict(self, url: str, agents: Agents | None = None) -> Verdict:
        """Whether a request for *url* would be allowed now, and why.

        *agents* is one product token or several in order of preference. The default is the
        product tokens of the spider. If ``REP_UNREACHABLE`` makes the crawl hold the request,
        the verdict is *disallowed*. Raises :exc:`ValueError` for an invalid product token.
        """
        verdict = self.known_verdict(url, agents)
        if verdict is None:
            try:
                verdict = self._verdict(await self.policy(url), Request(url), agents)
            except CrawlStopping:
                verdict = _STOPPING
        return verdict

    async def allowed(self, url: str, agents: Agents | None = None) -> bool:
        """Whether the :meth:`verdict` about *url* is *allowed*."""
        return (await self.verdict(url, agents)).allowed

    def known_verdict(self, url: str, agents: Agents | None = None) -> Verdict | None:
        """The :meth:`verdict` if it is known without waiting, else ``None``."""
        try:
            asking = Request(url)
        except ValueError as error:
            return Verdict(False, Reason.INVALID_URL, detail=printable(str(error)))
        origin = origin_or_verdict(asking.url)
        if isinstance(origin, Verdict):
            return origin
        policy = self._policies.peek(f"{origin}/")
        return None if policy is None else self._verdict(policy, asking, agents)

    def _verdict(self, policy: Policy, asking: Request, agents: Agents | None) -> Verdict:
        agents = self._tokens.of(asking) if agents is None else tokens(agents)
        return verdict_now(policy, asking.url, agents, self._terms, self._clock())

    # -- requests -----------------------------------------------------------------

    def process_request(self, request: Request) -> Awaitable[Request | None] | None:
        """Called by Scrapy. Admits *request* or raises :exc:`~scrapy_rep.RobotsForbidden`.

        It waits only if :func:`~.decision.decide` says so, or if the site is throttled.
        """
        meta = request.meta
        # Of the page that it was made from.
        meta.pop(PAGE_RULES, None)
        if meta.get("dont_obey_robotstxt"):
            return self._process_exempt(request)
        policy = self._policies.peek(request.url)
        # The fast path: the result of decide() for most requests, without creating its values.
        # Most files have no delay, and most crawls visit no site that has one.
        if (
            policy is not None
            and policy.directives is None
            and RETURNED not in meta
            and not self._pacing.asked
            and self._tdm_files is None
            and policy.allowed(request.url, self._tokens.of(request))
        ):
            if self._observe_allowed:
                self._admitted(policy, request)
            return None
        return self._process_slowly(policy, request)

    def _process_exempt(self, request: Request) -> Awaitable[None] | None:
        if download := download_of(request):
            download.admit()
            turn = self._pacing.admit_fetch(request)
            return turn and download.wait_for_turn(turn)
        self._observers.on_exempt(request, "dont_obey_robotstxt")
        return None

    def _process_slowly(
        self, policy: Policy | None, request: Request
    ) -> Awaitable[Request | None] | None:
        """Decide about *request* and act on it, without waiting if possible."""
        arrival = self._queue.arrival(request)
        if arrival is Arrival.FROM_COMPONENT and self._limit.is_closing:
            raise self._refused(None, request, _STOPPING)
        policy = policy or self._known_policy(request)
        decision = self._decide(policy, request)
        turn = None
        knows_all = not self._tdm_files or not policy or self._tdm_files.knows(policy, request)
        if isinstance(decision, Admit) and knows_all:
            if policy is not None:
                turn = self._pacing.admit(policy, request, self._tokens.of(request))
            if turn is None:
                self._admitted(policy, request)
                return None
        origin = Origin.of(request.url) if policy is None else policy.origin
        return self._hold(origin, request, arrival, turn)

    async def _hold(
        self, origin: Origin, request: Request, arrival: Arrival, turn: Deferred[None] | None
    ) -> Request | None:
        """Hold *request* until it is admitted, or return it to the scheduler."""
        try:
            with self._queue.hold(origin, request, arrival) as held:
                await self._wait_until_admitted(held, request, turn)
        except MustLeave:
            return self._queue.give_back(request)
        return None

    async def _wait_until_admitted(
        self, held: HeldRequest, request: Request, turn: Deferred[None] | None
    ) -> None:
        """Wait until *request* has a valid policy, a turn and concurrency.

        While it waits for one of these, it may lose its turn, and the policy may expire. So both
        are checked again.
        """
        has_tdm_file = False
        while True:
            if turn is not None:
                await held.wait(turn)
                await self._limit.reacquire(held, request)
            policy = await held.wait(self._policies.get(held.origin, request))
            decision = self._decide(policy, request)
            if isinstance(decision, Hold):
                await self._sleep(decision, request, held)
            elif self._tdm_files is not None and not has_tdm_file:
                await held.wait(self._tdm_files.get(policy, request))
                has_tdm_file = True
            elif turn is not None and self._pacing.has_turn(request):
                break
            elif (turn := self._pacing.admit(policy, request, self._tokens.of(request))) is None:
                await self._limit.reacquire(held, request)
                if self._pacing.has_turn(request):
                    break
        if self._limit.is_closing:
            raise MustLeave
        self._admitted(policy, request)

    async def _sleep(self, decision: Hold, request: Request, held: HeldRequest) -> None:
        """Wait until it is time to decide again."""
        now = self._clock()
        if HELD_SINCE not in request.meta:
            count(self._crawler, "robotstxt/kept_count")
        # The clock may have been set back since an earlier run of the crawl.
        request.meta[HELD_SINCE] = min(request.meta.get(HELD_SINCE, now), now)
        await held.sleep(max(decision.until - now, 0.0))

    def _decide(self, policy: Policy | None, request: Request) -> Admit | Hold | Fetch:
        """Admit, hold or fetch. Raises :exc:`~scrapy_rep.RobotsForbidden` to refuse *request*."""
        agents = self._tokens.of(request)
        facts = RequestFacts(request.url, agents, request.meta.get(HELD_SINCE))
        decision = decide(policy, facts, self._terms, self._clock())
        if isinstance(decision, Admit | Refuse):
            # Otherwise a new request with a copy of this meta would count as held since then.
            request.meta.pop(HELD_SINCE, None)
        if isinstance(decision, Refuse):
            raise self._refused(policy, request, decision.verdict)
        return decision

    def _admitted(self, policy: Policy | None, request: Request) -> None:
        """Tell the observers of allowed requests about *request*."""
        if not self._observe_allowed:
            return
        if policy is None:
            is_other = isinstance(origin_or_verdict(request.url), Verdict)
            reason = Reason.OTHER_SCHEME if is_other else Reason.ROBOTS_TXT_ITSELF
            self._observers.on_exempt(request, reason.value)
        else:
            agents = self._tokens.of(request)
            verdict = policy.verdict(request.url, agents, now=self._clock())
            self._observers.on_decision(request, policy, agents, verdict)

    def _refused(
        self, policy: Policy | None, request: Request, verdict: Verdict
    ) -> RobotsForbidden:
        spider = {"spider": self._crawler.spider}
        logger.debug("Forbidden by robots.txt: %s is %s", request, verdict, extra=spider)
        count(self._crawler, "robotstxt/forbidden")
        count(self._crawler, f"robotstxt/forbidden/{verdict.reason.value}")
        agents = self._tokens.of(request) if policy is not None else ()
        self._observers.on_decision(request, policy, agents, verdict)
        return RobotsForbidden(verdict)


def enabled_observers(
    crawler: Crawler, settings: RepSettings, clock: Callable[[], float]
) -> Iterator[Observer]:
    """The observers that the settings enable."""
    yield Summary(crawler)
    yield MatchingLimit(crawler)
    yield ChangeSignal(crawler, settings)
    # Most crawls do not use these, so they are imported only when enabled.
    recorder = None
    if settings.report is not None:
        from scrapy_rep.observers.report.recorder import Recorder

        recorder = Recorder(crawler, settings, settings.report, clock)
        yield recorder
    if settings.audit is not None or settings.archive is not None:
        from scrapy_rep.evidence.recorder import EvidenceRecorder

        yield EvidenceRecorder(crawler, settings, clock)
    if settings.compare_with:
        from scrapy_rep.parsers.shadow import ShadowParsers

        yield ShadowParsers(crawler, settings, recorder)


def _check_alone(crawler: Crawler) -> None:
    """Raise an error if Scrapy's own robots.txt middleware is enabled too."""
    for middleware in downloader_middlewares(crawler.settings):
        if isinstance(middleware, type) and issubclass(middleware, RobotsTxtMiddleware):
            path = global_object_name(middleware)
            raise ConfigurationError(
                f"{path} and scrapy_rep.RepMiddleware are both enabled. Disable one of them. "
                f'To use scrapy-rep, add "{path}": None to DOWNLOADER_MIDDLEWARES'
            )
