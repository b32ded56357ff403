"""A feed of JSON Lines, put where Scrapy puts its feeds."""

from __future__ import annotations

import logging
import re
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest
import pytest_twisted
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.observers.feed import JsonLinesFeed, new_file
from scrapy_rep.settings import FeedSpec, RepSettings


class Crawl:
    """A crawl of which there is only the feed, to *uri*."""

    def __init__(self, uri: str, storage: type | None = None) -> None:
        storages = {"mine": storage} if storage else {}
        settings = {"REP_COMPARE_FEED": uri, "FEED_STORAGES": storages}
        self.crawler = Crawler(Spider, settings)
        self.crawler.spider = Spider("example")
        spec = RepSettings.read(self.crawler.settings).compare_feed
        assert isinstance(spec, FeedSpec)
        self.feed = JsonLinesFeed(self.crawler, spec)

    def start(self) -> None:
        signal = signals.spider_opened
        self.crawler.signals.send_catch_log(signal, spider=self.crawler.spider)

    async def end(self) -> None:
        ending = self.crawler.signals.send_catch_log_async(signals.spider_closed)
        await deferred_from_coro(ending)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "scrapy_rep.observers.feed")
    return caplog


def messages(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in log.records]


@pytest_twisted.ensureDeferred
async def test_lines_are_added_to_a_file(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "new" / "feed.jsonl"
    for _ in range(2):
        crawl = Crawl(str(path))
        crawl.start()
        crawl.feed.write({"url": "é", "line": 1})
        crawl.feed.write({"url": None})
        await crawl.end()
    assert path.read_bytes() == 2 * b'{"url": "\\u00e9", "line": 1}\n{"url": null}\n'
    assert messages(log) == 2 * [("INFO", f"Stored 2 lines in {path}")]


@pytest_twisted.ensureDeferred
async def test_a_feed_without_lines_is_stored_too(tmp_path: Path) -> None:
    crawl = Crawl(f"file://{tmp_path}/feed.jsonl")
    crawl.start()
    await crawl.end()
    assert (tmp_path / "feed.jsonl").read_bytes() == b""


@pytest_twisted.ensureDeferred
async def test_the_uri_has_parameters_as_those_of_feeds_have(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    crawl = Crawl(f"{tmp_path}/%(name)s-%(time)s-100%25.jsonl")
    crawl.start()
    await crawl.end()
    [path] = tmp_path.iterdir()
    time = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00"
    assert re.fullmatch(rf"example-{time}-100%25\.jsonl", path.name)
    assert messages(log) == [("INFO", f"Stored 0 lines in {path}")]


class Storage:
    """One of a project; as S3's, it answers with a Deferred."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any]) -> None:
        assert feed_options == {"format": "jsonlines"}

    def open(self, spider: Spider) -> IO[bytes]:
        return BytesIO()

    def store(self, file: IO[bytes]) -> Deferred[None]:
        assert isinstance(file, BytesIO)
        self.stored.append(file.getvalue())
        return succeed(None)

    stored: list[bytes] = []  # noqa: RUF012


@pytest_twisted.ensureDeferred
async def test_a_storage_of_the_project(log: pytest.LogCaptureFixture) -> None:
    Storage.stored.clear()
    crawl = Crawl("mine://user:secret@host/a", Storage)
    crawl.start()
    crawl.feed.write({})
    await crawl.end()
    # What comes after that comes too late.
    crawl.feed.write({})
    assert Storage.stored == [b"{}\n"]
    assert messages(log) == [("INFO", "Stored 1 lines in mine://host/a")]


def _fail() -> NoReturn:
    raise OSError("no \x1b[2J place")


class CannotBeMade(Storage):
    def __init__(self, uri: str, *, feed_options: dict[str, Any]) -> None:
        raise NotConfigured("missing library")


class CannotBeOpened(Storage):
    def open(self, spider: Spider) -> IO[bytes]:
        _fail()


class CannotBeWritten(Storage):
    def open(self, spider: Spider) -> IO[bytes]:
        return _Full()


class _Full(BytesIO):
    def write(self, data: Any) -> int:
        _fail()


class CannotStore(Storage):
    def store(self, file: IO[bytes]) -> Deferred[None]:
        _fail()


@pytest.mark.parametrize(
    ("storage", "error"),
    [
        (CannotBeMade, "NotConfigured: missing library"),
        (CannotBeOpened, "OSError: no \\x1b[2J place"),
        (CannotBeWritten, "OSError: no \\x1b[2J place"),
        (CannotStore, "OSError: no \\x1b[2J place"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_storage_that_fails_is_one_line_in_the_log(
    storage: type, error: str, log: pytest.LogCaptureFixture
) -> None:
    crawl = Crawl("mine://user:secret@host/a", storage)
    crawl.start()
    for _ in range(3):
        crawl.feed.write({})
    await crawl.end()
    assert messages(log) == [
        ("ERROR", f"Cannot write the feed mine://host/a ({error}). The crawl continues without it.")
    ]


@pytest_twisted.ensureDeferred
async def test_a_parameter_that_the_spider_does_not_have(log: pytest.LogCaptureFixture) -> None:
    crawl = Crawl("mine:%(nothing)s", Storage)
    crawl.start()
    await crawl.end()
    [(level, message)] = messages(log)
    assert level == "ERROR"
    assert "has no attribute 'nothing'" in message


def test_a_new_file_is_never_that_of_others(tmp_path: Path) -> None:
    directory = tmp_path / "made"
    for _ in range(3):
        new_file(lambda number: directory / f"log{number}.jsonl").close()
    assert sorted(path.name for path in directory.iterdir()) == [
        "log-2.jsonl",
        "log-3.jsonl",
        "log.jsonl",
    ]
