"""``scrapy robots explain``, for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.cli.running import from_json, in_a_terminal, robots, run_in_process, type_in
from tests.cli.sites import RULES, serve_rules, serve_status

BODY = b"""\
User-agent: *
Disallow: /private/
Disallow: /private*x
Allow: /private/x
Disalow: /typo
\x1b[31mred

User-agent: Other
Disallow: /private
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_bytes(BODY)


def test_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("explain", "--file", "rules.txt", "--agent", "Bot", "/private/x") == 0
    top, _, file = capsys.readouterr().out.partition("\n\n")
    assert top.splitlines() == [
        "/private/x",
        "  answer      allowed to Bot",
        '  because     allowed by "Allow: /private/x" (line 4, group *) of robots.txt',
        "  robots.txt  rules.txt",
        "  dialect     rfc9309",
        "  compared    /private/x",
    ]
    assert file.splitlines() == [
        "  1  User-agent: *         about us",
        "  2  Disallow: /private/   matches, but 9 bytes is less than 10",
        "  3  Disallow: /private*x  matches, 10 bytes, but of equals the one that allows wins",
        "> 4  Allow: /private/x     decides: 10 bytes",
        "  5  Disalow: /typo        does not match",
        '                           warning: The misspelling "Disalow" counts as Disallow here, '
        "not everywhere.",
        r"  6  \x1b[31mred           warning: Text that is not a field with a value: the line is "
        "ignored.",
        "                           warning: The line has control characters, which count like "
        "others here, not everywhere.",
        "  7",
        "  8  User-agent: Other",
        "  9  Disallow: /private    would match, 8 bytes, but is about others",
    ]


def test_the_first_match(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "--file", "rules.txt", "--dialect", "koster1996", "--brief"]
    assert run_in_process(*words, "/private/x") == 1
    assert capsys.readouterr().out.partition("\n\n")[2].splitlines() == [
        "  1  User-agent: *        about us",
        "> 2  Disallow: /private/  decides: the first that matches",
        "  4  Allow: /private/x    matches, 10 bytes, but line 2 came first",
        "                          warning: This never decides: wherever it matches, line 2 "
        "wins, which says the opposite.",
        "  9  Disallow: /private   would match, 8 bytes, but is about others",
    ]


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "--file", "rules.txt", "--agent", "Bot", "--json"]
    assert run_in_process(*words, "example.com/private/%78") == 0
    value = json.loads(capsys.readouterr().out)
    lines = value.pop("lines")
    assert value == {
        "url": "https://example.com/private/%78",
        "agents": ["Bot"],
        "dialect": "rfc9309",
        "path": "/private/x",
        "allowed": True,
        "reason": "rule",
        "line": 4,
        "rule": "Allow: /private/x",
        "group": [{"name": "*", "line": 1}],
        "detail": "",
        "robots_txt": "rules.txt",
        "source": "file",
        "age": None,
        "access": None,
        "agent": "*",
        "groups": [[{"name": "*", "line": 1}]],
    }
    assert [(line["line"], line["fate"], line["length"]) for line in lines] == [
        (1, None, None),
        (2, "shorter", 9),
        (3, "tie", 10),
        (4, "decides", 10),
        (5, "no-match", 0),
        (6, None, None),
        (7, None, None),
        (8, None, None),
        (9, "other-group", 8),
    ]
    assert lines[5]["text"] == "\x1b[31mred"
    assert [finding["kind"] for finding in lines[4]["findings"]] == ["typo"]


def test_robots_txt_itself_and_no_url(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"User-agent: *\nDisallow: /\n")
    assert run_in_process("explain", "--file", "-", "/robots.txt") == 0
    shown = capsys.readouterr().out
    assert "matches, but robots.txt itself is always allowed" in shown
    assert "robots.txt  standard input" in shown
    assert run_in_process("explain", "--file", "rules.txt", "https://") == 2
    assert "because the URL has no robots.txt" in capsys.readouterr().out


@pytest.mark.once
def test_live(servers: LoopbackServers, tmp_path: Path) -> None:
    site, broken, none = (
        serve_rules(servers),
        serve_status(servers, 503),
        serve_status(servers, 404),
    )
    words = ["-s", "ROBOTSTXT_PARSER=scrapy.robotstxt.PythonRobotParser"]
    done = robots(tmp_path, "explain", "--agent", "ExampleBot", f"{site.url}/a.pdf", *words)
    assert (done.returncode, done.stderr) == (0, "")
    # It knows no wildcards.
    assert "because     allowed by another parser's reading" in done.stdout
    assert "by ours     refused; what follows is about this reading" in done.stdout
    assert "> 8  Disallow: /*.pdf$" in done.stdout
    assert f"{site.url}/robots.txt, status 200, fetched (0 s ago)" in done.stdout
    (value,) = from_json(robots(tmp_path, "explain", "--json", f"{broken.url}/"))
    assert (value["allowed"], value["reason"], value["lines"]) == (False, "unreachable", [])
    done = robots(tmp_path, "explain", f"{none.url}/")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)


@pytest.mark.once
def test_in_a_terminal(tmp_path: Path) -> None:
    Path("rules.txt").write_bytes(RULES)
    words = ["explain", "--file", "rules.txt", "/private/open"]
    code, shown = in_a_terminal(tmp_path, *words, NO_COLOR="")
    assert code == 0
    assert "> \x1b[2m3\x1b[0m  \x1b[32mAllow: /private/open" in shown
    assert "\x1b[31m.xml" not in shown
    _, plain = in_a_terminal(tmp_path, *words, NO_COLOR="1")
    assert "\x1b" not in plain


def test_what_is_not_read_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    body = b"User-agent: *\n" + b"#" * 80 + b"\nDisallow: /a\n" + b"# " * 256_000 + b"\nAllow: /a"
    Path("rules.txt").write_bytes(body)
    assert run_in_process("explain", "--file", "rules.txt", "/a") == 1
    *_, line, too_large, last = capsys.readouterr().out.splitlines()
    assert line.startswith("> 3  Disallow: /a")
    assert "error: The file is too large" in too_large
    assert last == "The rest of the file is not read (REP_MAX_SIZE)."
