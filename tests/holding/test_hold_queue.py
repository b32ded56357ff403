"""Who finds a place in the waiting room."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, Spider
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import gatherResults

from scrapy_rep.holding.concurrency import Places
from scrapy_rep.holding.hold_queue import WaitingRoom, from_scheduler, to_scheduler
from scrapy_rep.rep.urls import Origin


def origin(number: int) -> Origin:
    return Origin("http", f"host-{number}.example", 80)


def room_for(requests: int) -> WaitingRoom:
    crawler: Any = get_crawler(Spider)
    # No limit, so nothing to lend.
    crawler.engine = SimpleNamespace(downloader=SimpleNamespace(total_concurrency=0), _slot=None)
    return WaitingRoom(crawler, Places(crawler), requests)


@pytest.fixture
def room() -> WaitingRoom:
    return room_for(100)


def fill(room: WaitingRoom, stack: ExitStack, one: Origin) -> int:
    """As many requests for *one* as find a place."""
    taken = 0
    while room.has_place_for(one):
        stack.enter_context(room.place(one))
        taken += 1
    return taken


def test_fair_between_origins(room: WaitingRoom) -> None:
    with ExitStack() as stack:
        # Each takes half of what the others leave.
        assert [fill(room, stack, origin(number)) for number in range(5)] == [50, 25, 13, 6, 3]
        assert room.has_place_for(origin(9))
    # All have left.
    with ExitStack() as stack:
        assert fill(room, stack, origin(3)) == 50


def test_no_origin_takes_a_large_room() -> None:
    room = room_for(5_000)
    with ExitStack() as stack:
        assert [fill(room, stack, origin(number)) for number in range(3)] == [256] * 3
        assert room.has_place_for(origin(9))


def test_many_origins_fill_it(room: WaitingRoom) -> None:
    with ExitStack() as stack:
        for number in range(100):
            assert room.has_place_for(origin(number))
            stack.enter_context(room.place(origin(number)))
        assert not room.has_place_for(origin(100))
        assert not room.has_place_for(origin(1))


@pytest_twisted.ensureDeferred
async def test_refused_one_by_one(room: WaitingRoom) -> None:
    """Between two of them, whoever else is to go on has a turn."""
    turn = 0
    turns: list[int] = []

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        if len(turns) < 3:
            call_later(0, count_turns)

    async def wait_and_go() -> None:
        await room.turn_to_be_refused()
        turns.append(turn)

    count_turns()
    await gatherResults([deferred_from_coro(wait_and_go()) for _ in range(3)])
    assert turns == sorted(set(turns))


@pytest.mark.parametrize("dont_filter", [False, True])
@pytest.mark.parametrize(("behind", "priority"), [(True, 6), (False, 7)])
def test_to_the_scheduler_and_back(dont_filter: bool, behind: bool, priority: int) -> None:
    request = Request("http://a.example/", dont_filter=dont_filter, priority=7, meta={"a": 1})
    returned = to_scheduler(request, behind=behind)
    assert returned.dont_filter
    assert returned.priority == priority
    from_scheduler(returned)
    assert (returned.dont_filter, returned.priority) == (dont_filter, 7)
    assert returned.meta == {"a": 1} == request.meta
