"""From the archived answers of a fetch to its result, as the fetch came to it.

Here may live: one pure function. Here may not live: what the result means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_rep.evidence.warc import Answered
from scrapy_rep.policies.decompress import decompress
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.fetcher import MAX_ENCODING
from scrapy_rep.policies.headers import LOCATION, KeptHeaders, keep
from scrapy_rep.policies.redirects import next_hop
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.freshness import of_lifetime

_HTTP = ("http://", "https://")


class NotAsClaimed(Exception):
    """The archived answers are not those of the fetch that the log claims."""


def replay(
    robots_url: str,
    answers: Sequence[Answered],
    claimed: Mapping[str, Any],
    max_redirects: int,
    max_size: int,
) -> FetchResult:
    """The result of a fetch of *robots_url* that got *answers*.

    *claimed* is the result in the log. Only what no answer can show comes from there: that
    there was none, the words for it, the status of a server that does not speak HTTP, and the
    User-Agent. Raises :exc:`NotAsClaimed`.
    """
    hops = [robots_url]
    via: list[Headers] = []
    for number, answer in enumerate(answers, 1):
        if answer.url != hops[-1]:
            raise NotAsClaimed(f"the archive has an answer from {answer.url}, not {hops[-1]}")
        headers = keep(answer.lines)
        step = next_hop(answer.status, headers.first(LOCATION), hops, max_redirects)
        if (step is None or step.failure is not None) and number < len(answers):
            raise NotAsClaimed("the archive has answers after the last one")
        if step is None:
            return _last(answer, headers, hops, via, claimed, max_size)
        if step.failure is not None:
            redirects, detail = len(hops), claimed["detail"]
            return FetchResult(answer.url, answer.status, b"", redirects, step.failure, detail, ())
        via.append(of_lifetime(headers.caching))
        hops.append(step.url)
    if _has_no_answer(claimed):
        return _no_answer(robots_url, claimed)
    if hops[-1].startswith(_HTTP):
        raise NotAsClaimed("the archive does not have the answer")
    return FetchResult(
        hops[-1],
        claimed["status"],
        redirects=len(hops) - 1,
        detail=claimed["detail"],
        via=tuple(via),
        user_agent=claimed["user_agent"],
    )


def _last(
    answer: Answered,
    headers: KeptHeaders,
    hops: Sequence[str],
    via: Sequence[Headers],
    claimed: Mapping[str, Any],
    max_size: int,
) -> FetchResult:
    """The result of a fetch whose last answer is *answer*."""
    try:
        body, cut = _body(answer, max_size + 1)
    except FetchFailed:
        return _no_answer(hops[0], claimed)
    if _has_no_answer(claimed):
        raise NotAsClaimed("the archive has an answer that can be used")
    return FetchResult(
        answer.url,
        answer.status,
        body,
        len(hops) - 1,
        None,
        f"status {answer.status}",
        headers.caching,
        cut,
        tuple(via),
        claimed["user_agent"],
    )


def _body(answer: Answered, limit: int) -> tuple[bytes, bool]:
    """The body as far as it is read, and whether there was more of it."""
    if not 200 <= answer.status < 300:
        return b"", False
    encoding = b",".join(answer.lines("content-encoding"))
    if len(encoding) > MAX_ENCODING or answer.truncated == "disconnect":
        raise FetchFailed
    is_cut = answer.truncated == "length"
    encodings = encoding.decode("latin-1").split(",")
    body = decompress(answer.body, encodings, limit, cut=is_cut)[:limit]
    return body, is_cut or len(body) == limit


def _has_no_answer(claimed: Mapping[str, Any]) -> bool:
    return bool(claimed["failure"] == Failure.NO_ANSWER.value)


def _no_answer(robots_url: str, claimed: Mapping[str, Any]) -> FetchResult:
    return FetchResult(robots_url, failure=Failure.NO_ANSWER, detail=claimed["detail"])
