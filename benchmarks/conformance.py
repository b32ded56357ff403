"""Where the google and rfc9309 dialects part, and why; what other parsers answer.

Every (file, URL, agent) of ../shared/conformance, and of generated files, is
asked in both dialects. Each difference is explained by the least that has to be
changed in google's reading to get the answer of rfc9309: one point of POINTS, or a
set of them none of which can be left out. Exits with 1 where no set does, or where
the google dialect differs from the reference library.

With --write, the tables go to docs/conformance-tables.inc. Takes two minutes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import random
import re
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser, RerpRobotParser

from scrapy_rep.rep.agents import preferences
from scrapy_rep.rep.dialects import GOOGLE, MIN_PARSED_SIZE, RFC9309
from scrapy_rep.rep.groups import groups_about
from scrapy_rep.rep.lines import Field
from scrapy_rep.rep.matching import RuleSet, line_of
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.urls import ROBOTS_TXT, InvalidURL, path_to_match

ROOT = Path(__file__).resolve().parents[1]
# The generator is one with that of the tests, which are in no package.
sys.path.insert(0, str(ROOT))

from tests.rep.generated_files import SEED_SIZE, generated  # noqa: E402

TABLES = ROOT / "docs" / "conformance-tables.inc"

# -- the points on which the two dialects differ -------------------------------------------


def _same(text: str) -> str:
    return text


_UNRESERVED = re.compile("%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")
_NOT_IN_URLS = re.compile("[\\x00- \"'<>\\[\\]\\\\^`{|}\\x7f]")


def _encoded(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"


def _decode_unreserved(text: str) -> str:
    return _UNRESERVED.sub(lambda match: chr(int(match.group(1), 16)), text)


def _encode_raw(text: str) -> str:
    return _NOT_IN_URLS.sub(_encoded, text)


def _encode_special_in_url(path: str) -> str:
    return re.sub("[*$]", _encoded, path)


def _encode_special_in_pattern(pattern: str) -> str:
    # Where it is the last, it is an anchor.
    return re.sub(r"\$(?!\Z)", _encoded, pattern)


def _upper_hex(path: str) -> str:
    return re.sub("%[0-9A-Fa-f]{2}", lambda match: match.group().upper(), path)


def _resolve_dots(path: str) -> str:
    """RFC 3986 §5.2.4."""
    path, mark, query = path.partition("?")
    output: list[str] = []
    segments = path.split("/")[1:]
    for number, segment in enumerate(segments, 1):
        if segment == "..":
            del output[-1:]
        elif segment != ".":
            output.append(segment)
        if number == len(segments) and segment in (".", ".."):
            output.append("")
    return "/" + "/".join(output) + mark + query


@dataclass(frozen=True, eq=False)
class Point:
    """One point: what it is, and how google's reading becomes that of rfc9309.

    *rule* is that of the standard. *fields* are those of the dialect; *url* and
    *pattern* what is done to a path and to a pattern, one character an octet;
    *begin* says where in a URL the path begins.
    """

    name: str
    rule: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    url: Callable[[str], str] = _same
    pattern: Callable[[str], str] = _same
    begin: bool = False
    refuse: bool = False


# Paths and patterns are changed in this order.
POINTS = (
    Point(
        "a URL that cannot be parsed",
        "§2.2.2: rules are about URIs; what is none is refused",
        refuse=True,
    ),
    Point(
        "where a path begins",
        "§2.2.2, RFC 3986 §3: a scheme and an authority, or a path; spaces around a URL, and tabs "
        "and line ends in it, are no part of it; ``\\`` is ``/``, as clients read it",
        begin=True,
    ),
    Point(
        "hexadecimal case",
        "§2.2.2, RFC 3986 §6.2.2.1: ``%c3`` is ``%C3``, in URLs too",
        url=_upper_hex,
    ),
    Point(
        "octets outside ASCII",
        "§2.2.2: percent-encoded before comparison, in URLs too",
        url=lambda path: re.sub("[\x80-\xff]", _encoded, path),
    ),
    Point(
        "characters that a URL cannot carry",
        "§2.2.2, RFC 3986 §2: space, quotes, ``<>[]{}|\\^``, backquote and controls are "
        "percent-encoded before comparison",
        url=_encode_raw,
        pattern=_encode_raw,
    ),
    Point(
        "percent-encoded unreserved characters",
        "§2.2.2, RFC 3986 §2.3: decoded before comparison",
        url=_decode_unreserved,
        pattern=_decode_unreserved,
    ),
    Point(
        "``%2A`` and ``%24``",
        "§2.2.3: stand for the characters ``*`` and ``$``, whichever form a URL has",
        url=_encode_special_in_url,
        pattern=_encode_special_in_pattern,
    ),
    Point("dot segments", "RFC 3986 §6.2.2.3: ``/a/../b`` is ``/b``", url=_resolve_dots),
    Point(
        "empty query",
        "RFC 3986 §6.2.3: what clients request for ``/a?`` is ``/a``",
        url=lambda path: re.sub(r"\A([^?]*)\?\Z", r"\1", path),
    ),
    Point(
        "``/robots.txt`` itself",
        "§2.2.2: implicitly allowed",
        {"robots_txt_allowed": True},
    ),
    Point(
        "digits in product tokens",
        "§2.2.1 has none; the default dialect keeps them: ``MJ12bot`` is not ``MJ``",
        {"digits_in_tokens": True},
    ),
    Point(
        "keys by prefix",
        "§2.2: ``Disallowed:`` is no key of the grammar, and §2.2.4: is ignored",
        {"keys_by_prefix": False},
    ),
    Point(
        "rules without a value",
        "§2.2, empty-pattern: matches nothing, so is no deciding line",
        {"empty_rules_match": False},
    ),
    Point(
        "NUL", "§2.3.1.5: parse what can be parsed; a NUL ends no line", {"nul_ends_line": False}
    ),
    Point("line length", "§2.5: a limit is one of the file; no line is cut", {"max_line": None}),
    Point(
        "file size",
        "§2.5: a limit of at least 500 KiB; ``google`` has none",
        {"max_size": MIN_PARSED_SIZE},
    ),
    Point("UTF-16", "§2.2.2: crawlers may bridge encodings other than UTF-8", {"utf16": True}),
)

#: Allowed or not, and the deciding line.
Answer = tuple[bool, int]


class Explainer:
    """Answers about one file with google's reading, but for some points."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.rule_set = cache(self._rule_set)
        self.path = cache(self._path)

    def answer(self, url: bytes, agent: str, points: Collection[Point]) -> Answer:
        """What google would answer, were it not for *points*."""
        path = self.path(url, tuple(p for p in points if _is_about_urls(p)))
        if path is None:
            return False, 0
        if path == ROBOTS_TXT and any("robots_txt_allowed" in point.fields for point in points):
            return True, 0
        rules = self.rule_set(agent, tuple(p for p in points if _is_about_rules(p)))
        weight = rules.decide(path)
        return weight & 1 == 1, line_of(weight)

    def _rule_set(self, agent: str, points: tuple[Point, ...]) -> RuleSet:
        fields = {key: value for point in points for key, value in point.fields.items()}
        dialect = replace(GOOGLE, **fields)
        body = RobotsTxt.parse(self._body, dialect).body
        _, groups = groups_about(body, dialect, preferences(agent))
        rules = [rule for group in groups for rule in group.rules]
        return RuleSet(
            [line for line, _, _ in rules],
            [_pattern(value, points) for _, _, value in rules],
            [field is Field.ALLOW for _, field, _ in rules],
            dialect,
        )

    def _path(self, url: bytes, points: tuple[Point, ...]) -> str | None:
        """The path of *url* in the form that is compared; ``None`` where it is refused."""
        if any(point.refuse for point in points) and not _is_url(url):
            return None
        if any(point.url is _encode_raw for point in points):
            # Or the path would end there.
            url = url.replace(b"\0", b"%00")
        begin = any(point.begin for point in points) and _is_url(url)
        path = _after_authority(url) if begin else path_to_match(url, GOOGLE)
        for point in points:
            path = point.url(path)
        return path

    def explain(self, url: bytes, agent: str, wanted: Answer, line: bool) -> tuple[str, ...]:
        """The least set of points with which the answer is *wanted*; none if there is none.

        Whether the deciding *line* counts, too.
        """

        def reached(points: Collection[Point]) -> bool:
            answer = self.answer(url, agent, points)
            return answer == wanted if line else answer[0] is wanted[0]

        for point in POINTS:
            if reached([point]):
                return (point.name,)
        points = list(POINTS)
        if not reached(points):
            return ()
        for point in POINTS:
            fewer = [each for each in points if each is not point]
            if reached(fewer):
                points = fewer
        return tuple(point.name for point in points)


def _is_about_urls(point: Point) -> bool:
    return point.url is not _same or point.begin or point.refuse


def _is_about_rules(point: Point) -> bool:
    return point.pattern is not _same or bool(point.fields)


def _pattern(value: bytes, points: Iterable[Point]) -> str:
    # What google does to patterns, robots.cc: MaybeEscapePattern.
    pattern = re.sub("[\x80-\xff]", _encoded, _upper_hex(value.decode("latin-1")))
    for point in points:
        pattern = point.pattern(pattern)
    return pattern


def _is_url(url: bytes) -> bool:
    try:
        path_to_match(url, RFC9309)
    except InvalidURL:
        return False
    return True


def _after_authority(url: bytes) -> str:
    text = url.decode("latin-1").strip("".join(map(chr, range(0x21))))
    text = re.sub("[\t\r\n]", "", text).partition("#")[0]
    text = re.sub(r"\A(?:[A-Za-z][A-Za-z0-9+.\-]*:)?[/\\]{2}[^/\\?]*", "", text)
    path, mark, query = text.partition("?")
    path = path.replace("\\", "/") + mark + query
    return path if path.startswith("/") else "/" + path


# -- counting ------------------------------------------------------------------------------


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
Differences = dict[tuple[str, ...], tuple[int, int]]


@dataclass
class Found:
    """What asking one file came to."""

    name: str
    questions: int = 0
    #: In which the google dialect differs from the reference library.
    google: int = 0
    differences: Differences = field(default_factory=dict)
    #: By parser: in how many questions it differs from the reference library;
    #: of those, where both dialects agree; where URL and agent are plain as well; and raised.
    parsers: dict[str, Counter[str]] = field(default_factory=dict)


class _Parser(Protocol):
    def allowed(self, url: str, user_agent: str, /) -> object: ...


# The others are asked as Scrapy asks them.
PARSERS: dict[str, Callable[[bytes], _Parser]] = {
    "scrapy-rep, ``google``": lambda body: RobotsTxt.parse(body, GOOGLE),
    "scrapy-rep, ``rfc9309``": lambda body: RobotsTxt.parse(body, RFC9309),
    "Protego": lambda body: ProtegoRobotParser(body, None),
    "urllib.robotparser": lambda body: PythonRobotParser(body, None),
    "robotexclusionrulesparser": lambda body: RerpRobotParser(body, None),
}
_VERSIONS = {
    "Protego": version("Protego"),
    "urllib.robotparser": f"of Python {sys.version_info.major}.{sys.version_info.minor}",
    "robotexclusionrulesparser": version("robotexclusionrulesparser"),
}
# A URL of which there is one spelling only.
_PLAIN_URL = re.compile(
    r"https://example\.com(/(?!robots\.txt)[A-Za-z0-9/_.\-]*)?(\?[A-Za-z0-9=&]+)?"
)


def ask(asked: Asked) -> Found:
    """Ask one file in all ways."""
    found = Found(asked.name)
    google, ours = RobotsTxt.parse(asked.body, GOOGLE), RobotsTxt.parse(asked.body, RFC9309)
    explainer = Explainer(asked.body)
    questions = [(url, agent) for url in asked.urls for agent in asked.agents]
    agreed = []
    for (url, agent), answer in zip(questions, asked.answers, strict=True):
        found.questions += 1
        verdicts = google.verdict(url, agent), ours.verdict(url, agent)
        by_google, by_ours = [(verdict.allowed, verdict.line) for verdict in verdicts]
        found.google += by_google != answer
        agreed.append(by_google[0] is by_ours[0])
        if by_google != by_ours:
            octets = url.encode() if isinstance(url, str) else url
            line_only = by_google[0] is by_ours[0]
            points = explainer.explain(octets, agent, by_ours, line_only)
            answers, lines = found.differences.get(points, (0, 0))
            found.differences[points] = (answers + (not line_only), lines + line_only)
    return found if isinstance(asked.urls[0], bytes) else _ask_parsers(asked, found, agreed)


def _ask_parsers(asked: Asked, found: Found, agreed: Sequence[bool]) -> Found:
    # They log what they cannot decode.
    logging.disable(logging.CRITICAL)
    questions = [(str(url), agent) for url in asked.urls for agent in asked.agents]
    for name, parse in PARSERS.items():
        counts = found.parsers[name] = Counter()
        try:
            parser = parse(asked.body)
        except Exception:
            counts["raised"] += len(questions)
            continue
        for (url, agent), (allowed, _), both in zip(questions, asked.answers, agreed, strict=True):
            try:
                if bool(parser.allowed(url, agent)) is allowed:
                    continue
            except Exception:
                counts["raised"] += 1
            counts["differs"] += 1
            counts["both"] += both
            plain = agent not in asked.cut and _PLAIN_URL.fullmatch(url)
            counts["plain"] += both and bool(plain)
    return found


def recorded(folder: Path) -> Iterator[Asked]:
    """The corpus and the recorded answers of the reference library."""
    with (
        zipfile.ZipFile(folder / "robots-corpus.zip") as corpus,
        gzip.open(folder / "reference-verdicts.jsonl.gz", "rt", encoding="utf-8") as lines,
    ):
        for line in lines:
            site = json.loads(line)
            # The last of three is set where the reference library needs another form.
            urls = [escaped or url for _, url, escaped in site["q"]]
            agents = [token or agent for _, agent, token in site["a"]]
            answers = [(v == "1", ml) for v, ml in zip(site["v"], site["ml"], strict=True)]
            cut = frozenset(token for kind, _, token in site["a"] if kind == "in_file_odd")
            yield Asked(site["file"], corpus.read(site["file"]), urls, agents, answers, cut)


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


def found_in(files: Iterable[Asked]) -> list[Found]:
    """What asking all of *files* came to."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(ask, files, chunksize=20))


# -- tables --------------------------------------------------------------------------------


def tallies(found: Iterable[Found]) -> dict[tuple[str, ...], Tally]:
    """By set of points, the most files first."""
    result: dict[tuple[str, ...], Tally] = {}
    for each in found:
        for points, (answers, lines) in each.differences.items():
            result.setdefault(points, Tally()).add(answers, lines)
    return dict(sorted(result.items(), key=lambda item: (-item[1].files, item[0])))


def _involving(found: Iterable[Found], name: str) -> Tally:
    """Differences for which the point *name* is needed, alone or with others."""
    tally = Tally()
    for each in found:
        counts = [count for points, count in each.differences.items() if name in points]
        if counts:
            tally.add(sum(answers for answers, _ in counts), sum(lines for _, lines in counts))
    return tally


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
        numbers = _numbers(_involving(corpus, point.name)) + _numbers(_involving(made, point.name))
        yield [point.name, point.rule, *numbers]
    yield ["all differences", "", *_totals(corpus), *_totals(made)]
    unexplained = [tallies(found).get((), Tally()) for found in (corpus, made)]
    yield ["none of these", "", *_numbers(unexplained[0]), *_numbers(unexplained[1])]


def _totals(found: Iterable[Found]) -> list[int]:
    differing = [each.differences.values() for each in found if each.differences]
    counts = [count for values in differing for count in values]
    return [len(differing), sum(a for a, _ in counts), sum(b for _, b in counts)]


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
    for name in PARSERS:
        counts = [each.parsers[name] for each in corpus]
        files, both, plain = (
            sum(count[what] > 0 for count in counts) for what in ("differs", "both", "plain")
        )
        questions, raised = (sum(count[what] for count in counts) for what in ("differs", "raised"))
        label = f"{name} {_VERSIONS.get(name, '')}".rstrip()
        yield [label, files, _share(files, corpus), questions, both, plain, raised]


def _share(files: int, corpus: Sequence[Found]) -> str:
    return f"{100 * files / len(corpus):.1f} %"


def report(corpus: list[Found], made: list[Found]) -> str:
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
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "conformance")
    parser.add_argument("--generated", type=int, default=5000, metavar="FILES")
    parser.add_argument("--write", action="store_true", help=f"write {TABLES.relative_to(ROOT)}")
    options = parser.parse_args()
    start = time.monotonic()
    corpus, made = found_in(recorded(options.corpus)), found_in(made_up(options.generated))
    text = report(corpus, made)
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
