"""Every parser of robots.txt that installs from PyPI, behind one small interface.

A file is read by a peer's *read*, and what comes of it answers for lists of
URLs. Each URL is one plain call in a list comprehension, written as the package
documents it, so that what surrounds the call costs the same for all of them.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

from benchmarks._workload import SITE

#: The product token that every peer is asked about.
AGENT = "ExampleBot"

#: Whether each of some URLs may be accessed, by one file.
Answers = Callable[[Sequence[str]], list[bool]]

OURS = "scrapy-rep"
PROTEGO = "Protego"

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Peer:
    """A parser. *name* is that of its distribution, and in brackets what is particular.

    *read* takes its module and the bytes of a robots.txt.

    *longest_match*: it says that it decides as RFC 9309 does, by the longest
    match and with wildcards. *rereads*: it keeps no parsed file, and reads the
    text again at each check. *native*: it is not written in Python.
    """

    name: str
    module: str
    read: Callable[[ModuleType, bytes], Answers]
    longest_match: bool = True
    rereads: bool = False
    native: bool = False

    @property
    def distribution(self) -> str:
        """What it is installed as."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A peer that is installed here, with its version."""

    peer: Peer
    module: ModuleType
    version: str

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.peer.name

    def parse(self, body: bytes) -> Answers:
        """What answers by *body*. Raises whatever the parser raises."""
        return self.peer.read(self.module, body)


def installed() -> dict[str, Loaded]:
    """The peers that are installed, by name; ours is the first."""
    found = (load(peer) for peer in PEERS)
    return {peer.name: peer for peer in found if isinstance(peer, Loaded)}


def absent() -> list[str]:
    """The peers that are not installed here, and why, for people."""
    reasons = (reason for reason in map(load, PEERS) if isinstance(reason, str))
    return list(dict.fromkeys(reasons))


def by_name(name: str) -> Loaded:
    """The peer called *name*, which must be installed."""
    return installed()[name]


def load(peer: Peer) -> Loaded | str:
    """*peer*, imported, or a sentence that says why it cannot be."""
    try:
        # fast-robotstxt raises OSError where it does not find its library.
        module = import_module(peer.module)
    except (ImportError, OSError) as error:
        return f"{peer.distribution} is absent: {error}."
    return Loaded(peer, module, _version(peer))


def _version(peer: Peer) -> str:
    if peer is _URLLIB:
        return platform.python_version()
    return version(peer.distribution)


# The three ways in which the packages want to be asked.


def _url_only(check: Callable[[str], bool]) -> Answers:
    return lambda urls: [check(url) for url in urls]


def _agent_last(check: Callable[[str, str], bool]) -> Answers:
    return lambda urls: [check(url, AGENT) for url in urls]


def _agent_first(check: Callable[[str, str], bool]) -> Answers:
    return lambda urls: [check(AGENT, url) for url in urls]


def _body_first(check: Callable[[Any, str, str], bool], body: bytes | str) -> Answers:
    return lambda urls: [check(body, AGENT, url) for url in urls]


def _text(body: bytes) -> str:
    """As Scrapy decodes it for Protego."""
    return body.removeprefix(_BOM).decode("utf-8", "ignore")


def _ours(module: ModuleType, body: bytes) -> Answers:
    return _agent_last(module.RobotsTxt.parse(body).allowed)


def _protego(module: ModuleType, body: bytes) -> Answers:
    return _agent_last(module.Protego.parse(_text(body)).can_fetch)


def _urllib(module: ModuleType, body: bytes) -> Answers:
    parser = module.RobotFileParser()
    parser.parse(_text(body).splitlines())
    return _agent_first(parser.can_fetch)


def _rerp(module: ModuleType, body: bytes) -> Answers:
    parser = module.RobotExclusionRulesParser()
    parser.parse(_text(body))
    return _agent_first(parser.is_allowed)


def _robotspy(module: ModuleType, body: bytes) -> Answers:
    return _agent_first(module.RobotsParser.from_string(_text(body)).can_fetch)


def _gpyrobotstxt(module: ModuleType, body: bytes) -> Answers:
    return _body_first(module.RobotsMatcher().one_agent_allowed_by_robots, body)


def _jwm(module: ModuleType, body: bytes) -> Answers:
    return _body_first(module.RobotsMatcher().OneAgentAllowedByRobots, body)


def _fast_robotstxt(module: ModuleType, body: bytes) -> Answers:
    return _body_first(module.RobotsMatcher().is_allowed, _text(body))


def _texting_robots(module: ModuleType, body: bytes) -> Answers:
    return _url_only(module.Robot(AGENT, body).allowed)


def _fastrobots(module: ModuleType, body: bytes) -> Answers:
    # Whatever it is asked about URLs goes through its cache of sites.
    cache = module.RobotsCache()
    cache.put(SITE, module.Robots.parse(_text(body)))
    return _agent_last(cache.allowed)


def _fastrobots_of_paths(module: ModuleType, body: bytes) -> Answers:
    check = module.Robots.parse(_text(body)).allowed
    # What follows the authority in URLs like those of the workload; not of all URLs.
    return lambda urls: [check(url[url.find("/", 8) :], AGENT) for url in urls]


_URLLIB = Peer("urllib.robotparser", "urllib.robotparser", _urllib, longest_match=False)

#: Ours first: what all others are compared with.
PEERS = (
    Peer(OURS, "scrapy_rep.rep.rules.robotstxt", _ours),
    Peer(PROTEGO, "protego", _protego),
    _URLLIB,
    Peer("robotexclusionrulesparser", "robotexclusionrulesparser", _rerp, longest_match=False),
    Peer("robotspy", "robots", _robotspy),
    Peer("gpyrobotstxt", "gpyrobotstxt.robots_cc", _gpyrobotstxt, rereads=True),
    Peer("jwm.robotstxt", "jwm.robotstxt.googlebot", _jwm, rereads=True, native=True),
    Peer("fast-robotstxt", "robotstxt", _fast_robotstxt, rereads=True, native=True),
    Peer("texting-robots-py", "texting_robots", _texting_robots, native=True),
    Peer("fastrobots", "fastrobots", _fastrobots, native=True),
    Peer("fastrobots (of a path)", "fastrobots", _fastrobots_of_paths, native=True),
)
