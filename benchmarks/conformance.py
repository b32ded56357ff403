"""Where the google and rfc9309 dialects differ, and why; how other parsers answer.

Every (file, URL, agent) of ../shared/conformance, and of generated files, is asked in both
dialects. Each difference is explained by the least that has to be changed in google's
reading to get the answer of rfc9309: one point of POINTS, or a set of them none of which
can be left out. Exits with 1 where no set does, or where the google dialect differs from
the reference library.

--corpus names another ZIP archive of robots.txt files. If no reference-verdicts.jsonl.gz is
beside it, URLs are made from the rules of each file, and the google dialect stands for the
reference library. With --write, the tables go to docs/conformance/real-files-tables.inc. Takes two
minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks._conformance import (
    RECORDED,
    Asked,
    Found,
    Reader,
    Tally,
    all_differences,
    asked_of_rules,
    found_in,
    involving,
    long_name,
    recorded,
    tallies,
    tally_of_reader,
)
from scrapy_rep.cli.compare import find_parser
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.dialects import GOOGLE, RFC9309
from scrapy_rep.rep.rules.differences import POINTS
from tests.rep.generated_files import SEED_SIZE, generated

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "docs" / "conformance" / "real-files-tables.inc"

#: Those of the last table, and what they are called in it.
READERS: dict[str, Reader] = {
    "scrapy-rep, ``google``": GOOGLE,
    "scrapy-rep, ``rfc9309``": RFC9309,
} | {long_name(parser): parser for parser in map(find_parser, ("protego", "urllib", "rerp"))}

#: The rule of the standard for each point.
_RULES = {
    "a URL that cannot be parsed": "§2.2.2: rules are about URIs; anything else is refused",
    "where a path begins": (
        "§2.2.2, RFC 3986 §3: a scheme and an authority, or a path; spaces around a URL, and "
        "tabs and line ends in it, are not part of it; ``\\`` is ``/``, as clients read it"
    ),
    "hexadecimal case": "§2.2.2, RFC 3986 §6.2.2.1: ``%c3`` is ``%C3``, in URLs too",
    "bytes outside ASCII": "§2.2.2: percent-encoded before comparison, in URLs too",
    "characters that a URL cannot carry": (
        "§2.2.2, RFC 3986 §2: space, quotes, ``<>[]{}|\\^``, backquote and controls are "
        "percent-encoded before comparison"
    ),
    "percent-encoded unreserved characters": "§2.2.2, RFC 3986 §2.3: decoded before comparison",
    "``%2A`` and ``%24``": (
        "§2.2.3: stand for the characters ``*`` and ``$``, whichever form a URL has"
    ),
    "dot segments": "RFC 3986 §6.2.2.3: ``/a/../b`` is ``/b``",
    "``/robots.txt`` itself": "§2.2.2: implicitly allowed",
    "digits in product tokens": (
        "§2.2.1 has none; the default dialect keeps them: ``MJ12bot`` is not ``MJ``"
    ),
    "names without a character": (
        "§2.2.1: a product token has at least one; ``User-agent:`` without a value does not "
        "name a crawler"
    ),
    "keys by prefix": "§2.2: ``Disallowed:`` is not a key of the grammar, and is ignored (§2.2.4)",
    "rules without a value": "§2.2, empty-pattern: matches nothing, so it never decides",
    "NUL": "§2.3.1.5: parse what can be parsed; a NUL does not end a line",
    "line length": "§2.5: a limit is one of the file; no line is cut",
    "file size": "§2.5: a limit of at least 500 KiB; ``google`` has none",
    "UTF-16": "§2.2.2: crawlers may bridge encodings other than UTF-8",
}


# -- what is asked -------------------------------------------------------------------------


def made_up(count: int) -> Iterator[Asked]:
    """Generated files, and what the reference library answers."""
    from jwm.robotstxt import googlebot

    generator = random.Random(9309)
    for number in range(count):
        case = generated(generator.randbytes(SEED_SIZE))
        matcher = googlebot.RobotsMatcher()
        answers = []
        for url in case.urls:
            for agent in case.agents:
                allowed = matcher.OneAgentAllowedByRobots(case.body, agent, url)
                answers.append((allowed, matcher.matching_line()))
        yield Asked(str(number), case.body, case.urls, case.agents, answers)


# -- tables --------------------------------------------------------------------------------


def table(title: str, widths: str, rows: Iterable[Sequence[object]]) -> str:
    """A list-table of docutils; the first of *rows* is its head."""
    lines = [f".. list-table:: {title}", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in rows:
        cells = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]
        lines += [f"   {'* ' if not index else '  '}- {cell}" for index, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def _numbers(tally: Tally) -> list[int]:
    return [tally.files, tally.answers, tally.lines]


def _points_rows(corpus: list[Found], made: list[Found]) -> Iterator[Sequence[object]]:
    yield ["point", "rule of the standard", *(["files", "answers", "lines only"] * 2)]
    for point in POINTS:
        numbers = _numbers(involving(corpus, point.name)) + _numbers(involving(made, point.name))
        yield [point.name, _RULES[point.name], *numbers]
    totals = [_numbers(all_differences(found)) for found in (corpus, made)]
    yield ["all differences", "", *totals[0], *totals[1]]
    unexplained = [tallies(found).get((), Tally()) for found in (corpus, made)]
    yield ["none of these", "", *_numbers(unexplained[0]), *_numbers(unexplained[1])]


def _combined_rows(corpus: list[Found], made: list[Found]) -> Iterator[Sequence[object]]:
    yield ["points, none of which explains the difference alone", "corpus files", "generated files"]
    sets = {False: tallies(corpus), True: tallies(made)}
    together = {points: None for each in sets.values() for points in each if len(points) > 1}
    files = {
        points: [sets[which].get(points, Tally()).files for which in (False, True)]
        for points in together
    }
    ranked = sorted(files, key=lambda points: ([-n for n in files[points]], points))
    for points in ranked[:_MOST_COMBINED]:
        yield ["; ".join(points), *files[points]]
    if rest := ranked[_MOST_COMBINED:]:
        # A file may be in several of these.
        answers = [sum(files[points][which] for points in rest) for which in (0, 1)]
        yield [f"{len(rest):,} other sets (file and set)", *answers]


_MOST_COMBINED = 12


def _others_rows(corpus: list[Found]) -> Iterator[Sequence[object]]:
    yield [
        "parser",
        "files",
        "of files",
        "questions",
        "files, dialects agree",
        "of these, plain questions",
        "raised",
    ]
    for index, name in enumerate(READERS):
        counts = tally_of_reader(corpus, index)
        yield [
            name,
            counts.files,
            _share(counts.files, corpus),
            counts.questions,
            counts.both,
            counts.plain,
            counts.raised,
        ]


def _share(files: int, corpus: Sequence[Found]) -> str:
    return f"{100 * files / len(corpus):.1f} %"


def report(corpus: list[Found], made: list[Found], *, is_recorded: bool) -> str:
    """All tables."""
    questions, generated_questions = (sum(f.questions for f in found) for found in (corpus, made))
    right = questions - sum(each.google for each in corpus)
    generated_right = generated_questions - sum(each.google for each in made)
    head = (
        ".. Made by benchmarks/conformance.py --write; changed by hand, it is lost.\n\n"
        f"``google``: {right:,} of {questions:,} recorded answers and deciding lines, in "
        f"{len(corpus):,} real files, are those of the reference library, and {generated_right:,} "
        f"of {generated_questions:,} in {len(made):,} generated files.\n"
    )
    if not is_recorded:
        head = (
            f"In {len(corpus):,} real files ({questions:,} questions), the answers of ``google`` "
            "stand for those of the reference library.\n"
        )
    points = table(
        "Differences of ``rfc9309`` from ``google``: in real files, then in generated ones",
        "18 34 8 8 8 8 8 8",
        _points_rows(corpus, made),
    )
    combined = table(
        "Differences for which several points are needed", "60 20 20", _combined_rows(corpus, made)
    )
    others = table(
        "Real files in which a parser's answers are not those of the reference library",
        "28 10 10 14 14 12 12",
        _others_rows(corpus),
    )
    return "\n".join([head, points, combined, others])


def main() -> int:
    """Run all, print the tables; 1 if something has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = ROOT.parent / "shared" / "conformance" / "robots-corpus.zip"
    parser.add_argument("--corpus", type=Path, default=default, metavar="ZIP")
    parser.add_argument("--generated", type=int, default=5000, metavar="FILES")
    parser.add_argument("--write", action="store_true", help=f"write {TABLES.relative_to(ROOT)}")
    options = parser.parse_args()
    start = time.monotonic()
    answers = options.corpus.with_name(RECORDED)
    is_recorded = answers.exists()
    if options.write and not is_recorded:
        parser.error(f"--write needs the answers of the reference library: {answers}")
    try:
        files = recorded(options.corpus, answers)
        if not is_recorded:
            files = asked_of_rules(options.corpus, ["ExampleBot"])
        corpus = found_in(files, list(READERS.values()))
    except CommandError as error:
        parser.error(str(error))
    made = found_in(made_up(options.generated), [])
    text = report(corpus, made, is_recorded=is_recorded)
    print(text)  # noqa: T201
    if options.write:
        TABLES.write_text(text, encoding="utf-8")
    for each in [*corpus, *made]:
        if each.google or () in each.differences:
            print(f"without an explanation: {each}", file=sys.stderr)  # noqa: T201
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)  # noqa: T201
    return int(any(each.google or () in each.differences for each in [*corpus, *made]))


if __name__ == "__main__":
    sys.exit(main())
