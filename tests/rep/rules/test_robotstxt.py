"""Groups, rules and other records of one file, and verdicts by them."""

from __future__ import annotations

import codecs
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from w3lib.url import safe_url_string

from scrapy_rep.rep.dialects import GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect, PathForm
from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.parsing.groups import groups_about
from scrapy_rep.rep.parsing.lines import Field, read_line
from scrapy_rep.rep.parsing.records import RequestRate, TimeWindow, UsagePreferences
from scrapy_rep.rep.parsing.urls import path_to_match
from scrapy_rep.rep.rules import robotstxt
from scrapy_rep.rep.rules.matching import MOST_PIECES, Rule, RuleSet
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from tests.rep.rules.plain_matcher import plain_decide

# pytest-twisted does not get on with @given and parametrize on one test.
DIALECTS = st.sampled_from([RFC9309, GOOGLE])
BOTH = pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)


def verdict(
    body: str, url: str = "/a", agents: str | list[str] = "x", dialect: Dialect = RFC9309
) -> Verdict:
    robots = RobotsTxt.parse(body.encode(), dialect)
    found = robots.verdict(url, agents)
    assert found.allowed is robots.allowed(url, agents)
    return found


def deciding_line(
    body: str, url: str = "/a", agents: str | list[str] = "x", dialect: Dialect = RFC9309
) -> int:
    return verdict(body, url, agents, dialect).line


# -- the examples of RFC 9309 §5 -----------------------------------------------------

# §5.1 of the RFC, §3.1 of the draft.
SIMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.clause(
    "RFC 9309 2.1-2",
    "RFC 9309 2.2-7",
    "RFC 9309 2.2.2-9",
    "RFC 9309 5.1-1",
    "RFC 9309 5.1-2",
    "RFC 9309 5.1-3",
    "RFC 9309 5.1-4",
    "RFC 9309 5.1-5",
)
@BOTH
@pytest.mark.parametrize(
    ("agent", "path", "allowed", "line"),
    [
        ("otherbot", "/page", True, 0),
        ("otherbot", "/a.gif", False, 2),
        ("otherbot", "/a.gif?", True, 0),
        ("otherbot", "/example/page.html", False, 3),
        ("otherbot", "/publications/a", True, 4),
        ("otherbot", "/publications/a.gif", True, 4),
        ("foobot", "/", False, 7),
        ("foobot", "/publications/", False, 7),
        ("foobot", "/example/page.html", True, 8),
        ("foobot", "/example/allowed.gif", True, 9),
        ("barbot", "/example/page.html", False, 13),
        ("bazbot", "/example/page.html", False, 13),
        ("bazbot", "/example/a.gif", True, 0),
        ("quxbot", "/example/page.html", True, 0),
    ],
)
def test_the_simple_example_of_the_rfc(
    agent: str, path: str, allowed: bool, line: int, dialect: Dialect
) -> None:
    found = verdict(SIMPLE, f"https://www.example.com{path}", agent, dialect)
    assert (found.allowed, found.line) == (allowed, line)


# RFC 9309 §2.2.2 compares bytes, and an empty query is one: "?".
@pytest.mark.clause("RFC 9309 2.2.2-15")
@pytest.mark.parametrize(
    "dialect", [RFC9309, GOOGLE, KOSTER1996, KOSTER1994], ids=lambda dialect: dialect.name
)
@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/path?", "/path?", True),
        ("/path?", "/path?a", True),
        ("/path?", "/path", False),
        ("/path?a", "/path?", False),
        ("/path", "/path?", True),
        ("/", "/?", True),
        ("/?", "/?", True),
        ("/?", "/", False),
        ("/path%3F", "/path?", False),
        ("/*?", "/path?", None),
        ("/*?$", "/path?", None),
        ("/*?$", "/path?a", False),
        ("/*?", "/path", False),
        ("/path$", "/path?", False),
        ("/path?$", "/path?", None),
    ],
)
@pytest.mark.parametrize("rules_before", [0, 40])
@pytest.mark.parametrize("fragment", ["", "#", "#?a"])
def test_an_empty_query(
    pattern: str,
    path: str,
    matches: bool | None,
    fragment: str,
    rules_before: int,
    dialect: Dialect,
) -> None:
    if dialect.path_form is PathForm.DECODED and pattern == "/path%3F":
        # The draft of 1996, §3.2.2: all is decoded but "/".
        matches = True
    expected = dialect.wildcards if matches is None else matches
    rules = "".join(f"Disallow: /x{number}/*/y\n" for number in range(rules_before))
    robots = RobotsTxt.parse(f"User-agent: *\n{rules}Disallow: {pattern}\n".encode(), dialect)
    # The answers of both ways to decide, and of the index once it is made.
    for url in (path, f"https://example.com{path}{fragment}"):
        for _ in range(3):
            assert robots.allowed(url, "x") is not expected
            assert robots.verdict(url, "x").allowed is not expected


@pytest.mark.parametrize("dialect", [RFC9309, KOSTER1996, KOSTER1994], ids=lambda d: d.name)
def test_the_empty_agent_is_nobody_but_to_google(dialect: Dialect) -> None:
    body = b"User-agent:\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"
    for agents in ("", [""], ["", ""]):
        assert RobotsTxt.parse(body, dialect).verdict("/a", agents).reason is Reason.NO_RULE
        assert RobotsTxt.parse(body, dialect).verdict("/b", agents).line == 5
        assert RobotsTxt.parse(body, GOOGLE).verdict("/a", agents).line == 2
        assert not RobotsTxt.parse(body, GOOGLE).allowed("/a", agents)
        assert RobotsTxt.parse(body, GOOGLE).verdict("/b", agents).reason is Reason.NO_RULE


UNION = b"""\
User-agent: *
Disallow: /1

User-agent: a
Disallow: /2
Allow: /3/b

User-agent: b
Disallow: /3
Allow: /2
"""


@pytest.mark.parametrize(
    ("path", "preference", "union"),
    [("/1", 0, 0), ("/2", 5, 10), ("/3", 0, 9), ("/3/b", 6, 6), ("/robots.txt", 0, 0)],
)
@pytest.mark.parametrize("others", [[], ["x"], ["*", ""]])
def test_a_list_of_agents_in_order_of_preference_and_together(
    path: str, preference: int, union: int, others: list[str]
) -> None:
    robots = RobotsTxt.parse(UNION)
    agents = [*others, "a", "b"]
    assert robots.verdict(path, agents).line == preference
    found = robots.union_verdict(path, agents)
    assert (found.line, found.allowed) == (union, union not in (5, 9))
    assert robots.union_verdict("/1", others).line == 2


def test_the_union_names_all_lines_of_which_no_rule_matches() -> None:
    found = RobotsTxt.parse(UNION).union_verdict("/1", ["b", "x", "a", "a"])
    assert (found.reason, found.group) == (Reason.NO_RULE, (AgentLine("a", 4), AgentLine("b", 8)))
    swapped = RobotsTxt.parse(b"User-agent: b\nDisallow: /a\n\nUser-agent: a\nDisallow: /b\n")
    assert swapped.union_verdict("/", "ab").group == (AgentLine("b", 1), AgentLine("a", 4))
    assert RobotsTxt.parse(b"").union_verdict("/", ["a"]) == Verdict(True, Reason.NO_GROUP)
    invalid = RobotsTxt.parse(UNION).union_verdict("page", ["a"])
    assert invalid.reason is Reason.INVALID_URL
    assert invalid.detail.startswith("'page' is neither an absolute URL nor a path")


@pytest.mark.parametrize("dialect", [RFC9309, KOSTER1996, KOSTER1994], ids=lambda d: d.name)
def test_a_path_may_start_with_two_slashes(dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /x\nDisallow: //private/\n", dialect)
    for _ in range(3):
        for url in ("//private/x", "http://example.com//private/x", b"//private/x"):
            assert not robots.allowed(url, "x")
            assert robots.verdict(url, "x").line == 3
        assert robots.allowed("//other/x", "x")


def test_in_the_google_dialect_two_slashes_begin_an_authority() -> None:
    # As in the reference library, which says so of any URL without a scheme.
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /x\nDisallow: //private/\n", GOOGLE)
    assert robots.verdict("//private/x", "x").line == 2


# §3.1 of the draft: space before the colon, another file.
DRAFT = """\
User-Agent : foobot
Disallow : /example/page.html
Disallow : /example/disallowed.gif

User-Agent : barbot
User-Agent : bazbot
Allow : /example/page.html
Disallow : /example/disallowed.gif

User-Agent: quxbot
"""


@pytest.mark.clause("Draft 2019 3.1-1", "RFC 9309 2.2-3")
@BOTH
@pytest.mark.parametrize(
    ("agent", "path", "line"),
    [
        ("foobot", "/example/page.html", 2),
        ("foobot", "/example/disallowed.gif", 3),
        ("foobot", "/example/", 0),
        ("barbot", "/example/page.html", 7),
        ("bazbot", "/example/disallowed.gif", 8),
        ("quxbot", "/example/page.html", 0),
        ("otherbot", "/example/page.html", 0),
    ],
)
def test_the_simple_example_of_the_draft(
    agent: str, path: str, line: int, dialect: Dialect
) -> None:
    assert deciding_line(DRAFT, path, agent, dialect) == line


@pytest.mark.clause("RFC 9309 5.2-1")
@BOTH
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/example/page/", 2),
        ("/example/page/disallowed.gif", 3),
        ("/example/page/disallowed.gif?q", 3),
        ("/example/", 0),
    ],
)
def test_the_longest_match_example_of_the_rfc(path: str, line: int, dialect: Dialect) -> None:
    body = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert deciding_line(body, f"https://example.com{path}", "foobot", dialect) == line


# -- groups ------------------------------------------------------------------------


@pytest.mark.clause(
    "Draft 2019 2.3.1.5-1",
    "Google syntax-5",
    "Google merging-2",
    "RFC 9309 2.1-3",
    "RFC 9309 2.2-2",
    "RFC 9309 2.2.4-3",
    "RFC 9309 2.2.4-4",
    "RFC 9309 2.3.1.5-2",
)
@BOTH
@pytest.mark.parametrize(
    "between",
    [
        "\n",
        "# comment\n",
        "\n\n# comment\n\n",
        "Sitemap: https://example.com/map\n",
        "Crawl-delay: 1\n",
        "Request-rate: 1/5\n",
        "Visit-time: 0600-0845\n",
        "Host: example.com\n",
        "Clean-param: ref /\n",
        "Noindex: /b\n",
        "Content-Signal: search=yes\n",
        "unknown: x\n",
        "gibberish\n",
        "<html><body>: </body>\n",
    ],
    ids=repr,
)
class TestNothingButAUserAgentLineAfterARuleStartsAGroup:
    def test_between_user_agent_lines(self, between: str, dialect: Dialect) -> None:
        body = f"User-agent: x\n{between}User-agent: y\nDisallow: /\n"
        assert not verdict(body, agents="x", dialect=dialect).allowed
        assert not verdict(body, agents="y", dialect=dialect).allowed

    def test_between_user_agent_line_and_rule(self, between: str, dialect: Dialect) -> None:
        assert not verdict(f"User-agent: x\n{between}Disallow: /\n", dialect=dialect).allowed

    def test_between_rules(self, between: str, dialect: Dialect) -> None:
        body = f"User-agent: x\nDisallow: /b\n{between}Disallow: /a\n"
        assert not verdict(body, dialect=dialect).allowed


@pytest.mark.clause("RFC 9309 2.1-3", "RFC 9309 2.2-8")
@BOTH
@pytest.mark.parametrize("rule", ["Disallow: /b", "Allow: /b", "Disallow:", "Allow:"])
def test_a_user_agent_line_after_any_rule_starts_a_group(rule: str, dialect: Dialect) -> None:
    body = f"User-agent: x\n{rule}\nUser-agent: y\nDisallow: /a\n"
    assert verdict(body, agents="x", dialect=dialect).allowed
    assert not verdict(body, agents="y", dialect=dialect).allowed


@pytest.mark.clause("RFC 9309 2.2.4-3")
@BOTH
def test_a_crawl_delay_leaves_the_group_of_everyone_open(dialect: Dialect) -> None:
    body = "User-agent: *\nCrawl-delay: 5\nUser-agent: x\nDisallow: /a\n"
    assert deciding_line(body, agents="x", dialect=dialect) == 4
    assert deciding_line(body, agents="other", dialect=dialect) == 4


@pytest.mark.clause("Google agents-6", "RFC 9309 2.2.1-8")
@BOTH
def test_groups_with_the_same_name_are_merged(dialect: Dialect) -> None:
    body = (
        "User-agent: x\nDisallow: /a\n\nUser-agent: y\nDisallow: /b\n\n"
        "User-agent: X\nUser-agent: z\nAllow: /a/b\nDisallow: /c\n"
    )
    assert deciding_line(body, "/a", dialect=dialect) == 2
    assert deciding_line(body, "/a/b", dialect=dialect) == 9
    assert deciding_line(body, "/c", dialect=dialect) == 10
    assert deciding_line(body, "/b", dialect=dialect) == 0
    assert deciding_line(body, "/a", "z", dialect) == 0


@pytest.mark.clause(
    "Draft 2019 2.2.1-2",
    "Google agents-1",
    "Google agents-3",
    "Google agents-7",
    "RFC 9309 2.2.1-9",
)
@BOTH
def test_groups_of_everyone_are_merged_with_each_other_but_with_no_named_one(
    dialect: Dialect,
) -> None:
    body = "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: *\nDisallow: /c\n"
    assert [deciding_line(body, path, "x", dialect) for path in ("/a", "/b", "/c")] == [0, 4, 0]
    assert [deciding_line(body, path, "y", dialect) for path in ("/a", "/b", "/c")] == [2, 0, 6]


@pytest.mark.clause("RFC 9309 2.1-4", "RFC 9309 2.2.2-9")
@BOTH
def test_a_group_without_rules_still_is_the_one_that_holds(dialect: Dialect) -> None:
    body = "User-agent: *\nDisallow: /\n\nUser-agent: x\n"
    found = verdict(body, agents="x", dialect=dialect)
    assert found == Verdict(True, Reason.NO_RULE, group=(AgentLine("x", 4),))


@pytest.mark.clause("RFC 9309 2.2.2-21")
@BOTH
def test_rules_before_any_user_agent_line_are_ignored(dialect: Dialect) -> None:
    body = "Disallow: /\nAllow: /b\nUser-agent: *\nDisallow: /c\n"
    assert deciding_line(body, "/a", dialect=dialect) == 0
    assert deciding_line(body, "/c", dialect=dialect) == 4


@pytest.mark.clause("Google library-7")
@BOTH
def test_a_group_that_names_us_and_everyone_is_ours(dialect: Dialect) -> None:
    body = "User-agent: *\nUser-agent: x\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"
    assert deciding_line(body, "/a", dialect=dialect) == 3
    assert deciding_line(body, "/b", dialect=dialect) == 0


@BOTH
def test_an_agent_named_twice_by_one_group_gets_its_rules_once(dialect: Dialect) -> None:
    found = verdict("User-agent: x\nUser-agent: X/2\nDisallow: /a\n", dialect=dialect)
    assert found.line == 3
    assert [line for _, line in found.group] == [1, 2]


@pytest.mark.clause("Google merging-3", "RFC 9309 2.2.4-4")
@BOTH
def test_googles_example_of_transparent_records(dialect: Dialect) -> None:
    body = "user-agent: a\nsitemap: https://example.com/sitemap.xml\nuser-agent: b\ndisallow: /\n"
    assert deciding_line(body, agents="a", dialect=dialect) == 4
    assert deciding_line(body, agents="b", dialect=dialect) == 4


@BOTH
def test_20_000_groups(dialect: Dialect) -> None:
    names = [f"bot-{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}" for i in range(20_000)]
    body = "".join(f"User-agent: {name}\nDisallow: /{i}$\n" for i, name in enumerate(names))
    robots = RobotsTxt.parse(body.encode(), dialect, max_size=1_000_000)
    last = robots.verdict("/19999", names[-1])
    assert last.line == 40_000
    assert last.group == (AgentLine(names[-1], 39_999),)
    assert robots.allowed("/19999", names[-2])


@BOTH
def test_agents_with_the_same_groups_get_the_same_answers(dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a*bcd\n", dialect)
    # Twice: what is asked again, an index answers.
    for agent in ("x", "y", "x", "y"):
        for url, allowed in (("/a/bcd", False), ("/x/bcd", True), ("/a/bc", True)):
            assert robots.allowed(f"https://example.com{url}", agent) is allowed


@BOTH
@pytest.mark.parametrize(
    "url",
    [
        *("http://h/a", "http://h/b", "http://host/a", "http://host/b", "http://h:8/a"),
        *("https://h/a", "http://h", "http://h/", "http://h?/a", "http://h#/a", "HTTP://h/a"),
        *("/a", "//h/a", "//a/b", "\n/a", "\n//a/b", "http://h\n/a", "http://h//a", "a", ""),
        *("http://h/a%", "http://h/./a", "http://h/a?", "http://h/\xe9", "http://h/\ud800"),
    ],
    ids=ascii,
)
def test_earlier_questions_do_not_matter(url: str, dialect: Dialect) -> None:
    body = b"User-agent: *\nDisallow: /a\nDisallow: ?\nAllow: /a%$\n"
    robots = RobotsTxt.parse(body, dialect)
    assert [robots.allowed("http://h/c", "x") for _ in range(2)] == [True, True]
    expected = RobotsTxt.parse(body, dialect).verdict(url, "x").allowed
    assert [robots.allowed(url, "x") for _ in range(2)] == [expected, expected]


@BOTH
@pytest.mark.parametrize(
    "rules",
    [
        ("disallow /a",),
        ("disallow /a$", "disallow /b?"),
        ("disallow /",),
        ("disallow /", "allow /a/b"),
        ("disallow /a*b", "disallow /b*abc$"),
        ("disallow /a*b", "allow /a/b$"),
        # Two with the same piece; one of them does not begin as paths do that have it.
        ("disallow /a/*bcd", "disallow /b*bcd"),
        ("disallow /*bc", "disallow /a/b*bc", "allow /a/b/bc"),
        ("disallow /a*b*", "disallow *?"),
        ("allow /a/index.html", "disallow /a", "disallow /b"),
        ("allow /*index.htm", "disallow /"),
        ("disallow /a", "allow /a/b$"),
        ("disallow /a", "allow /a/*b*d"),
        ("disallow /robots", "allow /a"),
        ("disallow /*.txt",),
        ("disallow /%61/*%62$", "allow /a/x"),
        # More than are looked at one by one.
        (*(f"disallow /x{number}*bcd" for number in range(30)), "disallow /a*b"),
    ],
    ids=lambda rules: rules[0],
)
def test_the_second_answer_about_a_page_is_the_same(
    rules: tuple[str, ...], dialect: Dialect
) -> None:
    written = [
        Rule(key == "allow", value.encode(), line)
        for line, (key, value) in enumerate((rule.split() for rule in rules), 2)
    ]
    body = "\n".join(f"{key}: {value}" for key, value in (rule.split() for rule in rules))
    paths = "/ /a /b /ab /a/b /a/bcd /b/bcd /abc /b?abc /a/ /a/index.html /b/ /x7/bcd /x29bcd /?"
    paths += " /robots.txt /a/../b /b/../a/b /a/b#c /é/b /c/.txt"
    expected = {}
    for rest in paths.split():
        url = f"https://example.com{rest}"
        decides = plain_decide(written, path_to_match(url, dialect), dialect)
        itself = rest == "/robots.txt" and dialect is RFC9309
        expected[url] = itself or not (decides and decides.refuses)
    data = f"User-agent: *\n{body}\n".encode()
    robots = RobotsTxt.parse(data, dialect)
    # First from the file, then from an index.
    for _ in range(3):
        assert {url: robots.allowed(url, "x") for url in expected} == expected
    assert {url: robots.verdict(url, "x").allowed for url in expected} == expected
    for url, allowed in expected.items():
        assert RobotsTxt.parse(data, dialect).allowed(url, "x") is allowed


# Of so many that there is an index, and most begin with others.
PLAIN_RULES = st.lists(
    st.builds("{}: /{}".format, st.sampled_from(["Allow", "Disallow"]), st.text("ab/", max_size=6)),
    min_size=25,
    max_size=40,
)


@given(PLAIN_RULES, st.lists(st.text("ab/", max_size=8), min_size=3, max_size=20))
def test_the_answer_among_many_plain_rules_is_that_of_the_verdict(
    rules: list[str], paths: list[str]
) -> None:
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *rules]).encode())
    for url in [f"http://h/{path}" for path in paths] * 2:
        assert robots.allowed(url, "x") is robots.verdict(url, "x").allowed


@BOTH
def test_a_file_is_read_for_the_first_two_questions_of_an_agent(dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a\n", dialect)
    with (
        patch.object(robotstxt, "groups_about", wraps=groups_about) as read,
        patch.object(robotstxt, "RuleSet", wraps=RuleSet) as index,
    ):
        for _ in range(3):
            assert not robots.allowed("http://h/a", "xy")
            assert not robots.allowed("http://h/a", ["x", "y"])
    # They are in the same groups: one index is for both.
    assert (read.call_count, index.call_count) == (4, 1)


@BOTH
def test_a_file_is_read_once_for_verdicts_of_an_agent(dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a\n", dialect)
    with patch.object(robotstxt, "groups_about", wraps=groups_about) as read:
        for _ in range(3):
            assert not robots.verdict("/a", "x").allowed
            assert not robots.allowed("/a", "x")
    assert read.call_count == 1


@BOTH
def test_too_many_rules_that_may_match_refuse_a_url(dialect: Dialect) -> None:
    rules = [f"Allow: /*abcd*{number:03x}" for number in range(MOST_PIECES // 2 + 1)]
    body = "\n".join(["User-agent: *", "User-agent: X", *rules, "Allow: /robots.txt"])
    robots = RobotsTxt.parse(body.encode(), dialect)
    for _ in range(3):
        assert not robots.allowed("/abcd", "x")
        assert robots.allowed("/abc", "x")
        assert robots.allowed("/robots.txt", "x")
    found = robots.verdict("/abcd", "x")
    group = (AgentLine("X", 2),)
    assert found == Verdict(False, Reason.MATCHING_LIMIT, group=group)
    allowing = RobotsTxt.parse(b"User-agent: y\nAllow: /\n" + body.encode(), dialect)
    assert allowing.verdict("/abcd", "y").allowed
    assert allowing.union_verdict("/abcd", ["y", "x"]).reason is Reason.MATCHING_LIMIT
    assert f"more than {MOST_PIECES} *" in str(found)
    assert (found.line, found.rule) == (0, None)


@BOTH
def test_agents_are_not_taken_for_each_other(dialect: Dialect) -> None:
    body = b"User-agent: ab\nDisallow: /1\nUser-agent: b\nDisallow: /2\n"
    robots = RobotsTxt.parse(body, dialect)
    agents: list[str | list[str]] = ["ab", ["a", "b"], ["ab", "b"], "b", "c"]
    for _ in range(3):
        lines = [[robots.verdict(path, each).line for path in ("/1", "/2")] for each in agents]
        assert lines == [[2, 0], [0, 4], [2, 0], [0, 4], [0, 0]]
        refused = [[not robots.allowed(path, each) for path in ("/1", "/2")] for each in agents]
        assert refused == [[line > 0 for line in pair] for pair in lines]


@BOTH
def test_the_rule_of_a_verdict_may_be_misspelled(dialect: Dialect) -> None:
    found = verdict("User-agent: *\nDisalow: /a\nUseragent: x\nDissallow /b\n", "/b", "x", dialect)
    assert found.rule == Rule(False, b"/b", 4)


@BOTH
def test_more_rules_may_decide_than_are_remembered(dialect: Dialect) -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /a\nDisallow: /b\nAllow: /c\n", dialect)
    with (
        patch.object(robotstxt, "_MAX_RULES", 2),
        patch.object(robotstxt, "read_line", wraps=read_line) as read,
    ):
        for path, line, count in (("/a", 2, 1), ("/b", 3, 2), ("/a", 2, 2), ("/c", 4, 3)):
            assert robots.verdict(path, "x").line == line
            assert read.call_count == count
        # The third rule has displaced the others.
        assert str(robots.verdict("/a", "x").rule) == "Disallow: /a"
        assert read.call_count == 4


@BOTH
def test_more_agents_may_ask_than_are_remembered(dialect: Dialect) -> None:
    names = [f"bot-{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(100)]
    body = "".join(f"User-agent: {name}\nDisallow: /{i}$\n" for i, name in enumerate(names))
    robots = RobotsTxt.parse(body.encode(), dialect)
    for _ in range(2):
        lines = [robots.verdict(f"/{i}", name).line for i, name in enumerate(names)]
        assert lines == list(range(2, 202, 2))
    for name in names:
        robots.allowed("/", f"other-{name}")
    assert len(robots._ours) <= 33  # noqa: SLF001
    assert len(robots._requested) <= 33  # noqa: SLF001


# -- merged groups: RFC 9309 §2.2.4 ------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("body", "merged"),
    [
        (
            "User-agent: *\nCrawl-delay: 120\nUser-agent: x\nDisallow: /\n",
            {"x": False, "other": True},
        ),
        # Any line that is none of the standard's, but no blank line and no comment.
        ("User-agent: *\nanything: 1\nUser-agent: x\nDisallow: /\n", {"other": True}),
        ("User-agent: *\nSitemap: /s\nUser-agent: x\nDisallow: /\n", {"other": True}),
        ("User-agent: *\n\n# all\nUser-agent: x\nDisallow: /\n", {"x": False, "other": False}),
        # Nothing comes after it, or a rule does: nobody is surprised.
        ("User-agent: *\nUser-agent: x\nCrawl-delay: 1\nDisallow: /\n", {"other": False}),
        ("Crawl-delay: 1\nUser-agent: *\nDisallow: /\n", {"other": False}),
        (
            "User-agent: *\nDisallow: /\nCrawl-delay: 1\nUser-agent: x\nDisallow: /\n",
            {"x": False, "other": False},
        ),
        # One of our two lines is below.
        ("User-agent: x\nHost: a\nUser-agent: X\nDisallow: /\n", {"x": False}),
        ("User-agent: x\nUser-agent: x\nHost: a\nUser-agent: y\nDisallow: /\n", {"x": True}),
        # Twice.
        (
            "User-agent: x\nHost: a\nUser-agent: y\nHost: a\nUser-agent: z\nDisallow: /\n",
            {"x": True, "y": True, "z": False},
        ),
    ],
)
def test_a_verdict_says_whether_a_rule_is_about_us_through_a_record_that_ends_no_group(
    body: str, merged: dict[str, bool], dialect: Dialect
) -> None:
    verdicts = {agent: verdict(body, agents=agent, dialect=dialect) for agent in merged}
    assert {agent: found.merged for agent, found in verdicts.items()} == merged
    assert not any(found.allowed for found in verdicts.values())


@BOTH
def test_of_several_groups_the_one_with_the_deciding_rule_is_merged_or_not(
    dialect: Dialect,
) -> None:
    body = (
        "User-agent: x\nDisallow: /a\n\nUser-agent: x\nCrawl-delay: 1\n\n"
        "User-agent: y\nDisallow: /b\n"
    )
    assert [verdict(body, path, dialect=dialect).merged for path in ("/a", "/b", "/c")] == [
        False,
        True,
        False,
    ]


# -- whose group ---------------------------------------------------------------------


@pytest.mark.clause(
    "Draft 2019 2.2.1-1", "Google user-agent-1", "Google user-agent-3", "RFC 9309 2.2.1-6"
)
@BOTH
@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("ExampleBot", "examplebot"),
        ("examplebot", "ExampleBot"),
        ("ExampleBot/2.1", "ExampleBot"),
        ("ExampleBot*", "ExampleBot"),
        ("ExampleBot and more", "ExampleBot"),
        ("* and more", "ExampleBot"),
    ],
)
def test_a_name_matches(name: str, agent: str, dialect: Dialect) -> None:
    assert deciding_line(f"User-agent: {name}\nDisallow: /", agents=agent, dialect=dialect) == 2


@pytest.mark.clause("Draft 2019 2.2.1-1", "RFC 9309 2.2.1-7", "RFC 9309 2.2.1-10")
@BOTH
@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("Example", "ExampleBot"),
        ("ExampleBot", "Example"),
        ("Bot", "ExampleBot"),
        ("*Bot", "ExampleBot"),
        ("ExampleBot-News", "ExampleBot"),
        ("ExampleBot", "ExampleBot-News"),
        ("Mozilla/5.0 (compatible; ExampleBot)", "ExampleBot"),
        ("ExampleBot", "Mozilla/5.0 (compatible; ExampleBot/1.0)"),
        ("ExampleBot", "ExampleBot/1.0"),
    ],
)
def test_a_name_does_not_match(name: str, agent: str, dialect: Dialect) -> None:
    found = verdict(f"User-agent: {name}\nDisallow: /", agents=agent, dialect=dialect)
    assert found == Verdict(True, Reason.NO_GROUP)


@pytest.mark.clause("RFC 9309 2.2.1-d4")
@pytest.mark.parametrize("agents", ["", [], [""], ["", ""], "/", "*", ["*"]], ids=repr)
def test_an_empty_name_matches_nobody(agents: str | list[str]) -> None:
    found = verdict("User-agent:\nUser-agent: /\nDisallow: /a\n", agents=agents)
    assert found.reason is Reason.NO_GROUP
    everyone = "User-agent:\nDisallow: /a\nUser-agent: *\nDisallow: /b\n"
    assert deciding_line(everyone, "/a", agents) == 0
    assert deciding_line(everyone, "/b", agents) == 4


@pytest.mark.clause("RFC 9309 2.2-9")
def test_digits_belong_to_a_name() -> None:
    body = "User-agent: MJ12bot\nDisallow: /a\n"
    assert deciding_line(body, agents="MJ12bot") == 2
    assert deciding_line(body, agents="MJ") == 0
    assert deciding_line(body, agents="MJ12bot", dialect=GOOGLE) == 0
    assert deciding_line(body, agents="MJ", dialect=GOOGLE) == 2


NEWS = (
    "user-agent: googlebot-news\nallow: /\n\nuser-agent: *\nallow: /\n\n"
    "user-agent: googlebot\nallow: /\n"
)


@pytest.mark.clause("Google agents-2", "Google agents-d1", "RFC 9309 2.2.1-d3")
@BOTH
@pytest.mark.parametrize(
    ("agents", "line"),
    [
        (["googlebot-news", "googlebot"], 2),
        (["googlebot"], 8),
        ("Googlebot", 8),
        (["googlebot-images", "googlebot"], 8),
        (["googlebot", "googlebot-news"], 8),
        ("otherbot", 5),
        (["otherbot", "*", "googlebot"], 8),
        ([], 5),
    ],
)
def test_the_first_of_our_tokens_that_has_a_group_then_everyone(
    agents: str | list[str], line: int, dialect: Dialect
) -> None:
    assert deciding_line(NEWS, "/", agents, dialect) == line


# -- the file ------------------------------------------------------------------------


@pytest.mark.clause("RFC 9309 2.2.2-22", "RFC 9309 2.3-2")
@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode(),
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: codecs.BOM_UTF8[:2] + text.encode(),
        lambda text: codecs.BOM_UTF8[:1] + text.encode(),
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.upper().replace("/É", "/é").encode(),
    ],
    ids=[
        "UTF-8",
        "UTF-8 with mark",
        "two bytes of a mark",
        "one byte of a mark",
        "UTF-16 LE",
        "UTF-16 BE",
        "CR",
        "CRLF",
        "upper case",
    ],
)
def test_one_file_in_many_encodings(encoded: object) -> None:
    assert callable(encoded)
    robots = RobotsTxt.parse(encoded("user-agent: x\ndisallow: /é\n"))
    assert robots.verdict("/%C3%A9/b", "x").line == 2
    assert robots.allowed("/e", "x")


@pytest.mark.clause("RFC 9309 2.2-14")
def test_bytes_that_are_not_utf8_are_not_dropped() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /\xe9\n")
    assert robots.allowed("/", "x")
    assert robots.allowed("/é", "x")
    assert not robots.allowed("/%E9", "x")
    assert not robots.allowed(b"/\xe9", "x")


@pytest.mark.clause("Google format-3", "RFC 9309 2.2-1", "RFC 9309 2.2.1-10")
@BOTH
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n",
        b"# nothing",
        codecs.BOM_UTF8,
        b"<!DOCTYPE html><html><head><title>Not found</title></head></html>",
        b"\0" * 100,
        bytes(range(256)),
    ],
    ids=repr,
)
def test_a_file_without_rules_allows(body: bytes, dialect: Dialect) -> None:
    found = RobotsTxt.parse(body, dialect).verdict("/a", "x")
    assert found == Verdict(True, Reason.NO_GROUP)


def _padded(size: int) -> bytes:
    start, end = b"User-agent: *\n", b"Disallow: /private\n"
    return start + b"#" * (size - len(start) - len(end) - 1) + b"\n" + end


@pytest.mark.clause("Google format-5", "RFC 9309 2.5-1", "RFC 9309 2.5-2", "RFC 9309 2.5-d1")
class TestSize:
    def test_500_kib_are_read(self) -> None:
        robots = RobotsTxt.parse(_padded(512_000))
        assert robots.truncated is False
        assert not robots.allowed("/private", "x")

    def test_the_line_that_the_cut_falls_into_is_ignored(self) -> None:
        robots = RobotsTxt.parse(_padded(512_000 + 8))
        assert robots.truncated
        assert robots.allowed("/private", "x")
        assert robots.allowed("/", "x")

    def test_more_may_be_read(self) -> None:
        robots = RobotsTxt.parse(_padded(512_000 + 8), max_size=512_008)
        assert not robots.truncated
        assert not robots.allowed("/private", "x")

    def test_one_line_longer_than_the_limit_says_nothing(self) -> None:
        robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /" + b"a" * 600_000)
        assert robots.truncated
        assert robots.allowed("/" + "a" * 600_000, "x")

    def test_the_google_dialect_reads_all_unless_told_otherwise(self) -> None:
        body = _padded(600_000)
        assert not RobotsTxt.parse(body, GOOGLE).allowed("/private", "x")
        assert RobotsTxt.parse(body, GOOGLE, max_size=512_000).allowed("/private", "x")


# -- /robots.txt ----------------------------------------------------------------------


@pytest.mark.clause("RFC 9309 2.2.2-10")
def test_the_robots_txt_itself_is_always_allowed() -> None:
    found = verdict("User-agent: *\nDisallow: /\n", "https://example.com/robots.txt")
    assert found == Verdict(True, Reason.ROBOTS_TXT_ITSELF)


@pytest.mark.clause("Google library-10")
def test_the_robots_txt_is_matched_like_any_path_in_the_google_dialect() -> None:
    assert not verdict("User-agent: *\nDisallow: /\n", "/robots.txt", dialect=GOOGLE).allowed


# -- verdicts --------------------------------------------------------------------------


def test_what_a_verdict_rests_on() -> None:
    found = verdict("User-agent: y\nUser-agent: MyBot\nDisallow: /private/\n", "/private/", "mybot")
    assert found.rule is not None
    assert found.rule.value == b"/private/"
    assert found.line == 3
    assert found.reason is Reason.RULE
    assert found.group == (AgentLine("MyBot", 2),)


@pytest.mark.clause("Google syntax-6", "Google disallow-2", "Google allow-2")
@BOTH
@pytest.mark.parametrize("line", ["Disallow:", "Disallow: # nothing", "Allow:"])
def test_a_value_that_is_empty_refuses_nothing(line: str, dialect: Dialect) -> None:
    assert verdict(f"User-agent: *\n{line}\n", dialect=dialect).allowed


@pytest.mark.clause("RFC 9309 2.2-8")
def test_an_empty_value_is_not_a_rule() -> None:
    assert verdict("User-agent: *\nDisallow:\n").reason is Reason.NO_RULE


# -- other records ---------------------------------------------------------------------


@pytest.mark.clause("Google sitemap-1", "Google sitemap-5", "RFC 9309 2.2.4-1")
@BOTH
def test_sitemaps_are_the_files_in_order_without_duplicates(dialect: Dialect) -> None:
    body = (
        "Sitemap: https://example.com/b\nUser-agent: x\nSITE-MAP: https://example.com/a\n"
        "Disallow: /\nsitemap:https://example.com/b\nSitemap: /relative\n"
    )
    robots = RobotsTxt.parse(body.encode(), dialect)
    assert robots.sitemaps == ("https://example.com/b", "https://example.com/a", "/relative")


@pytest.mark.clause("Google syntax-5", "RFC 9309 2.2.4-d2")
@BOTH
@pytest.mark.parametrize(
    ("body", "delays"),
    [
        ("User-agent: x\nCrawl-delay: 5\n", {"x": 5.0, "y": None}),
        ("User-agent: x\nCrawl-delay: 2.5\n", {"x": 2.5}),
        ("User-agent: x\nCrawl-delay: 0\n", {"x": 0.0}),
        ("User-agent: x\nDisallow: /\nCrawl-delay: 5\n", {"x": 5.0}),
        ("User-agent: x\n\nCrawl-delay: 5 # seconds\n", {"x": 5.0}),
        ("User-agent: *\nCrawl-delay: 5\n", {"x": 5.0, "*": 5.0}),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: x\nDisallow:\n", {"x": None, "y": 5.0}),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: x\nCrawl-delay: 7\n", {"x": 7.0, "y": 5.0}),
        # Each its own, though both are of one group to rules.
        (
            "User-agent: x\nCrawl-delay: 1\nUser-agent: y\nCrawl-delay: 2\nDisallow: /\n",
            {"x": 1.0, "y": 2.0, "z": None},
        ),
        (
            "User-agent: x\nCrawl-delay: 9\n\nUser-agent: y\nUser-agent: z\nCrawl-delay: 2\n"
            "Disallow: /\nCrawl-delay: 3\n",
            {"x": 9.0, "y": 3.0, "z": 3.0},
        ),
        # Any record that is no rule comes between user-agent lines.
        (
            "User-agent: x\nCrawl-delay: 1\nSitemap: s\nUser-agent: y\nanything: z\n"
            "User-agent: z\nCrawl-delay: 2\nDisallow: /\n",
            {"x": 1.0, "y": 2.0, "z": 2.0},
        ),
        # Where none is directly below an agent, that of its group counts.
        ("User-agent: x\nSitemap: s\nUser-agent: y\nCrawl-delay: 5\n", {"x": 5.0, "y": 5.0}),
        ("User-agent: x\nSitemap: s\nUser-agent: y\nDisallow:\nCrawl-delay: 5\n", {"x": 5.0}),
        (
            "User-agent: x\nNoindex: /\nUser-agent: y\nCrawl-delay: 5\nDisallow:\n"
            "User-agent: x\nCrawl-delay: 1\n",
            {"x": 1.0, "y": 5.0},
        ),
        # By field.
        ("User-agent: x\nRequest-rate: 1/5\nUser-agent: y\nCrawl-delay: 5\n", {"x": 5.0}),
        # A record that says nothing that can be read is one all the same.
        (
            "User-agent: x\nCrawl-delay: soon\nUser-agent: y\nCrawl-delay: 5\n",
            {"x": None, "y": 5.0},
        ),
        ("User-agent: x\nUser-agent: y\nCrawl-delay: 5\n", {"x": 5.0, "y": 5.0}),
        ("User-agent: x\nCrawl-delay: 5\nUser-agent: x\nDisallow:\n", {"x": 5.0}),
        ("User-agent: x\nCrawl-delay: 9\nCrawl-delay: 5\n", {"x": 9.0}),
        (
            "User-agent: x\nCrawl-delay: 5\nDisallow: /\nUser-agent: x\nCrawl-delay: 7\n",
            {"x": 7.0},
        ),
        ("Crawl-delay: 5\nUser-agent: x\n", {"x": None}),
        ("", {"x": None}),
        *(
            (f"User-agent: x\nCrawl-delay: {value}\n", {"x": None})
            for value in ("", "-1", "nan", "inf", "-inf", "1e999", "five", "5 s", "1,5", "0x10")
        ),
    ],
)
def test_a_crawl_delay_holds_for_the_user_agent_lines_above_it_in_its_group(
    body: str, delays: dict[str, float | None], dialect: Dialect
) -> None:
    robots = RobotsTxt.parse(body.encode(), dialect)
    assert {agent: robots.crawl_delay(agent) for agent in delays} == delays


@BOTH
def test_rates_times_and_preferences_too_are_about_the_lines_directly_above(
    dialect: Dialect,
) -> None:
    body = (
        b"User-agent: x\nRequest-rate: 1/5\nVisit-time: 0600-0700\nContent-Usage: search=n\n"
        b"User-agent: y\nRequest-rate: 1/9\nVisit-time: 0800-0900\nContent-Usage: search=y\n"
        b"Disallow: /a\n"
    )
    robots = RobotsTxt.parse(body, dialect)
    for agent, seconds, start, search in (("x", 5.0, 360, False), ("y", 9.0, 480, True)):
        assert robots.request_rate(agent) == RequestRate(1, seconds)
        assert [window.start for window in robots.visit_times(agent)] == [start]
        (usage,) = robots.records_for(agent, {Field.CONTENT_USAGE})
        assert usage.value == UsagePreferences((("search", search),))
        # To rules, both are of one group.
        assert not robots.allowed("/a", agent)


@BOTH
def test_of_several_request_rates_the_slowest_holds(dialect: Dialect) -> None:
    body = b"User-agent: x\nRequest-rate: 1/5\nRequest-rate: 1/1m 0600-0659\nRequest-rate: 10/5\n"
    robots = RobotsTxt.parse(body, dialect)
    slow = RequestRate(1, 60.0, TimeWindow(360, 419))
    assert robots.request_rate("x") == robots.request_rate("x", 360) == slow
    assert robots.request_rate("x", 420) == RequestRate(1, 5.0)
    assert robots.request_rate("y") is None


@BOTH
def test_visit_times_are_those_of_our_groups(dialect: Dialect) -> None:
    body = (
        b"User-agent: x\nVisit-time: 0600-0845\nVisit-time: soon\nDisallow:\nUser-agent: y\n"
        b"Disallow:\nVisit-time: 1000-1100\nUser-agent: x\nVisit-time: 2200-0100\n"
    )
    robots = RobotsTxt.parse(body, dialect)
    assert robots.visit_times("x") == (TimeWindow(360, 525), TimeWindow(1320, 60))
    assert robots.visit_times("y") == (TimeWindow(600, 660),)
    assert robots.visit_times("z") == ()


@BOTH
def test_records_for_us_are_those_in_our_groups(dialect: Dialect) -> None:
    body = (
        b"Noindex: /0\nUser-agent: x\nNoindex: /1\nUser-agent: y\nNoindex: /2\nDisallow: /\n"
        b"Noindex: /3\nUser-agent: *\nNoindex: /4\nanything: 5\n"
    )
    robots = RobotsTxt.parse(body, dialect)
    assert [len(robots.records_for(agent)) for agent in ("x", "y", "z")] == [1, 2, 2]
    assert [record.value for record in robots.records_for("y", {Field.NOINDEX})] == ["/2", "/3"]
    assert robots.records_for("y", {Field.HOST}) == ()
    assert [record.line for record in robots.records] == [1, 3, 5, 7, 9, 10]


# -- whatever comes ----------------------------------------------------------------------

_BODIES = st.lists(
    st.sampled_from(
        b"user-agent disallow allow crawl-delay sitemap : * x / $ % # 1 nan index.html".split()
    )
    | st.sampled_from([b" ", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb"])
    | st.binary(max_size=4)
).map(b"".join)


@pytest.mark.clause("RFC 9309 2.3.1.5-1")
@pytest.mark.once
@given(
    dialect=DIALECTS,
    body=_BODIES,
    url=st.text() | st.binary(),
    agents=st.text() | st.lists(st.sampled_from(["x", "*", "", "disallow"]), max_size=3),
    max_size=st.none() | st.integers(0, 100),
)
@settings(max_examples=1000)
def test_nothing_raises_and_both_answers_agree(
    dialect: Dialect, body: bytes, url: str | bytes, agents: str | list[str], max_size: int | None
) -> None:
    robots = RobotsTxt.parse(body, dialect, max_size=max_size)
    found = robots.verdict(url, agents)
    assert found.allowed is robots.allowed(url, agents)
    assert str(found).isprintable()
    delay = robots.crawl_delay(agents)
    assert delay is None or delay >= 0


_RULES = st.lists(
    st.sampled_from(
        ["/", "a", "é", "*", "$", "%2F", "%c3%a9", "~", "%7E", " ", "'", "?", "[", "%"]
    ),
    min_size=1,
    max_size=5,
).map(lambda pieces: "Disallow: /" + "".join(pieces))
_TAILS = st.lists(
    st.sampled_from(
        ["/", "a", "é", "*", "$", "%2F", "%c3%a9", "~", "%7E", "%20", "'", "?", "[", "%"]
    ),
    max_size=6,
).map("".join)


@given(rules=st.lists(_RULES, min_size=1, max_size=5), tail=_TAILS)
@settings(max_examples=500)
def test_the_verdict_does_not_depend_on_how_a_url_is_spelled(rules: list[str], tail: str) -> None:
    # Scrapy leaves out an empty query, which is another URL to the rules.
    assume(tail.find("?") != len(tail) - 1)
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *rules]).encode())
    url = f"https://example.com/{tail}"
    safe = safe_url_string(url)
    spellings = [safe, f"{safe}#f", safe.replace("%c3%a9", "%C3%A9"), url + "#é"]
    spellings.append(safe.replace("https://example.com", "HTTPS://Example.com:443"))
    found = robots.verdict(url, "x")
    assert [robots.verdict(spelling, "x") for spelling in spellings] == [found] * len(spellings)


# -- Google's documented examples -------------------------------------------------------

# "How Google interprets the robots.txt specification", "Order of precedence for user
# agents": the groups, and who follows which. Its crawlers have several tokens.
_ORDER_OF_PRECEDENCE = b"""
user-agent: googlebot-news
disallow: /1
user-agent: *
disallow: /2
user-agent: googlebot
disallow: /3
"""
# "Grouping of rules".
_GROUPING = b"""
user-agent: googlebot-news
disallow: /1
user-agent: *
disallow: /2
user-agent: googlebot-news
disallow: /3
"""
_TRANSPARENT = b"""
user-agent: a
sitemap: https://example.com/sitemap.xml

user-agent: b
disallow: /1
"""


@pytest.mark.clause(
    "Google agents-2",
    "Google agent-rows-1",
    "Google agent-rows-2",
    "Google agent-rows-3",
    "Google agent-rows-4",
    "Google agent-rows-5",
    "Google agent-rows-6",
    "Google merging-1",
    "Google merging-3",
)
@BOTH
@pytest.mark.parametrize(
    ("body", "tokens", "refused"),
    [
        (_ORDER_OF_PRECEDENCE, ["googlebot-news", "googlebot"], "1"),
        (_ORDER_OF_PRECEDENCE, ["Googlebot"], "3"),
        (_ORDER_OF_PRECEDENCE, ["googlebot-image", "googlebot"], "3"),
        (_ORDER_OF_PRECEDENCE, ["storebot-google"], "2"),
        (_ORDER_OF_PRECEDENCE, ["otherbot"], "2"),
        (_ORDER_OF_PRECEDENCE, ["otherbot-news", "otherbot"], "2"),
        (_ORDER_OF_PRECEDENCE, ["googlebot", "googlebot-news"], "3"),
        (_ORDER_OF_PRECEDENCE, [], "2"),
        (_GROUPING, ["googlebot-news"], "13"),
        (_GROUPING, ["googlebot"], "2"),
        (_TRANSPARENT, ["a"], "1"),
        (_TRANSPARENT, ["b"], "1"),
        (_TRANSPARENT, ["c"], ""),
    ],
)
def test_the_groups_of_googles_documentation(
    body: bytes, tokens: list[str], refused: str, dialect: Dialect
) -> None:
    robots = RobotsTxt.parse(body, dialect)
    found = [name for name in "123" if not robots.allowed(f"https://example.com/{name}", tokens)]
    assert "".join(found) == refused
