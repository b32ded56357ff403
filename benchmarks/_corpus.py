"""Real robots.txt files, from an archive beside the checkout that is no part of it."""

from __future__ import annotations

import argparse
import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from scrapy import Request

from benchmarks._tables import arguments
from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.lines import Field, read_records
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT

#: What is asked of every file, once.
FIRST_URL = "https://www.example.com/category/item-123/page.html?x=1"

_ARCHIVE = "shared/conformance/robots-corpus.zip"
# So many URLs are made from the rules of each file.
_FROM_RULES = 4
# Servers refuse longer targets, ours too.
_LONGEST_PATH = 2000
# Replaces "*"; no file contains it.
_ANYTHING = b"any-thing"
# Characters that a URL can contain as they are, beside letters and digits.
_SAFE = "!$%&'()*+,-./:;=?@_~"
# Rules are about paths, so any host will do.
_ORIGIN = "http://127.0.0.1"


class Member(NamedTuple):
    """One robots.txt, and the name of its site, which is untrusted."""

    name: str
    body: bytes


def corpus_arguments(description: str | None) -> argparse.ArgumentParser:
    """The options of a script that reads the corpus."""
    parser = arguments(description)
    default = Path(__file__).resolve().parents[2] / _ARCHIVE
    parser.add_argument(
        "--corpus", type=Path, default=default, help="zip file of robots.txt files (%(default)s)"
    )
    return parser


def bodies(archive: Path) -> Iterator[bytes]:
    """The files, each read when its turn comes."""
    with zipfile.ZipFile(archive) as members:
        for name in sorted(members.namelist()):
            yield members.read(name)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The ZIP archive at *path*. Raises :exc:`CommandError` if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except OSError as error:
        # The message of the system contains the path once more.
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        # RuntimeError: encrypted, or compressed in a way that Python does not know.
        raise CommandError(f"{path} is not a readable ZIP archive: {error}") from None


def read_members(path: Path, count: int | None = None, most: int = -1) -> Iterator[Member]:
    """*count* members of the archive at *path*, evenly spread; all, if it has fewer.

    At most *most* bytes of each, if not negative. Raises :exc:`CommandError`.
    """
    with open_archive(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if not members:
            raise CommandError(f"{path} has no files in it")
        count = min(len(members) if count is None else count, len(members))
        for index in range(count):
            member = members[index * len(members) // count]
            with archive.open(member) as file:
                yield Member(member.filename, file.read(most))


def paths_to_ask(member: Member) -> list[str]:
    """Paths to request: some from the rules of the file, "/", and one that no rule knows."""
    patterns = list(dict.fromkeys(_patterns(member.body)))
    step = max(1, len(patterns) // _FROM_RULES)
    paths = [_path(pattern) for pattern in patterns[::step][:_FROM_RULES]]
    paths += ["/", f"/{hashlib.sha256(member.name.encode()).hexdigest()[:12]}"]
    as_sent = (Request(_ORIGIN + path).url.removeprefix(_ORIGIN) for path in paths)
    # robots.txt is fetched anyway, and always allowed.
    return [path for path in dict.fromkeys(as_sent) if path != ROBOTS_TXT]


def _patterns(body: bytes) -> Iterator[bytes]:
    for _, key, value in read_records(body, RFC9309):
        is_rule = key in (Field.ALLOW, Field.DISALLOW)
        if is_rule and value and len(quote_from_bytes(value)) < _LONGEST_PATH:
            yield value


def _path(pattern: bytes) -> str:
    """A path that *pattern* matches."""
    filled = pattern.removesuffix(b"$").replace(b"*", _ANYTHING)
    return "/" + quote_from_bytes(filled, safe=_SAFE).removeprefix("/")
