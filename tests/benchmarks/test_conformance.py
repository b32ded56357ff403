"""How ``benchmarks.conformance`` asks many files, and counts the differences."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from scrapy.robotstxt import RobotParser

from benchmarks import conformance
from benchmarks._conformance import (
    RECORDED,
    Found,
    Reader,
    all_differences,
    ask,
    asked_of_rules,
    involving,
    long_name,
    recorded,
    tallies,
    tally_of_reader,
)
from scrapy_rep.cli.compare import find_parser
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.dialects import GOOGLE, RFC9309
from tests.rep.conformance_data import CONFORMANCE, CORPUS, VERDICTS

RULES = b"User-agent: *\nDisallow: /private/\nAllow: /private/open\n"
WILDCARDS = b"User-agent: *\nDisallow: /*.pdf\nDisallow: /%61\nAllow: /c/d\nDisallow: /c\n"


class Raising(RobotParser):
    """Raises when it is asked about a URL with "raise" in it."""

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Raising:
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "raise" in str(url):
            raise RuntimeError
        return False


class RaisingAtOnce(Raising):
    """Raises when it is to read a file."""

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> RaisingAtOnce:
        raise RuntimeError


def archive_of(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, body in members.items():
            file.writestr(name, body)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return archive_of(tmp_path / "corpus.zip", a=RULES, b=WILDCARDS, c=b"")


def asked_in_process(archive: Path, *readers: Reader) -> list[Found]:
    return [ask(readers, asked) for asked in asked_of_rules(archive, ["ExampleBot"])]


def write_recorded(archive: Path, lines: str) -> Path:
    answers = archive.with_name(RECORDED)
    answers.write_bytes(gzip.compress(lines.encode()))
    return answers


def test_without_recorded_answers_the_google_dialect_stands_for_them(archive: Path) -> None:
    found = asked_in_process(archive, GOOGLE, find_parser("urllib"))
    assert len(found) == 3
    google, urllib = (tally_of_reader(found, index) for index in range(2))
    assert google.files == 0
    # It has no wildcards.
    assert urllib.files == 1
    assert () not in tallies(found)


def test_recorded_answers(archive: Path) -> None:
    site = {
        "file": "b",
        "q": [["kind", "https://example.com/a", None], ["kind", "https://example.com/x.pdf", None]],
        "a": [["kind", "FooBot", None]],
        # The library does not give the second answer.
        "v": "11",
        "ml": [0, 0],
    }
    answers = write_recorded(archive, json.dumps(site) + "\n")
    found = [ask([GOOGLE, RFC9309], asked) for asked in recorded(archive, answers)]
    assert [(each.questions, each.google) for each in found] == [(2, 1)]
    point = involving(found, "percent-encoded unreserved characters")
    assert (point.files, point.answers, point.lines) == (1, 1, 0)
    assert all_differences(found) == point
    assert tally_of_reader(found, 0).questions == 1


def test_parsers_that_raise(tmp_path: Path) -> None:
    archive = archive_of(
        tmp_path / "corpus.zip", a=b"User-agent: *\nDisallow: /raise\n", b=WILDCARDS
    )
    found = asked_in_process(archive, Raising, RaisingAtOnce)
    questions = sum(each.questions for each in found)
    when_asked, at_once = (tally_of_reader(found, index) for index in range(2))
    # About some of the URLs of one file, and about all of both.
    assert 0 < when_asked.raised < questions
    assert at_once.raised == at_once.questions == questions
    assert at_once.files == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip", f"cannot read {{}}{RECORDED}: Not a gzipped file"),
        (gzip.compress(b"{}")[:-9], f"cannot read {{}}{RECORDED}: Compressed file ended"),
        (gzip.compress(b'{"file": "nowhere", "q": [], "a": [], "v": "", "ml": []}'), "no recorded"),
    ],
    ids=["no gzip", "cut", "another archive"],
)
def test_recorded_answers_that_cannot_be_used(content: bytes, message: str, archive: Path) -> None:
    answers = archive.with_name(RECORDED)
    answers.write_bytes(content)
    with pytest.raises(CommandError) as raised:
        list(recorded(archive, answers))
    assert message.format(f"{archive.parent}/") in str(raised.value)


def test_names_with_versions() -> None:
    assert long_name(find_parser("protego")).startswith("Protego ")
    assert long_name(find_parser("urllib")).startswith("urllib.robotparser of Python 3.")
    assert long_name(Raising) == "Raising"


@pytest.mark.once
def test_tables_of_any_archive(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["conformance", "--corpus", str(archive), "--generated", "0"]
    monkeypatch.setattr(sys, "argv", words)
    assert conformance.main() == 0
    shown = capsys.readouterr().out
    assert "In 3 real files" in shown
    assert "- percent-encoded unreserved characters" in shown


@pytest.mark.once
@pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason=f"the conformance data is not in {CONFORMANCE}"
)
def test_some_of_the_conformance_corpus() -> None:
    found = [
        ask([GOOGLE, RFC9309], asked)
        for number, asked in enumerate(recorded(CORPUS, VERDICTS))
        if number % 40 == 0
    ]
    # All of it makes the tables of docs/conformance/real-files.rst.
    assert sum(each.google for each in found) == 0
    assert sum(() in each.differences for each in found) == 0
    assert tally_of_reader(found, 0).questions == 0
    assert tally_of_reader(found, 1).files > 20
    assert involving(found, "percent-encoded unreserved characters").files > 20
