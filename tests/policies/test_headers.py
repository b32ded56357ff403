"""Which headers are kept, however many there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scrapy_rep.policies.headers import MAX_KEPT, KeptHeaders, keep
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import StoredResponse
from scrapy_rep.rep.caching.freshness import Bounds, lifetime
from scrapy_rep.rep.dialects import RFC9309

NO_CACHE = ("cache-control", "no-cache")


def headers(**fields: list[bytes]) -> Callable[[str], list[bytes]]:
    """As a response has them; names with underscores in place of hyphens."""
    by_name = {name.replace("_", "-"): values for name, values in fields.items()}
    return lambda name: by_name.get(name, [])


def size(kept: KeptHeaders) -> int:
    return sum(len(name) + len(value) for name, value in kept.fields)


def seconds(fields: tuple[tuple[str, str], ...]) -> float:
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
    assert kept.fields == (
        ("location", "/caf\xe9"),
        ("cache-control", "max-age=60"),
        ("cache-control", "public"),
        ("etag", '"1"'),
    )
    assert not kept.is_cut
    assert kept.first("location") == "/caf\xe9"
    assert kept.first("cache-control") == "max-age=60"
    assert kept.first("expires") is None
    # Where a redirect leads says nothing about a copy.
    assert kept.caching == kept.fields[1:]


@pytest.mark.parametrize("value", [b"max-age=86400, " * 1000, b"a" * 400, b"max-age=1", b""])
@pytest.mark.parametrize("name", ["cache_control", "etag", "location", "expires", "retry_after"])
def test_at_most_7_kib_in_all(name: str, value: bytes) -> None:
    kept = keep(headers(**{name: [value] * 100_000}, age=[b"1"] * 100_000))
    assert size(kept) <= 7 * 1024
    assert kept.is_cut


def test_what_fits_is_kept_to_the_last_byte() -> None:
    fits = b"e" * (MAX_KEPT - len("etag") - len(": \r\n"))
    assert keep(headers(etag=[fits])) == KeptHeaders((("etag", fits.decode()),))
    assert keep(headers(etag=[fits + b"e"])) == KeptHeaders((), is_cut=True)


def test_a_line_that_is_too_long_takes_no_room_from_other_headers() -> None:
    kept = keep(headers(cache_control=[b"x" * 9000], etag=[b'"1"']))
    assert kept.caching == (("etag", '"1"'), NO_CACHE)


def test_what_is_cut_never_lives_longer() -> None:
    # The lines that are not kept may have said so.
    hidden = [b"max-age=86400", b"x" * 9000, b"no-cache"]
    assert seconds((("cache-control", "max-age=86400"),)) == 86400
    assert seconds(keep(headers(cache_control=hidden)).caching) == 300
    assert seconds(keep(headers(age=[b"9" * 9000], expires=[b"never"])).caching) == 300
    assert seconds(keep(headers(etag=[b"e" * 9000])).caching) == 300
