"""``scrapy robots demo --corpus``: sites out of an archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scrapy_rep.cli.demo_sites import read_sites, says
from tests.cli.running import Done, robots

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


def run_corpus(archive: Path, *arguments: str) -> Done:
    return robots(archive.parent, "demo", "--corpus", archive.name, *arguments)


def test_all_of_a_small_archive(archive: Path) -> None:
    pages = sum(len(site.pages) for site in read_sites(archive, 200))
    done = run_corpus(archive)
    assert done.stderr == ""
    assert done.returncode == 0, done.stdout
    assert f"7 origins, {pages} pages: " in done.stdout
    assert "All as expected" in done.stdout.splitlines()[-1]
    assert "line 2: Disallow: /private/*.pdf$" in done.stdout


def test_some_of_an_archive(archive: Path) -> None:
    done = run_corpus(archive, "--sites", "2")
    assert done.returncode == 0
    assert "\n2 origins, " in done.stdout


def test_pages_are_made_from_the_rules_of_the_file(archive: Path) -> None:
    pages = list(read_sites(archive, 1)[0].pages.items())
    assert pages[:3] == [
        ("/private/any-thing.pdf", "line 2: Disallow: /private/*.pdf$"),
        ("/private/open", ""),
        ("/", ""),
    ]
    # And a path that no rule knows.
    assert len(pages) == 4
    assert pages[3][1] == ""


def test_bytes_that_a_url_cannot_contain_are_encoded(archive: Path) -> None:
    pages = list(read_sites(archive, 200)[2].pages)
    assert pages[:2] == ["/caf%E9/", "/%D0%B0%20b%22%3C%3E"]


def test_robots_txt_is_not_a_page(archive: Path) -> None:
    assert "/robots.txt" not in read_sites(archive, 200)[4].pages


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "a"), (2, "ad"), (3, "ace"), (7, "abcdefg"), (1000, "abcdefg")],
)
def test_members_are_evenly_spread(archive: Path, count: int, names: str) -> None:
    sites = read_sites(archive, count)
    assert [site.name for site in sites] == [f"{name}.example" for name in names]
    assert sites == read_sites(archive, count)


def test_bodies_are_served_byte_by_byte(archive: Path) -> None:
    assert [site.robots for site in read_sites(archive, 7)] == [
        says(body) for body in MEMBERS.values()
    ]
