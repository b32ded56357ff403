from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.open import StoreSpec, open_guarded, open_store, parse_spec
from scrapy_rep.stores.sqlite import SqliteStore
from tests.stores.examples import Clock, facts, origin, run


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
        *["redis://host", None, 1, True, Path("x"), ["memory"]],
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
    run(store.write(facts()))
    run(store.close())
    assert (tmp_path / ".scrapy" / "rep" / "robots.sqlite").is_file()


def test_stores(tmp_path: Path) -> None:
    clock = Clock()
    memory, file = parse_spec("memory"), StoreSpec(False, tmp_path / "x")
    assert isinstance(open_store(memory, 10, clock), MemoryStore)
    assert isinstance(open_guarded(memory, 10, clock), MemoryStore)
    assert isinstance(open_store(file, 10, clock), SqliteStore)
    assert isinstance(open_guarded(file, 10, clock), GuardedStore)
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_starts_whatever_the_project_is_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".scrapy").write_text("no directory", "utf-8")
    monkeypatch.chdir(tmp_path)
    store = open_guarded(parse_spec("sqlite"), 10)
    assert run(store.claim(origin(), 30)).lease is not None
    run(store.write(facts()))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "set REP_STORE to another file" in caplog.text


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("scrapy_rep", "sqlite3"),
        ("scrapy_rep.stores.open", "sqlite3"),
        ("scrapy_rep.stores.guarded", "sqlite3"),
        ("scrapy_rep.stores.sqlite", "twisted.internet.reactor"),
    ],
)
def test_what_is_not_loaded(module: str, absent: str) -> None:
    code = f"import sys, {module}; print({absent!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
