"""What a change of a robots.txt changes."""

from __future__ import annotations

import zipfile
from random import Random

import pytest

from scrapy_rep.evidence.changes import Flip, changes, flips
from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, RFC9309, Dialect
from scrapy_rep.rep.parsing.lines import Field, read_records
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from tests.rep.conformance_data import CORPUS

SITE = "https://example.com"


def parsed(body: str, dialect: Dialect = RFC9309) -> RobotsTxt:
    return RobotsTxt.parse(body.encode(), dialect)


OLD = """\
User-agent: *
Disallow: /private/
Crawl-delay: 5

User-agent: b
Disallow: /
Sitemap: https://example.com/sitemap.xml
"""


@pytest.mark.parametrize(
    "new",
    [
        OLD + "# a comment\n",
        OLD.replace("\n", "\r\n"),
        OLD.replace("Disallow: /private/", "disallow :/private/ # here"),
        OLD.replace("/private/", "/%70rivate/"),
        OLD.replace("User-agent: b", "User-Agent: B/1.0"),
        # The groups in another order, and one of them in two.
        "User-agent: b\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nCrawl-delay: 5\n"
        "Sitemap: https://example.com/sitemap.xml\n",
        OLD + "User-agent: b\nDisallow: /\n",
        OLD + "Disallow:\n",
        OLD + "Unknown: record\n",
    ],
)
def test_comments_order_and_spelling_change_nothing(new: str) -> None:
    found = changes(parsed(OLD), parsed(new))
    assert found.is_nothing
    assert not found.is_same_file


def test_the_same_file() -> None:
    found = changes(parsed(OLD), parsed(OLD))
    assert found.is_same_file
    assert found.is_nothing


def test_in_a_dialect_in_which_the_first_rule_decides_order_counts() -> None:
    old = "User-agent: *\nAllow: /a\nDisallow: /\n"
    new = "User-agent: *\nDisallow: /\nAllow: /a\n"
    assert changes(parsed(old), parsed(new)).is_nothing
    koster = DIALECTS["koster1996"]
    [change] = changes(parsed(old, koster), parsed(new, koster)).agents
    assert change.lost
    assert not change.gained


def test_agents_that_gain_and_lose_access() -> None:
    new = OLD.replace("Disallow: /\n", "Disallow: /x\n").replace("/private/", "/")
    found = changes(parsed(OLD), parsed(new))
    by_name = {change.names: change for change in found.agents}
    assert set(by_name) == {("*",), ("b",)}
    assert by_name["*",].gained == ()
    assert "/" in by_name["*",].lost
    assert by_name["b",].lost == ()
    assert "/" in by_name["b",].gained
    assert found.records_added == found.records_removed == ()


def test_an_agent_that_is_no_longer_named_falls_back_to_the_group_for_all() -> None:
    new = OLD.replace("User-agent: b", "User-agent: c")
    by_name = {change.names: change for change in changes(parsed(OLD), parsed(new)).agents}
    assert set(by_name) == {("b",), ("c",)}
    assert by_name["b",].gained
    assert by_name["c",].lost


def test_a_name_with_the_rules_that_it_had_anyway_changes_no_access() -> None:
    new = OLD + "User-agent: c\nDisallow: /private/\n"
    assert changes(parsed(OLD), parsed(new)).is_nothing


def test_agents_with_the_same_rules_are_told_of_together() -> None:
    old = "User-agent: a\nUser-agent: b\nUser-agent: c\nDisallow: /1\n"
    new = "User-agent: b\nUser-agent: a\nDisallow: /2\nUser-agent: c\nDisallow: /1\n"
    [change] = changes(parsed(old), parsed(new)).agents
    assert change.names == ("a", "b")


def test_rules_that_change_no_path_are_told_of() -> None:
    old = "User-agent: *\nDisallow: /a\n"
    [change] = changes(parsed(old), parsed(old + "Disallow: /a/b\n")).agents
    assert change.gained == change.lost == ()
    assert change.tried >= 4


def test_ai_agents_and_preferences_that_appear() -> None:
    new = OLD.replace("Crawl-delay: 5", "Content-Signal: ai-train=no")
    found = changes(parsed(OLD), parsed(new + "User-agent: GPTBot\nDisallow: /\n"))
    assert found.ai_agents_added == ("gptbot",)
    assert found.records_added == ("Content-Signal: ai-train=no (for *)",)
    assert found.records_removed == ("Crawl-delay: 5 (for *)",)
    back = changes(parsed(new + "User-agent: GPTBot\nDisallow: /\n"), parsed(OLD))
    assert back.ai_agents_removed == ("gptbot",)
    assert back.ai_agents_added == found.ai_agents_removed == ()


def test_urls_that_flip() -> None:
    new = parsed(OLD.replace("/private/", "/public/"))
    urls = [f"{SITE}/private/1", f"{SITE}/public/1", f"{SITE}/", "/private/2"]
    assert list(flips(parsed(OLD), new, urls, "ExampleBot")) == [
        Flip(urls[0], True),
        Flip(urls[1], False),
        Flip(urls[3], True),
    ]
    assert changes(parsed(OLD), new, urls, "ExampleBot").flips == tuple(
        flips(parsed(OLD), new, urls, "ExampleBot")
    )


# -- real files -----------------------------------------------------------------------------


def some_bodies(count: int) -> list[bytes]:
    """So many files of the corpus, evenly spread, without those that take long."""
    if not CORPUS.exists():
        pytest.skip(f"there is no {CORPUS}")
    with zipfile.ZipFile(CORPUS) as archive:
        members = [each for each in archive.infolist() if 0 < each.file_size < 20_000]
        return [archive.read(members[index * len(members) // count]) for index in range(count)]


def paths_of(body: bytes, random: Random) -> list[str]:
    """Paths that rules of *body* match, or nearly."""
    values = [
        value.decode("ascii", "replace").replace("*", random.choice(("", "x/y"))).rstrip("$")
        for _, key, value in read_records(body, RFC9309)
        if key in (Field.ALLOW, Field.DISALLOW) and value.isascii()
    ]
    chosen = random.sample(values, min(len(values), 12))
    return [f"/{value.lstrip('/')}{random.choice(('', 'z'))}" for value in chosen] + ["/", "/zz"]


def check_pairs(count: int) -> None:
    matcher = pytest.importorskip("jwm.robotstxt.googlebot").RobotsMatcher
    random = Random(23)
    bodies = some_bodies(2 * count)
    flipped = 0
    for old, new in zip(bodies[::2], bodies[1::2], strict=True):
        urls = [SITE + path for path in paths_of(old, random) + paths_of(new, random)]
        urls = [url for url in dict.fromkeys(urls) if " " not in url]
        agent = random.choice(("ExampleBot", "GPTBot", "Googlebot", "bingbot"))
        ours = {
            flip.url: flip.allowed
            for flip in flips(
                RobotsTxt.parse(old, GOOGLE), RobotsTxt.parse(new, GOOGLE), urls, agent
            )
        }
        # Google's matcher reads both files again for each URL.
        theirs = {}
        for url in urls:
            before, after = (
                matcher().OneAgentAllowedByRobots(body, agent.encode(), url.encode())
                for body in (old, new)
            )
            if before != after:
                theirs[url] = after
        assert ours == theirs
        flipped += len(ours)
        check_agents(RobotsTxt.parse(old), RobotsTxt.parse(new), urls)
    assert flipped > count


def check_agents(old: RobotsTxt, new: RobotsTxt, urls: list[str]) -> None:
    """Of an agent that is not told of, no URL flips, and of others those that are named do."""
    found = changes(old, new)
    told = {name for change in found.agents for name in change.names}
    for name in ("gptbot", "ahrefsbot", "ccbot", "*"):
        asked = () if name == "*" else (name,)
        if name not in told and not ("*" in told and name != "*"):
            assert not list(flips(old, new, urls, asked))
    for change in found.agents:
        asked = () if change.names[0] == "*" else (change.names[-1],)
        for path in (*change.gained, *change.lost):
            assert new.allowed(path, asked) is (path in change.gained)
            assert new.allowed(path, asked) is not old.allowed(path, asked)


def test_flips_of_some_pairs_are_those_of_googles_matcher() -> None:
    check_pairs(20)


@pytest.mark.once
def test_flips_of_two_hundred_pairs_are_those_of_googles_matcher() -> None:
    check_pairs(200)
