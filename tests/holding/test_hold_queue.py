"""Who is held, in which order they go on, and what becomes of those that find no room."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from math import inf
from typing import Any, cast

import pytest
from scrapy import Request, Spider, signals
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.request import request_from_dict
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import LOOK, ConcurrencyLimit
from scrapy_rep.holding.hold_queue import (
    PER_ORIGIN,
    RETURNED,
    Arrival,
    HeldRequest,
    HoldQueue,
    MustLeave,
)
from scrapy_rep.rep.parsing.urls import Origin
from tests.holding.engines import ManualEngine, ManualLoop, in_a_loop

FIRST, AGAIN, COMPONENT = Arrival.FIRST, Arrival.FROM_SCHEDULER, Arrival.FROM_COMPONENT
#: Seconds for which a request is held that finds no room when it comes again.
BRIEFLY = 0.25
#: What reacquires its concurrency.
REQUEST = Request("http://a.example/")
#: Instead of what a request waits for.
LEFT = "left"


def origin(name: object) -> Origin:
    return Origin("http", f"{name}.example", 80)


async def leaves(waiting: Awaitable[Any]) -> bool:
    """Whether the request that waits for it must leave."""
    try:
        await waiting
    except MustLeave:
        return True
    return False


def never() -> Deferred[str]:
    return Deferred()


class Manual:
    """A queue of *size*, for a crawl whose loop is the test's."""

    def __init__(self, stack: ExitStack, size: int, concurrency: int = 2) -> None:
        self._stack = stack
        self.crawler: Any = get_crawler(Spider)
        self.engine = ManualEngine(concurrency)
        self.loop = ManualLoop()
        self.limit = ConcurrencyLimit(cast("Engine", self.engine), call_later=self.loop.call_later)
        self.queue = HoldQueue(self.crawler, self.limit, size, clock=lambda: self.loop.now)
        #: Names of requests in the order in which they went on, and with what.
        self.order: list[Any] = []
        self.results: dict[Any, Any] = {}

    def hold(self, name: object = "a", priority: int = 0, arrival: Arrival = FIRST) -> HeldRequest:
        """A request for the origin of that name."""
        request = Request(f"http://{name}.example/", priority=priority)
        self.engine.active.add(request)
        return self._stack.enter_context(self.queue.hold(origin(name), request, arrival))

    def hold_all(self, name: object) -> int:
        """As many for that origin as find room."""
        held = 0
        while (one := self.hold(name)).longest_wait:
            assert one.longest_wait == inf
            held += 1
        return held

    def start(self, name: Any, waiting: Callable[[], Awaitable[Any]]) -> None:
        """Begin to wait; note what came of it."""

        async def run() -> None:
            try:
                self.results[name] = await waiting()
            except MustLeave:
                self.results[name] = LEFT
            self.order.append(name)

        started = deferred_from_coro(run())
        started.addErrback(lambda _: None)
        self._stack.callback(started.cancel)

    def wait(self, name: Any, held: HeldRequest) -> Deferred[str]:
        """Have *held* wait for what is returned."""
        event: Deferred[str] = Deferred()
        self.start(name, lambda: held.wait(event))
        return event

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(name)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# -- room ---------------------------------------------------------------------------


def test_fair_between_origins(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    with ExitStack() as inner:
        crawl._stack = inner  # noqa: SLF001
        # Each takes half of what the others leave.
        assert [crawl.hold_all(number) for number in range(5)] == [50, 25, 13, 6, 3]
        assert crawl.stat("robotstxt/waiting_max") == 97
    # All have left.
    crawl._stack = stack  # noqa: SLF001
    assert crawl.hold_all(3) == 50


def test_no_origin_takes_a_large_queue(stack: ExitStack) -> None:
    crawl = Manual(stack, 5_000)
    assert [crawl.hold_all(number) for number in range(3)] == [PER_ORIGIN] * 3
    assert crawl.hold("other").longest_wait == inf


def test_many_origins_fill_it(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    assert {crawl.hold(number).longest_wait for number in range(100)} == {inf}
    assert crawl.hold("other").longest_wait == 0
    assert crawl.hold(1).longest_wait == 0
    assert crawl.stat("robotstxt/waiting_max") == 100
    assert crawl.stat("robotstxt/waiting_count") == 100


# -- a higher priority -----------------------------------------------------------------


@in_a_loop
async def test_a_higher_priority_displaces_the_last_of_the_origin(stack: ExitStack) -> None:
    crawl = Manual(stack, 6)
    for number, priority in enumerate((5, 0, 0)):
        crawl.wait(number, crawl.hold("a", priority))
    crawl.wait("other", crawl.hold("b", -9))
    await crawl.loop.step()
    urgent = crawl.hold("a", 1)
    assert urgent.longest_wait == inf
    await crawl.loop.step()
    # The lowest priority, and of these the one that came last.
    assert crawl.results == {2: LEFT}
    assert urgent.longest_wait == inf


@in_a_loop
async def test_an_equal_priority_displaces_nobody(stack: ExitStack) -> None:
    crawl = Manual(stack, 2)
    crawl.wait(0, crawl.hold("a", 3))
    await crawl.loop.step()
    assert crawl.hold("a", 3).longest_wait == 0
    assert crawl.hold("a", 2).longest_wait == 0
    await crawl.loop.step()
    assert crawl.results == {}


@in_a_loop
async def test_in_a_full_queue_the_last_of_all_is_displaced(stack: ExitStack) -> None:
    crawl = Manual(stack, 3)
    for name, priority in {"a": 2, "b": 1, "c": 3}.items():
        crawl.wait(name, crawl.hold(name, priority))
    await crawl.loop.step()
    assert crawl.hold("d", 4).longest_wait == inf
    await crawl.loop.step()
    assert crawl.results == {"b": LEFT}
    assert crawl.stat("robotstxt/waiting_max") == 3
    # And there is no room for more than before.
    assert crawl.hold("e", 1).longest_wait == 0


@in_a_loop
async def test_a_request_that_goes_on_is_not_displaced(stack: ExitStack) -> None:
    """It would make no room by that."""
    crawl = Manual(stack, 2)
    event = crawl.wait(0, crawl.hold("a"))
    await crawl.loop.step()
    event.callback("came")
    assert crawl.hold("a", 9).longest_wait == 0
    await crawl.loop.step()
    assert crawl.results == {0: "came"}


@in_a_loop
async def test_a_thousand_urgent_requests_stay_within_bounds(stack: ExitStack) -> None:
    crawl = Manual(stack, 20)
    held = []
    for priority in range(1_000):
        one = crawl.hold("a", priority)
        held.append(one)
        crawl.wait(priority, one)
        await crawl.loop.step()
    # Half of the queue, and those with the highest priorities.
    assert [one for one in held if one.longest_wait] == held[-10:]
    assert crawl.stat("robotstxt/waiting_max") == 10


# -- order ------------------------------------------------------------------------------


@in_a_loop
async def test_they_go_on_by_priority_then_by_arrival(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    events = [crawl.wait(n, crawl.hold(n, priority)) for n, priority in enumerate((0, 7, 0, 9))]
    await crawl.loop.step()
    for event in events:
        event.callback("came")
    await crawl.loop.step()
    assert crawl.order == [3, 1, 0, 2]


@in_a_loop
async def test_what_has_come_need_not_be_waited_for(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    held = crawl.hold()
    assert await held.wait(succeed("at once")) == "at once"
    # Nothing was released for that.
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_concurrency_is_released_while_a_request_waits(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    event = crawl.wait("a", held := crawl.hold())
    await crawl.loop.step()
    assert crawl.engine.concurrency == 3
    event.callback("came")
    await crawl.loop.step()
    crawl.start("reacquired", lambda: crawl.limit.reacquire(held, REQUEST))
    await crawl.loop.step()
    assert crawl.engine.concurrency == 2
    # Again for whatever it has to wait for then.
    crawl.start("b", lambda: held.sleep(5))
    await crawl.loop.step()
    assert crawl.engine.concurrency == 3
    await crawl.loop.step(5)
    assert crawl.results == {"a": "came", "reacquired": None, "b": None}


@in_a_loop
async def test_a_turn_that_is_not_used_is_given_up_at_once(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    given_up: list[Any] = []
    turn: Deferred[None] = Deferred(given_up.append)
    held = crawl.hold()
    crawl.start("a", lambda: held.wait(turn))
    await crawl.loop.step()
    held.leave()
    await crawl.loop.step()
    assert crawl.results == {"a": LEFT}
    assert given_up == [turn]
    # That is no error which somebody has to handle.
    assert turn.result is None


@in_a_loop
async def test_no_timer_is_left_of_a_request_that_left(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    with ExitStack() as inner:
        crawl._stack = inner  # noqa: SLF001
        held = crawl.hold()
        crawl.start("a", lambda: held.sleep(3600))
        await crawl.loop.step()
        held.leave()
        await crawl.loop.step()
    assert crawl.results == {"a": LEFT}
    # But for the look that ends the looks.
    await crawl.loop.step(LOOK)
    assert crawl.loop.is_idle


@in_a_loop
async def test_a_turn_that_has_come(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    turn: Deferred[None] = Deferred()
    held = crawl.hold()
    crawl.start("a", lambda: held.wait(turn))
    await crawl.loop.step()
    turn.callback(None)
    await crawl.loop.step()
    assert crawl.results == {"a": None}
    # However often it is asked about.
    await held.wait(turn)


@in_a_loop
async def test_a_fetch_that_the_stop_ends_brings_nothing(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    event = crawl.wait("a", crawl.hold())
    await crawl.loop.step()
    event.errback(CrawlStopping())
    await crawl.loop.step()
    assert crawl.results == {"a": LEFT}


# -- without room -----------------------------------------------------------------------


@in_a_loop
async def test_without_room_a_request_goes_back_at_once_the_first_time(stack: ExitStack) -> None:
    crawl = Manual(stack, 1)
    crawl.hold()
    held = crawl.hold()
    assert await leaves(held.wait(never()))
    assert await leaves(held.sleep(0))
    # What has come is used all the same.
    assert await held.wait(succeed("came")) == "came"
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_without_room_it_is_held_for_a_moment_when_it_comes_again(stack: ExitStack) -> None:
    """Else it would go round and round."""
    crawl = Manual(stack, 1)
    crawl.hold()
    crawl.wait("event", crawl.hold(arrival=AGAIN))
    held = crawl.hold(arrival=AGAIN)
    crawl.start("time", lambda: held.sleep(60))
    await crawl.loop.step(BRIEFLY - 0.01)
    assert crawl.results == {}
    assert crawl.stat("robotstxt/waiting_count") == 1
    await crawl.loop.step(0.02)
    assert crawl.results == {"event": LEFT, "time": LEFT}


@in_a_loop
async def test_some_of_these_release_their_concurrency_and_the_rest_does_not(
    stack: ExitStack,
) -> None:
    """Else the scheduler would hand out all that it has for a dead host, again and again."""
    crawl = Manual(stack, 1)
    crawl.hold()
    for number in range(30):
        crawl.wait(number, crawl.hold(arrival=AGAIN))
    await crawl.loop.step(BRIEFLY / 2)
    assert crawl.engine.concurrency == 2 + 16


@in_a_loop
async def test_those_that_do_not_release_it_do_not_keep_others_from_that(
    stack: ExitStack,
) -> None:
    crawl = Manual(stack, 1)
    crawl.hold()
    with ExitStack() as inner:
        crawl._stack = inner  # noqa: SLF001
        for number in range(16):
            crawl.wait(number, crawl.hold(arrival=AGAIN))
        crawl._stack = stack  # noqa: SLF001
        for number in range(16, 40):
            crawl.wait(number, crawl.hold(arrival=AGAIN))
        await crawl.loop.step()
        assert crawl.engine.concurrency == 2 + 16
    # These have left, and others release instead of them.
    for number in range(40, 70):
        crawl.wait(number, crawl.hold(arrival=AGAIN))
    await crawl.loop.step()
    assert crawl.engine.concurrency == 2 + 16


@in_a_loop
async def test_these_leave_when_a_held_request_needs_concurrency(stack: ExitStack) -> None:
    crawl = Manual(stack, 3, concurrency=1)
    waited = crawl.hold("healthy")
    event = crawl.wait("healthy", waited)
    queued = crawl.hold("dead")
    for number in range(20):
        crawl.wait(number, crawl.hold("dead", arrival=AGAIN))
    crawl.wait("media", crawl.hold("dead", arrival=COMPONENT))
    await crawl.loop.step()
    event.callback("came")
    await crawl.loop.step()
    crawl.limit.reached_downloader(Request("http://x/"))
    crawl.start("reacquired", lambda: crawl.limit.reacquire(waited, REQUEST))
    await crawl.loop.step()
    assert crawl.limit.withheld
    assert [crawl.results[number] for number in range(20)] == [LEFT] * 20
    # And those that come then do not stay.
    assert await leaves(crawl.hold("dead", arrival=AGAIN).wait(never()))
    # But those in the queue do, and components, which would only ask again.
    crawl.wait("queued", queued)
    await crawl.loop.step()
    assert sorted(map(str, crawl.results)) == sorted(["healthy", *map(str, range(20))])


@in_a_loop
async def test_a_component_that_asks_again_gets_an_answer(stack: ExitStack) -> None:
    crawl = Manual(stack, 1)
    crawl.hold()
    event = crawl.wait("media", crawl.hold(arrival=COMPONENT))
    await crawl.loop.step(100 * BRIEFLY)
    assert crawl.results == {}
    # The crawl does not ask for ever more of them meanwhile.
    assert crawl.engine.concurrency == 2
    event.callback("came")
    await crawl.loop.step()
    assert crawl.results == {"media": "came"}


# -- the end ----------------------------------------------------------------------------


@in_a_loop
async def test_a_stop_wakes_whoever_waits(stack: ExitStack) -> None:
    crawl = Manual(stack, 3)
    held = crawl.hold("time")
    crawl.start("time", lambda: held.sleep(3600))
    crawl.wait("event", crawl.hold("event"))
    turn: Deferred[None] = Deferred()
    waiting = crawl.hold("turn")
    crawl.start("turn", lambda: waiting.wait(turn))
    crawl.wait("media", crawl.hold("full", arrival=COMPONENT))
    await crawl.loop.step(LOOK)
    assert crawl.results == {}
    crawl.engine.is_closing = True
    await crawl.loop.step(LOOK)
    assert crawl.results == dict.fromkeys(("time", "event", "turn", "media"), LEFT)
    # And nobody waits again.
    assert await leaves(held.wait(never()))
    assert await leaves(held.sleep(5))


@in_a_loop
async def test_during_a_stop_nobody_begins_to_wait(stack: ExitStack) -> None:
    crawl = Manual(stack, 3)
    crawl.engine.is_closing = True
    crawl.wait("late", crawl.hold())
    await crawl.loop.step()
    assert crawl.results == {"late": LEFT}


@in_a_loop
async def test_only_a_component_that_waits_is_woken_by_a_stop(stack: ExitStack) -> None:
    """Where no concurrency is released, there is a look all the same."""
    crawl = Manual(stack, 1)
    with ExitStack() as inner:
        crawl._stack = inner  # noqa: SLF001
        crawl.hold()
        crawl._stack = stack  # noqa: SLF001
        crawl.wait("media", crawl.hold(arrival=COMPONENT))
    await crawl.loop.step(3 * LOOK)
    crawl.engine.is_closing = True
    await crawl.loop.step(LOOK)
    assert crawl.results == {"media": LEFT}


# -- the log ----------------------------------------------------------------------------


@in_a_loop
async def test_long_waits_are_told_after_ten_seconds_and_each_minute(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = Manual(stack, 100)
    caplog.set_level(logging.INFO, "scrapy_rep.holding.hold_queue")
    caplog.clear()
    crawl.hold("slow"), crawl.hold("slow")
    told_at = []
    for second in range(133):
        if second == 5:
            crawl.hold("other")
        before = len(caplog.messages)
        await crawl.loop.step(1)
        if len(caplog.messages) > before:
            told_at.append(second + 1)
    assert told_at == [10, 70, 130]
    assert all(hasattr(record, "spider") for record in caplog.records)
    assert caplog.messages[0] == (
        "Requests held for a robots.txt or a delay: 3 "
        "(origins: 2; longest: 10 s, http://slow.example)"
    )


@in_a_loop
async def test_waits_that_are_over_are_not_told(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = Manual(stack, 100)
    caplog.set_level(logging.INFO, "scrapy_rep.holding.hold_queue")
    caplog.clear()
    with ExitStack() as inner:
        crawl._stack = inner  # noqa: SLF001
        crawl.hold("slow")
        await crawl.loop.step(9)
        crawl._stack = stack  # noqa: SLF001
        crawl.hold("other")
    # This one has not waited for long.
    await crawl.loop.step(9.5)
    assert caplog.messages == []
    await crawl.loop.step(1)
    assert "a delay: 1 (origins: 1; longest: 10 s, http://other.example)" in caplog.text


# -- steps of the loop --------------------------------------------------------------------


@in_a_loop
async def test_a_thousand_that_are_woken_do_not_go_on_in_one_step(stack: ExitStack) -> None:
    """They may all be refused, which takes a while."""
    crawl = Manual(stack, 5_000)
    others: list[int] = []

    def go_on() -> None:
        others.append(len(crawl.order))
        if len(crawl.order) < 1_000:
            crawl.loop.call_later(0, go_on)

    events = [crawl.wait(number, crawl.hold(number)) for number in range(1_000)]
    await crawl.loop.step()
    for event in events:
        event.callback("came")
    go_on()
    await crawl.loop.step()
    # Whoever else is to go on has a turn between two of them.
    assert crawl.order == list(range(1_000))
    assert others == list(range(1_001))


@in_a_loop
async def test_a_request_that_has_concurrency_goes_on_before_those_without(
    stack: ExitStack,
) -> None:
    """It counts, and would keep that from others meanwhile."""
    crawl = Manual(stack, 100)
    others = [crawl.wait(number, crawl.hold(number, priority=9)) for number in range(3)]
    event = crawl.wait("came", held := crawl.hold())
    await crawl.loop.step()
    event.callback("came")
    await crawl.loop.step()
    for other in others:
        other.callback("came")
    crawl.start("reacquired", lambda: crawl.limit.reacquire(held, REQUEST))
    await crawl.loop.step()
    assert crawl.order == ["came", "reacquired", 0, 1, 2]


@in_a_loop
async def test_a_stop_wakes_all_in_one_step(stack: ExitStack) -> None:
    crawl = Manual(stack, 5_000)
    went_on: list[int] = []

    def look() -> None:
        went_on.append(len(crawl.order))
        if len(crawl.order) < 100:
            crawl.loop.call_later(0, look)

    crawl.limit.on_stop.append(look)
    for number in range(100):
        crawl.wait(number, crawl.hold(number))
    await crawl.loop.step()
    crawl.engine.is_closing = True
    await crawl.loop.step(LOOK)
    assert crawl.order == list(range(100))
    assert set(went_on) == {0, 100}


@in_a_loop
async def test_one_that_is_cancelled_while_it_is_woken_holds_up_nobody(stack: ExitStack) -> None:
    crawl = Manual(stack, 100)
    first, second = crawl.hold(), crawl.hold()
    waits: list[Deferred[str]] = [Deferred(), Deferred()]
    cancelled = deferred_from_coro(first.wait(waits[0]))
    cancelled.addErrback(lambda _: None)
    crawl.start("other", lambda: second.wait(waits[1]))
    await crawl.loop.step(-1)
    for event in waits:
        event.callback("came")
    cancelled.cancel()
    await crawl.loop.step(1)
    assert crawl.results == {"other": "came"}


# -- to the scheduler and back -----------------------------------------------------------


@pytest.mark.parametrize("dont_filter", [False, True])
@pytest.mark.parametrize(("stops", "priority"), [(False, 6), (True, 7)])
def test_to_the_scheduler_and_back(
    stack: ExitStack, dont_filter: bool, stops: bool, priority: int
) -> None:
    crawl = Manual(stack, 1)
    # When the crawl stops, it is to come where it was.
    crawl.engine.is_closing = stops
    request = Request("http://a.example/", dont_filter=dont_filter, priority=7, meta={"a": 1})
    returned = crawl.queue.give_back(request)
    assert crawl.stat("robotstxt/given_back_count") == 1
    # Else it would be dropped as a duplicate.
    assert returned.dont_filter
    assert returned.priority == priority
    crawl.queue.arrival(returned)
    assert (returned.dont_filter, returned.priority) == (dont_filter, 7)
    assert returned.meta == {"a": 1} == request.meta


@pytest.mark.parametrize(("scheduled", "arrival"), [(True, AGAIN), (False, COMPONENT)])
def test_whoever_has_it_after_that(stack: ExitStack, scheduled: bool, arrival: Arrival) -> None:
    crawl = Manual(stack, 1)
    request = crawl.queue.give_back(REQUEST)
    if scheduled:
        crawl.crawler.signals.send_catch_log(signals.request_scheduled, request=request)
    assert crawl.queue.arrival(request) is arrival
    assert RETURNED not in request.meta
    assert request.priority == 0


def test_a_request_from_the_disk_comes_from_the_scheduler(stack: ExitStack) -> None:
    crawl = Manual(stack, 1)
    request = crawl.queue.give_back(REQUEST)
    crawl.crawler.signals.send_catch_log(signals.request_scheduled, request=request)
    stored = request_from_dict(json.loads(json.dumps(request.to_dict(), default=bytes.decode)))
    assert Manual(stack, 1).queue.arrival(stored) is AGAIN


def test_a_request_that_was_not_given_back(stack: ExitStack) -> None:
    assert Manual(stack, 1).queue.arrival(Request("http://a.example/")) is FIRST


def test_one_that_was_not_given_back_is_scheduled_as_ever(stack: ExitStack) -> None:
    crawl = Manual(stack, 1)
    # From now on, the queue hears of whatever is scheduled.
    crawl.queue.give_back(REQUEST)
    other = Request("http://b.example/")
    heard = crawl.crawler.signals.send_catch_log(signals.request_scheduled, request=other)
    # Nothing is raised, which would be in the log for each request.
    assert [result for _, result in heard] == [None]
    assert other.meta == {}
