"""What the worst files and URLs cost, and whether our limits hold.

Costs are in *yardsticks*: one is the CPU time of one check by Protego of a file with
five rules, in the same process. ``--search`` looks for worse files and URLs: it changes
a file and a URL together, at random, and keeps what takes longer; what it finds is
printed in the form that the table's rows have here.

Each case runs in a process of its own, which is ended after a time limit. The exit
status is 1 where a limit does not hold.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from benchmarks._child import in_child
from benchmarks._peers import AGENT, PROTEGO, by_name
from benchmarks._tables import Table, arguments, machine, publish, timed
from benchmarks._workload import SITE, workload
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.rules.explain import explain
from scrapy_rep.rep.rules.matching import MOST_PIECES
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

#: The lengths of URLs, and what a check of each may cost. In between and beyond, what is
#: on the line from one to the next.
_CHECK_LIMITS = ((500, 2_000), (2_050, 3_000), (16_000, 20_000))
_READ_LIMIT = 60_000
_FINDINGS_LIMIT = 300_000
#: How many times the limit of a check an explanation may cost, beyond reading the file.
_EXPLAIN_CHECKS = 10
#: Seconds for a case, after which a parser is given up.
_PATIENCE = 60.0
_PATIENCE_WITH_PROTEGO = 2.5
_CHECKS = 5
#: Bytes of a file.
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
    """What one case costs, in yardsticks.

    *first*: reading the file, and a first check. *index*: reading it again, and
    making the index. *first_verdict*: all of that. *check* and *verdict*: each later
    one. *explained* and *findings*: of this URL, and of all lines.
    """

    length: int
    first: float
    index: float
    first_verdict: float
    check: float
    verdict: float
    explained: float
    findings: float

    @property
    def used(self) -> dict[str, float]:
        """Which part of its limit each takes."""
        check = check_limit(self.length)
        return {
            "read": max(self.first, self.index, self.first_verdict) / _READ_LIMIT,
            "check": max(self.check, self.verdict) / check,
            "explained": self.explained / (_READ_LIMIT + _EXPLAIN_CHECKS * check),
            "findings": self.findings / _FINDINGS_LIMIT,
        }

    @property
    def holds(self) -> bool:
        """Whether all are within our limits."""
        return max(self.used.values()) < 1


def check_limit(length: int) -> float:
    """What a check of a URL of *length* characters may cost.

    >>> check_limit(80), check_limit(2050), check_limit(32_000)
    (2000.0, 3000.0, 39498.2078853047)
    """
    shortest, middle, longest = _CHECK_LIMITS
    ends = (shortest, middle) if length <= middle[0] else (middle, longest)
    (less, least), (more, most) = ends
    return least + (most - least) * max(0, length - less) / (more - less)


# -- files and URLs ------------------------------------------------------------------


def filled(lines: Iterable[str], start: bytes = _EVERYONE, size: int = _SIZE) -> bytes:
    """*start* and as many of *lines* as there is place for."""
    parts, left = [start], size - len(start)
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        parts.append(f"{line}\n".encode())
    return b"".join(parts)


def allowing(patterns: Iterable[str]) -> bytes:
    """A file of such rules: the key is the shorter one."""
    return filled(f"allow:{pattern}" for pattern in patterns)


def hexes(start: str = "") -> Iterator[str]:
    """Different pieces without end, of four figures at least."""
    return (f"{start}{number:04x}" for number in itertools.count())


def numbers(start: str = "") -> Iterator[str]:
    """The shortest pieces of figures that differ, without end."""
    return (f"{start}{number:x}" for number in itertools.count())


def out_of_order(pieces: list[str]) -> Iterator[str]:
    """Patterns of two *pieces* each, the one that comes later in a URL first."""
    random = Random(0)
    while True:
        early, late = sorted(random.sample(range(len(pieces)), 2))
        yield f"*{pieces[late]}*{pieces[early]}"


def url_of(text: str, length: int) -> str:
    """A URL with a path of *length* characters, *text* again and again."""
    return SITE + "/" + (text * (length // len(text) + 1))[: length - 1]


_LETTERS = "bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


def _quadratic(length: int) -> Case:
    """What takes a naive search the product of piece and URL."""
    pairs = map("".join, itertools.product(_LETTERS, repeat=2))
    patterns = ("*" + "a" * 89 + pair + "a" * 8 for pair in pairs)
    return Case(allowing(patterns), url_of("a", length))


def _at_the_limit(piece: str, length: int) -> Case:
    """As many rules as are tried, and each *piece* is looked for to the end of the URL."""
    patterns = (f"*{piece}*{number:03x}$" for number in range(MOST_PIECES))
    # All grams of the piece are at the start.
    return Case(allowing(patterns), url_of("a", length).replace("/aaaa", "/baaab", 1))


def _chain() -> Case:
    starts = ("/" + "a" * count for count in itertools.count(1))
    patterns = (f"{start}*{letter}" for start in starts for letter in _LETTERS[:28])
    return Case(allowing(patterns), url_of("a", 2050))


def _pieces_out_of_order(length: int) -> Case:
    pieces = list(itertools.islice(hexes("ab"), length // 6))
    return Case(allowing(out_of_order(pieces)), url_of("".join(pieces), length))


def _runs_out_of_order() -> Case:
    sizes = itertools.product(range(1, 200), repeat=2)
    runs = sorted(sizes, key=sum)
    patterns = (f"*{'b' * first}*{'a' * second}/" for first, second in runs)
    return Case(allowing(patterns), SITE + "/" + "a" * 4000 + "/" + "b" * 4000)


def _single_letters() -> Case:
    letters = itertools.product("ab", repeat=17)
    patterns = ("*" + "*".join(each) + "*c" for each in letters)
    return Case(allowing(patterns), SITE + "/c" + "ab" * 4000)


def _anchored() -> Case:
    text = "".join(itertools.islice(hexes("ab"), 1300))
    return Case(allowing(f"*a*{n}*b$" for n in hexes("ab")), url_of(text, 8000))


def _stacked(agents: str, rules: Iterator[str]) -> Case:
    half = filled(itertools.repeat(agents), b"", _SIZE // 2)
    return Case(filled(rules, half), _PLAIN_URL)


def _one_line() -> Case:
    line = b"Disallow:/" + b"a" * _SIZE
    return Case(_EVERYONE + line[: _SIZE - len(_EVERYONE)], url_of("a", 2000))


def _long_url(text: str) -> Case:
    return Case(workload(5000, mixed=True).body, url_of(text, 16_000))


def _file(lines: Iterable[str]) -> Case:
    return Case(filled(lines, b""), _PLAIN_URL)


CASES: dict[str, Callable[[], Case]] = {
    "/ and 50 times *a and b": lambda: Case(allowing(["/" + "*a" * 50 + "b"]), url_of("a", 2050)),
    "nested prefixes /a, /aa, ...": lambda: Case(
        allowing("/" + "a" * n for n in itertools.count(1)), url_of("a", 2050)
    ),
    "28 wildcards for each of /a, /aa, ...": _chain,
    "wildcards, no literal shared with the URL": lambda: Case(
        allowing(f"/*k{n}x*z" for n in hexes()), url_of("-q", 2050)
    ),
    "wildcards, all share a literal with the URL": lambda: Case(
        allowing(f"/*item*k{n}x" for n in hexes()), url_of("/item", 2050)
    ),
    "wildcards, all start as the URL does": lambda: Case(
        allowing(f"/item*k{n}x" for n in hexes()), url_of("item/", 2050)
    ),
    "long pieces that nearly match, 500": lambda: _quadratic(500),
    "long pieces that nearly match, 2,050": lambda: _quadratic(2050),
    "long pieces that nearly match, 16,000": lambda: _quadratic(16_000),
    "as many pieces as are tried, of 5": lambda: _at_the_limit("aaaab", 2050),
    "as many pieces as are tried, of 16": lambda: _at_the_limit("a" * 15 + "b", 2050),
    "as many pieces as are tried, of 99": lambda: _at_the_limit("a" * 90 + "b" + "a" * 8, 2050),
    "as many pieces as are tried, of 99, 500": lambda: _at_the_limit("a" * 90 + "b" + "a" * 8, 500),
    "as many pieces as are tried, of 99, 16,000": lambda: _at_the_limit(
        "a" * 90 + "b" + "a" * 8, 16_000
    ),
    "all pieces in the URL, in another order, 2,050": lambda: _pieces_out_of_order(2050),
    "all pieces in the URL, in another order, 16,000": lambda: _pieces_out_of_order(16_000),
    "runs of a and b, in another order": _runs_out_of_order,
    "wildcards of single letters": _single_letters,
    "as many pieces as are tried, of 1": lambda: Case(
        allowing(["/" + "*a" * (MOST_PIECES - 1) + "*abcd"]), url_of("abcd" + "a" * 2000, 2050)
    ),
    "wildcards with $, a piece in the URL": _anchored,
    "51,000 short wildcards": lambda: Case(allowing(numbers("*")), url_of("1a2b3c4d5e", 2050)),
    "51,000 times allow:*$": lambda: Case(allowing(itertools.repeat("*$")), _PLAIN_URL),
    "64,000 times allow:%": lambda: Case(allowing(itertools.repeat("%")), _PLAIN_URL),
    "distinct escapes": lambda: Case(allowing(f"/%41{n}%" for n in numbers()), _PLAIN_URL),
    "20,000 groups for others": lambda: _file(f"useragent:{n}b\nallow:/" for n in numbers()),
    "20,000 groups for everyone": lambda: _file(itertools.repeat("useragent:*\nallow:/")),
    "20,000 user-agent lines for us, then rules": lambda: _stacked(
        "user-agent:*", (f"disallow:/{n}" for n in hexes())
    ),
    "39,000 user-agent lines for us": lambda: _file(itertools.repeat("user-agent:*")),
    "one line": _one_line,
    "5,000 rules, a URL of 16,000": lambda: _long_url("category/item-123/"),
    "5,000 rules, a URL of 16,000, not ASCII": lambda: _long_url("cat\xe9gorie/"),
    "5,000 rules, a URL of 16,000, all escapes": lambda: _long_url("%c3%a9%41"),
    "only colons": lambda: Case(b":" * _SIZE, _PLAIN_URL),
    "only lines of a colon": lambda: Case(b":\n" * (_SIZE // 2), _PLAIN_URL),
    "only blank lines": lambda: Case(b"\n" * _SIZE, _PLAIN_URL),
    "only Disallow:/": lambda: _file(itertools.repeat("Disallow:/")),
}


# -- the search ------------------------------------------------------------------------

# What URLs are made of, again and again; "" is a text of *letters* letters at random.
_UNITS = ("", "a", "ab", "aab", "/a", "/", "a1b2c3d4", "%41", "?a=b&", "abaababa", "*", "$", "-")
_KEYS = ("allow:", "disallow:", "useragent:*\nallow:", "user-agent:*\nuser-agent:b\nallow:")


_AROUND_A_CHANGE = re.compile("[^*\n]{0,4}Z[^*\n]{0,4}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a file and a URL, each depending on the other.

    The URL is *length* characters of *unit*. Each line is *key*, a *start* of so many
    characters of the path, and *pieces* pieces of about *size* characters: cut from
    the path, the later ones first where *backwards*, with a character changed
    *changed* characters from the end of each (-1: nowhere). The last piece is so many
    *figures* of a number, so that lines differ; *anchored* lines end with ``$``. There
    are *lines* lines at most, or, where that is 0, as many as are tried. At the start
    of the URL is what stands around so many changes as *bait* says: so that short
    parts of pieces are in it.
    """

    seed: int = 0
    unit: str = "a"
    letters: int = 2
    length: int = 2050
    key: str = "allow:"
    start: int = 0
    pieces: int = 1
    size: int = 8
    changed: int = 0
    figures: int = 0
    backwards: bool = False
    anchored: bool = False
    lines: int = 60_000
    bait: int = 0

    @classmethod
    def drawn(cls, random: Random) -> Recipe:
        """One at random."""
        values = {field.name: cls.value(field.name, random) for field in dataclasses.fields(cls)}
        return cls(**values)

    @staticmethod
    def value(name: str, random: Random) -> Any:
        """A value at random for the field *name*."""
        choices: dict[str, tuple[object, ...]] = {
            "unit": _UNITS,
            "letters": (2, 3, 4, 16, 62),
            "length": tuple(length for length, _ in _CHECK_LIMITS),
            "key": _KEYS,
            "start": (0, 0, 1, 2, 8, 100, 1000),
            "pieces": (0, 1, 1, 2, 2, 3, 8, 50, 300),
            "size": (1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 18, 24, 50, 90, 99, 100, 101, 200, 1000),
            "changed": (-1, 0, 0, 1, 3, 8, 15, 50),
            "figures": (0, 1, 2, 3, 4, 5),
            "backwards": (False, True),
            "anchored": (False, True),
            "bait": (0, 1, 1, 30),
            "lines": (0, 0, 0, 2000, 60_000),
        }
        return random.choice(choices[name]) if name in choices else random.randrange(1 << 30)

    def changed_at_random(self, random: Random) -> Recipe:
        """The same with one to three other values."""
        names = [field.name for field in dataclasses.fields(self)]
        chosen = random.sample(names, random.randint(1, 3))
        return dataclasses.replace(self, **{n: self.value(n, random) for n in chosen})

    def made(self) -> Case:
        """The file and the URL."""
        random = Random(self.seed)
        unit = self.unit or "".join(random.choices(_LETTERS[: self.letters], k=self.length))
        path = url_of(unit, self.length).removeprefix(SITE)
        searched = max(1, self.pieces + bool(self.figures) - self.anchored)
        count = self.lines or MOST_PIECES // searched
        lines = (self._line(path, number, random) for number in range(count))
        first = list(itertools.islice(lines, self.bait))
        found = _AROUND_A_CHANGE.findall("\n".join(first))
        bait = "-".join(dict.fromkeys(found))[: self.length // 2]
        body = filled(itertools.chain(first, lines))
        return Case(body, f"{SITE}/{bait}{path[1 + len(bait) :]}")

    def _line(self, path: str, number: int, random: Random) -> str:
        sizes = [max(1, self.size + random.randint(-1, 1)) for _ in range(self.pieces)]
        places = sorted(random.randrange(len(path)) for _ in sizes)
        if self.backwards:
            places.reverse()
        pieces = [path[p : p + s] or "a" for p, s in zip(places, sizes, strict=True)]
        if self.changed >= 0:
            pieces = [self._with_a_change(piece) for piece in pieces]
        last = f"{number:0{self.figures}x}"[-self.figures :] if self.figures else ""
        start = path[: random.randint(1, self.start)] if self.start else ""
        all_pieces = "*".join(filter(None, [start or "/", *pieces, last]))
        return f"{self.key}{all_pieces}{'$' if self.anchored else ''}"

    def _with_a_change(self, piece: str) -> str:
        place = max(0, len(piece) - 1 - self.changed)
        return piece[:place] + "Z" + piece[place + 1 :]


# What is known to take long, as recipes: the search starts from these, and from others.
_FAMILIES = (
    # Long pieces that nearly match, as many as are tried.
    Recipe(pieces=1, size=99, changed=8, figures=3, anchored=True, lines=0, bait=1),
    Recipe(pieces=1, size=17, changed=0, figures=3, anchored=True, lines=0, bait=1),
    Recipe(pieces=1, size=5, changed=0, figures=3, anchored=True, lines=0, bait=1),
    # Pieces that are all in the URL, in another order.
    Recipe(unit="", letters=16, pieces=2, size=6, changed=-1, backwards=True),
    Recipe(unit="", letters=62, pieces=8, size=24, changed=-1, backwards=True, lines=0),
    # As many short rules as there is place for, and as many groups.
    Recipe(pieces=1, size=1, changed=-1, figures=4),
    Recipe(key="useragent:*\nallow:", pieces=0, figures=4),
)


# What a search of ten minutes found, by what takes the largest part of its limit.
CASES |= {
    "found: check": Recipe(
        seed=96684416,
        letters=62,
        key="useragent:*\nallow:",
        size=24,
        figures=3,
        anchored=True,
        lines=0,
        bait=1,
    ).made,
    "found: read": Recipe(
        unit="abaababa", key="useragent:*\nallow:", start=2, pieces=0, figures=4, anchored=True
    ).made,
    "found: explain": Recipe(
        unit="$", letters=16, length=500, key="useragent:*\nallow:", start=1, pieces=0, size=4
    ).made,
    "found: findings": Recipe(
        unit="$",
        letters=16,
        length=500,
        key="useragent:*\nallow:",
        start=1,
        pieces=0,
        size=4,
        backwards=True,
    ).made,
}


def search(seconds: float, seed: int, show: Callable[[str], object]) -> None:
    """Look for recipes that cost the most, for *seconds*; *show* each that costs more."""
    random, best = Random(seed), dict[str, tuple[float, Recipe]]()
    started = time.monotonic()
    tried = 0
    while time.monotonic() - started < seconds:
        aim = random.choice(("read", "check", "check", "explained", "findings"))
        if tried < len(_FAMILIES):
            recipe = _FAMILIES[tried]
        elif random.random() < 0.8:
            recipe = best[aim][1].changed_at_random(random)
        else:
            recipe = random.choice((Recipe.drawn(random), random.choice(_FAMILIES)))
        cost = given_up_or_cost(recipe.made())
        tried += 1
        used = cost.used if cost else dict.fromkeys(("read", "check", "explained"), 99.0)
        for name, part in used.items():
            if part > best.get(name, (0.0, recipe))[0]:
                best[name] = part, recipe
                show(f"{tried}: {part:.0%} of the limit of {name}: {recipe}\n")
    show(f"{tried} files and URLs tried\n")


# -- what they cost --------------------------------------------------------------------


def cost(case: Case) -> Cost:
    """What *case* takes."""
    before = _yardstick()

    def read() -> Cost:
        robots = RobotsTxt.parse(case.body)
        first = _seconds(lambda: robots.allowed(_PLAIN_URL, AGENT))
        index = _seconds(lambda: robots.allowed(_PLAIN_URL, AGENT))
        other = RobotsTxt.parse(case.body)
        verdict = _seconds(partial(_verdict, other, _PLAIN_URL))
        urls = [f"{case.url}{number}" for number in range(_CHECKS)]
        checks = [_seconds(partial(robots.allowed, url, AGENT)) for url in urls]
        verdicts = [_seconds(partial(_verdict, other, url)) for url in urls]
        return Cost(
            len(case.url) - len(SITE),
            first,
            index,
            verdict,
            min(checks),
            min(verdicts),
            _seconds(lambda: explain(robots, urls[0], AGENT)),
            _seconds(lambda: robots.findings),
        )

    costs = read()
    yardstick = (before + _yardstick()) / 2
    others = dataclasses.asdict(costs) | {"length": 0}
    parts = {name: seconds / yardstick for name, seconds in others.items()}
    return Cost(**parts | {"length": costs.length})


def _verdict(robots: RobotsTxt, url: str) -> str:
    return str(robots.verdict(url, AGENT))


def _seconds(work: Callable[[], object]) -> float:
    return timed(work).seconds


def _yardstick() -> float:
    """The CPU seconds of one yardstick."""
    file = workload(5, mixed=True)
    urls = list(file.urls(Random(0), 1000, refused=0.3))
    answers = by_name(PROTEGO).parse(file.body)
    return min(_seconds(lambda: answers(urls)) for _ in range(3)) / len(urls)


def given_up_or_cost(case: Case) -> Cost | None:
    """The same in a process of its own; ``None`` where that takes too long."""
    try:
        return in_child(cost, case, limit=_PATIENCE, copy=True)
    except TimeoutError:
        return None


def cost_of_protego(case: Case) -> tuple[float, float]:
    """What reading the file with a first check takes Protego, and what each later one."""
    peer, yardstick = by_name(PROTEGO), _yardstick()
    load = _seconds(lambda: peer.parse(case.body)([_PLAIN_URL]))
    answers = peer.parse(case.body)
    answers([_PLAIN_URL])
    check = min(_seconds(partial(answers, [f"{case.url}{n}"])) for n in range(_CHECKS))
    return load / yardstick, check / yardstick


def _cells_of_protego(case: Case) -> tuple[str, str]:
    try:
        found = in_child(cost_of_protego, case, limit=_PATIENCE_WITH_PROTEGO, copy=True)
    except TimeoutError:
        return f"over {_PATIENCE_WITH_PROTEGO:g} s", ""
    return f"{found[0]:,.0f}", f"{found[1]:,.0f}"


def _row(name: str, case: Case, cost: Cost | None) -> tuple[str, ...]:
    if cost is None:
        return (name, *[f"over {_PATIENCE:g} s"] * 8, "no", *_cells_of_protego(case))
    figures = [f"{value:,.0f}" for value in dataclasses.astuple(cost)]
    return (name, *figures, "yes" if cost.holds else "no", *_cells_of_protego(case))


def table(costs: dict[str, Cost | None]) -> Table:
    """*costs*, by case, beside those of Protego."""
    rows = [_row(name, CASES[name](), cost) for name, cost in costs.items()]
    head = (
        *("case", "URL", "first check", "index", "first verdict", "check", "verdict"),
        *("explain", "findings", "limits hold", "Protego: load", "check"),
    )
    checks = ", ".join(f"{limit:,} ({length:,} characters)" for length, limit in _CHECK_LIMITS)
    note = (
        f"In yardsticks; URL is the number of characters of the path. Files are of up to {_SIZE:,} "
        f"bytes. The limits: {_READ_LIMIT:,} for a first check, the index and a first verdict, "
        f"{checks} for a later check and a later verdict, {_EXPLAIN_CHECKS} times that and "
        f"{_READ_LIMIT:,} to explain, {_FINDINGS_LIMIT:,} for all findings. Of later ones, "
        f"the least of {_CHECKS} with new URLs. Where a parser is not done with all this in time, "
        f"only that is said."
    )
    return Table("Worst cases", head, tuple(rows), (note, machine()))


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def main() -> None:
    """Write the table, or search."""
    parser = arguments(__doc__)
    parser.add_argument("--search", type=float, metavar="SECONDS", help="look for worse, so long")
    parser.add_argument("--seed", type=int, default=0, help="where the search starts")
    options = parser.parse_args()
    if options.search:
        search(options.search, options.seed, _write)
        return
    costs = {name: given_up_or_cost(make()) for name, make in CASES.items()}
    publish(options.rst, table(costs))
    if not all(cost and cost.holds for cost in costs.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
