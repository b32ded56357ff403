"""Each transition of the throttle, by a clock that the test sets."""

from __future__ import annotations

import gc
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.throttling.memory import MemoryBackend
from scrapy_rep.throttling.throttle import Answer, Slowed, Throttle
from scrapy_rep.throttling.turns import Event
from tests.throttling.manual import ManualLoop

SITE = "site.example"
DELAY = 10.0


@dataclass(eq=False)
class Page:
    """A request: an object, and nothing of Scrapy."""

    site: str = SITE


@dataclass
class Downloader:
    """What is under way, and the throttle that is told about it."""

    loop: ManualLoop = field(default_factory=ManualLoop)
    backend: Any = None
    active: set[Page] = field(default_factory=set)
    went_on: list[Page] = field(default_factory=list)
    turns: dict[Page, Deferred[None]] = field(default_factory=dict)
    hears_all: bool = True
    max_sites: int = 100
    looks: int = 0

    def __post_init__(self) -> None:
        self.throttle = Throttle(
            self.backend or MemoryBackend(self.loop.clock, OrderedDict()),
            site_of=lambda page: page.site,
            clock=self.loop.clock,
            call_later=self.loop.call_later,
            is_active=self.is_active,
            hears_all=lambda: self.hears_all,
            remember=60.0,
            max_sites=self.max_sites,
        )
        self.throttle.set_delay(SITE, DELAY)

    def is_active(self, page: Page) -> bool:
        self.looks += 1
        return page in self.active

    def admit(
        self, page: Page | None = None, priority: int = 0, *, site: str = SITE, **kind: bool
    ) -> Page:
        """As the middleware does: a request comes, and goes on when it is its turn."""
        page = page or Page(site)
        self.active.add(page)
        turn = self.throttle.admit(page, priority, **kind)
        if turn is None:
            self.went_on.append(page)
            return page
        self.turns[page] = turn

        def go_on(_: None) -> None:
            if kind.get("is_fetch") or self.throttle.has_turn(page):
                self.went_on.append(page)

        turn.addCallbacks(go_on, lambda failure: failure.trap(CancelledError))
        return page

    def send(self, page: Page) -> None:
        self.active.add(page)
        self.throttle.reached(page)

    def finish(self, page: Page) -> None:
        self.throttle.left(page)
        self.active.discard(page)

    def drop(self, page: Page) -> None:
        """Another middleware answers, drops or replaces *page*."""
        self.active.discard(page)


@pytest.fixture
def downloader() -> Downloader:
    return Downloader()


# -- idle → admitted → sent → cooling → idle -------------------------------------------


def test_a_site_without_a_delay_is_not_throttled(downloader: Downloader) -> None:
    pages = [downloader.admit(site="other.example") for _ in range(3)]
    assert downloader.went_on == pages
    assert downloader.throttle.has_turn(pages[0])
    assert not downloader.throttle.is_in_use("other.example")
    assert not downloader.loop.pending


def test_an_idle_site_admits_at_once(downloader: Downloader) -> None:
    page = downloader.admit()
    assert downloader.went_on == [page]
    assert downloader.throttle.has_turn(page)


def test_an_admitted_request_keeps_others_waiting(downloader: Downloader) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.loop.advance(25)
    assert downloader.went_on == [first]
    assert not downloader.throttle.has_turn(second)


def test_a_request_that_has_the_turn_may_ask_again(downloader: Downloader) -> None:
    page = downloader.admit()
    assert downloader.admit(page) is page
    assert downloader.went_on == [page, page]


@pytest.mark.parametrize("seconds", [0, 500])
def test_a_sent_request_keeps_others_waiting(downloader: Downloader, seconds: float) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.admit()
    downloader.loop.advance(seconds)
    assert downloader.went_on == [first]
    assert not downloader.throttle.has_turn(first)


def test_the_delay_counts_from_the_end_of_a_download(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    second = downloader.admit()
    downloader.loop.advance(7)
    downloader.finish(first)
    downloader.loop.advance(DELAY - 0.001)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.001)
    assert downloader.went_on == [first, second]


def test_the_delay_holds_where_nobody_waited(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.finish(first)
    assert not downloader.loop.pending
    downloader.loop.advance(4)
    second = downloader.admit()
    downloader.loop.advance(5.999)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.001)
    assert downloader.went_on == [first, second]


def test_a_site_that_cools_is_idle_after_the_delay(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.finish(first)
    downloader.loop.advance(DELAY)
    second = downloader.admit()
    assert downloader.went_on == [first, second]


def test_sites_do_not_wait_for_each_other(downloader: Downloader) -> None:
    downloader.throttle.set_delay("other.example", 5)
    pages = [downloader.admit(), downloader.admit(site="other.example")]
    assert downloader.went_on == pages


def test_many_requests_leave_the_delay_between_each_two(downloader: Downloader) -> None:
    pages = [downloader.admit() for _ in range(20)]
    sent: list[float] = []
    while len(sent) < len(pages):
        while len(downloader.went_on) == len(sent):
            downloader.loop.advance(0.25)
        sent.append(downloader.loop.now)
        downloader.send(downloader.went_on[-1])
        downloader.loop.advance(2)
        downloader.finish(downloader.went_on[-1])
    assert downloader.went_on == pages
    gaps = {later - earlier for earlier, later in pairwise(sent)}
    # No random variation.
    assert gaps == {DELAY + 2}


def test_nobody_has_the_turn_of_a_site_where_nobody_waits(downloader: Downloader) -> None:
    assert downloader.throttle.delay(SITE) == DELAY
    assert not downloader.throttle.has_turn(Page())
    downloader.throttle.set_delay(SITE, 0)
    assert downloader.throttle.has_turn(Page())


# -- the order ---------------------------------------------------------------------------


def run_out(downloader: Downloader) -> list[Page]:
    """Send all, one after the other; in which order they went on."""
    for number in range(len(downloader.turns) + 1):
        downloader.send(downloader.went_on[number])
        downloader.finish(downloader.went_on[number])
        downloader.loop.advance(DELAY)
        if len(downloader.went_on) == number + 1:
            break
    return downloader.went_on


def test_the_highest_priority_goes_first_then_the_first_to_come(downloader: Downloader) -> None:
    first = downloader.admit()
    a, b, c, d, e = (downloader.admit(priority=priority) for priority in (0, -1, 5, 0, 5))
    assert run_out(downloader) == [first, c, e, a, d, b]


def test_a_robotstxt_fetch_goes_before_all_pages(downloader: Downloader) -> None:
    first = downloader.admit()
    page = downloader.admit(priority=10**6)
    fetch = downloader.admit(priority=-5, is_fetch=True)
    assert run_out(downloader) == [first, fetch, page]


def test_who_comes_late_with_a_high_priority_overtakes(downloader: Downloader) -> None:
    first = downloader.admit()
    others = [downloader.admit() for _ in range(60)]
    downloader.send(first)
    downloader.finish(first)
    downloader.loop.advance(DELAY / 2)
    urgent = downloader.admit(priority=1000)
    downloader.loop.advance(DELAY)
    assert downloader.went_on == [first, urgent]
    assert run_out(downloader) == [first, urgent, *others]


def test_a_request_that_leaves_the_queue_is_passed_over(downloader: Downloader) -> None:
    first, second, third = (downloader.admit() for _ in range(3))
    downloader.turns[second].cancel()
    assert run_out(downloader) == [first, third]


def test_a_queue_that_all_have_left_is_forgotten(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.finish(first)
    waiting = downloader.admit()
    assert downloader.throttle.is_in_use(SITE)
    downloader.turns[waiting].cancel()
    assert not downloader.throttle.is_in_use(SITE)
    assert not downloader.loop.pending


def test_a_request_that_leaves_the_queue_gives_nobody_a_second_turn(
    downloader: Downloader,
) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.turns[second].cancel()
    downloader.admit()
    downloader.loop.advance(20)
    assert downloader.went_on == [first]


# -- admitted, and gone without having been sent ------------------------------------------


def test_a_request_that_is_dropped_frees_the_site_on_the_next_turn(downloader: Downloader) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.drop(first)
    assert downloader.went_on == [first]
    downloader.loop.turn()
    assert downloader.went_on == [first, second]
    assert downloader.loop.now == 1000.0


def test_the_last_one_that_is_dropped_leaves_nothing(downloader: Downloader) -> None:
    page = downloader.admit()
    downloader.drop(page)
    downloader.loop.turn()
    assert not downloader.throttle.is_in_use(SITE)
    assert not downloader.loop.pending
    assert downloader.went_on == [page, downloader.admit()]


def test_forty_dropped_requests_take_forty_turns_of_the_loop(downloader: Downloader) -> None:
    pages = [downloader.admit() for _ in range(40)]
    for page in pages:
        downloader.drop(page)
    for _ in pages:
        downloader.loop.turn()
    assert downloader.went_on == pages
    assert downloader.loop.now == 1000.0


def test_the_looks_are_on_the_next_turns_first_and_then_pause(downloader: Downloader) -> None:
    downloader.admit()
    for looks in range(1, 9):
        downloader.loop.turn()
        assert downloader.looks == looks
    downloader.loop.turn()
    assert downloader.looks == 8
    at = []
    while downloader.loop.now < 1010:
        (timer,) = downloader.loop.pending
        downloader.loop.advance(timer.at - downloader.loop.now)
        at.append(downloader.loop.now)
    pauses = [later - earlier for earlier, later in pairwise([1000.0, *at])]
    assert pauses[0] == pytest.approx(0.001)
    for earlier, later in pairwise(pauses):
        assert later == pytest.approx(min(2 * earlier, 0.25))


def test_a_request_that_is_dropped_late_is_noticed_soon(downloader: Downloader) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.loop.advance(20)
    downloader.drop(first)
    downloader.loop.advance(0.25)
    assert downloader.went_on == [first, second]


def test_a_hint_has_it_noticed_at_once(downloader: Downloader) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.throttle.may_be_gone(first)
    downloader.drop(first)
    downloader.throttle.may_be_gone(second)
    downloader.throttle.may_be_gone(Page("other.example"))
    assert downloader.went_on == [first]
    downloader.throttle.may_be_gone(first)
    assert downloader.went_on == [first, second]


def test_the_same_of_a_called_request(slow: Slow) -> None:
    second, third = slow.turns
    slow.drop(second)
    slow.throttle.may_be_gone(second)
    assert slow.turns[third].called


def test_a_dropped_request_does_not_shorten_the_delay(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.finish(first)
    downloader.loop.advance(DELAY)
    dropped, unheld, last = downloader.admit(), Page(), downloader.admit()
    # Something else is sent just before the site would be free again.
    downloader.send(unheld)
    downloader.finish(unheld)
    downloader.drop(dropped)
    downloader.loop.advance(DELAY - 0.001)
    assert last not in downloader.went_on
    downloader.loop.advance(0.001)
    assert last in downloader.went_on


def test_where_nobody_says_what_is_sent_a_request_that_is_gone_counts_as_sent() -> None:
    downloader = Downloader(hears_all=False)
    first, second, third = (downloader.admit() for _ in range(3))
    downloader.loop.advance(3)
    downloader.drop(first)
    downloader.loop.advance(DELAY)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.25)
    assert downloader.went_on == [first, second]
    # The first one that is said to be sent shows that the others were not.
    downloader.send(second)
    downloader.finish(second)
    downloader.loop.advance(DELAY)
    downloader.drop(third)
    fourth = downloader.admit()
    downloader.loop.advance(0.002)
    assert downloader.went_on == [first, second, third, fourth]


# -- called: the turn is there, and the request is still on its way through ours ------------


class Slow(Downloader):
    """Requests do not go on at once when they are called: they wait for their concurrency."""

    def admit(
        self, page: Page | None = None, priority: int = 0, *, site: str = SITE, **kind: bool
    ) -> Page:
        page = page or Page(site)
        self.active.add(page)
        turn = self.throttle.admit(page, priority, **kind)
        if turn is None:
            self.went_on.append(page)
        else:
            self.turns[page] = turn
        return page

    def go_on(self, page: Page) -> bool:
        goes_on = self.throttle.has_turn(page)
        if goes_on:
            self.went_on.append(page)
        return goes_on


@pytest.fixture
def slow() -> Slow:
    """The first request has been sent, the second was called and has not gone on."""
    slow = Slow()
    first = slow.admit()
    slow.send(first)
    for _ in range(2):
        slow.admit()
    slow.finish(first)
    slow.loop.advance(DELAY)
    assert [slow.turns[page].called for page in slow.turns] == [True, False]
    slow.went_on.clear()
    return slow


def second_of(slow: Slow) -> Page:
    return next(iter(slow.turns))


def test_a_called_request_goes_on_when_it_can(slow: Slow) -> None:
    second = second_of(slow)
    slow.loop.advance(20)
    assert slow.go_on(second)
    slow.send(second)
    assert not slow.go_on(second)


def test_a_called_request_that_does_not_go_on_gives_up_its_turn_at_once(slow: Slow) -> None:
    slow.drop(second_of(slow))
    slow.loop.advance(0.002)
    assert all(turn.called for turn in slow.turns.values())


def test_a_fetch_takes_over_the_turn_of_a_called_request(slow: Slow) -> None:
    second = second_of(slow)
    fetch = slow.admit(is_fetch=True)
    assert slow.went_on == [fetch]
    assert not slow.go_on(second)
    # Which has its old place in the queue then.
    slow.admit(second)
    slow.send(fetch)
    slow.finish(fetch)
    slow.loop.advance(DELAY)
    assert slow.go_on(second)


def test_a_fetch_that_goes_on_keeps_its_turn(downloader: Downloader) -> None:
    first = downloader.admit()
    one, other = (downloader.admit(is_fetch=True) for _ in range(2))
    downloader.send(first)
    downloader.finish(first)
    downloader.loop.advance(DELAY)
    last = downloader.admit(is_fetch=True)
    assert downloader.went_on == [first, one]
    assert run_out(downloader)[1:] == [one, other, last]


def test_a_fetch_that_is_dropped_frees_the_site(slow: Slow) -> None:
    fetch = slow.admit(is_fetch=True)
    second = slow.admit(second_of(slow))
    slow.drop(fetch)
    slow.loop.turn()
    assert slow.go_on(second)


def test_a_called_request_may_be_sent_without_asking(slow: Slow) -> None:
    second = second_of(slow)
    slow.send(second)
    slow.loop.advance(100)
    slow.finish(second)
    assert not list(slow.turns.values())[1].called
    slow.loop.advance(DELAY)
    assert list(slow.turns.values())[1].called


def test_a_called_request_may_be_admitted_again(slow: Slow) -> None:
    second = slow.admit(second_of(slow))
    assert slow.went_on == [second]


# -- admitted requests that are late --------------------------------------------------------


@pytest.mark.parametrize("kind", ["is_fetch", "is_components"])
def test_a_component_takes_over_the_turn_of_a_request_that_may_wait_for_it(
    downloader: Downloader, kind: str
) -> None:
    first = downloader.admit()
    kinds: dict[str, Any] = {kind: True}
    page, inner = downloader.admit(priority=5), downloader.admit(**kinds)
    downloader.loop.advance(0.9)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.4)
    assert downloader.went_on == [first, inner]
    downloader.send(inner)
    # Late as it is, it counts as sent.
    downloader.send(first)
    downloader.finish(inner)
    downloader.loop.advance(4)
    downloader.finish(first)
    downloader.loop.advance(DELAY - 0.001)
    assert page not in downloader.went_on
    downloader.loop.advance(0.001)
    assert downloader.went_on == [first, inner, page]


def test_any_request_takes_over_a_turn_that_is_not_used_for_long(downloader: Downloader) -> None:
    first, second = downloader.admit(), downloader.admit()
    downloader.loop.advance(29.7)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.6)
    assert downloader.went_on == [first, second]
    assert not downloader.throttle.has_turn(first)


def test_nobody_is_late_while_nobody_waits(downloader: Downloader) -> None:
    page = downloader.admit()
    downloader.loop.advance(100)
    assert downloader.throttle.has_turn(page)


# -- requests that are not held ---------------------------------------------------------


def test_a_request_that_is_not_held_counts_as_sent(downloader: Downloader) -> None:
    unheld = Page()
    downloader.send(unheld)
    page = downloader.admit()
    downloader.loop.advance(5)
    downloader.finish(unheld)
    downloader.loop.advance(DELAY - 0.001)
    assert downloader.went_on == []
    downloader.loop.advance(0.001)
    assert downloader.went_on == [page]


def test_an_admitted_request_keeps_its_turn_while_another_is_sent(downloader: Downloader) -> None:
    first, unheld = downloader.admit(), Page()
    downloader.send(unheld)
    assert downloader.throttle.has_turn(first)
    downloader.finish(unheld)
    assert downloader.throttle.has_turn(first)


def test_of_several_the_last_one_to_leave_counts(downloader: Downloader) -> None:
    first, unheld = downloader.admit(), Page()
    downloader.send(first)
    downloader.send(unheld)
    second = downloader.admit()
    downloader.finish(first)
    downloader.loop.advance(DELAY + 1)
    assert second not in downloader.went_on
    downloader.finish(unheld)
    downloader.loop.advance(DELAY)
    assert second in downloader.went_on


def test_one_that_is_sent_while_the_site_cools_makes_it_cool_anew(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.finish(first)
    second, unheld = downloader.admit(), Page()
    downloader.loop.advance(DELAY - 1)
    downloader.send(unheld)
    downloader.loop.advance(5)
    downloader.finish(unheld)
    downloader.loop.advance(DELAY - 0.001)
    assert second not in downloader.went_on
    downloader.loop.advance(0.001)
    assert second in downloader.went_on


def test_what_was_under_way_before_a_site_was_throttled_counts(downloader: Downloader) -> None:
    before, just_left = Page("new.example"), Page("new.example")
    downloader.send(just_left)
    downloader.finish(just_left)
    downloader.throttle.set_delay("new.example", DELAY)
    downloader.send(before)
    page = downloader.admit(site="new.example")
    downloader.loop.advance(DELAY)
    downloader.finish(before)
    downloader.loop.advance(DELAY - 0.001)
    assert downloader.went_on == []
    downloader.loop.advance(0.001)
    assert downloader.went_on == [page]


def test_a_request_that_somebody_gave_up_is_not_waited_for_for_good(
    downloader: Downloader,
) -> None:
    first = downloader.admit()
    downloader.send(first)
    second = downloader.admit()
    # Nobody says that it has left.
    downloader.active.discard(first)
    downloader.loop.advance(30 + DELAY)
    assert downloader.went_on == [first, second]


def test_there_is_another_look_at_a_request_that_is_slow(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    second = downloader.admit()
    downloader.loop.advance(45)
    downloader.active.discard(first)
    downloader.loop.advance(15 + DELAY)
    assert downloader.went_on == [first, second]


def test_the_same_of_a_request_that_was_not_held(downloader: Downloader) -> None:
    unheld = Page()
    downloader.send(unheld)
    page = downloader.admit()
    downloader.active.discard(unheld)
    downloader.loop.advance(30 + DELAY)
    assert downloader.went_on == [page]


# -- delays that change ----------------------------------------------------------------


@pytest.mark.parametrize("delay", [3.0, 30.0])
def test_a_new_delay_counts_from_the_last_request(downloader: Downloader, delay: float) -> None:
    first = downloader.admit()
    downloader.send(first)
    second = downloader.admit()
    downloader.finish(first)
    downloader.loop.advance(2)
    downloader.throttle.set_delay(SITE, delay)
    downloader.loop.advance(delay - 2.001)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.001)
    assert downloader.went_on == [first, second]


def test_the_same_delay_changes_nothing(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.admit()
    downloader.finish(first)
    (timer,) = downloader.loop.pending
    downloader.throttle.set_delay(SITE, DELAY)
    assert downloader.loop.pending == [timer]
    downloader.throttle.set_delay("unknown.example", 0)


def test_a_site_that_asks_for_nothing_any_more_lets_all_go_on(downloader: Downloader) -> None:
    first = downloader.admit()
    low, high = downloader.admit(), downloader.admit(priority=1)
    downloader.throttle.set_delay(SITE, 0)
    assert downloader.went_on == [first, high, low]
    assert not downloader.throttle.is_in_use(SITE)
    assert not downloader.loop.pending
    assert downloader.throttle.delay(SITE) == 0


def test_one_that_goes_on_then_may_make_another_leave(downloader: Downloader) -> None:
    downloader.admit()
    one, other = downloader.admit(), downloader.admit()
    downloader.turns[one].addCallback(lambda _: downloader.turns[other].cancel())
    downloader.throttle.set_delay(SITE, 0)
    assert downloader.went_on[1:] == [one]


def test_a_site_that_asks_again_remembers_its_last_request(downloader: Downloader) -> None:
    first = downloader.admit()
    downloader.send(first)
    downloader.throttle.set_delay(SITE, 0)
    downloader.finish(first)
    downloader.throttle.set_delay(SITE, DELAY)
    second = downloader.admit()
    downloader.loop.advance(DELAY - 0.001)
    assert downloader.went_on == [first]
    downloader.loop.advance(0.001)
    assert downloader.went_on == [first, second]


def test_what_a_site_costs_counts_from_the_first_request_to_the_last(
    downloader: Downloader,
) -> None:
    downloader.throttle.set_delay("quick.example", 1)
    quick = downloader.admit(site="quick.example")
    downloader.send(quick)
    downloader.finish(quick)
    first, second = downloader.admit(), downloader.admit()
    downloader.loop.advance(3)
    for page in (first, second):
        downloader.send(page)
        downloader.finish(page)
        downloader.loop.advance(DELAY)
    spent = [
        (site, spent.requests, spent.seconds) for site, spent in downloader.throttle.slowest(9)
    ]
    assert spent == [(SITE, 2, 3 + DELAY), ("quick.example", 1, 0)]
    assert len(downloader.throttle.slowest(1)) == 1


def test_each_time_that_a_site_is_visited_adds_to_what_it_costs(downloader: Downloader) -> None:
    for seconds in (3, 5):
        page = downloader.admit()
        downloader.loop.advance(seconds)
        downloader.send(page)
        downloader.finish(page)
        downloader.loop.advance(DELAY)
        assert not downloader.throttle.is_in_use(SITE)
    ((_, spent),) = downloader.throttle.slowest(9)
    assert (spent.requests, spent.seconds) == (2, 3 + 5)


def test_as_many_wait_as_have_not_had_their_turn(downloader: Downloader) -> None:
    assert downloader.throttle.waiting(SITE) == 0
    _, second, _ = (downloader.admit() for _ in range(3))
    assert downloader.throttle.waiting(SITE) == 2
    downloader.turns[second].cancel()
    assert downloader.throttle.waiting(SITE) == 1


# -- memory ------------------------------------------------------------------------------


def state_of(downloader: Downloader) -> dict[str, Any]:
    names = ("_sites", "sent", "_left_at")
    return {name: vars(downloader.throttle)[name] for name in names}


def test_sites_are_forgotten_in_time() -> None:
    downloader = Downloader(max_sites=1000)
    for number in range(200):
        page = Page(f"{number}.example")
        downloader.send(page)
        downloader.finish(page)
        downloader.loop.advance(1)
    state = state_of(downloader)
    assert (state["_sites"], state["sent"]) == ({}, {})
    # Those of the last minute; no delay is longer.
    assert len(state["_left_at"]) <= 61


@pytest.mark.once
def test_sites_are_bounded_in_number() -> None:
    downloader = Downloader(max_sites=10)
    for number in range(200):
        page = Page(f"{number}.example")
        downloader.send(page)
        downloader.finish(page)
    assert list(state_of(downloader)["_left_at"]) == [f"{n}.example" for n in range(190, 200)]
    for number in range(200):
        downloader.throttle.set_delay(f"{number}.example", DELAY)
        page = downloader.admit(site=f"{number}.example")
        downloader.loop.advance(number)
        downloader.drop(page)
        downloader.loop.advance(1)
    # The slowest ones are kept.
    slowest = [site for site, _ in downloader.throttle.slowest(100)]
    assert len(slowest) <= 10
    assert slowest[:3] == ["199.example", "198.example", "197.example"]


def test_of_too_many_sites_the_slower_half_is_kept() -> None:
    downloader = Downloader(max_sites=4)
    known = []
    for number in range(5):
        site = f"{number}.example"
        downloader.throttle.set_delay(site, DELAY)
        page = downloader.admit(site=site)
        downloader.loop.advance(number)
        downloader.send(page)
        downloader.finish(page)
        known.append([name for name, _ in downloader.throttle.slowest(9)])
    assert known[3] == ["3.example", "2.example", "1.example", "0.example"]
    assert known[4] == ["4.example", "3.example"]


def test_a_site_that_is_visited_all_the_time_is_not_the_oldest() -> None:
    downloader = Downloader(max_sites=2)
    for number in range(5):
        for name in (SITE, f"{number}.example"):
            page = Page(name)
            downloader.send(page)
            downloader.finish(page)
        assert SITE in state_of(downloader)["_left_at"]


def test_what_is_noted_counts_if_it_is_the_last(downloader: Downloader) -> None:
    downloader.throttle.note(SITE, 4.0)
    downloader.throttle.note(SITE, 7.0)
    page = downloader.admit()
    downloader.loop.advance(5.999)
    assert downloader.went_on == []
    downloader.loop.advance(0.001)
    assert downloader.went_on == [page]


def test_what_is_older_than_all_that_is_remembered_is_not_noted(downloader: Downloader) -> None:
    downloader.throttle.note(SITE, 60.0)
    downloader.throttle.note("other.example", 60.001)
    assert list(state_of(downloader)["_left_at"]) == [SITE]


def test_requests_are_forgotten(downloader: Downloader) -> None:
    page = downloader.admit()
    downloader.send(page)
    downloader.finish(page)
    downloader.went_on.clear()
    del page
    gc.collect()
    assert not any(isinstance(found, Page) for found in gc.get_objects())


def test_the_end_of_a_crawl_leaves_no_timers(downloader: Downloader) -> None:
    downloader.admit()
    downloader.throttle.set_delay("other.example", DELAY)
    downloader.admit(site="other.example")
    downloader.throttle.close()
    assert not downloader.loop.pending


# -- a backend that takes its time ----------------------------------------------------------


@dataclass
class SlowBackend:
    """Answers when the test says so."""

    log: list[tuple[Any, ...]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def ask(self, site: str, delay: float, since: float, *, again: bool, answer: Answer) -> None:
        self.log.append(("ask", site, delay, since, again))
        self.answers.append(answer)

    def tell(self, event: Event, site: str, delay: float) -> None:
        self.log.append((event, site, delay))

    def slowed(self, answer: Slowed) -> None:
        raise NotImplementedError


ASK = ("ask", SITE, DELAY, inf, False)


@pytest.fixture
def fleet() -> Downloader:
    return Downloader(backend=SlowBackend())


def test_a_request_goes_on_when_the_turn_is_granted(fleet: Downloader) -> None:
    page = fleet.admit()
    assert (fleet.went_on, fleet.backend.log) == ([], [ASK])
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [page]
    fleet.send(page)
    fleet.loop.advance(2)
    fleet.finish(page)
    assert fleet.backend.log == [ASK, (Event.OVER, SITE, DELAY)]


def test_the_backend_is_asked_once_for_all_who_wait(fleet: Downloader) -> None:
    for _ in range(5):
        fleet.admit()
    assert fleet.backend.log == [ASK]


def test_the_turn_is_that_of_the_first_when_it_is_granted(fleet: Downloader) -> None:
    fleet.admit()
    urgent = fleet.admit(priority=1)
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [urgent]


def test_the_backend_is_asked_again_when_it_says_so(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(7.0)
    fleet.loop.advance(6.999)
    assert not fleet.backend.answers
    fleet.loop.advance(0.001)
    assert fleet.backend.log == [ASK, ("ask", SITE, DELAY, inf, True)]
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [page]
    fleet.send(page)
    fleet.finish(page)
    fleet.loop.advance(1.5)
    fleet.admit()
    # It has not been told when to ask for this one.
    assert fleet.backend.log[-1] == ("ask", SITE, DELAY, 1.5, False)


def test_only_who_was_told_to_ask_again_asks_again(fleet: Downloader) -> None:
    page, _ = fleet.admit(), fleet.admit()
    fleet.backend.answers.pop()(7.0)
    fleet.loop.advance(7)
    fleet.backend.answers.pop()(0.0)
    fleet.send(page)
    fleet.finish(page)
    assert [asked[-1] for asked in fleet.backend.log if asked[0] == "ask"] == [False, True, False]


def test_a_turn_that_nobody_waits_for_any_more_is_given_back(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.turns[page].cancel()
    fleet.backend.answers.pop()(0.0)
    assert fleet.backend.log == [ASK, (Event.UNUSED, SITE, DELAY)]
    assert not fleet.throttle.is_in_use(SITE)


def test_the_backend_is_asked_once_where_the_delay_changes(fleet: Downloader) -> None:
    fleet.admit()
    fleet.backend.answers.pop()(7.0)
    fleet.throttle.set_delay(SITE, 5)
    fleet.loop.advance(50)
    assert fleet.backend.log == [ASK, ("ask", SITE, 5, inf, False)]


def test_a_delay_that_changes_asks_for_no_second_turn(fleet: Downloader) -> None:
    page, _ = fleet.admit(), fleet.admit()
    fleet.throttle.set_delay(SITE, 5)
    assert fleet.backend.log == [ASK]
    fleet.backend.answers.pop()(0.0)
    fleet.throttle.set_delay(SITE, 7)
    assert fleet.backend.log == [ASK]
    assert fleet.throttle.has_turn(page)


def test_nor_does_one_that_ends_while_the_site_cools(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(7.0)
    fleet.throttle.set_delay(SITE, 0)
    assert fleet.backend.log == [ASK]
    assert fleet.went_on == [page]


def test_who_is_told_to_wait_may_leave(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(7.0)
    fleet.turns[page].cancel()
    assert not fleet.throttle.is_in_use(SITE)
    assert not fleet.loop.pending


def test_an_unused_turn_is_that_of_the_next_one(fleet: Downloader) -> None:
    first, second = fleet.admit(), fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.drop(first)
    fleet.loop.turn()
    assert fleet.went_on == [first, second]
    assert fleet.backend.log == [ASK]


def test_an_unused_turn_is_given_back_where_nobody_waits(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.drop(page)
    fleet.loop.turn()
    assert fleet.backend.log == [ASK, (Event.UNUSED, SITE, DELAY)]


def test_a_turn_that_is_granted_while_something_else_is_sent_is_given_back(
    fleet: Downloader,
) -> None:
    page, unheld = fleet.admit(), Page()
    fleet.send(unheld)
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == []
    fleet.finish(unheld)
    assert fleet.backend.log[1:3] == [(Event.UNUSED, SITE, DELAY), (Event.SENT, SITE, DELAY)]
    assert fleet.backend.log[3:] == [("ask", SITE, DELAY, 0.0, False)]
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [page]


def test_a_turn_that_was_asked_for_before_something_else_was_sent_is_given_back(
    fleet: Downloader,
) -> None:
    page, unheld = fleet.admit(), Page()
    fleet.send(unheld)
    fleet.finish(unheld)
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == []
    assert fleet.backend.log == [ASK, (Event.SENT, SITE, DELAY), (Event.UNUSED, SITE, DELAY)]
    fleet.loop.advance(DELAY)
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [page]


def test_one_that_is_granted_when_the_delay_after_that_is_over_is_used(fleet: Downloader) -> None:
    page, unheld = fleet.admit(), Page()
    fleet.send(unheld)
    fleet.finish(unheld)
    fleet.loop.advance(DELAY)
    fleet.backend.answers.pop()(0.0)
    assert fleet.went_on == [page]
    assert fleet.backend.log == [ASK, (Event.SENT, SITE, DELAY)]


def test_what_is_sent_without_a_turn_is_said(fleet: Downloader) -> None:
    for site in (SITE, "other.example"):
        page = Page(site)
        fleet.send(page)
        fleet.finish(page)
    assert fleet.backend.log == [(Event.SENT, SITE, DELAY)]


def test_a_site_that_asks_for_nothing_any_more_gives_the_turn_back(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.throttle.set_delay(SITE, 0)
    assert fleet.backend.log == [ASK, (Event.UNUSED, SITE, DELAY)]
    assert fleet.throttle.has_turn(page)


def test_a_turn_that_is_granted_after_that_is_given_back(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.throttle.set_delay(SITE, 0)
    assert fleet.went_on == [page]
    fleet.throttle.set_delay(SITE, 3.0)
    fleet.backend.answers.pop()(0.0)
    assert fleet.backend.log == [ASK, (Event.UNUSED, SITE, 3.0)]


def test_who_is_told_to_wait_after_that_has_nothing_to_give_back(fleet: Downloader) -> None:
    fleet.admit()
    fleet.throttle.set_delay(SITE, 0)
    fleet.backend.answers.pop()(7.0)
    assert fleet.backend.log == [ASK]
    assert not fleet.loop.pending


def test_a_sent_request_ends_its_turn_when_the_site_asks_for_nothing(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.send(page)
    fleet.throttle.set_delay(SITE, 0)
    assert fleet.backend.log == [ASK, (Event.OVER, SITE, DELAY)]


def test_the_turn_of_a_request_that_somebody_gave_up_has_ended(fleet: Downloader) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.send(page)
    # Nobody says that it has left.
    fleet.drop(page)
    fleet.loop.advance(30)
    assert fleet.backend.log == [ASK, (Event.OVER, SITE, DELAY)]


def test_a_turn_whose_request_may_have_been_sent_has_ended() -> None:
    fleet = Downloader(backend=SlowBackend(), hears_all=False)
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    fleet.drop(page)
    fleet.loop.turn()
    assert fleet.backend.log == [ASK, (Event.OVER, SITE, DELAY)]


@pytest.mark.parametrize(("sends", "event"), [(False, Event.UNUSED), (True, Event.OVER)])
def test_the_end_of_a_crawl_ends_its_turn(fleet: Downloader, sends: bool, event: Event) -> None:
    page = fleet.admit()
    fleet.backend.answers.pop()(0.0)
    if sends:
        fleet.send(page)
    fleet.throttle.close()
    # With the delay: where turns are shared, it says for how long this is remembered.
    assert fleet.backend.log == [ASK, (event, SITE, DELAY)]
