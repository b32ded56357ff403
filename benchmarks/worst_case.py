"""What the worst files and URLs cost, ours and Protego's, and whether our limits hold.

Loading includes a first check, because what a parser puts off is then done.
Each case runs in a process of its own, which is ended after a time limit. The
exit status is 1 where one of our limits does not hold that should.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import median

from benchmarks._child import in_child
from benchmarks._peers import OURS, PROTEGO, by_name
from benchmarks._tables import Table, arguments, figure, machine, publish, timed
from benchmarks._workload import SITE, workload
from scrapy_rep.rep.dialects import RFC9309

#: Seconds.
_LOAD_LIMIT = 0.1
_CHECK_LIMIT = 0.005
#: Seconds for a case, after which a parser is given up.
_PATIENCE = {OURS: 30.0, PROTEGO: 2.5}
_LOADS = 3
_CHECKS = 7
#: Octets of a file, unless it is to be read only in part.
_SIZE = RFC9309.max_size or 512_000
_EVERYONE = b"user-agent:*\n"
_PLAIN_URL = f"{SITE}/category/item-123/page.html?x=1"


@dataclass(frozen=True, slots=True)
class Case:
    """A file and a URL. What is asked is the URL with a number after it."""

    body: bytes
    url: str


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, medians. *load* is with a check of another URL."""

    load: float
    check: float

    @property
    def holds(self) -> bool:
        """Whether both are within our limits."""
        return self.load < _LOAD_LIMIT and self.check < _CHECK_LIMIT


def filled(lines: Iterable[str], start: bytes = _EVERYONE, size: int = _SIZE) -> bytes:
    """*start* and as many of *lines* as there is place for."""
    parts, left = [start], size - len(start)
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        parts.append(f"{line}\n".encode())
    return b"".join(parts)


def disallowing(patterns: Iterable[str]) -> bytes:
    """A file of such rules."""
    return filled(f"Disallow:{pattern}" for pattern in patterns)


def hexes(start: str = "") -> Iterator[str]:
    """Different pieces without end, of four figures at least."""
    return (f"{start}{number:04x}" for number in itertools.count())


def out_of_order(pieces: list[str]) -> Iterator[str]:
    """Patterns of two *pieces* each, the one that comes later in a URL first."""
    random = Random(0)
    while True:
        early, late = sorted(random.sample(range(len(pieces)), 2))
        yield f"*{pieces[late]}*{pieces[early]}"


def url_of(text: str, length: int) -> str:
    """A URL with a path of *length* characters, *text* again and again."""
    return SITE + "/" + (text * (length // len(text) + 1))[: length - 1]


def _stars() -> Case:
    return Case(disallowing(["/" + "*a" * 50 + "b"]), url_of("a", 2000))


def _nested_prefixes() -> Case:
    return Case(disallowing("/" + "a" * n for n in itertools.count(1)), url_of("a", 2000))


def _no_literal_shared() -> Case:
    return Case(disallowing(f"/*k{n}x*z" for n in hexes()), url_of("-q", 2000))


def _one_literal_shared() -> Case:
    return Case(disallowing(f"/*item*k{n}x" for n in hexes()), url_of("/item", 2000))


def _same_start() -> Case:
    return Case(disallowing(f"/item*k{n}x" for n in hexes()), url_of("item/", 2000))


def _pieces_out_of_order(length: int) -> Case:
    pieces = list(itertools.islice(hexes("ab"), length // 6))
    return Case(disallowing(out_of_order(pieces)), url_of("".join(pieces), length))


def _runs_out_of_order() -> Case:
    sizes = itertools.product(range(1, 200), repeat=2)
    runs = sorted(sizes, key=sum)
    patterns = (f"*{'b' * first}*{'a' * second}/" for first, second in runs)
    return Case(disallowing(patterns), SITE + "/" + "a" * 4000 + "/" + "b" * 4000)


def _single_letters() -> Case:
    letters = itertools.product("ab", repeat=17)
    patterns = ("*" + "*".join(each) + "*c" for each in letters)
    return Case(disallowing(patterns), SITE + "/c" + "ab" * 4000)


def _anchored() -> Case:
    patterns = (f"*a*{n}*b$" for n in hexes("ab"))
    text = "".join(itertools.islice(hexes("ab"), 1300))
    return Case(disallowing(patterns), url_of(text, 8000))


def _groups() -> Case:
    lines = (f"useragent:{number:x}b\nallow:/" for number in range(19_999))
    body = filled(lines, start=b"useragent:ExampleBot\nallow:/\n")
    return Case(body, _PLAIN_URL)


def _stacked_agents() -> Case:
    agents = filled((f"user-agent:b{n}" for n in hexes()), b"user-agent:ExampleBot\n", _SIZE // 2)
    return Case(filled((f"disallow:/{n}" for n in hexes()), agents), _PLAIN_URL)


def _one_line() -> Case:
    line = b"Disallow:/" + b"a" * _SIZE
    return Case(_EVERYONE + line[: _SIZE - len(_EVERYONE)], url_of("a", 2000))


def _long_url(text: str) -> Case:
    return Case(workload(5000, mixed=True).body, url_of(text, 16_000))


CASES: dict[str, Callable[[], Case]] = {
    "/ and 50 times *a and b, against 2,000 a": _stars,
    "nested prefixes /a, /aa, ...": _nested_prefixes,
    "wildcards, no literal shared with the URL": _no_literal_shared,
    "wildcards, all share a literal with the URL": _one_literal_shared,
    "wildcards, all start as the URL does": _same_start,
    "wildcards, all pieces in the URL, 8,000 long": lambda: _pieces_out_of_order(8000),
    "wildcards, all pieces in the URL, 16,000 long": lambda: _pieces_out_of_order(16_000),
    "wildcards of runs of a and b, out of order": _runs_out_of_order,
    "wildcards of single letters": _single_letters,
    "wildcards with $, a piece in the URL": _anchored,
    "20,000 groups": _groups,
    "stacked user-agent lines, then rules": _stacked_agents,
    "one line": _one_line,
    "5,000 rules, a URL of 16 KB": lambda: _long_url("category/item-123/"),
    "5,000 rules, a URL of 16 KB, not ASCII": lambda: _long_url("cat\xe9gorie/"),
    "5,000 rules, a URL of 16 KB, all escapes": lambda: _long_url("%c3%a9%41"),
    "only colons": lambda: Case(b":" * _SIZE, _PLAIN_URL),
    "only lines of a colon": lambda: Case(b":\n" * (_SIZE // 2), _PLAIN_URL),
    "only blank lines": lambda: Case(b"\n" * _SIZE, _PLAIN_URL),
    "only Disallow:/": lambda: Case(filled(itertools.repeat("Disallow:/")), _PLAIN_URL),
}

#: URLs made for a file, for which there is a bound, but no limit: see docs/benchmarks.rst.
WITHOUT_LIMIT = {
    "wildcards, all pieces in the URL, 8,000 long",
    "wildcards, all pieces in the URL, 16,000 long",
    "wildcards of runs of a and b, out of order",
    "wildcards with $, a piece in the URL",
}


def cost(name: str, case: str) -> Cost:
    """What a parser takes for a case."""
    peer, made = by_name(name), CASES[case]()
    loads = [timed(lambda: peer.parse(made.body)([_PLAIN_URL])).seconds for _ in range(_LOADS)]
    answers = peer.parse(made.body)
    answers([_PLAIN_URL])
    checks = [_check(answers, f"{made.url}{number}") for number in range(_CHECKS)]
    return Cost(median(loads), median(checks))


def _check(answers: Callable[[list[str]], object], url: str) -> float:
    return timed(lambda: answers([url])).seconds


def given_up_or_cost(name: str, case: str) -> Cost | None:
    """The same in a process of its own; ``None`` where that takes too long."""
    try:
        return in_child(cost, name, case, limit=_PATIENCE[name], copy=True)
    except TimeoutError:
        return None


def _cells(name: str, cost: Cost | None) -> tuple[str, str]:
    if cost is None:
        return (f"over {_PATIENCE[name]:g} s", "")
    return (figure(cost.load * 1000), figure(cost.check * 1000))


def table(ours: dict[str, Cost | None]) -> Table:
    """Measure Protego as well."""
    rows = []
    for case, cost in ours.items():
        verdict = "yes" if cost and cost.holds else "no"
        protego = _cells(PROTEGO, given_up_or_cost(PROTEGO, case))
        rows.append((case, *_cells(OURS, cost), verdict, *protego))
    head = ("case", "load, ms", "check, ms", "limits hold", "Protego: load, ms", "check, ms")
    note = (
        f"Files are of {_SIZE:,} octets where the case does not say otherwise. Medians of {_LOADS} "
        f"loads, each with a first check, and of {_CHECKS} checks of new URLs. The limits: "
        f"{_LOAD_LIMIT * 1000:g} ms to load, {_CHECK_LIMIT * 1000:g} ms for a check. Where a "
        f"parser is not done with all this in time, only that is said."
    )
    return Table("Worst cases", head, tuple(rows), (note, machine()))


def main() -> None:
    """Write the table."""
    options = arguments(__doc__).parse_args()
    ours = {case: given_up_or_cost(OURS, case) for case in CASES}
    publish(options.rst, table(ours))
    if not all(cost and cost.holds for case, cost in ours.items() if case not in WITHOUT_LIMIT):
        sys.exit(1)


if __name__ == "__main__":
    main()
