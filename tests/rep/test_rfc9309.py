"""The tables and examples of RFC 9309 that are about one rule and one URL, whole.

The groups of its §5 are in test_robotstxt.py, the form of paths in test_urls.py.
"""

from __future__ import annotations

import pytest

from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.agents import token_of_user_agent
from scrapy_rep.rep.rules.robotstxt import RobotsTxt


def matches(pattern: str, url: str) -> bool:
    """Whether an allow and a disallow rule with *pattern* decide about *url*."""
    lines = []
    for rule in ("allow", "disallow"):
        robots = RobotsTxt.parse(f"user-agent: ExampleBot\n{rule}: {pattern}\n".encode(), RFC9309)
        found = robots.verdict(f"https://www.example.com{url}", "ExampleBot")
        assert robots.allowed(f"https://www.example.com{url}", "ExampleBot") is found.allowed
        assert found.allowed is (rule == "allow" or not found.line)
        lines.append(found.line)
    assert lines in ([0, 0], [2, 2])
    return lines == [2, 2]


# §2.2.2: "Path", "Encoded Path" and "Path to match" of each row but the second;
# all that stand in one row are one path.
ROWS = [
    ["/foo/bar?baz=quz"],
    ["/foo/bar/ツ", "/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"],
    ["/foo/bar/%62%61%7A", "/foo/bar/%62%61%7a", "/foo/bar/baz"],
]


@pytest.mark.clause(
    "RFC 9309 2.2.2-11",
    "RFC 9309 2.2.2-13",
    "RFC 9309 2.2.2-16",
    "RFC 9309 2.2.2-18",
    "RFC 9309 2.2.2-19",
    "RFC 9309 2.2.2-20",
)
@pytest.mark.parametrize(("pattern", "url"), [(a, b) for row in ROWS for a in row for b in row])
def test_the_table_of_percent_encoding(pattern: str, url: str) -> None:
    assert matches(pattern, url)
    assert matches(f"{pattern}$", url)
    assert not matches(f"{pattern}$", f"{url}x")


@pytest.mark.clause("RFC 9309 2.2.2-d7")
@pytest.mark.parametrize(
    ("pattern", "url"),
    [(a, b) for row in ROWS for a in row for other in ROWS if other is not row for b in other],
)
def test_rows_of_the_table_are_different_paths(pattern: str, url: str) -> None:
    assert not matches(pattern, url)


RAW, ENCODED = "/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"


@pytest.mark.clause("RFC 9309 2.2.2-12", "RFC 9309 2.2.2-17", "RFC 9309 2.2.2-d7")
@pytest.mark.parametrize(
    ("pattern", "url", "same"),
    [(RAW, RAW, True), (ENCODED, ENCODED, True), (RAW, ENCODED, False), (ENCODED, RAW, False)],
)
def test_the_deviation_reserved_characters_in_a_query_keep_their_form(
    pattern: str, url: str, same: bool
) -> None:
    # The second row of the table, which would make all four equal: docs/dialects.rst.
    assert matches(pattern, url) is same


# §2.2.3
@pytest.mark.clause(
    "Draft 2019 2.2.3-1",
    "Draft 2019 2.2.3-2",
    "RFC 9309 2.2.3-1",
    "RFC 9309 2.2.3-2",
    "RFC 9309 2.2.3-3",
    "RFC 9309 2.2.3-4",
    "RFC 9309 2.2.3-5",
    "RFC 9309 2.2.3-6",
)
@pytest.mark.parametrize(
    ("pattern", "url", "same"),
    [
        ("/ # comment in line", "/a", True),
        ("/# comment in line", "/a", True),
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        ("/this/path/exactly$", "/this/path/exactly$", False),
        ("/this/*/exactly", "/this/path/exactly", True),
        ("/this/*/exactly", "/this/very/long/path/exactly", True),
        ("/this/*/exactly", "/this//exactly/so", True),
        ("/this/*/exactly", "/this/exactly", False),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-%24", True),
        ("/path/foo-%24", "/path/foo-", False),
        # Where "$" is not the end of the pattern, it is a character.
        ("/path/foo-$b", "/path/foo-$bar", True),
    ],
)
def test_the_tables_of_special_characters(pattern: str, url: str, same: bool) -> None:
    assert matches(pattern, url) is same


@pytest.mark.clause("RFC 9309 2.2.1-5")
def test_the_product_token_in_the_example_of_a_user_agent_header() -> None:
    # §2.2.1
    header = "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)"
    assert token_of_user_agent(header) == "ExampleBot"


MERGED = """\
user-agent: ExampleBot
disallow: /foo
disallow: /bar

user-agent: ExampleBot
disallow: /baz
"""
EVERYONE = """\
user-agent: *
disallow: /foo
disallow: /bar

user-agent: BazBot
disallow: /baz
"""


@pytest.mark.clause("RFC 9309 2.2.1-8", "RFC 9309 2.2.1-9")
@pytest.mark.parametrize(
    ("body", "agent", "refused"),
    [
        (MERGED, "ExampleBot", ["/foo", "/bar", "/baz"]),
        (MERGED, "BazBot", []),
        (EVERYONE, "ExampleBot", ["/foo", "/bar"]),
        (EVERYONE, "BazBot", ["/baz"]),
    ],
)
def test_the_figures_of_groups(body: str, agent: str, refused: list[str]) -> None:
    # §2.2.1
    robots = RobotsTxt.parse(body.encode(), RFC9309)
    paths = ("/foo", "/bar", "/baz", "/")
    assert [path for path in paths if not robots.allowed(path, agent)] == refused
