"""Refusals of requests that have waited, one in each step of the loop."""

from __future__ import annotations

import pytest
import pytest_twisted
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.holding.refusals import RefusalQueue
from tests.holding.engines import ManualLoop


@pytest_twisted.ensureDeferred
async def test_a_thousand_do_not_come_in_one_step() -> None:
    loop = ManualLoop()
    refused: list[int] = []
    others: list[int] = []
    queue = RefusalQueue(lambda: True, loop.call_later)

    async def refuse(number: int) -> None:
        await queue.turn()
        refused.append(number)

    def go_on() -> None:
        others.append(len(refused))
        if len(refused) < 1_000:
            loop.call_later(0, go_on)

    go_on()
    for number in range(1_000):
        deferred_from_coro(refuse(number))
    while len(refused) < 1_000:
        await loop.step(0.01)
    # In order, and whoever else is to go on has a turn between two of them.
    assert refused == list(range(1_000))
    assert others[1:] == sorted(set(others))


@pytest.mark.parametrize(("is_idle", "seconds"), [(True, 0.0), (False, 0.09)])
@pytest_twisted.ensureDeferred
async def test_a_crawl_that_is_busy_goes_first(is_idle: bool, seconds: float) -> None:
    loop = ManualLoop()
    at: list[float] = []
    queue = RefusalQueue(lambda: is_idle, loop.call_later)

    async def refuse() -> None:
        await queue.turn()
        at.append(loop.now)

    for _ in range(10):
        deferred_from_coro(refuse())
    await loop.step(1)
    assert len(at) == 10
    assert at[-1] == pytest.approx(seconds)


@pytest_twisted.ensureDeferred
async def test_one_that_is_cancelled_holds_up_nobody() -> None:
    loop = ManualLoop()
    queue = RefusalQueue(lambda: True, loop.call_later)
    cancelled, other = deferred_from_coro(queue.turn()), deferred_from_coro(queue.turn())
    cancelled.addErrback(lambda _: None)
    await loop.step(-1)
    cancelled.cancel()
    await loop.step(1)
    assert other.called
