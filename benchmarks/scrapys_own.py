"""What Scrapy's own RobotsTxtMiddleware and scrapy-rep do, row by row of README's tables.

Every crawl is a real one, in a process of its own, of real servers on loopback
addresses. Where the rows do not say otherwise, robots.txt disallows /private.
Of one site, at most two pages are asked for at once, but in the row of 100 pages.
Needs Linux, and 10 GB of memory for the bombs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import gzip
import itertools
import json
import platform
import socket
import ssl
import subprocess
import sys
import tempfile
import textwrap
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks._child import run_job
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, http_response

_TIME_LIMIT = 600
_SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_TIMEOUT": 4,
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}
_MIDDLEWARES: dict[str, dict[str, Any]] = {
    "Scrapy's own": {},
    "scrapy-rep": {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "REP_FETCH_TIMEOUT": 4,
        "REP_STORE": "memory",
    },
}
_WIDTHS = (44, 38, 38)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response for each request in turn; the last one is for all that follow.

    It comes after *silence* seconds, and *forever* again and again after it.
    In it, the names of places in braces become what they are in this crawl.
    """

    turns: tuple[bytes, ...]
    forever: bytes = b""
    silence: float = 0


def says(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Reply:
    """The same whole response to each request."""
    return Reply((http_response(status, body, headers),))


def redirects(to: str) -> Reply:
    """A redirect."""
    return says(302, b"", ("Location", to))


def hops(count: int) -> dict[str, Reply]:
    """What /1, /2 and so on answer: redirects to the next, then the rules."""
    return {f"/{n}": redirects(f"/{n + 1}") for n in range(1, count)} | {
        f"/{count}": says(200, RULES)
    }


def bomb(unit: bytes) -> Reply:
    """The rules and 300 MB of *unit*, gzip-encoded."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = unit * (10**6 // len(unit))
    parts = [packer.compress(RULES), *(packer.compress(block) for _ in range(300)), packer.flush()]
    return says(200, b"".join(parts), GZIP)


@dataclass(frozen=True, slots=True)
class Page:
    """A page to ask for, *after* seconds after the one before."""

    label: str
    url: str
    meta: dict[str, object] = field(default_factory=dict)
    dont_filter: bool = False
    after: float = 0


def pages(*paths: str, at: str = "{site}", **options: Any) -> tuple[Page, ...]:
    """Pages of one place."""
    return tuple(Page(path, at + path, **options) for path in paths)


def named(name: str, *these: Page) -> tuple[Page, ...]:
    """The same pages, with a word before their paths."""
    return tuple(replace(page, label=f"{name} {page.label}") for page in these)


@dataclass(frozen=True, slots=True)
class Crawl:
    """What came of a crawl: of each page, and what was asked for on the way to robots.txt."""

    outcomes: dict[str, str]
    seconds: float
    #: In bytes.
    memory: int
    asked: list[Asked]


def requests(crawl: Crawl) -> str:
    """How often robots.txt, or where it redirects to, was asked for."""
    return f"requests for robots.txt: {len(crawl.asked)}"


def seconds(crawl: Crawl) -> str:
    """How long the crawl took."""
    return f"{crawl.seconds:.2f}\N{NO-BREAK SPACE}s"


def memory(crawl: Crawl) -> str:
    """How much the process grew."""
    return f"{crawl.memory / 10**6:.0f}\N{NO-BREAK SPACE}MB"


def way(crawl: Crawl) -> str:
    """Whether robots.txt was asked for through a proxy, which gets whole URLs."""
    proxied = [asked.target.startswith("http:") for asked in crawl.asked]
    ways = f"{proxied.count(False)} directly, {proxied.count(True)} through the proxy"
    return f"requests for robots.txt: {ways}"


def userinfo(crawl: Crawl) -> str:
    """In how many requests for robots.txt there was userinfo."""
    count = sum("authorization" in a.headers or "@" in a.headers["host"] for a in crawl.asked)
    return f"requests for robots.txt: {len(crawl.asked)}, with userinfo: {count}"


RULES = b"User-agent: *\nDisallow: /private\n"
A, B, ALL = (RULES.replace(b"/private", path) for path in (b"/a", b"/b", b"/"))
HTML = ("Content-Type", "text/html")
GZIP = ("Content-Encoding", "gzip")
TWO = pages("/private", "/page")
GROUPS = b"".join(
    b"User-agent: %s\nDisallow: %s\n\n" % group
    for group in ((b"*", b"/star"), (b"Mozilla", b"/mozilla"), (b"ExampleBot", b"/examplebot"))
)
GROUP_PAGES = pages("/star", "/mozilla", "/examplebot")
# Of three pages that wait for one robots.txt, Scrapy's own lets the third through,
# as the row of 100 pages shows. That would hide whose rules it goes by.
ONE_AT_A_TIME = {
    "CONCURRENT_REQUESTS": 1,
    "USER_AGENT": "Mozilla/5.0 (compatible; ExampleBot/0.1; +https://www.example.com/bot.html)",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What is served, what is asked for, and what to show of it but the outcomes.

    A *second* site has an address of its own or, *beside* the first, its host.
    A *bomb* is the unit that the body is made of, instead of *robots*.
    """

    name: str
    robots: Reply
    pages: tuple[Page, ...] = TWO
    hops: Mapping[str, Reply] = field(default_factory=dict)
    second: Reply | None = None
    beside: Literal["no", "on another port", "by https"] = "no"
    settings: Mapping[str, object] = field(default_factory=dict)
    allowed_domains: tuple[str, ...] = ()
    show: tuple[Callable[[Crawl], str], ...] = ()
    runs: int = 1
    bomb: bytes = b""


_ANSWERS = (
    Row("200 with rules", says(200, RULES, ("Content-Type", "text/plain"))),
    Row("200 with rules, as text/html", says(200, RULES, HTML)),
    Row("200 with rules, gzip-encoded", says(200, gzip.compress(RULES), GZIP)),
    Row("200 with rules, CR line ends", says(200, RULES.replace(b"\n", b"\r"))),
    Row("200 with rules in UTF-16", says(200, RULES.decode().encode("utf-16"))),
    Row(
        "Disallow: /é in Latin-1",
        says(200, RULES.replace(b"/private", b"/\xe9")),
        pages("/%E9tude", "/page"),
    ),
    Row("204", says(204)),
    Row("200 with an HTML page", says(200, b"<!DOCTYPE html><html>Disallow: /</html>", HTML)),
    *(Row(f"{status}", says(status)) for status in (400, 401, 403, 404, 410, 429)),
    *(
        Row(f"{status} with a body Disallow: /", says(status, ALL))
        for status in (400, 401, 403, 404, 410, 429)
    ),
    *(Row(f"{status}", says(status)) for status in (500, 502, 503, 599)),
    Row(
        "500 once, rules when asked again; REP_RETRY_DELAY = 2",
        Reply((http_response(500), http_response(200, RULES))),
        (
            *TWO,
            *named(
                "3 s later",
                *pages("/private", after=3, dont_filter=True),
                *pages("/page", dont_filter=True),
            ),
        ),
        settings={"REP_RETRY_DELAY": 2},
        show=(requests,),
    ),
    Row("304 unasked", says(304)),
    Row("301 without Location", says(301)),
    Row("connection closed", Reply((b"",))),
    Row("no answer in time", Reply((b"",), silence=_TIME_LIMIT)),
    Row(
        "cut body",
        Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + RULES,)),
    ),
    Row(
        "bad chunk",
        Reply((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + RULES,)),
    ),
    Row("bad gzip", says(200, RULES, GZIP)),
    Row("connection refused", says(200), pages("/private", "/page", at="{closed}")),
)

_REDIRECTS = (
    Row(
        "redirect to another origin",
        redirects("{second}/robots.txt"),
        second=says(200, RULES),
    ),
    Row("five redirects", redirects("/1"), hops=hops(5)),
    Row("six redirects", redirects("/1"), hops=hops(6)),
    Row(
        "redirect loop",
        redirects("/there"),
        hops={"/there": redirects("/robots.txt")},
        show=(requests,),
    ),
    Row("redirect to file:", redirects("file://{file}")),
    Row(
        "redirect to data:",
        redirects("data:text/plain,User-agent:%20*%0ADisallow:%20/private"),
    ),
    Row("redirect to ftp:", redirects("ftp://{ftp}/robots.txt")),
)

_FLOODS = (
    Row(
        "rules, then comments without end",
        Reply(
            (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + RULES,),
            forever=(b"#" * 99 + b"\n") * 10_000,
        ),
        show=(memory,),
    ),
    Row(
        "rules and 300 MB of blank lines, gzip-encoded",
        says(200),
        bomb=b"\n",
        show=(seconds, memory),
    ),
    Row(
        "rules and 300 MB of Allow lines, gzip-encoded",
        says(200),
        bomb=b"Allow: /\n",
        show=(seconds, memory),
    ),
)

_PAGES = (
    Row(
        "page is one of 100 disallowed ones, requested at once",
        says(200, ALL),
        pages(*(f"/{number}" for number in range(100))),
        runs=6,
    ),
    Row(
        "page is at https://host, after http://host",
        says(200, A),
        (
            *named("http", *pages("/a", "/b", at="http://{host}")),
            *named("https", *pages("/a", "/b", at="https://{host}", after=0.5)),
        ),
        second=says(200, B),
        beside="by https",
    ),
    Row(
        "page is at another port",
        says(200, A),
        (
            *named("one port", *pages("/a", "/b")),
            *named("other port", *pages("/a", "/b", at="{second}")),
        ),
        second=says(200, B),
        beside="on another port",
    ),
    Row(
        "page has proxy in its meta",
        says(200, RULES),
        pages("/private", "/page", meta={"proxy": "{second}"}),
        second=says(200, RULES),
        show=(way,),
    ),
    Row(
        "page is off-site, let through by allow_offsite",
        says(200, RULES),
        pages("/private", "/page", meta={"allow_offsite": True}),
        allowed_domains=("example.com",),
        show=(requests,),
    ),
    Row(
        "page is off-site, let through by dont_filter",
        says(200, RULES),
        pages("/private", "/page", dont_filter=True),
        allowed_domains=("example.com",),
        show=(requests,),
    ),
    Row(
        "page has userinfo in its URL",
        says(200, RULES),
        pages("/private", "/page", at="http://user:secret@{host}:{port}"),
        show=(userinfo,),
    ),
    Row(
        "page is requested as Mozilla/5.0 (compatible; ExampleBot/0.1; …), group ExampleBot",
        says(200, GROUPS),
        GROUP_PAGES,
        settings=ONE_AT_A_TIME,
    ),
    Row(
        "page is requested as the same, without such a group, but with one for Mozilla",
        says(200, GROUPS.replace(b": ExampleBot", b": Other")),
        GROUP_PAGES,
        settings=ONE_AT_A_TIME,
    ),
)

ROWS = (*_ANSWERS, *_REDIRECTS, *_FLOODS, *_PAGES)


def tls_context() -> ssl.SSLContext:
    """A server's context with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = builder.not_valid_before(now - day).not_valid_after(now + day)
    pem = serialization.Encoding.PEM
    data = certificate.sign(key, hashes.SHA256()).public_bytes(pem) + key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        context.load_cert_chain(file.name)
    return context


@dataclass(frozen=True, slots=True)
class Places:
    """What a crawl may run into: the sites of a row, and what its URLs may name in braces."""

    row: Row
    servers: LoopbackServers
    ftp: socket.socket
    named: dict[str, str]
    sites: list[Site] = field(default_factory=list)

    def open_sites(self) -> None:
        """Serve what the row says."""
        row, https = self.row, self.row.beside == "by https"
        site = self._serve(bomb(row.bomb) if row.bomb else row.robots, port=80 if https else 0)
        self.named.update({"{site}": site.url, "{host}": site.host, "{port}": str(site.port)})
        if row.second:
            host = None if row.beside == "no" else site.host
            where = {"port": 443, "tls": tls_context()} if https else {}
            self.named["{second}"] = self._serve(row.second, host=host, **where).url

    def _serve(self, robots: Reply, **where: Any) -> Site:
        replies = {"/robots.txt": robots, **self.row.hops}
        self.sites.append(self.servers.serve(answering(replies, self.fill), **where))
        return self.sites[-1]

    def fill(self, data: bytes) -> bytes:
        """*data* with what the names in it stand for."""
        for name, place in self.named.items():
            data = data.replace(name.encode(), place.encode())
        return data

    def asked(self) -> list[Asked]:
        """What was asked for on the way to robots.txt."""
        paths = {"/robots.txt", *self.row.hops}
        everything = itertools.chain.from_iterable(site.asked for site in self.sites)
        return [asked for asked in everything if urlsplit(asked.target).path in paths]

    def ftp_was_tried(self) -> bool:
        """Whether a connection came in where the FTP server would be."""
        with contextlib.suppress(BlockingIOError):
            self.ftp.accept()[0].close()
            return True
        return False


@contextlib.contextmanager
def places_of(row: Row) -> Iterator[Places]:
    """Everything that a crawl of *row* needs, for as long as it takes."""
    with (
        LoopbackServers() as servers,
        socket.socket() as ftp,
        socket.socket() as closed,
        tempfile.NamedTemporaryFile() as file,
    ):
        for listener in (ftp, closed):
            listener.bind(("127.0.0.1", 0))
        # Without this, connections are refused.
        ftp.listen()
        ftp.setblocking(False)
        file.write(RULES)
        file.flush()
        named = {
            "{file}": file.name,
            "{ftp}": f"127.0.0.1:{ftp.getsockname()[1]}",
            "{closed}": f"http://127.0.0.1:{closed.getsockname()[1]}",
        }
        places = Places(row, servers, ftp, named)
        places.open_sites()
        yield places


def answering(replies: Mapping[str, Reply], fill: Callable[[bytes], bytes]) -> Answer:
    """The answer of a site: *replies* by path, and a page everywhere else."""
    turns = {
        path: itertools.chain(reply.turns, itertools.repeat(reply.turns[-1]))
        for path, reply in replies.items()
    }

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        path = urlsplit(asked.target).path
        if path not in replies:
            writer.write(http_response(200, b"<html>A page.</html>", [HTML]))
            return
        await asyncio.sleep(replies[path].silence)
        writer.write(fill(next(turns[path])))
        while replies[path].forever:
            writer.write(replies[path].forever)
            await writer.drain()

    return answer


def crawl(row: Row, middleware: str) -> Crawl:
    """One crawl."""
    with places_of(row) as places:
        filled = json.loads(places.fill(json.dumps(job(row, middleware)).encode()))
        came = run_job("benchmarks._crawl", filled, _TIME_LIMIT)
        if places.ftp_was_tried():
            came["outcomes"]["ftp:"] = "tried"
        return Crawl(came["outcomes"], came["seconds"], came["memory"], places.asked())


def job(row: Row, middleware: str) -> dict[str, Any]:
    """What the child process is to do."""
    return {
        "pages": [asdict(page) for page in row.pages],
        "settings": {**_SETTINGS, **_MIDDLEWARES[middleware], **row.settings},
        "spider": {"allowed_domains": row.allowed_domains} if row.allowed_domains else {},
    }


def cell(row: Row, middleware: str) -> str:
    """What came of a row with one of the middlewares."""
    try:
        crawls = [crawl(row, middleware) for _ in range(row.runs)]
    except subprocess.SubprocessError as error:
        return f"no result: {error}"
    except OSError:
        if row.beside == "by https":
            return "needs ports 80 and 443"
        raise
    if row.runs > 1:
        return fetched_of_many(row, crawls)
    return outcomes_and_more(row, crawls[0])


def outcomes_and_more(row: Row, crawl: Crawl) -> str:
    """What came of each page, in order, and what else the row shows."""
    nothing = {page.label: "without outcome" for page in row.pages}
    outcomes = [f"{label} {outcome}" for label, outcome in (nothing | crawl.outcomes).items()]
    return ", ".join(outcomes + [shown(crawl) for shown in row.show])


def fetched_of_many(row: Row, crawls: list[Crawl]) -> str:
    """How many pages were fetched in each of some crawls."""
    counts = [list(crawl.outcomes.values()).count("fetched") for crawl in crawls]
    return f"fetched of {len(row.pages)}: {', '.join(map(str, counts))}"


def table_lines(*cells: str) -> Iterator[str]:
    """A row of the table."""
    columns = [textwrap.wrap(text, width) for text, width in zip(cells, _WIDTHS, strict=True)]
    for parts in itertools.zip_longest(*columns, fillvalue=""):
        line = "  ".join(f"{part:<{width}}" for part, width in zip(parts, _WIDTHS, strict=True))
        yield line.replace("\N{NO-BREAK SPACE}", " ").rstrip() + "\n"


def write_row(*cells: str) -> None:
    """A row on stdout, at once: the next one may take minutes."""
    sys.stdout.writelines(table_lines(*cells))
    sys.stdout.flush()


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?", default="", help="only rows with this in their names")
    parser.add_argument("--without-bombs", action="store_true", help="not those of 300 MB")
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("Scrapy", "Protego"))
    sys.stdout.write(f"{versions}, Python {platform.python_version()}\n\n")
    write_row("robots.txt is answered with, or the page", *_MIDDLEWARES)
    write_row(*("-" * width for width in _WIDTHS))
    for row in ROWS:
        if options.rows.lower() in row.name.lower() and not (row.bomb and options.without_bombs):
            write_row(row.name, *(cell(row, middleware) for middleware in _MIDDLEWARES))


if __name__ == "__main__":
    main()
