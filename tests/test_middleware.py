"""The middleware does what is decided, by the fast path and by the slow one."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import cache
from typing import Any, cast

import pytest
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep import RepMiddleware, RobotsForbidden
from scrapy_rep.holding.returns import HELD_SINCE, RETURNED, to_scheduler
from scrapy_rep.rep.decision import Admit, Fetch, Hold, Refuse
from scrapy_rep.rep.policy import Policy
from tests.decision_cases import AGENTS, CASES, MAX_WAIT, NO_TRAINING, PACED, RULES, SITE, Case
from tests.policy_examples import NOON


class Policies:
    """A policy cache with one *policy*, which is found quickly or not."""

    def __init__(self, policy: Policy | None, *, quickly: bool) -> None:
        self._policy = policy
        self._quickly = quickly

    def peek(self, url: str) -> Policy | None:
        return self._policy if self._quickly else None

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


class Observers:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_decision(self, request: Request, policy: Any, agents: Any, verdict: Any) -> None:
        self.told.append(verdict)


@cache
def made(until_open: bool) -> Any:
    """The middleware of a crawl; to make one takes a while."""
    settings = {
        "ROBOTSTXT_OBEY": True,
        "REP_STORE": "memory",
        "USER_AGENT": AGENTS[0],
        "REP_MAX_WAIT": MAX_WAIT,
        "REP_VISIT_TIME": "wait" if until_open else "refuse",
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None
        },
    }
    crawler = get_crawler(Spider, settings)
    crawler.spider = crawler._create_spider("test")  # noqa: SLF001
    return RepMiddleware(crawler, lambda: NOON)


def middleware_for(
    case: Case, *, quickly: bool = True, asked: bool = False, observed: bool = False
) -> Any:
    middleware = made(case.until_open)
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
            assert len(told) == (observed and isinstance(decision, Admit) and bool(case.policy))
        admitted = middleware._pacing.admitted  # noqa: SLF001
        if isinstance(decision, Admit) and case.policy is not None:
            assert (admitted == [request]) is (asked or decision.asks_for_delay), case
        else:
            assert admitted == []


def test_what_is_written_on_held_requests_is_not_left_on_others() -> None:
    """Else requests made from their meta would count as held."""
    for policy in (RULES, NO_TRAINING, PACED):
        case = Case(policy, "/yes", "", held_for=60)
        request = to_scheduler(request_of(case), behind=True)
        assert RETURNED in request.meta
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
