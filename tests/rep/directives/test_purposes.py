"""What a site lets its pages be used for."""

from __future__ import annotations

import pytest

from scrapy_rep.rep.directives.purposes import Preferences
from scrapy_rep.rep.parsing.records import ContentUse, OtherRecord
from scrapy_rep.rep.parsing.urls import InvalidURL
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

ALL = ("search", "ai-input", "ai-train")


def refusal(
    lines: list[str],
    purposes: tuple[str, ...],
    url: str = "https://example.com/a",
    shown: ContentUse | None = None,
) -> OtherRecord | None:
    body = "\n".join(["User-agent: *", "Allow: /", *lines, "User-agent: Other", "Disallow: /"])
    records = RobotsTxt.parse(body.encode()).records_for("x")
    found = Preferences(records, purposes, shown).refusal(url)
    return found.record if found else None


# The line in which the first of *lines* stands.
FIRST = 3


@pytest.mark.parametrize(
    ("lines", "purposes", "line"),
    [
        ([], ALL, 0),
        (["Content-Signal: search=no"], (), 0),
        (["Content-Signal: search=no"], ("search",), FIRST),
        (["Content-Signal: search=yes"], ("search",), 0),
        (["content-signal: SEARCH = NO"], ("search",), FIRST),
        (["Content-Usage: search=n"], ("search",), FIRST),
        (["Content-Usage: search=y"], ("search",), 0),
        (["Content-Usage: search=no"], ("search",), 0),
        # What is not mentioned is neither allowed nor disallowed.
        (["Content-Signal: ai-train=no, ai-input=no"], ("search",), 0),
        (["Content-Signal: ai-train=no, ai-input=no"], ("ai-input", "ai-train"), FIRST),
        (["Content-Signal: ai-train=no"], ("ai-input", "ai-train"), 0),
        (["Content-Signal: ai-train=no, search=yes"], ("search", "ai-train"), 0),
        # Cloudflare's managed file.
        (["Content-Signal: search=yes,ai-train=no"], ("search",), 0),
        (["Content-Signal: search=yes,ai-train=no"], ("ai-train",), FIRST),
        # Two vocabularies, the same purposes.
        (["Content-Usage: train-ai=n"], ("ai-train",), FIRST),
        (["Content-Signal: ai-train=no"], ("train-ai",), FIRST),
        # The vocabulary had this label until 2025-08-08.
        (["Content-Usage: ai-use=n"], ("ai-input",), 0),
        (["Content-Usage: ai-use=n"], ("ai-use",), FIRST),
        (["Content-Signal: ai-input=no"], ("ai-use",), 0),
        (["Content-Usage: train-ai=y, ai-train=n"], ("ai-train",), FIRST),
        # Terms that are new to us.
        (["Content-Usage: archive=n"], ("archive",), FIRST),
        (["Content-Usage: archive=n"], ("search",), 0),
        # Together: one no is enough.
        (["Content-Signal: search=yes", "Content-Usage: search=n"], ("search",), FIRST + 1),
        (["Content-Signal: search=no", "Content-Signal: search=yes"], ("search",), FIRST),
        (["Content-Signal: search=yes", "Content-Signal: search=no"], ("search",), FIRST + 1),
        (["Content-Signal: search=no", "Content-Usage: search=n"], ("search",), FIRST),
        (["Content-Usage: search=n", "Content-Signal: search=no"], ("search",), FIRST),
        (["Content-Signal: search=no", "Content-Usage: train-ai=n"], ("search", "ai-train"), FIRST),
        (
            ["Content-Signal: search=no", "Content-Usage: train-ai=n"],
            ("ai-train", "search"),
            FIRST + 1,
        ),
        # Another group's, and what is no preference.
        (["Content-Signal: search=no", "User-agent: Other"], ("search",), FIRST),
        (["User-agent: Other", "Content-Signal: search=no"], ("search",), 0),
        (["Noindex: /", "Crawl-delay: 3", "Content-Usage: (search"], ALL, 0),
    ],
)
def test_which_record_refuses(lines: list[str], purposes: tuple[str, ...], line: int) -> None:
    found = refusal(lines, purposes)
    assert (found.line if found else 0) == line


# draft-ietf-aipref-attach, "Example".
EXAMPLE = ["Content-Usage: / train-ai=n", "Content-Usage: /ai-ok/ train-ai=y"]
BY_PATH: list[tuple[list[str], str, bool]] = [
    (EXAMPLE, "/test", True),
    (EXAMPLE, "/ai-ok/test", False),
    (EXAMPLE, "/ai-ok", True),
    # The longest match, wherever it stands, and as a whole.
    (EXAMPLE[::-1], "/ai-ok/test", False),
    (["Content-Usage: train-ai=n", "Content-Usage: /a train-ai=y"], "/a/b", False),
    (["Content-Usage: / train-ai=n", "Content-Usage: /a search=y"], "/a/b", False),
    (["Content-Usage: /a train-ai=n", "Content-Usage: /b train-ai=n"], "/c", False),
    # Nothing is known for a path whose preference is unknown.
    (["Content-Usage: train-ai=n", "Content-Usage: /a train-ai=maybe"], "/a/b", False),
    (["Content-Usage: train-ai=n", "Content-Usage: /a train-ai=maybe"], "/b", True),
    (["Content-Usage: train-ai=n", "Content-Usage: /a Train-AI=n"], "/a", False),
    (["Content-Usage: train-ai=n", "Content-Usage: /a"], "/a", False),
    (["Content-Usage: /a train-ai=n", "Content-Usage: /a train-ai=maybe"], "/a", True),
    # Without a path it is about all of them.
    (["Content-Usage: train-ai=y", "Content-Usage: / train-ai=n"], "/", True),
    # Wildcards, percent-encoding and queries, as in rules.
    (["Content-Usage: /*.pdf$ train-ai=n"], "/x/y.pdf", True),
    (["Content-Usage: /*.pdf$ train-ai=n"], "/x/y.pdf?z", False),
    (["Content-Usage: /caf\xe9 train-ai=n"], "/caf%C3%A9/1", True),
    (["Content-Usage: /?q= train-ai=n"], "/?q=1#top", True),
    # Of the same path, the one that refuses.
    (["Content-Usage: /a train-ai=y", "Content-Usage: /a train-ai=n"], "/a", True),
    (["Content-Usage: /a train-ai=n", "Content-Usage: /a train-ai=y"], "/a", True),
    (["Content-Signal: /news/ ai-train=no"], "/news/1", True),
    (["Content-Signal: /news/ ai-train=no"], "/", False),
]


@pytest.mark.parametrize(("lines", "path", "refused"), BY_PATH)
def test_paths(lines: list[str], path: str, refused: bool) -> None:
    url = f"https://example.com{path}"
    assert (refusal(lines, ("ai-train",), url) is not None) is refused


IMMEDIATE, REFERENCE, FULL = ContentUse


@pytest.mark.parametrize(
    ("lines", "shown", "line"),
    [
        # An upper bound.
        (["Content-Signal: use=immediate"], IMMEDIATE, 0),
        (["Content-Signal: use=immediate"], REFERENCE, FIRST),
        (["Content-Signal: use=immediate"], FULL, FIRST),
        (["Content-Signal: use=reference"], IMMEDIATE, 0),
        (["Content-Signal: use=reference"], REFERENCE, 0),
        (["Content-Signal: use=reference"], FULL, FIRST),
        (["Content-Signal: use=full"], FULL, 0),
        # Neither side says something by default.
        (["Content-Signal: use=immediate"], None, 0),
        (["Content-Signal: search=no"], FULL, 0),
        (["Content-Signal: use=none"], FULL, 0),
        ([], FULL, 0),
        # It is a signal of Content-Signal alone.
        (["Content-Usage: use=immediate"], FULL, 0),
        # The longest path decides; of equal ones, the one that allows less.
        (["Content-Signal: use=immediate", "Content-Signal: /a use=full"], FULL, 0),
        (["Content-Signal: use=immediate", "Content-Signal: /a search=yes"], FULL, 0),
        (["Content-Signal: use=full", "Content-Signal: /a use=immediate"], FULL, FIRST + 1),
        (["Content-Signal: use=full", "Content-Signal: use=reference"], FULL, FIRST + 1),
        (["Content-Signal: use=immediate", "Content-Signal: use=full"], REFERENCE, FIRST),
        (["Content-Signal: /b use=immediate"], FULL, 0),
    ],
)
def test_how_much_of_a_page_is_shown_again(
    lines: list[str], shown: ContentUse | None, line: int
) -> None:
    for purposes in ((), ("search",)):
        if purposes and "Content-Signal: search=no" in lines:
            continue
        found = refusal(lines, purposes, shown=shown)
        assert (found.line if found else 0) == line


def test_what_is_said_of_a_refusal() -> None:
    body = b"User-agent: *\nContent-Signal: search=no, use=immediate\n"
    records = RobotsTxt.parse(body).records_for("x")
    url = "https://example.com/"
    by_use = Preferences(records, (), FULL).refusal(url)
    assert by_use is not None
    assert by_use.why == "this crawl shows more of its pages than that: full"
    # No purpose being left says more.
    by_purpose = Preferences(records, ("search",), FULL).refusal(url)
    assert by_purpose is not None
    assert by_purpose.why == "it refuses every purpose of this crawl"


def test_an_invalid_url_has_no_preference() -> None:
    with pytest.raises(InvalidURL):
        refusal(["Content-Signal: search=no"], ("search",), "page")


@pytest.mark.once
def test_a_file_of_nothing_else() -> None:
    lines = [f"Content-Usage: /*{number}x search=n" for number in range(20_000)]
    body = "\n".join(["User-agent: *", *lines]).encode()
    preferences = Preferences(RobotsTxt.parse(body).records_for("x"), ("search",))
    assert preferences.refusal("https://example.com/" + "1y" * 500) is None
    assert preferences.refusal("https://example.com/9x") is not None


def test_records_that_cost_too_much_allow_nothing_by_that() -> None:
    url = "https://example.com/aaa"
    elsewhere = "Content-Usage: /other search=n"
    costly = [f"Content-Usage: /{'*a' * number} search=y" for number in (450, 451)]
    assert refusal([elsewhere], ("search",), url) is None
    assert refusal(costly, ("search",), url) is None
    found = refusal([elsewhere, *costly], ("search",), url)
    assert found is not None
    assert found.line == FIRST


@pytest.mark.parametrize(
    ("record", "purpose", "is_refused"),
    [
        ("Content-Signal: search=no", "snippet", True),
        ("Content-Signal: search=no", "images", True),
        ("Content-Usage: train-ai=n", "ai-train-images", True),
        ("Content-Signal: ai-train=no", "ai-train-images", True),
        # Training is text and data mining, but there is other text and data mining.
        ("Content-Signal: ai-train=no", "tdm", False),
        ("Content-Signal: search=no", "archive", False),
        ("Content-Usage: archive=n", "archive", True),
    ],
)
def test_a_term_is_about_all_purposes_that_it_includes(
    record: str, purpose: str, is_refused: bool
) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\n{record}\n".encode())
    preferences = Preferences(robots.records_for("x"), [purpose])
    assert (preferences.refusal("https://example.com/") is not None) is is_refused


@pytest.mark.parametrize(
    ("records", "path", "expected"),
    [
        ([], "/", []),
        (["Content-Signal: search=yes, ai-train=no"], "/", [("search", 2), ("ai-train", -2)]),
        (["Content-Signal: search=no, ai-train=yes"], "/", [("search", -2), ("ai-train", 2)]),
        # The longest path decides, for each kind of record by itself.
        (
            ["Content-Signal: ai-train=no", "Content-Signal: /a ai-train=yes"],
            "/a",
            [("ai-train", 3)],
        ),
        (["Content-Signal: ai-train=no", "Content-Signal: /a search=yes"], "/a", [("search", 3)]),
        (["Content-Signal: ai-train=yes", "Content-Usage: train-ai=n"], "/", [("ai-train", -3)]),
        (
            ["Content-Signal: ai-train=yes", "Content-Usage: train-ai=y"],
            "/",
            [("ai-train", 2), ("ai-train", 3)],
        ),
        (["Content-Usage: train-ai=?1"], "/", []),
    ],
)
def test_what_is_stated_of_each_purpose(
    records: list[str], path: str, expected: list[tuple[str, int]]
) -> None:
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *records]).encode())
    preferences = Preferences(robots.records_for("x"), ["search", "train-ai"])
    stated = [
        (purpose, record.line if allows else -record.line)
        for purpose, record, allows in preferences.stated(f"https://example.com{path}")
    ]
    assert sorted(stated) == sorted(expected)


def test_what_is_stated_of_a_path_that_costs_too_much_is_refused() -> None:
    costly = "".join("*%b" for _ in range(900))
    records = ["Content-Signal: / ai-train=no", f"Content-Signal: /{costly} ai-train=yes"]
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *records]).encode())
    preferences = Preferences(robots.records_for("x"), ["ai-train"])
    found = list(preferences.stated(f"https://example.com/{'%25b' * 10}"))
    assert [(purpose, allows) for purpose, _, allows in found] == [("ai-train", False)]
