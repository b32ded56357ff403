"""The consensus of June 1994, sentence by sentence."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import KOSTER1994, Access
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict


def verdict(body: str, path: str, agent: str = "cybermapper") -> Verdict:
    robots = RobotsTxt.parse(body.encode("latin-1"), KOSTER1994)
    found = robots.verdict(f"http://www.example.com{path}", agent)
    assert found.allowed is robots.allowed(f"http://www.example.com{path}", agent)
    return found


def allowed(body: str, path: str, agent: str = "cybermapper") -> bool:
    return verdict(body, path, agent).allowed


# -- the three examples --------------------------------------------------------------

FIRST = """\
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space
Disallow: /tmp/ # these will soon disappear
Disallow: /foo.html
"""

SECOND = """\
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space

# Cybermapper knows where to go.
User-agent: cybermapper
Disallow:
"""

THIRD = """\
# go away
User-agent: *
Disallow: /
"""


@pytest.mark.clause(
    "Koster 1994 format-2",
    "Koster 1994 format-5",
    "Koster 1994 disallow-5",
    "Koster 1994 disallow-d4",
    "Koster 1994 examples-1",
    "Koster 1994 examples-2",
    "Koster 1994 examples-3",
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize(
    ("body", "agent", "path", "line"),
    [
        (FIRST, "anybot", "/cyberworld/map/a", 4),
        (FIRST, "anybot", "/cyberworld/map", 0),
        (FIRST, "anybot", "/tmp/a", 5),
        (FIRST, "anybot", "/tmp", 0),
        (FIRST, "anybot", "/foo.html", 6),
        (FIRST, "anybot", "/foo.html?q", 6),
        (FIRST, "anybot", "/foo", 0),
        (FIRST, "anybot", "/", 0),
        (SECOND, "anybot", "/cyberworld/map/", 4),
        (SECOND, "anybot", "/", 0),
        (SECOND, "cybermapper", "/cyberworld/map/", 0),
        (SECOND, "CyberMapper", "/", 0),
        (THIRD, "anybot", "/", 3),
        (THIRD, "cybermapper", "/a", 3),
    ],
)
def test_the_examples(body: str, agent: str, path: str, line: int, end: str) -> None:
    # "separated by one or more blank lines (terminated by CR,CR/NL, or NL)"
    found = verdict(body.replace("\n", end), path, agent)
    assert (found.line, found.allowed) == (line, line == 0)


@pytest.mark.clause("Koster 1994 empty-1")
@pytest.mark.parametrize("body", ["", "\n", "# nothing\n"], ids=repr)
def test_an_empty_file_is_as_none(body: str) -> None:
    # "all robots will consider themselves welcome"
    assert verdict(body, "/") == Verdict(True, Reason.NO_GROUP)


# -- User-agent ------------------------------------------------------------------------


@pytest.mark.clause("Koster 1994 method-d1")
def test_without_a_file_everything_is_allowed() -> None:
    url = "http://www.example.com/robots.txt"
    results = [FetchResult(url, status) for status in (None, 100, 301, 304, 401, 403, 404, 500)]
    results += [FetchResult(url, failure=failure) for failure in Failure]
    found = {access_result(result, KOSTER1994) for result in results}
    assert found == {Access.UNAVAILABLE}


@pytest.mark.clause("Koster 1994 method-d3")
def test_the_robots_txt_itself_is_allowed() -> None:
    assert verdict(THIRD, "/robots.txt").reason is Reason.ROBOTS_TXT_ITSELF


@pytest.mark.clause(
    "Koster 1994 user-agent-1",
    "Koster 1994 user-agent-4",
    "Koster 1994 user-agent-5",
    "Koster 1994 user-agent-d1",
)
@pytest.mark.parametrize(
    "name",
    [
        "cybermapper",
        "CYBERMAPPER",
        "Cybermapper/1.0",
        "the cybermapper of Example",
        "Mozilla/4.0 (compatible; Cybermapper)",
        "mycybermapper2",
    ],
)
def test_our_name_is_looked_for_in_the_value(name: str) -> None:
    # "A case insensitive substring match of the name without version information"
    assert not allowed(f"User-agent: {name}\nDisallow: /\n", "/", "CyberMapper")


@pytest.mark.clause("Koster 1994 user-agent-d1")
@pytest.mark.parametrize("name", ["cyber", "mapper", "cyber mapper", "", "*bot", "c"])
def test_the_value_is_not_looked_for_in_our_name(name: str) -> None:
    assert allowed(f"User-agent: {name}\nDisallow: /\n", "/")


@pytest.mark.clause("Koster 1994 user-agent-5")
@pytest.mark.parametrize("agent", ["x", "xa0", "a0", "\\", "\\xa0"])
def test_a_byte_that_is_not_utf_8_has_no_letters_in_it(agent: str) -> None:
    assert allowed("User-agent: \xa0bot\nDisallow: /\n", "/", agent)
    assert not allowed("User-agent: \xa0bot\nDisallow: /\n", "/", "bot")


@pytest.mark.clause("Koster 1994 format-7", "Koster 1994 user-agent-2")
def test_several_names_of_one_record() -> None:
    body = "User-agent: onebot\nUser-agent: otherbot\nDisallow: /a\n"
    assert [verdict(body, "/a", agent).line for agent in ("onebot", "otherbot", "third")] == [
        3,
        3,
        0,
    ]


@pytest.mark.clause("Koster 1994 user-agent-6")
@pytest.mark.parametrize("star_first", [True, False])
def test_the_default_record_is_for_robots_that_matched_no_other(star_first: bool) -> None:
    records = ["User-agent: *\nDisallow: /\n", "User-agent: cybermapper\nDisallow: /a\n"]
    body = "\n".join(records if star_first else records[::-1])
    assert allowed(body, "/b")
    assert not allowed(body, "/a")
    assert not allowed(body, "/b", "otherbot")


@pytest.mark.clause("Koster 1994 user-agent-7")
def test_several_default_records_are_combined() -> None:
    # "It is not allowed to have multiple such records"
    body = "User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"
    assert [verdict(body, path).line for path in ("/a", "/b", "/c")] == [2, 5, 0]


@pytest.mark.clause("Koster 1994 format-d1")
def test_a_user_agent_line_after_a_disallow_starts_a_record() -> None:
    body = "User-agent: onebot\nDisallow: /a\nUser-agent: cybermapper\nDisallow: /b\n"
    assert [verdict(body, path).line for path in ("/a", "/b")] == [0, 4]
    assert [verdict(body, path, "onebot").line for path in ("/a", "/b")] == [2, 0]


@pytest.mark.clause("Koster 1994 format-7", "Koster 1994 disallow-6")
@pytest.mark.parametrize("between", ["\n", "Allow: /\n\n", "Sitemap: http://a/\n\n"], ids=repr)
def test_a_record_without_disallow_is_not_a_record(between: str) -> None:
    # "At least one Disallow field needs to be present in a record": so we are not named.
    body = f"User-agent: cybermapper\n{between}User-agent: *\nDisallow: /\n"
    assert not allowed(body, "/")


@pytest.mark.clause("Koster 1994 user-agent-d2")
def test_records_that_name_us_are_one_in_file_order() -> None:
    # The document does not say; see docs/dialects.rst.
    body = "User-agent: cybermapper\nDisallow: /a\n\nUser-agent: Cybermapper/2\nDisallow: /b\n"
    assert [verdict(body, path).line for path in ("/a", "/b", "/c")] == [2, 5, 0]


# -- Disallow --------------------------------------------------------------------------


@pytest.mark.clause(
    "Koster 1994 disallow-1",
    "Koster 1994 disallow-2",
    "Koster 1994 disallow-3",
    "Koster 1994 disallow-4",
    "Koster 1994 disallow-d2",
)
@pytest.mark.parametrize(
    ("value", "path", "matches"),
    [
        ("/help", "/help.html", True),
        ("/help", "/help/index.html", True),
        ("/help/", "/help/index.html", True),
        ("/help/", "/help.html", False),
        ("/help", "/HELP", False),
        ("/", "/", True),
        ("", "/", False),
        ("/*.gif", "/a.gif", False),
        ("/*.gif", "/*.gif", True),
        ("/a$", "/a", False),
        ("/a$", "/a$b", True),
        ("*", "/", False),
        ("help", "/help", False),
        # The same URL in another spelling.
        ("/~joe", "/%7Ejoe", True),
        ("/a b", "/a%20b", True),
        ("/a/b", "/a%2Fb", False),
    ],
)
def test_any_url_that_starts_with_the_value(value: str, path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {value}\n", path) is not matches


@pytest.mark.clause("Koster 1994 disallow-d1")
@pytest.mark.parametrize("empty_first", [True, False])
def test_an_empty_disallow_takes_nothing_back(empty_first: bool) -> None:
    lines = ["Disallow:", "Disallow: /a"]
    body = "\n".join(["User-agent: *", *(lines if empty_first else lines[::-1])])
    assert not allowed(body, "/a")
    assert allowed(body, "/b")


@pytest.mark.clause("Koster 1994 format-8", "Koster 1996 4.1-1")
@pytest.mark.parametrize("allow", ["Allow: /a", "Allow: /", "allow: /a/b", "Allow:"])
@pytest.mark.parametrize("allow_first", [True, False])
def test_allow_is_an_unrecognised_header(allow: str, allow_first: bool) -> None:
    lines = [allow, "Disallow: /a"] if allow_first else ["Disallow: /a", allow]
    found = verdict("\n".join(["User-agent: *", *lines]), "/a/b")
    assert (found.allowed, found.line) == (False, 3 if allow_first else 2)


@pytest.mark.clause("Koster 1994 format-d2")
def test_allow_makes_no_record() -> None:
    body = "User-agent: cybermapper\nAllow: /\nUser-agent: otherbot\nDisallow: /\n"
    # The first record has no rule yet when the second agent comes: one record.
    assert not allowed(body, "/", "cybermapper")
    assert not allowed(body, "/", "otherbot")


@pytest.mark.clause("Koster 1994 disallow-5", "Koster 1994 disallow-d4")
@pytest.mark.parametrize(
    "rules", ["", "Disallow: /b\n", "Disallow:\n", "Disallow: # nothing\n", "Allow: /b\n"]
)
def test_no_match_means_allowed(rules: str) -> None:
    found = verdict(f"User-agent: cybermapper\n{rules}", "/a")
    assert found.allowed
    assert found.line == 0


# -- lines -----------------------------------------------------------------------------


@pytest.mark.clause("Koster 1994 format-6")
@pytest.mark.parametrize("comment", ["#", "# comment", " \t# comment"], ids=repr)
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_comment_alone_is_not_a_record_boundary(comment: str, place: int) -> None:
    # "Lines containing only a comment are discarded completely"
    lines = ["User-agent: onebot", "User-agent: cybermapper", "Disallow: /a", "Disallow: /b"]
    lines.insert(place, comment)
    for agent in ("onebot", "cybermapper"):
        assert not allowed("\n".join(lines), "/a", agent)
        assert not allowed("\n".join(lines), "/b", agent)


@pytest.mark.clause("Koster 1994 format-1", "Koster 1994 format-2", "Koster 1994 user-agent-3")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("blank", ["", " ", "\t"], ids=repr)
def test_blank_lines_end_records(end: str, blank: str) -> None:
    lines = ["User-agent: cybermapper", "Disallow: /a", blank, "Disallow: /b", ""]
    assert [verdict(end.join(lines), path).line for path in ("/a", "/b")] == [2, 0]


@pytest.mark.clause("Koster 1994 format-8")
@pytest.mark.parametrize("other", ["Sitemap: http://a/", "Crawl-delay: 1", "x: y", "nonsense"])
def test_unrecognised_headers_are_ignored(other: str) -> None:
    assert not allowed(f"User-agent: cybermapper\n{other}\nDisallow: /a\n{other}\n", "/a")


@pytest.mark.clause("Koster 1994 format-3", "Koster 1994 format-4", "Koster 1994 format-5")
@pytest.mark.parametrize(
    "line", ["DISALLOW: /a", "disallow:/a", "Disallow: /a \t", "Disallow: /a#c"]
)
def test_field_names_in_any_case_and_optional_space(line: str) -> None:
    assert not allowed(f"User-agent: *\n{line}\n", "/a")
