"""What a glance finds is what reading finds."""

from __future__ import annotations

import zipfile
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.agents import preferences
from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, RFC9309, Dialect
from scrapy_rep.rep.glance import glance
from scrapy_rep.rep.groups import groups_about
from scrapy_rep.rep.lines import WHITE_SPACE, Field, within_limit
from scrapy_rep.rep.robotstxt import RobotsTxt
from tests.rep.generated_files import SEED_SIZE, generated
from tests.rep.test_conformance import CONFORMANCE, CORPUS

Rules = list[tuple[bytes, bool]]


def seen(body: bytes, agent: str, dialect: Dialect) -> Rules | None:
    """The rules that a glance finds."""
    found = glance(body, dialect, preferences(agent))
    if found is None:
        return None
    values, allows = found
    stripped = [value.strip(WHITE_SPACE) for value in values]
    return sorted(rule for rule in zip(stripped, allows, strict=True) if rule[0])


def read(body: bytes, agent: str, dialect: Dialect) -> Rules:
    """The rules that are there."""
    _, groups = groups_about(body, dialect, preferences(agent))
    rules = [rule for group in groups for rule in group.rules]
    return sorted((value, field is Field.ALLOW) for _, field, value in rules if value)


@pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"User-agent: *\nDisallow: /a\nAllow: /a/b\n",
        b"user-agent:*\r\ndisallow:/a\r\nallow: /b \r\n",
        b"\xef\xbb\xbfUser-Agent: * # all\nDisallow: /a # a\nDisallow:\n#Disallow: /b\n",
        b"User-agent: a\nUser-agent: *\n\nCrawl-delay: 1\nDisallow: /a\nUser-agent: b\nAllow: /\n",
        b"User-agent: *\nUser-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /b\n",
        b"User-agent: *\nDisallow: /agents/\nAllow: /yellow/\nSitemap: https://h/low\n",
        b"User-agent: b\nDisallow: /b\nUser-agent: a/1.0\nDisallow: /a\n",
        b"User-agent: ab\nDisallow: /\nUser-agent: *\nDisallow: /b",
        b"User-agent: an agent\nDisallow: /\nUser-agent: *\nDisallow: /b\n",
        b"Disallow: /\nUser-agent: *\n",
        b"User-agent: a\nDisallow: /a\nUser-agent: b\nAllow: /b\nUser-agent: c\nDisallow: /c\n",
    ],
)
def test_rules_of_usual_spelling_are_seen(body: bytes, dialect: Dialect) -> None:
    assert seen(body, "a", dialect) == read(body, "a", dialect)


@pytest.mark.parametrize(
    "body",
    [
        b"User-agent: *\nDISALLOW: /\n",
        b"User-agent: *\n Disallow: /\n",
        b"User-agent: *\nDisallow : /\n",
        b"User-agent: *\nDisallow /\n",
        b"User-agent: *\nDisalow: /a\nUser-agent: b\nDisallow: /b\n",
        b"User-agent: *\nDisallaw: /a\nUser-agent: b\nDisallow: /b\n",
        b"User-agent: *\nDiasllow: /a\n",
        b"User-agent: *\nSitemap: /low\nUser-agent: b\nDisallow: /b\n",
        b"User-agent: *\nUser-agent: fellow\nUser-agent: b\nDisallow: /b\n",
        b"Useragent: *\nDisallow: /\n",
        b"User agent: *\nDisallow: /\n",
        b" User-agent: *\nDisallow: /\n",
        b"User-agent *\nDisallow: /\n",
    ],
)
def test_others_have_to_be_read(body: bytes) -> None:
    assert seen(body, "a", RFC9309) is None


def test_dialects_in_which_groups_are_others_are_read() -> None:
    for dialect in set(DIALECTS.values()) - {RFC9309, GOOGLE}:
        assert seen(b"User-agent: *\nDisallow: /\n", "a", dialect) is None


_KEYS = [
    "User-agent:",
    "user-agent: ",
    "User-Agent:\t",
    "Disallow: ",
    "disallow:",
    "Allow:",
    "allow: ",
]
_KEYS += ["User-agent:", "Disallow:", "Disallow: /", "Sitemap: ", "# ", "#", "", "Crawl-delay: "]
_ODD_KEYS = ["Useragent: ", "Disalow: ", "DISALLOW: ", "Disallow ", " Allow: ", "Disallaw: "]
_VALUES = ["*", "a", "b", "a1", "ab", "* x", "*a", "a/1", "", " ", "/", "/a", "/a b", "/low", "law"]
_VALUES += ["agent", "/:agent", "/a # b", "/#", "\v/a\f", "\xe9", "a\0b", "Disallow: /x"]
_LINES = [f"{key}{value}" for key, value in product(_KEYS, _VALUES)]
_ODD_LINES = [f"{key}{value}" for key, value in product(_ODD_KEYS, _VALUES)]


@pytest.mark.once
@given(
    lines=st.lists(st.sampled_from(_LINES), max_size=12),
    odd=st.lists(st.sampled_from(_ODD_LINES), max_size=1),
    place=st.integers(0, 12),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    agent=st.sampled_from(["a", "b", "a1", "*", "", "a b", "\xe9"]),
    dialect=st.sampled_from([RFC9309, GOOGLE]),
)
@settings(max_examples=1000)
def test_what_is_seen_is_what_is_read(
    lines: list[str], odd: list[str], place: int, end: str, agent: str, dialect: Dialect
) -> None:
    lines[place:place] = odd
    body = end.join(lines).encode("latin-1")
    found = seen(body, agent, dialect)
    assert found in (None, read(body, agent, dialect))


@given(seed=st.binary(max_size=SEED_SIZE), dialect=st.sampled_from(list(DIALECTS.values())))
@settings(max_examples=200)
def test_the_first_answer_is_that_of_the_index(seed: bytes, dialect: Dialect) -> None:
    case = generated(seed)
    for url in case.urls:
        robots = RobotsTxt.parse(case.body, dialect)
        assert robots.allowed(url, case.agents) is robots.allowed(url, case.agents)


@pytest.mark.once
@pytest.mark.skipif(not CORPUS.is_file(), reason=f"the corpus is not in {CONFORMANCE}")
def test_nearly_all_real_files_need_no_reading() -> None:
    files = unseen = 0
    with zipfile.ZipFile(CORPUS) as corpus:
        for name in corpus.namelist():
            body = within_limit(corpus.read(name), RFC9309.max_size or 0)
            for agent in ("ExampleBot", "Googlebot"):
                files += 1
                found = seen(body, agent, RFC9309)
                if found is None:
                    unseen += 1
                else:
                    assert found == read(body, agent, RFC9309), name
    assert unseen < files / 20
