"""``scrapy robots diff`` of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import robots, run_in_process

OLD = "User-agent: *\nDisallow: /private/\n"
NEW = "User-agent: *\nDisallow: /private\n\nUser-agent: GPTBot\nDisallow: /\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, content in (("old.txt", OLD), ("new.txt", NEW), ("same.txt", f"# new\n{OLD}")):
        (tmp_path / name).write_text(content)
    return [str(tmp_path / name) for name in ("old.txt", "new.txt", "same.txt")]


def test_what_changes_is_shown(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("https://example.com/privateer\n\n/private/1\nexample.com\n")
    done = robots(tmp_path, "diff", "old.txt", "new.txt", "--urls", "urls.txt", "--agent", "a")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "* lost access: 2 of 6 paths that were tried, such as /private, /privatex",
        "gptbot lost access: 3 of 5 paths that were tried, such as /, /9c1f3a7e, /x",
        "AI agents that are named now: gptbot",
        "1 of 3 URLs flip for a",
        "  now refused  https://example.com/privateer",
    ]


def test_a_change_of_comments_changes_nothing(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, same = files
    assert run_in_process("diff", old, same, "--fail-on-change") == 0
    assert capsys.readouterr().out.startswith("Nothing changes: only comments")
    assert run_in_process("diff", old, old, "--fail-on-change") == 0
    assert "the same file" in capsys.readouterr().out
    assert run_in_process("diff", old, new, "--fail-on-change") == 1


def test_the_lines_that_differ(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_process("diff", files[0], files[2], "--text") == 0
    assert "+# new" in capsys.readouterr().out.splitlines()


def from_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json_and_the_urls_of_an_audit_log(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "audit.jsonl"
    lines = ['{"type":"start"}', '{"type":"decision","url":"https://a/privateer"}', "{broken"]
    log.write_text("\n".join([*lines, lines[1]]))
    assert run_in_process("diff", *files[:2], "--urls", str(log), "--json") == 0
    found = from_json(capsys)
    assert found["urls"] == 1
    assert found["flips"] == [{"url": "https://a/privateer", "allowed": False}]
    assert found["ai_agents_added"] == ["gptbot"]
    assert found["changed"] is True
    assert [change["names"] for change in found["agents"]] == [["*"], ["gptbot"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing.txt", "nothing.txt"],
        ["nothing.txt"],
        ["https://example.com", "a", "b"],
        ["https://example.com", "1"],
        ["https://a..b"],
    ],
)
def test_what_cannot_be_compared(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_in_process("diff", *arguments) == 2
