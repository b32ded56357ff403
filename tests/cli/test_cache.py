"""``scrapy robots cache``, for real: processes, files, servers, pipes and terminals."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import Asked, LoopbackServers, http_response
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.sqlite import SqliteStore
from tests.cli.running import Done, command, environment, from_json, in_a_terminal, robots
from tests.cli.stored import DEFAULT, HOSTILE, RULES, copied, examples, failing, fill
from tests.conditions import HANGS
from tests.integration.crawl_process import SETUPS
from tests.stores.examples import HOUR, is_whole
from tests.stores.examples import run as run_now
from tests.stores.redis_server import RedisServer


def cache(cwd: Path, *arguments: str, **changes: str) -> Done:
    """``scrapy robots cache`` in a pipe."""
    return robots(cwd, "cache", *arguments, **changes)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A directory with all examples in the store of a crawl there."""
    fill(tmp_path / DEFAULT, *examples(time.time()).values())
    return tmp_path


# -- path -----------------------------------------------------------------------


def test_path_outside_a_project(tmp_path: Path) -> None:
    done = cache(tmp_path, "path")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / DEFAULT}\n"
    assert from_json(cache(tmp_path, "path", "--json")) == [{"path": str(tmp_path / DEFAULT)}]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_path_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = some_settings\n")
    (tmp_path / "some_settings.py").write_text("")
    below = tmp_path / "below"
    below.mkdir()
    assert cache(below, "path").stdout == f"{tmp_path / DEFAULT}\n"
    (tmp_path / "some_settings.py").write_text("REP_STORE = 'sqlite:////a/b.sqlite'")
    assert cache(below, "path").stdout == "/a/b.sqlite\n"
    assert cache(below, "path", "-s", "REP_STORE=sqlite:///c.sqlite").stdout == (
        f"{below / 'c.sqlite'}\n"
    )


@pytest.mark.once
def test_a_store_in_memory(tmp_path: Path) -> None:
    for words in (["path"], ["list"], ["show", "a.example"], ["refresh", "a.example"]):
        done = cache(tmp_path, *words, "-s", "REP_STORE=memory")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"scrapy robots cache {words[0]}: error: REP_STORE = 'memory': nothing is stored when "
            "a crawl has ended\n"
        )


# -- what is wrong --------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: <subcommand>"),
        ("frobnicate", "frobnicate"),
        ("show", "scrapy robots cache show: error: the following arguments are required: ORIGIN"),
        ("show a.example b.example", "unrecognized argument: 'b.example'"),
        ("list --yes", "unrecognized argument: '--yes'"),
        ("show mailto://a", "'mailto://a' is not an http, https or ftp URL"),
        ("show https://", "no origin"),
        ("clear", "add --yes"),
        ("list -s REP_STORE=nowhere", "REP_STORE = 'nowhere': accepted: memory; sqlite"),
        ("list -s REP_DIALECT=klingon", "REP_DIALECT = 'klingon': accepted"),
    ],
)
def test_errors(words: str, message: str, tmp_path: Path) -> None:
    done = cache(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_without_a_store_nothing_is_known_and_no_file_is_created(tmp_path: Path) -> None:
    listed = cache(tmp_path, "list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr == f"Nothing is cached: {tmp_path / DEFAULT}\n"
    assert from_json(cache(tmp_path, "list", "--json")) == []
    shown = cache(tmp_path, "show", "a.example")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == "Not cached: https://a.example\n"
    assert from_json(cache(tmp_path, "clear", "--yes", "--json")) == [{"deleted": 0}]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
@pytest.mark.parametrize("words", ["list", "show a.example", "clear --yes", "refresh a.example"])
def test_a_store_that_does_not_work(words: str, tmp_path: Path) -> None:
    (tmp_path / DEFAULT).mkdir(parents=True)
    done = cache(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"scrapy robots cache {words.split()[0]}: error: {tmp_path / DEFAULT}: ")
    # What crawls does not start.
    crawls = words.startswith("refresh")
    said = "not a store of scrapy-rep" if crawls else "unable to open database file: let this user"
    assert said in last
    assert "Traceback" not in done.stderr


@pytest.mark.once
@pytest.mark.parametrize("content", [b"this is no database" * 1000, b""])
def test_a_file_that_is_not_a_store_is_left_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    done = cache(tmp_path, "list", "-s", "REP_STORE=sqlite:///notes.txt")
    assert done.returncode == (2 if content else 0)
    said = "this is not a store of scrapy-rep" if content else "Nothing is cached"
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_bytes() == content


@pytest.mark.once
def test_a_damaged_file_is_reported(filled: Path) -> None:
    with (filled / DEFAULT).open("r+b") as file:
        # All pages but the first.
        file.seek(4096)
        file.write(b"\xff" * (filled / DEFAULT).stat().st_size)
    damaged = (filled / DEFAULT).read_bytes()
    done = cache(filled, "list")
    assert done.returncode == 2
    assert "database disk image is malformed: the file is damaged; a crawl would" in done.stderr
    assert (filled / DEFAULT).read_bytes() == damaged


# -- list -----------------------------------------------------------------------


def test_list_in_a_pipe(filled: Path) -> None:
    done = cache(filled, "list")
    assert (done.returncode, done.stderr) == (0, "")
    header, _, *lines = done.stdout.splitlines()
    assert header.split() == ["origin", "freshness", "access", "status", "age", "left", "bytes"]
    # But for times, which go on while the tests run.
    assert [" ".join(line.split()) for line in lines if "stale" in line or "fresh" in line] == [
        "https://fresh.example fresh successful 200 60 min 23 h 34",
        "https://stale.example stale - 200 3 d 0 s 34",
    ]
    assert [line.split()[:4] for line in lines] == [
        ["https://due.example", "due", "successful", "200"],
        ["https://fresh.example", "fresh", "successful", "200"],
        ["http://gone.example:8080", "given", "up", "unavailable"],
        ["https://outage.example", "outage", "successful", "503"],
        ["https://refused.example", "refused", "unreachable", "503"],
        ["https://stale.example", "stale", "-", "200"],
    ]
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert "\x1b" not in done.stdout


@pytest.mark.once
def test_list_as_json(filled: Path) -> None:
    objects = from_json(cache(filled, "list", "--json"))
    assert [value["freshness"] for value in objects] == [
        "due",
        "fresh",
        "given up",
        "outage",
        "refused",
        "stale",
    ]
    fresh = objects[1]
    assert HOUR <= fresh.pop("age") < HOUR + 60
    assert 23 * HOUR - 60 < fresh.pop("left") <= 23 * HOUR
    assert fresh == {
        "origin": "https://fresh.example",
        "freshness": "fresh",
        "access": "successful",
        "status": 200,
        "bytes": len(RULES),
    }
    assert objects[5]["access"] is None
    assert objects[4]["bytes"] is None


@pytest.mark.once
def test_list_follows_the_settings(filled: Path) -> None:
    words = ["list", "--json", "-s", "REP_MAX_AGE=600", "-s", "REP_UNREACHABLE_GRACE=600"]
    by_origin = {value["origin"]: value["freshness"] for value in from_json(cache(filled, *words))}
    assert by_origin["https://fresh.example"] == "stale"
    assert by_origin["https://refused.example"] == "given up"


@pytest.mark.once
def test_a_pipe_that_is_closed_early(filled: Path) -> None:
    now = time.time()
    fill(filled / DEFAULT, *(copied(f"https://{i}.example", now) for i in range(3000)))
    process = subprocess.Popen(
        command("cache", "list"), cwd=filled, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    # What a shell makes of SIGPIPE.
    assert process.wait(HANGS) == 141


# -- show -----------------------------------------------------------------------


@pytest.mark.once
def test_show_in_a_pipe(tmp_path: Path) -> None:
    now = time.time()
    headers = (("cache-control", "max-age=7200"), ("etag", '"\x1bv1"'))
    entry = copied("https://a.example", now - HOUR, HOSTILE, headers=headers)
    fill(tmp_path / DEFAULT, failing(entry, now - 600, now - 10, 3))
    done = cache(tmp_path, "show", "a.example")
    assert (done.returncode, done.stderr) == (0, "")
    top, _, file = done.stdout.partition("\n\n")
    fields = [re.split(r" {2,}", line.strip(), maxsplit=1) for line in top.splitlines()]
    assert fields[0] == ["https://a.example"]
    values = {field[0]: field[1] for field in fields[1:]}
    assert values["freshness"] == "outage"
    assert values["for a crawl"] == "pages are allowed or refused by its rules"
    assert values["copy"] == "https://a.example/robots.txt"
    assert values["cache-control"] == "max-age=7200"
    assert values["etag"] == r'"\x1bv1"'
    assert values["bytes"] == str(len(HOSTILE))
    assert values["lifetime"] == "2 h"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(60 min ago\)", values["fetched"])
    assert values["since"].endswith("(10 min ago)")
    assert values["last attempt"].endswith("ago), number 3")
    assert re.search(r"in \d+ (s|min)", values["next attempt"])
    lines = file.splitlines()
    assert lines[:2] == ["1  User-agent: *", r"2  Disallow: /\x1b[31m<script>\xff"]
    assert lines[2] == "3  " + "#" * 200 + "…"


@pytest.mark.once
@pytest.mark.parametrize(
    "words", ["a.example", "https://a.example", "HTTPS://user@A.Example:443/page?x#y"]
)
def test_show_takes_any_url_of_the_origin(words: str, tmp_path: Path) -> None:
    fill(tmp_path / DEFAULT, copied("https://a.example", time.time()))
    done = cache(tmp_path, "show", "--json", words, "-s", "REP_MAX_AGE=900")
    assert from_json(done)[0]["origin"] == "https://a.example"
    assert from_json(done)[0]["copy"]["lifetime"] == 900


@pytest.mark.once
def test_show_without_a_scheme_means_https(tmp_path: Path) -> None:
    fill(tmp_path / DEFAULT, copied("http://a.example:8080", time.time()))
    done = cache(tmp_path, "show", "a.example:8080")
    assert (done.returncode, done.stderr) == (1, "Not cached: https://a.example:8080\n")
    assert cache(tmp_path, "show", "http://a.example:8080").returncode == 0


@pytest.mark.once
def test_show_as_json(filled: Path) -> None:
    (value,) = from_json(cache(filled, "show", "outage.example", "--json"))
    assert value["freshness"] == "outage"
    assert value["meaning"] == "pages are allowed or refused by its rules"
    assert value["copy"]["body"] == RULES.decode()
    assert value["copy"]["status"] == 200
    assert value["outage"]["status"] == 503
    assert value["outage"]["attempts"] == 9
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value["outage"]["retry_at"])


@pytest.mark.once
def test_show_an_origin_without_a_copy(filled: Path) -> None:
    done = cache(filled, "show", "refused.example", "-s", "REP_UNREACHABLE=defer")
    assert done.returncode == 0
    assert "requests for pages are held" in done.stdout
    assert "copy" not in done.stdout


@pytest.mark.once
def test_only_the_part_of_a_file_that_is_read_is_shown(tmp_path: Path) -> None:
    body = b"User-agent: *\n" + b"Disallow: /a\n" * 40000
    fill(tmp_path / DEFAULT, copied("https://a.example", time.time(), body))
    *_, line, last = cache(tmp_path, "show", "a.example").stdout.splitlines()
    assert last == "The rest of the file is not read (REP_MAX_SIZE)."
    assert line.split() == [str((512_000 - 14) // 13 + 1), "Disallow:", "/a"]


# -- clear ----------------------------------------------------------------------


def test_clear_one(filled: Path) -> None:
    done = cache(filled, "clear", "fresh.example")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 origin deleted\n", "")
    again = cache(filled, "clear", "fresh.example")
    assert (again.returncode, again.stdout) == (1, "0 origins deleted\n")
    assert again.stderr == "Not cached: https://fresh.example\n"
    assert len(from_json(cache(filled, "list", "--json"))) == 5


@pytest.mark.once
def test_clear_all(filled: Path) -> None:
    refused = cache(filled, "clear")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(from_json(cache(filled, "list", "--json"))) == 6
    assert from_json(cache(filled, "clear", "--yes", "--json")) == [{"deleted": 6}]
    assert from_json(cache(filled, "list", "--json")) == []
    assert is_whole(filled / DEFAULT)


# -- in a terminal ----------------------------------------------------------------


def cache_in_a_terminal(
    cwd: Path, *arguments: str, types: str = "", **changes: str
) -> tuple[int, str]:
    return in_a_terminal(cwd, "cache", *arguments, types=types, **changes)


@pytest.mark.once
def test_list_cache_in_a_terminal(filled: Path) -> None:
    code, shown = cache_in_a_terminal(filled, "list", NO_COLOR="")
    assert code == 0
    assert "https://fresh.example     \x1b[32mfresh    \x1b[0m  successful" in shown
    assert "https://refused.example   \x1b[31mrefused  \x1b[0m  unreachable" in shown
    plain = re.sub(r"\x1b\[\d+m", "", shown)
    _, without_colour = cache_in_a_terminal(filled, "list", NO_COLOR="1")
    assert "\x1b" not in without_colour
    assert [line[:60] for line in without_colour.splitlines()] == [
        line[:60] for line in plain.splitlines()
    ]
    assert "\x1b" not in cache_in_a_terminal(filled, "list", "--json", NO_COLOR="")[1]


@pytest.mark.once
def test_show_cache_in_a_terminal(tmp_path: Path) -> None:
    fill(tmp_path / DEFAULT, copied("https://a.example", time.time(), HOSTILE))
    code, shown = cache_in_a_terminal(tmp_path, "show", "a.example", NO_COLOR="")
    assert code == 0
    assert "freshness        \x1b[32mfresh\x1b[0m\n" in shown
    assert "\x1b[2m2\x1b[0m  Disallow: /\\x1b[31m<script>\\xff\n" in shown


@pytest.mark.once
def test_clear_in_a_terminal_asks(filled: Path) -> None:
    question = f"Delete all 6 origins in {filled / DEFAULT}? [y/N] "
    code, shown = cache_in_a_terminal(filled, "clear", types="\n")
    assert code == 1
    assert shown == f"{question}\nNothing was deleted\n"
    code, shown = cache_in_a_terminal(filled, "clear", types="\x04")
    assert code == 1
    code, shown = cache_in_a_terminal(filled, "clear", types="y\n")
    assert code == 0
    assert shown == f"{question}y\n6 origins deleted\n"
    assert from_json(cache(filled, "list", "--json")) == []


# -- refresh --------------------------------------------------------------------


class Server:
    """A site that answers with what a test gives it."""

    def __init__(self, servers: LoopbackServers) -> None:
        self.says = http_response(200, RULES, [("ETag", '"v1"'), ("Cache-Control", "max-age=900")])
        self.site = servers.serve(self._answer)
        self.url = self.site.url

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(self.says)


@pytest.fixture
def server(servers: LoopbackServers) -> Server:
    return Server(servers)


def test_refresh_in_a_pipe(server: Server, tmp_path: Path) -> None:
    first = cache(tmp_path, "refresh", f"{server.url}/any/page", "-s", "USER_AGENT=OurBot")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines()[0] == f"{server.url}: cached now"
    assert "  freshness - -> fresh" in first.stdout
    assert "\n+Disallow: /private/\n" in first.stdout
    assert server.site.asked[0].headers["user-agent"] == "OurBot"
    assert "if-none-match" not in server.site.asked[0].headers

    server.says = http_response(304, headers=[("ETag", '"v1"')])
    second = cache(tmp_path, "refresh", server.url)
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.splitlines()[:2] == [
        f"{server.url}: confirmed by the server, not changed",
        "  freshness fresh",
    ]
    assert "Disallow" not in second.stdout
    assert server.site.asked[1].headers["if-none-match"] == '"v1"'

    server.says = http_response(503)
    third = cache(tmp_path, "refresh", server.url)
    assert third.returncode == 2
    assert third.stdout.splitlines()[:2] == [
        f"{server.url}: unreachable",
        "  freshness fresh -> outage",
    ]
    assert f"Cannot reach {server.url}/robots.txt (status 503)" in third.stderr
    # No page is requested.
    assert server.site.targets() == ["/robots.txt"] * 3
    (shown,) = from_json(cache(tmp_path, "show", server.url, "--json"))
    assert shown["outage"]["attempts"] == 1
    assert shown["copy"]["body"] == RULES.decode()


@pytest.mark.once
def test_refresh_as_json(server: Server, tmp_path: Path) -> None:
    outcomes = []
    for says in (
        server.says,
        server.says,
        http_response(304),
        http_response(200, RULES + b"Disallow: /more\n"),
        http_response(404),
    ):
        server.says = says
        done = cache(tmp_path, "refresh", server.url, "--json")
        assert done.returncode == 0
        outcomes += from_json(done)
    assert [outcome["outcome"] for outcome in outcomes] == [
        "new",
        "same",
        "confirmed",
        "changed",
        "changed",
    ]
    assert outcomes[0]["before"] is None
    assert outcomes[4]["before"]["access"] == "successful"
    assert outcomes[4]["now"]["access"] == "unavailable"


PROJECT = """
ADDONS = {{"scrapy_rep.Addon": 500}}
ROBOTSTXT_OBEY = True
SPIDER_MODULES = ["no.such.module"]
ITEM_PIPELINES = {{"no.such.Pipeline": 1}}
FEEDS = {{"items.json": {{"format": "json"}}}}
JOBDIR = "job"
USER_AGENT = "ProjectBot"
REP_STORE = "sqlite:///store.sqlite"
LOG_LEVEL = "DEBUG"
{more}
"""


def test_refresh_in_a_project(server: Server, tmp_path: Path, loop: str) -> None:
    more = "\n".join(f"{name} = {value!r}" for name, value in SETUPS[loop].items())
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = our_settings\n")
    (tmp_path / "our_settings.py").write_text(PROJECT.format(more=more))
    done = cache(tmp_path, "refresh", server.url)
    assert done.returncode == 0
    # Scrapy says of its handlers without a reactor that they are experimental.
    assert [line for line in done.stderr.splitlines() if "experimental" not in line] == []
    assert server.site.asked[0].headers["user-agent"] == "ProjectBot"
    assert not (tmp_path / "job").exists()
    assert not (tmp_path / "items.json").exists()
    assert [value["origin"] for value in from_json(cache(tmp_path, "list", "--json"))] == [
        server.url
    ]


@pytest.mark.once
def test_refresh_while_another_process_fetches(server: Server, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / DEFAULT)
    assert run_now(store.claim(Origin.of(server.url), 600)).lease is not None
    run_now(store.close())
    assert cache(tmp_path, "refresh", server.url).returncode == 0
    assert len(from_json(cache(tmp_path, "list", "--json"))) == 1


@pytest.mark.once
def test_refresh_without_a_server(tmp_path: Path) -> None:
    done = cache(tmp_path, "refresh", "http://127.0.0.1:9", "--nolog")
    assert (done.returncode, done.stderr) == (2, "")
    assert "freshness - -> refused" in done.stdout


@pytest.mark.once
def test_refresh_with_a_crawl_that_cannot_start(server: Server, tmp_path: Path) -> None:
    words = ["-s", 'DOWNLOADER_MIDDLEWARES={"no.such.Middleware": 1}']
    done = cache(tmp_path, "refresh", server.url, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "scrapy robots cache refresh: error: the crawl that was to fetch it failed: "
        "ModuleNotFoundError: No module named 'no'\n"
    )


@pytest.mark.once
def test_refresh_whose_outcome_is_too_large_to_be_stored(server: Server, tmp_path: Path) -> None:
    size = 17 * 1024 * 1024
    server.says = http_response(200, b"#" * size)
    done = cache(tmp_path, "refresh", server.url, "-s", f"REP_MAX_SIZE={size + 10}")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("the outcome could not be stored")


# -- a great many ---------------------------------------------------------------


@pytest.mark.once
def test_list_of_30_000_origins(tmp_path: Path) -> None:
    path = tmp_path / DEFAULT
    fill(path)
    store = SqliteStore(path)
    now = time.time()
    body = b"User-agent: *\n" + b"Disallow: /a/path\n" * 300
    run_now(store.write(copied("https://a.example", now, body)))
    run_now(store.close())
    many(path, 30_000, now, body)
    script = (
        "import sys\nfrom pathlib import Path\nfrom scrapy.cmdline import execute\n"
        "try:\n    execute(['scrapy', 'robots', 'cache', 'list'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        # Not getrusage(): its peak may be that of the process that started this one.
        "lines = Path('/proc/self/status').read_text().splitlines()\n"
        "(peak,) = (line.split()[1] for line in lines if line.startswith('VmHWM:'))\n"
        "print(int(peak) // 1024, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 30_000 + 3
    # All bodies would take 160 MB more.
    assert int(done.stderr) < 180


def many(path: Path, count: int, now: float, body: bytes) -> None:
    """Write *count* origins to *path*, faster than a store does."""
    import sqlite3

    from scrapy_rep.stores.base import encode

    db = sqlite3.connect(path)
    with db:
        db.executemany(
            "INSERT INTO entry (origin, seen, value) VALUES (?, ?, ?)",
            (
                (url, now, encode(copied(url, now, body)))
                for url in (f"https://host{number}.example" for number in range(count))
            ),
        )
    db.close()


async def robots_only(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(http_response(200, RULES))


def test_a_store_in_redis(
    tmp_path: Path, fresh_redis: RedisServer, servers: LoopbackServers
) -> None:
    site = servers.serve(robots_only)
    store = f"REP_STORE=redis://:@127.0.0.1:{fresh_redis.port}/0?prefix=x:&socket_timeout=10"
    assert "cached now" in cache(tmp_path, "refresh", site.url, "-s", store).stdout
    (listed,) = from_json(cache(tmp_path, "list", "--json", "-s", store))
    assert listed["origin"] == site.url
    assert cache(tmp_path, "clear", "--yes", "-s", store).stdout == "1 origin deleted\n"
    assert f"Nothing is cached: {fresh_redis.url}" in cache(tmp_path, "list", "-s", store).stderr
    assert list(tmp_path.iterdir()) == []


def test_no_redis_there(tmp_path: Path) -> None:
    done = cache(tmp_path, "list", "-s", "REP_STORE=redis://:secret@127.0.0.1:1")
    assert done.returncode == 2
    assert "scrapy robots cache list: error: redis://127.0.0.1:1: " in done.stderr
    assert "secret" not in done.stderr
