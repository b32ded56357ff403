"""How many fetches are under way at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import pytest_twisted
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.policies.fetcher import FetchLimiter
from scrapy_rep.stores.base import pause


class Timers:
    """Calls that are to be made later, made when the test says."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.cancelled = 0

    def __call__(self, delay: float, function: Callable[..., None], *args: object) -> Timers:
        assert delay == 0.25
        self.calls.append(lambda: function(*args))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


class Fetches:
    """Fetches through a gate, that end when the test says."""

    def __init__(self, gate: FetchLimiter) -> None:
        self.gate = gate
        self.inside: dict[int, Deferred[None]] = {}
        self.all: dict[int, Deferred[None]] = {}

    def start(self, *numbers: int) -> None:
        for number in numbers:
            self.all[number] = deferred_from_coro(self._fetch(number))

    async def finish(self) -> None:
        """Let all of them end."""
        while self.inside:
            for fetch in list(self.inside.values()):
                fetch.callback(None)
            await settled()

    async def _fetch(self, number: int) -> None:
        async with self.gate.acquire():
            self.inside[number] = Deferred()
            await maybe_deferred_to_future(self.inside[number])
        del self.inside[number]


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    timers = Timers()
    monkeypatch.setattr("scrapy_rep.policies.fetcher.call_later", timers)
    return timers


async def settled() -> None:
    """Let everything happen that can."""
    await deferred_from_coro(pause(0.05))


@pytest_twisted.ensureDeferred
async def test_as_many_as_there_may_be_at_once(timers: Timers) -> None:
    fetches = Fetches(FetchLimiter(2, 10))
    fetches.start(1, 2, 3, 4)
    await settled()
    assert sorted(fetches.inside) == [1, 2]
    fetches.inside[1].callback(None)
    await settled()
    assert sorted(fetches.inside) == [2, 3]
    await fetches.finish()


@pytest_twisted.ensureDeferred
async def test_one_that_ends_leaves_no_timer(timers: Timers) -> None:
    fetches = Fetches(FetchLimiter(2, 10))
    fetches.start(1, 2)
    await settled()
    assert timers.cancelled == 0
    await fetches.finish()
    assert timers.cancelled == 2


@pytest_twisted.ensureDeferred
async def test_slow_ones_make_room(timers: Timers) -> None:
    fetches = Fetches(FetchLimiter(2, 5))
    fetches.start(1, 2, 3, 4, 5, 6)
    await settled()
    timers.calls[0]()
    timers.calls[1]()
    await settled()
    assert sorted(fetches.inside) == [1, 2, 3, 4]
    timers.calls[2]()
    timers.calls[3]()
    await settled()
    # Not more than there may be of any age.
    assert sorted(fetches.inside) == [1, 2, 3, 4, 5]
    fetches.inside[1].callback(None)
    await settled()
    assert sorted(fetches.inside) == [2, 3, 4, 5, 6]
    await fetches.finish()


@pytest_twisted.ensureDeferred
async def test_old_ones_that_end_count_once(timers: Timers) -> None:
    fetches = Fetches(FetchLimiter(1, 10))
    fetches.start(1, 2, 3)
    await settled()
    timers.calls[0]()
    await settled()
    assert sorted(fetches.inside) == [1, 2]
    fetches.inside[1].callback(None)
    await settled()
    assert sorted(fetches.inside) == [2]
    await fetches.finish()


@pytest_twisted.ensureDeferred
async def test_who_no_longer_waits_takes_no_place(timers: Timers) -> None:
    fetches = Fetches(FetchLimiter(1, 1))
    fetches.start(1, 2, 3)
    await settled()
    fetches.all[2].addErrback(lambda _: None)
    fetches.all[2].cancel()
    fetches.inside[1].callback(None)
    await settled()
    assert sorted(fetches.inside) == [3]
    await fetches.finish()


@pytest.mark.parametrize("at_once", [0, -1])
@pytest_twisted.ensureDeferred
async def test_without_a_limit_of_concurrent_requests_there_is_that_of_fetches(
    timers: Timers, at_once: int
) -> None:
    fetches = Fetches(FetchLimiter(at_once, 3))
    fetches.start(1, 2, 3, 4)
    await settled()
    assert sorted(fetches.inside) == [1, 2, 3]
    await fetches.finish()
