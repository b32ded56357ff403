"""Many robots.txt files, read by several parsers, and how often the answers differ.

All answers are compared with those of Google's reference library. Where these are not
recorded, the answers of the ``google`` dialect stand for them.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import platform
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.robotstxt import RobotParser

from benchmarks._corpus import open_archive, paths_to_ask, read_members
from scrapy_rep.cli import compare
from scrapy_rep.cli.compare import PARSERS, short_name
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.dialects import GOOGLE, RFC9309, Dialect
from scrapy_rep.rep.rules.differences import Answer, GoogleReading
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

#: A dialect, or the parser of somebody else.
Reader = Dialect | type[RobotParser]

#: The file beside an archive that has what the reference library answers, if there is one.
RECORDED = "reference-verdicts.jsonl.gz"
# A URL of which there is one spelling only.
_PLAIN_URL = re.compile(
    r"https://example\.com(/(?!robots\.txt)[A-Za-z0-9/_.\-]*)?(\?[A-Za-z0-9=&]+)?"
)
_ORIGIN = "https://example.com"
_FILES_AT_ONCE = 20


class Asked(NamedTuple):
    """One file, and what it is asked."""

    name: str
    body: bytes
    urls: list[str] | list[bytes]
    agents: list[str]
    #: What the reference library answers.
    answers: list[Answer]
    #: Those of *agents* of which a part stands for the whole, as the library needs it.
    cut: frozenset[str] = frozenset()


#: By set of points: questions answered otherwise, and of those with another line only.
DifferenceCounts = dict[tuple[str, ...], tuple[int, int]]


@dataclass
class Found:
    """What asking one file came to."""

    name: str
    questions: int = 0
    #: In which the google dialect differs from the reference library.
    google: int = 0
    #: Of rfc9309 from google.
    differences: DifferenceCounts = field(default_factory=dict)
    #: For each reader: in how many questions it differs from the reference library;
    #: of those, where both dialects agree; where URL and agent are plain as well; and where
    #: it has raised.
    readers: list[Counter[str]] = field(default_factory=list)


# -- what is asked -----------------------------------------------------------------


def recorded(archive: Path, answers: Path) -> Iterator[Asked]:
    """The files of *archive*, and what the reference library answers, by *answers*.

    Those are JSON Lines, gzip-compressed, of an object for each member: ``file``, its
    name; ``q``, a list of triples of which the second is a URL, and the third
    another form of it that the library was asked for, if there is one; ``a``, the same
    for agents; ``v``, "1" or "0" for each pair, and ``ml``, the lines that decided. Raises
    :exc:`~scrapy_rep.cli.errors.CommandError`.
    """
    with open_archive(archive) as corpus:
        try:
            for site in _json_lines(answers):
                # The last of three is set where the reference library needs another form.
                urls = [escaped or url for _, url, escaped in site["q"]]
                agents = [token or agent for _, agent, token in site["a"]]
                each = [(v == "1", ml) for v, ml in zip(site["v"], site["ml"], strict=True)]
                cut = frozenset(token for kind, _, token in site["a"] if kind == "in_file_odd")
                yield Asked(site["file"], corpus.read(site["file"]), urls, agents, each, cut)
        except (KeyError, TypeError, ValueError) as error:
            raise CommandError(
                f"{answers} has no recorded answers about {archive}: {error}"
            ) from None


def _json_lines(path: Path) -> Iterator[Any]:
    """The values in *path*. Raises :exc:`ValueError` and :exc:`CommandError`."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except (EOFError, OSError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {path}: {why}") from None


def asked_of_rules(archive: Path, agents: Sequence[str]) -> Iterator[Asked]:
    """The files of *archive*, asked about URLs made from their own rules."""
    for member in read_members(archive):
        urls = [_ORIGIN + path for path in paths_to_ask(member)]
        google = RobotsTxt.parse(member.body, GOOGLE)
        verdicts = [google.verdict(url, agent) for url in urls for agent in agents]
        answers = [(verdict.allowed, verdict.line) for verdict in verdicts]
        yield Asked(member.name, member.body, urls, list(agents), answers)


# -- asking ------------------------------------------------------------------------


def found_in(files: Iterable[Asked], readers: Sequence[Reader]) -> list[Found]:
    """The results of asking all of *files*, by as many processes as there are processors."""
    # Parsers log what they cannot decode.
    silence = partial(logging.disable, logging.CRITICAL)
    with ProcessPoolExecutor(os.cpu_count(), initializer=silence) as pool:
        return list(pool.map(partial(ask, readers), files, chunksize=_FILES_AT_ONCE))


def ask(readers: Sequence[Reader], asked: Asked) -> Found:
    """Ask one file in all ways."""
    found = Found(asked.name)
    google, ours = RobotsTxt.parse(asked.body, GOOGLE), RobotsTxt.parse(asked.body, RFC9309)
    reading = GoogleReading(asked.body)
    questions = [(url, agent) for url in asked.urls for agent in asked.agents]
    agreed = []
    for (url, agent), answer in zip(questions, asked.answers, strict=True):
        found.questions += 1
        verdicts = google.verdict(url, agent), ours.verdict(url, agent)
        by_google, by_ours = [(verdict.allowed, verdict.line) for verdict in verdicts]
        found.google += by_google != answer
        agreed.append(by_google[0] is by_ours[0])
        if by_google != by_ours:
            data = url.encode() if isinstance(url, str) else url
            line_only = by_google[0] is by_ours[0]
            points = reading.explain(data, agent, by_ours, line_only)
            answers, lines = found.differences.get(points, (0, 0))
            found.differences[points] = (answers + (not line_only), lines + line_only)
    found.readers = [_counts(reader, asked, agreed) for reader in readers]
    return found


def _counts(reader: Reader, asked: Asked, agreed: Sequence[bool]) -> Counter[str]:
    counts: Counter[str] = Counter()
    questions = [(str(url), agent) for url in asked.urls for agent in asked.agents]
    try:
        answers = _read(reader, asked.body)
    except Exception:
        answers = None
    for (url, agent), (allowed, _), both in zip(questions, asked.answers, agreed, strict=True):
        said = _said(answers, url, agent)
        if said is allowed:
            continue
        counts["raised"] += said is None
        counts["differs"] += 1
        counts["both"] += both
        plain = agent not in asked.cut and _PLAIN_URL.fullmatch(url)
        counts["plain"] += both and bool(plain)
    return counts


def _said(answers: RobotsTxt | RobotParser | None, url: str, agent: str) -> bool | None:
    """The answer; ``None`` where a parser has raised, on the file or on this question."""
    if answers is None:
        return None
    try:
        return bool(answers.allowed(url, agent))
    except Exception:
        return None


def _read(reader: Reader, body: bytes) -> RobotsTxt | RobotParser:
    if isinstance(reader, Dialect):
        return RobotsTxt.parse(body, reader)
    return compare.read(reader, body)


def long_name(parser: type[RobotParser]) -> str:
    """The name of *parser* in a table, with its version where that is known."""
    _, distribution = PARSERS.get(short_name(parser), ("", ""))
    if distribution == "urllib.robotparser":
        major, minor, _ = platform.python_version_tuple()
        return f"{distribution} of Python {major}.{minor}"
    try:
        return f"{distribution} {version(distribution)}" if distribution else short_name(parser)
    except PackageNotFoundError:
        return distribution


# -- counting ----------------------------------------------------------------------


@dataclass
class Tally:
    """How many files and questions."""

    files: int = 0
    answers: int = 0
    lines: int = 0

    def add(self, answers: int, lines: int) -> None:
        """Count one file in which so many questions were answered otherwise."""
        self.files += 1
        self.answers += answers
        self.lines += lines


def tallies(found: Iterable[Found]) -> dict[tuple[str, ...], Tally]:
    """By set of points, the most files first."""
    result: dict[tuple[str, ...], Tally] = {}
    for each in found:
        for points, (answers, lines) in each.differences.items():
            result.setdefault(points, Tally()).add(answers, lines)
    return dict(sorted(result.items(), key=lambda item: (-item[1].files, item[0])))


def involving(found: Iterable[Found], name: str) -> Tally:
    """Differences for which the point *name* is needed, alone or with others."""
    return _tally(
        [count for points, count in each.differences.items() if name in points] for each in found
    )


def all_differences(found: Iterable[Found]) -> Tally:
    """Differences, whatever they are put down to."""
    return _tally(list(each.differences.values()) for each in found)


def _tally(of_files: Iterable[list[tuple[int, int]]]) -> Tally:
    tally = Tally()
    for counts in of_files:
        if counts:
            tally.add(sum(answers for answers, _ in counts), sum(lines for _, lines in counts))
    return tally


@dataclass(frozen=True, slots=True)
class ReaderTally:
    """Files in which one reader differs from the reference library, and questions.

    *both* and *plain* are files in which it does where both dialects agree, and where
    the question is a plain one as well; *raised* is questions, all of a file that the
    reader could not read, and they count as different answers.
    """

    files: int
    questions: int
    both: int
    plain: int
    raised: int


def tally_of_reader(found: Sequence[Found], index: int) -> ReaderTally:
    """What reader number *index* came to."""
    counts = [each.readers[index] for each in found]
    files, both, plain = (
        sum(count[what] > 0 for count in counts) for what in ("differs", "both", "plain")
    )
    questions, raised = (sum(count[what] for count in counts) for what in ("differs", "raised"))
    return ReaderTally(files, questions, both, plain, raised)
