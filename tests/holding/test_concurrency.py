"""Permits: each transition, and who may reacquire when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, cast

import pytest
from scrapy import Request, Spider, signals
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine
from scrapy_rep.holding.concurrency import LOOK, ConcurrencyLimit, Permit, State
from tests.holding.engines import ManualEngine, ManualLoop, in_a_loop, settle


def forget(waiting: Deferred[None]) -> None:
    waiting.addErrback(lambda _: None)
    waiting.cancel()


class Held:
    """A request that is held."""

    def __init__(self, crawl: Manual, permit: Permit, request: Request) -> None:
        self._crawl = crawl
        self.permit = permit
        self.request = request
        self.went_on = False

    def reacquire(self) -> Held:
        waiting: Deferred[None] = deferred_from_coro(self._reacquire())
        self._crawl.stack.callback(forget, waiting)
        return self

    async def _reacquire(self) -> None:
        await self._crawl.limit.reacquire(self.permit, self.request)
        self.went_on = True
        self._crawl.order.append(self)


class Manual:
    """A crawl whose requests do what the test says."""

    def __init__(self, stack: ExitStack, concurrency: int = 2) -> None:
        self.stack = stack
        self.engine = ManualEngine(concurrency)
        self.loop = ManualLoop()
        self.limit = ConcurrencyLimit(cast("Engine", self.engine), call_later=self.loop.call_later)
        self.order: list[Held] = []
        self._arrivals = count()
        self.shortages = 0
        self.limit.on_shortage.append(self._short)

    def _short(self) -> None:
        self.shortages += 1

    def hold(self, url: str = "http://a/", priority: int = 0, **options: Any) -> Held:
        """A request that has released its concurrency."""
        request = Request(url, **options)
        self.engine.active.add(request)
        permit = Permit((-priority, next(self._arrivals)))
        self.stack.enter_context(self.limit.use(permit))
        self.limit.release(permit)
        return Held(self, permit, request)

    def download(self, url: str = "http://busy/") -> Request:
        """A request in its download slot."""
        request = Request(url)
        self.engine.active.add(request)
        self.limit.reached_downloader(request)
        return request

    def leave(self, request: Request) -> None:
        """*request* has been downloaded."""
        self.limit.left_downloader(request)
        self.engine.active.discard(request)
        self.limit.grant()


@pytest.fixture
def crawl() -> Iterator[Manual]:
    with ExitStack() as stack:
        yield Manual(stack)


@in_a_loop
async def test_released_concurrency_is_for_others_at_once(crawl: Manual) -> None:
    before = crawl.engine.looks_for_work
    held = crawl.hold()
    assert crawl.engine.room == 2
    # Else the engine would look for work in some seconds only.
    assert crawl.engine.looks_for_work > before
    assert held.permit.state is State.RELEASED
    # Once, however often.
    crawl.limit.release(held.permit)
    assert crawl.engine.room == 2


@in_a_loop
async def test_reacquired_where_there_is_room(crawl: Manual) -> None:
    crawl.download()
    held = crawl.hold().reacquire()
    await crawl.loop.step()
    assert held.went_on
    assert held.permit.state is State.COUNTED
    assert crawl.engine.concurrency == 2
    assert crawl.engine.room == 0


@in_a_loop
async def test_a_permit_that_was_never_released_is_reacquired_at_once(crawl: Manual) -> None:
    crawl.download(), crawl.download()
    with crawl.limit.use(Permit()) as permit:
        await crawl.limit.reacquire(permit, Request("http://a/"))
        assert permit.state is State.COUNTED
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_reacquired_when_a_response_has_been_received(crawl: Manual) -> None:
    one, _ = crawl.download(), crawl.download()
    held = crawl.hold().reacquire()
    await crawl.loop.step()
    assert held.permit.state is State.RETURNING
    assert not held.went_on
    crawl.leave(one)
    await crawl.loop.step()
    assert held.went_on
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_reacquired_when_a_request_left_without_a_response(crawl: Manual) -> None:
    one, _ = crawl.download(), crawl.download()
    held = crawl.hold().reacquire()
    await crawl.loop.step()
    crawl.limit.left_downloader(one)
    crawl.engine.active.discard(one)
    # Without a look.
    await crawl.loop.step(LOOK / 10)
    assert held.went_on


@in_a_loop
async def test_reacquired_by_a_look_where_there_is_no_signal(crawl: Manual) -> None:
    one, _ = crawl.download(), crawl.download()
    held = crawl.hold().reacquire()
    await crawl.loop.step()
    crawl.engine.active.discard(one)
    await crawl.loop.step(2 * LOOK)
    assert held.went_on


@in_a_loop
async def test_released_again(crawl: Manual) -> None:
    held = crawl.hold().reacquire()
    await crawl.loop.step()
    crawl.limit.release(held.permit)
    assert held.permit.state is State.RELEASED
    assert crawl.engine.room == 2


@pytest.mark.parametrize("state", list(State))
@in_a_loop
async def test_closed_in_every_state(state: State) -> None:
    with ExitStack() as stack:
        crawl = Manual(stack)
        crawl.download(), crawl.download()
        with crawl.limit.use(Permit()) as permit:
            if state is not State.COUNTED:
                crawl.limit.release(permit)
            if state is State.RETURNING:
                request = Request("http://a/")
                crawl.engine.active.add(request)
                returning = deferred_from_coro(crawl.limit.reacquire(permit, request))
                await crawl.loop.step()
                assert crawl.limit.withheld
            assert permit.state is state
        assert permit.state is State.COUNTED
        await crawl.loop.step()
        # Nothing is withheld for it any more.
        assert crawl.engine.concurrency == 2
        assert not crawl.limit.withheld
        if state is State.RETURNING:
            assert not returning.called
            forget(returning)


@in_a_loop
async def test_the_downloader_gets_nothing_new_while_held_requests_could_go_on(
    crawl: Manual,
) -> None:
    """What becomes free is for those that have waited."""
    one, two = crawl.download(), crawl.download()
    held = [crawl.hold(f"http://{host}/") for host in "abc"]
    assert crawl.engine.room == 0
    for each in held:
        each.reacquire()
    await crawl.loop.step()
    assert crawl.limit.withheld
    assert crawl.shortages >= 1
    assert crawl.engine.room < 0
    # Not less: 0 would be no limit.
    assert crawl.engine.concurrency == len(held)
    crawl.leave(one)
    await crawl.loop.step()
    assert [each.went_on for each in held] == [True, False, False]
    # Else the scheduler's next request would be first.
    assert crawl.engine.room <= 0
    crawl.leave(two)
    await crawl.loop.step()
    assert [each.went_on for each in held] == [True, True, False]
    crawl.engine.active.discard(held[0].request)
    crawl.limit.grant()
    await crawl.loop.step()
    assert held[2].went_on
    assert not crawl.limit.withheld
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_a_slot_with_a_queue_of_its_own_is_no_reason_to_withhold(crawl: Manual) -> None:
    """In its queue, the request would take concurrency from others; these go on."""
    crawl.engine.busy.add("a")
    held = crawl.hold("http://a/").reacquire()
    await crawl.loop.step()
    assert not held.went_on
    assert not crawl.limit.withheld
    assert crawl.engine.room == 2
    # Nor is it where there is no room: what becomes free is for new requests, too.
    busy = [crawl.download(), crawl.download()]
    crawl.limit.grant()
    assert not crawl.limit.withheld
    for request in busy:
        crawl.leave(request)
    # Others do not wait behind it.
    other = crawl.hold("http://b/").reacquire()
    await crawl.loop.step()
    assert other.went_on
    crawl.engine.busy.clear()
    crawl.limit.grant()
    await crawl.loop.step()
    assert held.went_on


@in_a_loop
async def test_by_priority_then_by_arrival_within_a_slot(crawl: Manual) -> None:
    busy = [crawl.download(), crawl.download()]
    held = [crawl.hold(priority=priority) for priority in (0, 5, 0, 9)]
    for each in held:
        each.reacquire()
    await crawl.loop.step()
    for request in [*busy, held[3].request, held[1].request]:
        crawl.leave(request)
        await crawl.loop.step()
    assert crawl.order == [held[3], held[1], held[0], held[2]]


@in_a_loop
async def test_slots_take_turns(crawl: Manual) -> None:
    busy = [crawl.download(), crawl.download()]
    held = [crawl.hold(f"http://{host}/") for host in ("a", "a", "a", "b")]
    for each in held:
        each.reacquire()
    await crawl.loop.step()
    for request in [*busy, held[0].request, held[3].request]:
        crawl.leave(request)
        await crawl.loop.step()
    assert crawl.order == [held[0], held[3], held[1], held[2]]


@in_a_loop
async def test_busy_slots_do_not_keep_the_others_from_their_turn(crawl: Manual) -> None:
    many = [f"busy-{number}" for number in range(120)]
    crawl.engine.busy.update(many)
    for host in many:
        crawl.hold(f"http://{host}/").reacquire()
    await crawl.loop.step()
    free = crawl.hold("http://free/").reacquire()
    await crawl.loop.step()
    checked = crawl.engine.slots_checked
    for _ in range(2):
        crawl.limit.grant()
    await crawl.loop.step()
    assert free.went_on
    # Some at a time, of however many.
    assert crawl.engine.slots_checked - checked <= 2 * 2 * 50
    crawl.download(), crawl.download()
    checked = crawl.engine.slots_checked
    crawl.limit.grant()
    assert crawl.engine.slots_checked - checked <= 50


@in_a_loop
async def test_requests_of_components_need_no_room(crawl: Manual) -> None:
    """Scrapy starts them whatever its limit is: whoever made them may wait for each."""
    crawl.download(), crawl.download()
    held = crawl.hold(callback=NO_CALLBACK).reacquire()
    await crawl.loop.step()
    assert held.went_on
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_no_deadlock_where_all_active_requests_wait_in_a_middleware(crawl: Manual) -> None:
    # They are in no download slot.
    crawl.engine.active |= {Request("http://a/"), Request("http://b/")}
    held = [crawl.hold(f"http://{host}/").reacquire() for host in "cdef"]
    await crawl.loop.step()
    # One at a time.
    assert sum(each.went_on for each in held) == 1
    crawl.limit.reached_downloader(crawl.order[0].request)
    await crawl.loop.step(5 * LOOK)
    assert sum(each.went_on for each in held) == 1
    crawl.limit.left_downloader(crawl.order[0].request)
    await crawl.loop.step()
    assert sum(each.went_on for each in held) == 2
    # This one waits in a middleware, too.
    await crawl.loop.step(2.5 * LOOK)
    assert sum(each.went_on for each in held) >= 3


@in_a_loop
async def test_a_look_just_after_a_grant_lets_no_other_request_go_on(crawl: Manual) -> None:
    """Those that were granted the last room are not in their slots yet."""
    one, two = crawl.download(), crawl.download()
    held = [crawl.hold(f"http://{host}/").reacquire() for host in "abc"]
    await crawl.loop.step(0.9 * LOOK)
    crawl.leave(one)
    crawl.leave(two)
    await crawl.loop.step(0.2 * LOOK)
    assert crawl.order == held[:2]
    for each in held[:2]:
        crawl.limit.reached_downloader(each.request)
    await crawl.loop.step(5 * LOOK)
    assert crawl.order == held[:2]


@in_a_loop
async def test_the_next_one_goes_on_as_soon_as_no_request_is_in_a_slot(crawl: Manual) -> None:
    crawl.engine.active |= {Request("http://a/"), Request("http://b/")}
    held = [crawl.hold(f"http://{host}/").reacquire() for host in "cd"]
    await crawl.loop.step()
    assert crawl.order == held[:1]
    crawl.limit.reached_downloader(held[0].request)
    crawl.limit.left_downloader(held[0].request)
    # Without a look.
    await crawl.loop.step()
    assert crawl.order == held


@in_a_loop
async def test_when_one_is_cancelled_the_others_are_looked_at_at_once(crawl: Manual) -> None:
    one, _ = crawl.download(), crawl.download()
    with ExitStack() as inner:
        crawl.stack, stack = inner, crawl.stack
        cancelled = crawl.hold("http://a/").reacquire()
        crawl.stack = stack
        held = crawl.hold("http://b/").reacquire()
        await crawl.loop.step()
    crawl.engine.active -= {one, cancelled.request}
    await crawl.loop.step()
    assert crawl.order == [held]


@in_a_loop
async def test_a_robots_txt_in_its_slot_is_no_reason_to_wait(crawl: Manual) -> None:
    """It may hang for long, and requests that are held wait for nothing of it."""
    crawl.engine.active |= {Request("http://a/"), Request("http://b/")}
    fetch = Request("http://c/robots.txt", callback=NO_CALLBACK)
    crawl.engine.active.add(fetch)
    crawl.limit.reached_downloader(fetch)
    with crawl.limit.released():
        held = crawl.hold("http://d/").reacquire()
        await crawl.loop.step()
        assert held.went_on


@in_a_loop
async def test_a_fetch_takes_no_concurrency(crawl: Manual) -> None:
    with crawl.limit.released():
        assert crawl.engine.concurrency == 3
    assert crawl.engine.concurrency == 2


@in_a_loop
async def test_whoever_is_held_is_told_of_a_stop(crawl: Manual) -> None:
    told = []
    crawl.limit.on_stop.append(lambda: told.append(crawl.loop.now))
    crawl.download(), crawl.download()
    returning = [crawl.hold(f"http://{host}/").reacquire() for host in "ab"]
    crawl.hold()
    await crawl.loop.step(3 * LOOK)
    assert told == []
    crawl.engine.is_closing = True
    await crawl.loop.step(LOOK)
    assert len(told) == 1
    assert all(each.went_on for each in returning)
    assert all(each.permit.state is State.COUNTED for each in returning)
    # Or the crawl would end before they are in the scheduler.
    assert crawl.engine.kept_open >= LOOK
    assert not crawl.limit.withheld
    crawl.limit.grant()
    assert not crawl.limit.withheld
    # What comes after that is told, too.
    crawl.hold()
    await crawl.loop.step(2 * LOOK)
    assert len(told) == 3


@in_a_loop
async def test_looks_end_when_nothing_is_held(crawl: Manual) -> None:
    looks = []
    crawl.limit.on_look.append(lambda: looks.append(crawl.loop.now))
    with crawl.limit.use(Permit()):
        await crawl.loop.step(3 * LOOK)
    assert len(looks) == 3
    await crawl.loop.step(2 * LOOK)
    assert len(looks) == 3
    assert crawl.loop.is_idle
    # And begin again.
    with crawl.limit.use(Permit()):
        await crawl.loop.step(2 * LOOK)
    assert len(looks) == 5


@in_a_loop
async def test_there_is_one_look_at_a_time_however_many_are_held(crawl: Manual) -> None:
    looks = []
    crawl.limit.on_look.append(lambda: looks.append(crawl.loop.now))
    crawl.hold()
    for _ in range(3):
        # Others come and go.
        with crawl.limit.use(Permit()):
            await crawl.loop.step(LOOK)
        await crawl.loop.step(LOOK)
    assert looks == [number * LOOK for number in range(1, 7)]


@in_a_loop
async def test_a_downloader_without_a_limit(crawl: Manual) -> None:
    with ExitStack() as stack:
        crawl = Manual(stack, concurrency=0)
        crawl.download()
        held = crawl.hold().reacquire()
        await crawl.loop.step()
        assert held.went_on
        assert crawl.engine.concurrency == 0


@pytest.mark.parametrize(
    "ends", [signals.request_left_downloader, signals.response_received], ids=["left", "received"]
)
@in_a_loop
async def test_signals_tell_of_requests(monkeypatch: pytest.MonkeyPatch, ends: object) -> None:
    engine = ManualEngine(1)
    crawler = get_crawler(Spider)
    engine_of = {crawler: engine}.__getitem__
    monkeypatch.setattr("scrapy_rep.holding.concurrency.Engine", engine_of)
    limit = ConcurrencyLimit.from_crawler(crawler)
    downloaded = Request("http://busy/")
    engine.active.add(downloaded)
    send = crawler.signals.send_catch_log
    send(signals.request_reached_downloader, request=downloaded)
    with limit.use(Permit((0, 0))) as permit:
        limit.release(permit)
        held = Request("http://a/")
        engine.active.add(held)
        returning: Deferred[None] = deferred_from_coro(limit.reacquire(permit, held))
        await settle()
        # A request is in its slot: this one does not go on without room.
        assert permit.state is State.RETURNING
        engine.active.discard(downloaded)
        send(ends, request=downloaded)
        await settle()
        assert returning.called
