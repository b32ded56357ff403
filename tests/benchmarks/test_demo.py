"""``benchmarks.demo``: the demo's crawl, of sites out of an archive."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.demo import allow_open_files, read_sites
from scrapy_rep.cli.demo_sites import DemoSite, says
from scrapy_rep.cli.errors import CommandError

ROOT = Path(__file__).parents[2]
MEMBERS = {
    "a.example": b"User-agent: *\nDisallow: /private/*.pdf$\nAllow: /private/open\n",
    "b.example": b"",
    "c.example": b'User-agent: *\nDisallow: /caf\xe9/\nDisallow: \xd0\xb0 b"<>\n',
    "d.example": b"<html>\nDisallow: /\n</html>",
    "e.example": b"User-agent: *\nDisallow: /\nAllow: /robots.txt\n",
    "f.example": b"User-agent: ExampleBot\nDisallow: /a?b=%2f&c=*[1]\nDisallow: /../x//y;z=1\n",
    "g.example": b"\0\xff\xfe\r\r\n: :\nUser-agent: *\nDisallow: /%\nDisallow: /?\nDisallow: //\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("directory/", b"")
        for name, body in MEMBERS.items():
            file.writestr(name, body)
    return path


def run_corpus(archive: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "benchmarks.demo", "--corpus", str(archive), *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def sites_of(archive: Path, count: int) -> list[DemoSite]:
    return list(read_sites(archive, count))


def test_all_of_a_small_archive(archive: Path) -> None:
    pages = sum(len(site.pages) for site in sites_of(archive, 200))
    done = run_corpus(archive)
    assert done.stderr == ""
    assert done.returncode == 0, done.stdout
    assert f"\n7 origins, {pages} pages: " in done.stdout
    assert "All as expected" in done.stdout.splitlines()[-1]
    assert "line 2: Disallow: /private/*.pdf$" in done.stdout


def test_some_of_an_archive(archive: Path) -> None:
    done = run_corpus(archive, "--sites", "2")
    assert done.returncode == 0
    assert "\n2 origins, " in done.stdout


def test_archives_that_cannot_be_read(archive: Path) -> None:
    good = archive.read_bytes()
    damaged = bytearray(good)
    damaged[good.index(b"a.example") + 20] ^= 0xFF
    folder = archive.parent
    (folder / "bad.zip").write_bytes(b"this is not an archive")
    (folder / "damaged.zip").write_bytes(damaged)
    with zipfile.ZipFile(folder / "empty.zip", "w") as file:
        file.writestr("directory/", b"")
    for name, message in [
        ("bad.zip", "is not a readable ZIP archive"),
        ("damaged.zip", "is not a readable ZIP archive"),
        ("empty.zip", "has no files in it"),
        ("missing.zip", "cannot read .*: No such file"),
        (".", "cannot read .*: Is a directory"),
    ]:
        with pytest.raises(CommandError, match=message):
            sites_of(folder / name, 200)


def test_too_low_a_limit_on_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    with pytest.raises(CommandError, match="1 sites take 513 open files, but the limit is 256"):
        allow_open_files(1)


def test_a_soft_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    limits = (256, resource.RLIM_INFINITY)
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: calls.append(limits))
    allow_open_files(1000)
    assert calls == [(1512, resource.RLIM_INFINITY)]


def test_pages_are_made_from_the_rules_of_the_file(archive: Path) -> None:
    pages = list(sites_of(archive, 1)[0].pages.items())
    assert pages[:3] == [
        ("/private/any-thing.pdf", "line 2: Disallow: /private/*.pdf$"),
        ("/private/open", ""),
        ("/", ""),
    ]
    # And a path that no rule knows.
    assert len(pages) == 4
    assert pages[3][1] == ""


def test_bytes_that_a_url_cannot_contain_are_encoded(archive: Path) -> None:
    pages = list(sites_of(archive, 200)[2].pages)
    assert pages[:2] == ["/caf%E9/", "/%D0%B0%20b%22%3C%3E"]


def test_robots_txt_is_not_a_page(archive: Path) -> None:
    assert "/robots.txt" not in sites_of(archive, 200)[4].pages


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "a"), (2, "ad"), (3, "ace"), (7, "abcdefg"), (1000, "abcdefg")],
)
def test_members_are_evenly_spread(archive: Path, count: int, names: str) -> None:
    sites = sites_of(archive, count)
    assert [site.name for site in sites] == [f"{name}.example" for name in names]
    assert sites == sites_of(archive, count)


def test_bodies_are_served_byte_by_byte(archive: Path) -> None:
    assert [site.robots for site in sites_of(archive, 7)] == [
        says(body) for body in MEMBERS.values()
    ]
