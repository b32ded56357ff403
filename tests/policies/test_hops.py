"""The next hop of a fetch, its headers, and its result."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.hops import (
    MAX_KEPT,
    Hops,
    is_downgrade,
    keep,
    may_authenticate,
    target_of,
    user_agent_of,
)
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import StoredResponse
from scrapy_rep.rep.caching.freshness import Bounds, lifetime
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.urls import Origin

FIRST = "https://example.com/robots.txt"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    assert target_of(status, "/other", FIRST) == "https://example.com/other"


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 306, 404, 503])
def test_with_other_statuses_a_location_means_nothing(status: int) -> None:
    assert target_of(status, "/other", FIRST) is None


@pytest.mark.parametrize("location", [None, "", "http://", "https://[broken/", "http://:80/"])
def test_without_a_target_it_is_the_last_answer(location: str | None) -> None:
    assert target_of(301, location, FIRST) is None


TARGETS = {
    "other host": ("https://www.example.com/robots.txt", "https://www.example.com/robots.txt"),
    "other scheme": ("http://example.com/robots.txt", "http://example.com/robots.txt"),
    "relative": ("../a/b", "https://example.com/a/b"),
    "without a path": ("https://www.example.com", "https://www.example.com/"),
    "query": ("/r?a=b", "https://example.com/r?a=b"),
    "empty query": ("/r?", "https://example.com/r"),
    "userinfo": ("https://user:secret@www.example.com/r", "https://www.example.com/r"),
    "fragment": ("/r#part", "https://example.com/r"),
    "default port": ("https://EXAMPLE.com:443/r", "https://example.com/r"),
    "UTF-8": ("/caf\xc3\xa9", "https://example.com/caf%C3%A9"),
    "not HTTP": ("ftp://user@example.com/r", "ftp://user@example.com/r"),
}


@pytest.mark.parametrize(("location", "url"), TARGETS.values(), ids=TARGETS.keys())
def test_targets(location: str, url: str) -> None:
    assert target_of(301, location, FIRST) == url


# Origin, hop, and whether a request for it may have credentials: without http_auth_domain,
# and with one.
CREDENTIALS = {
    "same origin": ("https://example.com/", "https://example.com/r", True, True),
    "in plain text, same origin": ("http://example.com/", "http://example.com/r", True, True),
    "other host": ("https://example.com/", "https://www.example.com/r", False, True),
    "other port": ("https://example.com/", "https://example.com:8443/r", False, True),
    "to https": ("http://example.com/", "https://example.com/r", False, True),
    "from https": ("https://example.com/", "http://example.com/r", False, False),
    "from https, same port": ("https://example.com:8/", "http://example.com:8/r", False, False),
    "from https, other host": ("https://example.com/", "http://www.example.com/", False, False),
}


@pytest.mark.parametrize(
    ("first", "url", "without", "with_domain"), CREDENTIALS.values(), ids=CREDENTIALS.keys()
)
def test_which_hops_may_have_credentials(
    first: str, url: str, without: bool, with_domain: bool
) -> None:
    origin = Origin.of(first)
    assert may_authenticate(url, origin, None) is without
    assert may_authenticate(url, origin, "example.com") is with_domain


def test_what_is_a_downgrade() -> None:
    secure, plain = Origin.of("https://example.com/"), Origin.of("http://example.com/")
    assert is_downgrade("http://example.com/", secure)
    assert not is_downgrade("https://other.example/", secure)
    assert not is_downgrade("http://other.example/", plain)


# -- headers ----------------------------------------------------------------------

NO_CACHE = ("cache-control", "no-cache")


def headers(**fields: list[bytes]) -> Callable[[str], list[bytes]]:
    """As a response has them; names with underscores in place of hyphens."""
    by_name = {name.replace("_", "-"): values for name, values in fields.items()}
    return lambda name: by_name.get(name, [])


def size(location: str | None, fields: Headers) -> int:
    return len(location or "") + sum(len(name) + len(value) for name, value in fields)


def seconds(fields: Headers) -> float:
    """For how long a file with these headers may be used."""
    result = FetchResult("https://example.com/robots.txt", 200, headers=fields)
    return lifetime(StoredResponse(result, 0.0, 0.0), RFC9309, Bounds())


def test_those_that_are_read_are_kept_a_pair_for_each_line() -> None:
    kept = keep(
        headers(
            etag=[b'"1"'],
            cache_control=[b"max-age=60", b"public"],
            location=[b"/caf\xe9"],
            x_other=[b"1"],
        )
    )
    # Where a redirect leads says nothing about a copy.
    assert kept == (
        "/caf\xe9",
        (("cache-control", "max-age=60"), ("cache-control", "public"), ("etag", '"1"')),
    )
    assert keep(headers(location=[b"/1", b"/2"], age=[b"1"])) == ("/1", (("age", "1"),))


@pytest.mark.parametrize("value", [b"max-age=86400, " * 1000, b"a" * 400, b"max-age=1", b""])
@pytest.mark.parametrize("name", ["cache_control", "etag", "location", "expires", "retry_after"])
def test_at_most_7_kib_in_all(name: str, value: bytes) -> None:
    kept = keep(headers(**{name: [value] * 100_000}, age=[b"1"] * 100_000))
    assert size(*kept) <= 7 * 1024
    assert kept[1][-1] == NO_CACHE


def test_what_fits_is_kept_to_the_last_byte() -> None:
    fits = b"e" * (MAX_KEPT - len("etag") - len(": \r\n"))
    assert keep(headers(etag=[fits])) == (None, (("etag", fits.decode()),))
    assert keep(headers(etag=[fits + b"e"])) == (None, (NO_CACHE,))


def test_a_line_that_is_too_long_takes_no_room_from_other_headers() -> None:
    _, kept = keep(headers(cache_control=[b"x" * 9000], etag=[b'"1"']))
    assert kept == (("etag", '"1"'), NO_CACHE)


def test_no_later_line_stands_in_for_one_that_is_too_long() -> None:
    kept = keep(headers(location=[b"x" * 9000, b"/2"], etag=[b"x" * 9000, b'"1"']))
    assert kept == (None, (NO_CACHE,))


def test_what_is_cut_never_lives_longer() -> None:
    # The lines that are not kept may have said so.
    hidden = [b"max-age=86400", b"x" * 9000, b"no-cache"]
    assert seconds((("cache-control", "max-age=86400"),)) == 86400
    assert seconds(keep(headers(cache_control=hidden))[1]) == 300
    assert seconds(keep(headers(age=[b"9" * 9000], expires=[b"never"]))[1]) == 300
    assert seconds(keep(headers(etag=[b"e" * 9000]))[1]) == 300


# -- results ----------------------------------------------------------------------


def answer(
    body: bytes = b"",
    status: int = 200,
    *,
    encoding: bytes = b"",
    is_cut: bool = False,
    flag: str = "",
    user_agent: str = "A",
    **fields: list[bytes],
) -> Exchange:
    request = Request(FIRST, headers={"User-Agent": user_agent})
    by_name = {name: headers(**fields)(name) for name in ("location", "age", "etag")}
    response = Response(FIRST, status, by_name, body, [flag])
    return Exchange(request, response, encoding, is_cut)


def read(exchange: Exchange) -> tuple[bytes, bool]:
    """The body of *exchange* up to 5 bytes and one more, and whether it is cut."""
    result = Hops([FIRST], 5, 5).add(exchange)
    assert result is not None
    return result.body, result.cut


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({}, ""),
        ({"User-Agent": b"A"}, "A"),
        ({"User-Agent": b"caf\xe9 \xc3\xa9"}, "caf\ufffd \xe9"),
    ],
    ids=["none", "plain", "not UTF-8"],
)
def test_whatever_user_agent_is_sent_can_be_read(sent: dict[str, bytes], found: str) -> None:
    assert user_agent_of(Request(FIRST, headers=sent)) == found


def test_a_file_after_a_redirect() -> None:
    hops = Hops([FIRST], 5, 500)
    moved = answer(b"gone", 301, flag="dataloss", location=[b"/2"], age=[b"5"], etag=[b'"0"'])
    assert hops.add(moved) is None
    assert hops.urls == [FIRST, "https://example.com/2"]
    assert hops.add(answer(b"file", user_agent="B", etag=[b'"1"'])) == FetchResult(
        "https://example.com/2",
        200,
        b"file",
        redirects=1,
        detail="status 200",
        headers=(("etag", '"1"'),),
        via=((("age", "5"),),),
        user_agent="B",
    )


def test_no_more_redirects_than_the_limit_are_followed() -> None:
    hops = Hops([FIRST], 1, 500)
    assert hops.add(answer(status=301, location=[b"/2"])) is None
    assert hops.add(answer(status=302, location=[b"/3"])) == FetchResult(
        "https://example.com/2",
        302,
        redirects=2,
        failure=Failure.TOO_MANY_REDIRECTS,
        detail="2 redirects, the last one to https://example.com/3",
    )


def test_of_a_long_target_the_start_is_shown() -> None:
    result = Hops([FIRST], 0, 500).add(answer(status=301, location=[b"/" + b"x" * 1000]))
    assert result is not None
    assert result.detail.endswith("xxx…")
    assert len(result.detail) < 250


@pytest.mark.parametrize("location", [b"/robots.txt", b"/2"])
def test_loops_end(location: bytes) -> None:
    hops = Hops([FIRST], 5, 500)
    assert hops.add(answer(status=301, location=[b"/2"])) is None
    result = hops.add(answer(status=301, location=[location]))
    assert result is not None
    assert result.failure is Failure.TOO_MANY_REDIRECTS


@pytest.mark.parametrize("url", ["ftp://example.com/robots.txt", "file:///etc/passwd", "data:,x"])
def test_other_schemes_are_not_asked(url: str) -> None:
    hops = Hops([FIRST], 0, 500)
    assert hops.add(answer(status=301, location=[url.encode()])) == FetchResult(
        FIRST,
        301,
        redirects=1,
        failure=Failure.REDIRECT_TO_OTHER_SCHEME,
        detail=f"1 redirects, the last one to {url}",
    )
    assert hops.urls == [FIRST]


@pytest.mark.parametrize("status", [200, 299])
def test_one_byte_more_than_is_read_shows_that_there_are_more(status: int) -> None:
    assert read(answer(b"12345", status)) == (b"12345", False)
    assert read(answer(b"123456", status)) == (b"123456", True)
    assert read(answer(b"1234567", status)) == (b"123456", True)
    assert read(answer(b"123", status, is_cut=True, flag="download_stopped")) == (b"123", True)
    encoded = gzip.compress(b"123")[:-5]
    assert read(answer(encoded, status, encoding=b"gzip", is_cut=True)) == (b"123", True)


@pytest.mark.parametrize("status", [199, 300, 404])
def test_of_other_statuses_the_body_does_not_count(status: int) -> None:
    broken = answer(b"12345", status, encoding=b"gzip", is_cut=True, flag="dataloss")
    assert read(broken) == (b"", False)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (answer(b"123", flag="dataloss"), "the connection closed before the end of the body"),
        (answer(flag="download_stopped"), "an extension raised StopDownload"),
        (answer(b"123", encoding=b"," * 1025), "the Content-Encoding header has more than 1024"),
        (answer(b"123", encoding=b"none, gzip"), "cannot decode Content-Encoding 'gzip'"),
    ],
)
def test_bodies_that_cannot_be_read(broken: Exchange, why: str) -> None:
    with pytest.raises(FetchFailed, match=f"^{why}"):
        read(broken)
    assert read(answer(b"123", encoding=b"," * 1024)) == (b"123", False)
