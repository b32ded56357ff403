"""What a worker of a fleet says to the store of turns, by a clock that the test sets."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_twisted
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.stores.base import StoreError
from scrapy_rep.throttling.fleet import FleetBackend
from scrapy_rep.throttling.throttle import Throttle
from tests.throttling.manual import ManualLoop

SITE = "site.example"
DELAY = 10.0


@dataclass
class TestStore:
    """Grants turns as the test says, and remembers what it was told."""

    __test__ = False

    workers: int = 1
    wait: float = 0.0
    fails: BaseException | None = None
    log: list[tuple[Any, ...]] = field(default_factory=list)
    #: Where it is slow: what answers wait for.
    slow: Deferred[None] | None = None

    async def _do(self, *what: Any) -> None:
        self.log.append(what)
        if self.slow is not None:
            await self.slow
        if self.fails is not None:
            raise self.fails

    async def start(self) -> None:
        await self._do("start")

    async def grant(
        self, site: str, delay: float, since: float | None = None, *, told: bool = False
    ) -> float:
        await self._do("grant", site, delay, since, told)
        return self.wait

    async def hold(self, site: str, delay: float) -> None:
        await self._do("hold", site, delay)

    async def unused(self, site: str, delay: float) -> None:
        await self._do("unused", site, delay)

    async def over(self, site: str, delay: float) -> None:
        await self._do("over", site, delay)

    async def sent(self, site: str, delay: float) -> None:
        await self._do("sent", site, delay)

    async def close(self) -> None:
        await self._do("close")


class Worker:
    """One worker of a fleet."""

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.store = TestStore()
        self.crawler: Crawler = get_crawler(settings_dict={"EXTENSIONS_BASE": {}})
        self.backend = FleetBackend(
            self.crawler,
            self.store,
            self.loop.clock,
            self.loop.call_later,
            Deferred.fromCoroutine,
        )
        self.throttle = Throttle(
            self.backend,
            clock=self.loop.clock,
            call_later=self.loop.call_later,
            is_active=lambda _: self.is_active,
            hears_all=lambda: True,
            remember=60.0,
            max_sites=100,
        )
        self.throttle.set_delay(SITE, DELAY)
        self.is_active = True
        self.went_on: list[float] = []

    def admit(self) -> Any:
        """A request, which goes on when it is its turn."""

        class Page:
            turn: Deferred[None]

        page = Page()
        turn = self.throttle.admit(SITE, page, 0)
        if turn is None:
            self.went_on.append(self.loop.now)
            return page

        def go_on(_: None) -> None:
            assert self.throttle.has_turn(SITE, page)
            self.went_on.append(self.loop.now)

        turn.addCallbacks(go_on, lambda _: None)
        page.turn = turn
        return page

    def visit(self) -> None:
        """One request that is sent and answered."""
        page = self.admit()
        before = len(self.went_on)
        while len(self.went_on) == before and not page_is_sent(page):
            self.loop.advance(0.5)
        self.throttle.reached(SITE, page)
        self.throttle.left(SITE, page)

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"robotstxt/{name}")

    def said(self) -> list[tuple[Any, ...]]:
        """What the store has been told since this was asked last."""
        log, self.store.log = self.store.log, []
        return log


def page_is_sent(page: Any) -> bool:
    return not hasattr(page, "turn")


@pytest.fixture
def worker() -> Worker:
    return Worker()


GRANT = ("grant", SITE, DELAY, None, False)


def test_a_turn_is_asked_for_and_ended(worker: Worker) -> None:
    worker.visit()
    assert worker.said() == [GRANT, ("over", SITE, DELAY)]
    assert (worker.stat("turn_asked_count"), worker.stat("turn_count")) == (1, 1)
    assert worker.stat("turn_alone_count") is None
    assert not worker.loop.pending


def test_the_store_is_asked_at_once_after_a_request(worker: Worker) -> None:
    worker.visit()
    worker.store.wait = 3.0
    worker.loop.advance(1)
    worker.said()
    worker.admit()
    worker.loop.advance(3)
    assert worker.said() == [
        ("grant", SITE, DELAY, 1.0, False),
        ("grant", SITE, DELAY, 4.0, True),
    ]


def test_an_unused_turn_is_given_back(worker: Worker) -> None:
    worker.admit()
    worker.is_active = False
    worker.loop.turn()
    assert worker.said() == [GRANT, ("unused", SITE, DELAY)]
    # And is held no longer.
    worker.loop.advance(100)
    assert worker.said() == []


def test_a_turn_is_held_until_its_request_is_over(worker: Worker) -> None:
    page = worker.admit()
    worker.throttle.reached(SITE, page)
    worker.said()
    worker.loop.advance(9.999)
    assert worker.said() == []
    worker.loop.advance(25)
    assert worker.said() == [("hold", SITE, DELAY)] * 3
    worker.throttle.left(SITE, page)
    worker.loop.advance(100)
    assert worker.said() == [("over", SITE, DELAY)]


def test_a_request_that_leaves_the_queue_is_granted_nothing(worker: Worker) -> None:
    worker.store.slow = Deferred()
    page = worker.admit()
    page.turn.cancel()
    worker.store.slow.callback(None)
    assert worker.said() == [GRANT, ("unused", SITE, DELAY)]
    # That somebody left is no failure of the store.
    assert worker.stat("turn_alone_count") is None
    worker.visit()
    assert worker.said()[0] == GRANT


def test_what_is_sent_without_a_turn_is_said(worker: Worker) -> None:
    worker.throttle.reached(SITE, worker)
    worker.throttle.left(SITE, worker)
    assert worker.said() == [("sent", SITE, DELAY)]


# -- outages -------------------------------------------------------------------------


@pytest.fixture
def failing(worker: Worker, caplog: pytest.LogCaptureFixture) -> Worker:
    """One of three workers, right after an answer, and the store is gone."""
    caplog.set_level(logging.INFO, "scrapy_rep")
    worker.store.workers = 3
    worker.visit()
    worker.store.fails = StoreError("gone")
    worker.went_on.clear()
    return worker


def next_at(worker: Worker) -> float | None:
    """The seconds that a worker is to wait that has sent something just now; ``None`` for none."""
    answers: list[float | None] = []
    worker.backend.ask("next.example", DELAY, 0.0, again=False, answer=answers.append)
    return answers[0]


def test_alone_a_worker_waits_for_each_of_the_others(failing: Worker) -> None:
    began = failing.loop.now
    failing.admit()
    failing.loop.advance(3 * DELAY - 0.001)
    assert failing.went_on == []
    failing.loop.advance(0.001)
    assert failing.went_on == [began + 3 * DELAY]
    assert failing.stat("turn_alone_count") == 1


def test_each_of_its_requests_does(failing: Worker) -> None:
    began = failing.loop.now
    for _ in range(3):
        failing.visit()
    # Looked at each half second.
    assert [at - began for at in failing.went_on] == [30, 60, 90]


def test_where_nothing_is_known_it_counts_from_the_question(worker: Worker) -> None:
    worker.store.fails = StoreError("gone")
    worker.admit()
    worker.loop.advance(DELAY - 0.001)
    assert worker.went_on == []
    worker.loop.advance(0.001)
    assert len(worker.went_on) == 1


def test_an_outage_begins_and_ends_with_a_line(
    failing: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    failing.visit()
    failing.visit()
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        "Redis does not grant turns (gone): until it does, this worker waits "
        "3 times as long as sites ask for, as one of 3 workers"
    )
    assert warning.exc_info is None
    caplog.clear()
    failing.store.fails = None
    failing.visit()
    failing.visit()
    assert [record.getMessage() for record in caplog.records] == ["Redis grants turns again"]


def test_a_bug_in_a_store_is_an_outage_with_a_traceback(
    failing: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    failing.store.fails = ZeroDivisionError("a\x1b bug")
    failing.visit()
    (warning,) = caplog.records
    assert "(ZeroDivisionError: a\\x1b bug)" in warning.getMessage()
    assert warning.exc_info


def test_after_an_outage_a_worker_keeps_both_paces_for_a_while(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    failing.visit()
    back_at = failing.loop.now
    failing.store.workers = 1
    failing.visit()
    # Others may not know yet, and take three times as long.
    assert failing.loop.now == back_at + 3 * DELAY
    failing.said()
    before = failing.loop.now
    failing.visit()
    # Now the store alone decides.
    assert failing.loop.now == before
    assert failing.said()[0][0] == "grant"


def test_the_time_after_an_outage_is_ten_seconds(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    failing.visit()
    assert next_at(failing) == 3 * DELAY
    failing.loop.advance(9.999)
    assert next_at(failing) == 3 * DELAY
    failing.loop.advance(0.001)
    assert next_at(failing) is None


def test_workers_are_remembered_through_two_outages(failing: Worker) -> None:
    failing.throttle.set_delay(SITE, 2.0)
    failing.visit()
    failing.store.fails = None
    failing.visit()
    # It has come back empty, and the other workers have not been heard of again yet.
    failing.store.workers = 1
    failing.store.fails = StoreError("gone again")
    failing.visit()
    assert next_at(failing) == 3 * DELAY


def test_workers_that_left_long_before_an_outage_do_not_count(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    failing.visit()
    failing.loop.advance(60)
    failing.store.workers = 1
    failing.store.fails = StoreError("gone again")
    failing.visit()
    assert next_at(failing) == DELAY


def test_a_question_that_fails_with_others_waits_as_long_as_they_do(worker: Worker) -> None:
    """Both ask while the store works; both fail, one after the other."""
    worker.store.workers = 2
    other = "other.example"
    worker.throttle.set_delay(other, DELAY)
    worker.store.slow = Deferred()
    turns = [worker.throttle.admit(site, Worker, 0) for site in (SITE, other)]
    worker.store.fails = StoreError("gone")
    worker.store.slow.callback(None)
    worker.store.slow = None
    worker.loop.advance(2 * DELAY - 0.001)
    assert [turn is not None and turn.called for turn in turns] == [False, False]
    worker.loop.advance(0.001)
    assert [turn is not None and turn.called for turn in turns] == [True, True]


def test_an_end_that_the_store_is_not_told_is_an_outage(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    page = worker.admit()
    worker.throttle.reached(SITE, page)
    worker.store.fails = StoreError("gone")
    worker.throttle.left(SITE, page)
    assert len(caplog.records) == 1
    assert next_at(worker) == DELAY


# -- from the beginning to the end ---------------------------------------------------


def test_a_worker_counts_from_the_start(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.store.fails = StoreError("gone")
    worker.crawler.signals.send_catch_log(signals.spider_opened)
    assert worker.said() == [("start",)]
    # That is said when a turn is asked for.
    assert caplog.records == []


def close(worker: Worker) -> Deferred[Any]:
    """The end of the crawl, as it is under way."""
    return deferred_from_coro(worker.crawler.signals.send_catch_log_async(signals.spider_closed))


@pytest_twisted.ensureDeferred
async def test_the_end_of_a_crawl_waits_for_what_the_store_is_told(worker: Worker) -> None:
    slow: Deferred[None] = Deferred()
    worker.store.slow = slow
    page = worker.admit()
    closed = close(worker)
    await deferred_from_coro(asyncio.sleep(0.02))
    assert worker.said() == [GRANT]
    worker.store.slow = None
    slow.callback(None)
    await closed
    assert worker.said() == [("close",)]
    # What is granted by then is for nobody.
    assert worker.went_on == []
    assert not page.turn.called


@pytest_twisted.ensureDeferred
async def test_the_end_of_a_crawl_does_not_wait_for_good(worker: Worker) -> None:
    never: Deferred[None] = Deferred()
    worker.store.slow = never
    worker.admit()
    # What never answers is left behind.
    worker.store.slow = None
    await close(worker)
    assert worker.said()[-1] == ("close",)
    assert not never.called


@pytest_twisted.ensureDeferred
async def test_after_the_end_no_turn_is_held(worker: Worker) -> None:
    worker.throttle.reached(SITE, worker.admit())
    worker.throttle.close()
    await close(worker)
    assert not worker.loop.pending
