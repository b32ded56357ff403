"""The middleware does what is decided, by the fast path and by the slow one."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request, Spider, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, fail, succeed

from scrapy_rep import (
    ConfigurationError,
    CrawlStopping,
    Reason,
    RepMiddleware,
    RobotsForbidden,
)
from scrapy_rep.engine import Engine
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.holding.hold_queue import RETURNED, Arrival, MustLeave
from scrapy_rep.middleware import HELD_SINCE
from scrapy_rep.pages.statements import PAGE_RULES
from scrapy_rep.policies.download import Download
from scrapy_rep.rep.decision import Admit, Fetch, Hold, Refuse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from tests.decision_cases import (
    AGENTS,
    CASES,
    DEFERRED,
    MAX_WAIT,
    NO_TRAINING,
    ORIGIN,
    PACED,
    RULES,
    SITE,
    Case,
)
from tests.holding.engines import in_a_loop, settle
from tests.policy_examples import NOON


class Policies:
    """A policy cache with one *policy*, which is found quickly or not."""

    def __init__(self, policy: Policy | None, *, quickly: bool) -> None:
        self._policy = policy
        self._quickly = quickly

    def peek(self, url: str) -> Policy | None:
        return self._policy if self._quickly and url.startswith(f"{SITE}/") else None

    def usable(self, origin: Any, request: Request) -> Policy | None:
        return self._policy


class Pacing:
    """Notes what it is asked about, and lets everything go on."""

    def __init__(self, asked: bool) -> None:
        self.asked = asked
        self.admitted: list[Request] = []

    def admit(self, policy: Policy, request: Request, agents: Any) -> Deferred[None] | None:
        self.admitted.append(request)
        return None

    def has_turn(self, request: Request) -> bool:
        return True


class Observers:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_decision(self, request: Request, policy: Any, agents: Any, verdict: Any) -> None:
        self.told.append(verdict)

    def on_exempt(self, request: Request, why: str) -> None:
        self.told.append(why)


SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


def made_with(**settings: Any) -> Any:
    """The middleware of a crawl."""
    usual = {
        "ROBOTSTXT_OBEY": True,
        "REP_STORE": "memory",
        "USER_AGENT": AGENTS[0],
        "REP_MAX_WAIT": MAX_WAIT,
        "DOWNLOADER_MIDDLEWARES": {SCRAPYS: None},
    }
    crawler = get_crawler(Spider, usual | settings)
    crawler.spider = crawler._create_spider("test")  # noqa: SLF001
    return RepMiddleware(crawler, lambda: NOON)


@cache
def made(until_open: bool) -> Any:
    """To make one takes a while."""
    return made_with(REP_VISIT_TIME="wait" if until_open else "refuse")


def middleware_for(
    case: Case, *, quickly: bool = True, asked: bool = False, observed: bool = False
) -> Any:
    middleware = copy(made(case.until_open))
    middleware._policies = Policies(case.policy, quickly=quickly)  # noqa: SLF001
    middleware._pacing = Pacing(asked)  # noqa: SLF001
    middleware._observers = Observers()  # noqa: SLF001
    middleware._observe_allowed = observed  # noqa: SLF001
    return middleware


def request_of(case: Case) -> Request:
    meta = {} if case.held_since is None else {HELD_SINCE: case.held_since}
    return Request(case.url, meta=meta)


def done_with(request: Request, middleware: Any) -> str:
    """What the middleware does, by the name of the decision."""
    try:
        waiting: Awaitable[Any] | None = middleware.process_request(request)
    except RobotsForbidden:
        return "Refuse"
    if waiting is None:
        return "Admit"
    cast("Coroutine[Any, Any, Any]", waiting).close()
    return "wait"


def test_a_request_that_obeys_no_robots_txt_is_told_of() -> None:
    middleware = middleware_for(CASES[0])
    request = Request(f"{SITE}/", meta={"dont_obey_robotstxt": True})
    assert middleware.process_request(request) is None
    assert middleware._observers.told == ["dont_obey_robotstxt"]  # noqa: SLF001


@pytest.mark.parametrize(
    ("url", "why"),
    [("data:,", "other-scheme"), (ORIGIN.robots_url, "robots-txt-itself")],
)
def test_why_a_request_needs_no_robots_txt(url: str, why: str) -> None:
    middleware = middleware_for(Case(None, url, ""), observed=True)
    assert middleware.process_request(Request(url)) is None
    assert middleware._observers.told == [why]  # noqa: SLF001


# -- what it is made of -------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reads_pages", "fetches_tdm_files"),
    [
        ({}, False, False),
        ({"REP_TDM_FILE": True}, False, False),
        ({"REP_PAGE_RULES": "annotate"}, True, False),
        ({"REP_PAGE_RULES": "obey", "REP_TDM_FILE": True}, True, True),
    ],
    ids=str,
)
def test_pages_are_read_only_where_a_setting_says_so(
    settings: dict[str, Any], reads_pages: bool, fetches_tdm_files: bool
) -> None:
    middleware = made_with(**settings)
    assert hasattr(middleware, "process_response") is reads_pages
    assert hasattr(middleware, "process_exception") is reads_pages
    assert (middleware._tdm_files is not None) is fetches_tdm_files  # noqa: SLF001


def test_not_without_robotstxt_obey() -> None:
    with pytest.raises(NotConfigured):
        made_with(ROBOTSTXT_OBEY=False)


def test_not_beside_scrapys_own() -> None:
    with pytest.raises(ConfigurationError, match="are both enabled"):
        made_with(DOWNLOADER_MIDDLEWARES={})


class _Derived(RobotsTxtMiddleware):
    pass


def test_not_beside_what_a_project_has_made_of_it() -> None:
    with pytest.raises(ConfigurationError, match=r"_Derived and .* are both enabled"):
        made_with(DOWNLOADER_MIDDLEWARES={SCRAPYS: None, _Derived: 100})


def test_only_the_answers_to_pages_make_a_site_slow() -> None:
    middleware = made_with(REP_BACKOFF=True)

    def answer(meta: dict[str, Any]) -> bool:
        response, request = Response(f"{SITE}/", status=429), Request(f"{SITE}/", meta=meta)
        middleware._crawler.signals.send_catch_log(  # noqa: SLF001
            signals.response_downloaded, response=response, request=request, spider=None
        )
        return bool(middleware._pacing.asked)  # noqa: SLF001

    assert not answer({"rep_download": SimpleNamespace(_encoding=b"")})
    assert answer({})


def test_requests_that_a_slow_site_sends_back_are_known_when_they_come_again() -> None:
    """Else their priority would change, and the scheduler would drop them as duplicates."""
    middleware = made_with(REP_BACKOFF=True)
    middleware._crawler.engine = SimpleNamespace()  # noqa: SLF001
    back = middleware._slow_sites.give_back(Request(f"{SITE}/", priority=7))  # noqa: SLF001
    assert (back.meta[RETURNED], back.dont_filter) == ([False, 7], True)


def test_no_more_requests_are_held_than_the_setting_allows() -> None:
    queue = made_with(REP_MAX_WAITING=1)._queue  # noqa: SLF001
    first, second = Request(f"{SITE}/"), Request("http://other.example/")
    with queue.hold(Origin.of(first.url), first, Arrival.FIRST) as held:
        assert held.longest_wait
        with queue.hold(Origin.of(second.url), second, Arrival.FIRST) as other:
            assert not other.longest_wait


def test_what_is_warned_about_at_the_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    middleware = made_with(USER_AGENT="Mozilla/5.0")
    assert "does not name a crawler" in caplog.text
    caplog.clear()
    monkeypatch.setattr(Engine, "missing", lambda engine: ["engine._slot"])
    middleware._crawler.signals.send_catch_log(signals.spider_opened)  # noqa: SLF001
    assert "Scrapy or its downloader lacks" in caplog.text


_DONE = {Admit: "Admit", Refuse: "Refuse", Hold: "wait", Fetch: "wait"}


@pytest.mark.parametrize("quickly", [True, False])
@pytest.mark.parametrize(("asked", "observed"), [(False, False), (True, False), (False, True)])
def test_the_fast_path_and_decide_agree(quickly: bool, asked: bool, observed: bool) -> None:
    for case in CASES:
        middleware = middleware_for(case, quickly=quickly, asked=asked, observed=observed)
        request = request_of(case)
        decision = case.decision
        assert done_with(request, middleware) == _DONE[type(decision)], case
        told = middleware._observers.told  # noqa: SLF001
        if isinstance(decision, Refuse):
            assert told == [decision.verdict]
        else:
            assert len(told) == (observed and isinstance(decision, Admit))
            # A request is exempt only where no policy was asked.
            assert [isinstance(each, str) for each in told] == [case.policy is None] * len(told)
        admitted = middleware._pacing.admitted  # noqa: SLF001
        if isinstance(decision, Admit) and case.policy is not None:
            is_fast = quickly and not asked and case.policy.directives is None
            assert admitted == ([] if is_fast else [request]), case
        else:
            assert admitted == []


class Held:
    """A held request whose waits are noted, and end at once."""

    origin = ORIGIN

    def __init__(self, did: list[str], came: bool = True) -> None:
        self._did = did
        self._came = came

    async def wait(self, event: Deferred[Any]) -> Any:
        self._did.append("policy" if event.called else "turn")
        return event.result if event.called else self._end()

    async def sleep(self, seconds: float) -> None:
        self._did.append(f"sleep {seconds:g}")
        self._end()

    def _end(self) -> None:
        if not self._came:
            raise MustLeave


class Limit:
    """A concurrency limit that always has room, and notes what returns."""

    def __init__(self, did: list[str], is_closing: bool = False) -> None:
        self._did = did
        self.is_closing = is_closing

    async def reacquire(self, held: Held, request: Request) -> None:
        self._did.append("reacquire")


class Queue:
    """A hold queue that notes what it is asked for."""

    def __init__(self, did: list[str], came: bool = True) -> None:
        self._did = did
        self._came = came

    @contextmanager
    def hold(self, origin: Any, request: Request, arrival: Any) -> Iterator[Held]:
        yield Held(self._did, self._came)

    def give_back(self, request: Request) -> Request:
        self._did.append("back")
        return request


class Throttle(Pacing):
    """Lets a request wait for its turn, and lose it so often."""

    def __init__(self, did: list[str], lost: int = 0, at_once: bool = False) -> None:
        super().__init__(asked=True)
        self._did = did
        self._lost = lost
        self._at_once = at_once

    def admit(self, policy: Policy, request: Request, agents: Any) -> Deferred[None] | None:
        self._did.append("admit")
        return None if self._at_once else Deferred()

    def has_turn(self, request: Request) -> bool:
        self._did.append("has turn")
        self._lost -= 1
        return self._lost < 0


async def held(
    case: Case, did: list[str], came: bool = True, observers: Any = None, **parts: Any
) -> Any:
    """What comes of a request that is held."""
    middleware = middleware_for(case, quickly=False, observed=observers is not None)
    middleware._observers = observers or middleware._observers  # noqa: SLF001
    middleware._queue = Queue(did, came)  # noqa: SLF001
    middleware._limit = Limit(did)  # noqa: SLF001
    policy = case.policy
    middleware._policies.get = lambda origin, request: succeed(policy)  # noqa: SLF001
    for name, part in parts.items():
        setattr(middleware, f"_{name}", part)
    return await middleware._hold(ORIGIN, request_of(case), Arrival.FIRST, None)  # noqa: SLF001


@in_a_loop
async def test_a_held_request_reacquires_its_concurrency() -> None:
    did: list[str] = []
    observers = Observers()
    assert await held(Case(RULES, "/yes", ""), did, observers=observers) is None
    assert did == ["policy", "reacquire"]
    assert [verdict.reason for verdict in observers.told] == [Reason.NO_RULE]


@in_a_loop
async def test_a_paced_request_reacquires_before_it_is_asked_whether_it_has_its_turn() -> None:
    """Its turn may be lost meanwhile: then it waits for another one."""
    did: list[str] = []
    assert await held(Case(PACED, "/yes", ""), did, pacing=Throttle(did, lost=1)) is None
    one = ["admit", "turn", "reacquire", "policy", "has turn"]
    assert did == ["policy", *one, *one]


@in_a_loop
async def test_a_turn_may_be_lost_while_concurrency_is_reacquired() -> None:
    did: list[str] = []
    throttle = Throttle(did, lost=1, at_once=True)
    assert await held(Case(PACED, "/yes", ""), did, pacing=throttle) is None
    one = ["policy", "admit", "reacquire", "has turn"]
    assert did == [*one, *one]


@in_a_loop
async def test_a_held_request_that_is_refused() -> None:
    did: list[str] = []
    with pytest.raises(RobotsForbidden):
        await held(Case(RULES, "/no", ""), did)
    assert did == ["policy"]


@in_a_loop
async def test_a_request_that_must_leave_goes_back() -> None:
    did: list[str] = []
    case = Case(DEFERRED, "/yes", "")
    assert isinstance(await held(case, did, came=False), Request)
    assert did == ["policy", "sleep 60", "back"]
    did.clear()
    assert await held(Case(PACED, "/yes", ""), did, came=False, pacing=Throttle(did))
    assert did == ["policy", "admit", "turn", "back"]


@in_a_loop
@pytest.mark.parametrize(("held_for", "since"), [(None, NOON), (60, NOON - 60), (-60, NOON)])
async def test_since_when_a_request_is_held_goes_with_it(
    held_for: float | None, since: float
) -> None:
    """Also by a clock that was set back."""
    returned = await held(Case(DEFERRED, "/yes", "", held_for=held_for), [], came=False)
    assert returned.meta[HELD_SINCE] == since


@in_a_loop
async def test_nothing_is_sent_after_a_stop() -> None:
    did: list[str] = []
    limit = Limit(did, is_closing=True)
    assert isinstance(await held(Case(RULES, "/yes", ""), did, limit=limit), Request)
    assert did == ["policy", "reacquire", "back"]


@in_a_loop
async def test_a_fetch_that_waits_for_its_turn_takes_no_concurrency_and_no_time() -> None:
    released: list[bool] = []

    class Limit:
        @contextmanager
        def released(self) -> Iterator[None]:
            released.append(True)
            yield
            released.append(False)

    middleware = middleware_for(Case(RULES, "/yes", ""))
    turn: Deferred[None] = Deferred()
    middleware._pacing.admit_fetch = lambda request: turn  # noqa: SLF001
    middleware._limit = Limit()  # noqa: SLF001
    request = Request(ORIGIN.robots_url)
    crawler = get_crawler(Spider)
    limit = middleware._limit  # noqa: SLF001
    now = [0.0]
    settings = RepSettings.read(crawler.settings)
    download = Download(crawler, limit, settings, ORIGIN, 15.0, clock=lambda: now[0])
    request.meta.update(dont_obey_robotstxt=True, rep_download=download)
    waiting = deferred_from_coro(middleware.process_request(request))
    await settle()
    assert released == [True]
    now[0] += 100
    turn.callback(None)
    await maybe_deferred_to_future(waiting)
    now[0] += 1
    download._stop_clock()  # noqa: SLF001
    assert download.seconds == 14
    assert released == [True, False]


class TdmFiles:
    """Knows the tdmrep.json of each site, or fetches it."""

    def __init__(self, knows: bool, did: list[str] | None = None) -> None:
        self._knows = knows
        self._did = did if did is not None else []

    def knows(self, policy: Policy, request: Request) -> bool:
        return self._knows

    def get(self, policy: Policy, request: Request) -> Deferred[Policy]:
        self._did.append("tdmrep.json")
        return succeed(policy)


@pytest.mark.parametrize(("knows", "done"), [(True, "Admit"), (False, "wait")])
@pytest.mark.parametrize("quickly", [True, False])
def test_a_tdm_file_is_known_before_a_request_goes_on(
    knows: bool, done: str, quickly: bool
) -> None:
    case = Case(RULES, "/yes", "")
    middleware = middleware_for(case, quickly=quickly)
    middleware._tdm_files = TdmFiles(knows)  # noqa: SLF001
    assert done_with(request_of(case), middleware) == done


@in_a_loop
async def test_a_held_request_waits_for_the_tdm_file_once() -> None:
    """However short its lifetime is."""
    did: list[str] = []
    assert await held(Case(RULES, "/yes", ""), did, tdm_files=TdmFiles(False, did)) is None
    assert did == ["policy", "tdmrep.json", "policy", "policy", "reacquire"]
    did.clear()
    with pytest.raises(RobotsForbidden):
        await held(Case(RULES, "/no", ""), did, tdm_files=TdmFiles(False, did))
    # None is fetched for what robots.txt refuses.
    assert did == ["policy"]


def test_the_rules_of_another_page_are_not_left_on_a_request() -> None:
    for case in (Case(RULES, "/yes", ""), Case(None, "/yes", "")):
        request = Request(case.url, meta={PAGE_RULES: "of the page it is from"})
        done_with(request, middleware_for(case))
        assert request.meta == {}


def test_a_fetch_that_was_given_up_is_not_sent() -> None:
    crawler = get_crawler(Spider)
    limit = ConcurrencyLimit.from_crawler(crawler)
    download = Download(crawler, limit, RepSettings.read(crawler.settings), ORIGIN, 15.0)
    download.give_up(CrawlStopping())
    meta = {"dont_obey_robotstxt": True, "rep_download": download}
    with pytest.raises(IgnoreRequest):
        middleware_for(CASES[0]).process_request(Request(ORIGIN.robots_url, meta=meta))
    download._outcome.addErrback(lambda _: None)  # noqa: SLF001


# -- for spiders --------------------------------------------------------------------


@in_a_loop
@pytest.mark.parametrize("quickly", [True, False])
async def test_verdicts_for_spiders(quickly: bool) -> None:
    middleware = middleware_for(Case(RULES, "/yes", ""), quickly=quickly)
    asked: list[str] = []

    def get(origin: Any, request: Request) -> Deferred[Policy]:
        asked.append(str(origin))
        return succeed(RULES)

    middleware._policies.get = get  # noqa: SLF001
    assert await middleware.allowed(f"{SITE}/yes")
    assert (await middleware.verdict(f"{SITE}/no")).line == 2
    assert not await middleware.allowed(f"{SITE}/no", "Other")
    known = middleware.known_verdict(f"{SITE}/no")
    assert (None if known is None else known.line) == (2 if quickly else None)
    assert asked == ([] if quickly else [SITE] * 3)
    assert await middleware.policy(f"{SITE}/no") is RULES
    with pytest.raises(ValueError, match="is not a valid product token"):
        await middleware.verdict(f"{SITE}/yes", "no token")


def test_a_verdict_is_known_however_the_origin_is_spelled() -> None:
    known = middleware_for(Case(RULES, "/yes", "")).known_verdict(f"{SITE}:443/no")
    assert known is not None
    assert known.line == 2


@in_a_loop
async def test_urls_without_an_origin_have_a_verdict_for_spiders() -> None:
    middleware = middleware_for(Case(RULES, "/yes", ""))
    assert (await middleware.verdict("no URL")).reason is Reason.INVALID_URL
    assert (await middleware.verdict("http:///no-host")).reason is Reason.INVALID_URL
    assert (await middleware.verdict("data:,")).allowed
    middleware._policies.get = lambda origin, request: None  # noqa: SLF001
    with pytest.raises(ValueError, match="not an http, https or ftp URL"):
        await middleware.policy("data:,")


@in_a_loop
async def test_a_verdict_when_the_crawl_stops() -> None:
    middleware = middleware_for(Case(RULES, "/yes", ""), quickly=False)
    middleware._policies.get = lambda origin, request: fail(CrawlStopping())  # noqa: SLF001
    verdict = await middleware.verdict(f"{SITE}/yes")
    assert not verdict.allowed
    assert verdict.detail == "the crawl is stopping"
    with pytest.raises(CrawlStopping):
        await middleware.policy(f"{SITE}/yes")


def test_what_is_written_on_held_requests_is_not_left_on_others() -> None:
    """Else requests made from their meta would count as held."""
    for policy in (RULES, NO_TRAINING, PACED):
        case = Case(policy, "/yes", "", held_for=60)
        request = request_of(case)
        request.meta[RETURNED] = [False, 7, "scheduled"]
        done_with(request, middleware_for(case))
        assert request.meta == {}


def test_what_a_request_is_held_for_does_not_forget_since_when() -> None:
    case = next(case for case in CASES if case.expected.startswith("hold") and case.held_for)
    request = request_of(case)
    done_with(request, middleware_for(case))
    assert request.meta == {HELD_SINCE: case.held_since}


def test_requests_that_obey_no_robots_txt_are_not_asked_about() -> None:
    case = Case(RULES, "/no", "")
    request = Request(f"{SITE}/no", meta={"dont_obey_robotstxt": True})
    assert done_with(request, middleware_for(case)) == "Admit"


def test_a_component_that_asks_again_during_a_stop_is_refused() -> None:
    """It would ask again at once, for ever."""
    middleware = middleware_for(Case(RULES, "/yes", ""), quickly=False)
    middleware._queue = SimpleNamespace(  # noqa: SLF001
        arrival=lambda request: Arrival.FROM_COMPONENT
    )
    middleware._limit = SimpleNamespace(is_closing=True)  # noqa: SLF001
    with pytest.raises(RobotsForbidden, match="the crawl is stopping"):
        middleware.process_request(Request(f"{SITE}/yes"))
    middleware._limit.is_closing = False  # noqa: SLF001
    assert middleware.process_request(Request(f"{SITE}/yes")) is None


@in_a_loop
async def test_requests_that_are_held_or_refused_are_counted() -> None:
    middleware = middleware_for(Case(DEFERRED, "/yes", ""))
    stats = middleware._crawler.stats  # noqa: SLF001
    before = stats.get_value("robotstxt/kept_count", 0)
    # However often it is held.
    await held(Case(DEFERRED, "/yes", ""), [], came=False)
    await held(Case(DEFERRED, "/yes", "", held_for=60), [], came=False)
    assert stats.get_value("robotstxt/kept_count") == before + 1
    names = ("robotstxt/forbidden", "robotstxt/forbidden/rule")
    counted = [stats.get_value(name, 0) for name in names]
    assert done_with(Request(f"{SITE}/no"), middleware_for(Case(RULES, "/no", ""))) == "Refuse"
    assert [stats.get_value(name) for name in names] == [number + 1 for number in counted]
