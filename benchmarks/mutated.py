"""The google dialect against Google's library, over real files with something changed in them.

Each answer, and the line that decides, is compared for single agents, for the agent without
a name, and for lists of agents (``RobotsTxt.union_verdict``). What is different is printed.
Exits with 1 if something is. Takes some minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import zipfile
from collections import Counter
from pathlib import Path

from jwm.robotstxt import googlebot

from scrapy_rep.rep.dialects import GOOGLE
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

ROOT = Path(__file__).resolve().parents[1]
# The generator is one with that of the tests, which are in no package.
sys.path.insert(0, str(ROOT))

from tests.rep.mutated_files import Mutated, mutated  # noqa: E402

_CORPUS = ROOT.parent / "shared" / "conformance" / "robots-corpus.zip"
_MOST_SHOWN = 10


def compared(case: Mutated, counts: Counter[str]) -> list[str]:
    """What of *case* is answered otherwise than by the library; counts all comparisons."""
    robots = RobotsTxt.parse(case.body, GOOGLE)
    matcher = googlebot.RobotsMatcher()
    different = []
    for url in case.urls:
        for agent in case.agents:
            counts["one agent" if agent else "the empty agent"] += 1
            theirs = matcher.OneAgentAllowedByRobots(case.body, agent, url)
            verdict = robots.verdict(url, agent)
            ours = verdict.allowed, verdict.line, robots.allowed(url, agent)
            if ours != (theirs, matcher.matching_line(), theirs):
                different.append(f"{url!r} {agent!r}: {ours} {theirs} {matcher.matching_line()}")
            counts["decided by a rule"] += verdict.line > 0
            counts["refused"] += not verdict.allowed
        for agents in case.lists:
            counts["lists of agents"] += 1
            theirs = matcher.AllowedByRobots(case.body, agents, url)
            verdict = robots.union_verdict(url, agents)
            if (verdict.allowed, verdict.line) != (theirs, matcher.matching_line()):
                different.append(f"{url!r} {agents}: {verdict} {theirs} {matcher.matching_line()}")
            counts["decided by a rule"] += verdict.line > 0
            counts["refused"] += not verdict.allowed
    return different


def main() -> int:
    """Compare, and print counts; 1 if something is different."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, default=_CORPUS)
    parser.add_argument("--comparisons", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=9309)
    options = parser.parse_args()
    with zipfile.ZipFile(options.corpus) as archive:
        bodies = [archive.read(name) for name in sorted(archive.namelist())]
    generator = random.Random(options.seed)
    counts = Counter[str]()
    files = different = 0
    while sum(counts[kind] for kind in _KINDS) < options.comparisons:
        case = mutated(generator.choice(bodies), generator.choice(bodies), generator)
        files += 1
        for each in compared(case, counts):
            different += 1
            if different <= _MOST_SHOWN:
                print(f"file {files}: {each}\n  {case.body!r}"[:3000])  # noqa: T201
    total = sum(counts[kind] for kind in _KINDS)
    print(f"seed {options.seed}: {files:,} files, {total:,} comparisons, {different:,} different")  # noqa: T201
    for name, count in counts.items():
        print(f"  {name}: {count:,}")  # noqa: T201
    return int(different > 0)


_KINDS = ("one agent", "the empty agent", "lists of agents")


if __name__ == "__main__":
    sys.exit(main())
