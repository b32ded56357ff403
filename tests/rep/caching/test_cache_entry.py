"""The value in a store: when two responses are the same file."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import StoredResponse

URL = "https://example.com/robots.txt"


def stored(body: bytes, status: int = 200, failure: Failure | None = None) -> StoredResponse:
    return StoredResponse(FetchResult(URL, status, body, failure=failure), 1.0, 2.0)


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        (stored(b"a"), stored(b"a", 203), False),
        (stored(b"a"), stored(b"b"), True),
        (stored(b""), stored(b"", 404), True),
        (stored(b"", 404), stored(b""), True),
        (stored(b"a", 404), stored(b"b", 410), False),
        (stored(b"a"), stored(b"a", failure=Failure.NO_ANSWER), True),
    ],
)
def test_a_response_differs_if_one_of_both_is_another_file(
    old: StoredResponse, new: StoredResponse, differs: bool
) -> None:
    assert old.differs_from(new) is differs
