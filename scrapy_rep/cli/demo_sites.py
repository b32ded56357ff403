"""The sites of ``scrapy robots demo``: robots.txt, pages, and what must come of each page."""

from __future__ import annotations

import asyncio
import codecs
import gzip
import hashlib
import socket
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from scrapy import Request

from scrapy_rep.cli.errors import CommandError
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, hang, http_response, stream
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.lines import Field, read_records
from scrapy_rep.rep.parsing.urls import ROBOTS_TXT
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import printable

#: The product token that groups are chosen by. It comes from the User-Agent, as in any project.
AGENT_TOKEN = "ExampleBot"


@dataclass(frozen=True, slots=True)
class DemoSite:
    """One origin: its name in the output, its robots.txt, its pages.

    *pages* maps path and query to how the reason for the refusal must start, in the form of
    :func:`because`; to "" if the page must be fetched.
    """

    name: str
    #: A whole response, or code; ``None`` for a port at which nothing listens.
    robots: bytes | Answer | None
    pages: Mapping[str, str]
    #: Responses of other paths on the way to the rules. Each is requested once.
    hops: Mapping[str, bytes] = field(default_factory=dict)
    #: The name of the site to whose robots.txt this one redirects, instead of *robots*.
    redirects_to: str = ""
    #: The name of an earlier site whose host it shares, on another port.
    beside: str = ""

    @property
    def is_closed(self) -> bool:
        """Whether nothing listens at its port."""
        return self.robots is None and not self.redirects_to


def because(verdict: Verdict) -> str:
    """Why *verdict* is what it is, in short: "line 3: Disallow: /private/"."""
    if verdict.reason is Reason.RULE:
        return f"line {verdict.line}: {verdict.rule}"
    return f"{verdict.reason.value}: {verdict.detail}" if verdict.detail else verdict.reason.value


def says(body: bytes, *headers: tuple[str, str]) -> bytes:
    """A robots.txt, or what is served instead of one."""
    return http_response(200, body, headers)


def redirect(location: str, status: int = 302) -> bytes:
    """A redirect to *location*."""
    return http_response(status, headers=[("Location", location)])


def allowed(*paths: str) -> dict[str, str]:
    """Pages that must be fetched."""
    return dict.fromkeys(paths, "")


def refused(*paths: str, because: str) -> dict[str, str]:
    """Pages that must be refused, all for the same reason."""
    return dict.fromkeys(paths, because)


def demo_sites() -> tuple[DemoSite, ...]:
    """All sites of the demo."""
    return (*_RULES, *_STATUSES, *_REDIRECTS, *_ORIGINS, *_encodings(), *_failures())


_RULES = (
    DemoSite(
        "plain rules",
        says(b"# Lines count from 1.\nUser-agent: *\nDisallow: /private/\nDisallow: /tmp\n"),
        allowed("/", "/public/page", "/private")
        | refused("/private/page", because="line 3: Disallow: /private/")
        | refused("/tmpfile", because="line 4: Disallow: /tmp"),
    ),
    DemoSite(
        "allow in disallow",
        says(b"User-agent: *\nDisallow: /shop/\nAllow: /shop/offers/\n"),
        allowed("/", "/shop/offers/1")
        | refused("/shop/basket", because="line 2: Disallow: /shop/"),
    ),
    DemoSite(
        "wildcards",
        says(b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /*/print?\n"),
        refused("/docs/a.pdf", because="line 2: Disallow: /*.pdf$")
        | refused("/news/print?page=2", because="line 3: Disallow: /*/print?")
        | allowed("/docs/a.pdf?page=2", "/news/print", "/print?page=2"),
    ),
    DemoSite(
        "group for us",
        says(b"User-agent: *\nDisallow: /\n\nUser-agent: examplebot\nDisallow: /drafts/\n"),
        allowed("/", "/page") | refused("/drafts/1", because="line 5: Disallow: /drafts/"),
    ),
    DemoSite(
        "group for others",
        says(b"User-agent: Example\nUser-agent: OtherBot\nDisallow: /\n"),
        allowed("/", "/page"),
    ),
)

# RFC 9309 §2.3.1.3: 400 to 499 is "unavailable". §2.3.1.4: 500 to 599 is "unreachable". The
# body of such an answer is not a robots.txt.
_STATUSES = (
    *(
        DemoSite(
            str(status),
            http_response(status, b"User-agent: *\nDisallow: /\n"),
            allowed("/", "/page"),
        )
        for status in (404, 403, 429)
    ),
    DemoSite(
        "500",
        http_response(500, b"User-agent: *\nAllow: /\n"),
        refused("/", "/page", because="unreachable: status 500"),
    ),
)

# RFC 9309 §2.3.1.2: the rules found in the end are those of the first origin.
_REDIRECTS = (
    DemoSite(
        "redirect",
        None,
        allowed("/", "/from/first") | refused("/moved/first", because="line 2: Disallow: /moved/"),
        redirects_to="redirect's target",
    ),
    DemoSite(
        "redirect's target",
        says(b"User-agent: *\nDisallow: /moved/\n"),
        allowed("/", "/from/target")
        | refused("/moved/target", because="line 2: Disallow: /moved/"),
    ),
    DemoSite(
        "redirect loop",
        redirect("/there"),
        allowed("/", "/page"),
        hops={"/there": redirect(ROBOTS_TXT)},
    ),
)

# Another port of the same host is another origin, as another scheme is.
_ORIGINS = (
    DemoSite(
        "one port",
        says(b"User-agent: *\nDisallow: /one/\n"),
        allowed("/two/page") | refused("/one/page", because="line 2: Disallow: /one/"),
    ),
    DemoSite(
        "another port",
        says(b"User-agent: *\nDisallow: /two/\n"),
        allowed("/one/page") | refused("/two/page", because="line 2: Disallow: /two/"),
        beside="one port",
    ),
)


def _encodings() -> tuple[DemoSite, ...]:
    utf16 = codecs.BOM_UTF16_LE + "User-agent: *\nDisallow: /caf\xe9/\n".encode("utf-16-le")
    html = b"<!DOCTYPE html>\n<html><body>\nDisallow: /\n</body></html>\n"
    return (
        DemoSite(
            "Latin-1",
            says(b"User-agent: *\nDisallow: /caf\xe9/\n"),
            # The same letter in UTF-8 is another path.
            refused("/caf%E9/menu", because="line 2: Disallow: /caf\\xe9/")
            | allowed("/caf%C3%A9/menu", "/"),
        ),
        DemoSite(
            "UTF-16",
            says(utf16),
            refused("/caf%C3%A9/menu", because="line 2: Disallow: /caf\xe9/")
            | allowed("/caf%E9/menu"),
        ),
        DemoSite(
            "CR as line end",
            says(b"User-agent: *\rDisallow: /old/\r"),
            refused("/old/page", because="line 2: Disallow: /old/") | allowed("/"),
        ),
        DemoSite("empty file", says(b""), allowed("/", "/page")),
        DemoSite("HTML page", says(html, ("Content-Type", "text/html")), allowed("/", "/page")),
    )


def _failures() -> tuple[DemoSite, ...]:
    rules = b"User-agent: *\nDisallow: /private/\n"
    pages = allowed("/") | refused("/private/page", because="line 2: Disallow: /private/")
    late = rules + b"#" * 512_000 + b"\nDisallow: /late/\n"
    bomb = gzip.compress(rules + b"#" * 32 * 2**20, compresslevel=6)
    # The handler or the fetcher gives up first, and the operating system words the rest.
    unreachable = refused("/", "/page", because="unreachable: ")
    return (
        DemoSite("endless body", stream(rules, b"#" * 65_000 + b"\n"), pages),
        DemoSite("late rule", says(late), pages | allowed("/late/page")),
        DemoSite("gzip bomb", says(bomb, ("Content-Encoding", "gzip")), pages),
        DemoSite("never answers", hang, unreachable),
        DemoSite("closed port", None, unreachable),
    )


# -- serving -------------------------------------------------------------------------

_PAGE = http_response(200, b"<p>A page.</p>\n", [("Content-Type", "text/html")], "OK")

#: The status of a page that was fetched, the verdict that refused it, or an error.
Outcome = int | Verdict | str


@dataclass
class Served:
    """A site, its server, and the outcomes of the requests for its pages."""

    site: DemoSite
    server: Site
    #: How many robots.txt of other sites redirect to this one's.
    redirects_here: int = 0
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)

    def url(self, path: str) -> str:
        """The URL of *path*, as Scrapy writes it."""
        return Request(self.server.url + path).url

    @property
    def fetched(self) -> int:
        """How many pages were fetched."""
        return sum(isinstance(outcome, int) for _, outcome in self.outcomes)

    @property
    def refused(self) -> list[tuple[str, Verdict]]:
        """The pages that were refused, in the order of the site."""
        found = [(path, each) for path, each in self.outcomes if isinstance(each, Verdict)]
        return sorted(found, key=lambda pair: list(self.site.pages).index(pair[0]))

    def differences(self) -> Iterator[str]:
        """What is not as expected, a line each."""
        for path, reason in self.site.pages.items():
            expected = f"refused ({reason})" if reason else "fetched"
            outcomes = [outcome for asked, outcome in self.outcomes if asked == path]
            if len(outcomes) != 1:
                yield f"{path}: expected one outcome, {expected}, but there are {len(outcomes)}"
            for outcome in outcomes:
                if not _is_expected(reason, outcome):
                    yield f"{path}: expected {expected}, but {_in_words(outcome)}"
        wanted, seen = self._expected_requests(), Counter(self.server.targets())
        for target in wanted | seen:
            if wanted[target] != seen[target]:
                yield (
                    f"{target}: expected {_times(wanted[target])} at the server, "
                    f"but it was asked for {_times(seen[target])}"
                )

    def _expected_requests(self) -> Counter[str]:
        """Each allowed page once, and robots.txt once for each site that has its rules there."""
        if self.site.is_closed:
            return Counter()
        pages = (path for path, reason in self.site.pages.items() if not reason)
        targets = [self.url(path).removeprefix(self.server.url) or "/" for path in pages]
        # A site without pages is not asked for its rules.
        robots = bool(self.site.pages) + self.redirects_here
        return Counter([*targets, *self.site.hops, *[ROBOTS_TXT] * robots])


def _is_expected(reason: str, outcome: Outcome) -> bool:
    if not reason:
        return outcome == 200
    return isinstance(outcome, Verdict) and because(outcome).startswith(reason)


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
    redirects = Counter(site.redirects_to for site in sites)
    served = []
    with LoopbackServers() as servers, ExitStack() as closed_ports:
        for site in sites:
            if site.is_closed:
                # While the socket is open, no other program can listen there.
                port = closed_ports.enter_context(socket.socket())
                port.bind(("127.0.0.1", 0))
                server = Site("http", *port.getsockname())
            else:
                host = by_name[site.beside].host if site.beside else None
                server = servers.serve(_answer(site, by_name), host=host)
            by_name[site.name] = server
            served.append(Served(site, server, redirects[site.name]))
        yield served


def _answer(site: DemoSite, by_name: dict[str, Site]) -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target != ROBOTS_TXT:
            writer.write(site.hops.get(asked.target, _PAGE))
        elif site.redirects_to:
            writer.write(redirect(by_name[site.redirects_to].url + ROBOTS_TXT, 301))
        elif isinstance(site.robots, bytes):
            writer.write(site.robots)
        elif site.robots is not None:
            await site.robots(asked, writer)

    return answer


# -- real robots.txt files, from a ZIP archive with one member for each site ---------

# Bytes of a member that are served: more than is read of any robots.txt.
_MOST_SERVED = 2**20
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


def read_sites(path: Path, count: int) -> tuple[DemoSite, ...]:
    """Sites with *count* members of the archive at *path*, as :func:`read_members` reads them."""
    return tuple(_site(member) for member in read_members(path, count, _MOST_SERVED))


def _site(member: Member) -> DemoSite:
    robots = RobotsTxt.parse(member.body)
    verdicts = {path: robots.verdict(_ORIGIN + path, AGENT_TOKEN) for path in paths_to_ask(member)}
    pages = {path: "" if each.allowed else because(each) for path, each in verdicts.items()}
    return DemoSite(printable(member.name), says(member.body), pages)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The ZIP archive at *path*. Raises :exc:`CommandError` if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise CommandError(f"{path} is no ZIP archive that can be read: {error}") from None
    except OSError as error:
        # The message of the system contains the path once more.
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
    except RuntimeError as error:
        # Encrypted, or compressed in a way that Python does not know (NotImplementedError).
        raise CommandError(f"cannot read {path}: {error}") from None


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
