"""How much memory parsed files hold, after one check each, per file of a corpus of real ones.

Each parser is measured in processes of its own: by how much the process grows,
which is all that can be seen of parsers that are not written in Python, and by
what Python itself has allocated. What a parser keeps of a file's text counts.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import resource
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks._child import in_child
from benchmarks._corpus import FIRST_URL, bodies, corpus_arguments
from benchmarks._peers import OURS, Answers, by_name, installed
from benchmarks._tables import (
    Table,
    about_peers,
    compared,
    machine,
    publish,
    rows_of,
)

#: Files read before, for what a process needs once.
_WARM_UP = 20
#: Seconds.
_LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Held:
    """What *files* parsed files hold, in bytes."""

    size: int
    files: int

    @property
    def each(self) -> float:
        """KiB per file."""
        return self.size / self.files / 1024


def grown(name: str, archive: Path) -> Held:
    """By how much the process grows."""
    return _held(name, archive, _resident)


def allocated(name: str, archive: Path) -> Held:
    """What Python's allocators have given out."""
    tracemalloc.start()
    return _held(name, archive, lambda: tracemalloc.get_traced_memory()[0])


def _held(name: str, archive: Path, size: Callable[[], int]) -> Held:
    _keep(name, archive, _WARM_UP)
    before = size()
    kept = _keep(name, archive, None)
    return Held(size() - before, len(kept))


def _keep(name: str, archive: Path, count: int | None) -> list[Answers]:
    """The first *count* files, parsed and asked; without those that the parser raises at."""
    peer = by_name(name)
    kept = []
    for body in itertools.islice(bodies(archive), count):
        with contextlib.suppress(Exception):
            answers = peer.parse(body)
            answers([FIRST_URL])
            kept.append(answers)
    del body
    gc.collect()
    return kept


def _resident() -> int:
    """Bytes of memory that this process has. Linux only."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def _each(
    measure: Callable[[str, Path], Held], names: Iterable[str], archive: Path
) -> dict[str, float]:
    """KiB per file of each parser; in parallel, which changes no memory."""

    def one(name: str) -> float:
        return in_child(measure, name, archive, limit=_LIMIT).each

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def table(archive: Path) -> Table:
    """Measure everything."""
    peers = installed()

    python = [name for name, loaded in peers.items() if not loaded.peer.native]
    growth = _each(grown, peers, archive)
    inside = _each(allocated, python, archive)
    rows = []
    for name, cell in rows_of([growth], peers, OURS):
        seen = compared(inside[name], inside[OURS]) if name in inside else "not seen"
        rows.append((name, cell, seen))
    head = ("parser", "growth of the process, KiB", "allocated by Python, KiB")
    title = "Memory held per parsed file, and how many times that of scrapy-rep"
    note = "Measured once: what else the machine does changes no memory of a process."
    return Table(title, head, tuple(rows), (machine(), *about_peers(), note))


def main() -> None:
    """Write the table."""
    options = corpus_arguments(__doc__).parse_args()
    publish(options.rst, table(options.corpus))


if __name__ == "__main__":
    main()
