"""Sites with real robots.txt files, out of an archive."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes

from scrapy import Request

from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.lines import Field, read_records
from scrapy_rep.rep.robotstxt import RobotsTxt
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import ROBOTS_TXT
from scrapy_rep.tools.demo.results import because
from scrapy_rep.tools.demo.sites import AGENT_TOKEN, DemoSite, Page, Says

# Octets of a member that are served: more than is read of any robots.txt.
_MAX_SERVED = 2**20
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


def read_sites(path: Path, count: int) -> tuple[DemoSite, ...]:
    """*count* members of the ZIP archive at *path*, evenly spread; all, if it has fewer.

    Raises :exc:`UnusableCorpus`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            count = min(count, len(members))
            chosen = [members[index * len(members) // count] for index in range(count)]
            sites = tuple(_site(archive, member) for member in chosen)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UnusableCorpus(f"{path} is no ZIP archive that can be read: {error}") from None
    except (OSError, RuntimeError) as error:
        # RuntimeError: encrypted. NotImplementedError, one too: an odd compression.
        raise UnusableCorpus(f"cannot read {path}: {error}") from None
    if not sites:
        raise UnusableCorpus(f"{path} has no files in it")
    return sites


def _site(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> DemoSite:
    with archive.open(member) as file:
        body = file.read(_MAX_SERVED)
    robots = RobotsTxt.parse(body)
    pages = tuple(_page(robots, path) for path in _paths(member.filename, body))
    return DemoSite(printable(member.filename), Says(body), pages)


def _page(robots: RobotsTxt, path: str) -> Page:
    url = _ORIGIN + path
    if robots.allowed(url, AGENT_TOKEN):
        return Page(path, True)
    return Page(path, False, because(robots.verdict(url, AGENT_TOKEN)))


def _paths(name: str, body: bytes) -> list[str]:
    """Paths to ask a site for: some from its rules, "/", and one of nobody's choice."""
    patterns = list(dict.fromkeys(_patterns(body)))
    step = max(1, len(patterns) // _FROM_RULES)
    paths = [_path(pattern) for pattern in patterns[::step][:_FROM_RULES]]
    paths += ["/", f"/{hashlib.sha256(name.encode()).hexdigest()[:12]}"]
    as_sent = (Request(_ORIGIN + path).url.removeprefix(_ORIGIN) for path in paths)
    # How often robots.txt is asked for is counted, so it is no page.
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
