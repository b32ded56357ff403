"""Real robots.txt files, out of a ZIP archive with one member for each site."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from scrapy import Request

from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.lines import Field, read_records
from scrapy_rep.rep.urls import ROBOTS_TXT

# URLs made from the rules of each file.
_FROM_RULES = 4
# Longer targets are refused by servers, ours too.
_MAX_PATH = 2000
# What "*" becomes; no file has it.
_ANYTHING = b"any-thing"
# What a URL can carry as it is, beside letters and digits. "%" encodes already.
_SAFE = "!$%&'()*+,-./:;=?@_~"
# Any host will do: rules are about paths.
_ORIGIN = "http://127.0.0.1"


class UnusableCorpus(Exception):
    """An archive that cannot be read, or has nothing in it; the message says which."""


class Member(NamedTuple):
    """One robots.txt: the name of its site, which is untrusted, and its octets."""

    name: str
    body: bytes


def unreadable(path: Path, error: Exception) -> UnusableCorpus:
    """That *path* cannot be read, because of *error*."""
    # What the system says names the path once more.
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return UnusableCorpus(f"cannot read {path}: {why}")


@contextmanager
def archive_at(path: Path) -> Iterator[zipfile.ZipFile]:
    """The ZIP archive at *path*. Raises :exc:`UnusableCorpus`, in its context as well."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UnusableCorpus(f"{path} is no ZIP archive that can be read: {error}") from None
    except (OSError, RuntimeError) as error:
        # RuntimeError: encrypted. NotImplementedError, one too: an odd compression.
        raise unreadable(path, error) from None


def read_members(path: Path, count: int | None = None, octets: int = -1) -> Iterator[Member]:
    """*count* members of the archive at *path*, evenly spread; all, if it has fewer.

    Of each at most *octets*, if not negative. Raises :exc:`UnusableCorpus`.
    """
    with archive_at(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if not members:
            raise UnusableCorpus(f"{path} has no files in it")
        count = min(len(members) if count is None else count, len(members))
        for index in range(count):
            member = members[index * len(members) // count]
            with archive.open(member) as file:
                yield Member(member.filename, file.read(octets))


def paths_to_ask(member: Member) -> list[str]:
    """Paths to ask a site for: some from its rules, "/", and one of nobody's choice."""
    patterns = list(dict.fromkeys(_patterns(member.body)))
    step = max(1, len(patterns) // _FROM_RULES)
    paths = [_path(pattern) for pattern in patterns[::step][:_FROM_RULES]]
    paths += ["/", f"/{hashlib.sha256(member.name.encode()).hexdigest()[:12]}"]
    as_sent = (Request(_ORIGIN + path).url.removeprefix(_ORIGIN) for path in paths)
    # It is asked for anyway, and always allowed.
    return [path for path in dict.fromkeys(as_sent) if path != ROBOTS_TXT]


def _patterns(body: bytes) -> Iterator[bytes]:
    for _, field, value in read_records(body, RFC9309):
        is_rule = field in (Field.ALLOW, Field.DISALLOW)
        if is_rule and value and len(quote_from_bytes(value)) < _MAX_PATH:
            yield value


def _path(pattern: bytes) -> str:
    """A path that *pattern* is about."""
    filled = pattern.removesuffix(b"$").replace(b"*", _ANYTHING)
    return "/" + quote_from_bytes(filled, safe=_SAFE).removeprefix("/")
