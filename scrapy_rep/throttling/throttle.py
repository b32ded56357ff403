"""Keeps the delay that sites ask for between two requests: a state machine for each site.

Here may live: who is sent next to a site, and when. Here may not live: what a site asks for,
and any name of Scrapy: the clock, timers and the look at the downloader are given.

=========  ===========================================  =====================================
state      meaning                                      next
=========  ===========================================  =====================================
IDLE       no request is under way, no delay holds      a request waits: ASKING
ASKING     the backend is asked for a turn              granted: CALLED; ask again later:
                                                        COOLING; nobody waits now: IDLE
CALLED     the first request of the queue was told to   it goes on: ADMITTED; it is gone, or a
           go on, and has not done so yet               robots.txt fetch takes its turn: the
                                                        next is CALLED, or IDLE
ADMITTED   a request is on its way to the downloader    it is there: SENT; it is gone: the
                                                        next is CALLED, or IDLE
SENT       the downloader has a request                 the last one leaves: COOLING
COOLING    the delay counts, from the end of the last   it is over: IDLE
           download
=========  ===========================================  =====================================

A request that leaves without having been sent (answered from a cache, dropped, replaced by
another one) frees the site at once. No signal tells that, so the throttle looks whether the
downloader still has it: on the next turns of the loop first, then after longer and longer
pauses.

A request that the throttle does not hold, such as one that need not obey, counts as sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from scrapy_rep.throttling.backend import Backend

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

    IDLE = auto()
    ASKING = auto()
    CALLED = auto()
    ADMITTED = auto()
    SENT = auto()
    COOLING = auto()


#: The states that may follow each; from all but SENT, the machine may also stay.
_AT_REST = frozenset({State.IDLE, State.SENT, State.COOLING})
_NEXT = {
    State.IDLE: _AT_REST | {State.ASKING},
    State.ASKING: _AT_REST | {State.CALLED},
    State.CALLED: _AT_REST | {State.CALLED, State.ADMITTED},
    State.ADMITTED: _AT_REST | {State.CALLED},
    State.SENT: _AT_REST,
    State.COOLING: _AT_REST,
}
_HAS_TURN = frozenset({State.CALLED, State.ADMITTED})


class Timer(Protocol):
    """What ``call_later`` returns."""

    def cancel(self) -> None:
        """Do not call."""
        ...


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
class _Site:
    """A site at which requests wait, or one has the turn."""

    #: When the first request began to wait.
    began: float
    state: State = State.IDLE
    holder: _Waiter | None = None
    called_at: float = 0.0
    looks: int = 0
    #: When the backend wants to be asked again, where it has said so.
    ask_at: float | None = None
    timer: Timer | None = None
    waiting: dict[Deferred[None], _Waiter] = field(default_factory=dict)

    def enter(self, state: State) -> None:
        """Go on to *state*."""
        assert state in _NEXT[self.state], (self.state, state)
        self.state = state

    def stop_timer(self) -> None:
        """Do nothing by the time alone."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @property
    def queue(self) -> list[Deferred[None]]:
        """What the requests wait for, the first one first."""
        return sorted(self.waiting, key=lambda turn: self.waiting[turn].order)


class Throttle:
    """Leaves the delay of each site between the end of a request and the start of the next.

    *clock* is monotonic. *is_active* says whether the downloader still has a request.
    *hears_all* says whether each request that is sent is certainly reported to
    :meth:`reached`; where it is not, an admitted request that is gone counts as sent.
    For *remember* seconds, and of *max_sites* sites, it is known when their last request
    left the downloader.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Callable[[], float],
        call_later: Callable[..., Timer],
        is_active: Callable[[Any], bool],
        hears_all: Callable[[], bool],
        remember: float,
        max_sites: int,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._call_later = call_later
        self._is_active = is_active
        self._hears_all = hears_all
        self._remember = remember
        self._max_sites = max_sites
        self._delays: dict[str, float] = {}
        self._sites: dict[str, _Site] = {}
        #: Requests that the downloader has, also those to sites without a delay.
        self._sent: dict[str, set[Any]] = {}
        #: When the last request to each site left the downloader.
        self._left_at: OrderedDict[str, float] = OrderedDict()
        # A request that loses its turn to a fetch gets its old place in the queue.
        self._arrivals: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._arrival = count()

    # -- what sites ask for -------------------------------------------------------

    def delay(self, site: str) -> float:
        """The seconds between two requests to *site*; 0 where it is not throttled."""
        return self._delays.get(site, 0.0)

    def is_in_use(self, site: str) -> bool:
        """Whether a request to *site* waits, or has the turn."""
        return site in self._sites

    def set_delay(self, site: str, delay: float) -> None:
        """Leave *delay* seconds between two requests to *site* from now on; 0 for none."""
        before = self._delays.get(site, 0.0)
        if delay == before:
            return
        if not delay:
            self._release(site, before)
            return
        self._delays[site] = delay
        here = self._sites.get(site)
        if here is not None and here.state in _AT_REST:
            self._rest(site, here)

    def _release(self, site: str, delay: float) -> None:
        """Throttle *site* no more, and let all who wait go on."""
        del self._delays[site]
        here = self._sites.pop(site, None)
        if here is None:
            return
        here.stop_timer()
        if here.state in _HAS_TURN:
            self._backend.give_back(site, delay)
        elif here.holder is not None:
            self._backend.ended(site, delay)
        for turn in here.queue:
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
        if site not in self._delays:
            return None
        here = self._sites.get(site)
        if here is None:
            here = self._sites[site] = _Site(self._clock())
        order = (not is_fetch, -priority, self._arrivals.setdefault(request, next(self._arrival)))
        waiter = _Waiter(request, order, is_fetch, is_fetch or is_components)
        if here.state is State.CALLED and (is_fetch or _has(here, request)):
            # It has not gone on, and will ask whether it may: the fetch goes first.
            here.holder = waiter
            self._go_on(site, here)
            return None
        if here.state is State.ADMITTED and _has(here, request):
            return None
        turn: Deferred[None] = Deferred(partial(self._leave, site, here))
        here.waiting[turn] = waiter
        if here.state is State.IDLE:
            self._rest(site, here)
        if not turn.called:
            return turn
        if here.state is State.CALLED and _has(here, request):
            self._go_on(site, here)
        return None

    def has_turn(self, site: str, request: Any) -> bool:
        """Whether *request* goes on now; else it is to be admitted again."""
        here = self._sites.get(site)
        if site not in self._delays or here is None:
            return site not in self._delays
        if here.state not in _HAS_TURN or not _has(here, request):
            return False
        if here.state is State.CALLED:
            self._go_on(site, here)
        return True

    def reached(self, site: str, request: Any) -> None:
        """The downloader has *request*, which may wait there in the queue of its slot."""
        self._hears_all = _always
        self._sent.setdefault(site, set()).add(request)
        here = self._sites.get(site)
        if here is None:
            return
        if here.state in _AT_REST or (here.state in _HAS_TURN and _has(here, request)):
            self._rest(site, here)

    def left(self, site: str, request: Any) -> None:
        """*request*, which was sent, has left the downloader."""
        requests = self._sent.get(site)
        if requests is not None:
            requests.discard(request)
            if not requests:
                del self._sent[site]
        self._note(site)
        here = self._sites.get(site)
        if here is not None and _has(here, request):
            here.holder = None
            self._backend.ended(site, self._delays[site])
        elif site in self._delays:
            self._backend.sent_without_turn(site, self._delays[site])
        if here is not None and here.state in _AT_REST:
            self._rest(site, here)

    def may_be_gone(self, site: str, request: Any) -> None:
        """Look at once whether *request* has left without having been sent."""
        here = self._sites.get(site)
        if here is not None and here.state in _HAS_TURN and _has(here, request):
            here.stop_timer()
            self._look(site, here)

    def close(self) -> None:
        """Do nothing more by the time alone."""
        for here in self._sites.values():
            here.stop_timer()

    def _leave(self, site: str, here: _Site, turn: Deferred[None]) -> None:
        """*turn* is not waited for any more."""
        del here.waiting[turn]
        if self._sites.get(site) is here and here.state in _AT_REST:
            self._forget_if_unused(site, here)

    def _note(self, site: str) -> None:
        """A request has left the downloader now."""
        now = self._clock()
        self._left_at[site] = now
        self._left_at.move_to_end(site)
        oldest = next(iter(self._left_at))
        while self._left_at[oldest] < now - self._remember or len(self._left_at) > self._max_sites:
            del self._left_at[oldest]
            oldest = next(iter(self._left_at))

    # -- transitions ----------------------------------------------------------------

    def _resting(self, site: str, here: _Site) -> tuple[State, float]:
        """The state in which no request has the turn, and the seconds that it lasts."""
        if site in self._sent:
            return State.SENT, _SENT_LOOK
        now = self._clock()
        free_at = self._backend.free_at(
            self._delays[site], self._left_at.get(site), began=here.began
        )
        if here.ask_at is not None:
            free_at = max(free_at, here.ask_at)
        return (State.COOLING, free_at - now) if free_at > now else (State.IDLE, 0.0)

    def _rest(self, site: str, here: _Site) -> None:
        """Wait until the site is free, and ask for a turn then."""
        here.stop_timer()
        state, seconds = self._resting(site, here)
        here.enter(state)
        if self._forget_if_unused(site, here):
            return
        if state is State.IDLE:
            self._ask(site, here)
        else:
            here.timer = self._call_later(seconds, self._time_has_come, site, here)

    def _forget_if_unused(self, site: str, here: _Site) -> bool:
        if here.waiting or here.holder is not None:
            return False
        here.stop_timer()
        del self._sites[site]
        return True

    def _time_has_come(self, site: str, here: _Site) -> None:
        here.timer = None
        if here.state is State.SENT:
            self._look_for_lost(site)
        if self._sites.get(site) is here:
            self._rest(site, here)

    def _look_for_lost(self, site: str) -> None:
        """Whoever asked for a request may have given it up; the downloader may not say so."""
        for request in list(self._sent.get(site, ())):
            if not self._is_active(request):
                self.left(site, request)

    def _ask(self, site: str, here: _Site) -> None:
        here.enter(State.ASKING)
        left_at = self._left_at.get(site)
        since = None if left_at is None else self._clock() - left_at
        again, here.ask_at = here.ask_at is not None, None
        answer = partial(self._answered, site, here)
        self._backend.ask(site, self._delays[site], since, again=again, answer=answer)

    def _answered(self, site: str, here: _Site, seconds: float | None) -> None:
        """The turn is ours, or we are to ask again after so many *seconds*."""
        if self._sites.get(site) is not here:
            if seconds is None:
                self._backend.give_back(site, self.delay(site))
            return
        if seconds is None:
            self._hand_out(site, here, here.waiting)
        else:
            here.ask_at = self._clock() + seconds
            self._rest(site, here)

    def _hand_out(self, site: str, here: _Site, waiting: Collection[Deferred[None]]) -> None:
        """Let the first of *waiting* have the turn, or give it back if there is none."""
        here.holder = None
        state, _ = self._resting(site, here)
        if state is not State.IDLE or not waiting:
            self._backend.give_back(site, self._delays[site])
            self._rest(site, here)
            return
        turn = min(waiting, key=lambda turn: here.waiting[turn].order)
        here.holder = here.waiting.pop(turn)
        here.enter(State.CALLED)
        here.called_at = self._clock()
        if here.holder.is_fetch:
            # Fetches do not ask whether they may go on still.
            here.enter(State.ADMITTED)
        self._look_from_now_on(site, here)
        turn.callback(None)

    def _go_on(self, site: str, here: _Site) -> None:
        """The request that has the turn goes on to the downloader."""
        here.enter(State.ADMITTED)
        here.called_at = self._clock()
        self._look_from_now_on(site, here)

    def _look_from_now_on(self, site: str, here: _Site) -> None:
        here.stop_timer()
        here.looks = 0
        here.timer = self._call_later(0, self._look, site, here)

    def _look(self, site: str, here: _Site) -> None:
        """Whether the request that has the turn is gone, or late."""
        here.timer = None
        assert here.holder is not None
        is_gone = not self._is_active(here.holder.request)
        heirs = here.waiting if is_gone else self._heirs(here)
        if is_gone and not self._hears_all():
            self._note(site)
            here.holder = None
            self._backend.ended(site, self._delays[site])
            self._rest(site, here)
        elif is_gone or heirs:
            self._hand_out(site, here, heirs)
        else:
            here.looks += 1
            here.timer = self._call_later(_pause(here.looks), self._look, site, here)

    def _heirs(self, here: _Site) -> Collection[Deferred[None]]:
        """The requests that may take over the turn of one that was not sent for long."""
        late = self._clock() - here.called_at
        if late >= _LATE:
            return here.waiting
        if late < _LATE_FOR_COMPONENTS:
            return ()
        return [turn for turn, other in here.waiting.items() if other.goes_between]


def _has(here: _Site, request: Any) -> bool:
    """Whether *request* has the turn."""
    return here.holder is not None and here.holder.request is request


def _always() -> bool:
    return True


def _pause(looks: int) -> float:
    """Seconds until the next look, after so many."""
    if looks < _LOOKS_AT_ONCE:
        return 0.0
    return min(_FIRST_PAUSE * 2.0 ** min(looks - _LOOKS_AT_ONCE, 20), _LONGEST_PAUSE)
