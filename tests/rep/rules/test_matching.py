"""Which rule of a group decides about a path."""

from __future__ import annotations

import tracemalloc
from random import Random
from string import ascii_lowercase
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1996, RFC9309, Dialect, Precedence
from scrapy_rep.rep.parsing.urls import canonical_patterns, path_to_match
from scrapy_rep.rep.rules import matching
from scrapy_rep.rep.rules.matching import (
    MOST_PIECES,
    NO_RULE,
    TOO_COSTLY,
    Rule,
    RuleSet,
    line_of,
    pattern_matches,
    refuses,
    specific,
    weight_of,
)
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from tests.rep.rules.plain_matcher import compare, decide, plain_decide, rule_set

# pytest-twisted does not get on with @given and parametrize on one test.
ANY_DIALECT = st.sampled_from(list(DIALECTS.values()))
BOTH = pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)


def rules_of(*lines: str) -> list[Rule]:
    rules = []
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition(" ")
        rules.append(Rule(key == "allow", value.encode("latin-1"), number))
    return rules


def deciding_line(url: str, *lines: str, dialect: Dialect = RFC9309) -> int:
    rule = decide(rules_of(*lines), path_to_match(url, dialect), dialect)
    return rule.line if rule else 0


def matches_alone(value: str, path: str, dialect: Dialect) -> bool:
    (pattern,) = canonical_patterns([value.encode()], dialect)
    return pattern_matches(pattern, path_to_match(path, dialect), dialect)


# -- Google's tables ------------------------------------------------------------------

PATTERNS: list[tuple[str, str, str]] = [
    (
        "/fish",
        "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything",
        "/Fish.asp /catfish /?id=fish /desert/fish",
    ),
    (
        "/fish*",
        "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything",
        "/Fish.asp /catfish /?id=fish /desert/fish",
    ),
    (
        "/fish/",
        "/fish/ /fish/?id=anything /fish/salmon.htm",
        "/fish /fish.html /animals/fish/ /Fish/Salmon.asp",
    ),
    (
        "/*.php",
        "/index.php /filename.php /folder/filename.php /folder/filename.php?parameters "
        "/folder/any.php.file.html /filename.php/",
        "/ /windows.PHP",
    ),
    (
        "/*.php$",
        "/filename.php /folder/filename.php",
        "/filename.php?parameters /filename.php/ /filename.php5 /windows.PHP",
    ),
    ("/fish*.php", "/fish.php /fishheads/catfish.php?parameters", "/Fish.PHP"),
    # Beyond Google's table.
    ("/", "/ /a /a?b", ""),
    ("*", "/ /a /a?b", ""),
    ("/*", "/ /a /a?b", ""),
    ("*$", "/ /a", ""),
    ("/$", "/", "/a /?a"),
    ("/a$", "/a", "/aa /a/"),
    ("*a", "/a /ba /bab", "/ /b"),
    ("*/a", "/a /b/a /b/ab", "/ /ba"),
    ("/a**b", "/ab /aab /axxb", "/a /b"),
    ("/a*b*a$", "/aba /abba /axbxa /ababa", "/ab /aab /abab"),
    ("/a*a$", "/aa /aba", "/a /ab"),
    ("/*?q", "/?q /a?q=1", "/q /a"),
    ("/*a*b", "/ab /a/b/a /b/a/b", "/ba /a"),
    ("/*a*b*c", "/abc /a/b/c/a/b /cabc", "/acb /abab /bc"),
    ("*/a*b", "/ab /x/a/b", "/a /b/a"),
    ("/aX*", "/aX /aXb", "/a /ax"),
    ("/*X", "/X /a/X", "/ /x"),
    ("a", "", "/ /a"),
    ("$", "", "/ /$"),
    ("", "", ""),
]


@pytest.mark.clause(
    "Google disallow-1",
    "Google matching-1",
    "Google matching-3",
    "Google matching-4",
    "Google path-rows-1",
    "Google path-rows-2",
    "Google path-rows-3",
    "Google path-rows-4",
    "Google path-rows-5",
    "Google path-rows-6",
    "Google path-rows-7",
    "Google path-rows-8",
    "Google path-rows-9",
    "RFC 9309 2.2-7",
    "RFC 9309 2.2.2-1",
    "RFC 9309 2.2.2-2",
    "RFC 9309 2.2.2-15",
    "RFC 9309 2.2.3-2",
    "RFC 9309 2.2.3-3",
)
@BOTH
@pytest.mark.parametrize(
    ("pattern", "path"),
    [(pattern, path) for pattern, paths, _ in PATTERNS for path in paths.split()],
)
def test_a_pattern_matches(pattern: str, path: str, dialect: Dialect) -> None:
    assert deciding_line(path, f"disallow {pattern}", dialect=dialect) == 1
    assert matches_alone(pattern, path, dialect)


@pytest.mark.clause(
    "Google syntax-8",
    "Google syntax-9",
    "Google disallow-4",
    "Google matching-4",
    "Google path-rows-3",
    "Google path-rows-4",
    "Google path-rows-5",
    "Google path-rows-6",
    "Google path-rows-7",
    "Google path-rows-8",
    "Google path-rows-9",
    "RFC 9309 2.2-7",
    "RFC 9309 2.2.2-2",
    "RFC 9309 2.2.2-3",
    "RFC 9309 2.2.2-4",
    "RFC 9309 2.2.2-15",
)
@BOTH
@pytest.mark.parametrize(
    ("pattern", "path"),
    [(pattern, path) for pattern, _, paths in PATTERNS for path in paths.split()],
)
def test_a_pattern_does_not_match(pattern: str, path: str, dialect: Dialect) -> None:
    assert deciding_line(path, f"disallow {pattern}", dialect=dialect) == 0
    assert not matches_alone(pattern, path, dialect)


@pytest.mark.clause(
    "Google allow-1",
    "Google precedence-rows-1",
    "Google precedence-rows-2",
    "Google precedence-rows-3",
    "Google precedence-rows-4",
    "Google precedence-rows-5",
    "Google precedence-rows-6",
)
@BOTH
@pytest.mark.parametrize(
    ("path", "rules", "allowed"),
    [
        ("/page", ("allow /p", "disallow /"), True),
        ("/folder/page", ("allow /folder", "disallow /folder"), True),
        ("/page.htm", ("allow /page", "disallow /*.htm"), False),
        ("/page.php5", ("allow /page", "disallow /*.ph"), True),
        ("/", ("allow /$", "disallow /"), True),
        ("/page.htm", ("allow /$", "disallow /"), False),
    ],
)
def test_googles_order_of_precedence(
    path: str, rules: tuple[str, ...], allowed: bool, dialect: Dialect
) -> None:
    for lines in (rules, rules[::-1]):
        rule = decide(rules_of(*lines), path, dialect)
        assert rule is not None
        assert rule.allow is allowed


# -- which of several ------------------------------------------------------------------


@pytest.mark.clause(
    "Google precedence-1",
    "Google precedence-2",
    "RFC 9309 2.2.2-5",
    "RFC 9309 2.2.2-6",
    "RFC 9309 2.2.2-7",
    "RFC 9309 2.2.2-8",
)
@BOTH
@pytest.mark.parametrize(
    ("rules", "line"),
    [
        (("disallow /", "disallow /a", "disallow /a/b"), 3),
        (("disallow /a/b", "disallow /a", "disallow /"), 1),
        (("disallow /a/b", "allow /a/b"), 2),
        (("allow /a/b", "disallow /a/b"), 1),
        (("disallow /a/b", "disallow /a/b"), 1),
        (("allow /a/b", "allow /a/b"), 1),
        (("disallow /a", "allow /a/*", "disallow /a/b"), 2),
        (("disallow /*b", "allow /a/"), 2),
        (("allow /*b", "disallow /a/b$"), 2),
        (("disallow /a/b", "disallow /a/b$"), 2),
        (("disallow /a/b*", "disallow /a/b"), 1),
        (("disallow /*/b", "disallow /a/*"), 1),
        (("disallow /a/*", "disallow /*/b"), 1),
        (("disallow /x", "allow /a/b/c"), 0),
        (("disallow /*/*/*/*/*/*", "disallow /"), 2),
        (("disallow /*b", "allow /*/b"), 2),
        (("allow /*/b", "disallow /*b"), 1),
        (("disallow *x", "allow /a/index.html", "disallow /a/b"), 3),
        (("disallow *", "allow /a/*c"), 1),
        (("disallow /*", "allow /a/b*c", "disallow /a/b/c"), 1),
        (("allow /a/index.html", "disallow /a/b", "allow /b/index.html"), 2),
        (("disallow /a*b$", "allow /index.htm"), 1),
    ],
)
def test_most_bytes_then_allow_then_the_earlier_line(
    rules: tuple[str, ...], line: int, dialect: Dialect
) -> None:
    assert deciding_line("/a/b", *rules, dialect=dialect) == line


@pytest.mark.clause("RFC 9309 2.2.2-6")
@BOTH
def test_an_asterisk_is_as_long_as_a_slash(dialect: Dialect) -> None:
    assert deciding_line("/a", "disallow /", "allow *", dialect=dialect) == 2
    assert deciding_line("/a", "disallow /", "disallow *", dialect=dialect) == 1
    assert deciding_line("/a", "disallow *", "allow /", dialect=dialect) == 2


@BOTH
def test_a_longer_pattern_with_another_start_hides_no_shorter_one(dialect: Dialect) -> None:
    # All are filed under "wxyz".
    rules = ("disallow /bb*wxyz", "disallow /b*wxyz", "disallow /*wxyz", "allow *wxyz")
    for path, line in (("/a/wxyz", 3), ("/b/wxyz", 2), ("/bb/wxyz", 1)):
        assert deciding_line(path, *rules, dialect=dialect) == line


@BOTH
def test_a_pattern_with_long_pieces_matches_a_long_path(dialect: Dialect) -> None:
    piece = "abcdefghijklmnopqrstuvwxyz"
    path = "/" + 10 * "a/b/c/d/e/" + piece + "/end"
    assert matches_alone(f"/*{piece}*/end$", path, dialect)
    assert not matches_alone(f"/*{piece}*{piece}", path, dialect)


def test_bytes_are_counted_in_the_form_that_is_compared() -> None:
    # "/é" is "/%C3%A9", of seven bytes; "/%63*" is "/c*", of three.
    assert deciding_line("/é1", "allow /*1", "disallow /\xc3\xa9") == 2
    assert deciding_line("/cat", "disallow /%63*", "allow /cat") == 2


# -- percent-encoding and special characters --------------------------------------------


@pytest.mark.clause("RFC 9309 2.2.3-5", "RFC 9309 2.2.3-6")
@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        # RFC 9309 §2.2.3
        ("/path/file-with-a-%2A.html", "https://www.example.com/path/file-with-a-*.html"),
        ("/path/file-with-a-%2a.html", "https://www.example.com/path/file-with-a-%2A.html"),
        ("/path/foo-%24", "https://www.example.com/path/foo-$"),
        ("/path/foo-%24", "https://www.example.com/path/foo-%24"),
        ("/a$b", "/a$b"),
        ("/a$b", "/a%24b"),
        ("/~user", "/%7euser"),
        ("/%7Euser", "/~user"),
        ("/caf\xe9", "/caf%e9s"),
        ("/caf\xc3\xa9", "/café"),
        ("/caf%c3%a9", "/café"),
        ("/a b", "/a%20b"),
        ("/{a}", "/%7ba%7d"),
        ("/a'b", "/a%27b"),
        ("/*http:", "/redirect?to=http://example.com"),
    ],
    ids=ascii,
)
def test_patterns_match_urls_in_another_spelling(pattern: str, url: str) -> None:
    assert deciding_line(url, f"disallow {pattern}") == 1


@pytest.mark.clause("RFC 9309 2.2.2-12", "RFC 9309 2.2.2-14")
@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html"),
        ("/path/foo-%24", "/path/foo-"),
        ("/a/b", "/a%2Fb"),
        ("/a%2Fb", "/a/b"),
        ("/a%3Fb", "/a?b"),
        ("/a$b", "/a"),
        ("/caf\xe9", "/café"),
        ("/caf\xc3\xa9", "/caf%E9"),
    ],
    ids=ascii,
)
def test_reserved_characters_and_other_encodings_are_not_made_equal(pattern: str, url: str) -> None:
    assert deciding_line(url, f"disallow {pattern}") == 0


@pytest.mark.parametrize(
    ("pattern", "path", "line"),
    [
        ("/a$*", "/a", 0),
        ("/a$*", "/a$", 1),
        ("/a$*", "/a$b", 1),
        ("/a$**$", "/a$b", 1),
        ("*a$*", "/a", 0),
        ("*a$*", "/a$b", 1),
        ("*a$**", "/ba$b", 1),
        ("/a$$", "/a", 0),
        ("/a$$", "/a$", 1),
        ("*a$$", "/a$", 1),
        ("*a$$", "/a$b", 0),
        ("*$*a", "/$a", 1),
        ("*$*a", "/a", 0),
    ],
)
def test_a_dollar_sign_before_an_asterisk_is_not_an_anchor(
    pattern: str, path: str, line: int
) -> None:
    for dialect in (RFC9309, GOOGLE):
        assert deciding_line(path, f"disallow {pattern}", dialect=dialect) == line


# -- index pages ------------------------------------------------------------------------


@pytest.mark.clause("Google library-9", "RFC 9309 2.2.2-d6")
@BOTH
@pytest.mark.parametrize("page", ["index.htm", "index.html", "index.htmx"])
def test_allowing_an_index_page_allows_its_directory(page: str, dialect: Dialect) -> None:
    rules = ("disallow /", f"allow /a/{page}")
    assert deciding_line("/a/", *rules, dialect=dialect) == 2
    assert deciding_line(f"/a/{page}", *rules, dialect=dialect) == 2
    assert deciding_line("/a/b", *rules, dialect=dialect) == 1
    assert deciding_line("/a", *rules, dialect=dialect) == 1


@pytest.mark.clause("Google library-9", "RFC 9309 2.2.2-d6")
@BOTH
@pytest.mark.parametrize(
    "rule", ["disallow /a/index.html", "allow /a/index.php", "allow /a/index.html/b"]
)
def test_no_other_rule_stands_for_a_directory(rule: str, dialect: Dialect) -> None:
    assert deciding_line("/a/", rule, dialect=dialect) == 0


# -- rules without a value ---------------------------------------------------------------


@pytest.mark.clause("RFC 9309 2.2-8")
@pytest.mark.parametrize("rule", ["allow ", "disallow "])
def test_a_rule_without_a_value_is_not_a_rule(rule: str) -> None:
    assert deciding_line("/a", rule) == 0


@pytest.mark.clause("Google syntax-6")
@pytest.mark.parametrize("rule", ["allow ", "disallow "])
def test_a_rule_without_a_value_decides_where_nothing_does_in_the_google_dialect(
    rule: str,
) -> None:
    found = decide(rules_of(rule), "/a", GOOGLE)
    assert found is not None
    assert not found.refuses
    assert deciding_line("/a", rule, "disallow /", dialect=GOOGLE) == 2


@pytest.mark.clause("RFC 9309 2.2.2-9")
@BOTH
def test_no_rules_decide_nothing(dialect: Dialect) -> None:
    assert deciding_line("/a", dialect=dialect) == 0
    assert line_of(NO_RULE) == 0


def test_where_the_first_match_decides_no_rule_is_more_specific_than_another() -> None:
    for dialect in DIALECTS.values():
        weights = [
            rule_set(rules_of(f"disallow {path}"), dialect).decide("/ab") for path in ("/", "/a")
        ]
        lengths = [2, 4] if dialect.precedence is Precedence.LONGEST else [0, 0]
        assert [specific(weight) for weight in weights] == lengths


@pytest.mark.parametrize("pattern", ["/a*b", "/axb$", "*"])
def test_a_rule_weighs_something_where_its_dialect_says_that_it_matches(pattern: str) -> None:
    rule = (1, pattern, False)
    assert line_of(weight_of(rule, "/axb", RFC9309)) == 1
    assert weight_of(rule, "/axb", KOSTER1996) == NO_RULE
    assert line_of(weight_of(rule, pattern + "c", KOSTER1996)) == 1


# -- rules as text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule(False, b"/private/", 1), "Disallow: /private/"),
        (Rule(True, b"/caf\xc3\xa9", 1), "Allow: /café"),
        (Rule(False, b"", 1), "Disallow:"),
        (Rule(False, b"/\xe9\x1b[2J\0", 1), "Disallow: /\\xe9\\x1b[2J\\x00"),
    ],
    ids=repr,
)
def test_a_rule_as_text(rule: Rule, text: str) -> None:
    assert str(rule) == text


# -- against a plain matcher -----------------------------------------------------------------


_VALUES = st.lists(st.sampled_from(["/", "a", "b", "*", "%61", "index.htm", "$"]), max_size=6).map(
    "".join
)
_RULES = st.lists(st.tuples(st.booleans(), _VALUES), max_size=8)
_PATHS = st.lists(st.sampled_from(["/", "a", "b", "index.htm", "?"]), max_size=7).map("".join)


def assert_as_a_loop_would(
    dialect: Dialect, drawn: list[tuple[bool, str]], tails: list[str]
) -> None:
    rules = [Rule(allow, value.encode(), line) for line, (allow, value) in enumerate(drawn, 1)]
    index = rule_set(rules, dialect)
    for tail in tails:
        path = path_to_match(f"http://h/{tail}", dialect)
        assert decide(rules, path, dialect, index) == plain_decide(rules, path, dialect)


@pytest.mark.clause("RFC 9309 2.2.2-5")
@pytest.mark.once
@given(dialect=ANY_DIALECT, drawn=_RULES, tails=st.lists(_PATHS, min_size=1, max_size=4))
@settings(max_examples=1500)
def test_the_index_decides_as_a_loop_over_all_rules_would(
    dialect: Dialect, drawn: list[tuple[bool, str]], tails: list[str]
) -> None:
    assert_as_a_loop_would(dialect, drawn, tails)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_the_index_decides_so_for_rules_at_random(dialect: Dialect) -> None:
    compare(dialect, 400, Random(1))


# So many that patterns share grams.
_MANY = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(
            st.sampled_from(["*", "*", "a", "b", "ab", "/", "ba/", "$"]), min_size=1, max_size=9
        ).map("".join),
    ),
    min_size=60,
    max_size=120,
)
_LONG_PATHS = st.lists(st.sampled_from(["/", "a", "b", "ab", "ba/", "c"]), max_size=20).map("".join)


@BOTH
@pytest.mark.parametrize("path", ["/x", "/xa", "/xb", "/xb/a", "/item-7.x", "/a/item-40.b", "/$"])
def test_rules_with_nothing_but_short_pieces_are_found_among_many_others(
    path: str, dialect: Dialect
) -> None:
    long = [f"disallow /*item-{number}*" for number in range(100)]
    short = ("allow /*", "allow /*x", "disallow /*a$", "allow /*b*a", "disallow /x*b")
    rules = rules_of(*long, *short)
    assert decide(rules, path, dialect) == plain_decide(rules, path, dialect)


@pytest.mark.once
@given(dialect=ANY_DIALECT, drawn=_MANY, tails=st.lists(_LONG_PATHS, min_size=1, max_size=4))
@settings(max_examples=150)
def test_the_index_decides_so_with_many_wildcards(
    dialect: Dialect, drawn: list[tuple[bool, str]], tails: list[str]
) -> None:
    assert_as_a_loop_would(dialect, drawn, tails)


# Words of patterns that are words of paths, parts of them, or neither.
_PIECES = ["/", "/", "?", "=", ".", "-", "*", "a", "b1", "b2", "b3", "c", "index.htm", "%61"]
_WORDY = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(st.sampled_from([*_PIECES, "*", "/*", "$"]), min_size=1, max_size=9).map("".join),
    ),
    min_size=60,
    max_size=90,
)
_WORDY_PATHS = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)


@pytest.mark.once
@given(dialect=ANY_DIALECT, drawn=_WORDY, tails=st.lists(_WORDY_PATHS, min_size=1, max_size=6))
@settings(max_examples=60)
def test_the_index_decides_so_by_words(
    dialect: Dialect, drawn: list[tuple[bool, str]], tails: list[str]
) -> None:
    assert_as_a_loop_would(dialect, drawn, tails)


# Rules that have a word but for the last two; paths that have the words of some, or only
# nearly so.
_SHAPES = st.sampled_from(
    ["/a/i-{}/", "/*/i-{}/", "/a/*/{}.b", "/*.{}$", "/{}?*c=", "/a/*{}", "/i{}", "/i-{}*b"]
)
_NUMBERS = st.integers(0, 19)
_WITH_WORDS = st.lists(st.tuples(st.booleans(), _SHAPES, _NUMBERS), min_size=25, max_size=50)
_TO_FILL = st.lists(st.tuples(_SHAPES, _NUMBERS, st.sampled_from(["", "x", "/", "a/i-1/x"])))


@pytest.mark.once
@given(drawn=_WITH_WORDS, asked=_TO_FILL)
@settings(max_examples=150)
def test_a_file_with_many_wildcards_decides_so(
    drawn: list[tuple[bool, str, int]], asked: list[tuple[str, int, str]]
) -> None:
    lines = [f"{'dis' * (not allow)}allow {shape.format(number)}" for allow, shape, number in drawn]
    rules = rules_of(*lines)
    body = "\n".join(f"{rule}" for rule in rules).encode()
    robots = RobotsTxt.parse(b"User-agent: *\n" + body)
    # The index is made when something is asked a second time.
    assert [robots.allowed("http://h/", "a") for _ in range(2)] == [True, True]
    for shape, number, end in asked:
        url = "http://h" + shape.format(number).removesuffix("$").replace("*", end) + end
        decisive = plain_decide(rules, path_to_match(url, RFC9309), RFC9309)
        assert robots.allowed(url, "a") is not bool(decisive and decisive.refuses)


@pytest.mark.parametrize("start", ["/*x", "/", "*.gif"])
def test_a_rule_without_a_word_may_be_about_all_paths(start: str) -> None:
    rules = [f"Disallow: /*/item-{number}/" for number in range(30)]
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *rules, f"Disallow: {start}"]).encode())
    assert [robots.allowed("http://h/x.gif", "a") for _ in range(3)] == [False] * 3


def test_many_pages_of_one_site_get_the_same_answers() -> None:
    rules = [f"Disallow: /*/item-{number}/" for number in range(30)]
    robots = RobotsTxt.parse("\n".join(["User-agent: *", *rules, "Disallow: /no"]).encode())
    asked = {"/a/item-7/": False, "/item-7/": True, "/a/item-7": True, "/a/item-77/": True}
    asked |= {"/no-item": False, "/x/no": True, "/a/item-x/item-0/": False}
    for _ in range(300):
        assert {path: robots.allowed(f"http://h{path}", "a") for path in asked} == asked


def test_a_pattern_is_found_by_a_word_of_it() -> None:
    few = [f"disallow /*/item-{number}/" for number in range(50)]
    rules = [*few, "disallow /a*", "allow /*.item-7$", "disallow /*x-item-8/", "disallow /i*9"]
    rules += ["allow /*/item-5/x*/", "disallow /*/item-4/x*/", "allow /*/item-4/"]
    for path, line in (
        ("/shop/item-33/page", 34),
        ("/shop/item-333/page", 0),
        ("/shop/item-33", 0),
        ("/shop/an-item-33/", 0),
        ("/shop/page.item-7", 52),
        ("/shop/page.item-7/", 0),
        ("/shop/ax-item-8/", 53),
        ("/item-49/item-7/", 8),
        ("/item-49/", 54),
        ("/a/item-7/item-5/", 6),
        ("/b/item-5/xy/", 55),
        ("/b/item-4/xy/", 56),
        ("/b/item-4/y/", 57),
    ):
        assert deciding_line(path, *rules) == line
    # Where each has one, there is nothing else to look at.
    assert [deciding_line(path, *few) for path in ("/shop/item-33/", "/shop/")] == [34, 0]


@BOTH
@pytest.mark.parametrize("path", ["/axyz", "/baxyz", "/wxyz", "/axyz/", "/xyz", "/a-xyz"])
def test_a_pattern_is_found_by_how_it_begins_where_many_end_alike(
    path: str, dialect: Dialect
) -> None:
    rules = rules_of(*(f"disallow /*{letter}xyz" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert decide(rules, path, dialect) == plain_decide(rules, path, dialect)


# -- what may not take long ----------------------------------------------------------------


def many(gram: str, count: int, shape: str = "disallow /*{}*{:03x}") -> list[str]:
    """Rules that have nothing of four characters but *gram*, with *count* pieces in all."""
    pieces = shape.format("", 0).count("*")
    return [shape.format(gram, number) for number in range(count // pieces)]


def test_a_path_is_refused_if_more_pieces_than_the_limit_would_have_to_be_searched() -> None:
    index = rule_set(rules_of(*many("abcd", MOST_PIECES)), RFC9309)
    assert line_of(index.decide("/abcd007")) == 8
    assert index.decide("/abcd") == NO_RULE
    rules = (*many("abcd", MOST_PIECES), "allow /*abcd", "allow /abcd007", "allow /b")
    index = rule_set(rules_of(*rules), RFC9309)
    for path in ("/abcd007", "/abcd", "/z/abcd"):
        assert index.decide(path) == TOO_COSTLY
    assert line_of(TOO_COSTLY) == 0
    assert not TOO_COSTLY & 1
    # Rules whose gram is not in the path do not count.
    assert line_of(index.decide("/b/abc")) == len(rules)


def test_the_limit_counts_pieces_under_all_grams_of_a_path() -> None:
    rules = many("abcd", MOST_PIECES) + many("efgh", 2)
    index = rule_set(rules_of(*rules), RFC9309)
    assert line_of(index.decide("/abcd000")) == 1
    assert line_of(index.decide("/efgh000")) == len(rules)
    assert index.decide("/abcdefgh") == TOO_COSTLY


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        ("/*a", 1),
        ("/*a*", 1),
        ("/*a**b", 2),
        ("/*a$", 1),
        ("/a*b$", 1),
        ("/*a*b*c$", 2),
        ("/a*b*c*d*e", 4),
    ],
)
def test_the_limit_counts_what_is_searched_and_one_at_least(pattern: str, pieces: int) -> None:
    rules = rules_of(f"disallow {pattern}")
    with patch.object(matching, "MOST_PIECES", pieces):
        assert rule_set(rules, RFC9309).decide("/abcde") > TOO_COSTLY
    with patch.object(matching, "MOST_PIECES", pieces - 1):
        assert rule_set(rules, RFC9309).decide("/abcde") == TOO_COSTLY


@pytest.mark.parametrize("shape", ["*{}123*ABCDE", "*{}wxyz", "*{}bcdefghijklmnop", "*{}bc*z"])
def test_the_limit_does_not_count_what_has_only_in_common_what_many_have(shape: str) -> None:
    # Each is filed under what no other has, so a path with the rest has nothing to search.
    rules = rules_of(*(f"disallow /{shape.format(letter)}" for letter in ascii_lowercase))
    path = "/" + shape.replace("*", "")
    with patch.object(matching, "MOST_PIECES", 25):
        index = rule_set(rules, RFC9309)
        assert index.decide(path.format("")) == NO_RULE
        lines = [line_of(index.decide(path.format(letter))) for letter in ascii_lowercase]
    assert lines == [rule.line for rule in rules]


@pytest.mark.parametrize("pattern", ["*", "/*", "/abcd*", "/abcd**", "/abcd*$", "/abcd**$"])
def test_the_limit_does_not_count_asterisks_that_only_end_a_pattern(pattern: str) -> None:
    with patch.object(matching, "MOST_PIECES", 0):
        index = rule_set(rules_of(f"disallow {pattern}"), RFC9309)
        assert line_of(index.decide("/abcde")) == 1


def test_what_would_take_too_long_is_not_searched() -> None:
    index = rule_set(rules_of(*many("abcd", MOST_PIECES + 2)), RFC9309)
    with patch.object(matching, "_best_of", side_effect=AssertionError("a search")):
        assert index.decide("/abcd007") == TOO_COSTLY


_PAGES = "allow /*{}*{:03x}/index.htm"


@pytest.mark.parametrize(
    "rules",
    [
        [*many("abcd", MOST_PIECES), "disallow /*abcd"],
        many("abcd", MOST_PIECES // 2) + many("abcd", MOST_PIECES // 2, "allow /*{}*{:03x}"),
        many("abcd", MOST_PIECES // 2, _PAGES),
        [*many("abcd", MOST_PIECES // 2, _PAGES), "disallow /*abcd"],
        ["disallow /*abcd" + "*a" * (MOST_PIECES - 1)],
        ["disallow /*abcd" + "*a" * MOST_PIECES],
    ],
    ids=range(6),
)
def test_the_first_answer_knows_the_limit_as_the_index_does(rules: list[str]) -> None:
    made = rules_of(*rules)
    patterns = canonical_patterns([rule.value for rule in made], RFC9309)
    allows = [rule.allow for rule in made]
    index = rule_set(made, RFC9309)
    for path in ("/abcd", "/abcd000", "/abcd007/", "/z/abcd001", "/abc"):
        refused = index.decide(path) & 1 == 0
        assert refuses(path, patterns, allows, RFC9309) is refused, path


@pytest.mark.parametrize("length", [1, 16, 17, 60, 99, 100, 3000])
@pytest.mark.parametrize("filler", [5, 99, 100, 400, 40_000])
@pytest.mark.parametrize("end", ["", "$", "*z"])
def test_pieces_of_all_lengths_are_found_in_paths_of_all_lengths(
    length: int, filler: int, end: str
) -> None:
    piece, path = "a" * (length - 1) + "b", "/" + "ca" * filler
    rules = (f"disallow /*{piece}{end}",)
    assert deciding_line(path, *rules) == 0
    assert deciding_line(path + piece, *rules) == (end != "*z")
    assert deciding_line(path + piece + "yz", *rules) == (end != "$")
    assert deciding_line(path + piece[:-1], *rules) == 0


def test_the_filling_of_a_long_path_is_not_part_of_it() -> None:
    # No pattern of these dialects has such characters in it, but others could.
    path = "/" + "a" * 200
    for pattern, matches in (
        ("*a\xa0", False),
        ("*" + "a" * 20 + "\xa0", False),
        ("*" + "a" * 20 + "\xa0*", False),
        ("*" + "a" * 20, True),
        ("*" + "a" * 201, False),
        ("*" + "a" * 150 + "*" + "a" * 51 + "*", False),
        ("*" + "a" * 150 + "*" + "a" * 50 + "*", True),
        ("*" + "a" * 150 + "*" + "a" * 50 + "$", True),
        ("*" + "a" * 150 + "*" + "a" * 51 + "$", False),
    ):
        index = RuleSet([1], [pattern], [False], RFC9309)
        assert line_of(index.decide(path)) == matches, pattern


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_pattern_is_filed_under_what_its_longest_piece_has(size: int) -> None:
    piece = "abcde"[:size]
    # More than are looked for one by one.
    others = [f"disallow /*{number:04}x" for number in range(100)]
    rules = rules_of(*others, f"disallow /*{piece}$", f"disallow /*{piece}*Z*")
    index = rule_set(rules, RFC9309)
    assert line_of(index.decide(f"/{piece}")) == 101
    assert line_of(index.decide(f"/{piece}{piece}Z")) == 102
    assert index.decide(f"/{piece[:-1]}Z") == NO_RULE


def test_a_long_piece_takes_little_more_memory_than_its_text() -> None:
    pieces = ["".join(f"{number:04x}" for number in range(i, 8000, 31)) for i in range(30)]
    rules = rules_of(*(f"disallow /*{piece}" for piece in pieces))
    tracemalloc.start()
    try:
        index = rule_set(rules, RFC9309)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert line_of(index.decide(f"/a/{pieces[-1]}")) == 30
    assert peak < 20 * sum(map(len, pieces))
