"""``scrapy robots demo``, for real, in processes of its own: a reactor runs only once."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from scrapy_rep.cli.demo_sites import (
    DemoSite,
    Outcome,
    Served,
    demo_sites,
    says,
)
from scrapy_rep.cli.errors import PIPE_CLOSED
from scrapy_rep.cli.servers import Asked, Site
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from tests import forking
from tests.cli.running import Done, command, environment
from tests.conditions import HANGS
from tests.observers.report.pages import read

# A busy machine is not a site that never answers.
PATIENCE = "from scrapy_rep.cli import demo\ndemo._SETTINGS['REP_FETCH_TIMEOUT'] = 15\n"


def run_script(script: str, cwd: Path) -> Done:
    """Run *script*, which has ``demo``, ``hang`` and all of the sites module at hand."""
    prelude = "import sys\nfrom scrapy_rep.cli.demo_sites import *\n"
    return forking.run(run_source, PATIENCE + prelude + script, cwd=cwd)


def run_demo(cwd: Path, **changes: str) -> Done:
    """``scrapy robots demo``, with changes of the environment."""
    script = PATIENCE + "from tests.cli.running import *\nexecute_robots('demo')\n"
    return forking.run(run_source, script, cwd=cwd, env=environment(**changes))


def run_source(source: str) -> None:
    exec(source, {})


# -- all of it ------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run in an empty directory."""
    return run_demo(tmp_path_factory.mktemp("empty"))


def test_demo_ends_well(demo: Done) -> None:
    assert demo.stderr == ""
    assert demo.returncode == 0
    assert demo.stdout.splitlines()[-1].startswith("All as expected")


def test_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    script = "sys.exit(demo.run_demo(demo_sites()[:1], sys.stdout))"
    assert run_script(script, tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_demo_shows_progress_before_the_table(demo: Done) -> None:
    progress, table = demo.stdout.split("\nsite ")
    assert len(re.findall(r"^ +\d+\.\d s +\d+/24 ", progress, re.MULTILINE)) == 24
    for site in demo_sites():
        assert re.search(rf"fetched, \d refused  {site.name}$", progress, re.MULTILINE)
        assert re.search(rf"^{site.name} ", table, re.MULTILINE)


def test_demo_fits_a_terminal(demo: Done) -> None:
    assert max(map(len, demo.stdout.splitlines())) <= 120


# What must stand in the table: answer, meaning, fetched, refused, what decided.
ROWS = {
    "plain rules": "200, 71 B|rules apply|3|2|line 3: Disallow: /private/",
    "allow in disallow": "200, 52 B|rules apply|2|1|line 2: Disallow: /shop/",
    "wildcards": "200, 52 B|rules apply|3|2|line 2: Disallow: /*.pdf$",
    "own group": "200, 69 B|rules apply|2|1|line 5: Disallow: /drafts/",
    "group of others": "200, 53 B|no rule|2|0",
    "404": "404|allow all|2|0",
    "403": "403|allow all|2|0",
    "429": "429|allow all|2|0",
    "500": "500|refuse all|0|2|status 500",
    "redirect": "301, then 200, 32 B|rules apply|2|1|line 2: Disallow: /moved/",
    "redirect's target": "200, 32 B|rules apply|2|1|line 2: Disallow: /moved/",
    "redirect loop": "302, then 302, ...|allow all|2|0",
    "one port": "200, 30 B|rules apply|1|1|line 2: Disallow: /one/",
    "another port": "200, 30 B|rules apply|1|1|line 2: Disallow: /two/",
    "Latin-1": r"200, 31 B|rules apply|2|1|line 2: Disallow: /caf\xe9/",
    "UTF-16": "200, 64 B|rules apply|1|1|line 2: Disallow: /café/",
    "CR as line end": "200, 30 B|rules apply|1|1|line 2: Disallow: /old/",
    "empty file": "200, 0 B|no rule|2|0",
    "HTML page": "200, 56 B|no rule|2|0",
    "endless body": r"200, cut at 5\d\d KiB|rules apply|1|1|line 2: Disallow: /private/",
    "late rule": "200, cut at 5.. KiB|rules apply|2|1|line 2: Disallow: /private/",
    "gzip bomb": r"200 gzip, [\d,]+ B|rules apply|1|1|line 2: Disallow: /private/",
    "never answers": "no answer|refuse all|0|2|*",
    "closed port": "no answer|refuse all|0|2|*ConnectionRefused*",
}


def test_every_site_has_its_row_here() -> None:
    assert list(ROWS) == [site.name for site in demo_sites()]


@pytest.mark.parametrize("name", ROWS)
def test_row(demo: Done, name: str) -> None:
    table = demo.stdout.split("\nsite ")[1]
    (line,) = re.findall(rf"^{name}  .*$", table, re.MULTILINE)
    _, origin, *cells = re.split(r" {2,}", line)
    assert re.fullmatch(r"127\.0\.\d+\.\d+:\d+", origin)
    for cell, expected in zip(cells, ROWS[name].split("|"), strict=True):
        if "." in expected or r"\d" in expected:
            assert re.fullmatch(expected.replace("*", ".*"), cell) or cell == expected
        elif expected.startswith("*"):
            assert expected.strip("*") in cell
        else:
            assert cell == expected


def test_two_ports_of_one_host(demo: Done) -> None:
    hosts = re.findall(r"^(?:one|another) port +([\d.]+):\d+", demo.stdout, re.MULTILINE)
    assert len(hosts) == 2
    assert hosts[0] == hosts[1]


# -- in a project ---------------------------------------------------------------

ODD_SETTINGS = """
{first_line}
BOT_NAME = "odd"
SPIDER_MODULES = ["no.such.module"]
ADDONS = {{"no.such.Addon": 100}}
DOWNLOADER_MIDDLEWARES = {{
    "no.such.Middleware": 1,
    "scrapy_rep.RepMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": 100,
}}
ROBOTSTXT_OBEY = False
ROBOTSTXT_PARSER = "no.such.Parser"
REP_DIALECT = "klingon"
USER_AGENT = "OtherBot"
DOWNLOAD_DELAY = 60
CONCURRENT_REQUESTS = 1
HTTPCACHE_ENABLED = True
LOG_LEVEL = "DEBUG"
LOG_FILE = "odd.log"
TWISTED_REACTOR = "twisted.internet.selectreactor.SelectReactor"
"""


@pytest.mark.parametrize("first_line", ["", "from twisted.internet import reactor"])
@pytest.mark.once
def test_a_project_changes_nothing(demo: Done, tmp_path: Path, first_line: str) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = odd_settings\n")
    (tmp_path / "odd_settings.py").write_text(ODD_SETTINGS.format(first_line=first_line))
    # Nor does the environment: a proxy that does not exist.
    closed = "http://127.0.0.1:9"
    done = run_demo(tmp_path, http_proxy=closed, no_proxy="")
    assert done.stderr == ""
    assert done.returncode == 0
    assert not (tmp_path / "odd.log").exists()
    tables = [
        # Ports differ, addresses may, and so does the wording of what is no rule.
        re.findall(r"^(.*?)  127[\d.:]+ +(.*?)(?:, cut at .*?)?  (.*?\d  +\d+)(  line.*)?", table)
        for table in (demo.stdout, done.stdout)
    ]
    assert tables[0] == tables[1]


@pytest.mark.once
def test_where_this_machine_has_one_loopback_address(tmp_path: Path) -> None:
    # As on macOS: origins differ by port, and share one download slot.
    done = run_script(
        "from scrapy_rep.cli import servers\n"
        "servers._ADDRESSES = iter(())\n"
        "sys.exit(demo.run_demo(demo_sites(), sys.stdout))",
        tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert set(re.findall(r"http://([\d.]+):", done.stdout)) == {"127.0.0.1"}


# -- when something is wrong -----------------------------------------------------


def test_wrong_expectations_are_reported(tmp_path: Path) -> None:
    done = run_script(
        """
rules = says(b"User-agent: *\\nDisallow: /no\\n")
sites = [
    DemoSite("right", rules, allowed("/")),
    DemoSite("wrong", rules, {
        "/no": "",
        "/yes": "line 2: Disallow: /yes",
        "/nowhere": "line 3: Disallow: /no",
    }),
    DemoSite("mistaken for reachable", hang, allowed("/page")),
    DemoSite("forgotten hop", redirect("/other"), allowed("/")),
    DemoSite("hop that is none", http_response(404), allowed("/"), hops={"/hop": says(b"")}),
]
sys.exit(demo.run_demo(sites, sys.stdout))
""",
        tmp_path,
    )
    assert done.returncode == 1
    lines = [line.strip() for line in done.stdout.splitlines()]
    expected = [
        "wrong: /no: expected fetched, but refused (line 2: Disallow: /no)",
        "wrong: /yes: expected refused (line 2: Disallow: /yes), but fetched (status 200)",
        "wrong: /nowhere: expected refused (line 3: Disallow: /no), "
        "but refused (line 2: Disallow: /no)",
        "wrong: /no: expected once at the server, but it was asked for never",
        "wrong: /yes: expected never at the server, but it was asked for once",
        "mistaken for reachable: /page: expected fetched, but refused (unreachable (",
        "mistaken for reachable: /page: expected once at the server, but it was asked for never",
        "forgotten hop: /other: expected never at the server, but it was asked for once",
        "hop that is none: /hop: expected once at the server, but it was asked for never",
    ]
    listed = lines[lines.index(f"{len(expected)} not as expected:") + 1 :]
    for difference, start in zip(listed, expected, strict=True):
        assert difference.startswith(start)


def test_only_some_of_many_differences_are_listed(tmp_path: Path) -> None:
    done = run_script(
        """
pages = {f"/{number}": "line 2: Disallow: /" for number in range(40)}
sys.exit(demo.run_demo([DemoSite("open", says(b""), pages)], sys.stdout))
""",
        tmp_path,
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    # Each was fetched, and the server saw it.
    start = lines.index("80 not as expected:")
    listed = lines[start + 1 :]
    assert listed[-1] == f"  and {80 - len(listed[:-1])} more"
    assert all(line.startswith("  open: /") for line in listed[:-1])


def test_without_the_add_on_the_demo_fails(tmp_path: Path) -> None:
    done = run_script(
        "demo._SETTINGS['ADDONS'] = {}\nsys.exit(demo.run_demo(demo_sites()[:1], sys.stdout))",
        tmp_path,
    )
    assert done.returncode == 1
    assert (
        "plain rules: /private/page: expected refused (line 3: Disallow: /private/), "
        "but fetched (status 200)" in done.stdout
    )
    assert (
        "plain rules: /robots.txt: expected once at the server, but it was asked for never"
        in done.stdout
    )


def test_a_crawl_that_cannot_start_raises(tmp_path: Path) -> None:
    done = run_script(
        "demo._SETTINGS['REP_DIALECT'] = 'klingon'\n"
        "sys.exit(demo.run_demo(demo_sites()[:1], sys.stdout))",
        tmp_path,
    )
    assert done.returncode == 1
    assert "ConfigurationError: REP_DIALECT = 'klingon'" in done.stderr


def test_a_crawl_that_ends_early_is_reported(tmp_path: Path) -> None:
    done = run_script(
        "demo._SETTINGS['CLOSESPIDER_PAGECOUNT'] = 1\n"
        "demo._SETTINGS['CONCURRENT_REQUESTS'] = 1\n"
        "sys.exit(demo.run_demo(demo_sites()[:2], sys.stdout))",
        tmp_path,
    )
    assert done.returncode == 1
    assert "the crawl ended early: closespider_pagecount" in done.stdout
    assert "expected fetched, but failed (no outcome)" in done.stdout


@pytest.mark.once
def test_a_pipe_that_is_closed_early(tmp_path: Path) -> None:
    with start_demo(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(HANGS) == PIPE_CLOSED
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.once
def test_an_interrupt(tmp_path: Path) -> None:
    with start_demo(tmp_path) as process:
        assert process.stdout is not None
        assert any(b"1/24" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGS)
        assert (process.returncode, err) == (-signal.SIGINT, b"")


def start_demo(cwd: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("demo"), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_log_goes_to_standard_error_when_asked_for(tmp_path: Path) -> None:
    done = run_script(
        "sys.exit(demo.run_demo(demo_sites()[:1], sys.stdout, {'LOG_LEVEL': 'DEBUG'}))",
        tmp_path,
    )
    assert done.returncode == 0
    assert "Forbidden by robots.txt" in done.stderr
    assert "Forbidden by robots.txt" not in done.stdout


@pytest.mark.once
def test_a_report(tmp_path: Path) -> None:
    script = (
        PATIENCE + "from tests.cli.running import *\nexecute_robots('demo', '--report', '%.html')\n"
    )
    done = forking.run(run_source, script, cwd=tmp_path, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Report: %.html"
    page = read(tmp_path / "%.html")
    assert len(page.rows) == len(demo_sites())
    missing = script.replace("%.html", "missing/folder")
    (tmp_path / "missing").write_text("not a folder")
    done = forking.run(run_source, missing, cwd=tmp_path, env=environment())
    assert done.returncode == 2
    assert done.stderr.startswith("scrapy robots demo: error: ")


# -- what servers saw ------------------------------------------------------------


REFUSAL = Verdict(False, Reason.UNREACHABLE, detail="status 500")


def served(*targets: str, yes: Outcome = 200) -> Served:
    """A site with the right outcomes whose server was asked for *targets*."""
    server = Site("http", "127.0.0.1", 8000, [Asked("GET", target, {}, 0.0) for target in targets])
    site = DemoSite("site", says(b""), {"/yes": "", "/no": "unreachable"})
    return Served(site, server, {"/yes": yes, "/no": REFUSAL})


@pytest.mark.parametrize(
    ("targets", "difference"),
    [
        (["/yes", "/robots.txt"], None),
        (["/yes", "/robots.txt", "/robots.txt"], "/robots.txt: expected once .* 2 times"),
        (["/yes"], "/robots.txt: expected once .* never"),
        (["/robots.txt"], "/yes: expected once .* never"),
        (["/robots.txt", "/yes", "/yes"], "/yes: expected once .* 2 times"),
        (["/robots.txt", "/yes", "/no"], "/no: expected never .* once"),
        (["/robots.txt", "/yes", "/other"], "/other: expected never .* once"),
    ],
)
def test_what_the_server_saw_counts(targets: list[str], difference: str | None) -> None:
    differences = list(served(*targets).differences())
    if difference is None:
        assert differences == []
    else:
        (only,) = differences
        assert re.match(difference, only)


def test_a_page_that_fails_is_reported() -> None:
    site = served("/yes", "/robots.txt", yes="TimeoutError: 3 s")
    assert list(site.differences()) == ["/yes: expected fetched, but failed (TimeoutError: 3 s)"]
