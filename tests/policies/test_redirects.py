"""The next hop of a fetch."""

from __future__ import annotations

import pytest

from scrapy_rep.policies.redirects import (
    Redirect,
    is_downgrade,
    may_authenticate,
    next_hop,
)
from scrapy_rep.rep.caching.access import Failure
from scrapy_rep.rep.parsing.urls import Origin

FIRST = "https://example.com/robots.txt"


def after(location: str | None, status: int = 301, hops: tuple[str, ...] = (FIRST,)) -> object:
    return next_hop(status, location, hops, 5)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    assert after("/other", status) == Redirect("https://example.com/other")


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 306, 404, 503])
def test_with_other_statuses_a_location_means_nothing(status: int) -> None:
    assert after("/other", status) is None


@pytest.mark.parametrize("location", [None, "", "http://", "https://[broken/", "http://:80/"])
def test_without_a_target_it_is_the_last_answer(location: str | None) -> None:
    assert after(location) is None


TARGETS = {
    "other host": ("https://www.example.com/robots.txt", "https://www.example.com/robots.txt"),
    "other scheme": ("http://example.com/robots.txt", "http://example.com/robots.txt"),
    "relative": ("../a/b", "https://example.com/a/b"),
    "without a path": ("https://www.example.com", "https://www.example.com/"),
    "query": ("/r?a=b", "https://example.com/r?a=b"),
    "userinfo": ("https://user:secret@www.example.com/r", "https://www.example.com/r"),
    "fragment": ("/r#part", "https://example.com/r"),
    "default port": ("https://EXAMPLE.com:443/r", "https://example.com/r"),
    "UTF-8": ("/caf\xc3\xa9", "https://example.com/caf%C3%A9"),
}


@pytest.mark.parametrize(("location", "url"), TARGETS.values(), ids=TARGETS.keys())
def test_targets(location: str, url: str) -> None:
    assert after(location) == Redirect(url)


@pytest.mark.parametrize("url", ["ftp://example.com/robots.txt", "file:///etc/passwd", "data:,x"])
def test_other_schemes_are_not_asked(url: str) -> None:
    assert after(url) == Redirect(url, Failure.REDIRECT_TO_OTHER_SCHEME)


def test_loops_end() -> None:
    assert after(FIRST) == Redirect(FIRST, Failure.TOO_MANY_REDIRECTS)
    second = "https://example.com/2"
    assert after(FIRST, hops=(FIRST, second)) == Redirect(FIRST, Failure.TOO_MANY_REDIRECTS)


def test_five_redirects_are_followed() -> None:
    urls = tuple(f"https://example.com/{number}" for number in range(7))
    assert after(urls[5], hops=urls[:5]) == Redirect(urls[5])
    assert after(urls[6], hops=urls[:6]) == Redirect(urls[6], Failure.TOO_MANY_REDIRECTS)


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
