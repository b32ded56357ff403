"""Turns that several crawls share, by a clock that the test sets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from scrapy_rep.throttling import memory
from scrapy_rep.throttling.memory import MemoryBackend
from scrapy_rep.throttling.throttle import Throttle
from scrapy_rep.throttling.turns import KEPT, LATE, LOOK_AGAIN, STEP, Event, Turns
from tests.throttling.manual import ManualLoop

SITE = "site.example"
DELAY = 10.0
NOW = 1000.0
FREE = Turns(last=NOW - 4, before=NOW - 20)
HELD = Turns(last=NOW - 4, before=NOW - 20, holder="other")


@pytest.mark.parametrize(
    ("turns", "since", "is_held", "wait"),
    [
        pytest.param(Turns(), inf, True, 0.0, id="nothing is known"),
        pytest.param(Turns(), 3.0, True, 7.0, id="only this crawl knows when it was there"),
        pytest.param(FREE, inf, True, 6.0, id="another one was there"),
        pytest.param(FREE, 3.0, True, 7.0, id="this one was there later"),
        pytest.param(FREE, 8.0, True, 6.0, id="this one was there earlier"),
        pytest.param(replace(FREE, last=NOW - 10), inf, True, 0.0, id="the delay is over"),
        pytest.param(replace(FREE, last=NOW - 10 + 1e-9), inf, True, 0.0, id="but for rounding"),
        pytest.param(replace(FREE, last=NOW + 99), inf, True, 10.0, id="from before a restart"),
        pytest.param(HELD, inf, True, LOOK_AGAIN, id="another one has the turn"),
        pytest.param(HELD, inf, False, 10.0, id="and is dead"),
        pytest.param(replace(HELD, holder="me"), inf, True, 6.0, id="this one lost its turn"),
        pytest.param(replace(FREE, slow=30.0, slow_since=NOW - 5), inf, True, 26.0, id="slow"),
        pytest.param(replace(FREE, slow=30.0, slow_since=NOW - 91), inf, True, 6.0, id="long ago"),
        pytest.param(replace(FREE, slow=30.0, slow_since=NOW + 5), inf, True, 6.0, id="to come"),
    ],
)
def test_the_wait_for_a_turn(turns: Turns, since: float, is_held: bool, wait: float) -> None:
    found, asked = turns.asked("me", DELAY, since, NOW, is_held=is_held)
    assert found == pytest.approx(wait)
    assert (asked.holder == "me") is (wait == 0)
    assert ("me" in asked.waiting) is (wait > 0)


def test_a_turn_is_granted_until_further_notice() -> None:
    # The time before it counts again if it is not used; its own, if nothing is heard of it.
    free = replace(FREE, last=NOW - 30)
    wait, granted = free.asked("me", DELAY, 15.0, NOW, is_held=True)
    assert (wait, granted) == (0.0, Turns(last=NOW, before=NOW - 15, holder="me"))


@pytest.mark.parametrize(
    ("turns", "since", "is_held"),
    [
        pytest.param(Turns(), 3.0, True, id="one crawl knew when it was there"),
        pytest.param(replace(FREE, last=NOW + 99), inf, True, id="from before a restart"),
        pytest.param(HELD, inf, False, id="the crawl that had the turn is dead"),
    ],
)
def test_the_next_one_to_ask_knows_what_one_was_told(
    turns: Turns, since: float, is_held: bool
) -> None:
    wait, turns = turns.asked("me", DELAY, since, NOW, is_held=is_held)
    again, _ = turns.asked("me", DELAY, inf, NOW + 2, is_held=True)
    assert again == pytest.approx(wait - 2)
    other, _ = turns.asked("other", DELAY, inf, NOW + 2, is_held=True)
    assert other == pytest.approx(wait - 2 + STEP)


def test_a_short_delay_is_asked_about_as_often() -> None:
    wait, _ = HELD.asked("me", 0.3, inf, NOW, is_held=True)
    assert wait == pytest.approx(0.3)


def test_crawls_that_wait_are_told_times_in_their_order() -> None:
    turns = FREE
    waits = {}
    for crawl in ("a", "b", "c", "b"):
        waits[crawl], turns = turns.asked(crawl, DELAY, inf, NOW, is_held=True)
    assert list(waits.values()) == pytest.approx([6, 6 + STEP, 6 + 2 * STEP])


def test_a_crawl_that_does_not_come_loses_its_place() -> None:
    _, turns = FREE.asked("dead", DELAY, inf, NOW, is_held=True)
    _, turns = turns.asked("me", DELAY, inf, NOW, is_held=True)
    # Late, it is waited for only so long.
    wait, turns = turns.asked("me", DELAY, inf, NOW + 6, is_held=True)
    assert wait == pytest.approx(STEP)
    wait, granted = turns.asked("me", DELAY, inf, NOW + 6 + STEP, is_held=True)
    assert (wait, list(granted.waiting)) == (0.0, ["dead"])
    wait, granted = turns.asked("me", DELAY, inf, NOW + 6 + LATE, is_held=True)
    assert (wait, list(granted.waiting)) == (0.0, [])


def test_those_who_waited_before_a_restart_are_forgotten() -> None:
    turns = replace(FREE, waiting={"old": NOW + 10**6})
    _, turns = turns.asked("me", DELAY, inf, NOW, is_held=True)
    assert list(turns.waiting) == ["me"]


def test_the_end_of_a_turn() -> None:
    assert HELD.after(Event.OVER, "other", DELAY, NOW) == replace(HELD, last=NOW, holder="")
    assert HELD.after(Event.UNUSED, "other", DELAY, NOW) == replace(HELD, last=NOW - 20, holder="")
    # A crawl that has lost its turn.
    assert HELD.after(Event.OVER, "me", DELAY, NOW) == replace(HELD, last=NOW)
    assert HELD.after(Event.UNUSED, "me", DELAY, NOW) == HELD


@pytest.mark.parametrize("event", [Event.OVER, Event.SENT, Event.HELD])
def test_what_is_told_late_changes_nothing_that_came_later(event: Event) -> None:
    assert HELD.after(event, "other", DELAY, NOW - 6).last == HELD.last


def test_a_turn_that_is_held_and_what_is_sent_without_one() -> None:
    assert HELD.after(Event.HELD, "other", DELAY, NOW) == replace(HELD, last=NOW)
    assert HELD.after(Event.HELD, "me", DELAY, NOW) == HELD
    assert HELD.after(Event.SENT, "me", DELAY, NOW) == replace(HELD, last=NOW, before=NOW)


def test_a_slow_site_is_slow_for_a_time() -> None:
    slow = Turns(slow=30.0, slow_since=NOW)
    assert [slow.slow_at(NOW + after) for after in (-1, 0, 29 + KEPT, 30 + KEPT)] == [0, 30, 30, 0]


# -- crawls in one process -----------------------------------------------------------------


class Crawls:
    """Several crawls that share what is known, each with some pages at one site."""

    def __init__(self, crawls: int, pages: int, seconds: float = 1.0) -> None:
        self.loop = ManualLoop()
        self.seconds = seconds
        self.sites: OrderedDict[str, Turns] = OrderedDict()
        self.sent: list[tuple[float, int]] = []
        self.throttles = [self.throttle() for _ in range(crawls)]
        for _ in range(pages):
            for crawl in range(crawls):
                self.admit(crawl)

    def throttle(self) -> Throttle:
        throttle = Throttle(
            MemoryBackend(self.loop.clock, self.sites),
            site_of=lambda _: SITE,
            clock=self.loop.clock,
            call_later=self.loop.call_later,
            is_active=lambda _: True,
            hears_all=lambda: True,
            remember=60.0,
            max_sites=100,
        )
        throttle.set_delay(SITE, DELAY)
        return throttle

    def admit(self, crawl: int) -> None:
        class Page:
            pass

        throttle, page = self.throttles[crawl], Page()

        def go_on(_: Any) -> None:
            assert throttle.has_turn(page)
            self.sent.append((self.loop.now, crawl))
            throttle.reached(page)
            self.loop.call_later(self.seconds, throttle.left, page)

        turn = throttle.admit(page, 0)
        if turn is None:
            go_on(None)
        else:
            turn.addCallbacks(go_on, lambda _: None)


@pytest.mark.parametrize("crawls", [1, 2, 8])
def test_crawls_that_share_a_site_take_turns(crawls: int) -> None:
    several = Crawls(crawls, pages=3)
    several.loop.advance(3 * crawls * (DELAY + 2))
    assert len(several.sent) == 3 * crawls
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(several.sent)]
    # None is too short, and no time is lost.
    assert min(gaps) >= several.seconds + DELAY - 1e-6
    assert max(gaps) <= several.seconds + DELAY + crawls * STEP
    # Each has had its turn before another one has it again.
    for start in range(0, 3 * crawls, crawls):
        assert len({crawl for _, crawl in several.sent[start : start + crawls]}) == crawls


def test_a_slow_download_keeps_all_crawls_waiting() -> None:
    several = Crawls(2, pages=1, seconds=100)
    several.loop.advance(100 + DELAY - 0.1)
    assert len(several.sent) == 1
    several.loop.advance(LOOK_AGAIN + 0.1)
    assert len(several.sent) == 2


def test_a_crawl_that_ends_gives_its_turn_back() -> None:
    several = Crawls(2, pages=1, seconds=10**6)
    several.throttles[0].close()
    assert len(several.sent) == 1
    several.loop.advance(DELAY + LOOK_AGAIN)
    assert [crawl for _, crawl in several.sent] == [0, 1]


def test_sites_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MAX_SITES", 10)
    sites: OrderedDict[str, Turns] = OrderedDict()
    backend = MemoryBackend(lambda: NOW, sites)
    for number in range(30):
        for site in (f"{number}.example", SITE):
            backend.tell(Event.SENT, site, DELAY)
    assert list(sites) == [*(f"{number}.example" for number in range(21, 30)), SITE]


def test_slow_sites_are_known_to_all_crawls_of_a_process() -> None:
    sites: OrderedDict[str, Turns] = OrderedDict()
    one, other = (MemoryBackend(lambda: NOW, sites) for _ in range(2))
    one.tell(Event.SLOW, SITE, 30.0)
    one.tell(Event.SENT, "fine.example", DELAY)
    answers: list[Any] = []
    other.slowed(answers.append)
    other.tell(Event.SLOW, SITE, 0.0)
    one.slowed(answers.append)
    assert answers == [{SITE: 30.0}, {}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_knows_nothing_of_the_crawls_of_its_parent() -> None:
    code = (
        "import os; from scrapy_rep.throttling.memory import PROCESS; PROCESS['site'] = None\n"
        "child = os.fork()\n"
        "if not child: os._exit(len(PROCESS))\n"
        "print(os.waitpid(child, 0)[1], len(PROCESS))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "0 1\n"
