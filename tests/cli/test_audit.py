"""``scrapy robots audit verify``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.cli.running import from_json, robots, run_in_process
from tests.integration.crawling import Job, ok, pages, site
from tests.integration.evidence import settings


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the log and the archive of a crawl."""
    directory = tmp_path_factory.mktemp("evidence")
    with LoopbackServers() as servers:
        one = servers.serve(site(ok()))
        job = Job(pages(f"{one.url}/1", f"{one.url}/no"), "asyncio", settings(directory))
        assert job.run().outcome(f"{one.url}/no") == "refused"
    return directory


def test_all_lines_follow(evidence: Path) -> None:
    done = robots(evidence, "audit", "verify", "job.jsonl", ".")
    assert done.returncode == 0, done
    last = json.loads((evidence / "job.jsonl").read_text().splitlines()[-1])
    assert done.stdout.splitlines() == [
        "5 lines, 1 fetch, 2 decisions, 2 of them recomputed",
        f"all lines follow; the digest of the last line is {last['digest']}",
    ]
    # The file of the archive will do as well.
    [archive] = evidence.glob("*.warc.gz")
    done = robots(
        evidence, "audit", "verify", "job.jsonl", archive.name, "--json", "--digest", last["digest"]
    )
    assert from_json(done) == [
        {
            "problems": [],
            "lines": 5,
            "fetches": 1,
            "decisions": 2,
            "recomputed": 2,
            "digest": last["digest"],
        }
    ]


def test_lines_that_do_not_follow_are_named(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (evidence / "job.jsonl").read_text()
    changed = tmp_path / "changed.jsonl"
    changed.write_text(content.replace('"allowed":false', '"allowed":true'))
    arguments = ("audit", "verify", str(changed), str(evidence))
    assert run_in_process(*arguments) == 1
    shown = capsys.readouterr().out
    assert "was changed, or what stood before it" in shown
    assert "its verdict is" in shown
    assert "2 problems" in shown
    assert run_in_process(*arguments, "--json") == 1
    [problem, _] = json.loads(capsys.readouterr().out)["problems"]
    assert problem["line"] in (3, 4)


def test_another_digest(evidence: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(evidence / "job.jsonl")
    assert run_in_process("audit", "verify", log, str(evidence), "--digest", "ab") == 1
    assert capsys.readouterr().out.startswith("the digest of the last line is ")
    digest = json.loads(Path(log).read_text().splitlines()[-1])["digest"]
    assert run_in_process("audit", "verify", log, str(evidence), "--digest", digest.upper()) == 0
    capsys.readouterr()
    assert run_in_process("audit", "verify", log, "--json", "--digest", "ab") == 1
    assert [each["line"] for each in json.loads(capsys.readouterr().out)["problems"]] == [None]


def test_a_log_does_not_lead_out_of_the_directory(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside, inside = tmp_path / "outside.warc.gz", tmp_path / "archive"
    outside.write_bytes(b"")
    inside.mkdir()
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"archive_file": f"../{outside.name}"}) + "\n")
    assert run_in_process("audit", "verify", str(log), str(inside)) == 2
    assert f"{inside / outside.name}" in capsys.readouterr().err


def test_the_log_of_a_crawl_that_was_killed(
    evidence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = tmp_path / "half.jsonl"
    half.write_bytes((evidence / "job.jsonl").read_bytes()[:-10])
    assert run_in_process("audit", "verify", str(half)) == 1
    assert run_in_process("audit", "verify", str(half), "--unfinished") == 0
    assert "4 lines" not in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("log", ["", "[]\n", "{}\n", "\n"])
def test_files_that_are_not_there_or_name_no_archive(
    evidence: Path, tmp_path: Path, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_in_process("audit", "verify", str(tmp_path / "nothing"), str(evidence)) == 2
    other = tmp_path / "other.jsonl"
    other.write_text(log)
    assert run_in_process("audit", "verify", str(other), str(evidence)) == 2
    assert "names no archive" in capsys.readouterr().err
    assert run_in_process("audit", "verify", str(other)) == 1
