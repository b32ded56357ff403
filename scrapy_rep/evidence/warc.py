"""Answers to robots.txt requests as WARC records (ISO 28500:2017, WARC 1.1), and back.

Each record is a gzip member of its own (Annex D of the standard).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

from scrapy.utils.datatypes import LocalCache
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_rep.observers.observer import Exchange

#: How the URLs begin of servers that speak HTTP.
HTTP = ("http://", "https://")
#: Bodies that are known to be in the archive. An older one is written again if it comes again.
MAX_BODIES = 50_000

_REVISIT = "http://netpreserve.org/warc/1.1/revisit/"
_NOT_MODIFIED = f"{_REVISIT}server-not-modified"
# What is nobody's business: who pays for the proxy, and who is logged in.
_SECRETS = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
# The handler has undone it, and a body that is not in chunks is none.
_UNDONE = b"transfer-encoding"

HeaderLines = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one request: *body* as it came, with its Content-Encoding.

    *truncated* says why there was more of the body: "length" where it was cut at
    REP_MAX_SIZE, "disconnect" where the connection ended; else empty.
    """

    url: str
    status: int
    headers: HeaderLines
    body: bytes
    truncated: str = ""

    def lines(self, name: str) -> list[bytes]:
        """The values of the header *name*, which is in lower case."""
        wanted = name.encode("ascii")
        return [value for key, value in self.headers if key.lower() == wanted]


def answered(exchange: Exchange) -> Answered:
    """The answer in *exchange*, as it came."""
    response = exchange.response
    headers = [
        (name, _one_line(value))
        for name, values in response.headers.items()
        if name.lower() != b"content-encoding"
        for value in values
    ]
    if exchange.content_encoding:
        headers.append((b"Content-Encoding", _one_line(exchange.content_encoding)))
    truncated = "disconnect" if {"dataloss", "download_stopped"} & {*response.flags} else ""
    if exchange.is_cut:
        truncated = "length"
    return Answered(response.url, response.status, tuple(headers), response.body, truncated)


def _one_line(value: bytes) -> bytes:
    return value.replace(b"\r", b" ").replace(b"\n", b" ")


class _Head(StatusAndHeaders):  # type: ignore[misc]
    """The head of an HTTP message, as it stands: warcio would percent-encode it."""

    def __init__(self, head: bytes) -> None:
        first = head.partition(b"\r\n")[0].decode("latin-1")
        super().__init__(first, [], is_http_request=True)
        self._head = head

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        self.headers_buff = self._head


class WarcWriter:
    """Makes records. It remembers which bodies are in the archive, to refer to them."""

    def __init__(self) -> None:
        self._out = BytesIO()
        self._warc = WARCWriter(self._out, gzip=True, warc_version="1.1")
        #: By payload digest, what refers to the first record with that body.
        self._bodies: LocalCache[str, dict[str, str]] = LocalCache(MAX_BODIES)
        self.record_count = 0

    def info(self, filename: str, fields: Mapping[str, str]) -> bytes:
        """The record that every file begins with."""
        self._write(self._warc.create_warcinfo_record(filename, fields))
        return self._taken()

    def fetch(
        self, robots_url: str, exchanges: Sequence[Exchange], fields: Mapping[str, str], at: float
    ) -> bytes:
        """The records of a fetch that ended at time *at*: its *exchanges*, and *fields*."""
        date = _date(at)
        concurrent: dict[str, str] = {}
        for exchange in exchanges:
            answer, request = answered(exchange), exchange.request
            if answer.url.startswith(HTTP):
                concurrent = {"WARC-Concurrent-To": self._response(exchange, answer, date)}
                head = _request_head(request)
                self._write(self._make("request", request.url, date, b"", concurrent, head))
            elif answer.status == HTTPStatus.OK:
                self._resource(answer.url, answer.body, date)
        text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._write(self._make("metadata", robots_url, date, text.encode(), concurrent))
        return self._taken()

    def resource(self, url: str, body: bytes, at: float) -> bytes:
        """The record of a *body* that came from the store."""
        self._resource(url, body, _date(at))
        return self._taken()

    def _resource(self, url: str, body: bytes, date: str) -> None:
        self._write(self._make("resource", url, date, body, {"Content-Type": "text/plain"}))

    def _response(self, exchange: Exchange, answer: Answered, date: str) -> str:
        """Write the record of an answer, and return its identifier."""
        headers = {"WARC-Truncated": answer.truncated} if answer.truncated else {}
        if exchange.response.ip_address is not None:
            headers["WARC-IP-Address"] = str(exchange.response.ip_address)
        head = _response_head(answer, exchange.response.protocol)
        # Its digest is the one that warcio gives to the payload.
        record = self._make("response", answer.url, date, answer.body, headers, head)
        digest = record.rec_headers.get_header("WARC-Payload-Digest")
        if answer.status == HTTPStatus.NOT_MODIFIED:
            headers["WARC-Profile"] = _NOT_MODIFIED
        elif answer.body and digest in self._bodies:
            self._bodies.move_to_end(digest)
            headers |= self._bodies[digest]
        else:
            record_id = self._write(record)
            self._bodies[digest] = {
                "WARC-Profile": f"{_REVISIT}identical-payload-digest",
                "WARC-Payload-Digest": digest,
                "WARC-Refers-To": record_id,
                "WARC-Refers-To-Target-URI": answer.url,
                "WARC-Refers-To-Date": date,
            }
            return record_id
        return self._write(self._make("revisit", answer.url, date, b"", headers, head))

    def _make(
        self,
        kind: str,
        url: str,
        date: str,
        body: bytes,
        headers: Mapping[str, str],
        head: bytes | None = None,
    ) -> Any:
        return self._warc.create_warc_record(
            url,
            kind,
            payload=BytesIO(body),
            length=len(body),
            warc_headers_dict={"WARC-Date": date, **headers},
            http_headers=None if head is None else _Head(head),
        )

    def _write(self, record: Any) -> str:
        """Write *record*, and return its identifier."""
        self._warc.write_record(record)
        self.record_count += 1
        return str(record.rec_headers.get_header("WARC-Record-ID"))

    def _taken(self) -> bytes:
        records = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return records


def _date(at: float) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at % 1 * 1e6):06d}Z"


def _response_head(answer: Answered, protocol: str | None) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = ""
    # HTTP/2 has no such line: it is written as one of HTTP/1.1, which readers expect.
    version = protocol if protocol and protocol.startswith("HTTP/1") else "HTTP/1.1"
    lines = [f"{version} {answer.status} {phrase}".encode("ascii")]
    for name, value in answer.headers:
        # The convention of other archives for a header that no longer describes the body.
        prefix = b"X-Archive-Orig-" if name.lower() == _UNDONE else b""
        lines.append(b"%b%b: %b" % (prefix, name, value))
    return b"\r\n".join([*lines, b"", b""])


def _request_head(request: Request) -> bytes:
    authority, slash, path = request.url.partition("://")[2].partition("/")
    lines = [f"{request.method} {slash}{path} HTTP/1.1".encode(), f"Host: {authority}".encode()]
    for name, values in request.headers.items():
        if name.lower() not in _SECRETS:
            lines += [b"%b: %b" % (name, _one_line(value)) for value in values]
    return b"\r\n".join([*lines, b"", b""])


# -- reading ----------------------------------------------------------------------------


class WarcReader:
    """Reads what a :class:`WarcWriter` made, and finds the bodies that it refers to."""

    def __init__(self) -> None:
        #: By payload digest, compressed.
        self._bodies: dict[str, bytes] = {}

    def read(self, records: bytes) -> list[Answered]:
        """The answers in *records*, those of one fetch or of one body from the store.

        Whether they are whole, their digest must say: warcio reads what it can. Raises
        :exc:`ValueError` for what it cannot read.
        """
        try:
            return [
                self._answer(record.rec_headers, record.raw_stream.read())
                for record in ArchiveIterator(BytesIO(records), no_record_parse=True)
                if record.rec_type in ("response", "revisit", "resource")
            ]
        except ValueError:
            raise
        except Exception as error:
            # warcio has exceptions of its own, and zlib's.
            raise ValueError(f"not WARC records: {type(error).__name__}: {error}") from error

    def _answer(self, record: StatusAndHeaders, content: bytes) -> Answered:
        url = record.get_header("WARC-Target-URI")
        if record.get_header("WARC-Type") == "resource":
            return Answered(url, HTTPStatus.OK, (), content)
        head, _, body = content.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        digest = record.get_header("WARC-Payload-Digest")
        if record.get_header("WARC-Type") == "response":
            self._bodies[digest] = zlib.compress(body, 1)
        elif record.get_header("WARC-Profile") != _NOT_MODIFIED:
            if digest not in self._bodies:
                raise ValueError(f"the body {digest} that a revisit record refers to is missing")
            body = zlib.decompress(self._bodies[digest])
        return Answered(
            url,
            int(first.split(b" ")[1]),
            tuple(_header_lines(lines)),
            body,
            record.get_header("WARC-Truncated") or "",
        )


def _header_lines(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for line in lines:
        name, _, value = line.partition(b": ")
        yield name, value
