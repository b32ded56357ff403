"""One value of Robots-Tag, X-Robots-Tag or meta robots."""

from __future__ import annotations

import pytest

from scrapy_rep.pages.robots_tag import MAX_HEADER, complete_members, read_rules
from scrapy_rep.pages.statements import REFUSED_BY_RULE, Source, Statement

TOKENS = ("examplebot", "example-bot2")


def read(value: str, *tokens: str) -> list[Statement]:
    return list(read_rules(value, Source.HEADER, "X-Robots-Tag", tokens or TOKENS))


def rules(value: str, *tokens: str) -> list[str]:
    """The rules that hold for us, with their scope."""
    return [each.text.removeprefix("X-Robots-Tag: ") for each in read(value, *tokens)]


# draft-illyes-repext: "the following response header field specifies a global nosnippet rule for
# all accessors, and an additional noindex rule specifically for ExampleBot".
EXAMPLE = "*;nosnippet, ExampleBot;noindex"


@pytest.mark.parametrize(
    ("token", "expected"),
    [("examplebot", ["*: nosnippet", "examplebot: noindex"]), ("other", ["*: nosnippet"])],
)
def test_the_example_of_the_draft(token: str, expected: list[str]) -> None:
    assert rules(EXAMPLE, token) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # "A product token followed by a colon holds for the rules after it, until the next."
        (
            "noindex, examplebot: nofollow, nosnippet",
            ["noindex", "examplebot: nofollow", "examplebot: nosnippet"],
        ),
        ("other: noindex, nosnippet, examplebot: nofollow", ["examplebot: nofollow"]),
        ("other: noindex, *: nofollow", ["nofollow"]),
        ("other:noindex", []),
        ("ExampleBot : NoIndex", ["examplebot: noindex"]),
        ("other: examplebot: noindex", ["examplebot: noindex"]),
        # "Rules with a value, not tokens."
        ("max-snippet: 0, nofollow", ["max-snippet: 0", "nofollow"]),
        ("examplebot: max-image-preview: none", ["examplebot: max-image-preview: none"]),
        ("new-rule: 5, noindex", ["new-rule: 5", "noindex"]),
        # Parameters of an item.
        ("*;noindex;nofollow", ["*: noindex", "*: nofollow"]),
        ("*; noindex", ["*: noindex"]),
        ('"examplebot";noindex', ["examplebot: noindex"]),
        ("*;noindex=?0;nofollow=?1", ["*: nofollow"]),
        ("*;max-snippet=0", ["*: max-snippet: 0"]),
        ("other;noindex, *;nofollow", ["*: nofollow"]),
        # Mistakes.
        ("noindex; nofollow", ["noindex", "nofollow"]),
        ("examplebot: noindex; nofollow", ["examplebot: noindex", "examplebot: nofollow"]),
        ("noindex,, ,nofollow,", ["noindex", "nofollow"]),
        ('noindex", nosnippet', ['noindex"', "nosnippet"]),
        ("(a b);noindex, nofollow", ["nofollow"]),
        ("*;;noindex, *;nofollow", ["*: nofollow"]),
        ("\xe9;noindex, nofollow", ["nofollow"]),
        ("*;a=:AA==:;nofollow", ["*: a", "*: nofollow"]),
        ("", []),
        (" ", []),
    ],
)
def test_the_rules_for_us(value: str, expected: list[str]) -> None:
    assert rules(value) == expected


@pytest.mark.parametrize("rule", sorted(REFUSED_BY_RULE.keys() - {"unavailable_after"}))
def test_each_rule_refuses_its_uses_in_either_form_and_any_case(rule: str) -> None:
    for value in (rule, rule.upper(), f"*;{rule}", f"ExampleBot: {rule}", f"EXAMPLEBOT;{rule}"):
        (statement,) = read(value)
        assert statement.uses == REFUSED_BY_RULE[rule]
        assert not statement.allows


@pytest.mark.parametrize(
    "value", ["all", "index, follow", "max-snippet: -1", "max-image-preview: large", "xyzzy: 0"]
)
def test_other_rules_restrict_nothing(value: str) -> None:
    assert read(value)
    assert not any(each.uses for each in read(value))


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("25 Jun 2010 15:00:00 PST", 1_277_506_800),
        ("Saturday, 30-Aug-08 15:00:00 GMT", 1_220_108_400),
        ("Sat, 30 Aug 2008 15:00:00 GMT", 1_220_108_400),
        ("2008-08-30T15:00:00Z", 1_220_108_400),
        ("2008-08-30T17:00:00+02:00", 1_220_108_400),
        ("2008-08-30", 1_220_054_400),
    ],
)
def test_a_date_holds_from_its_time_on(date: str, seconds: float) -> None:
    for value in (date, f"{date}, nofollow"):
        first, *rest = read(f"unavailable_after: {value}")
        assert first.since == seconds
        assert first.uses == REFUSED_BY_RULE["unavailable_after"]
        assert [each.text for each in rest] == ["X-Robots-Tag: nofollow"] * ("nofollow" in value)


def test_a_date_in_the_new_form_is_one_of_structured_fields() -> None:
    (statement,) = read("*;unavailable_after=@1220108400")
    assert statement.since == 1_220_108_400


@pytest.mark.parametrize("date", ["", "soon", "99 Jun 2010", "Saturday, soon", "0000-00-00"])
def test_a_date_that_is_not_one_says_nothing(date: str) -> None:
    statements = read(f"unavailable_after: {date}")
    assert not any(each.uses for each in statements)
    assert "nofollow" in rules(f"unavailable_after: {date}, nofollow")


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        ("noindex, nosnippet", 18, "noindex, nosnippet"),
        ("noindex, nosnippet", 17, "noindex"),
        # Cut where a member ends, and a comma shows that it is complete.
        ("noindex, nosnippet", 8, "noindex"),
        ("noindex, nosnippet", 7, "noindex"),
        ("noindex, nosnippet", 6, ""),
        ("noindex, nosnippet", 0, ""),
        # A comma in quotes does not end a member.
        ('a;b="c,d",e', 10, 'a;b="c,d"'),
    ],
)
def test_a_value_is_cut_after_its_last_complete_member(
    value: str, limit: int, expected: str
) -> None:
    assert complete_members(value, limit) == expected


def test_eight_kilobytes_are_read() -> None:
    padding = "x" * (MAX_HEADER - len(", noindex"))
    assert complete_members(f"{padding}, noindex", MAX_HEADER).endswith("noindex")
    assert complete_members(f"{padding}, noindexer", MAX_HEADER) == padding
