"""The google dialect against what others have recorded (../shared/conformance)."""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from typing import Any

import pytest

from scrapy_rep.rep.dialects import GOOGLE, RFC9309
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from tests.rep.conformance_data import CONFORMANCE, CORPUS, SPECIFICATION, VERDICTS

pytestmark = pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason=f"the conformance data is not in {CONFORMANCE}"
)


def _expectations() -> list[Any]:
    if not SPECIFICATION.is_file():
        return [None]
    loaded: list[Any] = json.loads(SPECIFICATION.read_text(encoding="utf-8"))
    return loaded


EXPECTATIONS = _expectations()


def _allowed(expectation: Any, robots: RobotsTxt) -> bool:
    return robots.allowed(expectation["url"], expectation["agent"])


def test_the_specification_test_suite_is_there_whole() -> None:
    assert len(EXPECTATIONS) == 146


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=range(len(EXPECTATIONS)))
def test_an_expectation_of_the_specification_test_suite(expectation: Any) -> None:
    body = base64.b64decode(expectation["robotstxt_b64"])
    allowed = _allowed(expectation, RobotsTxt.parse(body, GOOGLE))
    assert allowed is expectation["allowed"], expectation["note"]


# The suite expects a URL that is not encoded, or encodes what it need not, to
# miss its rule ("it's up to the caller"). RFC 9309 §2.2.2 makes them equal.
_SPELLED_OTHERWISE = (110, 112, 113)


@pytest.mark.parametrize(
    ("expectation", "spelled_otherwise"),
    [
        pytest.param(each, number in _SPELLED_OTHERWISE, id=str(number))
        for number, each in enumerate(EXPECTATIONS)
        if each is None or not each["google_specific"]
    ],
)
def test_what_is_not_googles_own_holds_in_the_default_dialect(
    expectation: Any, spelled_otherwise: bool
) -> None:
    body = base64.b64decode(expectation["robotstxt_b64"])
    allowed = _allowed(expectation, RobotsTxt.parse(body, RFC9309))
    assert allowed is (expectation["allowed"] is not spelled_otherwise), expectation["note"]


@pytest.mark.once
def test_every_verdict_and_line_of_the_reference_library() -> None:
    asked = 0
    wrong = []
    with zipfile.ZipFile(CORPUS) as corpus, gzip.open(VERDICTS, "rt") as recorded:
        for line in recorded:
            site = json.loads(line)
            robots = RobotsTxt.parse(corpus.read(site["file"]), GOOGLE)
            # The last of three is set where the reference library needs another form.
            urls = [escaped or url for _, url, escaped in site["q"]]
            agents = [token or agent for _, agent, token in site["a"]]
            pairs = [(url, agent) for url in urls for agent in agents]
            for (url, agent), allowed, number in zip(pairs, site["v"], site["ml"], strict=True):
                verdict = robots.verdict(url, agent)
                if (verdict.allowed, verdict.line) != (allowed == "1", number):
                    wrong.append((site["file"], url, agent, str(verdict), allowed, number))
                asked += 1
    assert wrong == []
    assert asked == 275_316
