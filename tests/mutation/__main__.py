"""Change what decides in thousands of ways, and say which changes no test notices.

That is ``scrapy_rep/rep/``, and the parts of the Scrapy side that do no I/O: the states of
the policy cache and of the throttle, the hops of a fetch and the policies in memory.

``python -m tests.mutation`` is for all files, ``python -m tests.mutation lines urls`` for
some. mutmut makes the changes, as functions beside those of the package, in a copy of it
in ``build/mutation``. Their tests are collected once, and run in a process of
its own for each change: to start pytest each time would take hours. Those that draw
their cases are left out: what they find by chance is no result.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from itertools import chain
from pathlib import Path
from time import process_time

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

_COPY = Path("build", "mutation")
_FILES = [
    *sorted(Path("scrapy_rep", "rep").rglob("*.py")),
    *(Path("scrapy_rep", "policies", f"{name}.py") for name in ("states", "memory", "hops")),
    *(Path("scrapy_rep", "throttling", f"{name}.py") for name in ("throttle", "turns", "backoff")),
    *(Path("scrapy_rep", "holding", f"{name}.py") for name in ("concurrency", "hold_queue")),
]
# Their tests need neither a crawl nor a reactor.
_TESTS = ["tests/rep"]
_TESTS += [f"tests/throttling/test_{name}.py" for name in ("throttle", "turns", "backoff")]
_TESTS += [f"tests/policies/test_{name}.py" for name in ("states", "memory", "hops")]
_TESTS += [f"tests/holding/test_{name}.py" for name in ("concurrency", "hold_queue")]
# Standard error itself is not captured: what it is told is how far this is.
_PYTEST = ["-o", "addopts=--import-mode=importlib --strict-markers --capture=sys"]
_PYTEST += ["-p", "no:cacheprovider", "-p", "no:twisted", "-q", "--tb=no"]
_PYTEST += ["-m", "not once and not hypothesis", *_TESTS]
# Signals look at the arguments of what they call, which mutmut hides.
_PYTEST += ["--deselect", "tests/holding/test_concurrency.py::test_signals_tell_of_requests"]
_QUEUE = "tests/holding/test_hold_queue.py::"
_PYTEST += ["--deselect", f"{_QUEUE}test_whoever_has_it_after_that[True"]
_PYTEST += ["--deselect", f"{_QUEUE}test_a_request_from_the_disk_comes_from_the_scheduler"]
_PYTEST += ["--deselect", f"{_QUEUE}test_one_that_was_not_given_back_is_scheduled_as_ever"]
# One that takes longer is left out, if there is another: twenty thousand groups, five thousand
# times.
_SLOW = 0.25
# How often to say how far this is, in changes.
_PROGRESS = 250
# A change by which the tests take so many times as long, and so many seconds more, has made a
# loop endless.
_ENDLESS = 5
_MORE = 3.0


def _copy_with_changes() -> list[str]:
    """Make the copy; the names of all changes, in the order of files and lines."""
    shutil.rmtree(_COPY, ignore_errors=True)
    for folder in ("scrapy_rep", "tests"):
        shutil.copytree(folder, _COPY / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "tox.ini"):
        shutil.copy(name, _COPY)
    names = []
    for path in _FILES:
        changed = mutate_file_contents(str(path), path.read_text("utf-8"))
        (_COPY / path).write_text(changed.code, "utf-8")
        module = ".".join(path.with_suffix("").parts)
        names += [f"{module}.{name}" for name in changed.mutant_names]
    return names


class _Session:
    """A plugin that runs all tests once, and then those of a function for each change of it."""

    def __init__(self, names: list[str], processes: int) -> None:
        self._names = names
        self._processes = processes
        self._by_function: dict[str, list[tuple[float, pytest.Item]]] = defaultdict(list)
        self._running: dict[int, str] = {}
        self.survivors: list[str] = []
        self.counts: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        set_mutant_under_test("stats")
        state()._stats.clear()  # noqa: SLF001
        for item in session.items:
            self._run_unchanged(item)
        _forget()
        for name in self._names:
            tests = sorted(self._by_function[_function(name)], key=lambda test: test[0])
            tests = [test for test in tests if test[0] < _SLOW] or tests[:1]
            while len(self._running) >= self._processes:
                self._reap()
            pid = os.fork()
            if not pid:
                seconds = _ENDLESS * sum(seconds for seconds, _ in tests) + _MORE
                os._exit(_try(name, [item for _, item in tests], seconds))
            self._running[pid] = name
        while self._running:
            self._reap()
        return True

    def _run_unchanged(self, item: pytest.Item) -> None:
        _forget()
        started = process_time()
        if any(report.failed for report in runtestprotocol(item, log=False)):
            sys.exit(f"{item.nodeid} fails without any change")
        seconds = process_time() - started
        for function in state()._stats:  # noqa: SLF001
            self._by_function[function].append((seconds, item))
        state()._stats.clear()  # noqa: SLF001

    def _reap(self) -> None:
        pid, status = os.wait()
        name = self._running.pop(pid)
        self.counts[_file(name)] += 1
        if status == 0:
            self.survivors.append(name)
        done = self.counts.total()
        if not done % _PROGRESS:
            print(done, "of", len(self._names), "changes", file=sys.__stderr__)


def _file(name: str) -> str:
    return name.split(".")[-2]


def _function(name: str) -> str:
    return name.rpartition("__mutmut_")[0]


def _forget() -> None:
    """Empty the caches of functions. What one test left there, no other would call for."""
    modules = [sys.modules[name] for name in sys.modules if name.startswith("scrapy_rep.")]
    for each in chain.from_iterable(vars(module).values() for module in modules):
        if isinstance(each, _lru_cache_wrapper):
            each.cache_clear()


def _try(name: str, tests: list[pytest.Item], seconds: float) -> int:
    """Run *tests* with the change *name*, for *seconds* of a processor; 1 as soon as one fails."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    set_mutant_under_test(name)
    if not tests:
        # It is called when its module is imported.
        command = [sys.executable, "-m", "pytest", "-x", *_PYTEST]
        return min(subprocess.run(command, capture_output=True, check=False).returncode, 1)
    for item in tests:
        if any(report.failed for report in runtestprotocol(item, log=False)):
            return 1
    return 0


def _of_files(names: list[str], files: list[str]) -> Iterator[str]:
    return (name for name in names if not files or _file(name) in files)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("file", nargs="*", help="a file, without folder and .py; all by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    names = list(_of_files(_copy_with_changes(), options.file))
    os.chdir(_COPY)
    sys.path.insert(0, str(Path.cwd()))
    session = _Session(names, options.processes)
    if pytest.main(_PYTEST, plugins=[session]):
        sys.exit(1)
    print(*sorted(session.survivors), sep="\n")  # noqa: T201
    survivors = Counter(map(_file, session.survivors))
    for file, count in sorted(session.counts.items()):
        print(f"{file:12} {count:5} changes, {survivors[file]:4} not noticed")  # noqa: T201


if __name__ == "__main__":
    main()
