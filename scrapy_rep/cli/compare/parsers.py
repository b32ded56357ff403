"""Who is compared: the dialects, and parsers that are not ours."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.rep.dialects import Dialect
from scrapy_rep.rep.robotstxt import RobotsTxt

#: A dialect of ours, or somebody else's parser.
Reader = Dialect | type[RobotParser]

_SCRAPYS = "scrapy.robotstxt."
# By short name: what Scrapy has, and the distribution behind it.
_KNOWN = {
    "protego": (f"{_SCRAPYS}ProtegoRobotParser", "Protego"),
    "urllib": (f"{_SCRAPYS}PythonRobotParser", "urllib.robotparser"),
    "rerp": (f"{_SCRAPYS}RerpRobotParser", "robotexclusionrulesparser"),
}
_LONGER = {"robotexclusionrulesparser": "rerp"}


class Answers(Protocol):
    """What has read a file."""

    def allowed(self, url: str, user_agent: str, /) -> object:
        """Whether *user_agent* may access *url*."""


def find_parser(name: str) -> type[RobotParser]:
    """The parser with a short *name*, or an import path.

    Raises :exc:`ValueError` that says what is accepted, or what is missing.
    """
    name = _LONGER.get(name, name)
    path, distribution = _KNOWN.get(name, (name, ""))
    accepted = f"accepted: {', '.join([*_KNOWN, *_LONGER])}, the import path of a RobotParser"
    try:
        parser = load_object(path)
    except Exception as error:
        raise ValueError(f"{name!r} cannot be loaded ({error}); {accepted}") from None
    if not (isinstance(parser, type) and issubclass(parser, RobotParser)):
        raise ValueError(f"{name!r} is no subclass of scrapy.robotstxt.RobotParser; {accepted}")
    try:
        read(parser, b"")
    except Exception as error:
        hint = f": is {distribution} installed?" if distribution else ""
        raise ValueError(f"{name!r} cannot be used ({error}){hint}") from None
    return parser


def read(reader: Reader, body: bytes) -> Answers:
    """*body*, read by *reader*. Raises whatever somebody else's parser raises."""
    if isinstance(reader, Dialect):
        return RobotsTxt.parse(body, reader)
    parser: RobotParser = build_from_crawler(reader, _crawler(), body)
    return parser


@cache
def _crawler() -> Crawler:
    """One that does nothing: parsers are made for a crawler."""
    return Crawler(Spider)


def short_name(reader: Reader) -> str:
    """What *reader* is called in a column."""
    if isinstance(reader, Dialect):
        return reader.name
    path = global_object_name(reader)
    return next((name for name, (known, _) in _KNOWN.items() if known == path), reader.__name__)


def long_name(reader: Reader) -> str:
    """What *reader* is called in a table, with its version where that is known."""
    if isinstance(reader, Dialect):
        return f"scrapy-rep, {reader.name}"
    _, distribution = _KNOWN.get(short_name(reader), ("", ""))
    if distribution == "urllib.robotparser":
        major, minor, _ = platform.python_version_tuple()
        return f"{distribution} of Python {major}.{minor}"
    try:
        return f"{distribution} {version(distribution)}" if distribution else short_name(reader)
    except PackageNotFoundError:
        return distribution
