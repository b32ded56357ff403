"""What each line of a file was taken for, and what is wrong with it."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1994, KOSTER1996, RFC9309, Dialect
from scrapy_rep.rep.lint.findings import READINGS, Finding, FindingKind, Severity
from scrapy_rep.rep.parsing.groups import read_groups
from scrapy_rep.rep.parsing.lines import RULES, Field, read_records, split_lines
from scrapy_rep.rep.rules.robotstxt import RobotsTxt

ALL = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
EACH_DIALECT = st.sampled_from(list(DIALECTS.values()))
K = FindingKind


def kinds(body: str | bytes, dialect: Dialect = RFC9309) -> list[tuple[int, str]]:
    """Line and kind of the findings that are not in order."""
    data = body if isinstance(body, bytes) else body.encode()
    findings = RobotsTxt.parse(data, dialect).findings
    return [(f.line, f.kind.value) for f in findings if f.severity is not Severity.OK]


def sentences(body: str | bytes, kind: FindingKind, dialect: Dialect = RFC9309) -> list[str]:
    data = body if isinstance(body, bytes) else body.encode()
    return [f.sentence for f in RobotsTxt.parse(data, dialect).findings if f.kind is kind]


# -- what a line was taken for ---------------------------------------------------------


@ALL
def test_a_file_in_order(dialect: Dialect) -> None:
    body = (
        b"# all\nUser-agent: *\nDisallow: /a # why\nDisallow:\nCrawl-delay: 5\n\n \t\n"
        b"Sitemap: https://example.com/s.xml\n"
    )
    findings = RobotsTxt.parse(body, dialect).findings
    if dialect.blank_ends_group:
        assert kinds(body, dialect) == []
    assert [str(finding) for finding in findings] == [
        "line 1: ok: A comment.",
        "line 2: ok: A user-agent line for *.",
        'line 3: ok: The rule "Disallow: /a".',
        'line 4: ok: A "Disallow" without a value, which refuses no URL.',
        "line 5: ok: A Crawl-delay record, which is not a rule.",
        "line 6: ok: A blank line.",
        "line 7: ok: A blank line.",
        "line 8: ok: A Sitemap record, which is not a rule.",
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Dissallow: /y", {"rfc9309": ["typo"], "google": ["typo"], "koster": ["unknown-field"]}),
        ("Disallow /y", {"rfc9309": ["missing-colon"], "koster": ["no-field"]}),
        ("Disallowed: /y", {"rfc9309": ["unknown-field"], "google": ["key-by-start"]}),
        ("Disallowed: /y", {"koster": ["unknown-field"]}),
        ("Allow: /", {"rfc9309": [], "koster1996": [], "koster1994": ["unknown-field"]}),
        ("X-Robots: /", {"rfc9309": ["unknown-field"]}),
        ("<html>", {"rfc9309": ["no-field"], "google": ["no-field"], "koster": ["no-field"]}),
        ("two words", {"rfc9309": ["no-field"], "google": ["no-field"], "koster": ["no-field"]}),
        (": /", {"rfc9309": ["no-field"]}),
        ("Disallow: a", {"rfc9309": ["never-matches"], "google": ["never-matches"]}),
        ("Disallow: http://example.com/a", {"rfc9309": ["never-matches"]}),
        ("Disallow: $", {"rfc9309": ["never-matches"], "google": ["never-matches"]}),
        ("Disallow: %2Fa", {"rfc9309": ["never-matches"], "koster1996": ["never-matches"]}),
        ("Disallow: *a", {"rfc9309": [], "google": [], "koster": ["never-matches"]}),
        ("Disallow: /a/../b", {"rfc9309": ["never-matches"], "google": []}),
        ("Disallow: /a/%2e/b", {"rfc9309": ["never-matches"], "koster1996": ["never-matches"]}),
        ("Disallow: /a?b=/../", {"rfc9309": []}),
        ("Disallow: /a*/../", {"rfc9309": []}),
        ("Disallow: /a$b", {"rfc9309": ["literal-dollar"], "google": ["literal-dollar"]}),
        ("Disallow: /a$b", {"koster": []}),
        ("Disallow: /a$", {"rfc9309": []}),
        ("Disallow: /y\0", {"rfc9309": ["control-character"], "google": ["nul-ends-line"]}),
        ("Disallow: /y\x1b", {"rfc9309": ["control-character"], "google": ["control-character"]}),
        ("Disallow: /y\t", {"rfc9309": []}),
        ("Disallow: /a # \0\x1b", {"rfc9309": [], "google": []}),
        ("Disallow: /" + "a" * 16_652, {"rfc9309": [], "google": []}),
        ("Disallow: /" + "a" * 16_653, {"rfc9309": [], "google": ["line-too-long"]}),
        ("Crawl-delay: x", {"rfc9309": ["malformed"], "koster": ["malformed"]}),
        ("Noindex: /", {"rfc9309": ["no-longer-used"]}),
    ],
)
def test_what_is_said_of_a_line_in_a_group(line: str, found: dict[str, list[str]]) -> None:
    body = f"User-agent: x\nDisallow: /x\n{line}\n"
    for name, dialect in DIALECTS.items():
        expected = found.get(name, found.get(name[:6]))
        if expected is not None:
            assert kinds(body, dialect) == [(3, kind) for kind in expected], name


@pytest.mark.parametrize(
    ("line", "kind", "sentence"),
    [
        ("X\x1bY: /", K.UNKNOWN_FIELD, 'The field "X\\x1bY" is unknown. The line is ignored.'),
        (
            "DISSALLOW: /",
            K.TYPO,
            'The misspelling "DISSALLOW" is read as Disallow. Other crawlers may ignore the line.',
        ),
        (
            "Allowed: /",
            K.KEY_BY_START,
            '"Allowed" is read as Allow, because it starts with that name. Other crawlers ignore '
            "the line.",
        ),
        (
            "Disallow: /" + "a" * 16_660,
            K.LINE_TOO_LONG,
            "The line has 16671 bytes. Only the first 16663 are read.",
        ),
        (
            "User-agent: y2k",
            K.CUT_NAME,
            'Only "y" is read: a name consists of letters, digits, "-" and "_".',
        ),
        (
            "Visit-time: 0100-0100",
            K.MALFORMED,
            "Start and end are the same, which could mean never or always.",
        ),
    ],
    ids=lambda value: value.value if isinstance(value, FindingKind) else "",
)
def test_a_sentence_names_what_it_is_about(line: str, kind: FindingKind, sentence: str) -> None:
    assert sentences(f"User-agent: x\n{line}\nDisallow: /\n", kind, GOOGLE) == [sentence]


def test_each_line_is_looked_at() -> None:
    body = "User-agent: x\nfoo: 1\n\nDissallow: /y\nbar: 2\nDisallow /x\n"
    expected = [(2, "unknown-field"), (4, "typo"), (5, "unknown-field"), (6, "missing-colon")]
    assert kinds(body) == expected


def test_bytes_that_are_not_utf8() -> None:
    body = b"User-agent: x\nDisallow: /caf\xe9\nDisallow: /a # caf\xe9\nDisallow: /caf\xc3\xa9\n"
    assert kinds(body) == [(2, "not-utf-8")]
    assert '/caf\\xe9"' in sentences(body, K.RULE)[0]


@pytest.mark.parametrize(
    ("mark", "encoding", "dialect", "kind"),
    [
        (codecs.BOM_UTF8, "utf-8", RFC9309, "byte-order-mark"),
        (codecs.BOM_UTF8[:1], "utf-8", RFC9309, "byte-order-mark"),
        (codecs.BOM_UTF8[:2], "utf-8", GOOGLE, "byte-order-mark"),
        (codecs.BOM_UTF16_LE, "utf-16-le", RFC9309, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", KOSTER1994, "utf-16"),
        (codecs.BOM_UTF16_LE, "utf-16-le", GOOGLE, "utf-16-unread"),
    ],
)
def test_byte_order_marks(mark: bytes, encoding: str, dialect: Dialect, kind: str) -> None:
    body = mark + "User-agent: x\nDisallow: /\n".encode(encoding)
    assert (1, kind) in kinds(body, dialect)
    if dialect is not GOOGLE:
        assert kinds(body, dialect) == [(1, kind)]


def test_a_mark_of_utf_16_before_other_text() -> None:
    assert kinds(codecs.BOM_UTF16_LE + b"User-agent: x\nDisallow: /\n") == [(1, "utf-16-unread")]


@pytest.mark.parametrize(
    ("body", "line"), [(b"User-agent: *\nDisallow: /\nDisallow: /a\n", 2), (b"x" * 40, 1)]
)
def test_a_file_over_the_size_limit(body: bytes, line: int) -> None:
    findings = RobotsTxt.parse(body, max_size=30).findings
    assert [f.line for f in findings if f.kind is K.TRUNCATED] == [line]


# -- groups --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "found"),
    [
        (RFC9309, [(3, "no-rules")]),
        (KOSTER1996, [(1, "no-rules"), (3, "no-rules")]),
    ],
    ids=["rfc9309", "koster1996"],
)
def test_a_group_without_rules(dialect: Dialect, found: list[tuple[int, str]]) -> None:
    body = "User-agent: x\n\nUser-agent: y\n"
    assert kinds(body, dialect)[-1:] == found[-1:]
    assert set(found) <= set(kinds(body, dialect))


def test_a_rule_in_no_group() -> None:
    assert kinds("Disallow: /\nUser-agent: x\nDisallow: /\n") == [(1, "outside-group")]
    body = "User-agent: x\n\nDisallow: /\n"
    assert kinds(body) == []
    assert kinds(body, KOSTER1996) == [(1, "no-rules"), (3, "outside-group")]


def test_a_record_in_no_group() -> None:
    body = (
        "Crawl-delay: 1\nSitemap: https://example.com/\nHost: example.com\nUser-agent: *\nAllow:\n"
    )
    assert kinds(body) == [(1, "record-outside-group")]
    # Of what nobody knows, nobody knows whether it is about somebody.
    assert kinds("foo: 1\nUser-agent: *\nAllow:\n") == [(1, "unknown-field")]


@pytest.mark.parametrize(
    ("value", "dialect", "found"),
    [
        ("", RFC9309, ["nameless-user-agent"]),
        ("", KOSTER1996, ["nameless-user-agent"]),
        ("/", RFC9309, ["nameless-user-agent"]),
        ("x/1.0", RFC9309, ["cut-name"]),
        ("x/1.0", KOSTER1996, []),
        ("MJ12bot", GOOGLE, ["cut-name"]),
        ("* all", RFC9309, []),
    ],
)
def test_what_a_user_agent_line_names(value: str, dialect: Dialect, found: list[str]) -> None:
    assert kinds(f"User-agent: {value}\nDisallow: /\n", dialect) == [(1, kind) for kind in found]


@ALL
def test_names_of_several_groups(dialect: Dialect) -> None:
    body = (
        "User-agent: *\nUser-agent: x\nUser-agent: X\nDisallow: /a\n\n"
        "User-agent: *\nDisallow: /b\n\nUser-agent: X\nDisallow: /c\n"
    )
    assert kinds(body, dialect) == [(6, "repeated-name"), (9, "repeated-name")]
    assert sentences(body, K.REPEATED_NAME, dialect) == [
        "Line 1 already starts a group for *. The rules are combined.",
        "Line 2 already starts a group for x. The rules are combined.",
    ]
    thrice = "".join(f"User-agent: x\nDisallow: /{number}\n\n" for number in range(3))
    assert [each[:6] for each in sentences(thrice, K.REPEATED_NAME, dialect)] == ["Line 1"] * 2
    nameless = "User-agent:\nDisallow: /a\n\nUser-agent:\nDisallow: /b\n"
    assert sentences(nameless, K.REPEATED_NAME, dialect) == []


@ALL
def test_a_record_that_ends_no_group(dialect: Dialect) -> None:
    body = (
        "User-agent: *\nCrawl-delay: 120\nHost: a\nUser-agent: bot\nUser-agent: c\nanything: x\n"
        "User-agent: d\nDisallow: /\n"
    )
    assert [line for line, kind in kinds(body, dialect) if kind == "merged-group"] == [2, 6]
    assert sentences(body, K.MERGED_GROUP, dialect)[0] == (
        "This line does not end the group. The rules below apply to * (line 1) and bot (line 4)."
    )


# -- rules without effect --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "dialect", "found"),
    [
        ("Disallow: /a|Disallow: /a", RFC9309, [(3, "duplicate", 2)]),
        ("Disallow: /~a|Disallow: /%7ea", RFC9309, [(3, "duplicate", 2)]),
        ("Disallow: /~a|Disallow: /%7ea", GOOGLE, []),
        ("Disallow: /a|Allow: /a", RFC9309, [(2, "shadowed", 3)]),
        ("Disallow: /a|Allow: /a", KOSTER1996, [(3, "shadowed", 2)]),
        ("Allow: /a|Disallow: /a*", RFC9309, [(2, "shadowed", 3)]),
        ("Disallow: /a|Disallow: /a*$", RFC9309, [(2, "redundant", 3)]),
        ("Disallow: /|Disallow: *", RFC9309, [(3, "redundant", 2)]),
        ("Disallow: /a$|Disallow: /a", RFC9309, [(2, "redundant", 3)]),
        ("Disallow: /|Allow: /a", KOSTER1996, [(3, "shadowed", 2)]),
        ("Disallow: /|Allow: /a", RFC9309, []),
        ("Disallow: /a*****|Allow: /ab", RFC9309, [(3, "shadowed", 2)]),
        ("Disallow: /a|Disallow: /a/b", RFC9309, [(3, "redundant", 2)]),
        ("Disallow: /a|Disallow: /a*b", RFC9309, [(3, "redundant", 2)]),
        ("Disallow: /a|Disallow: /ab|Allow: /xyz*", RFC9309, [(3, "redundant", 2)]),
        ("Disallow: /a|Disallow: /abc|Allow: /x*", RFC9309, []),
        ("Disallow: /a|Disallow: /a/b", KOSTER1994, [(3, "redundant", 2)]),
        ("Disallow: /a/b|Disallow: /a", KOSTER1994, []),
        ("Disallow: /a|Disallow: /a****|Disallow: /ab", RFC9309, [(2, "redundant", 3)]),
        ("Disallow: /a|Allow: /a/index.html|Allow: /a", RFC9309, [(2, "shadowed", 4)]),
        ("Allow: /|Allow: /index.html|Disallow: /x", RFC9309, []),
        ("Allow: /index.html|Allow: /index.html*|Disallow: /x", RFC9309, []),
        ("Allow: /a/index.html|Disallow: /|Disallow: /a/bc", RFC9309, []),
        ("Disallow:|Disallow:", GOOGLE, []),
        ("Disallow: a|Disallow: a", RFC9309, [(2, "never-matches"), (3, "never-matches")]),
        ("Disallow: /*X|Disallow: /ab", RFC9309, []),
        # Where the longest match decides: of rules of one type, with none of the other between.
        ("Disallow: /|Allow: /a|Allow: /a/b", RFC9309, [(4, "redundant", 3)]),
        ("Disallow: /|Allow: /a|Allow: /a/b|Disallow: /xy", RFC9309, []),
        # "/x/index.html" allows "/x/$", which is as long as "/x/y".
        ("Disallow: /x/|Disallow: /x/y|Allow: /x/index.html", RFC9309, []),
        # Where the first match decides: of several above, the first.
        (
            "Disallow: /|Allow: /a|Disallow: /a/b|Allow: /a/b/c",
            KOSTER1996,
            [(3, "shadowed", 2), (4, "redundant", 2), (5, "shadowed", 2)],
        ),
        (
            "Allow: /|Disallow: /a|Disallow: /a/b|Allow: /a/b/c",
            KOSTER1996,
            [(3, "shadowed", 2), (4, "shadowed", 2), (5, "redundant", 2)],
        ),
        (
            "Disallow: /|Disallow: /a|Disallow: /a/b",
            KOSTER1996,
            [(3, "redundant", 2), (4, "redundant", 2)],
        ),
        (
            "Allow: /|Allow: /a|Allow: /a/b",
            KOSTER1996,
            [(3, "redundant", 2), (4, "redundant", 2)],
        ),
    ],
)
def test_rules_without_effect(
    rules: str, dialect: Dialect, found: list[tuple[int | str, ...]]
) -> None:
    body = "User-agent: x\n" + rules.replace("|", "\n")
    findings = [f for f in RobotsTxt.parse(body.encode(), dialect).findings if f.kind in USELESS]
    assert [(f.line, f.kind.value, *f.details) for f in findings][: len(found)] == found
    assert bool(findings) is bool(found)


USELESS = {K.NEVER_MATCHES, K.DUPLICATE, K.SHADOWED, K.REDUNDANT}


def test_what_rules_of_another_group_may_change_is_not_said() -> None:
    ours = "User-agent: x\nDisallow: /a\nDisallow: /ab\n"
    theirs, others = "User-agent: X\nAllow: /*b\n", "User-agent: z\nDisallow: /c\n"
    for groups in ((ours, theirs), (ours, theirs, others), (ours, others, theirs)):
        body = "".join(groups)
        assert "redundant" not in [kind for _, kind in kinds(body)]
        assert "redundant" in [kind for _, kind in kinds(body.replace("X", "y"))]


_PATTERNS = st.lists(
    st.sampled_from(["/", "a", "b", "*", "$", "%61", ".", "..", "index.html", "?"]), max_size=5
).map("".join)
_RULES = st.lists(
    st.tuples(st.sampled_from(["Allow", "Disallow"]), st.just("/") | st.just("/a"), _PATTERNS)
    | st.tuples(st.sampled_from(["Allow", "Disallow"]), st.just(""), _PATTERNS),
    min_size=2,
    max_size=7,
)
_PATHS = st.lists(st.sampled_from(["/", "a", "b", ".", "index.html", "?", "$"]), max_size=6).map(
    lambda parts: "/" + "".join(parts)
)


@pytest.mark.once
@given(
    rules=_RULES,
    split=st.integers(0, 9),
    paths=st.lists(_PATHS, min_size=20, max_size=20),
    dialect=EACH_DIALECT,
)
@settings(max_examples=600)
@pytest.mark.once
def test_a_rule_without_effect_has_none(
    rules: list[tuple[str, str, str]], split: int, paths: list[str], dialect: Dialect
) -> None:
    lines = [f"{field}: {start}{rest}" for field, start, rest in rules]
    lines.insert(split, "User-agent: x")
    robots = RobotsTxt.parse("\n".join(["User-agent: x", *lines]).encode(), dialect)
    for finding in robots.findings:
        if finding.kind not in USELESS:
            continue
        others = robots.body.split(b"\n")
        others[finding.line - 1] = b"# " + others[finding.line - 1]
        without = RobotsTxt.parse(b"\n".join(others), dialect)
        for path in [*paths, *(start + rest for _, start, rest in rules if start)]:
            # The only rule of a group holds it apart from the next one.
            if finding.kind is not K.NEVER_MATCHES:
                assert robots.allowed(path, "x") is without.allowed(path, "x"), finding
            if finding.kind is not K.REDUNDANT:
                assert robots.verdict(path, "x").line != finding.line, finding


# -- agreement with how the file is read ---------------------------------------------------

_BODIES = st.lists(
    st.sampled_from(
        b"""user-agent disallow allow dissallow useragent crawl-delay sitemap noindex host
        : * x y / $ % # 1 /a /b index.html <html> Disallowed:""".split()
    )
    | st.sampled_from([b" ", b"\n", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb", b": "])
    | st.sampled_from([b"User-agent: x\n", b"Disallow: /a\n", b"Host: x\n", b"\n\n", b"Allow: /\n"])
    | st.binary(max_size=4)
).map(b"".join)


@pytest.mark.once
@given(body=_BODIES, dialect=EACH_DIALECT, max_size=st.none() | st.integers(0, 60))
@settings(max_examples=1000)
def test_findings_are_of_the_lines_as_they_are_read(
    body: bytes, dialect: Dialect, max_size: int | None
) -> None:
    robots = RobotsTxt.parse(body, dialect, max_size=max_size)
    findings = robots.findings
    lines = split_lines(robots.body, dialect)
    readings = [f for f in findings if f.kind in READINGS]
    assert [f.line for f in readings] == list(range(1, len(lines) + 1))
    assert [f.line for f in findings] == sorted(f.line for f in findings)
    assert all(str(f).isprintable() for f in findings)
    assert _fields_read(robots) == _fields_found(readings)
    _check_groups(robots, findings)


def _fields_read(robots: RobotsTxt) -> dict[int, str]:
    """What verdicts and records take each line for."""
    names = {Field.USER_AGENT: "agent"} | dict.fromkeys(RULES, "rule")
    if not robots.dialect.allow_lines:
        names[Field.ALLOW] = "unknown"
    names[Field.UNKNOWN] = "unknown"
    records = read_records(robots.body, robots.dialect)
    return {n: names.get(field, "other") for n, field, _ in records if field is not Field.BLANK}


def _fields_found(readings: list[Finding]) -> dict[int, str]:
    names = {
        K.USER_AGENT: "agent",
        K.NAMELESS_USER_AGENT: "agent",
        K.RULE: "rule",
        K.EMPTY_RULE: "rule",
        K.OTHER_RECORD: "other",
        K.UNKNOWN_FIELD: "unknown",
    }
    # Two words are a key and a value, and gibberish to a reader.
    two_words = {f.line: "unknown" for f in readings if f.kind is K.NO_FIELD and f.details}
    return {f.line: names[f.kind] for f in readings if f.kind in names} | two_words


def _check_groups(robots: RobotsTxt, findings: tuple[Finding, ...]) -> None:
    groups = read_groups(robots.body, robots.dialect)
    outside = {f.line for f in findings if f.kind is K.OUTSIDE_GROUP}
    rules = {line for line, name in _fields_found([*_readings(findings)]).items() if name == "rule"}
    assert rules - outside == {line for group in groups for line, _, _ in group.rules}
    joints = [f.line for f in findings if f.kind is K.MERGED_GROUP]
    for group in groups:
        agents = [line for _, line in group.agents]
        ours = [line for line in joints if agents[0] < line < agents[-1]]
        assert bool(ours) is bool(group.interrupted)
        if ours:
            assert agents[group.interrupted - 1] < ours[-1] < agents[group.interrupted]
    # A verdict that says so rests on a line that is found.
    for path in ("/a", "/b"):
        verdict = robots.verdict(path, "x")
        assert not verdict.merged or joints
        assert verdict.line not in outside


def _readings(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    return (f for f in findings if f.kind in READINGS)


@given(body=st.binary(max_size=600), dialect=EACH_DIALECT)
@settings(max_examples=500)
def test_no_bytes_raise(body: bytes, dialect: Dialect) -> None:
    for finding in RobotsTxt.parse(body, dialect).findings:
        assert finding.line >= 1
        assert str(finding).isprintable()


# -- size ------------------------------------------------------------------------------------

_SIZE = 512_000
HOSTILE = {
    "20,000 groups": b"".join(b"User-agent: b%d\nDisallow:/%d\n" % (i, i) for i in range(20_000)),
    "40,000 duplicates": b"User-agent: *\n" + b"Disallow: /\n" * 42_000,
    "rules, each longer": b"User-agent: *\n"
    + b"".join(b"Disallow: /%s\n" % (b"a" * i) for i in range(1000)),
    "one line": b"User-agent: *\nDisallow: /" + b"a" * (_SIZE - 40),
    "one line of stars": b"User-agent: *\nDisallow: /" + b"*" * (_SIZE - 40),
    "colons": b":" * _SIZE,
    "lines of a colon": b":\n" * (_SIZE // 2),
    "agents between records": b"User-agent:a\nx:y\n" * (_SIZE // 17),
    "an open list": b"User-agent: *\nContent-Usage: a=(" + b'"a" ' * 120_000,
    "NUL": b"\0" * _SIZE,
}


@pytest.mark.once
@pytest.mark.parametrize("dialect", [RFC9309, KOSTER1996], ids=["rfc9309", "koster1996"])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_take_no_time(body: bytes, dialect: Dialect) -> None:
    robots = RobotsTxt.parse(body[:_SIZE], dialect)
    start = time.process_time()
    assert robots.findings
    # Under a second where nothing else runs; what is quadratic takes minutes.
    assert time.process_time() - start < 5


# -- kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FindingKind)
def test_every_kind_has_a_name_a_severity_and_a_sentence(kind: FindingKind) -> None:
    assert [k for k in FindingKind if k.value == kind.value] == [kind]
    assert isinstance(kind.severity, Severity)
    assert kind.template.endswith(".") or kind is K.MALFORMED
