from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.open import StoreSpec, open_store, open_store_with_breaker, parse_spec
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import SqliteStore
from tests.loading import loaded_by
from tests.stores.examples import Clock, entry, origin, run


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        ("memory", StoreSpec(in_memory=True)),
        ("sqlite", StoreSpec(in_memory=False)),
        ("sqlite:///a/b.sqlite", StoreSpec(False, Path("a/b.sqlite"))),
        ("sqlite:////a/b c%20.sqlite", StoreSpec(False, Path("/a/b c%20.sqlite"))),
        ("sqlite:///../b?c#d", StoreSpec(False, Path("../b?c#d"))),
    ],
)
def test_values(value: str, spec: StoreSpec) -> None:
    assert parse_spec(value) == spec


@pytest.mark.parametrize(
    "value",
    [
        *["", "x", "Memory", "sqlite:", "sqlite://", "sqlite://host/path", "/a/b.sqlite"],
        *["sqlite:///", "sqlite:////", "sqlite:///a/", "sqlite:///:memory:", "sqlite:///a\0b"],
        *["redis:host", "http://host", "REDIS://host", None, 1, True, Path("x"), ["memory"]],
    ],
)
def test_values_that_make_no_sense(value: object) -> None:
    with pytest.raises(ValueError, match=r"accepted: memory; sqlite .*; sqlite:///relative"):
        parse_spec(value)


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_spec("sqlite:///a/b").file() == tmp_path / "a" / "b"
    assert parse_spec("sqlite:////a/b").file() == Path("/a/b")
    assert parse_spec("memory").file() is None
    assert parse_spec("redis://host").file() is None


def test_the_data_directory_outside_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_spec("sqlite").file() == tmp_path / ".scrapy" / "rep" / "robots.sqlite"
    assert list(tmp_path.iterdir()) == []


def test_the_data_directory_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\n", "utf-8")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    store = open_store(parse_spec("sqlite"), 10)
    run(store.write(entry()))
    run(store.close())
    assert (tmp_path / ".scrapy" / "rep" / "robots.sqlite").is_file()


@pytest.mark.parametrize(
    "value",
    [
        *["redis://", "redis://:pw@/1", "redis://host/x", "redis://host:99999", "unix://"],
        *["redis://host?foo=1", "redis://host?max_connections=x", "redis://host?prefix="],
        *["redis://host?prefix=%C3%A9", "redis://host?socket_timeout=0"],
        *["redis://host?socket_timeout=x", "redis+sentinel://a,b", "redis+sentinel://a,/main"],
        *["redis+sentinel:///main", "redis+cluster://", "redis+cluster://a/3", "redis+x://a"],
        *["redis+cluster://a,,b", "redis+cluster://a:99999", "redisx://a", "redisx+cluster://a"],
        *["redis://host?prefix={a}", "redis+cluster://a?foo=1", "redis+sentinel://a/main/x"],
        # A slash in a password.
        *["redis://u:1/2@host", "redis+sentinel://u:1/x@a/3", "redis+cluster://u:1/@a"],
    ],
)
def test_redis_urls_that_make_no_sense(value: str) -> None:
    with pytest.raises(ValueError, match=r"\w.*; accepted: memory; .*redis://host:port/db"):
        parse_spec(value)


def test_no_redis_package(tmp_path: Path) -> None:
    """As where the extra is not installed: a directory that has it for Python's sake."""
    (tmp_path / "redis.py").write_text("raise ImportError('no redis')", "utf-8")
    code = (
        "from scrapy.settings import Settings\n"
        "from scrapy_rep.exceptions import ConfigurationError\n"
        "from scrapy_rep.settings import RepSettings\n"
        "RepSettings.read(Settings())\n"
        "try:\n"
        "    RepSettings.read(Settings({'REP_STORE': 'redis://host'}))\n"
        "except ConfigurationError as error:\n"
        "    print(error)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "REP_STORE = 'redis://host': " in done.stdout
    assert "pip install redis" in done.stdout


def test_stores(tmp_path: Path) -> None:
    clock = Clock()
    memory, file = parse_spec("memory"), StoreSpec(False, tmp_path / "x")
    redis = parse_spec("redis://host")
    assert isinstance(open_store(redis, 10, clock), RedisStore)
    assert isinstance(open_store_with_breaker(redis, 10, clock), CircuitBreaker)
    assert isinstance(open_store(memory, 10, clock), MemoryStore)
    assert isinstance(open_store_with_breaker(memory, 10, clock), MemoryStore)
    assert isinstance(open_store(file, 10, clock), SqliteStore)
    assert isinstance(open_store_with_breaker(file, 10, clock), CircuitBreaker)
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_starts_whatever_the_project_is_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".scrapy").write_text("no directory", "utf-8")
    monkeypatch.chdir(tmp_path)
    store = open_store_with_breaker(parse_spec("sqlite"), 10)
    assert run(store.claim(origin(), 30)).lease is not None
    run(store.write(entry()))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "set REP_STORE to another file" in caplog.text


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("scrapy_rep.stores.open", "sqlite3"),
        ("scrapy_rep", "redis"),
        ("scrapy_rep.settings", "redis"),
        ("scrapy_rep.stores.sqlite", "redis"),
        ("scrapy_rep.stores.circuit_breaker", "sqlite3"),
        ("scrapy_rep.stores.sqlite", "twisted.internet.reactor"),
    ],
)
def test_what_is_not_loaded(module: str, absent: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert module in loaded
    assert absent not in loaded
