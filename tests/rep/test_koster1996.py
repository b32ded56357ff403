"""The Internet-Draft of November 1996, sentence by sentence."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.caching.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import KOSTER1996, Access
from scrapy_rep.rep.parsing.agents import token_of_user_agent
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason, Verdict


def verdict(body: str, path: str, agent: str = "webcrawler") -> Verdict:
    robots = RobotsTxt.parse(body.encode("latin-1"), KOSTER1996)
    found = robots.verdict(f"http://www.foo.com{path}", agent)
    assert found.allowed is robots.allowed(f"http://www.foo.com{path}", agent)
    return found


def allowed(body: str, path: str, agent: str = "webcrawler") -> bool:
    return verdict(body, path, agent).allowed


# -- §3.1, access ----------------------------------------------------------------------


@pytest.mark.clause("Koster 1996 3.1-3", "Koster 1996 3.1-4")
@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        ("http://www.foo.com/welcome.html", "http://www.foo.com/robots.txt"),
        ("http://www.bar.com:8001/", "http://www.bar.com:8001/robots.txt"),
    ],
)
def test_the_table_of_urls(url: str, robots_url: str) -> None:
    assert Origin.of(url).robots_url == robots_url


@pytest.mark.clause(
    "Koster 1996 3.1-5",
    "Koster 1996 3.1-6",
    "Koster 1996 3.1-7",
    "Koster 1996 3.1-8",
    "Koster 1996 3.1-9",
    "Koster 1996 3.1-d1",
    "Koster 1996 3.1-d2",
    "Koster 1996 3.1-d3",
)
@pytest.mark.parametrize(
    ("statuses", "access"),
    [
        ([200, 204, 299], Access.SUCCESSFUL),
        ([404, 400, 410, 451, 499], Access.UNAVAILABLE),
        ([401, 403], Access.DISALLOWED),
        # A temporary failure.
        ([500, 503, 599, 429, None], Access.UNREACHABLE),
        # A redirect to nowhere, and what has no meaning.
        ([301, 302, 304, 100, 600], Access.UNREACHABLE),
    ],
)
def test_what_answers_mean(statuses: list[int | None], access: Access) -> None:
    url = "http://www.foo.com/robots.txt"
    results = [FetchResult(url, status) for status in statuses]
    if None in statuses:
        results += [FetchResult(url, failure=failure) for failure in Failure]
    assert {access_result(result, KOSTER1996) for result in results} == {access}


# §3.2.2, with its two rows that are the same.
TABLE = [
    ("/tmp", "/tmp", True),
    ("/tmp", "/tmp.html", True),
    ("/tmp", "/tmp/a.html", True),
    ("/tmp/", "/tmp", False),
    ("/tmp/", "/tmp/", True),
    ("/tmp/", "/tmp/a.html", True),
    ("/a%3cd.html", "/a%3cd.html", True),
    ("/a%3Cd.html", "/a%3cd.html", True),
    ("/a%3cd.html", "/a%3Cd.html", True),
    ("/a%3cd.html", "/a%3cd.html", True),
    ("/a%2fb.html", "/a%2fb.html", True),
    ("/a%2fb.html", "/a%2Fb.html", True),
    ("/a%2fb.html", "/a/b.html", False),
    ("/%7ejoe/index.html", "/~joe/index.html", True),
    ("/~joe/index.html", "/%7Ejoe/index.html", True),
]


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 15


@pytest.mark.clause(
    "Koster 1996 3.2.2-1",
    "Koster 1996 3.2.2-8",
    "Koster 1996 3.2.2-9",
    "Koster 1996 3.2.2-10",
    "Koster 1996 3.2.2-11",
    "Koster 1996 3.2.2-12",
    "Koster 1996 3.2.2-13",
    "Koster 1996 3.2.2-14",
    "Koster 1996 3.2.2-15",
    "Koster 1996 3.2.2-16",
    "Koster 1996 3.2.2-17",
    "Koster 1996 3.2.2-18",
    "Koster 1996 3.2.2-19",
    "Koster 1996 3.2.2-20",
    "Koster 1996 3.2.2-21",
    "Koster 1996 3.2.2-22",
    "Koster 1996 3.3-7",
    "Koster 1996 3.3-9",
    "Koster 1996 3.3-10",
)
@pytest.mark.parametrize(("record_path", "url_path", "matches"), TABLE)
def test_the_table_of_path_comparisons(record_path: str, url_path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {record_path}\n", url_path) is not matches
    # Where it does not match, nothing is decided and all is allowed.
    assert (verdict(f"User-agent: *\nAllow: {record_path}\n", url_path).line == 2) is matches


@pytest.mark.clause(
    "Koster 1996 3.2.2-5",
    "Koster 1996 3.2.2-6",
    "Koster 1996 3.2.2-7",
    "Koster 1996 3.2.2-d3",
    "Koster 1996 3.3-9",
)
@pytest.mark.parametrize(
    ("record_path", "url_path", "matches"),
    [
        # "every byte in the path portion ... %xx ... is unencoded prior to comparison".
        ("/a<d", "/a%3Cd", True),
        ("/a%3Cd", "/a<d", True),
        ("/a%3Fb", "/a%3fb", True),
        ("/caf\xe9", "/caf%E9", True),
        ("/caf%e9", "/caf%E9", True),
        ("/caf\xc3\xa9", "/caf%C3%A9", True),
        ("/a b", "/a%20b", True),
        # "unless it is the "/" character".
        ("/a/b", "/a%2Fb", False),
        ("/a%2F", "/a/", False),
        # Decoded once, not twice.
        ("/a%252Fb", "/a%2Fb", False),
        ("/a%252Fb", "/a%252fb", False),
        ("/a%252Fb", "/a%252Fb", True),
        ("/%2561", "/a", False),
        # Paths are compared byte by byte: case counts.
        ("/tmp", "/TMP", False),
        # No wildcards: "*" and "$" are characters ("'*' is legal in a URL path").
        ("/*.gif", "/a.gif", False),
        ("/*.gif", "/*.gif", True),
        ("/%2A.gif", "/*.gif", True),
        ("/a$", "/a", False),
        ("/a$", "/a$b", True),
        ("*", "/a", False),
        # The end of the record's path must be reached.
        ("/tmp/a", "/tmp", False),
    ],
    ids=ascii,
)
def test_more_path_comparisons(record_path: str, url_path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {record_path}\n", url_path) is not matches


@pytest.mark.clause("Koster 1996 3.3-6", "Koster 1996 3.3-7")
@pytest.mark.parametrize("path", ["tmp", "*", "tmp/"])
@pytest.mark.parametrize("key", ["Disallow", "Allow"])
def test_a_path_without_a_slash_matches_nothing(key: str, path: str) -> None:
    # §3.3 has "Disallow:" path, and path without a leading slash; all examples have one.
    assert verdict(f"User-agent: *\n{key}: {path}\n", "/tmp/a").line == 0


@pytest.mark.clause("Koster 1996 3.3-8")
@pytest.mark.parametrize("key", ["Disallow", "Allow"])
def test_an_empty_path_is_not_a_rule(key: str) -> None:
    # It is before the one that matches.
    assert verdict(f"User-agent: *\n{key}:\nDisallow: /\n", "/a").line == 3


# §3.2
EXAMPLE = """\
User-agent: webcrawler
User-agent: infoseek
Allow: /tmp/ok.html
Disallow: /tmp
Disallow: /user/foo
"""


@pytest.mark.clause("Koster 1996 3-2", "Koster 1996 3.2-3", "Koster 1996 3.2-4")
@pytest.mark.parametrize("agent", ["webcrawler", "infoseek", "WebCrawler", "INFOSEEK"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/tmp/ok.html", 3),
        ("/tmp/ok.html.bak", 3),
        ("/tmp/other.html", 4),
        ("/tmp", 4),
        ("/tmpfile", 4),
        ("/user/foo/", 5),
        ("/user/bar", 0),
        ("/", 0),
    ],
)
def test_the_example_record(agent: str, path: str, line: int) -> None:
    found = verdict(EXAMPLE, path, agent)
    assert (found.line, found.allowed) == (line, line in (0, 3))


@pytest.mark.clause("Koster 1996 3.2-4")
def test_the_example_record_says_nothing_to_others() -> None:
    assert verdict(EXAMPLE, "/tmp", "figtree") == Verdict(True, Reason.NO_GROUP)


# -- §3.2.1, the User-agent line -----------------------------------------------------


@pytest.mark.clause("Koster 1996 3.2.1-1", "Koster 1996 3.2.1-6")
@pytest.mark.parametrize("name", ["figtree", "FigTree", "FIGTREE", "figtree # ours"])
def test_names_are_compared_in_any_case(name: str) -> None:
    assert not allowed(f"User-agent: {name}\nDisallow: /\n", "/", "FigTree")


@pytest.mark.clause("Koster 1996 3.2.1-1", "Koster 1996 3.2.1-d1")
@pytest.mark.parametrize(
    "name", ["fig", "figtree2", "figtree/0.1", "myfigtree", "figtree robot", "figtree*", ""]
)
def test_a_name_is_all_of_the_value(name: str) -> None:
    assert allowed(f"User-agent: {name}\nDisallow: /\n", "/", "figtree")


def test_a_byte_that_is_not_utf_8_is_not_its_escape_sequence() -> None:
    assert allowed("User-agent: \xa0\nDisallow: /\n", "/", "\\xa0")


@pytest.mark.clause("Koster 1996 3.2.1-7")
def test_the_example_of_fig_tree() -> None:
    name = token_of_user_agent("FigTree/0.1 Robot/1.0 libwww-perl/5.04")
    assert name == "FigTree"
    assert not allowed("User-agent: figtree\nDisallow: /\n", "/", name)


@pytest.mark.clause("Koster 1996 3.2.1-2")
@pytest.mark.parametrize("agent", ["figtree", "otherbot"])
def test_the_default_record_is_for_robots_without_one(agent: str) -> None:
    default, ours = "User-agent: *\nDisallow: /\n", "User-agent: figtree\nDisallow: /a\n"
    # Wherever it stands.
    for body in (f"{default}\n{ours}", f"{ours}\n{default}"):
        assert allowed(body, "/b", agent) is (agent == "figtree")


@pytest.mark.clause("Koster 1996 3.2.1-2")
def test_the_default_record_is_star_alone() -> None:
    assert allowed("User-agent: * and all\nDisallow: /\n", "/")


# -- §3.2.2, the first match ------------------------------------------------------------


@pytest.mark.clause("Koster 1996 3.2.2-3", "Koster 1996 3.2.2-4", "Koster 1996 4.1-1")
@pytest.mark.parametrize(
    ("rules", "path", "line"),
    [
        ("Disallow: /a\nAllow: /a/b\n", "/a/b", 2),
        ("Allow: /a/b\nDisallow: /a\n", "/a/b", 2),
        ("Allow: /\nDisallow: /a\n", "/a", 2),
        ("Disallow: /\nAllow: /a\n", "/a", 2),
        ("Disallow: /x\nAllow: /a\nDisallow: /a/b\n", "/a/b", 3),
    ],
)
def test_the_first_match_is_used_not_the_longest(rules: str, path: str, line: int) -> None:
    assert verdict(f"User-agent: *\n{rules}", path).line == line


@pytest.mark.clause("Koster 1996 3.2.1-d2")
def test_records_that_name_us_are_one_in_file_order() -> None:
    # The draft does not say; see docs/dialects.rst.
    body = (
        "User-agent: webcrawler\nDisallow: /a\n\n"
        "User-agent: infoseek\nDisallow: /\n\n"
        "User-agent: WebCrawler\nAllow: /a\nDisallow: /b\n"
    )
    assert [verdict(body, path).line for path in ("/a", "/b", "/c")] == [2, 9, 0]


@pytest.mark.clause("Koster 1996 3.3-8", "Koster 1996 list-1")
@pytest.mark.parametrize("rules", ["", "Disallow: /b\n", "Allow: /b\n", "Disallow:\n", "Allow:\n"])
def test_no_match_means_allowed(rules: str) -> None:
    # The reply on the mailing list: "the intention was that no match implies
    # that the agent is allowed"; no terminal "Allow: /" is needed.
    found = verdict(f"User-agent: webcrawler\n{rules}", "/a")
    assert found.allowed
    assert found.line == 0


@pytest.mark.clause("Koster 1996 3-d1")
def test_the_robots_txt_itself_is_allowed() -> None:
    assert verdict("User-agent: *\nDisallow: /\n", "/robots.txt").reason is Reason.ROBOTS_TXT_ITSELF


# -- §3.2 and §3.3, records ----------------------------------------------------------


@pytest.mark.clause(
    "Koster 1996 3.2-1", "Koster 1996 3.3-1", "Koster 1996 3.3-2", "Koster 1996 4.2-2"
)
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"], ids=repr)
@pytest.mark.parametrize("blank", ["", " ", "\t", " \t "], ids=repr)
def test_records_end_at_blank_lines(blank: str, end: str) -> None:
    lines = ["User-agent: infoseek", "Disallow: /a", blank, "Disallow: /b"]
    lines += [blank, blank, "User-agent: webcrawler", "Disallow: /c", ""]
    body = end.join(lines)
    assert [verdict(body, path, "infoseek").line for path in ("/a", "/b", "/c")] == [2, 0, 0]
    assert [verdict(body, path).line for path in ("/a", "/b", "/c")] == [0, 0, 8]


@pytest.mark.clause("Koster 1996 3.3-3", "Koster 1996 3.3-4")
@pytest.mark.parametrize("blank", ["", " "], ids=repr)
def test_a_blank_line_parts_agents_from_rules(blank: str) -> None:
    assert verdict(f"User-agent: *\n{blank}\nDisallow: /\n", "/").allowed


@pytest.mark.clause("Koster 1996 3.2-5", "Koster 1996 3.3-1", "Koster 1996 3.3-12")
@pytest.mark.parametrize("comment", ["#", "# comment", "  # comment", "\t#", "#" * 80], ids=repr)
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_comment_alone_is_not_a_blank_line(comment: str, place: int) -> None:
    # §3.3: record = ... agentline *(commentline | agentline) ... *(commentline | ruleline)
    lines = ["User-agent: infoseek", "User-agent: webcrawler", "Disallow: /a", "Disallow: /b"]
    lines.insert(place, comment)
    body = "\n".join(lines)
    for agent in ("infoseek", "webcrawler"):
        assert not allowed(body, "/a", agent)
        assert not allowed(body, "/b", agent)


@pytest.mark.clause("Koster 1996 3.2-d1", "Koster 1996 4.2-1")
@pytest.mark.parametrize("other", ["Sitemap: http://a/", "Crawl-delay: 1", "x: y", "nonsense"])
def test_lines_that_the_draft_does_not_define_are_not_a_boundary(other: str) -> None:
    assert not allowed(f"User-agent: webcrawler\n{other}\nDisallow: /a\n{other}\n", "/a")


@pytest.mark.clause("Koster 1996 3.3-3")
def test_a_user_agent_line_after_a_rule_starts_a_record() -> None:
    # §3.2: "The record starts with one or more User-agent lines".
    body = "User-agent: infoseek\nDisallow: /a\nUser-agent: webcrawler\nDisallow: /b\n"
    assert verdict(body, "/a").line == 0
    assert verdict(body, "/b").line == 4
    assert verdict(body, "/b", "infoseek").line == 0


@pytest.mark.clause("Koster 1996 3.2-2", "Koster 1996 3.3-d2")
@pytest.mark.parametrize("line", ["Disalow: /", "Disallowed: /", "Disallow /", "Dissallow: /"])
def test_keys_are_those_of_the_draft(line: str) -> None:
    assert allowed(f"User-agent: *\n{line}\n", "/a")


@pytest.mark.clause("Koster 1996 3.2-2", "Koster 1996 3.2-5", "Koster 1996 3.3-5")
@pytest.mark.parametrize(
    "line", ["DISALLOW: /a", "disallow:/a", "Disallow:\t/a \t", " Disallow: /a#c"]
)
def test_keys_in_any_case_and_space_around_values(line: str) -> None:
    assert not allowed(f"User-agent: *\n{line}\n", "/a")
