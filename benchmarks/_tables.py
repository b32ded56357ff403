"""Measuring in alternating rounds, and the tables that come of it."""

from __future__ import annotations

import argparse
import csv
import datetime
import gc
import io
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Generic, TypeVar

from benchmarks._peers import absent, installed

T = TypeVar("T")

#: How often everything is measured.
ROUNDS = 5
_WIDTH = 100
_TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """What came of some work, and the CPU seconds that it took."""

    seconds: float
    result: T


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head, and sentences about them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def as_text(self) -> str:
        """For a terminal."""
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, tuple("-" * width for width in widths))
        parts = [self.title, "\n".join(_aligned(line, widths) for line in lines)]
        parts += [
            "\n".join(textwrap.wrap(note, _WIDTH, break_on_hyphens=False)) for note in self.notes
        ]
        return "\n\n".join(parts) + "\n"

    def as_rst(self) -> str:
        """For the documentation."""
        data = io.StringIO()
        csv.writer(data, lineterminator="\n").writerows([self.head, *self.rows])
        start = f".. csv-table:: {self.title}\n   :header-rows: 1\n\n"
        parts = [start + textwrap.indent(data.getvalue(), "   ")]
        parts += [textwrap.fill(note, 80, break_on_hyphens=False) + "\n" for note in self.notes]
        # An asterisk would start emphasis.
        return "\n".join(parts).replace("*", "\\*")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first column is of names, the others of figures."""
    first, *others = zip(cells, widths, strict=True)
    line = f"{first[0]:<{first[1]}}  " + "  ".join(f"{cell:>{width}}" for cell, width in others)
    return line.rstrip()


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rst", type=Path, help="write the table to this file for the docs, too")
    return parser


def publish(rst: Path | None, *tables: Table) -> None:
    """Print *tables*, and write them to *rst* where that is given."""
    sys.stdout.write("\n".join(table.as_text() for table in tables))
    if rst is not None:
        rst.parent.mkdir(parents=True, exist_ok=True)
        rst.write_text("\n".join(table.as_rst() for table in tables), "utf-8")


def machine(*distributions: str) -> str:
    """What this is measured on: the machine, Python, all peers and *distributions*."""
    peers = [f"{each.peer.distribution} {each.version}" for each in installed().values()]
    others = [f"{name} {version(name)}" for name in distributions]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return (
        f"Measured on {today} on {_processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"with {python}, {', '.join(dict.fromkeys(others + peers))}."
    )


def about_peers() -> list[str]:
    """What has to be known of the peers, and which are absent."""
    rereads = [peer.name for peer in installed().values() if peer.peer.rereads]
    native = [peer.name for peer in installed().values() if peer.peer.native]
    return [
        f"Not written in Python: {', '.join(native) or 'none'}. "
        f"Read the whole file again at each check: {', '.join(rereads) or 'none'}.",
        *absent(),
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def alternating(
    names: Iterable[str], measure: Callable[[str, int], T], rounds: int = ROUNDS
) -> dict[str, list[T]]:
    """What *measure* returns for each name, round after round.

    It gets the name and the number of the round. Every other round goes
    through the names backwards: nobody is always the one after a slow one.
    """
    order = list(names)
    figures: dict[str, list[T]] = {name: [] for name in order}
    for number in range(rounds):
        for name in order if number % 2 == 0 else reversed(order):
            figures[name].append(measure(name, number))
    return figures


def medians(figures: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The median of each."""
    return {name: median(values) for name, values in figures.items()}


def settle() -> None:
    """Keep the garbage collector from all that exists now: it stays on while
    something is measured, but has only to look at what that makes."""
    gc.collect()
    gc.freeze()


def timed(work: Callable[[], T]) -> Timed[T]:
    """Do *work* once. CPU time, because other processes do not lengthen that."""
    gc.collect()
    started = time.process_time()
    result = work()
    return Timed(time.process_time() - started, result)


def figure(value: float) -> str:
    """Three digits, or all of those before the point.

    >>> figure(0.04567), figure(4.567), figure(45678.9)
    ('0.0457', '4.57', '45,679')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}"


def compared(value: float, ours: float) -> str:
    """*value* and, beside it, how many times *ours* it is."""
    return beside(value, value / ours)


def beside(value: float, ratio: float) -> str:
    """*value* and, beside it, that it is *ratio* times ours."""
    return f"{figure(value)} ({figure(ratio)}{_TIMES})"


def rows_of(
    columns: Sequence[Mapping[str, float]], names: Iterable[str], ours: str
) -> Iterator[tuple[str, ...]]:
    """A row for each of *names*: its figure of each column, compared with *ours*."""
    for name in names:
        yield (name, *(compared(column[name], column[ours]) for column in columns))
