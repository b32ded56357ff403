"""``scrapy robots check``, for real."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import Asked, LoopbackServers, hang, http_response
from tests.cli.running import (
    command,
    environment,
    from_json,
    in_a_terminal,
    robots,
    run_in_process,
    type_in,
)
from tests.cli.sites import RULES, serve_rules, serve_status
from tests.conditions import HANGS, wait_until
from tests.integration.crawl_process import SETUPS

# -- live --------------------------------------------------------------------------


@pytest.mark.once
def test_in_a_pipe(servers: LoopbackServers, tmp_path: Path) -> None:
    site, none = serve_rules(servers), serve_status(servers, 404)
    urls = [f"{site.url}/private/a", f"{site.url}/private/open", f"{site.url}/", f"{none.url}/a"]
    done = robots(tmp_path, "check", *urls, "-s", "USER_AGENT=OurBot/1.0")
    assert (done.returncode, done.stderr) == (1, "")
    header, _, *lines = done.stdout.splitlines()
    assert header.split() == ["answer", "line", "reason", "group", "source", "age", "url"]
    assert [" ".join(line.split()) for line in lines] == [
        f"refused 2 Disallow: /private/ * fetched 0 s {urls[0]}",
        f"allowed 3 Allow: /private/open * fetched 0 s {urls[1]}",
        f"allowed - no rule matches * fetched 0 s {urls[2]}",
        f"allowed - unavailable (status 404) - fetched 0 s {urls[3]}",
    ]
    # Each once, as a crawl would, and no page.
    assert site.targets() == none.targets() == ["/robots.txt"]
    assert site.asked[0].headers["user-agent"] == "OurBot/1.0"
    # Nothing is left behind where there was no store.
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_as_json_and_from_standard_input(servers: LoopbackServers, tmp_path: Path) -> None:
    site, broken = serve_rules(servers), serve_status(servers, 503)
    urls = [f"{site.url}/a.pdf", "", f"{broken.url}/", "https://", f"{site.url}/caf\xe9"]
    done = robots(
        tmp_path,
        "check",
        "-",
        "--json",
        "--agent",
        "Other",
        "--agent",
        "ExampleBot",
        types="\n".join(urls),
    )
    assert done.returncode == 2
    first, second, third, fourth = from_json(done)
    assert 0 <= first.pop("age") < 60
    assert first == {
        "url": f"{site.url}/a.pdf",
        "allowed": False,
        "reason": "rule",
        "line": 8,
        "rule": "Disallow: /*.pdf$",
        "group": [{"name": "ExampleBot", "line": 7}],
        "detail": "",
        "agents": ["Other", "ExampleBot"],
        "robots_txt": f"{site.url}/robots.txt",
        "source": "fetched",
        "access": "successful",
    }
    assert (second["allowed"], second["reason"]) == (False, "unreachable")
    assert second["detail"] == "status 503"
    assert (third["allowed"], third["reason"], third["url"]) == (False, "invalid-url", "https://")
    assert fourth["allowed"] is True


@pytest.mark.once
def test_exit_codes(servers: LoopbackServers, tmp_path: Path) -> None:
    site, broken = serve_rules(servers), serve_status(servers, 500)
    assert robots(tmp_path, "check", f"{site.url}/a").returncode == 0
    assert robots(tmp_path, "check", f"{site.url}/private/a").returncode == 1
    # That a robots.txt is missing weighs more than that another one refuses.
    urls = [f"{broken.url}/", f"{site.url}/private/a"]
    assert robots(tmp_path, "check", *urls).returncode == 2


PROJECT = """
ADDONS = {{"scrapy_rep.Addon": 500}}
SPIDER_MODULES = ["no.such.module"]
ITEM_PIPELINES = {{"no.such.Pipeline": 1}}
REP_STORE = "sqlite:///store.sqlite"
REP_AGENT_TOKENS = ["ExampleBot"]
DEFAULT_REQUEST_HEADERS = {{"User-Agent": "HeaderBot/2", "X-Ours": "yes"}}
{more}
"""


def project(path: Path, more: str = "") -> None:
    (path / "scrapy.cfg").write_text("[settings]\ndefault = our_settings\n")
    (path / "our_settings.py").write_text(PROJECT.format(more=more))


def test_in_a_project(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    site = serve_rules(servers)
    project(tmp_path, "\n".join(f"{name} = {value!r}" for name, value in SETUPS[loop].items()))
    done = robots(tmp_path, "check", "--json", f"{site.url}/a.pdf")
    assert done.returncode == 1
    assert json.loads(done.stdout)["agents"] == ["ExampleBot"]
    assert site.asked[0].headers["user-agent"] == "HeaderBot/2"
    assert site.asked[0].headers["x-ours"] == "yes"
    assert not (tmp_path / "store.sqlite").exists()


@pytest.mark.once
def test_a_project_that_has_installed_a_reactor(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    project(tmp_path, "import twisted.internet.selectreactor as s; s.install()")
    done = robots(tmp_path, "check", f"{site.url}/a.pdf")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.once
def test_what_is_in_the_store_is_used(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    project(tmp_path)
    assert robots(tmp_path, "cache", "refresh", site.url).returncode == 0
    (stored,) = from_json(robots(tmp_path, "check", "--json", f"{site.url}/a"))
    assert (stored["source"], len(site.asked)) == ("store", 1)
    (fetched,) = from_json(robots(tmp_path, "check", "--json", "--fresh", f"{site.url}/a"))
    assert (fetched["source"], len(site.asked)) == ("fetched", 2)


@pytest.mark.once
def test_directives_that_a_crawl_honours(servers: LoopbackServers, tmp_path: Path) -> None:
    # Hours from now, whenever that is.
    hours = "1800-1900" if time.gmtime().tm_hour < 12 else "0300-0400"
    record = f"Content-Signal: ai-train=no\nVisit-time: {hours}"
    site = serve_rules(servers, f"User-agent: *\nDisallow: /no\n{record}\n".encode())

    def check(**changes: str) -> tuple[bool, str, str | None]:
        options = [word for each in changes.items() for word in ("-s", "=".join(each))]
        (value,) = from_json(robots(tmp_path, "check", "--json", f"{site.url}/a", *options))
        return value["allowed"], value["reason"], value["rule"]

    assert check() == (True, "no-rule", None)
    refused = (False, "purpose", "Content-Signal: ai-train=no")
    assert check(REP_PURPOSES="ai-train") == refused
    assert check(REP_VISIT_TIME="refuse") == (False, "visit-time", None)
    assert check(REP_VISIT_TIME="wait", REP_MAX_WAIT="86400") == (True, "no-rule", None)
    done = robots(tmp_path, "explain", f"{site.url}/a", "-s", "REP_PURPOSES=ai-train")
    assert done.returncode == 1
    assert 'disallowed by "Content-Signal: ai-train=no" (line 3, group *)' in done.stdout
    assert "  by rules    allowed; " in done.stdout
    done = robots(tmp_path, "check", f"{site.url}/a", "-s", "REP_VISIT_TIME=refuse")
    assert "outside of the visit time (" in done.stdout


@pytest.mark.once
def test_origins_are_asked_at_the_same_time(servers: LoopbackServers, tmp_path: Path) -> None:
    asked = 0
    all_asked = asyncio.Event()

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 6:
            all_asked.set()
        # One after the other, none would ever be answered.
        await all_asked.wait()
        writer.write(http_response(200, RULES))

    sites = [servers.serve(answer) for _ in range(6)]
    done = robots(tmp_path, "check", *(site.url for site in sites))
    assert done.returncode == 0


@pytest.mark.once
def test_schemes_without_robots_txt(tmp_path: Path) -> None:
    done = robots(tmp_path, "check", "data:,x", "S3://bucket/key")
    assert (done.returncode, done.stderr) == (0, "")
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[2:]] == [
        "allowed - no robots.txt for this scheme - - - data:,x",
        "allowed - no robots.txt for this scheme - - - S3://bucket/key",
    ]
    (value,) = from_json(robots(tmp_path, "check", "--json", "about:blank"))
    assert (value["allowed"], value["reason"]) == (True, "other-scheme")


# -- from a file -------------------------------------------------------------------


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_bytes(RULES)


@pytest.mark.usefixtures("rules")
def test_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--file", "rules.txt", "--agent", "examplebot"]
    assert run_in_process(*words, "/docs/a.pdf", "https://b.example/b.pdf") == 1
    header, _, *lines = capsys.readouterr().out.splitlines()
    # There is no source and no age to tell of.
    assert header.split() == ["answer", "line", "reason", "group", "url"]
    assert [" ".join(line.split()) for line in lines] == [
        "allowed 9 Allow: /docs/%61.pdf ExampleBot /docs/a.pdf",
        "refused 8 Disallow: /*.pdf$ ExampleBot https://b.example/b.pdf",
    ]
    assert run_in_process(*words, "--dialect", "google", "/docs/a.pdf") == 1
    assert run_in_process(*words, "/docs/a.pdf") == 0


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("subcommand", ["check", "explain"])
def test_a_file_does_not_apply_to_other_schemes(
    subcommand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # By its path, it would be refused.
    assert run_in_process(subcommand, "--file", "rules.txt", "s3://bucket/private/a") == 0
    said = capsys.readouterr().out
    assert "allowed" in said
    # Nor does the line that is marked there decide.
    assert ("  by rules    refused; " in said) == (subcommand == "explain")


@pytest.mark.usefixtures("rules")
def test_rules_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"User-agent: *\nDisallow: /\x1b[31m\n")
    assert run_in_process("check", "--file", "-", "/\x1b[31m") == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"Disallow: /\x1b[31m" in shown
    assert shown.endswith("/\\x1b[31m\n")


@pytest.mark.once
def test_many_urls_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_bytes(RULES)
    with (tmp_path / "urls.txt").open("wb") as urls:
        for number in range(25_000):
            urls.write(b"https://host%d.example/private/%d\xff\n" % (number % 7, number))
    with (tmp_path / "urls.txt").open("rb") as urls:
        done = subprocess.run(
            command("check", "--file", "rules.txt", "--json", "-"),
            cwd=tmp_path,
            stdin=urls,
            capture_output=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"")
    lines = done.stdout.splitlines()
    assert len(lines) == 25_000
    last = json.loads(lines[-1])
    assert (last["line"], last["url"]) == (2, "https://host2.example/private/24999%FF")


# -- in a terminal ------------------------------------------------------------------


@pytest.mark.once
def test_in_a_terminal(servers: LoopbackServers, tmp_path: Path) -> None:
    site = serve_rules(servers)
    urls = [f"{site.url}/private/{'a' * 100}", f"{site.url}/b"]
    code, shown = in_a_terminal(tmp_path, "check", *urls, NO_COLOR="")
    assert code == 1
    # What all rows share is written once, and the URL is shortened in its middle.
    assert re.search(rf"for all: group \*, source fetched, age \d+ s, {site.url}\n", shown)
    assert "\x1b[31mrefused\x1b[0m     2  Disallow: /pr...  /private/" in shown
    assert re.search(r"/private/a+\.\.\.a+\n", shown)
    assert "\x1b[32mallowed\x1b[0m" in shown
    _, plain = in_a_terminal(tmp_path, "check", *urls, columns="100", NO_COLOR="1")
    assert "\x1b" not in plain
    table = plain[plain.index("answer") :].splitlines()
    assert max(map(len, table)) == 100
    _, as_json = in_a_terminal(tmp_path, "check", "--json", urls[1], NO_COLOR="")
    assert json.loads(as_json.splitlines()[-1])["url"] == urls[1]


@pytest.mark.once
def test_a_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    (tmp_path / "rules.txt").write_bytes(RULES)
    (tmp_path / "urls.txt").write_bytes(b"https://a.example/private/\n" * 60_000)
    ours, theirs = pty.openpty()
    with (tmp_path / "urls.txt").open("rb") as urls, (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            command("check", "--file", "rules.txt", "-"),
            cwd=tmp_path,
            env=environment(TERM="xterm"),
            stdin=urls,
            stdout=out,
            stderr=theirs,
        )
        assert process.wait(HANGS) == 1
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "[####" in shown
    assert "0,000 URLs" in shown
    assert len((tmp_path / "out").read_bytes().splitlines()) == 60_000 + 2


# -- the end ---------------------------------------------------------------------------


@pytest.mark.once
def test_a_pipe_that_is_closed_early(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_bytes(RULES)
    (tmp_path / "urls.txt").write_bytes(b"https://a.example/\n" * 30_000)
    with (tmp_path / "urls.txt").open("rb") as urls:
        process = subprocess.Popen(
            command("check", "--file", "rules.txt", "-"),
            cwd=tmp_path,
            stdin=urls,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    # What a shell makes of SIGPIPE.
    assert process.wait(HANGS) == 141


def test_an_interrupt(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    site = servers.serve(hang)
    project(tmp_path, "\n".join(f"{name} = {value!r}" for name, value in SETUPS[loop].items()))
    process = subprocess.Popen(
        command("check", site.url, "-s", "REP_FETCH_TIMEOUT=60", "--nolog"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: bool(site.asked))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")
