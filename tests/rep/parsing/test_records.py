"""Records that are not rules: their values, and the user-agent lines that they belong to."""

from __future__ import annotations

import re

import http_sf
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from scrapy_rep.rep.parsing.agents import AgentLine
from scrapy_rep.rep.parsing.lines import Field
from scrapy_rep.rep.parsing.records import (
    OTHER_FIELDS,
    CleanParam,
    ContentUse,
    OtherRecord,
    RequestRate,
    TimeWindow,
    UsagePreferences,
    read_other_records,
    read_usage,
)


def read(line: bytes, dialect: Dialect = RFC9309) -> OtherRecord:
    (record,) = read_other_records(b"User-agent: x\n" + line, dialect)
    return record


def use(
    *purposes: tuple[str, bool], path: str | None = None, shown: ContentUse | None = None
) -> UsagePreferences:
    return UsagePreferences(purposes, path, shown)


NO_TRAINING = ("train-ai", False)


@pytest.mark.clause("RFC 9309 2.2-5", "RFC 9309 2.2.4-1")
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Sitemap: https://example.com/s.xml", "https://example.com/s.xml"),
        ("Sitemap: http://example.com/é", "http://example.com/é"),
        ("Crawl-delay: 10", 10.0),
        ("Crawl-delay: 2.5 # seconds", 2.5),
        ("Crawl-delay: .5", 0.5),
        ("Request-rate: 1/10s", RequestRate(1, 10.0)),
        ("Request-rate: 100/15m", RequestRate(100, 900.0)),
        ("Request-rate: 1/5", RequestRate(1, 5.0)),
        ("Request-rate: 2 / 1H", RequestRate(2, 3600.0)),
        ("Request-rate: 1/1d", RequestRate(1, 86400.0)),
        ("Request-rate: 1/10m 1300-1659", RequestRate(1, 600.0, TimeWindow(780, 1019))),
        ("Visit-time: 0600-0845", TimeWindow(360, 525)),
        ("Visit-time: 0100 - 0800", TimeWindow(60, 480)),
        ("Visit-time: 2200-0500", TimeWindow(1320, 300)),
        ("Visit-time: 0000-2400", TimeWindow(0, 1439)),
        ("Host: www.example.com", "www.example.com"),
        ("Host: https://example.com:8080/", "https://example.com:8080/"),
        ("Host: HTTPS://example.com", "HTTPS://example.com"),
        ("Clean-param: ref", CleanParam(("ref",))),
        ("Clean-param: p&z&u */index.html", CleanParam(("p", "z", "u"), "*/index.html")),
        ("Noindex: /a*b$", "/a*b$"),
        ("Noindex: *é", "*%C3%A9"),
        ("Noindex: /!a b\x7f~", "/!a%20b%7F~"),
        ("Content-Signal: search=yes, ai-train=no", use(("search", True), ("ai-train", False))),
        ("Content-signal: AI-Train = NO", use(("ai-train", False))),
        (
            "Content-signal: search=yes,use=reference",
            use(("search", True), shown=ContentUse.REFERENCE),
        ),
        ("Content-Signal: use=reference", use(shown=ContentUse.REFERENCE)),
        (
            "Content-Signal: /a search=yes, USE = Full",
            use(("search", True), path="/a", shown=ContentUse.FULL),
        ),
        ("Content-Signal: use=full,use=immediate", use(shown=ContentUse.IMMEDIATE)),
        ("Content-Signal: /blog/ ai-train=no", use(("ai-train", False), path="/blog/")),
        ("Content-Usage: train-ai=n", use(NO_TRAINING)),
        ("Content-Usage: train-ai=n , search=y", use(NO_TRAINING, ("search", True))),
        ("Content-Usage: /ai-ok/\ttrain-ai=y", use(("train-ai", True), path="/ai-ok/")),
        ("Content-Usage: train-ai;allow=n, train-ai=n", use(NO_TRAINING)),
        ('Content-Usage: train-ai=n;a="\\"";b=?1;c', use(NO_TRAINING)),
        ("License: https://example.com/license.xml", "https://example.com/license.xml"),
    ],
)
def test_a_value_in_the_type_of_its_field(line: str, value: object) -> None:
    record = read(line.encode())
    assert (record.value, record.problem) == (value, "")


@pytest.mark.clause("Google sitemap-3", "RFC 9309 2.2.4-2")
@pytest.mark.parametrize(
    "line",
    [
        "Sitemap:",
        *(f"Crawl-delay: {value}" for value in ("", "10s", "1,5", "-1", "nan", "1e3", "٣")),
        *(
            f"Request-rate: {value}"
            for value in ("", "10", "1/10w", "1/", "/5", "0/5", "1/0", "1/5 13-14", "1/1 2500-2600")
        ),
        *(
            f"Visit-time: {value}"
            for value in ("", "6-8", "0600", "0660-0800", "2400-0100", "0100-2401", "0100-0100")
        ),
        *(f"Host: {value}" for value in ("", "a b", "ftp://example.com", "example.com/path")),
        *(f"Clean-param: {value}" for value in ("", "a&", "&", "a /b /c")),
        *(f"Noindex: {value}" for value in ("", "a")),
        *(
            f"Content-Signal: {value}"
            for value in ("", "/a", "search", "=yes", "search=maybe", "use", "use=all", "use=no")
        ),
        "License: none (public domain)",
        "License: /license.xml",
        "License: ftp://example.com/",
    ],
)
def test_a_malformed_value_is_kept_as_it_is_with_what_is_wrong(line: str) -> None:
    record = read(line.encode())
    assert record.raw == line.encode().partition(b":")[2].strip()
    assert record.value is None
    # A sentence.
    assert re.fullmatch(r"[A-Z][a-z]* .*\.", record.problem)
    # Longer ones are cut where they are shown.
    assert len(record.problem) < 200


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            b"Request-rate: 10",
            "Not a number of requests and a time, such as 1/10s, 100/15m or 1/5. A time of the "
            "day in UTC may follow, such as 1300-1659.",
        ),
        (
            b"Content-Signal: search",
            "A part is neither a purpose with yes or no, such as ai-train=no, nor use=immediate, "
            "use=reference or use=full.",
        ),
    ],
    ids=["request-rate", "content-signal"],
)
def test_what_is_wrong_is_told_with_examples_as_a_file_has_them(line: bytes, problem: str) -> None:
    assert read(line).problem == problem


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Sitemap: /relative", "/relative"),
        ("Sitemap: ftp://example.com/s", "ftp://example.com/s"),
        ("Sitemap: https://[", "https://["),
        ("Content-Signal: search=yes, ai-train=maybe", use(("search", True))),
        ("Content-Signal: search=yes,", use(("search", True))),
        ("Content-Usage: search=y, train-ai=no", use(("search", True))),
        ('Content-Usage: train-ai=y, train-ai, search=n, search="n", bots=y', use(("bots", True))),
        ("Content-Signal: search=no=yes, ai-train=no", use(("ai-train", False))),
        ("Content-Signal: search=no, use=all", use(("search", False))),
        ("Content-Signal: search=maybe, use=full", use(shown=ContentUse.FULL)),
    ],
)
def test_what_can_be_used_of_a_malformed_value_is(line: str, value: object) -> None:
    record = read(line.encode())
    assert record.value == value
    assert re.fullmatch(r"[A-Z][a-z]* .*\.", record.problem)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"Sitemap: https://example.com/\xff", "https://example.com/\ufffd"),
        (b"License: https://example.com/\xff", "https://example.com/\\xff"),
        (b"Noindex: /\xff", "/%FF"),
    ],
)
def test_bytes_that_are_not_utf8_do_not_raise(line: bytes, value: str) -> None:
    assert read(line).value == value


# draft-ietf-aipref-vocab, "Processing Algorithm": "Otherwise, the preference for that category is
# unknown"; "If the parsing of the Dictionary fails, preferences are unknown."
@pytest.mark.parametrize(
    "value",
    [
        *("", "Train-AI=n", "train-ai = n", "train-ai=n,", "train-ai=n x", "train-ai"),
        # RFC 9651: a list, a number, a date … are no y and no n.
        *('train-ai=(n "y";a 1)', "train-ai=()", "train-ai=1", "train-ai=-1.5", "train-ai=@1"),
        *("train-ai=:eQ==:", "train-ai=?1", 'train-ai=%"n"', "train-ai=nn"),
    ],
)
@pytest.mark.parametrize("path", [None, "/a"])
def test_preferences_that_are_unknown_are_those_of_their_path(value: str, path: str | None) -> None:
    record = read(f"Content-Usage: {path} {value}".replace("None ", "").encode())
    assert record.value == use(path=path)
    assert re.fullmatch(r"[A-Z][a-z]* .*\.", record.problem)
    assert len(record.problem) < 200


def test_a_path_alone_says_neither_yes_nor_no() -> None:
    assert "neither y nor n" in read(b"Content-Usage: /a").problem


def test_a_record_as_text() -> None:
    assert str(read(b"HOST:  a\x1b[2J")) == "HOST: a\\x1b[2J"
    assert str(read(b"Host:")) == "Host:"


def test_an_unknown_field_has_no_value_but_its_key_and_bytes() -> None:
    record = read(b"X-\xff : a\xfe # c")
    assert (record.field, record.key, record.raw) == (Field.UNKNOWN, b"X-\xff", b"a\xfe")
    assert (record.value, record.problem, record.line) == (None, "", 2)


@pytest.mark.parametrize(
    ("line", "key"),
    [(b"CRAWL-Delay:1", b"CRAWL-Delay"), (b"Site-Map: /", b"Site-Map"), (b"Sitemap /", b"Sitemap")],
)
def test_the_key_is_kept_as_written(line: bytes, key: bytes) -> None:
    assert read(line).key == key


def test_allow_is_an_unknown_field_where_there_are_no_allow_lines() -> None:
    body = b"User-agent: a\nAllow: /\nUser-agent: b\nCrawl-delay: 1\n"
    allow, delay = read_other_records(body, KOSTER1994)
    assert (allow.field, allow.key, allow.raw) == (Field.UNKNOWN, b"Allow", b"/")
    assert delay.agents == (AgentLine("b", 3),)


@pytest.mark.clause("RFC 9309 2.2.4-d2")
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_records_are_about_the_user_agent_lines_directly_above_them(dialect: Dialect) -> None:
    body = (
        b"Host: 1\nUser-agent: a\nHost: 3\nUser-agent: b\nHost: 5\nDisallow: /\nHost: 7\n"
        b"User-agent: c\nHost: 9\n\nHost: 11\n"
    )
    a, b, c = AgentLine("a", 2), AgentLine("b", 4), AgentLine("c", 8)
    last = () if dialect.blank_ends_group else (c,)
    records = list(read_other_records(body, dialect))
    assert [record.agents for record in records] == [(), (a,), (b,), (b,), (c,), last]
    lines = [record.lines_of_agents for record in records]
    assert lines[:5] == [range(0), range(2, 3), range(4, 5), range(4, 5), range(8, 9)]
    groups = [record.lines_of_group for record in records]
    assert groups[:5] == [range(0), range(2, 3), range(2, 5), range(2, 5), range(8, 9)]


def test_user_agent_lines_below_rules_are_of_one_group() -> None:
    body = b"User-agent: a\nDisallow: /\nUser-agent: b\nUser-agent: c\nHost: d\n"
    (record,) = read_other_records(body, RFC9309)
    assert record.agents == (AgentLine("b", 3), AgentLine("c", 4))


@pytest.mark.parametrize("between", ["", "# comment\n", "\n", "nonsense\n"], ids=repr)
def test_lines_without_a_key_part_no_user_agent_lines(between: str) -> None:
    body = f"User-agent: a\n{between}User-agent: b\n{between}Host: c\nNoindex: /\n"
    for record in read_other_records(body.encode(), RFC9309):
        assert [name.name for name in record.agents] == ["a", "b"]


@pytest.mark.parametrize("dialect", [KOSTER1996, KOSTER1994], ids=lambda dialect: dialect.name)
def test_a_blank_line_parts_user_agent_lines_where_it_ends_a_group(dialect: Dialect) -> None:
    body = b"User-agent: a\n\nUser-agent: b\nHost: c\n"
    (record,) = read_other_records(body, dialect)
    assert record.agents == (AgentLine("b", 3),)
    assert record.lines_of_agents == record.lines_of_group == range(3, 4)


@pytest.mark.parametrize(
    ("ours", "names"),
    [
        (["a"], ["a"]),
        (["b", "c"], ["b", "c"]),
        (["c"], ["c"]),
        # Only by the group, if none is directly above.
        (["a", "b"], ["b"]),
        (["d"], []),
        ([], []),
    ],
)
def test_through_which_of_our_names_a_record_is_about_us(ours: list[str], names: list[str]) -> None:
    body = b"User-agent: a\nx: y\nUser-agent: b\nUser-agent: c\nHost: h\nUser-agent: d\n"
    record = list(read_other_records(body, RFC9309))[-1]
    lines = {"a": 1, "b": 3, "c": 4, "d": 6}
    about_us = record.names_among([AgentLine(name, lines[name]) for name in ours])
    assert [name.name for name in about_us] == names


def test_only_the_requested_fields() -> None:
    body = b"Host: a\nSitemap: b\nx: c\n"
    fields = [record.field for record in read_other_records(body, RFC9309, {Field.SITEMAP})]
    assert fields == [Field.SITEMAP]


@pytest.mark.once
def test_many_records_below_many_user_agent_lines_take_no_memory_for_each_pair() -> None:
    records = list(read_other_records(b"User-agent:a\nx:\n" * 30_000, GOOGLE))
    assert len(records) == 30_000
    assert records[-1].lines_of_group == range(1, 60_000)


# -- times of the day ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        (TimeWindow(360, 525), [360, 525, 525.9], [0, 359.9, 526, 1439]),
        (TimeWindow(1320, 300), [1320, 1439.5, 0, 300], [301, 1319]),
        (TimeWindow(0, 1439), [0, 720, 1439.9], []),
        (TimeWindow(60, 59), [0, 59.5, 60, 1439], []),
    ],
)
def test_a_window_contains_its_ends(
    window: TimeWindow, inside: list[float], outside: list[float]
) -> None:
    assert all(map(window.contains, inside))
    assert not any(map(window.contains, outside))


@pytest.mark.parametrize(
    ("second", "wait"),
    [
        (6 * 3600, 0),
        (8 * 3600, 0),
        (5 * 3600, 3600),
        (86_399, 6 * 3600 + 1),
        (8 * 3600 + 60, 79140),
    ],
)
def test_how_long_until_a_window_opens(second: float, wait: float) -> None:
    assert TimeWindow(360, 480).seconds_until_open(second) == wait


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 86_399))
def test_after_that_wait_it_is_open(start: int, end: int, second: int) -> None:
    window = TimeWindow(start, end)
    wait = window.seconds_until_open(second)
    assert 0 <= wait < 86_400
    assert window.contains((second + wait) % 86_400 / 60)
    assert (wait == 0) is window.contains(second / 60)


def test_a_window_is_shown_in_hours() -> None:
    assert str(TimeWindow(1320, 65)) == "22:00-01:05 UTC"


def test_the_delay_of_a_rate() -> None:
    assert RequestRate(100, 900.0).delay == 9.0


# -- whatever comes --------------------------------------------------------------------

_VALUES = st.lists(
    st.sampled_from(
        b"""1 0600-0845 / s = y yes , ; " ( ) search & https:// [ ? @ : % \\ . - *""".split()
    )
    | st.sampled_from([b" "])
    | st.binary(max_size=3)
).map(b"".join)


@pytest.mark.once
@given(
    field=st.sampled_from(sorted(OTHER_FIELDS, key=lambda field: field.value)),
    value=_VALUES,
    dialect=st.sampled_from([RFC9309, GOOGLE, KOSTER1996, KOSTER1994]),
)
@settings(max_examples=2000)
def test_no_value_raises(field: Field, value: bytes, dialect: Dialect) -> None:
    body = field.value.encode() + b": " + value
    for record in read_other_records(body, dialect):
        assert record.value is not None or record.problem or record.field is Field.UNKNOWN
        assert record.problem.isprintable()


@given(st.text(alphabet='abnyt-=,;"?10 (). :@%\\', max_size=30).map(str.strip))
@example('train-ai=n;a="b,c", search=y')
@example("a=1.5, b=?1, c=:YWE=:, d=@1")
def test_a_dictionary_is_read_as_another_parser_does(value: str) -> None:
    try:
        members = http_sf.parse(value.encode(), tltype="dictionary")
    except http_sf.StructuredFieldError:
        assert read_usage(value.encode()) is None
        return
    assert isinstance(members, dict)
    tokens = {label: isinstance(member, tuple) and member[0] for label, member in members.items()}
    assert read_usage(value.encode()) == {
        label: {"y": True, "n": False}.get(str(token)) if isinstance(token, http_sf.Token) else None
        for label, token in tokens.items()
    }
