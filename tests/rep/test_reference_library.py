"""The google dialect against the reference library itself, file by generated file.

``REP_REFERENCE_EXAMPLES`` is how many files are tried, 10,000 by default.
"""

from __future__ import annotations

import os
import random
import zipfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import GOOGLE
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason
from tests.rep.conformance_data import CORPUS
from tests.rep.generated_files import SEED_SIZE, Generated, generated
from tests.rep.mutated_files import mutated

googlebot = pytest.importorskip(
    "jwm.robotstxt.googlebot", reason="jwm.robotstxt, the reference library, is not installed"
)

EXAMPLES = int(os.environ.get("REP_REFERENCE_EXAMPLES", "10000"))


@pytest.mark.clause("Google library-11")
@pytest.mark.once
@given(st.binary(min_size=SEED_SIZE, max_size=SEED_SIZE).map(generated))
@example(
    Generated(
        b"user-agent: *\ndisallow: /" + b"a" * 16_660, urls=[b"/" + b"a" * 16_652], agents=["a"]
    )
)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@pytest.mark.once
def test_verdict_and_line_are_those_of_the_reference_library(case: Generated) -> None:
    robots = RobotsTxt.parse(case.body, GOOGLE)
    matcher = googlebot.RobotsMatcher()
    for url in case.urls:
        for agent in case.agents:
            allowed = matcher.OneAgentAllowedByRobots(case.body, agent, url)
            verdict = robots.verdict(url, agent)
            assert (verdict.allowed, verdict.line) == (allowed, matcher.matching_line())
            assert robots.allowed(url, agent) is allowed


# Values of user-agent lines, some of which have no name in them.
_VALUES = st.sampled_from(["", "/1", "*x", "*", "* x", "x", "X/1", "y", "y1", "\xe9", "z z"])
_LINES = st.lists(
    st.one_of(
        _VALUES.map("User-agent: {}".format),
        st.sampled_from(["", "/", "/a", "/a/b", "/a*$", "/b", "/a/index.html"]).flatmap(
            lambda path: st.sampled_from([f"Disallow: {path}", f"Allow: {path}"])
        ),
        st.sampled_from(["Sitemap: s", "", "#", "x: y"]),
    ),
    max_size=12,
)


@pytest.mark.clause("Google agents-d1")
@pytest.mark.once
@given(
    lines=_LINES,
    agents=st.lists(st.sampled_from(["", "x", "y", "y1", "z", "*", "o"]), max_size=4),
    path=st.sampled_from(["/", "/a", "/a/", "/a/b", "/b"]),
)
@settings(max_examples=EXAMPLES // 10)
def test_the_union_of_agents_is_that_of_the_reference_library(
    lines: list[str], agents: list[str], path: str
) -> None:
    body = "\n".join(lines).encode()
    matcher = googlebot.RobotsMatcher()
    # It knows of no agent that has characters in its name which no token has.
    allowed = matcher.AllowedByRobots(body, agents, path)
    verdict = RobotsTxt.parse(body, GOOGLE).union_verdict(path, agents)
    assert (verdict.allowed, verdict.line) == (allowed, matcher.matching_line())


@pytest.mark.once
@given(lines=_LINES, path=st.sampled_from(["/", "/a", "/a/", "/a/b", "/b"]))
@settings(max_examples=EXAMPLES // 10)
def test_the_empty_agent_is_that_of_the_reference_library(lines: list[str], path: str) -> None:
    body = "\n".join(lines).encode()
    matcher = googlebot.RobotsMatcher()
    allowed = matcher.OneAgentAllowedByRobots(body, "", path)
    robots = RobotsTxt.parse(body, GOOGLE)
    for _ in range(3):
        verdict = robots.verdict(path, "")
        assert (verdict.allowed, verdict.line) == (allowed, matcher.matching_line())
        assert robots.allowed(path, "") is allowed


@pytest.mark.once
@pytest.mark.skipif(not CORPUS.is_file(), reason=f"the corpus is not in {CORPUS}")
def test_real_files_with_something_changed_in_them() -> None:
    # benchmarks/mutated.py has as many of them as one likes.
    with zipfile.ZipFile(CORPUS) as archive:
        bodies = [archive.read(name) for name in sorted(archive.namelist())[::10]]
    generator = random.Random(1)
    matcher = googlebot.RobotsMatcher()
    refused = 0
    for _ in range(300):
        case = mutated(generator.choice(bodies), generator.choice(bodies), generator)
        robots = RobotsTxt.parse(case.body, GOOGLE)
        for url in case.urls:
            for agent in case.agents:
                allowed = matcher.OneAgentAllowedByRobots(case.body, agent, url)
                found = robots.verdict(url, agent)
                assert (found.allowed, found.line) == (allowed, matcher.matching_line())
                assert robots.allowed(url, agent) is allowed
                refused += not allowed
            for agents in case.lists:
                allowed = matcher.AllowedByRobots(case.body, agents, url)
                found = robots.union_verdict(url, agents)
                assert (found.allowed, found.line) == (allowed, matcher.matching_line())
    assert refused > 100


def test_generated_files_are_worth_the_comparison() -> None:
    # Where nothing is refused, or no rule decides, everybody agrees.
    generator = random.Random(1)
    verdicts = Counter[tuple[bool, Reason]]()
    for _ in range(1000):
        case = generated(generator.randbytes(SEED_SIZE))
        verdict = RobotsTxt.parse(case.body, GOOGLE).verdict(case.urls[0], case.agents[0])
        verdicts[verdict.allowed, verdict.reason] += 1
    assert verdicts[False, Reason.RULE] > 100
    assert verdicts[True, Reason.RULE] > 50
    assert verdicts[True, Reason.NO_RULE] > 100
    assert verdicts[True, Reason.NO_GROUP] > 100
