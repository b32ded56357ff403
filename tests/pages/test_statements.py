"""All statements about a page together."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.pages.headers import header_statements
from scrapy_rep.pages.html import meta_statements, meta_tags
from scrapy_rep.pages.statements import (
    REFUSED_BY_RULE,
    USES,
    PageRules,
    Source,
    UseVerdict,
    evaluate,
)
from scrapy_rep.pages.tdmrep import TdmFile

TOKENS = ("examplebot",)
_VALUES = ("0", "1", None, "x")


def page_rules(
    headers: list[tuple[str, str]], html: str = "", file: bytes = b"[]", now: float = 0.0
) -> PageRules:
    def lines(name: str) -> list[bytes]:
        return [value.encode("latin-1") for key, value in headers if key == name]

    stated = [*TdmFile.parse(file).stated("/page"), *header_statements(lines, TOKENS)]
    stated += meta_statements(meta_tags(html.encode(), TOKENS), TOKENS)
    return evaluate(stated, now)


def _file(value: str | None) -> bytes:
    rules = [] if value is None else [{"location": "/", "tdm-reservation": value}]
    return json.dumps(rules).encode()


@pytest.mark.parametrize(("file", "header", "meta"), list(product(_VALUES, repeat=3)))
def test_the_most_specific_tdm_reservation_holds(
    file: str | None, header: str | None, meta: str | None
) -> None:
    """ "At every step, the absence of tdm-reservation MUST not reset current values"; an invalid
    one is unset."""
    valid = [
        (source, value)
        for source, value in zip(
            (Source.META, Source.HEADER, Source.TDM_FILE), (meta, header, file), strict=True
        )
        if value in ("0", "1")
    ]
    headers = [] if header is None else [("tdm-reservation", header)]
    html = "" if meta is None else f'<meta name="tdm-reservation" content="{meta}">'
    verdict = page_rules(headers, html, _file(file)).verdict("tdm")
    if not valid:
        assert verdict == UseVerdict("tdm", True)
        return
    source, value = valid[0]
    assert verdict.allowed is (value == "0")
    assert verdict.by is not None
    assert verdict.by.source is source


def test_a_tdm_reservation_that_is_lifted_lifts_nothing_else() -> None:
    rules = page_rules(
        [("tdm-reservation", "1"), ("X-Robots-Tag", "noai")],
        '<meta name="tdm-reservation" content="0">',
    )
    assert rules.allowed("tdm")
    assert not rules.allowed("ai-train")
    assert str(rules.verdict("ai-train").by) == "X-Robots-Tag: noai"


def test_a_date_counts_from_its_time_on() -> None:
    headers = [("X-Robots-Tag", "unavailable_after: 2030-01-01")]
    at = 1_893_456_000.0
    assert page_rules(headers, now=at - 1).refused == ()
    assert set(page_rules(headers, now=at).refused) == {"search", "snippet", "images"}


def test_every_use_has_a_verdict_that_says_why() -> None:
    rules = page_rules([("X-Robots-Tag", "noindex"), ("Content-Usage", "train-ai=y")])
    assert tuple(rules.verdicts) == USES
    assert str(rules.verdict("search")) == "search: refused by X-Robots-Tag: noindex"
    assert str(rules.verdict("ai-train")) == "ai-train: allowed by Content-Usage: train-ai=y"
    assert str(rules.verdict("tdm")) == "tdm: allowed, because nothing is stated about it"
    assert rules.verdict("unheard-of").allowed


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (("file", "header", "tag"), "tag"),
        (("file", "header", ""), "header"),
        (("tag", "header", "tag"), "tag"),
        (("file", " header ", ""), "header"),
        (("file", "", ""), "file"),
        (("", "", ""), None),
    ],
)
def test_the_policy_of_the_most_specific_source_counts(
    urls: tuple[str, str, str], expected: str | None
) -> None:
    in_file, header, tag = urls
    rule = {"location": "/", "tdm-reservation": 1, "tdm-policy": in_file}
    html = f'<meta name="tdm-policy" content="{tag}">'
    file = json.dumps([rule]).encode()
    assert page_rules([("tdm-policy", header)], html, file).tdm_policy == expected


def test_equal_statements_count_once() -> None:
    rules = page_rules([("X-Robots-Tag", "noai, noai"), ("X-Robots-Tag", "noai")])
    assert len(rules.statements) == 1


_RULES = st.sampled_from([*REFUSED_BY_RULE, "all", "index", "max-snippet: 0", "junk", "", '"', ";"])
_ITEMS = st.sampled_from(
    ["*;noindex", "examplebot;noai", "other;none", "*;noindex=?0", "a;;", '*;"']
)
_LISTS = st.lists(st.one_of(_RULES, _ITEMS), max_size=4).map(", ".join)
_SCOPED = st.tuples(st.sampled_from(["", "examplebot: ", "other: ", "*: "]), _LISTS).map("".join)
_USAGES = st.lists(
    st.sampled_from(["train-ai=n", "train-ai=y", "search=n", "search=y", "a", "=", "train-ai"]),
    max_size=3,
).map(", ".join)
_HEADERS = st.one_of(
    st.tuples(st.sampled_from(["Robots-Tag", "X-Robots-Tag"]), _SCOPED),
    st.tuples(st.just("Content-Usage"), _USAGES),
)
_TAGS = st.tuples(st.sampled_from(["robots", "examplebot", "other"]), _RULES).map(
    lambda tag: f"<meta name='{tag[0]}' content='{tag[1]}'>"
)


@given(st.lists(_HEADERS, max_size=3), st.lists(_TAGS, max_size=3), _HEADERS, _TAGS, st.data())
def test_a_header_or_tag_more_never_permits_more(
    headers: list[tuple[str, str]],
    tags: list[str],
    header: tuple[str, str],
    tag: str,
    data: st.DataObject,
) -> None:
    now = data.draw(st.sampled_from([0.0, 2e9]))
    before = set(page_rules(headers, "".join(tags), now=now).refused)
    place = data.draw(st.integers(0, len(headers)))
    more = [*headers[:place], header, *headers[place:]]
    assert before <= set(page_rules(more, "".join(tags), now=now).refused)
    place = data.draw(st.integers(0, len(tags)))
    more_tags = [*tags[:place], tag, *tags[place:]]
    assert before <= set(page_rules(headers, "".join(more_tags), now=now).refused)


@given(_LISTS, _LISTS)
def test_a_rule_more_in_a_value_never_permits_more(first: str, second: str) -> None:
    name = "X-Robots-Tag"
    before = set(page_rules([(name, first)]).refused)
    assert before <= set(page_rules([(name, f"{first}, {second}")]).refused)
