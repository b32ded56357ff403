"""``scrapy robots compare --corpus`` from start to end."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_rep.cli.compare.asking import plain
from scrapy_rep.cli.compare.corpus import (
    RECORDED,
    Found,
    Tally,
    all_differences,
    found_in,
    involving,
    made_up,
    recorded,
    tallies,
    tally_of_reader,
)
from scrapy_rep.cli.compare.parsers import Reader, long_name
from scrapy_rep.cli.compare.run import parsers_of
from scrapy_rep.cli.console import Printer, Style, table
from scrapy_rep.cli.ending import FINE, WRONG, Trouble, ended
from scrapy_rep.cli.progress import Progress
from scrapy_rep.cli.sources import Asking
from scrapy_rep.cli.wording import number
from scrapy_rep.rep.dialects import GOOGLE, RFC9309
from scrapy_rep.rep.differences import POINTS

# Whom files are asked about where nothing else is known.
_AGENT = "ExampleBot"
_WIDEST = 72


def run(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Compare all, and return the exit code. Raises :exc:`UsageError`."""
    readers: list[Reader] = [GOOGLE, RFC9309, *parsers_of(options)]
    return ended("scrapy robots compare", lambda: _compare(options, settings, readers))


def _compare(options: argparse.Namespace, settings: BaseSettings, readers: Sequence[Reader]) -> int:
    answers = options.corpus.with_name(RECORDED)
    if answers.exists():
        files, by = recorded(options.corpus, answers), f"as recorded in {answers}"
    else:
        agents = options.agent and Asking.of(options, settings).agents
        files, by = made_up(options.corpus, agents or [_AGENT]), "as the google dialect answers"
    progress = Progress()
    found = found_in(files, readers, lambda count: progress.show(f"{count:,} files"))
    progress.clear()
    if not found:
        raise Trouble(f"{answers} has no recorded answers")
    result = _as_json(found, readers) | {"reference": by}
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        _show(result, Printer(sys.stdout))
    differs = any(parser["questions"] for parser in result["parsers"])
    return WRONG if differs or all_differences(found).files else FINE


def _as_json(found: Sequence[Found], readers: Sequence[Reader]) -> dict[str, Any]:
    return {
        "files": len(found),
        "questions": sum(each.questions for each in found),
        "points": [
            {"point": plain(point.name), "rule": plain(point.rule)}
            | asdict(involving(found, point.name))
            for point in POINTS
        ],
        "all_differences": asdict(all_differences(found)),
        "without_explanation": asdict(tallies(found).get((), Tally())),
        "sets": [
            {"points": list(map(plain, points))} | asdict(tally)
            for points, tally in tallies(found).items()
            if len(points) > 1
        ],
        "parsers": [
            {"parser": long_name(reader)} | asdict(tally_of_reader(found, index))
            for index, reader in enumerate(readers)
        ],
    }


# -- for people --------------------------------------------------------------------


def _show(result: dict[str, Any], printer: Printer) -> None:
    counted = (number(result["files"], "file"), number(result["questions"], "question"))
    printer.line(", ".join(counted))
    counts = ("files", "answers", "lines")
    points = [[each["point"], *(each[key] for key in counts)] for each in result["points"]]
    for title, key in (
        ("all differences", "all_differences"),
        ("none of these", "without_explanation"),
    ):
        points.append([title, *(result[key][count] for count in counts)])
    _table(
        printer,
        "Differences of rfc9309 from google",
        ("point", "files", "answers", "lines only"),
        points,
    )
    sets = [["; ".join(each["points"]), each["files"]] for each in result["sets"]]
    if sets:
        _table(
            printer,
            "Differences for which several points are needed",
            ("points, none of which explains the difference alone", "files"),
            sets,
        )
    _table(
        printer,
        f"Files in which answers are not those of the reference library, {result['reference']}",
        ("parser", "files", "of files", "questions", "dialects agree", "plain", "raised"),
        [
            [
                each["parser"],
                each["files"],
                f"{100 * each['files'] / result['files']:.1f} %",
                each["questions"],
                each["both"],
                each["plain"],
                each["raised"],
            ]
            for each in result["parsers"]
        ],
    )


def _table(
    printer: Printer, title: str, header: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    printer.line()
    printer.line(printer.styled(title, Style.BOLD))
    texts = [[str(cell) for cell in row] for row in rows]
    for line in table(header, texts, widest=min(_WIDEST, printer.width or _WIDEST)):
        printer.line(line)
