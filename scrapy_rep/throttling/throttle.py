"""Keeps the delay that sites ask for between two requests: a state machine for each site.

Here may live: who is sent next to a site, and when. Here may not live: what a site asks for,
and any name of Scrapy: the clock, timers and the look at the downloader are given.

=========  ===========================================  =====================================
state      meaning                                      next
=========  ===========================================  =====================================
ASKING     the backend is asked for a turn              granted: CALLED; ask again later:
                                                        COOLING
CALLED     the first request of the queue was told to   it goes on: ADMITTED; it is gone, or a
           go on, and has not done so yet               robots.txt fetch takes its turn: the
                                                        next is CALLED, or ASKING
ADMITTED   a request is on its way to the downloader    it is there: SENT; it is gone: the
                                                        next is CALLED, or ASKING
SENT       the downloader has a request                 the last one leaves: ASKING
COOLING    the backend wants to be asked again later    it is time: ASKING
=========  ===========================================  =====================================

A site at which no request waits, and none has the turn, has no state.

A request that leaves without having been sent (answered from a cache, dropped, replaced by
another one) frees the site at once. No signal tells that, so the throttle looks whether the
downloader still has it: on the next turns of the loop first, then after longer and longer
pauses.

A request that the throttle does not hold, such as one that need not obey, counts as sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from scrapy_rep.throttling.turns import Event

#: Takes ``None`` if the turn is ours, or the seconds after which to ask again.
Answer = Callable[[float | None], None]
#: Takes the delay of each site that is slow.
Slowed = Callable[[Mapping[str, float]], None]

# How often to look on the next turn of the loop whether an admitted request is gone. Then
# the pauses double, from the first to the longest.
_LOOKS_AT_ONCE = 8
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.25
# Seconds after which an admitted request that was not sent loses its turn to a robots.txt
# fetch or a request of another component: it may wait for that very request.
_LATE_FOR_COMPONENTS = 1.0
# The same for all requests: a middleware of the project asks for something at the same site.
_LATE = 30.0
# Seconds between two looks at requests that the downloader does not give back.
_SENT_LOOK = 30.0


class State(Enum):
    """What is going on at a site."""

    ASKING = auto()
    CALLED = auto()
    ADMITTED = auto()
    SENT = auto()
    COOLING = auto()


_HAS_TURN = frozenset({State.CALLED, State.ADMITTED})
_AT_REST = frozenset({State.SENT, State.COOLING})


class Timer(Protocol):
    """What ``call_later`` returns."""

    def cancel(self) -> None:
        """Do not call."""


class Backend(Protocol):
    """Grants turns: a turn is the permission to send one request to a site.

    Sites are host names. All times are seconds; *delay* is what the site asks for between
    the end of one request and the start of the next.
    """

    def ask(
        self, site: str, delay: float, since: float | None, *, again: bool, answer: Answer
    ) -> None:
        """Ask for a turn, and call *answer* once: before this returns, or later.

        *since* is how many seconds ago the last request of this crawl left the downloader;
        ``None`` where that is not known. *again*: the backend has told us to ask now.
        """

    def tell(self, event: Event, site: str, delay: float) -> None:
        """Tell all who share the backend of *event*."""

    def slowed(self, answer: Slowed) -> None:
        """Call *answer* with the sites that are slow: before this returns, later or never."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for its turn, or has it."""

    request: Any
    #: Lower ones go first.
    order: tuple[bool, int, int]
    is_fetch: bool
    #: The request that has the turn may wait for this one.
    goes_between: bool


@dataclass(slots=True)
class Spent:
    """What a site has cost: how many requests took turns, and for how many seconds they did."""

    requests: int = 0
    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class _Site:
    """A site at which requests wait, or one has the turn, since *began*."""

    name: str
    began: float
    state: State = State.COOLING
    holder: _Waiter | None = None
    called_at: float = 0.0
    looks: int = 0
    #: When to ask the backend; 0 where it has not said so.
    ask_at: float = 0.0
    timer: Timer | None = None
    waiting: dict[Deferred[None], _Waiter] = field(default_factory=dict)

    def is_held_by(self, request: Any) -> bool:
        """Whether *request* has the turn, or is sent with it."""
        return self.holder is not None and self.holder.request is request

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@dataclass(eq=False, repr=False)
class Throttle:
    """Leaves the delay of each site between the end of a request and the start of the next."""

    backend: Backend
    #: Monotonic.
    clock: Callable[[], float]
    call_later: Callable[..., Timer]
    #: Whether the downloader still has a request.
    is_active: Callable[[Any], bool]
    #: Whether each request that is sent is certainly reported to :meth:`reached`. Where it is
    #: not, an admitted request that is gone counts as sent, until the first one is reported.
    hears_all: Callable[[], bool]
    #: For so many seconds, and of so many sites, it is known when their last request left.
    remember: float
    max_sites: int
    #: The delays of each site that is throttled, by who asks for them.
    asked: dict[str, dict[str, float]] = field(default_factory=dict, init=False)
    _sites: dict[str, _Site] = field(default_factory=dict, init=False)
    #: Requests that the downloader has, and since when, also those to sites without a delay.
    _sent: dict[str, dict[Any, float]] = field(default_factory=dict, init=False)
    #: When the last request to each site left the downloader.
    _left_at: OrderedDict[str, float] = field(default_factory=OrderedDict, init=False)
    _spent: dict[str, Spent] = field(default_factory=dict, init=False)
    _has_heard: bool = field(default=False, init=False)
    # A request that loses its turn to a fetch gets its old place in the queue.
    _arrivals: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary, init=False)
    _arrival: count[int] = field(default_factory=count, init=False)

    # -- what sites ask for -------------------------------------------------------

    def delay(self, site: str, *, but: str | None = None) -> float:
        """The seconds between two requests to *site*, *but* for what that one asks for."""
        delays = self.asked.get(site, {}).items()
        return max((delay for asking, delay in delays if asking != but), default=0.0)

    def note(self, site: str, seconds: float) -> None:
        """The last request to *site* was so many *seconds* ago, or it was a later one."""
        if seconds > self.remember:
            return
        now, left_at = self.clock(), self._left_at
        left_at[site] = max(now - seconds, left_at.get(site, 0.0))
        left_at.move_to_end(site)
        while len(left_at) > self.max_sites or next(iter(left_at.values())) < now - self.remember:
            left_at.popitem(last=False)

    def waiting(self, site: str) -> int:
        """How many requests to *site* wait for their turn."""
        return len(self._sites[site].waiting) if site in self._sites else 0

    def is_in_use(self, site: str) -> bool:
        """Whether a request to *site* waits, or has the turn."""
        return site in self._sites

    def set_delay(self, site: str, delay: float, asking: str = "") -> None:
        """*asking* wants *delay* seconds between two requests to *site* from now on; 0: none.

        The longest of the delays of a site holds.
        """
        before = self.delay(site)
        delays = self.asked.setdefault(site, {})
        delays.pop(asking, None)
        if delay:
            delays[asking] = delay
        if not delays:
            del self.asked[site]
        here = self._sites.get(site)
        if here is None or self.delay(site) == before:
            return
        if site not in self.asked:
            self._release(here, before)
        elif here.state in _AT_REST:
            here.ask_at = 0.0
            self._rest(here)

    def _release(self, here: _Site, delay: float) -> None:
        """Let all who wait go on: the site asks for no *delay* any more."""
        self._remove(here, delay)
        for turn, _ in sorted(here.waiting.items(), key=lambda item: item[1].order):
            # Another one may have made it leave.
            if here.waiting.pop(turn, None) is not None:
                turn.callback(None)

    # -- requests -----------------------------------------------------------------

    def admit(
        self,
        site: str,
        request: Any,
        priority: int,
        *,
        is_fetch: bool = False,
        is_components: bool = False,
    ) -> Deferred[None] | None:
        """Let *request* go on when it is its turn.

        Returns ``None`` if that is now, or what fires then. Cancel that to leave the queue.
        Robots.txt fetches (*is_fetch*) go first, then the highest *priority*, then the
        request that came first. *is_components*: not the scheduler but another component
        has asked for it, perhaps while another request waits for it.
        """
        if site not in self.asked:
            return None
        here = self._sites.setdefault(site, _Site(site, self.clock()))
        order = (not is_fetch, -priority, self._arrivals.setdefault(request, next(self._arrival)))
        waiter = _Waiter(request, order, is_fetch, is_fetch or is_components)
        if is_fetch and here.state is State.CALLED:
            # The request that was called will ask whether it may go on: the fetch goes first.
            here.holder = waiter
        if self.has_turn(site, request):
            return None
        turn: Deferred[None] = Deferred(partial(self._leave, here))
        here.waiting[turn] = waiter
        if here.state is State.COOLING:
            self._rest(here)
        return None if turn.called and self.has_turn(site, request) else turn

    def has_turn(self, site: str, request: Any) -> bool:
        """Whether *request* goes on now; else it is to be admitted again."""
        here = self._sites.get(site)
        if here is None or here.state not in _HAS_TURN or not here.is_held_by(request):
            return site not in self.asked
        if here.state is State.CALLED:
            self._go_on(here)
        return True

    def reached(self, site: str, request: Any) -> None:
        """The downloader has *request*, which may wait there in the queue of its slot."""
        self._has_heard = True
        self._sent.setdefault(site, {})[request] = self.clock()
        here = self._sites.get(site)
        if here is not None and here.is_held_by(request):
            self._rest(here)

    def left(self, site: str, request: Any) -> None:
        """*request*, which was sent, has left the downloader."""
        self.unsent(site, request)
        self.note(site, 0.0)
        here, delay = self._sites.get(site), self.delay(site)
        if here is not None and here.is_held_by(request):
            here.holder = None
            self._spent.setdefault(site, Spent()).requests += 1
            self.backend.tell(Event.OVER, site, delay)
        elif delay:
            self.backend.tell(Event.SENT, site, delay)
        if here is None:
            return
        if here.state in _AT_REST:
            self._rest(here)
        elif here.holder is not None:
            # Should that not be sent, the next one has to wait.
            here.ask_at = self.clock() + delay

    def sent_at(self, site: str, request: Any) -> float:
        """When the downloader got *request*; now, if it does not have it."""
        return self._sent.get(site, {}).get(request, self.clock())

    def unsent(self, site: str, request: Any) -> None:
        """The downloader has *request* no longer."""
        requests = self._sent.get(site, {})
        requests.pop(request, None)
        if not requests:
            self._sent.pop(site, None)

    def may_be_gone(self, site: str, request: Any) -> None:
        """Look at once whether *request* has left without having been sent."""
        here = self._sites.get(site)
        if here is not None and here.state in _HAS_TURN and here.is_held_by(request):
            self._look(here)

    def close(self) -> None:
        """Give back the turns that are left, and do nothing more by the time alone."""
        for here in list(self._sites.values()):
            self._remove(here, self.delay(here.name))

    def slowest(self, number: int) -> list[tuple[str, Spent]]:
        """The sites at which requests waited or were under way for longest."""
        return sorted(self._spent.items(), key=lambda item: -item[1].seconds)[:number]

    def _remove(self, here: _Site, delay: float = 0.0) -> None:
        """Forget a site, and end its turn."""
        here.stop_timer()
        del self._sites[here.name]
        if here.holder is not None:
            event = Event.OVER if here.state is State.SENT else Event.UNUSED
            self.backend.tell(event, here.name, delay)
        self._spent.setdefault(here.name, Spent()).seconds += self.clock() - here.began
        if len(self._spent) > self.max_sites:
            self._spent = dict(self.slowest(self.max_sites // 2))

    def _leave(self, here: _Site, turn: Deferred[None]) -> None:
        """*turn* is not waited for any more."""
        del here.waiting[turn]
        if self._sites.get(here.name) is here and here.state in _AT_REST and not here.waiting:
            self._rest(here)

    # -- transitions ----------------------------------------------------------------

    def _after(self, here: _Site, seconds: float, then: Callable[[_Site], None]) -> None:
        here.stop_timer()
        here.timer = self.call_later(seconds, then, here)

    def _is_free(self, here: _Site) -> bool:
        """Whether nothing is sent and no delay holds, as far as is known here."""
        return here.ask_at <= self.clock() and here.name not in self._sent

    def _rest(self, here: _Site) -> None:
        """No request is to go on now: ask for the next turn when the site is free."""
        here.stop_timer()
        if not here.waiting and here.holder is None:
            self._remove(here)
        elif here.name in self._sent:
            here.state = State.SENT
            self._after(here, _SENT_LOOK, self._look_for_lost)
        elif self._is_free(here):
            self._ask(here)
        else:
            here.state = State.COOLING
            self._after(here, here.ask_at - self.clock(), self._rest)

    def _look_for_lost(self, here: _Site) -> None:
        """Whoever asked for a request may have given it up; the downloader may not say so."""
        for request in list(self._sent.get(here.name, ())):
            if not self.is_active(request):
                self.left(here.name, request)
        if self._sites.get(here.name) is here and here.state is State.SENT:
            self._rest(here)

    def _ask(self, here: _Site) -> None:
        here.state = State.ASKING
        left_at = self._left_at.get(here.name)
        since = None if left_at is None else self.clock() - left_at
        again, here.ask_at = here.ask_at > 0, 0.0
        answer = partial(self._answered, here)
        self.backend.ask(here.name, self.delay(here.name), since, again=again, answer=answer)

    def _answered(self, here: _Site, seconds: float | None) -> None:
        """The turn is ours, or we are to ask again after so many *seconds*."""
        if self._sites.get(here.name) is not here:
            if seconds is None:
                self.backend.tell(Event.UNUSED, here.name, self.delay(here.name))
        elif seconds is None:
            self._hand_out(here, here.waiting)
        else:
            here.ask_at = self.clock() + seconds
            self._rest(here)

    def _hand_out(self, here: _Site, waiting: Collection[Deferred[None]]) -> None:
        """Let the first of *waiting* have the turn, or give it back if there is none."""
        here.holder = None
        if not waiting or not self._is_free(here):
            self.backend.tell(Event.UNUSED, here.name, self.delay(here.name))
            self._rest(here)
            return
        turn = min(waiting, key=lambda turn: here.waiting[turn].order)
        here.holder = here.waiting.pop(turn)
        # Fetches do not ask whether they may go on still.
        self._go_on(here, State.ADMITTED if here.holder.is_fetch else State.CALLED)
        turn.callback(None)

    def _go_on(self, here: _Site, state: State = State.ADMITTED) -> None:
        """The request that has the turn goes on: look whether it is sent."""
        here.state = state
        here.called_at = self.clock()
        here.looks = 0
        self._after(here, 0, self._look)

    def _look(self, here: _Site) -> None:
        """Whether the request that has the turn is gone, or late."""
        assert here.holder is not None
        if self.is_active(here.holder.request):
            if heirs := self._heirs(here):
                self._hand_out(here, heirs)
            else:
                here.looks += 1
                self._after(here, _pause(here.looks), self._look)
        elif self._has_heard or self.hears_all():
            self._hand_out(here, here.waiting)
        else:
            self.left(here.name, here.holder.request)
            self._rest(here)

    def _heirs(self, here: _Site) -> Collection[Deferred[None]]:
        """The requests that may take over the turn of one that was not sent for long."""
        late = self.clock() - here.called_at
        if late >= _LATE:
            return here.waiting
        if late < _LATE_FOR_COMPONENTS:
            return ()
        return [turn for turn, other in here.waiting.items() if other.goes_between]


def _pause(looks: int) -> float:
    """Seconds until the next look, after so many."""
    if looks < _LOOKS_AT_ONCE:
        return 0.0
    return min(_FIRST_PAUSE * 2.0 ** min(looks - _LOOKS_AT_ONCE, 20), _LONGEST_PAUSE)
