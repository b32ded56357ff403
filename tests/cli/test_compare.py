"""``scrapy robots compare``, for real."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy.robotstxt import ProtegoRobotParser, RobotParser

from scrapy_rep.cli.compare import find_parser, short_name
from scrapy_rep.cli.servers import LoopbackServers
from tests.cli.running import from_json, in_a_terminal, robots, run_in_process, type_in
from tests.cli.sites import serve_rules, serve_status

BODY = b"User-agent: *\nDisallow: /*.pdf\nDisallow: /%61\nAllow: /c/d\nDisallow: /c\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_bytes(BODY)


class Raising(RobotParser):
    """Raises when it is asked about a URL with "raise" in it."""

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Raising:
        return cls()

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "raise" in str(url):
            raise RuntimeError("\x1b[31m")
        return False


class RaisingAtOnce(Raising):
    """Raises when it is to read a file."""

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> RaisingAtOnce:
        if robotstxt_body:
            raise RuntimeError("\x1b[31m")
        return cls()


THIS = f"{__name__}.Raising"


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the answers by URL."""
    code = run_in_process("compare", "--file", "rules.txt", "--json", *words)
    value = json.loads(capsys.readouterr().out)
    return code, {each["url"]: each["answers"] for each in value["urls"]}


# -- URLs --------------------------------------------------------------------------


def test_differences_and_their_classes(capsys: pytest.CaptureFixture[str]) -> None:
    code, answers = compared(capsys, "/same", "/x.pdf", "/a")
    assert code == 1
    # Where they differ comes first.
    assert list(answers) == ["/x.pdf", "/a", "/same"]
    assert list(answers["/same"]) == [
        "rfc9309",
        "google",
        "koster1996",
        "koster1994",
        "protego",
        "urllib",
    ]
    assert {said["allowed"] for said in answers["/same"].values()} == {True}
    pdf = answers["/x.pdf"]
    assert pdf["rfc9309"] == {
        "allowed": False,
        "line": 2,
        "reason": "rule",
        "class": None,
        "error": None,
    }
    assert (pdf["google"]["allowed"], pdf["google"]["line"]) == (False, 2)
    for name in ("koster1996", "koster1994", "urllib"):
        assert (pdf[name]["allowed"], pdf[name]["class"]) == (True, "wildcards")
    google = answers["/a"]["google"]
    assert (google["allowed"], google["class"]) == (True, "percent-encoded unreserved characters")


def test_where_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(capsys, "/same", "/c")[0] == 0


def test_a_parser_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, answers = compared(capsys, "--with", f"{THIS}, rerp", "/raise", "/other", "/other")
    assert code == 1
    assert answers["/raise"]["Raising"]["error"] == r"raised RuntimeError: \x1b[31m"
    assert answers["/raise"]["Raising"]["allowed"] is None
    assert answers["/other"]["Raising"]["class"] == "unknown"
    assert answers["/other"]["rerp"]["allowed"] is True


def test_a_parser_that_cannot_read_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    code, answers = compared(capsys, "--with", f"{THIS}AtOnce,protego", "/same", "/c")
    assert code == 0
    for said in answers.values():
        assert said["RaisingAtOnce"]["allowed"] is None
        assert said["RaisingAtOnce"]["error"] == r"raised RuntimeError: \x1b[31m"
        assert said["protego"]["allowed"] is said["rfc9309"]["allowed"]


def test_a_file_that_would_take_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rules.txt").write_bytes(b"User-agent: a\n" * 5000 + b"Disallow: /\n" * 50)
    code, answers = compared(capsys, "--agent", "a", "/")
    assert code == 0
    assert answers["/"]["protego"]["error"].startswith(
        "not asked: its estimated parsing cost is above"
    )


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--file", "rules.txt", "--agent", "Bot", "/same", "/x.pdf\x1b"]
    assert run_in_process(*words) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert [" ".join(line.split()) for line in shown.splitlines()] == [
        "product tokens: Bot",
        "",
        "rfc9309 google koster1996 koster1994 protego urllib url",
        "--------- --------- ---------- ---------- ------- ------- ---",
        "refused 2 refused 2 allowed allowed refused allowed " + r"/x.pdf\x1b",
        "koster1996: wildcards",
        "koster1994: wildcards",
        "urllib: wildcards",
        "allowed allowed allowed allowed allowed allowed /same",
        "",
        "1 of 2 differ",
    ]


def test_urls_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"example.com/same\n\nhttps://\n")
    code, answers = compared(capsys, "-")
    assert code == 2
    assert sorted(answers) == ["https://", "https://example.com/same"]


def test_no_urls_at_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"\n")
    assert run_in_process("compare", "--file", "rules.txt", "-") == 0
    assert capsys.readouterr().out == ""


def test_a_url_that_names_no_host(capsys: pytest.CaptureFixture[str]) -> None:
    # Nobody is asked, so nothing is fetched.
    assert run_in_process("compare", "--json", "https://") == 2
    (found,) = json.loads(capsys.readouterr().out)["urls"]
    said = found["answers"]["rfc9309"]
    assert (said["allowed"], said["reason"]) == (None, "invalid-url")
    assert said["error"]


@pytest.mark.parametrize("file", [(), ("--file", "rules.txt")])
def test_a_url_of_another_scheme(file: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("compare", "--json", *file, "s3://bucket/key") == 0
    (found,) = json.loads(capsys.readouterr().out)["urls"]
    assert found["answers"]["rfc9309"] == {
        "allowed": None,
        "line": None,
        "reason": "other-scheme",
        "class": None,
        "error": "no robots.txt for this scheme",
    }


@pytest.mark.once
def test_live(servers: LoopbackServers, tmp_path: Path) -> None:
    site, secret, broken = (
        serve_rules(servers),
        serve_status(servers, 403),
        serve_status(servers, 503),
    )
    words = ["--agent", "ExampleBot", "--json", f"{site.url}/docs/a.pdf", f"{secret.url}/a"]
    (value,) = from_json(robots(tmp_path, "compare", *words))
    answers = {each["url"]: each["answers"] for each in value["urls"]}
    assert value["agents"] == ["ExampleBot"]
    said = answers[f"{site.url}/docs/a.pdf"]
    assert said["google"]["class"] == "percent-encoded unreserved characters"
    said = answers[f"{secret.url}/a"]
    assert said["rfc9309"]["allowed"] is True
    assert said["koster1996"]["allowed"] is False
    assert said["koster1996"]["class"] == "what the answer to the request means"
    assert said["protego"]["error"] == "not asked: there is no file"
    # Each once, however many parsers read it.
    assert site.targets() == ["/robots.txt"]
    assert robots(tmp_path, "compare", broken.url).returncode == 2


@pytest.mark.once
def test_in_a_terminal(tmp_path: Path) -> None:
    words = ["compare", "--file", "rules.txt", "/x.pdf"]
    code, shown = in_a_terminal(tmp_path, *words, columns="100", NO_COLOR="")
    assert code == 1
    assert "\x1b[31mrefused 2\x1b[0m  refused 2" in shown
    # With fewer columns, one answer stands below the other.
    _, narrow = in_a_terminal(tmp_path, *words, columns="60", NO_COLOR="1")
    assert "\x1b" not in narrow
    assert "  koster1996  allowed       wildcards\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 60


# -- parsers -----------------------------------------------------------------------


def test_names_of_parsers() -> None:
    parser = find_parser("protego")
    assert parser is ProtegoRobotParser
    assert find_parser("robotexclusionrulesparser") is find_parser("rerp")
    assert find_parser("scrapy.robotstxt.ProtegoRobotParser") is parser
    assert [short_name(each) for each in (parser, Raising)] == ["protego", "Raising"]


def test_a_parser_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "robotexclusionrulesparser", None)
    with pytest.raises(ValueError, match="is robotexclusionrulesparser installed"):
        find_parser("rerp")
