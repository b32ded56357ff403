"""The sites of ``scrapy robots demo``: robots.txt, pages, and what must come of each page."""

from __future__ import annotations

import asyncio
import codecs
import gzip
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from scrapy import Request

from ..rep.parsing.urls import ROBOTS_TXT
from ..rep.rules.verdict import Verdict
from . import output
from .servers import Answer, Asked, LoopbackServers, Site, hang, http_response, stream

#: The product token that groups are chosen by. It comes from the User-Agent, as in any project.
AGENT_TOKEN = "ExampleBot"


@dataclass(frozen=True, slots=True)
class DemoSite:
    """One origin: its *name* in the output, its robots.txt, its pages.

    *robots* is the answer to /robots.txt, a whole response or code; or the name of the site to
    whose robots.txt it redirects; ``None`` for a port at which nothing listens. *pages* has, by
    path and query, how the reason for the refusal must start, in the form of :func:`because`; ""
    if the page must be fetched. *hops* are the responses of other paths on the way to the rules,
    each requested once. *beside* names an earlier site whose host it shares, on another port.
    Its robots.txt is fetched more than once where others redirect to it: *robots_requests* times.
    """

    name: str
    robots: bytes | Answer | str | None
    pages: Mapping[str, str]
    hops: Mapping[str, bytes] = field(default_factory=dict)
    beside: str = ""
    robots_requests: int = 1


def because(verdict: Verdict) -> str:
    """Why *verdict* is what it is, in short: "line 3: Disallow: /private/"."""
    return f"line {verdict.line}: {verdict.rule}" if verdict.rule else output.because(verdict)


def says(body: bytes, *headers: tuple[str, str]) -> bytes:
    """A robots.txt, or what is served instead of one."""
    return http_response(200, body, headers)


def redirect(location: str, status: int = 302) -> bytes:
    """A redirect to *location*."""
    return http_response(status, headers=[("Location", location)])


def allowed(*paths: str) -> dict[str, str]:
    """Pages that must be fetched."""
    return dict.fromkeys(paths, "")


_PRIVATE = b"User-agent: *\nDisallow: /private/\n"
_PRIVATE_PAGES = allowed("/") | {"/private/page": "line 2: Disallow: /private/"}
_OPEN_PAGES = allowed("/", "/page")
_HTML = b"<!DOCTYPE html>\n<html><body>\nDisallow: /\n</body></html>\n"
_REFUSE_ALL = b"User-agent: *\nDisallow: /\n"
# The handler or the fetcher gives up first, and the operating system words the rest.
_UNREACHABLE = dict.fromkeys(_OPEN_PAGES, "unreachable (")
_STATUS_500 = dict.fromkeys(_OPEN_PAGES, "unreachable (status 500)")
# The same letter in UTF-8 is another path than in Latin-1.
_LATIN_1 = b"User-agent: *\nDisallow: /caf\xe9/\n"
_UTF_16 = codecs.BOM_UTF16_LE + _LATIN_1.decode("latin-1").encode("utf-16-le")

_SITES = (
    DemoSite(
        "plain rules",
        says(b"# Lines count from 1.\nUser-agent: *\nDisallow: /private/\nDisallow: /tmp\n"),
        allowed("/", "/public/page", "/private")
        | {"/private/page": "line 3: Disallow: /private/", "/tmpfile": "line 4: Disallow: /tmp"},
    ),
    DemoSite(
        "allow in disallow",
        says(b"User-agent: *\nDisallow: /shop/\nAllow: /shop/offers/\n"),
        allowed("/", "/shop/offers/1") | {"/shop/basket": "line 2: Disallow: /shop/"},
    ),
    DemoSite(
        "wildcards",
        says(b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /*/print?\n"),
        {
            "/docs/a.pdf": "line 2: Disallow: /*.pdf$",
            "/news/print?page=2": "line 3: Disallow: /*/print?",
        }
        | allowed("/docs/a.pdf?page=2", "/news/print", "/print?page=2"),
    ),
    DemoSite(
        "own group",
        says(_REFUSE_ALL + b"\nUser-agent: examplebot\nDisallow: /drafts/\n"),
        _OPEN_PAGES | {"/drafts/1": "line 5: Disallow: /drafts/"},
    ),
    DemoSite(
        "group of others",
        says(b"User-agent: Example\nUser-agent: OtherBot\nDisallow: /\n"),
        _OPEN_PAGES,
    ),
    # RFC 9309 §2.3.1.3: 400 to 499 is "unavailable". §2.3.1.4: 500 to 599 is "unreachable". The
    # body of such an answer is not a robots.txt.
    *(DemoSite(f"{n}", http_response(n, _REFUSE_ALL), _OPEN_PAGES) for n in (404, 403, 429)),
    DemoSite("500", http_response(500, b"User-agent: *\nAllow: /\n"), _STATUS_500),
    # RFC 9309 §2.3.1.2: the rules found in the end are those of the first origin.
    DemoSite(
        "redirect",
        "redirect's target",
        allowed("/", "/from/first") | {"/moved/first": "line 2: Disallow: /moved/"},
    ),
    DemoSite(
        "redirect's target",
        says(b"User-agent: *\nDisallow: /moved/\n"),
        allowed("/", "/from/target") | {"/moved/target": "line 2: Disallow: /moved/"},
        robots_requests=2,
    ),
    DemoSite("redirect loop", redirect("/there"), _OPEN_PAGES, {"/there": redirect(ROBOTS_TXT)}),
    # Another port of the same host is another origin, as another scheme is.
    DemoSite(
        "one port",
        says(b"User-agent: *\nDisallow: /one/\n"),
        allowed("/two/page") | {"/one/page": "line 2: Disallow: /one/"},
    ),
    DemoSite(
        "another port",
        says(b"User-agent: *\nDisallow: /two/\n"),
        allowed("/one/page") | {"/two/page": "line 2: Disallow: /two/"},
        beside="one port",
    ),
    DemoSite(
        "Latin-1",
        says(_LATIN_1),
        {"/caf%E9/menu": "line 2: Disallow: /caf\\xe9/"} | allowed("/caf%C3%A9/menu", "/"),
    ),
    DemoSite(
        "UTF-16",
        says(_UTF_16),
        {"/caf%C3%A9/menu": "line 2: Disallow: /caf\xe9/"} | allowed("/caf%E9/menu"),
    ),
    DemoSite(
        "CR as line end",
        says(b"User-agent: *\rDisallow: /old/\r"),
        {"/old/page": "line 2: Disallow: /old/"} | allowed("/"),
    ),
    DemoSite("empty file", says(b""), _OPEN_PAGES),
    DemoSite("HTML page", says(_HTML, ("Content-Type", "text/html")), _OPEN_PAGES),
    DemoSite("endless body", stream(_PRIVATE, b"#" * 65_000 + b"\n"), _PRIVATE_PAGES),
)


def demo_sites() -> tuple[DemoSite, ...]:
    """All sites of the demo. A function, because the gzip bomb takes long to make."""
    late = _PRIVATE + b"#" * 512_000 + b"\nDisallow: /late/\n"
    bomb = gzip.compress(_PRIVATE + b"#" * 32 * 2**20, compresslevel=6)
    return (
        *_SITES,
        DemoSite("late rule", says(late), _PRIVATE_PAGES | allowed("/late/page")),
        DemoSite("gzip bomb", says(bomb, ("Content-Encoding", "gzip")), _PRIVATE_PAGES),
        DemoSite("never answers", hang, _UNREACHABLE),
        DemoSite("closed port", None, _UNREACHABLE),
    )


_PAGE = http_response(200, b"<p>A page.</p>\n", [("Content-Type", "text/html")], "OK")

#: The status of a page that was fetched, the verdict that refused it, or an error.
Outcome = int | Verdict | str


@dataclass
class Served:
    """A site, its server, and by path the outcomes of the requests for its pages."""

    site: DemoSite
    server: Site
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def url(self, path: str) -> str:
        """The URL of *path*, as Scrapy writes it."""
        return Request(self.server.url + path).url

    @property
    def fetched(self) -> int:
        """How many pages were fetched."""
        return sum(isinstance(outcome, int) for outcome in self.outcomes.values())

    @property
    def refusals(self) -> list[Verdict]:
        """The verdicts that refused pages, in the order of the site."""
        outcomes = map(self.outcomes.get, self.site.pages)
        return [outcome for outcome in outcomes if isinstance(outcome, Verdict)]

    def differences(self) -> Iterator[str]:
        """What is not as expected, a line each."""
        for path, reason in self.site.pages.items():
            wanted = f"refused ({reason}" if reason else "fetched (status 200)"
            outcome = _in_words(self.outcomes.get(path, "no outcome"))
            if not outcome.startswith(wanted):
                expected = f"refused ({reason})" if reason else "fetched"
                yield f"{path}: expected {expected}, but {outcome}"
        wanted_targets, seen = self._expected_targets(), Counter(self.server.targets())
        for target in wanted_targets | seen:
            if wanted_targets[target] != seen[target]:
                wanted = f"expected {_times(wanted_targets[target])} at the server"
                yield f"{target}: {wanted}, but it was asked for {_times(seen[target])}"

    def _expected_targets(self) -> Counter[str]:
        """Each allowed page once, and robots.txt as often as the site says."""
        if self.site.robots is None:
            return Counter()
        pages = (path for path, reason in self.site.pages.items() if not reason)
        targets = [self.url(path).removeprefix(self.server.url) or "/" for path in pages]
        return Counter([*targets, *self.site.hops, *[ROBOTS_TXT] * self.site.robots_requests])


def _in_words(outcome: Outcome) -> str:
    if isinstance(outcome, Verdict):
        return f"refused ({because(outcome)})"
    return f"failed ({outcome})" if isinstance(outcome, str) else f"fetched (status {outcome})"


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


@contextmanager
def serving(sites: Sequence[DemoSite]) -> Iterator[list[Served]]:
    """Serve *sites*, each on an origin of its own, for as long as the block runs."""
    by_name: dict[str, Site] = {}
    with LoopbackServers() as servers, ExitStack() as closed_ports:
        for site in sites:
            if site.robots is None:
                # While the socket is open, no other program can listen there.
                port = closed_ports.enter_context(socket.socket())
                port.bind(("127.0.0.1", 0))
                by_name[site.name] = Site("http", *port.getsockname())
            else:
                host = by_name[site.beside].host if site.beside else ""
                by_name[site.name] = servers.serve(partial(_answer, site, by_name), host=host)
        yield [Served(site, by_name[site.name]) for site in sites]


async def _answer(
    site: DemoSite, by_name: dict[str, Site], asked: Asked, writer: asyncio.StreamWriter
) -> None:
    if asked.target != ROBOTS_TXT:
        writer.write(site.hops.get(asked.target, _PAGE))
    elif isinstance(site.robots, str):
        writer.write(redirect(by_name[site.robots].url + ROBOTS_TXT, 301))
    elif isinstance(site.robots, bytes):
        writer.write(site.robots)
    elif site.robots is not None:
        await site.robots(asked, writer)
