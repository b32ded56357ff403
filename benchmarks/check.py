"""How long a check takes: µs of CPU time for one URL, of a file that is read already.

Every URL is a new one. Slow parsers get fewer of them, as many as fit in a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks._peers import OURS, Answers, by_name, installed
from benchmarks._tables import (
    ROUNDS,
    Table,
    about_peers,
    alternating,
    arguments,
    beside,
    machine,
    medians,
    publish,
    settle,
    timed,
)
from benchmarks._workload import workload

_SIZES = (5, 100, 10_000)
_SHARES = (0.3, 0.7)
#: For a parser in one round: URLs, and CPU seconds.
_URLS = 5_000
_BUDGET = 0.025
_FIRST = 4
_WARM_UP = _FIRST + 1_023


@dataclass(frozen=True, slots=True)
class Cell:
    """A file, and the share of its URLs that is refused."""

    rules: int
    mixed: bool
    refused: float

    @property
    def column(self) -> str:
        """What is at the head of the column."""
        return f"{'mixed' if self.mixed else 'plain'}, {self.rules:,}"

    def __str__(self) -> str:
        return f"{self.column} rules, {self.refused:.0%} refused"


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of one cell, by name of the parser.

    *micros*: µs per check. *ratios*: how many times ours, in the median of the
    rounds: what slows a machine down for a while, it mostly does for all of one.
    *urls*: how many it got in a round. *wrong*: the share of URLs about which it did
    not say what the file says.
    """

    cell: Cell
    micros: dict[str, float]
    ratios: dict[str, float]
    urls: dict[str, int]
    wrong: dict[str, float]


def measured(cell: Cell) -> Measured:
    """Measure one cell."""
    file = workload(cell.rules, mixed=cell.mixed)
    right = file.urls(Random(str(cell)), _WARM_UP + ROUNDS * _URLS, cell.refused)
    urls = list(right)
    answers = {name: peer.parse(file.body) for name, peer in installed().items()}
    settle()
    counts = {name: _count(answer, urls[:_WARM_UP]) for name, answer in answers.items()}

    def measure(name: str, number: int) -> tuple[float, int]:
        start = _WARM_UP + number * _URLS
        batch = _new(urls[start : start + counts[name]])
        came = timed(lambda: answers[name](batch))
        wrong = sum(right[url] != said for url, said in zip(batch, came.result, strict=True))
        return came.seconds / len(batch) * 1e6, wrong

    figures = alternating(answers, measure)
    of_rounds = {name: [each[0] for each in figures[name]] for name in figures}
    ratios = {
        name: [micros / ours for micros, ours in zip(theirs, of_rounds[OURS], strict=True)]
        for name, theirs in of_rounds.items()
    }
    wrong = {name: sum(each[1] for each in figures[name]) for name in figures}
    assert not wrong[OURS], f"scrapy-rep is wrong: {cell}"
    shares = {name: wrong[name] / counts[name] / ROUNDS for name in figures}
    return Measured(cell, medians(of_rounds), medians(ratios), counts, shares)


def _new(urls: list[str]) -> list[str]:
    """The same, as strings that nobody has computed the hash of."""
    return "\n".join(urls).split("\n")


def _count(answers: Answers, urls: list[str]) -> int:
    """How many checks fit in the budget, after a warm-up.

    The first checks count for nothing in it: some make an index, or compile patterns.
    """
    _micros(answers, urls[:_FIRST])
    start, size, spent, micros = _FIRST, 1, 0.0, 0.0
    while spent < 3 * _BUDGET * 1e6 and start + size <= len(urls):
        micros = _micros(answers, urls[start : start + size])
        spent += micros * size
        start, size = start + size, 2 * size
    return max(1, min(_URLS, int(_BUDGET * 1e6 / micros)))


def _micros(answers: Answers, urls: list[str]) -> float:
    """µs per check."""
    return timed(lambda: answers(urls)).seconds / len(urls) * 1e6


def growth(refused: float) -> float:
    """How many times one among the fewest plain rules a check of ours among the most takes.

    Cells of the table are a minute apart, in which a machine may change; these
    rounds alternate.
    """
    cells = {str(cell): cell for cell in (Cell(n, False, refused) for n in (_SIZES[0], _SIZES[-1]))}
    files = {name: workload(cell.rules, mixed=False) for name, cell in cells.items()}
    count = _WARM_UP + ROUNDS * _URLS
    urls = {name: list(file.urls(Random(name), count, refused)) for name, file in files.items()}
    answers = {name: by_name(OURS).parse(file.body) for name, file in files.items()}
    for name in cells:
        answers[name](urls[name][:_WARM_UP])
    settle()

    def measure(name: str, number: int) -> float:
        start = _WARM_UP + number * _URLS
        return _micros(answers[name], _new(urls[name][start : start + _URLS]))

    few, many = medians(alternating(cells, measure)).values()
    return many / few


def table() -> Table:
    """Measure everything."""
    cells = [
        Cell(rules, mixed, refused)
        for refused in _SHARES
        for mixed in (True, False)
        for rules in _SIZES
    ]
    results = [measured(cell) for cell in cells]
    rows: list[tuple[str, ...]] = []
    for refused in _SHARES:
        columns = [result for result in results if result.cell.refused == refused]
        for name in installed():
            figures = (beside(column.micros[name], column.ratios[name]) for column in columns)
            rows.append((name, f"{refused:.0%}", *figures))
    head = dict.fromkeys(cell.column for cell in cells)
    return Table(
        "µs per check, and how many times that of scrapy-rep",
        ("parser", "refused", *head),
        tuple(rows),
        (
            machine(),
            *about_peers(),
            _about_urls(results),
            _about_growth(),
            _about_answers(results, longest_match=True),
            _about_answers(results, longest_match=False),
        ),
    )


def _about_urls(results: list[Measured]) -> str:
    """Who got how many URLs."""
    fewest = {name: min(result.urls[name] for result in results) for name in installed()}
    few = [f"{name} {count}" for name, count in fewest.items() if count < _URLS]
    return (
        f"Medians of {ROUNDS} rounds, of times and of ratios. In each, a parser got {_URLS:,} new "
        f"URLs, or as many as take it about {_BUDGET * 1000:g} ms, one at least. "
        f"The fewest of any column: {', '.join(few)}."
    )


def _about_growth() -> str:
    """What many rules cost us beyond few."""
    times = (f"{growth(refused):.2f} times ({refused:.0%} refused)" for refused in _SHARES)
    return (
        f"Measured by turns, a check among {_SIZES[-1]:,} plain rules takes scrapy-rep "
        f"{' and '.join(times)} what one among {_SIZES[0]} takes."
    )


def _about_answers(results: list[Measured], *, longest_match: bool) -> str:
    """Who does not say what the file says."""
    wrong = []
    for name, loaded in installed().items():
        share = max(result.wrong[name] for result in results)
        if loaded.peer.longest_match is longest_match and share:
            wrong.append(f"{name} {share:.1%}")
    which = "say they take the longest match" if longest_match else "take the first match"
    return (
        f"Of the parsers that {which}, these decide otherwise than the file says, for that "
        f"share of URLs in their worst column: {', '.join(wrong) or 'none'}."
    )


def main() -> None:
    """Write the table."""
    options = arguments(__doc__).parse_args()
    publish(options.rst, table())


if __name__ == "__main__":
    main()
