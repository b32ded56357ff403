"""Why a verdict is what it is: what became of each rule."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1996, RFC9309, Dialect
from scrapy_rep.rep.rules import explain as explain_module
from scrapy_rep.rep.rules.explain import Explanation, Fate, explain
from scrapy_rep.rep.rules.matching import MOST_PIECES
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason
from tests.rep.generated_files import SEED_SIZE, generated

F = Fate


def explained(
    body: str, url: str, agents: str | tuple[str, ...] = "Bot", dialect: Dialect = RFC9309
) -> Explanation:
    return explain(RobotsTxt.parse(body.encode(), dialect), url, agents)


def fates(
    body: str, url: str, agents: str | tuple[str, ...] = "Bot", dialect: Dialect = RFC9309
) -> list[tuple[int, Fate, int]]:
    found = explained(body, url, agents, dialect)
    return [(each.rule.line, each.fate, each.length) for each in found.rules]


# -- one fate after the other ------------------------------------------------------


def test_the_longest_wins_and_others_are_shorter_or_do_not_match() -> None:
    body = "User-agent: *\nDisallow: /\nDisallow: /b\nAllow: /a/*.html$\nDisallow: /a/\n"
    assert fates(body, "https://example.com/a/b.html") == [
        (2, F.SHORTER, 1),
        (3, F.NO_MATCH, 0),
        (4, F.DECIDES, 10),
        (5, F.SHORTER, 3),
    ]


def test_an_allow_wins_a_tie() -> None:
    body = "User-agent: *\nDisallow: /a\nAllow: /a\nAllow: /a\nDisallow: /*\n"
    assert fates(body, "/a") == [
        (2, F.TIE, 2),
        (3, F.DECIDES, 2),
        (4, F.LATER, 2),
        (5, F.TIE, 2),
    ]


def test_where_the_first_match_decides_all_others_come_later() -> None:
    body = "User-agent: *\nAllow: /b\nDisallow: /a\nAllow: /a/b\n"
    assert fates(body, "/a/b", dialect=KOSTER1996) == [
        (2, F.NO_MATCH, 0),
        (3, F.DECIDES, 2),
        (4, F.LATER, 4),
    ]


def test_groups_of_others() -> None:
    body = (
        "User-agent: *\nDisallow: /a\nDisallow: /c\n\n"
        "User-agent: x\nUser-agent: bot\nAllow: /a\n\nUser-agent: Bot\nDisallow: /a/b\n"
    )
    found = explained(body, "/a/b", ("nobody", "BOT"))
    assert found.agent == "bot"
    assert found.groups == ((("bot", 6),), (("Bot", 9),))
    assert [(each.rule.line, each.fate) for each in found.rules] == [
        (2, F.OTHER_GROUP),
        (3, F.NOT_ABOUT_US),
        (7, F.SHORTER),
        (10, F.DECIDES),
    ]
    assert found.winner is not None
    assert found.winner.rule == found.verdict.rule


def test_robots_txt_itself() -> None:
    body = "User-agent: *\nDisallow: /\n"
    assert fates(body, "/robots.txt") == [(2, F.ROBOTS_TXT_ITSELF, 1)]
    assert fates(body, "/robots.txt", dialect=GOOGLE) == [(2, F.DECIDES, 1)]


def test_an_index_page_allows_its_directory() -> None:
    body = "User-agent: *\nDisallow: /a/\nAllow: /a/index.html\n"
    assert fates(body, "/a/") == [(2, F.SHORTER, 3), (3, F.DECIDES, 4)]


def test_a_rule_without_a_value() -> None:
    body = "User-agent: *\nDisallow:\n"
    assert fates(body, "/") == [(2, F.NO_MATCH, 0)]
    assert fates(body, "/", dialect=GOOGLE) == [(2, F.DECIDES, 0)]


def test_no_url() -> None:
    found = explained("User-agent: *\nDisallow: /\n", "no url")
    assert (found.verdict.reason, found.path, found.rules) == (Reason.INVALID_URL, None, ())
    assert (found.agent, found.groups) == ("*", ((("*", 1),),))


def test_the_path_is_that_which_is_compared() -> None:
    assert explained("", "https://example.com/%7ea/../b c#d").path == "/b%20c"


# -- any file ------------------------------------------------------------------------


@pytest.mark.once
@settings(max_examples=400)
@example(b"", "rfc9309")
@given(st.binary(max_size=SEED_SIZE), st.sampled_from(sorted(DIALECTS)))
def test_the_winner_is_the_rule_of_the_verdict(seed: bytes, name: str) -> None:
    case = generated(seed)
    robots = RobotsTxt.parse(case.body, DIALECTS[name])
    for url in case.urls:
        for agents in (*case.agents, tuple(case.agents)):
            verdict = robots.verdict(url, agents)
            found = explain(robots, url, agents)
            assert found.verdict == verdict
            assert (found.winner.rule if found.winner else None) == verdict.rule
            assert sum(each.fate is F.DECIDES for each in found.rules) <= 1
            lines = [each.rule.line for each in found.rules]
            assert lines == sorted(set(lines))
            _check_losers(found)


def _check_losers(found: Explanation) -> None:
    winner = found.winner
    for each in found.rules:
        assert each.matches or each.length == 0
        if winner is None:
            assert each.fate in (F.OTHER_GROUP, F.NO_MATCH, F.NOT_ABOUT_US, F.ROBOTS_TXT_ITSELF)
        elif each.fate is F.SHORTER:
            assert each.length < winner.length
        elif each.fate is F.TIE:
            assert each.length == winner.length
            assert winner.rule.allow
            assert not each.rule.allow
        elif each.fate is F.LATER:
            assert each.rule.line > winner.rule.line


# -- files that are made to take long -------------------------------------------------


def test_no_rule_of_ours_is_compared_where_too_many_would_have_to_be() -> None:
    ours = [f"Disallow: /*abcd*{number:03x}" for number in range(MOST_PIECES // 2 + 1)]
    body = "\n".join(["User-agent: *", *ours, "Allow: /a", "User-agent: b", "Disallow: /*a"])
    found = explained(body, "/abcd")
    assert found.verdict.reason is Reason.MATCHING_LIMIT
    assert found.winner is None
    assert [each.fate for each in found.rules[:-1]] == [F.NOT_TRIED] * (len(ours) + 1)
    assert found.rules[-1].fate is F.OTHER_GROUP
    assert not any(each.matches for each in found.rules[:-1])
    assert explained(body, "/abc").winner is not None


def test_so_many_rules_with_an_asterisk_are_compared_and_ours_first() -> None:
    body = "User-agent: b\n" + "Disallow: /*a\nDisallow: /a\n" * 3
    body += "User-agent: *\nDisallow: /*b\nDisallow: /a*\nDisallow: /b\n"
    with patch.object(explain_module, "_MOST_EXPLAINED", 4):
        found = fates(body, "/a")
        first_match = fates(body, "/a", dialect=KOSTER1996)
    other, not_tried = F.OTHER_GROUP, F.NOT_TRIED
    assert [fate for _, fate, _ in found] == [
        *(other, other, other, other, not_tried, other),
        *(F.NO_MATCH, F.DECIDES, F.NO_MATCH),
    ]
    assert found[4] == (6, not_tried, 0)
    # There, an asterisk is a character like others.
    assert not_tried not in [fate for _, fate, _ in first_match]


def test_a_long_piece_in_a_long_path() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /*" + b"ab" * 10 + b"*c\n")
    path = "/" + "x" * 100 + "ab" * 10 + "-c"
    (rule,) = explain(robots, path, "x").rules
    assert rule.fate is Fate.DECIDES
