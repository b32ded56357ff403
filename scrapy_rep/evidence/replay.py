"""From the archived answers of a fetch to its result, as the fetch came to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from scrapy import Request
from scrapy.http import Response

from scrapy_rep.evidence.lines import NotAsClaimed
from scrapy_rep.evidence.warc import HTTP, Answered
from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.policies.hops import Hops
from scrapy_rep.rep.caching.access import Failure, FetchResult


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
    no_answer = FetchResult(robots_url, failure=Failure.NO_ANSWER, detail=claimed["detail"])
    is_no_answer = claimed["failure"] == Failure.NO_ANSWER.value
    hops = Hops([robots_url], max_redirects, max_size)
    for number, answer in enumerate(answers, 1):
        if answer.url != hops.urls[-1]:
            raise NotAsClaimed(f"the archive has an answer from {answer.url}, not {hops.urls[-1]}")
        result: FetchResult | None = no_answer
        with suppress(FetchFailed):
            result = hops.add(_exchange(answer, claimed["user_agent"]))
        if result is None:
            continue
        if number < len(answers):
            raise NotAsClaimed("the archive has answers after the last one")
        if result.failure is None and is_no_answer:
            raise NotAsClaimed("the archive has an answer that can be used")
        return result
    if is_no_answer:
        return no_answer
    if hops.urls[-1].startswith(HTTP):
        raise NotAsClaimed("the archive does not have the answer")
    said = {name: claimed[name] for name in ("status", "detail", "user_agent")}
    return FetchResult(hops.urls[-1], redirects=len(hops.urls) - 1, via=tuple(hops.via), **said)


def _exchange(answer: Answered, user_agent: str) -> Exchange:
    request = Request(answer.url, headers={"User-Agent": user_agent.encode("utf-8", "replace")})
    flags = ["dataloss"] if answer.truncated == "disconnect" else []
    response = Response(answer.url, answer.status, answer.headers, answer.body, flags)
    encoding = b",".join(answer.lines("content-encoding"))
    return Exchange(request, response, encoding, is_cut=answer.truncated == "length")
