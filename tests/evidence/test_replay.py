"""From archived answers to the result of a fetch."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from scrapy_rep.evidence.lines import NotAsClaimed
from scrapy_rep.evidence.replay import replay
from scrapy_rep.evidence.warc import Answered
from scrapy_rep.rep.caching.access import Failure, FetchResult

URL = "https://example.com/robots.txt"
OTHER = "https://www.example.com/robots.txt"
BODY = b"User-agent: *\nDisallow: /\n"
FINE: dict[str, Any] = {
    "failure": None,
    "status": 200,
    "detail": "status 200",
    "user_agent": "ExampleBot/1.0",
}
FAILED = {**FINE, "failure": "no answer", "status": None, "detail": "time-out"}
NO_ANSWER = FetchResult(URL, failure=Failure.NO_ANSWER, detail="time-out")


def answer(
    body: bytes = BODY, status: int = 200, *headers: tuple[bytes, bytes], url: str = URL
) -> Answered:
    return Answered(url, status, headers, body)


def moved(location: str, url: str = URL) -> Answered:
    return answer(b"gone", 301, (b"Location", location.encode()), (b"Age", b"5"), url=url)


def run(*answers: Answered, claimed: dict[str, Any] = FINE, size: int = 500) -> FetchResult:
    return replay(URL, answers, claimed, max_redirects=5, max_size=size)


def test_a_file() -> None:
    result = run(answer(BODY, 200, (b"ETag", b'"\xe9"'), (b"Server", b"x")))
    assert result == FetchResult(
        URL,
        200,
        BODY,
        detail="status 200",
        headers=(("etag", '"\xe9"'),),
        user_agent="ExampleBot/1.0",
    )


def test_redirects_are_followed() -> None:
    result = run(moved(OTHER), answer(url=OTHER))
    assert (result.url, result.redirects, result.via) == (OTHER, 1, ((("age", "5"),),))


def test_a_loop_of_redirects_is_given_up() -> None:
    result = run(moved(OTHER), moved(URL, OTHER), claimed={**FINE, "detail": "2 redirects"})
    assert result.failure is Failure.TOO_MANY_REDIRECTS
    assert (result.url, result.status, result.redirects) == (OTHER, 301, 2)


@pytest.mark.parametrize("size", [len(BODY) - 1, len(BODY)])
def test_a_body_is_read_as_far_as_the_crawl_reads_it(size: int) -> None:
    encoded = answer(gzip.compress(BODY), 200, (b"Content-Encoding", b"gzip"))
    for each in (answer(), encoded):
        result = run(each, size=size)
        assert result.body == BODY[: size + 1]
        assert result.cut is (size < len(BODY))


def test_the_body_of_another_status_is_not_read() -> None:
    assert run(answer(BODY, 404)).body == b""


@pytest.mark.parametrize(
    "broken",
    [
        answer(b"not gzip", 200, (b"Content-Encoding", b"gzip")),
        answer(BODY, 200, (b"Content-Encoding", b"x" * 2000)),
        Answered(URL, 200, (), BODY, "disconnect"),
    ],
)
def test_a_body_that_is_broken_is_no_answer(broken: Answered) -> None:
    assert run(broken, claimed=FAILED) == NO_ANSWER


def test_a_failure_on_the_way_is_as_the_log_says() -> None:
    assert run(claimed=FAILED) == NO_ANSWER
    assert run(moved(OTHER), claimed=FAILED) == NO_ANSWER


@pytest.mark.parametrize(
    ("answers", "claimed", "why"),
    [
        ([], FINE, "does not have the answer"),
        ([moved(OTHER)], FINE, "does not have the answer"),
        ([answer(url=OTHER)], FINE, "has an answer from"),
        ([answer(), answer()], FINE, "answers after the last one"),
        ([answer()], FAILED, "has an answer that can be used"),
        ([answer(b"", 503)], FAILED, "has an answer that can be used"),
    ],
)
def test_answers_that_are_not_those_of_the_log(
    answers: list[Answered], claimed: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotAsClaimed, match=why):
        run(*answers, claimed=claimed)


def test_a_server_that_does_not_speak_http() -> None:
    url = "ftp://example.com/robots.txt"
    found = replay(url, [answer(url=url)], FINE, 5, 500)
    assert found.body == BODY
    absent = replay(url, [], {**FINE, "status": 404, "detail": "status 404"}, 5, 500)
    assert absent == FetchResult(url, 404, detail="status 404", user_agent="ExampleBot/1.0")
