"""Answers as WARC records, and back."""

from __future__ import annotations

from io import BytesIO
from random import Random
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from warcio.archiveiterator import ArchiveIterator

from scrapy_rep.evidence import warc
from scrapy_rep.evidence.warc import WarcReader, WarcWriter, answered
from scrapy_rep.observers.observer import Exchange

URL = "https://example.com/robots.txt?a=b"
NOON = 1_800_000_000.25
BODY = b"User-agent: *\n\r\n\r\n\xff\0"


def exchange(
    body: bytes = BODY,
    status: int = 200,
    headers: dict[str, Any] | None = None,
    *,
    url: str = URL,
    encoding: bytes = b"",
    is_cut: bool = False,
    flags: tuple[str, ...] = (),
) -> Exchange:
    request = Request(url, headers={"User-Agent": "é", "Authorization": "Basic x", "Cookie": "y"})
    response = Response(url, status, headers, body, list(flags), protocol="HTTP/1.1")
    return Exchange(request, response, encoding, is_cut)


def heads(records: bytes) -> list[dict[str, str]]:
    return [dict(each.rec_headers.headers) for each in ArchiveIterator(BytesIO(records))]


@pytest.mark.parametrize(
    "each",
    [
        exchange(),
        exchange(b""),
        exchange(BODY, 404, {"ETag": b'"\xe9%"', "Set-Cookie": ["a", "b"]}),
        exchange(BODY, 599, {"Location": b"/\xc3\xa9 x"}, is_cut=True),
        exchange(b"\x1f\x8b", encoding=b"gzip,x", flags=("dataloss",)),
        exchange(b"", flags=("download_stopped",)),
        exchange(b"", 304, {"ETag": '"x"'}),
    ],
)
def test_an_answer_is_read_as_it_was_written(each: Exchange) -> None:
    records = WarcWriter().fetch(URL, [each], {"outcome": "fine"}, NOON)
    assert WarcReader().read(records) == [answered(each)]


@pytest.mark.parametrize(
    ("flag", "is_cut", "truncated"),
    [
        ("", False, ""),
        ("dataloss", False, "disconnect"),
        ("download_stopped", False, "disconnect"),
        ("download_stopped", True, "length"),
    ],
)
def test_why_a_body_is_not_whole(flag: str, is_cut: bool, truncated: str) -> None:
    assert answered(exchange(is_cut=is_cut, flags=(flag,))).truncated == truncated


def test_a_line_end_in_a_header_makes_no_other_header() -> None:
    [answer] = [answered(exchange(headers={"ETag": b"a\r\nX: y"}))]
    assert answer.headers == ((b"Etag", b"a  X: y"),)
    encoded = answered(exchange(encoding=b"gzip\r\nX: y"))
    assert encoded.headers == ((b"Content-Encoding", b"gzip  X: y"),)


def test_why_there_was_more_of_a_body() -> None:
    assert answered(exchange()).truncated == ""
    assert answered(exchange(flags=("dataloss",))).truncated == "disconnect"
    assert answered(exchange(is_cut=True, flags=("dataloss",))).truncated == "length"


def test_a_body_without_bytes_is_written_each_time() -> None:
    writer = WarcWriter()
    found = [heads(writer.fetch(URL, [exchange(b"")], {}, NOON))[0] for _ in range(2)]
    assert [head["WARC-Type"] for head in found] == ["response", "response"]


def test_each_exchange_has_a_response_and_its_request_and_the_fetch_has_metadata() -> None:
    writer = WarcWriter()
    records = writer.fetch(URL, [exchange(status=301), exchange(b"other")], {"outcome": "x"}, NOON)
    found = heads(records)
    types = [head["WARC-Type"] for head in found]
    assert types == ["response", "request", "response", "request", "metadata"]
    assert writer.record_count == 5
    first, request, last, _, metadata = found
    assert request["WARC-Concurrent-To"] == first["WARC-Record-ID"]
    assert metadata["WARC-Concurrent-To"] == last["WARC-Record-ID"]
    assert {head["WARC-Date"] for head in found} == {"2027-01-15T08:00:00.250000Z"}
    for record in ArchiveIterator(BytesIO(records)):
        assert record.format == "warc"
        assert record.rec_headers.protocol == "WARC/1.1"


def test_what_pays_and_who_is_logged_in_is_not_archived() -> None:
    records = WarcWriter().fetch(URL, [exchange()], {}, NOON)
    contents = [
        each.raw_stream.read() for each in ArchiveIterator(BytesIO(records), no_record_parse=True)
    ]
    request = contents[1]
    assert request.startswith(b"GET /robots.txt?a=b HTTP/1.1\r\nHost: example.com\r\n")
    assert "User-Agent: é".encode() in request
    assert b"Basic" not in request
    assert b"Cookie" not in request


def test_a_body_is_written_once() -> None:
    writer, reader = WarcWriter(), WarcReader()
    body = b"x" * 100_000
    first = writer.fetch(URL, [exchange(body)], {}, NOON)
    again = writer.fetch("http://other/robots.txt", [exchange(body, url="http://other/")], {}, NOON)
    head = heads(again)[0]
    assert head["WARC-Type"] == "revisit"
    assert head["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert head["WARC-Refers-To"] == heads(first)[0]["WARC-Record-ID"]
    assert head["WARC-Refers-To-Target-URI"] == URL
    with pytest.raises(ValueError, match="is missing"):
        reader.read(again)
    assert reader.read(first)[0].body == body
    assert reader.read(again)[0].body == body


def test_of_many_bodies_the_oldest_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "MAX_BODIES", 2)
    writer = WarcWriter()
    bodies = [b"a", b"b", b"a", b"c", b"b", b"a"]
    kinds = [
        heads(writer.fetch(URL, [exchange(body)], {}, NOON))[0]["WARC-Type"] for body in bodies
    ]
    assert kinds == ["response", "response", "revisit", "response", "response", "response"]


def test_a_304_refers_to_nothing_it_does_not_have() -> None:
    [head, *_] = heads(WarcWriter().fetch(URL, [exchange(b"", 304)], {}, NOON))
    assert head["WARC-Type"] == "revisit"
    assert head["WARC-Profile"].endswith("/1.1/revisit/server-not-modified")


def test_a_file_that_came_over_ftp_or_from_the_store_is_a_resource() -> None:
    url = "ftp://example.com/robots.txt"
    fetched = WarcWriter().fetch(url, [exchange(url=url)], {}, NOON)
    stored = WarcWriter().resource(url, BODY, NOON)
    for records in (fetched, stored):
        assert heads(records)[0]["WARC-Type"] == "resource"
        [answer] = WarcReader().read(records)
        assert (answer.status, answer.body) == (200, BODY)
    absent = WarcWriter().fetch(url, [exchange(b"", 404, url=url)], {}, NOON)
    assert WarcReader().read(absent) == []


def test_other_bytes_raise_one_error_or_are_no_records() -> None:
    records = WarcWriter().fetch(URL, [exchange(b"y" * 500)], {}, NOON)
    random = Random(3)
    others = [b"", b"hello", b"\x1f\x8b" + b"\xff" * 40, b"WARC/1.1\r\n", records[:100]]
    for _ in range(200):
        changed = bytearray(records)
        changed[random.randrange(len(changed))] ^= random.randrange(1, 256)
        others.append(bytes(changed))
    raised = 0
    for other in others:
        try:
            WarcReader().read(other)
        except ValueError:
            raised += 1
    assert raised
