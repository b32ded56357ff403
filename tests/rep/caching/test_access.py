"""What the result of a fetch means."""

from __future__ import annotations

import dataclasses

import pytest

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import GOOGLE, RFC9309, Access, Dialect

BOTH = pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
URL = "https://example.com/robots.txt"


@pytest.mark.clause(
    "Draft 2019 2.3.1.4-1",
    "Google status-1",
    "Google status-5",
    "Google status-6",
    "RFC 9111 3-2",
    "RFC 9309 2.3.1.1-1",
    "RFC 9309 2.3.1.3-1",
    "RFC 9309 2.3.1.4-2",
    "RFC 9309 2.3.1.4-d1",
)
@BOTH
@pytest.mark.parametrize(
    ("statuses", "access"),
    [
        ([200, 201, 204, 206, 226, 299], Access.SUCCESSFUL),
        ([400, 401, 403, 404, 410, 418, 451, 499], Access.UNAVAILABLE),
        ([500, 502, 503, 504, 599], Access.UNREACHABLE),
        # What the standard leaves undefined: 304 unasked, a redirect to nowhere, …
        ([300, 301, 302, 303, 304, 307, 308], Access.UNREACHABLE),
        ([0, 100, 101, 199, 600, 999], Access.UNREACHABLE),
    ],
    ids=["successful", "unavailable", "unreachable", "redirect to nowhere", "undefined"],
)
def test_what_a_status_means(statuses: list[int], access: Access, dialect: Dialect) -> None:
    results = {status: access_result(FetchResult(URL, status), dialect) for status in statuses}
    assert results == dict.fromkeys(statuses, access)


@pytest.mark.clause("Google status-6", "RFC 9309 2.3.1.3-1")
def test_too_many_requests_is_a_server_error_to_google_alone() -> None:
    assert access_result(FetchResult(URL, 429), RFC9309) is Access.UNAVAILABLE
    assert access_result(FetchResult(URL, 429), GOOGLE) is Access.UNREACHABLE


@pytest.mark.clause("Google status-2", "RFC 9309 2.3.1.2-5")
@BOTH
@pytest.mark.parametrize(
    ("failure", "access"),
    [
        (Failure.NO_ANSWER, Access.UNREACHABLE),
        (Failure.TOO_MANY_REDIRECTS, Access.UNAVAILABLE),
        (Failure.REDIRECT_TO_OTHER_SCHEME, Access.UNAVAILABLE),
    ],
)
@pytest.mark.parametrize("status", [None, 200, 301, 500])
def test_a_failure_counts_more_than_the_status_on_the_way(
    status: int | None, failure: Failure, access: Access, dialect: Dialect
) -> None:
    assert access_result(FetchResult(URL, status, failure=failure), dialect) is access


@pytest.mark.clause("Google status-13", "RFC 9309 2.3.1.4-1")
@BOTH
def test_no_status_means_unreachable(dialect: Dialect) -> None:
    assert access_result(FetchResult(URL), dialect) is Access.UNREACHABLE


@pytest.mark.clause("Google status-12")
@BOTH
@pytest.mark.parametrize("access", Access)
def test_overrides_replace_one_status(access: Access, dialect: Dialect) -> None:
    overrides = {429: access}
    assert access_result(FetchResult(URL, 429), dialect, overrides) is access
    assert access_result(FetchResult(URL, 404), dialect, overrides) is Access.UNAVAILABLE
    assert access_result(FetchResult(URL), dialect, overrides) is Access.UNREACHABLE


@pytest.mark.clause("Google status-12", "RFC 9309 2.3.1.3-2", "RFC 9309 2.3.1.4-2")
@BOTH
def test_a_body_changes_nothing(dialect: Dialect) -> None:
    forbidding = FetchResult(URL, 404, b"User-agent: *\nDisallow: /\n")
    allowing = FetchResult(URL, 503, b"User-agent: *\nAllow: /\n")
    assert access_result(forbidding, dialect) is Access.UNAVAILABLE
    assert access_result(allowing, dialect) is Access.UNREACHABLE


@pytest.mark.clause("RFC 9309 2.3.1.2-2")
def test_a_redirect_that_was_followed_changes_nothing() -> None:
    result = FetchResult(URL, 200, redirects=RFC9309.max_redirects)
    assert access_result(result, RFC9309) is Access.SUCCESSFUL


def test_a_dialect_is_data() -> None:
    strict = dataclasses.replace(RFC9309, statuses=())
    assert access_result(FetchResult(URL, 200), strict) is Access.UNREACHABLE


@pytest.mark.parametrize(
    ("cut", "max_size", "size"),
    [(False, 9, 5), (False, 5, 5), (False, 3, 3), (True, 9, 4), (True, 5, 4), (True, 3, 3)],
)
def test_the_last_byte_of_a_cut_body_is_not_read(cut: bool, max_size: int, size: int) -> None:
    result = FetchResult("https://example.com/robots.txt", 200, b"a\nb\nc", cut=cut)
    assert result.size_to_read(max_size) == size


@pytest.mark.parametrize(
    ("cut", "max_size", "read"), [(False, 9, b"a\nbcd"), (True, 9, b"a\n"), (False, 3, b"a\n")]
)
def test_no_part_of_a_line_is_read(cut: bool, max_size: int, read: bytes) -> None:
    result = FetchResult("https://example.com/robots.txt", 200, b"a\nbcd", cut=cut)
    assert result.body_to_read(max_size) == read


def test_of_an_empty_body_that_is_cut_nothing_is_read() -> None:
    assert FetchResult("https://example.com/robots.txt", 200, b"", cut=True).size_to_read(9) == 0
