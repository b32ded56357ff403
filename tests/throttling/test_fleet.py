"""What a worker of a fleet says to the store of turns, by a clock that the test sets."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import pytest
import pytest_twisted
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.stores.base import StoreError
from scrapy_rep.throttling.fleet import FleetBackend, TurnStore
from scrapy_rep.throttling.throttle import Throttle
from scrapy_rep.throttling.turns import Event
from tests.throttling.manual import ManualLoop

SITE = "site.example"
DELAY = 10.0


@dataclass
class TestStore(TurnStore):
    """Grants turns as the test says, and remembers what it was told."""

    __test__ = False

    name: str = "Redis"
    workers: int = 1
    rank: int | None = 0
    is_held: bool = False
    wait: float = 0.0
    fails: BaseException | None = None
    log: list[tuple[Any, ...]] = field(default_factory=list)
    #: Where it is slow: what answers wait for.
    answers_after: Deferred[None] | None = None

    async def _do(self, *what: Any) -> None:
        self.log.append(what)
        if self.answers_after is not None:
            await self.answers_after
        if self.fails is not None:
            raise self.fails

    async def start(self) -> None:
        await self._do("start")

    async def grant(
        self, site: str, delay: float, since: float = inf, *, again: bool = False
    ) -> float:
        await self._do("grant", site, delay, since, again)
        return self.wait

    async def tell(self, event: Event, site: str, delay: float, ago: float = 0.0) -> None:
        await self._do(event, site, delay, ago)

    async def slowed(self) -> dict[str, float]:
        await self._do("slowed")
        return {SITE: DELAY}

    async def close(self) -> None:
        await self._do("close")


class Worker:
    """One worker of a fleet."""

    def __init__(self, fleet_size: int = 0) -> None:
        self.loop = ManualLoop()
        self.store = TestStore()
        self.crawler: Crawler = get_crawler(settings_dict={"EXTENSIONS_BASE": {}})
        self.backend = FleetBackend(
            self.crawler,
            self.store,
            self.loop.clock,
            fleet_size,
            self.loop.call_later,
            Deferred.fromCoroutine,
        )
        self.throttle = Throttle(
            self.backend,
            site_of=lambda page: getattr(page, "site", SITE),
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
        turn = self.throttle.admit(page, 0)
        if turn is None:
            self.went_on.append(self.loop.now)
            return page

        def go_on(_: None) -> None:
            assert self.throttle.has_turn(page)
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
        self.throttle.reached(page)
        self.throttle.left(page)

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


GRANT = ("grant", SITE, DELAY, inf, False)


def test_a_turn_is_asked_for_and_ended(worker: Worker) -> None:
    worker.visit()
    assert worker.said() == [GRANT, (Event.OVER, SITE, DELAY, 0.0)]
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


def test_turns_that_others_have_are_counted(worker: Worker) -> None:
    worker.store.wait = 1.0
    worker.admit()
    assert worker.stat("turn_held_count") is None
    worker.store.is_held = True
    worker.loop.advance(2.5)
    assert worker.stat("turn_held_count") == 2
    assert (worker.stat("turn_asked_count"), worker.stat("turn_count")) == (3, None)


def test_an_unused_turn_is_given_back(worker: Worker) -> None:
    worker.admit()
    worker.is_active = False
    worker.loop.turn()
    assert worker.said() == [GRANT, (Event.UNUSED, SITE, DELAY, 0.0)]
    # And is held no longer.
    worker.loop.advance(100)
    assert worker.said() == []


def test_a_turn_is_held_until_its_request_is_over(worker: Worker) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.said()
    worker.loop.advance(1.999)
    assert worker.said() == []
    worker.loop.advance(5)
    assert worker.said() == [(Event.HELD, SITE, DELAY, 0.0)] * 3
    worker.throttle.left(page)
    worker.loop.advance(100)
    assert worker.said() == [(Event.OVER, SITE, DELAY, 0.0)]


def test_a_request_that_leaves_the_queue_is_granted_nothing(worker: Worker) -> None:
    worker.store.answers_after = Deferred()
    page = worker.admit()
    page.turn.cancel()
    worker.store.answers_after.callback(None)
    assert worker.said() == [GRANT, (Event.UNUSED, SITE, DELAY, 0.0)]
    # That somebody left is no failure of the store.
    assert worker.stat("turn_alone_count") is None
    worker.visit()
    assert worker.said()[0] == GRANT


def test_what_is_sent_without_a_turn_is_said(worker: Worker) -> None:
    worker.throttle.reached(worker)
    worker.throttle.left(worker)
    assert worker.said() == [(Event.SENT, SITE, DELAY, 0.0)]


def test_slow_sites_are_those_of_the_store(worker: Worker) -> None:
    worker.backend.tell(Event.SLOW, SITE, 3.0)
    answers: list[Any] = []
    worker.backend.slowed(answers.append)
    assert worker.said() == [(Event.SLOW, SITE, 3.0, 0.0), ("slowed",)]
    assert answers == [{SITE: DELAY}]
    worker.store.fails = StoreError("gone")
    worker.backend.slowed(answers.append)
    assert len(answers) == 1


# -- outages -------------------------------------------------------------------------

#: Seconds that a worker has the site for without the store, and the part of them in which
#: it may begin.
SLOT = 1.1 * DELAY
LATE = 0.05 * DELAY


def fails(worker: Worker, workers: int = 3, rank: int | None = 0) -> Worker:
    """*worker*, one of several, right after an answer, when the store is gone."""
    worker.store.workers, worker.store.rank = workers, rank
    worker.visit()
    worker.store.fails = StoreError("gone")
    worker.went_on.clear()
    return worker


def next_at(worker: Worker) -> float | None:
    """The seconds to wait alone after a request just now; ``None`` where the store is asked."""
    waits: list[float | None] = []
    before = len(worker.store.log)
    worker.backend.ask(SITE, DELAY, 0.0, again=False, answer=waits.append)
    return None if len(worker.store.log) > before else waits[0]


@pytest.fixture
def failing(worker: Worker, caplog: pytest.LogCaptureFixture) -> Worker:
    caplog.set_level(logging.INFO, "scrapy_rep")
    return fails(worker)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_without_the_store_a_worker_goes_in_its_slots(worker: Worker, rank: int) -> None:
    began = fails(worker, rank=rank).loop.now
    for _ in range(4):
        worker.visit()
    # One slot in each round, and none before all have waited for the turns of the store.
    first, *_ = worker.went_on
    assert began + DELAY <= first <= began + DELAY + 3 * SLOT
    assert [round(at - first, 6) for at in worker.went_on] == [0, 3 * SLOT, 6 * SLOT, 9 * SLOT]
    assert {round((at - rank * SLOT) % (3 * SLOT), 6) for at in worker.went_on} <= {0, 3 * SLOT}
    assert worker.stat("turn_alone_count") == 4


@pytest.mark.parametrize("workers", [2, 4, 7])
def test_without_the_store_all_workers_together_leave_the_delay(workers: int) -> None:
    fleet = [fails(Worker(), workers, rank) for rank in range(workers)]
    for number, worker in enumerate(fleet):
        # They do not notice at once, nor at the same time.
        worker.loop.advance(1.7 * number)
        while worker.loop.now < 1000 + 6 * workers * SLOT:
            worker.visit()
    times = sorted(at for worker in fleet for at in worker.went_on)
    assert min(later - earlier for earlier, later in pairwise(times)) >= DELAY
    # And use the time that there is.
    assert len(times) >= 4 * workers


def test_a_worker_that_is_late_for_its_slot_waits_for_the_next_one(failing: Worker) -> None:
    failing.admit()
    start = -(-(failing.loop.now + DELAY) // (3 * SLOT)) * 3 * SLOT
    failing.loop.advance(start - failing.loop.now - 0.001)
    assert failing.went_on == []
    # The loop stands still, as while a large page is parsed.
    failing.loop.now += LATE + 0.002
    failing.loop.advance(0)
    assert failing.went_on == []
    failing.loop.advance(3 * SLOT)
    assert failing.went_on == [pytest.approx(start + 3 * SLOT)]


def test_a_worker_may_be_a_little_late_for_its_slot(failing: Worker) -> None:
    failing.admit()
    start = -(-(failing.loop.now + DELAY) // (3 * SLOT)) * 3 * SLOT
    failing.loop.advance(start - failing.loop.now - 0.001)
    failing.loop.now += LATE
    failing.loop.advance(0)
    assert failing.went_on == [failing.loop.now]


def test_workers_in_no_order_are_spread_at_random() -> None:
    begins = set()
    for _ in range(20):
        worker = fails(Worker(), workers=3, rank=None)
        for _ in range(3):
            worker.visit()
        # The first may have been a little late for its slot.
        _, second, third = worker.went_on
        assert third - second == pytest.approx(3 * SLOT)
        begins.add(round(second % (3 * SLOT), 1))
    assert len(begins) > 10


def test_two_workers_are_not_counted_as_three_by_a_setting_of_two() -> None:
    worker = fails(Worker(fleet_size=2), workers=3)
    worker.visit()
    worker.visit()
    first, second = worker.went_on
    assert second - first == pytest.approx(3 * SLOT)


def test_a_setting_may_know_of_more_workers_than_the_store() -> None:
    worker = fails(Worker(fleet_size=5), workers=3)
    worker.visit()
    worker.visit()
    first, second = worker.went_on
    assert second - first == pytest.approx(5 * SLOT)


# -- a store that was never reached --------------------------------------------------


@pytest.fixture
def lost(worker: Worker) -> Worker:
    """A worker that has never reached the store."""
    worker.store.workers, worker.store.rank = 0, None
    worker.store.fails = StoreError("gone")
    return worker


def test_who_does_not_know_how_many_there_are_waits(
    lost: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    lost.admit()
    lost.loop.advance(1000)
    assert lost.went_on == []
    # The store is asked now and then.
    assert 900 <= lost.said().count(GRANT) + 900 <= 2000
    (warning,) = caplog.records
    assert warning.getMessage() == (
        "Redis does not grant turns (gone). Until it does, requests to sites that ask for a delay"
        " are held, because the number of workers is not known. To continue without it, set"
        " REP_FLEET_SIZE."
    )
    lost.store.fails, lost.store.workers = None, 3
    # It keeps to its slots, as all who have waited may come at once now.
    lost.loop.advance(3 * SLOT)
    assert len(lost.went_on) == 1
    assert lost.stat("turn_alone_count") is None


@pytest.mark.parametrize("size", [1, 4])
def test_a_setting_says_how_many_there_are(size: int) -> None:
    worker = Worker(fleet_size=size)
    worker.store.workers, worker.store.rank = 0, None
    worker.store.fails = StoreError("gone")
    began = worker.loop.now
    for _ in range(5):
        worker.visit()
    first, *_ = worker.went_on
    assert first >= began + DELAY
    # The first may have been a little late for its slot.
    gaps = [later - earlier for earlier, later in pairwise(worker.went_on[1:])]
    assert gaps == pytest.approx([DELAY if size == 1 else 4 * SLOT] * 3)


# -- the end of a turn that cannot be told ---------------------------------------------


def test_the_end_of_a_turn_is_told_again_until_it_is_heard(worker: Worker) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.said()
    worker.store.fails = StoreError("silent")
    worker.throttle.left(page)
    worker.loop.advance(1)
    said = worker.said()
    assert len(said) >= 5
    assert {what for what, *_ in said} == {Event.OVER}
    worker.store.fails = None
    worker.loop.advance(0.2)
    # And how long ago it was.
    ((*what, ago),) = worker.said()
    assert what == [Event.OVER, SITE, DELAY]
    assert ago == pytest.approx(1.2, abs=0.21)
    worker.loop.advance(100)
    assert worker.said() == []


def test_an_unused_turn_is_given_back_again_until_that_is_heard(worker: Worker) -> None:
    worker.admit()
    worker.is_active = False
    worker.said()
    worker.store.fails = StoreError("silent")
    worker.loop.turn()
    worker.store.fails = None
    worker.loop.advance(0.2)
    ago = pytest.approx(0.2)
    assert worker.said() == [(Event.UNUSED, SITE, DELAY, each) for each in (0.0, ago)]


def test_what_is_older_is_not_told_again_after_what_is_newer(worker: Worker) -> None:
    answers: list[Deferred[None]] = [Deferred(), Deferred()]
    for delay, answer in zip((3.0, 5.0), answers, strict=True):
        worker.store.answers_after = answer
        worker.backend.tell(Event.SLOW, SITE, delay)
    answers[1].callback(None)
    worker.store.answers_after = None
    worker.store.fails = StoreError("silent")
    answers[0].callback(None)
    worker.store.fails = None
    worker.said()
    worker.loop.advance(10)
    assert worker.said() == []


def test_what_is_newer_is_told_again_where_only_the_older_was_heard(worker: Worker) -> None:
    answers: list[Deferred[None]] = [Deferred(), Deferred()]
    for delay, answer in zip((3.0, 5.0), answers, strict=True):
        worker.store.answers_after = answer
        worker.backend.tell(Event.SLOW, SITE, delay)
    answers[0].callback(None)
    worker.store.fails = StoreError("silent")
    answers[1].callback(None)
    worker.store.answers_after = worker.store.fails = None
    worker.said()
    worker.loop.advance(10)
    assert [delay for _, _, delay, _ in worker.said()] == [5.0]


def test_what_is_newer_is_told_again_where_both_were_not_heard(worker: Worker) -> None:
    worker.store.fails = StoreError("silent")
    for delay in (3.0, 5.0):
        worker.store.answers_after = Deferred()
        worker.backend.tell(Event.SLOW, SITE, delay)
        worker.store.answers_after.callback(None)
    worker.store.answers_after = worker.store.fails = None
    worker.said()
    worker.loop.advance(10)
    assert {delay for _, _, delay, _ in worker.said()} == {5.0}


def test_of_what_was_not_heard_only_the_last_is_told_again(worker: Worker) -> None:
    worker.store.fails = StoreError("silent")
    for number in range(30):
        worker.backend.tell(Event.SLOW, SITE, float(number))
        worker.loop.advance(0.1)
    worker.said()
    worker.loop.advance(1)
    assert len(worker.said()) <= 6


def test_without_the_store_there_is_no_turn_to_give_back(failing: Worker) -> None:
    failing.admit()
    while not failing.went_on:
        failing.loop.advance(0.5)
    failing.said()
    failing.is_active = False
    failing.loop.advance(1)
    assert failing.said() == []


def test_the_end_of_a_turn_is_told_though_a_turn_without_the_store_is_unused(
    worker: Worker,
) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.store.fails = StoreError("silent")
    worker.throttle.left(page)
    worker.backend.tell(Event.UNUSED, SITE, DELAY)
    worker.said()
    worker.store.fails = None
    worker.loop.advance(0.2)
    assert [what for what, *_ in worker.said()] == [Event.OVER]


def test_what_is_told_of_other_events_does_not_replace_the_end_of_a_turn(worker: Worker) -> None:
    worker.store.fails = StoreError("silent")
    events = [Event.OVER, Event.SENT, Event.SLOW]
    for event in events:
        worker.backend.tell(event, SITE, DELAY)
    worker.said()
    worker.store.fails = None
    worker.loop.advance(0.2)
    assert [what for what, *_ in worker.said()] == events


def test_what_is_over_is_not_kept(worker: Worker) -> None:
    worker.visit()
    assert not worker.backend._under_way  # noqa: SLF001


def test_nothing_is_told_that_does_not_matter_any_more(worker: Worker) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.store.fails = StoreError("silent")
    worker.throttle.left(page)
    worker.loop.advance(6.3)
    worker.said()
    # By now the store takes the turn for over.
    worker.loop.advance(100)
    assert worker.said() == []


@pytest.mark.parametrize("wait", [0.0, 3.0])
def test_a_new_turn_is_not_ended_by_the_end_of_the_one_before(worker: Worker, wait: float) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.store.fails = StoreError("silent")
    worker.throttle.left(page)
    worker.store.fails = None
    worker.store.wait = wait
    asking = worker.backend._ask(SITE, DELAY, DELAY, True, lambda _: None)  # noqa: SLF001
    worker.backend._run(asking)  # noqa: SLF001
    worker.said()
    worker.loop.advance(1)
    assert worker.said() == []


# -- the beginning and the end of an outage ------------------------------------------


def test_where_nothing_is_known_it_counts_from_the_question(worker: Worker) -> None:
    worker.store.fails = StoreError("gone")
    worker.admit()
    worker.loop.advance(DELAY - 0.001)
    assert worker.went_on == []
    worker.loop.advance(0.001)
    assert len(worker.went_on) == 1


def test_during_an_outage_too(failing: Worker) -> None:
    failing.store.workers, failing.store.rank = 1, 0
    failing.visit()
    failing.loop.advance(100)
    waits: list[float] = []
    failing.backend.ask("new.example", DELAY, inf, again=False, answer=waits.append)
    assert len(waits) == 1
    assert waits[0] >= DELAY


def test_it_counts_from_the_outage_where_our_last_request_was_long_ago(worker: Worker) -> None:
    worker.visit()
    worker.loop.advance(100)
    worker.store.fails = StoreError("gone")
    worker.went_on.clear()
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
        "Redis does not grant turns (gone). Until it does, this worker sends "
        "one request in 3 delays of a site (workers: 3)."
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


def test_after_an_outage_a_worker_also_keeps_to_its_slots_for_a_while(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    failing.visit()
    back_at = failing.loop.now
    failing.store.workers = 1
    failing.visit()
    # Others may not know yet.
    assert failing.loop.now == pytest.approx(back_at + 3 * SLOT, abs=0.5)
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
    assert next_at(failing) == pytest.approx(3 * SLOT, abs=0.5)
    failing.loop.advance(9.999)
    assert next_at(failing) is not None
    failing.loop.advance(0.001)
    assert next_at(failing) is None


def test_workers_are_remembered_through_two_outages(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    failing.visit()
    # It has come back empty, and the other workers have not been heard of again yet.
    failing.store.workers = 1
    failing.store.fails = StoreError("gone again")
    page = failing.admit()
    failing.throttle.left(page)
    assert (next_at(failing) or 0) > 2 * SLOT


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
    worker.store.answers_after = Deferred()
    pages = [type("Page", (), {"site": site}) for site in (SITE, other)]
    turns = [worker.throttle.admit(page, 0) for page in pages]
    worker.store.fails = StoreError("gone")
    worker.store.answers_after.callback(None)
    worker.store.answers_after = None
    worker.loop.advance(DELAY - 0.001)
    assert [turn is not None and turn.called for turn in turns] == [False, False]
    worker.loop.advance(2 * SLOT + 0.001)
    assert [turn is not None and turn.called for turn in turns] == [True, True]


def test_seconds_without_the_store_are_counted(failing: Worker) -> None:
    failing.visit()
    failing.store.fails = None
    began = failing.loop.now
    failing.visit()
    assert failing.stat("turn_outage_seconds") == pytest.approx(failing.loop.now - began, abs=99)
    assert failing.stat("turn_workers_max") == 3


def test_an_end_that_the_store_is_not_told_is_an_outage(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    page = worker.admit()
    worker.throttle.reached(page)
    worker.store.fails = StoreError("gone")
    worker.throttle.left(page)
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
    worker.store.answers_after = slow
    page = worker.admit()
    # As Pacing does.
    worker.throttle.close()
    closed = close(worker)
    await deferred_from_coro(asyncio.sleep(0.02))
    assert worker.said() == [GRANT]
    worker.store.answers_after = None
    slow.callback(None)
    await closed
    # What is granted by then is for nobody, and nobody holds it.
    assert worker.said() == [(Event.UNUSED, SITE, DELAY, 0.0), ("close",)]
    assert worker.went_on == []
    assert not page.turn.called
    assert not worker.loop.pending


@pytest_twisted.ensureDeferred
async def test_the_end_of_a_crawl_does_not_wait_for_good(worker: Worker) -> None:
    never: Deferred[None] = Deferred()
    worker.store.answers_after = never
    worker.admit()
    # What never answers is left behind.
    worker.store.answers_after = None
    await close(worker)
    assert worker.said()[-1] == ("close",)
    assert not never.called


@pytest_twisted.ensureDeferred
async def test_after_the_end_no_turn_is_held(worker: Worker) -> None:
    worker.throttle.reached(worker.admit())
    worker.throttle.close()
    await close(worker)
    assert not worker.loop.pending


@pytest_twisted.ensureDeferred
async def test_a_crawl_that_ends_with_a_request_holds_no_turn(worker: Worker) -> None:
    worker.throttle.reached(worker.admit())
    # As Pacing does.
    worker.throttle.close()
    await close(worker)
    assert worker.said() == [GRANT, (Event.OVER, SITE, DELAY, 0.0), ("close",)]
    worker.loop.advance(10)
    assert worker.said() == []


@pytest_twisted.ensureDeferred
async def test_the_end_of_a_crawl_tells_what_was_not_heard(failing: Worker) -> None:
    page = failing.admit()
    failing.throttle.left(page)
    failing.loop.advance(1)
    failing.said()
    failing.store.fails = None
    await close(failing)
    assert [what for what, *_ in failing.said()] == [Event.SENT, "close"]
    assert failing.stat("turn_outage_seconds") == 1


@pytest_twisted.ensureDeferred
async def test_the_end_of_a_crawl_waits_for_a_store_that_comes_back(failing: Worker) -> None:
    failing.backend.tell(Event.SLOW, SITE, 3.0)
    closed = close(failing)
    await deferred_from_coro(asyncio.sleep(0.02))
    failing.said()
    failing.store.fails = None
    failing.loop.advance(0.2)
    await closed
    assert [what for what, *_ in failing.said()] == [Event.SLOW, "close"]


@pytest_twisted.ensureDeferred
async def test_what_is_told_while_the_crawl_ends_is_not_told_after_it(worker: Worker) -> None:
    worker.store.answers_after = Deferred()
    worker.backend.tell(Event.SLOW, SITE, 3.0)
    closed = close(worker)
    await deferred_from_coro(asyncio.sleep(0.02))
    worker.store.fails = StoreError("silent")
    worker.store.answers_after.callback(None)
    worker.store.answers_after = None
    await closed
    worker.said()
    worker.loop.advance(10)
    assert worker.said() == []


@pytest_twisted.ensureDeferred
async def test_after_the_end_the_store_is_told_nothing(failing: Worker) -> None:
    failing.backend.tell(Event.SLOW, SITE, 3.0)
    await close(failing)
    # Once more at the end.
    slow = (Event.SLOW, SITE, 3.0, 0.0)
    assert failing.said()[-3:] == [slow, slow, ("close",)]
    failing.loop.advance(10)
    assert failing.said() == []
    assert not failing.loop.pending
