"""What the package and its add-on add to the start of a Scrapy command.

Each run is a new interpreter, in a project with nothing in it. Its libraries are those
of this interpreter, with and without scrapy-rep among them. CPU time, by rounds in
alternating order; what is added is the median of what the rounds say.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from statistics import median

import scrapy

import scrapy_rep
from benchmarks._tables import Table, alternating, arguments, figure, machine, publish

_ROUNDS = 41
#: Milliseconds that the add-on may add to :data:`_LIMITED`.
_LIMIT_MS = 30.0
_LIMITED = "version"
_COMMANDS = (_LIMITED, "list")
_WITHOUT, _PACKAGE, _ADDON = "without", "with the package", "with the add-on"
_PROJECT = "project"
_ADDON_SETTING = "ADDONS = {'scrapy_rep.Addon': 500}\n"


def _libraries(folder: Path, *, ours: bool) -> Path:
    """Below *folder*, all that Scrapy can import here, scrapy-rep only if *ours*.

    Without .pth files: those of an installation in place would cost time that a
    usual one does not.
    """
    libraries = folder / ("with" if ours else "without")
    libraries.mkdir()
    for path in Path(scrapy.__file__).parents[1].iterdir():
        if "scrapy_rep" not in path.name and path.suffix != ".pth":
            (libraries / path.name).symlink_to(path)
    if ours:
        shutil.copytree(Path(scrapy_rep.__file__).parent, libraries / "scrapy_rep")
        info = libraries / "scrapy_rep-0.dist-info"
        info.mkdir()
        for name in ("METADATA", "entry_points.txt"):
            (info / name).write_text(distribution("scrapy-rep").read_text(name) or "", "utf-8")
    return libraries


def _project(folder: Path, settings: str) -> Path:
    """A project with these *settings*, below *folder*."""
    module = folder / _PROJECT
    module.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text(f"[settings]\ndefault = {_PROJECT}.settings\n", "utf-8")
    (module / "settings.py").write_text(settings, "utf-8")
    (module / "__init__.py").touch()
    return folder


@dataclass(frozen=True)
class _Variant:
    """A project, and what is installed for it."""

    project: Path
    libraries: Path

    def milliseconds(self, command: str) -> float:
        """What ``scrapy`` *command* takes here."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            # -S: no libraries but those.
            [sys.executable, "-S", "-m", "scrapy", command],
            cwd=self.project,
            env={**os.environ, "PYTHONPATH": str(self.libraries), "PYTHONDONTWRITEBYTECODE": ""},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@dataclass(frozen=True)
class _Cost:
    """Milliseconds: of a command, and what of them is added to those of ``without``."""

    command: str
    variant: str
    total: float
    added: float
    ratio: float

    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        name = f"scrapy {self.command}, {self.variant}"
        return (name, figure(self.total), f"{self.added:.1f}", f"{self.ratio:.3f}")


def costs(command: str, variants: Mapping[str, _Variant], rounds: int) -> Iterator[_Cost]:
    """What *command* takes in each of *variants*."""
    for variant in variants.values():
        # Not measured: this one compiles.
        variant.milliseconds(command)
    spent = alternating(variants, lambda name, _: variants[name].milliseconds(command), rounds)
    for name in variants:
        added = [total - bare for total, bare in zip(spent[name], spent[_WITHOUT], strict=True)]
        total = median(spent[name])
        yield _Cost(command, name, total, median(added), total / median(spent[_WITHOUT]))


def main() -> None:
    """Write the table; fail where the limit does not hold."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how often each is run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        none, ours = _libraries(folder, ours=False), _libraries(folder, ours=True)
        plain = _project(folder / "plain", "")
        enabled = _project(folder / "enabled", _ADDON_SETTING)
        variants = {
            _WITHOUT: _Variant(plain, none),
            _PACKAGE: _Variant(plain, ours),
            _ADDON: _Variant(enabled, ours),
        }
        found = [cost for command in _COMMANDS for cost in costs(command, variants, options.rounds)]
    head = ("command", "CPU time, ms", "added, ms", "ratio")
    notes = (
        machine("scrapy"),
        f"Medians of {options.rounds} rounds. With the add-on, scrapy {_LIMITED} may take "
        f"{_LIMIT_MS:.0f} ms more.",
    )
    rows = tuple(cost.row() for cost in found)
    publish(options.rst, Table("The start of a command", head, rows, notes))
    limited = next(cost for cost in found if (cost.command, cost.variant) == (_LIMITED, _ADDON))
    sys.exit(limited.added > _LIMIT_MS)


if __name__ == "__main__":
    main()
