"""Headers of a response."""

from __future__ import annotations

import pytest

from scrapy_rep.pages.headers import header_statements
from scrapy_rep.pages.statements import MAX_URL, PageRules, evaluate


def rules_of(*headers: tuple[str, bytes | str]) -> PageRules:
    def lines(name: str) -> list[bytes]:
        values = [value for key, value in headers if key.lower() == name.lower()]
        return [value.encode("latin-1") if isinstance(value, str) else value for value in values]

    found = header_statements(lines, ("examplebot",))
    return evaluate(found, 0.0)


@pytest.mark.parametrize("name", ["Robots-Tag", "X-Robots-Tag"])
def test_several_lines_add_up_and_a_scope_ends_with_its_line(name: str) -> None:
    rules = rules_of((name, "other: noarchive"), (name, "nosnippet"), (name, "*;noai"))
    assert set(rules.refused) == {"snippet", "ai-train", "ai-train-images"}
    assert str(rules.verdict("snippet").by) == f"{name}: nosnippet"


def test_both_headers_add_up() -> None:
    rules = rules_of(("Robots-Tag", "*;nosnippet"), ("X-Robots-Tag", "noarchive"))
    assert rules.refused == ("snippet", "archive")


def test_the_limit_is_for_all_lines_of_a_header() -> None:
    filler = ("X-Robots-Tag", "x" * 4090 + ", y")
    assert rules_of(filler, ("X-Robots-Tag", "noarchive")).refused == ("archive",)
    assert rules_of(filler, filler, ("X-Robots-Tag", "noarchive")).refused == ()
    assert rules_of(filler, filler, ("Robots-Tag", "noarchive")).refused == ("archive",)


# The examples of draft-ietf-aipref-attach and draft-ietf-aipref-vocab, and what they say of each.
@pytest.mark.parametrize(
    ("value", "train", "search"),
    [
        ("train-ai=n", False, None),
        # "allow model training, disallow search".
        ("train-ai=y, search=n", True, False),
        # "the following example results in all preferences being unknown".
        ('train-ai=y, train-ai, search=n, search="n"', None, None),
        # "carries no parameters, and a preference to allow the usage".
        ("train-ai;allow=n, train-ai=y", True, None),
        # "even though the preference is unknown".
        ('train-ai;has;parameters="?";', None, None),
        ('train-ai;has;parameters="?"', None, None),
        # "as this format is case sensitive".
        ("Train-AI=n", None, None),
        ("train-ai=N", None, None),
        ("train-ai=n, xyzzy=n;a=1", False, None),
        ("train-ai=(n)", None, None),
        ("train-ai=n,", None, None),
        ("\xe9=n", None, None),
    ],
)
def test_content_usage(value: str, train: bool | None, search: bool | None) -> None:
    rules = rules_of(("Content-Usage", value))
    for use, expected in (("ai-train", train), ("search", search), ("tdm", None)):
        verdict = rules.verdict(use)
        assert verdict.allowed is (expected is not False)
        assert (verdict.by is not None) is (expected is not None)


def test_of_lines_of_content_usage_none_lifts_what_another_refuses() -> None:
    # As one dictionary, the last one would count.
    rules = rules_of(("Content-Usage", "train-ai=n"), ("Content-Usage", "train-ai=y"))
    assert not rules.allowed("ai-train")
    rules = rules_of(("Content-Usage", "train-ai=n"), ("Content-Usage", "a=,"))
    assert not rules.allowed("ai-train")


def test_a_purpose_that_nobody_has_defined_is_a_use() -> None:
    def lines(name: str) -> list[bytes]:
        return [b"ai-use=n"] if name == "Content-Usage" else []

    rules = evaluate(header_statements(lines, ()), 0.0, uses=["ai-use"])
    assert rules.refused == ("ai-use",)


# TDM Reservation Protocol, "TDM Header Field in HTTP Responses".
def test_the_examples_of_tdm_headers() -> None:
    reserved = [("Content-type", "image/jpg"), ("tdm-reservation", "1")]
    rules = rules_of(*reserved)
    assert set(rules.refused) == {"tdm", "ai-train", "ai-train-images"}
    assert str(rules.verdict("tdm").by) == "tdm-reservation: 1"
    assert rules.tdm_policy is None
    policy = "https://provider.com/policies/policy.json"
    assert rules_of(*reserved, ("tdm-policy", policy)).tdm_policy == policy


@pytest.mark.parametrize("value", ["2", "", "yes", "01", "1.0", "true", "1;0", "-1"])
def test_other_values_are_as_if_it_was_not_there(value: str) -> None:
    assert rules_of(("tdm-reservation", value)).verdict("tdm").by is None


@pytest.mark.parametrize("value", ["1", " 1 ", "1, 1", "0, 1", "1,0"])
def test_headers_that_a_proxy_has_joined_reserve(value: str) -> None:
    assert not rules_of(("tdm-reservation", value)).allowed("tdm")


def test_a_policy_is_not_processed_where_rights_are_not_reserved() -> None:
    policy = ("tdm-policy", "https://provider.com/policies/policy.json")
    assert rules_of(("tdm-reservation", "0"), policy).tdm_policy is None
    assert rules_of(policy).tdm_policy is None


def test_a_policy_has_a_length() -> None:
    for length, is_kept in ((MAX_URL, True), (MAX_URL + 1, False), (0, False)):
        rules = rules_of(("tdm-reservation", "1"), ("tdm-policy", "u" * length))
        assert (rules.tdm_policy is not None) is is_kept


def test_text_for_people_is_safe() -> None:
    rules = rules_of(("X-Robots-Tag", b"noai\x1b[2J\xff"), ("X-Robots-Tag", "y" * 5000))
    for statement in rules.statements:
        assert statement.text.isprintable()
        assert len(statement.text) < 1000
