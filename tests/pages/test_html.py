"""Meta tags and links of an HTML page."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector

from scrapy_rep.pages.html import (
    MAX_HEAD,
    _all_tags,
    _plain_tags,
    links_not_to_follow,
    meta_statements,
    meta_tags,
)
from scrapy_rep.pages.statements import PageRules, evaluate

TOKENS = ("examplebot",)
NOINDEX = '<meta name="robots" content="noindex">'


def rules_of(page: str | bytes) -> PageRules:
    tags = meta_tags(page.encode() if isinstance(page, str) else page, TOKENS)
    return evaluate(meta_statements(tags, TOKENS), 0.0)


def refused(page: str | bytes) -> set[str]:
    return set(rules_of(page).refused)


SEARCH = {"search", "snippet", "images"}


def test_the_example_of_the_draft() -> None:
    rules = rules_of(
        '<meta name="robots" content="noindex">\n<meta name="examplebot" content="nosnippet">'
    )
    assert set(rules.refused) == SEARCH
    texts = [str(statement) for statement in rules.statements]
    assert texts == ['<meta name="robots">: noindex', '<meta name="examplebot">: nosnippet']


# TDM Reservation Protocol, "TDM Metadata in HTML Content".
TDM_EXAMPLE = """<!DOCTYPE html>
 <html lang="en">
 <head>
 <meta charset="utf-8">
 <meta name="tdm-reservation" content="1">
 <meta name="tdm-policy" content="https://provider.com/policies/policy.json">
 <title>Document title</title>
 </head>
 <body>
 ...
 <!-- body content -->
 ...
 </body>
 </html>
"""


def test_the_example_of_tdm_metadata() -> None:
    rules = rules_of(TDM_EXAMPLE)
    assert str(rules.verdict("tdm").by) == '<meta name="tdm-reservation">: 1'
    assert rules.tdm_policy == "https://provider.com/policies/policy.json"


@pytest.mark.parametrize(
    ("page", "is_refused"),
    [
        (f"<head>{NOINDEX}</head><body>", True),
        (NOINDEX, True),
        ("<META NAME=ROBOTS CONTENT=NoIndex><BODY>", True),
        ("<meta content='noindex' name=' robots '/>", True),
        ("<meta\nname='robots'\tcontent='none'>", True),
        ('<meta name="robots" content="all"><meta name="examplebot" content="noindex">', True),
        ('<meta name="robots" content="&#110;oindex">', True),
        ('<meta name="robots" content="index"><meta name="robots" content="noindex">', True),
        # An attribute with a name that XML does not allow.
        ("<meta \0\x01=a name=robots content=noindex>", True),
        # Of others, of nobody, of nothing.
        ('<meta name="otherbot" content="noindex">', False),
        ('<meta name="robots.txt" content="noindex">', False),
        ('<meta name="robots">', False),
        ('<meta content="noindex">', False),
        ('<meta property="robots" content="noindex">', False),
        ("<metadata name='robots' content='noindex'>", False),
        # After the head.
        (f"<head></head><body>{NOINDEX}", False),
        (f"<head></head><BODY>{NOINDEX}", False),
        (f"<body\n>{NOINDEX}", False),
        # A head that a parser ends early, and text that only looks like <body>.
        (f"<head><noscript><img src=a></noscript>{NOINDEX}</head><body>", True),
        (f"<head><div>x</div>{NOINDEX}</head><body>", True),
        (f"<script>'<body>'</script>{NOINDEX}<body>", True),
        (f"<style>/*<body>*/</style>{NOINDEX}<body>", True),
        (f"<title><body></title>{NOINDEX}<body>", True),
        (f"<!-- <body> -->{NOINDEX}<body>", True),
        (f'<meta name="description" content="<body>">{NOINDEX}<body>', True),
        (f"<bodyguard>{NOINDEX}<body>", True),
        (f"<script src='a'/>{NOINDEX}<body>", True),
        (f"<!-->{NOINDEX}<body>", True),
        (f"<!--->{NOINDEX}<body>", True),
        (f"<!-- --!>{NOINDEX}<body>", True),
        ('<meta name="description" content="a > b"><meta name="robots" content="noindex">', True),
        # Text that only looks like the tag.
        (f"<!-- {NOINDEX} --><body>", False),
        (f"<!-- {NOINDEX}", False),
        (f"<script>document.write('{NOINDEX}')</script><body>", False),
        (f"<title>{NOINDEX}</title><body>", False),
        ("<meta name='description' content='name=\"robots\" content=\"noindex\"'>", False),
    ],
)
def test_tags_before_the_body_count(page: str, is_refused: bool) -> None:
    assert refused(page) - {"follow"} == (SEARCH if is_refused else set())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_tags_are_found_in_any_encoding(encoding: str) -> None:
    page = f"<html><head><title>\u00e9\u4e2d</title>{NOINDEX}</head><body>"
    assert refused(page.encode(encoding)) == SEARCH


def test_so_much_of_a_page_is_read() -> None:
    for padding, expected in ((MAX_HEAD - len(NOINDEX), SEARCH), (MAX_HEAD, set())):
        assert refused(" " * padding + NOINDEX) == expected
        assert refused("<html>" + "x" * (padding - 6) + NOINDEX) == expected


def test_many_tags_are_found() -> None:
    head = '<meta name="robots" content="all">' * 20 + NOINDEX
    assert refused(f"<head>{head}</head><body>") == SEARCH


def test_a_value_has_a_length_too() -> None:
    tag = f'<meta name="robots" content="{"x" * 9000}, noindex">'
    assert refused(tag) == set()
    assert refused(tag + '<meta name="robots" content="noarchive">') == {"archive"}


@pytest.mark.parametrize(
    "unit", ["<meta ' ", '<meta " ', "<script", "<!--", "<title", "<meta robots", '"', "<"]
)
def test_a_hostile_head_is_read_in_linear_time(unit: str) -> None:
    # Otherwise this takes minutes.
    assert refused(unit * (MAX_HEAD // len(unit))) == set()


FRAGMENTS = [
    *(
        NOINDEX,
        '<meta name="examplebot" content="none">',
        "<META NAME='tdm-reservation' content=1>",
    ),
    *(
        '<meta name="description" content="robots, a > b">',
        '<meta charset="utf-8">',
        "<p>robots</p>",
    ),
    *("<script>robots</script>", "<!-- robots -->", "<!-- <meta name=robots> -->", "</head>"),
    *("<script>'<body>'</script>", "<title>robots <body></title>", '<link href="/robots.css">'),
    *("<body>", "<body class=a>", "<BODY>", "<bodyguard>", "text ", "<style>a>b{}</style>"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12))
def test_the_fast_way_finds_what_the_slow_one_does(fragments: list[str]) -> None:
    head = "".join(fragments).encode()
    needles = (b"robots", b"tdm-", b"examplebot")
    plain = _plain_tags(head, needles)
    assert plain is None or plain == _all_tags(head, needles)


def test_the_fast_way_is_taken_for_most_pages() -> None:
    for head in ("<title>a</title><link href=a>", f"<script>a</script>{NOINDEX}<!-- b -->"):
        assert _plain_tags(f"<head>{head}</head><body>".encode(), (b"robots",)) is not None


# -- links ---------------------------------------------------------------------------

LINKS = """
<a href="/plain">a</a>
<a href="/none" rel="nofollow">b</a>
<a href="/mixed" rel="NoFollow noopener">c</a>
<area href="/area" rel="nofollow">
<a href="/ugc" rel="ugc">d</a>
<a href="/both" rel="sponsored"><a href="/both" rel="nofollow">e</a>
<a href="/twice" rel="nofollow">f</a><a href="/twice">g</a>
<a rel="nofollow">h</a>
<a \x01=b href="/odd" rel="nofollow">i</a>
<a href="http://[" rel="nofollow">i</a>
<link href="/link" rel="nofollow">
"""


@pytest.mark.parametrize(
    ("rels", "expected"),
    [
        ({"nofollow"}, {"/none", "/mixed", "/area", "/odd"}),
        ({"nofollow", "ugc", "sponsored"}, {"/none", "/mixed", "/area", "/odd", "/ugc", "/both"}),
        (set(), set()),
    ],
)
def test_links_with_one_of_these_rels_are_not_to_be_followed(
    rels: set[str], expected: set[str]
) -> None:
    found = links_not_to_follow(
        Selector(text=LINKS), frozenset(rels), lambda url: urljoin("https://example.com/a", url)
    )
    assert found == {f"https://example.com{path}" for path in expected}
