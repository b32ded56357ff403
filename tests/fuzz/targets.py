"""What a fuzzer calls: each target takes any bytes, and raises where something is wrong.

No target knows a fuzzer: whatever finds bytes, here is what must be so of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from scrapy_rep.pages.headers import header_statements
from scrapy_rep.pages.html import meta_statements, meta_tags
from scrapy_rep.pages.statements import evaluate as evaluate_page
from scrapy_rep.pages.tdmrep import TdmFile
from scrapy_rep.rep.caching.access import FetchResult, access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.caching.freshness import (
    KEPT_HEADERS,
    LONGEST_RETRY_AFTER,
    Bounds,
    evaluate,
    lifetime,
    retry_at,
    update,
    validators,
)
from scrapy_rep.rep.dialects import DIALECTS, Dialect, Naming
from scrapy_rep.rep.parsing.agents import (
    EVERYONE,
    check_token,
    group_name,
    names_among,
    preferences,
    token_of_user_agent,
)
from scrapy_rep.rep.parsing.groups import groups_about
from scrapy_rep.rep.parsing.lines import Field, split_lines
from scrapy_rep.rep.parsing.urls import Origin, path_to_match
from scrapy_rep.rep.rules.differences import Differences
from scrapy_rep.rep.rules.explain import explain
from scrapy_rep.rep.rules.matching import Rule
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.rep.rules.verdict import Reason
from scrapy_rep.stores.base import UnreadableValue, decode, encode
from tests.rep.generated_files import SEED_SIZE, generated
from tests.rep.rules.plain_matcher import plain_decide

_ORIGIN = Origin("https", "example.com", 443)
# To try all rules one by one takes rules times pattern times path.
_MOST_STEPS = 200_000
_BOUNDS = (Bounds(), Bounds(min_age=0.0, max_age=60.0, grace=0.0))
_TOKENS = ("examplebot",)
# Magic and version of a kept value.
_MAGIC = b"rep1"


@dataclass(frozen=True)
class Target:
    """*check* takes any bytes; *seeds* are some to begin with, *words* are found in many."""

    check: Callable[[bytes], None]
    seeds: Sequence[bytes]
    words: Sequence[bytes] = ()
    #: Bytes of an input at most.
    longest: int = 4096


# -- robots.txt ---------------------------------------------------------------------


def robots_txt(dialect: Dialect, data: bytes) -> None:
    """A line of agents, a line with a URL, and a robots.txt."""
    agents, _, rest = data.partition(b"\n")
    url, _, body = rest.partition(b"\n")
    check_file(dialect, body, url, agents.decode("latin-1").split(","))


def made_robots_txt(dialect: Dialect, data: bytes) -> None:
    """A file that looks like one, whatever the bytes: they say what is in it."""
    made = generated(data)
    for url in made.urls:
        check_file(dialect, made.body, url, made.agents)


def check_file(dialect: Dialect, body: bytes, url: bytes, agents: Sequence[str]) -> None:
    """All answers that *body* gives agree, and none raises."""
    robots = RobotsTxt.parse(body, dialect)
    verdict = robots.verdict(url, agents)
    assert str(verdict).isprintable()
    explanation = explain(robots, url, agents)
    assert explanation.verdict == verdict
    winner = explanation.winner
    assert winner is None or winner.rule == verdict.rule
    robots.union_verdict(url, agents)
    for allowed in (True, False):
        Differences(body, dialect).of_answer(url.decode("latin-1"), agents, allowed)
    _check_answers(robots, url, agents, verdict.allowed)
    _check_answers(RobotsTxt.parse(body, dialect), url, agents, verdict.allowed)
    if verdict.reason in (Reason.RULE, Reason.NO_RULE, Reason.NO_GROUP):
        _check_winner(robots, path_to_match(url, dialect), agents, verdict.line)
    _check_rest(robots, agents)


def _check_answers(robots: RobotsTxt, url: bytes, agents: Sequence[str], allowed: bool) -> None:
    """Whatever was asked before, and whether as bytes or as text, it is *allowed* or not."""
    spellings: list[bytes | str] = [url]
    with suppress(UnicodeDecodeError):
        spellings.append(url.decode())
    # What is asked twice, an index answers.
    for spelling in spellings * 3:
        assert robots.allowed(spelling, agents) is allowed, spelling
        assert robots.verdict(spelling, agents).allowed is allowed, spelling


def _check_winner(robots: RobotsTxt, path: str, agents: Sequence[str], line: int) -> None:
    """The rule at *line* is the one that trying all of them finds; 0 if none is."""
    dialect = robots.dialect
    _, groups = groups_about(robots.body, dialect, preferences(agents))
    rules = [
        Rule(field is Field.ALLOW, value, number)
        for group in groups
        for number, field, value in group.rules
    ]
    if sum(len(rule.value) + 1 for rule in rules) * len(path) <= _MOST_STEPS:
        expected = plain_decide(rules, path, dialect)
        assert line == (expected.line if expected else 0), (dialect.name, expected)


def _check_rest(robots: RobotsTxt, agents: Sequence[str]) -> None:
    found = {finding.line for finding in robots.findings}
    lines = len(split_lines(robots.body, robots.dialect))
    # The line that is cut off, or that there is none beside a mark, is told of, too.
    assert set(range(1, lines + 1)) <= found <= set(range(1, lines + 2)), (lines, found)
    assert set(robots.records_for(agents)) <= set(robots.records)
    for record in robots.records:
        assert record.line <= lines
    delay, rate = robots.crawl_delay(agents), robots.request_rate(agents)
    assert delay is None or 0 <= delay < float("inf")
    assert rate is None or 0 < rate.delay < float("inf")
    assert len(set(robots.sitemaps)) == len(robots.sitemaps)
    for window in robots.visit_times(agents):
        window.contains(0)


# -- User-Agent ---------------------------------------------------------------------


def user_agent(data: bytes) -> None:
    """A User-Agent header, and the same bytes in a user-agent line."""
    for header in (data.decode("latin-1"), data.decode("utf-8", "replace")):
        token = token_of_user_agent(header)
        if token is not None:
            assert check_token(token) == token
            assert token in header
            assert token.lower() != "mozilla"
    agents = data.decode("latin-1").split(",")
    ours = preferences(agents)
    assert ours == preferences(ours)
    assert EVERYONE not in ours
    for dialect in DIALECTS.values():
        _check_name(data, ours, dialect)


def _check_name(value: bytes, ours: tuple[str, ...], dialect: Dialect) -> None:
    name = group_name(value, dialect)
    names_among(name, ours, dialect)
    if dialect.naming is Naming.TOKEN and name not in ("", EVERYONE):
        assert check_token(name) == name
        assert value.startswith(name.encode())
        assert names_among(name, preferences(name), dialect)


# -- headers ------------------------------------------------------------------------


class _Times(NamedTuple):
    fetched: float
    confirmed: float
    now: float


def headers(data: bytes) -> None:
    """Three times, a status, and headers that HTTP caching is about, one in a line."""
    times = _Times(*(_time(data[start : start + 4]) for start in (0, 4, 8)))
    status = int.from_bytes(data[12:14], "big") % 600
    fields = [line.partition(":") for line in data[14:].decode("latin-1").split("\n")]
    kept = tuple([(name, value) for name, _, value in fields if name in KEPT_HEADERS])
    for result in (
        FetchResult("https://example.com/robots.txt", status, headers=kept),
        FetchResult("https://example.com/robots.txt", 200, headers=kept),
    ):
        stored = StoredResponse(result, times.fetched, times.confirmed)
        outage = Outage(result, times.fetched, times.confirmed, attempts=1 + status)
        for known in (CacheEntry(_ORIGIN, stored), CacheEntry(_ORIGIN, stored, outage)):
            _check_facts(known, times.now)


def _time(data: bytes) -> float:
    """Any time that a store may hold, to the minute."""
    return min(60.0 * int.from_bytes(data, "big"), 253_402_300_799.0)


def _check_facts(known: CacheEntry, now: float) -> None:
    """Whatever is *known*, it can be judged at the time *now*, and ends."""
    for name, value in validators(known):
        assert not set(name + value) & set("\r\n\0")
    for dialect in DIALECTS.values():
        for bounds in _BOUNDS:
            _check_judgement(known, dialect, bounds, now)


def _check_judgement(known: CacheEntry, dialect: Dialect, bounds: Bounds, now: float) -> None:
    evaluation = evaluate(known, dialect, None, bounds, now)
    if evaluation.access is None:
        assert evaluation.until == now
        assert evaluation.due
    else:
        assert evaluation.until > now
    if known.stored is not None:
        assert lifetime(known.stored, dialect, bounds) > 0
        for answer in (known.stored.result, FetchResult(known.stored.result.url, 304)):
            access = access_result(answer, dialect)
            learnt = update(known, known.origin, answer, access, now, conditional=True)
            evaluate(learnt, dialect, None, bounds, now)
    if known.outage is not None:
        last = known.outage.last_at
        longest = max(bounds.retry_max_delay, LONGEST_RETRY_AFTER)
        assert last < retry_at(known.outage, bounds) <= last + longest


# -- page rules ---------------------------------------------------------------------

_PAGE_HEADERS = ("Robots-Tag", "X-Robots-Tag", "Content-Usage", "tdm-reservation", "tdm-policy")


def page_rules(data: bytes) -> None:
    """A line for each header, a tdmrep.json in a line, and a page. Nothing raises."""
    *values, file, page = (data.split(b"\n", 6) + [b""] * 7)[:7]
    by_name = dict(zip(_PAGE_HEADERS, values, strict=True))

    def lines(name: str) -> list[bytes]:
        return [by_name[name]]

    tags = meta_tags(page, _TOKENS)
    stated = [
        *header_statements(lines, _TOKENS),
        *meta_statements(tags, _TOKENS),
        *TdmFile.parse(file).stated(_ORIGIN.robots_url),
    ]
    rules = evaluate_page(stated, 0.0)
    statements = rules.statements
    for text in (*map(str, rules.verdicts.values()), *map(str, statements)):
        assert text.isprintable()
    # A statement more, of any source that cannot lift a reservation, permits nothing more.
    fewer = [each for each in statements if not each.is_tdm][:-1]
    more = [each for each in statements if not each.is_tdm]
    refused = set(evaluate_page(fewer, 0.0).refused)
    assert refused <= set(evaluate_page(more, 0.0).refused)


# -- stores -------------------------------------------------------------------------


def kept_value(data: bytes) -> None:
    """What a store holds: first as it is, then as the content of a value that is whole."""
    for value in (data, _MAGIC + zlib.compress(data, 0)):
        try:
            known = decode(_ORIGIN, value)
        except UnreadableValue:
            continue
        assert known.origin == _ORIGIN
        assert decode(_ORIGIN, encode(known)) == known
        _check_facts(known, 1_800_000_000.0)


# -- all of them --------------------------------------------------------------------

_FILE = b"""\
User-agent: a
User-agent: *
Disallow: /a*b$
Allow: /index.html
Disallow: /%7e\xe9?q=%2F # comment
Disallow: /%0A%0d%00
Crawl-delay: 1.5
Request-rate: 1/10s 0600-0845
Visit-time: 0600-0845
Sitemap: https://example.com/sitemap.xml

User-agent: b/1.0
Disallow:
Host: example.com
Clean-param: a&b /c
Content-Signal: search=yes, ai-train=no
Content-Usage: train-ai=n
"""
_ASKED = (
    b"a,b\nhttps://example.com/axb\n",
    b"\n/%0a%0d%00?\n",
    b"b\n/index.html?q=1#top\n",
    b"c,a\n//h:8\\a\n",
)
_MARKS = (b"", b"\xef\xbb\xbf", b"\xff\xfe")

_HEADERS = b"""\
cache-control: max-age=3600, no-cache="x,y", private
age: 7
date: Sun, 06 Nov 1994 08:49:37 GMT
expires: Sunday, 06-Nov-94 08:49:37 GMT
last-modified: Sun Nov  6 08:49:37 1994
etag: W/"x"
retry-after: 120"""

_FACTS = CacheEntry(
    _ORIGIN,
    StoredResponse(
        FetchResult(
            _ORIGIN.robots_url,
            200,
            _FILE,
            headers=(("etag", '"x"'), ("vary", "User-Agent")),
            via=((), (("age", "1"),)),
            user_agent="ExampleBot/1.0",
        ),
        fetched_at=1_700_000_000.0,
        confirmed_at=1_700_000_001.0,
    ),
    Outage(FetchResult(_ORIGIN.robots_url, 503, b"x"), 1_700_000_002.0, 1_700_000_003.0, 2),
)


def _of_files(dialect: Dialect) -> dict[str, Target]:
    """The targets that read a robots.txt as *dialect* says."""
    words = [line.split(b" ")[0] + b" " for line in _FILE.split(b"\n") if b":" in line]
    words += [b"\r\n", b"\n", b"*", b"$", b"%2F", b"%2A", b"%24", b"/./", b"/../", b"http://h"]
    words += [b"/robots.txt", b"index.htm", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]
    words += [b"%0A", b"%0D", b"%00", b"%09", b"?"]
    return {
        f"robots-txt-{dialect.name}": Target(
            partial(robots_txt, dialect),
            [asked + mark + _FILE for asked in _ASKED for mark in _MARKS],
            words,
        ),
        f"made-robots-txt-{dialect.name}": Target(
            partial(made_robots_txt, dialect),
            [bytes(range(0, 256, step)) for step in (1, 2, 3, 5)],
            longest=SEED_SIZE,
        ),
    }


_PAGE_RULES = (
    b"*;noindex, ExampleBot;nosnippet;max-snippet=0\n"
    b"noai, examplebot: nofollow, unavailable_after: Sat, 30 Aug 2008 15:00:00 GMT\n"
    b'train-ai=n, search=y;a="b"\n'
    b"1\nhttps://provider.com/policies/policy.json\n"
    b'[{"location": "/a*b$", "tdm-reservation": 1, "tdm-policy": "p"}]\n'
    b'<!DOCTYPE html><!-- c --><script>a</script><meta name="robots" content="none"><body>'
)

TARGETS = {
    name: target for dialect in DIALECTS.values() for name, target in _of_files(dialect).items()
} | {
    "user-agent": Target(
        user_agent,
        [
            b"ExampleBot/0.1 (+https://www.example.com/bot.html)",
            b"Mozilla/5.0 (X11; compatible; ExampleBot/0.1; +https://example.com)",
            b"a,b-c,*,,D_1",
            b"* all",
        ],
        [b"Mozilla", b"compatible", b";", b"(", b")", b"/", b"*"],
        longest=1024,
    ),
    "headers": Target(
        headers,
        [
            (b"\x01\xb1\x1a\x00" * 3) + status.to_bytes(2, "big") + _HEADERS
            for status in (200, 304, 404, 429, 503)
        ],
        [name.encode() + b":" for name in sorted(KEPT_HEADERS)]
        + [b"max-age=", b"no-cache", b"no-store", b"s-maxage=", b"Sun, 06 Nov 1994 08:49:37 GMT"],
        longest=1024,
    ),
    "page-rules": Target(
        page_rules,
        [_PAGE_RULES, _PAGE_RULES.replace(b"*", b"\xff"), b"\n" * 6 + b"\xff\xfe<\0b\0"],
        [
            *(b"unavailable_after:", b"examplebot", b"<meta name=", b"<body", b"<script", b"<!--"),
            *(b"tdm-reservation", b"robots", b"location", b'"', b";", b",", b":", b"@1", b"?0"),
        ],
    ),
    "kept-value": Target(
        kept_value,
        [encode(_FACTS), zlib.decompress(encode(_FACTS)[len(_MAGIC) :])],
        [_MAGIC, b"null", b"[", b"]", b"NaN", b"1e999", b'"NO_ANSWER"', b"\\ud800", b"true"],
    ),
}
