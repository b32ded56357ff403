"""The sites of the demo, as data: what they answer, what to ask, what must come of it."""

from __future__ import annotations

import codecs
import gzip
from dataclasses import dataclass

#: Who crawls. The token for groups is taken from it, as in any project.
USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
AGENT_TOKEN = "ExampleBot"

#: ``REP_FETCH_TIMEOUT`` of the demo, in seconds: one site never answers.
FETCH_TIMEOUT = 3


@dataclass(frozen=True, slots=True)
class Says:
    """A whole response."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Redirects:
    """A redirect to *path* of this site, or of the one called *site*."""

    path: str
    site: str = ""
    status: int = 302


@dataclass(frozen=True, slots=True)
class Streams:
    """*start*, then *forever* again and again until the client hangs up."""

    start: bytes
    forever: bytes


@dataclass(frozen=True, slots=True)
class Hangs:
    """Nothing at all, on a connection that stays open."""


@dataclass(frozen=True, slots=True)
class RefusesConnections:
    """No server: the port is closed."""


Reply = Says | Redirects | Streams | Hangs | RefusesConnections


@dataclass(frozen=True, slots=True)
class Page:
    """A page to ask for: path and query, and what must come of it.

    *because* is how the reason for a refusal must start, in the form of
    :func:`~scrapy_rep.cli.demo.results.because`.
    """

    path: str
    allowed: bool
    because: str = ""


@dataclass(frozen=True, slots=True)
class DemoSite:
    """One origin: its name in the output, its robots.txt, its pages."""

    name: str
    robots: Reply
    pages: tuple[Page, ...]
    #: Other paths that the way to the rules leads through: each is asked once.
    hops: tuple[tuple[str, Reply], ...] = ()
    #: How many robots.txt of other sites redirect to this one's.
    redirects_here: int = 0
    #: The name of the site above whose host it shares, on another port.
    beside: str = ""


def allowed(*paths: str) -> tuple[Page, ...]:
    """Pages that must be fetched."""
    return tuple(Page(path, True) for path in paths)


def refused(*paths: str, because: str) -> tuple[Page, ...]:
    """Pages that must be refused, all *because* of the same."""
    return tuple(Page(path, False, because) for path in paths)


def demo_sites() -> tuple[DemoSite, ...]:
    """All sites of the demo."""
    return (*_RULES, *_STATUSES, *_REDIRECTS, *_ORIGINS, *_encodings(), *_trouble())


_RULES = (
    DemoSite(
        "plain rules",
        Says(b"# Lines count from 1.\nUser-agent: *\nDisallow: /private/\nDisallow: /tmp\n"),
        (
            *allowed("/", "/public/page", "/private"),
            *refused("/private/page", because="line 3: Disallow: /private/"),
            *refused("/tmpfile", because="line 4: Disallow: /tmp"),
        ),
    ),
    DemoSite(
        "allow in disallow",
        Says(b"User-agent: *\nDisallow: /shop/\nAllow: /shop/offers/\n"),
        (
            *allowed("/", "/shop/offers/1"),
            *refused("/shop/basket", because="line 2: Disallow: /shop/"),
        ),
    ),
    DemoSite(
        "wildcards",
        Says(b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /*/print?\n"),
        (
            *refused("/docs/a.pdf", because="line 2: Disallow: /*.pdf$"),
            *refused("/news/print?page=2", because="line 3: Disallow: /*/print?"),
            *allowed("/docs/a.pdf?page=2", "/news/print", "/print?page=2"),
        ),
    ),
    DemoSite(
        "group for us",
        Says(b"User-agent: *\nDisallow: /\n\nUser-agent: examplebot\nDisallow: /drafts/\n"),
        (
            *allowed("/", "/page"),
            *refused("/drafts/1", because="line 5: Disallow: /drafts/"),
        ),
    ),
    DemoSite(
        "group for others",
        Says(b"User-agent: Example\nUser-agent: OtherBot\nDisallow: /\n"),
        allowed("/", "/page"),
    ),
)

_FORBIDS_ALL = b"User-agent: *\nDisallow: /\n"
_ALLOWS_ALL = b"User-agent: *\nAllow: /\n"

# RFC 9309 §2.3.1.3: 400 to 499 is "unavailable". §2.3.1.4: 500 to 599 is
# "unreachable". The body of such an answer is no robots.txt.
_STATUSES = (
    DemoSite("404", Says(_FORBIDS_ALL, 404), allowed("/", "/page")),
    DemoSite("403", Says(_FORBIDS_ALL, 403), allowed("/", "/page")),
    DemoSite("429", Says(_FORBIDS_ALL, 429), allowed("/", "/page")),
    DemoSite(
        "500", Says(_ALLOWS_ALL, 500), refused("/", "/page", because="unreachable: status 500")
    ),
)

# RFC 9309 §2.3.1.2: the rules found in the end are those of the first origin.
_REDIRECTS = (
    DemoSite(
        "redirect",
        Redirects("/robots.txt", site="redirect's target", status=301),
        (
            *allowed("/", "/from/first"),
            *refused("/moved/first", because="line 2: Disallow: /moved/"),
        ),
    ),
    DemoSite(
        "redirect's target",
        Says(b"User-agent: *\nDisallow: /moved/\n"),
        (
            *allowed("/", "/from/target"),
            *refused("/moved/target", because="line 2: Disallow: /moved/"),
        ),
        redirects_here=1,
    ),
    DemoSite(
        "redirect loop",
        Redirects("/there"),
        allowed("/", "/page"),
        hops=(("/there", Redirects("/robots.txt")),),
    ),
)

# The same host is another origin on another port, as it is by http and https.
_ORIGINS = (
    DemoSite(
        "one port",
        Says(b"User-agent: *\nDisallow: /one/\n"),
        (*allowed("/two/page"), *refused("/one/page", because="line 2: Disallow: /one/")),
    ),
    DemoSite(
        "another port",
        Says(b"User-agent: *\nDisallow: /two/\n"),
        (*allowed("/one/page"), *refused("/two/page", because="line 2: Disallow: /two/")),
        beside="one port",
    ),
)


def _encodings() -> tuple[DemoSite, ...]:
    return (
        DemoSite(
            "Latin-1",
            Says(b"User-agent: *\nDisallow: /caf\xe9/\n"),
            (
                *refused("/caf%E9/menu", because="line 2: Disallow: /caf\\xe9/"),
                # The same letter in UTF-8 is another path.
                *allowed("/caf%C3%A9/menu", "/"),
            ),
        ),
        DemoSite(
            "UTF-16",
            Says(codecs.BOM_UTF16_LE + "User-agent: *\nDisallow: /caf\xe9/\n".encode("utf-16-le")),
            (
                *refused("/caf%C3%A9/menu", because="line 2: Disallow: /caf\xe9/"),
                *allowed("/caf%E9/menu"),
            ),
        ),
        DemoSite(
            "CR as line end",
            Says(b"User-agent: *\rDisallow: /old/\r"),
            (*refused("/old/page", because="line 2: Disallow: /old/"), *allowed("/")),
        ),
        DemoSite("empty file", Says(), allowed("/", "/page")),
        DemoSite(
            "HTML page",
            Says(
                b"<!DOCTYPE html>\n<html><body>\nDisallow: /\n</body></html>\n",
                headers=(("Content-Type", "text/html"),),
            ),
            allowed("/", "/page"),
        ),
    )


_RULES_BEFORE_FLOOD = b"User-agent: *\nDisallow: /private/\n"


def _trouble() -> tuple[DemoSite, ...]:
    flooded = (
        *allowed("/"),
        *refused("/private/page", because="line 2: Disallow: /private/"),
    )
    return (
        DemoSite(
            "endless body",
            Streams(_RULES_BEFORE_FLOOD, b"#" * 65_000 + b"\n"),
            flooded,
        ),
        DemoSite(
            "late rule",
            Says(_RULES_BEFORE_FLOOD + b"#" * 512_000 + b"\nDisallow: /late/\n"),
            (*flooded, *allowed("/late/page")),
        ),
        DemoSite("gzip bomb", _gzip_bomb(), flooded),
        DemoSite(
            "never answers",
            Hangs(),
            # By whom it was given up first, the handler or the fetcher, may differ,
            refused("/", "/page", because="unreachable: "),
        ),
        DemoSite(
            "closed port",
            RefusesConnections(),
            # and this is the operating system's wording.
            refused("/", "/page", because="unreachable: "),
        ),
    )


def _gzip_bomb() -> Says:
    """32 MiB, once unpacked."""
    body = gzip.compress(_RULES_BEFORE_FLOOD + b"#" * 32 * 2**20, compresslevel=6)
    return Says(body, headers=(("Content-Encoding", "gzip"),))
