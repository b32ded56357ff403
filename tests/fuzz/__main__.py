"""Look for bytes that a target does not stand: ``python -m tests.fuzz robots-txt``.

It begins with the seeds of :mod:`.targets` and what earlier runs came upon, which is
kept in ``build/fuzz``. What is found is written there, too, and ``--replay FILE`` calls
the target with it once, for which atheris is not needed. The exit status is 0 where
nothing is found.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

_FOLDER = Path("build", "fuzz")
# Seconds for one input, on whatever machine: they take milliseconds.
_TIME_LIMIT = 25


def _targets() -> dict[str, Target]:
    # Here, because what atheris watches must not be imported before it says so.
    from tests.fuzz.targets import TARGETS

    return TARGETS


def _fuzz(name: str, seconds: int) -> None:
    """Call the target *name* with all bytes that come to mind; does not return."""
    import atheris

    with atheris.instrument_imports(include=["scrapy_rep"]):
        target = _targets()[name]
    corpus = _FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={target.longest}",
        f"-timeout={_TIME_LIMIT}",
        f"-artifact_prefix={corpus}-",
        "-print_final_stats=1",
    ]
    if target.words:
        words = _FOLDER / f"{name}.dict"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words), "ascii")
        options.append(f"-dict={words}")
    atheris.Setup([sys.argv[0], *options, str(corpus)], target.check)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def main() -> None:
    """Fuzz, or replay what was found."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", help="one of TARGETS in tests/fuzz/targets.py")
    parser.add_argument("--seconds", type=int, default=600, help="for how long (default: 600)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="call it with FILE, once")
    options = parser.parse_args()
    if options.replay is None:
        _fuzz(options.target, options.seconds)
    else:
        _targets()[options.target].check(options.replay.read_bytes())


if __name__ == "__main__":
    main()
