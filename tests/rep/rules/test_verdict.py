"""The answer, as a sentence for people."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.parsing.urls import InvalidURL, Origin
from scrapy_rep.rep.rules.matching import Rule
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict

ORIGIN = Origin.of("https://example.com/")
RULE = Rule(False, b"/private/", 12)
MINE = (AgentLine("MyBot", 10),)


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (
            Verdict(False, Reason.RULE, RULE, MINE, ORIGIN),
            'disallowed by "Disallow: /private/" (line 12, group MyBot)'
            " of https://example.com/robots.txt",
        ),
        (
            Verdict(True, Reason.RULE, Rule(True, b"/a$", 3), (AgentLine("*", 1),)),
            'allowed by "Allow: /a$" (line 3, group *) of robots.txt',
        ),
        (
            Verdict(
                False, Reason.RULE, RULE, (AgentLine("a", 1), AgentLine("B", 2), AgentLine("a", 9))
            ),
            'disallowed by "Disallow: /private/" (line 12, group a, B) of robots.txt',
        ),
        (
            Verdict(False, Reason.RULE, RULE, MINE, merged=True),
            'disallowed by "Disallow: /private/" (line 12, group MyBot) of robots.txt;'
            " a record between the user-agent lines does not end the group",
        ),
        (
            Verdict(True, Reason.NO_RULE, group=MINE, origin=ORIGIN),
            "allowed because no rule for this crawler in https://example.com/robots.txt matches",
        ),
        (
            Verdict(True, Reason.NO_GROUP, origin=ORIGIN),
            "allowed because https://example.com/robots.txt has no group for this crawler",
        ),
        (
            Verdict(True, Reason.ROBOTS_TXT_ITSELF, origin=ORIGIN),
            "allowed because robots.txt itself is always allowed",
        ),
        (
            Verdict(True, Reason.UNAVAILABLE, origin=ORIGIN, detail="status 404"),
            "allowed because https://example.com/robots.txt is unavailable (status 404)",
        ),
        (
            Verdict(False, Reason.UNREACHABLE, origin=Origin("http", "::1", 81)),
            "disallowed because http://[::1]:81/robots.txt is unreachable",
        ),
        (
            Verdict(False, Reason.DISALLOWED, origin=ORIGIN, detail="status 403"),
            "disallowed because of the response to https://example.com/robots.txt (status 403)",
        ),
        (
            Verdict(False, Reason.OTHER_PARSER, origin=ORIGIN),
            "disallowed by an external parser of https://example.com/robots.txt",
        ),
        (
            Verdict(False, Reason.UNREADABLE, origin=ORIGIN),
            "disallowed because no parser could read https://example.com/robots.txt",
        ),
        (
            Verdict(False, Reason.INVALID_URL, detail="it has no host"),
            "disallowed because the URL has no robots.txt (it has no host)",
        ),
        (
            Verdict(True, Reason.NO_GROUP),
            "allowed because robots.txt has no group for this crawler",
        ),
    ],
    ids=lambda value: value.reason.value if isinstance(value, Verdict) else "",
)
def test_a_verdict_is_one_line_that_a_person_understands(verdict: Verdict, sentence: str) -> None:
    assert str(verdict) == sentence


@pytest.mark.parametrize("reason", Reason)
def test_there_is_a_sentence_for_every_reason(reason: Reason) -> None:
    rule = RULE if reason is Reason.RULE else None
    sentence = str(Verdict(False, reason, rule, MINE, ORIGIN))
    assert sentence.startswith("disallowed b")
    assert "{" not in sentence


@pytest.mark.clause("Google location-3")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Example.com/page", ORIGIN),
        ("data:,x", Verdict(True, Reason.OTHER_SCHEME)),
        (" S3://bucket/key", Verdict(True, Reason.OTHER_SCHEME)),
        ("http:///page", Verdict(False, Reason.INVALID_URL, detail="'http:///page' has no host")),
        # A host and a port: nothing that could be requested is let through unasked.
        *(
            (
                url,
                Verdict(
                    False, Reason.INVALID_URL, detail=f"{url!r} is not an http, https or ftp URL"
                ),
            )
            for url in ("localhost:8000/page", "mailto:a@example.com", "/a:b")
        ),
    ],
)
def test_where_no_robots_txt_has_a_say(url: str, expected: Origin | Verdict) -> None:
    assert origin_or_verdict(url) == expected


def test_the_line_is_that_of_the_rule() -> None:
    assert Verdict(False, Reason.RULE, RULE).line == 12
    assert Verdict(True, Reason.NO_RULE).line == 0


def test_control_characters_in_a_rule_are_escaped() -> None:
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /\x1b[2J\u202e\0\x07".encode() + b"\xff\n")
    assert str(robots.verdict("/%1b[2J\u202e%00%07%ff", "x")) == (
        'disallowed by "Disallow: /\\x1b[2J\\u202e\\x00\\x07\\xff" (line 2, group *) of robots.txt'
    )


def test_a_long_rule_is_cut() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /" + b"a" * 100_000)
    assert len(str(robots.verdict("/" + "a" * 100_000, "x"))) < 300


@pytest.mark.clause("RFC 9309 3-3", "RFC 9309 3-4")
@given(st.text(), st.binary(), st.text())
def test_no_byte_of_a_file_or_url_reaches_a_terminal(host: str, value: bytes, name: str) -> None:
    try:
        origin = Origin.of(f"http://{host}/")
    except InvalidURL:
        origin = ORIGIN
    group = (AgentLine(name, 1),)
    assert str(Verdict(False, Reason.RULE, Rule(False, value, 2), group, origin)).isprintable()
    assert str(Verdict(False, Reason.UNREACHABLE, origin=origin)).isprintable()


def test_a_verdict_is_frozen() -> None:
    verdict = Verdict(False, Reason.NO_RULE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.allowed = True  # type: ignore[misc]


def test_of_many_names_the_first_are_shown() -> None:
    rule = Rule(False, b"/a", 99)
    for count, end in (
        (9, "b8)"),
        (10, "b9)"),
        (11, "b9 and 1 more)"),
        (1010, "b9 and 1,000 more)"),
    ):
        # Each name twice: it is shown once.
        group = tuple(AgentLine(f"b{n % count}", n + 1) for n in range(2 * count))
        text = str(Verdict(False, Reason.RULE, rule=rule, group=group))
        assert "(line 99, group b0, b1, b2, b3, b4, b5, b6, b7, b8" in text
        assert text.partition(" of robots.txt")[0].endswith(end)


def test_a_verdict_about_another_url_that_may_be_sent_says_so() -> None:
    sent_as = "https://a.example/\x1b"
    text = str(Verdict(False, Reason.UNREADABLE, sent_as=sent_as))
    assert text.endswith(r"; the request may be sent as https://a.example/\x1b")
    assert "sent as" not in str(Verdict(False, Reason.UNREADABLE))
