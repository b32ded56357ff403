"""From the archived answers of a fetch to its result, as the fetch came to it.

Here may live: one pure function. Here may not live: what the result means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy import Request
from scrapy.http import Response

from scrapy_rep.evidence.lines import NotAsClaimed
from scrapy_rep.evidence.warc import Answered
from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.hops import Hops
from scrapy_rep.rep.caching.access import Failure, FetchResult

_HTTP = ("http://", "https://")


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
    hops = Hops([robots_url], max_redirects, max_size)
    for number, answer in enumerate(answers, 1):
        if answer.url != hops.urls[-1]:
            raise NotAsClaimed(f"the archive has an answer from {answer.url}, not {hops.urls[-1]}")
        try:
            result = hops.add(_exchange(answer, claimed["user_agent"]))
        except FetchFailed:
            result = _no_answer(robots_url, claimed)
        if result is None:
            continue
        if number < len(answers):
            raise NotAsClaimed("the archive has answers after the last one")
        if result.failure is None and _has_no_answer(claimed):
            raise NotAsClaimed("the archive has an answer that can be used")
        return result
    if _has_no_answer(claimed):
        return _no_answer(robots_url, claimed)
    if hops.urls[-1].startswith(_HTTP):
        raise NotAsClaimed("the archive does not have the answer")
    return FetchResult(
        hops.urls[-1],
        claimed["status"],
        redirects=len(hops.urls) - 1,
        detail=claimed["detail"],
        via=tuple(hops.via),
        user_agent=claimed["user_agent"],
    )


def _exchange(answer: Answered, user_agent: str) -> Exchange:
    request = Request(answer.url, headers={"User-Agent": user_agent.encode("utf-8", "replace")})
    flags = ["dataloss"] if answer.truncated == "disconnect" else []
    response = Response(answer.url, answer.status, answer.headers, answer.body, flags)
    encoding = b",".join(answer.lines("content-encoding"))
    return Exchange(request, response, encoding, is_cut=answer.truncated == "length")


def _has_no_answer(claimed: Mapping[str, Any]) -> bool:
    return bool(claimed["failure"] == Failure.NO_ANSWER.value)


def _no_answer(robots_url: str, claimed: Mapping[str, Any]) -> FetchResult:
    return FetchResult(robots_url, failure=Failure.NO_ANSWER, detail=claimed["detail"])
