"""``scrapy robots lint``, for real."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from scrapy_rep.rep.lint.findings import FindingKind
from tests.cli.running import from_json, in_a_terminal, robots, run_in_process, type_in
from tests.cli.sites import serve_rules, serve_status

BODY = b"User-agent: *\nDisalow: /a\nDisallow: a\nNoindex: /\n\x1b[31m\n"
NOTES = b"User-agent: *\nDisallow: /a\nDisallow: /a\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a b.txt").write_bytes(BODY)
    Path("notes.txt").write_bytes(NOTES)


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("lint", "a b.txt") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(": [A-Z].* ", " ", line) for line in lines] == [
        "a b.txt:2: warning [typo]",
        "a b.txt:3: error [never-matches]",
        "a b.txt:4: note [no-longer-used]",
        "a b.txt:5: warning [no-field]",
        "a b.txt:5: warning [control-character]",
        "1 error, 3 warnings, 1 note in 5 lines (rfc9309)",
    ]
    # Notes are nothing to fail for.
    assert run_in_process("lint", "notes.txt") == 0
    assert capsys.readouterr().out.splitlines() == [
        "notes.txt:3: note: Line 2 is the same rule. [duplicate]",
        "0 errors, 0 warnings, 1 note in 3 lines (rfc9309)",
    ]
    assert run_in_process("lint", "--all", "notes.txt") == 0
    assert 'notes.txt:2: ok: The rule "Disallow: /a". [rule]' in capsys.readouterr().out


def test_standard_input_and_dialects(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"User-agent: *\nDisalow: /a\n")
    assert run_in_process("lint", "--dialect", "koster1996", "-") == 1
    shown = capsys.readouterr().out
    assert 'standard input:2: warning: The field "Disalow" is unknown' in shown


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--json"], ["--format", "json"]):
        assert run_in_process("lint", *words, "a b.txt") == 1
        value = json.loads(capsys.readouterr().out)
        findings = value.pop("findings")
        assert value == {
            "name": "a b.txt",
            "dialect": "rfc9309",
            "lines": 5,
            "summary": {"error": 1, "warning": 3, "note": 1, "ok": 4},
        }
        assert findings[1] == {
            "line": 3,
            "kind": "never-matches",
            "severity": "error",
            "sentence": FindingKind.NEVER_MATCHES.template,
        }


def sarif(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    run_in_process("lint", "--format", "sarif", name)
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    log = sarif("a b.txt", capsys)
    # SARIF 2.1.0, §3.13: what a log must have.
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "scrapy-rep"
    rules = driver["rules"]
    assert [rule["id"] for rule in rules] == [kind.value for kind in FindingKind]
    for rule in rules:
        # §3.49: texts are messages; §3.50.3: levels are four.
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note", "none")
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("typo", "warning"),
        ("never-matches", "error"),
        ("no-longer-used", "note"),
        ("no-field", "warning"),
        ("control-character", "warning"),
    ]
    for result, line in zip(run["results"], (2, 3, 4, 5, 5), strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        # A relative URI reference: §3.4.3.
        assert physical["artifactLocation"] == {"uri": "a%20b.txt", "index": 0}
        assert physical["region"] == {"startLine": line}
    assert run["artifacts"] == [{"location": {"uri": "a%20b.txt"}}]


def test_sarif_of_other_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Path("empty.txt").write_bytes(b"")
    assert sarif("empty.txt", capsys)["runs"][0]["results"] == []
    path = str(tmp_path / "notes.txt")
    (result,) = sarif(path, capsys)["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == Path(path).as_uri()


@pytest.mark.once
def test_live(servers: LoopbackServers, tmp_path: Path) -> None:
    site, none = serve_rules(servers, BODY), serve_status(servers, 404)
    done = robots(tmp_path, "lint", f"{site.url}/any/page")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"{site.url}/robots.txt:2: warning: ")
    (value,) = from_json(robots(tmp_path, "lint", "--json", site.url))
    assert value["name"] == f"{site.url}/robots.txt"
    (run,) = json.loads(robots(tmp_path, "lint", "--format", "sarif", site.url).stdout)["runs"]
    assert run["artifacts"] == [{"location": {"uri": f"{site.url}/robots.txt"}}]
    done = robots(tmp_path, "lint", none.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"scrapy robots lint: error: cannot lint {none.url}/robots.txt: it is unavailable "
        "(status 404)\n"
    )


@pytest.mark.once
def test_in_a_terminal(tmp_path: Path) -> None:
    code, shown = in_a_terminal(tmp_path, "lint", "a b.txt", NO_COLOR="")
    assert code == 1
    assert "a b.txt:3: \x1b[31merror\x1b[0m: " in shown
    assert "\x1b" not in in_a_terminal(tmp_path, "lint", "a b.txt", NO_COLOR="1")[1]
