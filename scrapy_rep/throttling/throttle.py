"""Keeps the delay that sites ask for between two requests: a state machine for each site.

Here may live: who is sent next to a site, and when. Here may not live: what a site asks for,
and any name of Scrapy: the clock, timers and the look at the downloader are given.

=========  ================================================  ================================
state      meaning                                           next
=========  ================================================  ================================
IDLE       no request waits, and none has the turn           one is admitted: ASKING
ASKING     the backend is asked for a turn                   CALLED if granted, or COOLING
CALLED     the first of the queue was told to go on          it goes on: ADMITTED
ADMITTED   a request is on its way to the downloader         it is there: SENT
SENT       the downloader has a request                      the last one leaves: ASKING
COOLING    the backend wants to be asked later               it is time: ASKING
=========  ================================================  ================================

A request that was called or admitted may leave without having been sent: answered from a cache,
dropped, replaced by another one. The next one is called at once. No signal tells that, so the
throttle looks whether the downloader still has it: on the next turns of the loop first, then after
longer and longer pauses. A robots.txt fetch takes over the turn of a request that was only called.

A request that the throttle does not hold, such as one that need not obey, counts as sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import chain, count, repeat
from math import inf
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from scrapy_rep.throttling.turns import Event

#: Takes the seconds after which to ask again; 0: the turn is ours.
Answer = Callable[[float], None]
#: Takes the delay of each site that is slow.
Slowed = Callable[[Mapping[str, float]], None]

# Seconds between looks whether an admitted request is gone: first on the next turns of the loop.
_PAUSES = (*repeat(0.0, 8), *(0.001 * 2**doubled for doubled in range(8)))
_LONGEST_PAUSE = 0.25
# An admitted request that is not sent may wait for a robots.txt fetch or for a request of another
# component; after so many seconds, one that waits goes first.
_PATIENCE_OF_COMPONENTS = 1.0
# The same for all requests: a middleware of the project asks for something at the same site.
_PATIENCE = 30.0
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

    def ask(self, site: str, delay: float, since: float, *, again: bool, answer: Answer) -> None:
        """Ask for a turn, and call *answer* once: before this returns, or later.

        *since* is how many seconds ago the last request of this crawl left the downloader;
        infinite where that is not known. *again*: the backend has told us to ask now.
        """

    def tell(self, event: Event, site: str, delay: float) -> None:
        """Tell all who share the backend of *event*."""

    def slowed(self, answer: Slowed) -> None:
        """Call *answer* with the sites that are slow: before this returns, later or never."""


@dataclass(frozen=True, slots=True, order=True)
class _Waiter:
    """A request that waits for its turn, or has it. The least one goes first."""

    is_page: bool
    #: The negative priority.
    rank: int
    arrival: int
    request: Any = field(compare=False)
    #: Seconds after which it takes over the turn of a request that was not sent.
    patience: float = field(compare=False)


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
    state: State = State.IDLE
    holder: _Waiter | None = None
    called_at: float = 0.0
    pauses: Iterator[float] = field(default_factory=lambda: repeat(_LONGEST_PAUSE))
    #: When to ask the backend; 0 where it has not said so.
    ask_at: float = 0.0
    timer: Timer | None = None
    waiting: dict[Deferred[None], _Waiter] = field(default_factory=dict)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@dataclass(eq=False, repr=False)
class Throttle:
    """Leaves the delay of each site between the end of a request and the start of the next."""

    backend: Backend
    #: The site that a request is for.
    site_of: Callable[[Any], str]
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
    #: The site of each request that the downloader has, and since when, also without a delay.
    sent: dict[Any, tuple[str, float]] = field(default_factory=dict, init=False)
    _sites: dict[str, _Site] = field(default_factory=dict, init=False)
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

    def set_delay(self, site: str, delay: float, asking: str = "") -> None:
        """*asking* wants *delay* seconds between two requests to *site* from now on; 0: none.

        The longest of the delays of a site holds.
        """
        before = self.delay(site)
        delays = {**self.asked.pop(site, {}), asking: delay}
        if not delay:
            del delays[asking]
        if delays:
            self.asked[site] = delays
        here = self._sites.get(site)
        if here is None or self.delay(site) == before:
            return
        if delays and here.state in _AT_REST:
            here.ask_at = 0.0
            self._rest(here)
        if not delays:
            # All who wait go on.
            self._remove(here, before)
            for turn in sorted(here.waiting, key=here.waiting.__getitem__):
                # Another one may have made it leave.
                if not turn.called:
                    turn.callback(None)

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

    def slowest(self, number: int) -> list[tuple[str, Spent]]:
        """The sites at which requests waited or were under way for longest."""
        return sorted(self._spent.items(), key=lambda item: -item[1].seconds)[:number]

    # -- requests -----------------------------------------------------------------

    def admit(
        self, request: Any, priority: int, *, is_fetch: bool = False, is_components: bool = False
    ) -> Deferred[None] | None:
        """Let *request* go on when it is its turn.

        Returns ``None`` if that is now, or what fires then. Cancel that to leave the queue.
        Robots.txt fetches (*is_fetch*) go first, then the highest *priority*, then the
        request that came first. *is_components*: not the scheduler but another component
        has asked for it, perhaps while another request waits for it.
        """
        site = self.site_of(request)
        if site not in self.asked:
            return None
        here = self._sites.setdefault(site, _Site(site, self.clock()))
        arrival = self._arrivals.setdefault(request, next(self._arrival))
        patience = _PATIENCE_OF_COMPONENTS if is_fetch or is_components else _PATIENCE
        waiter = _Waiter(not is_fetch, -priority, arrival, request, patience)
        if is_fetch and here.state is State.CALLED:
            # The request that was called will ask whether it may go on: the fetch goes first.
            here.holder = waiter
        if self.has_turn(request):
            return None
        turn: Deferred[None] = Deferred(partial(self._leave, here))
        here.waiting[turn] = waiter
        if here.state is State.IDLE:
            self._rest(here)
        return None if turn.called and self.has_turn(request) else turn

    def has_turn(self, request: Any) -> bool:
        """Whether *request*, which has been admitted, goes on now; else admit it again."""
        site = self.site_of(request)
        here = self._held_by(request, site)
        if here is None or here.state not in _HAS_TURN:
            return site not in self.asked
        if here.state is State.CALLED:
            self._go_on(here)
        return True

    def reached(self, request: Any) -> None:
        """The downloader has *request*, which may wait there in the queue of its slot."""
        self._has_heard = True
        site = self.site_of(request)
        self.sent[request] = site, self.clock()
        if here := self._held_by(request, site):
            self._rest(here)

    def left(self, request: Any) -> None:
        """*request*, which was sent, has left the downloader."""
        self.sent.pop(request, None)
        site = self.site_of(request)
        self.note(site, 0.0)
        here, delay = self._sites.get(site), self.delay(site)
        if held := self._held_by(request, site):
            held.holder = None
            self._spent.setdefault(site, Spent()).requests += 1
            self.backend.tell(Event.OVER, site, delay)
        elif delay:
            self.backend.tell(Event.SENT, site, delay)
        if here is not None and here.state in _AT_REST:
            self._rest(here)
        elif here is not None:
            # A turn that is asked for, or not used, comes too early for the next one.
            here.ask_at = self.clock() + delay

    def may_be_gone(self, request: Any) -> None:
        """Look at once whether *request* has left without having been sent."""
        here = self._held_by(request, self.site_of(request))
        if here is not None and here.state in _HAS_TURN:
            self._look(here)

    def close(self) -> None:
        """Give back the turns that are left, and do nothing more by the time alone."""
        for here in list(self._sites.values()):
            self._remove(here, self.delay(here.name))

    # -- transitions ----------------------------------------------------------------

    def _held_by(self, request: Any, site: str) -> _Site | None:
        """The state of *site*, if *request* has the turn there, or is sent with it."""
        here = self._sites.get(site)
        holder = here.holder if here is not None else None
        return here if holder is not None and holder.request is request else None

    def _remove(self, here: _Site, delay: float = 0.0) -> None:
        """Forget a site, and end its turn."""
        here.stop_timer()
        del self._sites[here.name]
        if here.holder is not None:
            event = Event.OVER if here.state is State.SENT else Event.UNUSED
            self.backend.tell(event, here.name, delay)
        here.state = State.IDLE
        self._spent.setdefault(here.name, Spent()).seconds += self.clock() - here.began
        if len(self._spent) > self.max_sites:
            self._spent = dict(self.slowest(self.max_sites // 2))

    def _leave(self, here: _Site, turn: Deferred[None]) -> None:
        """*turn* is not waited for any more."""
        del here.waiting[turn]
        if here.state in _AT_REST:
            self._rest(here)

    def _enter(
        self, here: _Site, state: State, seconds: float, then: Callable[[_Site], None]
    ) -> None:
        """Be in *state*, and do *then* after so many *seconds*."""
        here.stop_timer()
        here.state, here.timer = state, self.call_later(seconds, then, here)

    def _is_visited(self, here: _Site) -> bool:
        return any(site == here.name for site, _ in self.sent.values())

    def _rest(self, here: _Site) -> None:
        """No request is to go on now: ask for the next turn when the site is free."""
        now = self.clock()
        if not here.waiting and here.holder is None:
            self._remove(here)
        elif self._is_visited(here):
            self._enter(here, State.SENT, _SENT_LOOK, self._look_for_lost)
        elif here.ask_at > now:
            self._enter(here, State.COOLING, here.ask_at - now, self._rest)
        else:
            here.stop_timer()
            here.state = State.ASKING
            since = now - self._left_at.get(here.name, -inf)
            again, here.ask_at = here.ask_at > 0, 0.0
            answer = partial(self._answered, here)
            self.backend.ask(here.name, self.delay(here.name), since, again=again, answer=answer)

    def _look_for_lost(self, here: _Site) -> None:
        """Whoever asked for a request may have given it up; the downloader may not say so."""
        for request in [each for each in self.sent if not self.is_active(each)]:
            self.left(request)
        if here.state is State.SENT:
            self._rest(here)

    def _answered(self, here: _Site, seconds: float) -> None:
        """We are to ask again after so many *seconds*; 0: the turn is ours."""
        if here.state is State.IDLE:
            if not seconds:
                self.backend.tell(Event.UNUSED, here.name, self.delay(here.name))
        elif seconds:
            here.ask_at = self.clock() + seconds
            self._rest(here)
        else:
            self._hand_out(here, here.waiting)

    def _hand_out(self, here: _Site, waiting: Collection[Deferred[None]]) -> None:
        """Let the first of *waiting* have the turn, or give it back if none may have it now."""
        here.holder = None
        if not waiting or here.ask_at > self.clock() or self._is_visited(here):
            self.backend.tell(Event.UNUSED, here.name, self.delay(here.name))
            self._rest(here)
            return
        turn = min(waiting, key=here.waiting.__getitem__)
        here.holder = here.waiting.pop(turn)
        # Fetches do not ask whether they may go on still.
        self._go_on(here, State.CALLED if here.holder.is_page else State.ADMITTED)
        turn.callback(None)

    def _go_on(self, here: _Site, state: State = State.ADMITTED) -> None:
        """The request that has the turn goes on: look whether it is sent."""
        here.called_at = self.clock()
        here.pauses = chain(_PAUSES, repeat(_LONGEST_PAUSE))
        self._enter(here, state, next(here.pauses), self._look)

    def _look(self, here: _Site) -> None:
        """Whether the request that has the turn is gone, or late."""
        assert here.holder is not None
        late = self.clock() - here.called_at
        heirs = [turn for turn, waiter in here.waiting.items() if waiter.patience <= late]
        if self.is_active(here.holder.request):
            if heirs:
                self._hand_out(here, heirs)
            else:
                self._enter(here, here.state, next(here.pauses), self._look)
        elif self._has_heard or self.hears_all():
            self._hand_out(here, here.waiting)
        else:
            here.state = State.SENT
            self.left(here.holder.request)
