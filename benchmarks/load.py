"""How long it takes to load real files and check one URL of each.

All files together are in CPU time; single files and loading alone, which are too
short for its clock, in elapsed time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks._corpus import FIRST_URL, bodies, corpus_arguments
from benchmarks._peers import OURS, Loaded, installed
from benchmarks._tables import (
    ROUNDS,
    Table,
    about_peers,
    alternating,
    machine,
    medians,
    publish,
    rows_of,
    settle,
    timed,
)
from scrapy_rep.rep.dialects import RFC9309

#: Files.
_WARM_UP = 50


@dataclass(frozen=True, slots=True)
class Pass:
    """The corpus, gone through once.

    *total*: CPU seconds. Of each file, in order: *loaded*, seconds until it was
    read, and *checked*, until one URL was checked, too. *failed*: how many made
    the parser raise.
    """

    total: float
    loaded: tuple[float, ...]
    checked: tuple[float, ...]
    failed: int


def go_through(peer: Loaded, files: Iterable[bytes]) -> Pass:
    """Load each file, and ask it about one URL."""
    came = timed(lambda: [_seconds(peer, body) for body in files])
    loaded, checked, failed = zip(*came.result, strict=True)
    return Pass(came.seconds, loaded, checked, sum(failed))


def _seconds(peer: Loaded, body: bytes) -> tuple[float, float, bool]:
    """How long it took to load, how long to load and check, and whether the parser raised."""
    started = loaded = time.perf_counter()
    try:
        answers = peer.parse(body)
        loaded = time.perf_counter()
        answers([FIRST_URL])
    except Exception:
        return loaded - started, time.perf_counter() - started, True
    return loaded - started, time.perf_counter() - started, False


def passes(files: list[bytes]) -> dict[str, list[Pass]]:
    """All passes of all parsers."""
    peers = installed()
    for peer in peers.values():
        go_through(peer, files[:_WARM_UP])
    return alternating(peers, lambda name, _: go_through(peers[name], files))


def table(archive: Path) -> Table:
    """Measure everything."""
    files = list(bodies(archive))
    largest = max(range(len(files)), key=lambda index: len(files[index]))
    settle()
    gone = passes(files)
    # Of each file, the median of all rounds.
    times = {
        name: [median(each) for each in zip(*(one.checked for one in rounds), strict=True)]
        for name, rounds in gone.items()
    }
    columns = [
        medians({name: [one.total * 1e3 for one in rounds] for name, rounds in gone.items()}),
        {name: median(each) * 1e6 for name, each in times.items()},
        {name: each[largest] * 1e3 for name, each in times.items()},
        medians({name: [sum(one.loaded) * 1e3 for one in rounds] for name, rounds in gone.items()}),
    ]
    rows = [(*row, str(gone[row[0]][0].failed)) for row in rows_of(columns, gone, OURS)]
    head = (
        "parser",
        "load and check: all, ms",
        "median file, µs",
        "largest file, ms",
        "load alone: all, ms",
        "files it raises at",
    )
    title = "Time to load, and how many times that of scrapy-rep"
    notes = (_about_files(files), machine(), *about_peers(), f"Medians of {ROUNDS} rounds.")
    return Table(title, head, tuple(rows), notes)


def _about_files(files: list[bytes]) -> str:
    sizes = [len(body) for body in files]
    limit = RFC9309.max_size or max(sizes)
    longer = sum(size > limit for size in sizes)
    return (
        f"{len(files):,} files of real sites, {sum(sizes):,} bytes; the median file has "
        f"{median(sizes):,.0f}, the largest {max(sizes):,}. Of a file longer than {limit:,} bytes "
        f"({longer} of these), scrapy-rep reads that many, as RFC 9309 §2.5 allows."
    )


def main() -> None:
    """Write the table."""
    options = corpus_arguments(__doc__).parse_args()
    publish(options.rst, table(options.corpus))


if __name__ == "__main__":
    main()
