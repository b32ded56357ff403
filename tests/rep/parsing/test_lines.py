"""Bytes to records: byte order marks, line ends, comments, lenient keys, sizes."""

from __future__ import annotations

import codecs

import pytest

from scrapy_rep.rep.dialects import DIALECTS, GOOGLE, KOSTER1996, MIN_PARSED_SIZE, RFC9309, Dialect
from scrapy_rep.rep.parsing.lines import (
    Field,
    Lines,
    read_records,
    read_sections,
    split_lines,
    text_of,
    within_limit,
)

BOTH = pytest.mark.parametrize("dialect", [RFC9309, GOOGLE], ids=lambda dialect: dialect.name)

A = (1, Field.ALLOW, b"/a")
B = (2, Field.ALLOW, b"/b")


def read(body: bytes, dialect: Dialect = RFC9309) -> list[tuple[int, Field, bytes]]:
    return list(read_records(body, dialect))


# -- line ends ----------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        b"a",
        b"a\n",
        b"\n\na\n\nb",
        b"a\r\nb\rc\n",
        codecs.BOM_UTF8 + b"a\nb\0c\n",
        b"a" * 17_000 + b"\nb",
    ],
)
def test_a_line_alone_is_what_it_is_among_all(body: bytes, dialect: Dialect) -> None:
    all_lines = split_lines(body, dialect)
    lines = Lines(body, dialect)
    assert [lines[index] for index in range(len(all_lines))] == all_lines


@pytest.mark.clause("Google format-1", "RFC 9309 2.2-12")
@BOTH
@pytest.mark.parametrize(
    "end", [b"\n", b"\r", b"\r\n"], ids=["line feed", "carriage return", "both"]
)
def test_each_line_end_of_the_grammar_ends_one_line(end: bytes, dialect: Dialect) -> None:
    assert read(b"allow: /a" + end + b"allow: /b", dialect) == [A, B]


@pytest.mark.clause("RFC 9309 2.2-1")
@BOTH
def test_line_ends_may_be_mixed_and_blank_lines_count(dialect: Dialect) -> None:
    body = b"\nallow: /a\r\rallow: /b\n\rallow: /c\r\n\r\nallow: /d"
    numbers = [number for number, _, _ in read(body, dialect)]
    assert numbers == [2, 4, 6, 8]


@pytest.mark.clause("RFC 9309 2.2-12")
@BOTH
@pytest.mark.parametrize(
    "separator",
    [b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8"],
    ids=repr,
)
def test_no_other_control_or_separator_splits_a_line(separator: bytes, dialect: Dialect) -> None:
    value = b"/a" + separator + b"allow: /b"
    assert read(b"allow: " + value, dialect) == [(1, Field.ALLOW, value)]


@pytest.mark.clause("RFC 9309 2.2-14", "RFC 9309 3-3")
def test_nul_is_a_byte_like_any_other() -> None:
    assert read(b"allow: /a\0b") == [(1, Field.ALLOW, b"/a\0b")]


def test_nul_ends_a_line_in_the_google_dialect_as_it_ends_strings_in_c() -> None:
    assert read(b"allow: /a\0b\nallow: /b", GOOGLE) == [A, B]


@pytest.mark.clause("RFC 9309 2.2-11")
@BOTH
def test_the_last_line_needs_no_end(dialect: Dialect) -> None:
    assert read(b"allow: /a", dialect) == read(b"allow: /a\n", dialect) == [A]


# -- byte order marks -----------------------------------------------------------


@pytest.mark.clause("Google format-2", "RFC 9309 2.2-d1")
@BOTH
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_utf8_mark_is_skipped_whole_or_in_part(size: int, dialect: Dialect) -> None:
    assert read(codecs.BOM_UTF8[:size] + b"allow: /a", dialect) == [A]


@pytest.mark.clause("RFC 9309 2.2-d1")
@BOTH
def test_a_mark_is_skipped_at_the_start_of_the_file_only_and_once(dialect: Dialect) -> None:
    mark = codecs.BOM_UTF8
    records = read(mark + mark + b"allow: /a\n" + mark + b"allow: /b", dialect)
    assert [field for _, field, _ in records] == [Field.UNKNOWN, Field.UNKNOWN]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
    ids=["little endian", "big endian"],
)
class TestUTF16:
    @pytest.mark.clause("RFC 9309 2.2.2-22")
    def test_is_decoded_after_a_byte_order_mark(self, mark: bytes, encoding: str) -> None:
        body = mark + "allow: /é\r\nallow: /b".encode(encoding)
        assert read(body) == [(1, Field.ALLOW, "/é".encode()), B]

    def test_is_noise_to_the_google_dialect(self, mark: bytes, encoding: str) -> None:
        body = mark + "allow: /a\n".encode(encoding)
        assert Field.ALLOW not in [field for _, field, _ in read(body, GOOGLE)]

    def test_with_bytes_that_are_none_does_not_raise(self, mark: bytes, encoding: str) -> None:
        lone_surrogate = "\ud800".encode(encoding, "surrogatepass")
        body = mark + "allow: /a\n".encode(encoding) + lone_surrogate + b"\x00"
        assert read(body)[0] == A

    def test_is_cut_between_lines(self, mark: bytes, encoding: str) -> None:
        lines = mark + "allow: /a\nallow: /b\n".encode(encoding)
        body = lines + "allow: /cc".encode(encoding)
        assert within_limit(body, len(body) - 1) == lines

    @pytest.mark.parametrize("character", "Ċ\u0a0aഊ\u0d00", ids=ascii)
    def test_is_never_cut_inside_a_character(
        self, mark: bytes, encoding: str, character: str
    ) -> None:
        # Of whose bytes one looks like a line end.
        lines = mark + "allow: /a\n".encode(encoding)
        body = lines + f"allow: /{character}{character}private".encode(encoding)
        assert within_limit(body, len(body) - 1) == lines

    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
    def test_loses_the_line_of_the_cut_and_those_below(
        self, mark: bytes, encoding: str, end: str
    ) -> None:
        # Half of one character and half of the next look like a line end.
        odd = "\u0a0a\u0100\u0a0a\u0d0d\u0100\u0d0d"
        first = mark + f"allow: /a{end}".encode(encoding)
        lines = first + f"#{odd}{end}".encode(encoding)
        body = lines + f"allow: /{odd}{end}allow: /d{end}".encode(encoding)
        for size in range(4, 30, 2):
            assert within_limit(body, len(lines) + size) == lines
        assert within_limit(body, len(first) + 12) == first

    @pytest.mark.parametrize("key", ["Allow", "USER-AGENT", "Sitemap", "disallaw", "user agent"])
    @pytest.mark.parametrize("start", ["", "# Ċ\r", "\n \t", "Ċ: x\r\n\v"])
    @pytest.mark.parametrize("colon", [":", " :", " ", "\t"])
    def test_has_a_key_that_says_so(
        self, mark: bytes, encoding: str, key: str, start: str, colon: str
    ) -> None:
        text = f"{start}{key}{colon}/é"
        assert (
            text_of(mark + text.encode(encoding), RFC9309)
            == text.replace("\r\n", "\n").replace("\r", "\n").encode()
        )

    @pytest.mark.clause("RFC 9309 2.3.1.5-2")
    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=repr)
    @pytest.mark.parametrize("more", [b"", b"#", b"\nx: \0\n"], ids=repr)
    def test_is_bytes_where_no_key_is_in_utf_16(
        self, mark: bytes, encoding: str, end: bytes, more: bytes
    ) -> None:
        # RFC 9309 §2.3.1.5: "crawlers MUST use the parseable rules".
        body = mark + b"allow: /a" + end + b"allow: /b" + end + more
        assert read(body)[:2] == [A, B]
        assert [field for _, field, _ in read(body, GOOGLE)[:2]] == [Field.UNKNOWN, Field.ALLOW]
        whole = mark + b"allow: /a" + end
        assert within_limit(body, len(whole) + 3).rstrip() == whole.rstrip()

    def test_of_which_no_line_is_whole_says_nothing(self, mark: bytes, encoding: str) -> None:
        assert within_limit(mark + "allow: /Ċ".encode(encoding) * 9, 60) == b""


# -- comments and space ---------------------------------------------------------


@pytest.mark.clause(
    "Google syntax-1",
    "Google syntax-2",
    "Google syntax-3",
    "RFC 9309 2.2-3",
    "RFC 9309 2.2-4",
    "RFC 9309 2.2-10",
    "RFC 9309 2.2-11",
    "RFC 9309 2.2-13",
)
@BOTH
@pytest.mark.parametrize(
    "line",
    [
        b"allow: /a # why",
        b"allow: /a#why",
        b"allow: /a # allow: /b # c",
        b"  allow  :  /a  ",
        b"\tallow\t:\t/a\t",
        b"\v\fallow: /a\f\v",
        b"allow:/a",
        b"ALLOW: /a",
        b"aLLoW: /a",
    ],
    ids=repr,
)
def test_comments_and_space_and_case_make_no_difference(line: bytes, dialect: Dialect) -> None:
    assert read(line, dialect) == [A]


@pytest.mark.clause("Google format-2", "Google syntax-3", "RFC 9309 2.2-10", "RFC 9309 2.3.1.5-2")
@BOTH
@pytest.mark.parametrize(
    "line", [b"", b"   ", b"# allow: /a", b"  #", b"allow", b": /a", b" : ", b"a b c", b"\v"]
)
def test_a_line_without_a_key_is_not_a_record(line: bytes, dialect: Dialect) -> None:
    assert read(line, dialect) == []


@pytest.mark.clause("RFC 9309 2.2-8")
@BOTH
@pytest.mark.parametrize("line", [b"disallow:", b"disallow: ", b"disallow: # all"], ids=repr)
def test_a_value_may_be_empty(line: bytes, dialect: Dialect) -> None:
    assert read(line, dialect) == [(1, Field.DISALLOW, b"")]


@pytest.mark.clause("Google syntax-1")
@BOTH
def test_only_the_first_colon_separates(dialect: Dialect) -> None:
    record = (1, Field.SITEMAP, b"https://example.com/map")
    assert read(b"sitemap: https://example.com/map", dialect) == [record]


@pytest.mark.clause("Google format-4", "RFC 9309 2.2-14")
@BOTH
def test_bytes_that_are_not_utf8_stay(dialect: Dialect) -> None:
    assert read(b"disallow: /\xe9\xff", dialect) == [(1, Field.DISALLOW, b"/\xe9\xff")]


# -- keys -----------------------------------------------------------------------

KEYS = [
    (b"User-agent", Field.USER_AGENT),
    (b"Useragent", Field.USER_AGENT),
    (b"User Agent", Field.USER_AGENT),
    (b"Allow", Field.ALLOW),
    (b"Disallow", Field.DISALLOW),
    (b"Dissallow", Field.DISALLOW),
    (b"Dissalow", Field.DISALLOW),
    (b"Disalow", Field.DISALLOW),
    (b"Diasllow", Field.DISALLOW),
    (b"Disallaw", Field.DISALLOW),
    (b"Sitemap", Field.SITEMAP),
    (b"Site-map", Field.SITEMAP),
    (b"Crawl-delay", Field.CRAWL_DELAY),
]


@pytest.mark.clause(
    "Draft 2019 2.2-1", "Google syntax-4", "Google library-2", "RFC 9309 2.1-1", "RFC 9309 2.2-d2"
)
@BOTH
@pytest.mark.parametrize(("key", "field"), KEYS, ids=[key.decode() for key, _ in KEYS])
def test_keys_and_the_typos_that_are_forgiven(key: bytes, field: Field, dialect: Dialect) -> None:
    assert read(key + b": x", dialect) == [(1, field, b"x")]
    assert read(key.upper() + b":x", dialect) == [(1, field, b"x")]


@pytest.mark.clause("Google library-1", "RFC 9309 2.2-d2")
@pytest.mark.parametrize(("key", "field"), KEYS, ids=[key.decode() for key, _ in KEYS])
def test_a_key_counts_by_prefix_in_the_google_dialect_alone(key: bytes, field: Field) -> None:
    assert read(key + b"ed: x") == [(1, Field.UNKNOWN, b"x")]
    assert read(key + b"ed: x", GOOGLE) == [(1, field, b"x")]


@pytest.mark.clause("RFC 9309 2.2-d2")
@BOTH
@pytest.mark.parametrize(
    "key",
    [b"hosts", b"nofollow", b"xdisallow", b"dis allow", b"user--agent", b"\xa0allow", b"allo"],
)
def test_other_keys_are_other_records(key: bytes, dialect: Dialect) -> None:
    assert read(key + b": x", dialect) == [(1, Field.UNKNOWN, b"x")]


@pytest.mark.clause("Draft 2019 2.2-1", "Google library-3", "RFC 9309 2.2-d2")
@BOTH
@pytest.mark.parametrize("line", [b"allow /a", b"allow\t/a", b"allow \t /a", b" allow /a # b"])
def test_a_missing_colon_is_forgiven_between_two_words(line: bytes, dialect: Dialect) -> None:
    assert read(line, dialect) == [A]


@pytest.mark.clause("Google library-3", "RFC 9309 2.2-d2")
@BOTH
@pytest.mark.parametrize("line", [b"allow /a /b", b"user agent x", b"allow"])
def test_a_missing_colon_is_not_forgiven_otherwise(line: bytes, dialect: Dialect) -> None:
    assert read(line, dialect) == []


# -- blank lines and sections ------------------------------------------------------


def test_blank_lines_are_records_where_they_end_groups() -> None:
    blank = (2, Field.BLANK, b"")
    assert read(b"allow: /a\n \t\n#\nallow: /b", KOSTER1996) == [A, blank, (4, Field.ALLOW, b"/b")]


@pytest.mark.parametrize("line", [b"Disallow: /", b"allow: /", b"user-agent: x"])
def test_the_end_of_the_last_line_begins_no_blank_line(line: bytes) -> None:
    assert read(b"", KOSTER1996) == []
    assert [number for number, _, _ in read(line + b"\n", KOSTER1996)] == [1]
    assert [number for number, _, _ in read(line + b"\n\n", KOSTER1996)] == [1, 2]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"agent: x\nUser-agent: y\nDisallow: /a\n",
        b"\nUser-agent: x\n\nUser-agent: y",
        b"Useragent: x\nUser agent: y\nUSER AGENT:z",
        b"User-agent x\nuser-agent\ty # z\nUser-agent : z",
        b"X-agent: x\nagents\nUser-agents: y\n",
        b"Disallow: /agent\n# User-agent: x\n User-agent: # y\nUser-agent: z # w\n",
        b"Sitemap: https://agent/\nUser-agent: x:y\nDisallow: /useragent: z",
        b"user-agent:x\r\ruser-agent:y\r\nuser-agent:z",
        b"User-agent: x\nSitemap: https://agent/",
    ],
)
def test_sections_begin_at_the_user_agent_lines(body: bytes, dialect: Dialect) -> None:
    lines = split_lines(body, dialect)
    sections = list(read_sections(body, dialect))
    named = [(line, name) for line, name, _ in sections]
    assert named == [
        (line, name) for line, field, name in read(body, dialect) if field is Field.USER_AGENT
    ]
    ends = [*(line - 1 for line, _ in named), len(lines)][1:]
    assert [text.splitlines() for _, _, text in sections] == [
        lines[line:end] for (line, _), end in zip(named, ends, strict=True)
    ]


# -- sizes ----------------------------------------------------------------------


def test_a_line_may_have_any_length() -> None:
    value = b"/" + b"a" * 100_000
    assert read(b"allow: " + value) == [(1, Field.ALLOW, value)]


@pytest.mark.clause("Google library-5")
def test_the_google_dialect_reads_16663_bytes_of_a_line() -> None:
    line = b"allow: /" + b"a" * 20_000
    assert read(line, GOOGLE) == [(1, Field.ALLOW, line[len(b"allow: ") : 16_663])]


@pytest.mark.clause("RFC 9309 2.5-d1")
@pytest.mark.parametrize(
    ("body", "max_size", "expected"),
    [
        (b"allow: /a\nallow: /b", 19, b"allow: /a\nallow: /b"),
        (b"allow: /a\nallow: /b", 18, b"allow: /a\n"),
        (b"allow: /a\rallow: /b", 18, b"allow: /a\r"),
        (b"allow: /a\r\nallow: /b", 19, b"allow: /a\r\n"),
        (b"allow: /a\nallow: /b", 10, b"allow: /a\n"),
        (b"allow: /a\nallow: /b", 9, b"allow: /a"),
        (b"allow: /a\r\nallow: /b", 9, b"allow: /a"),
        (b"allow: /a\nallow: /b", 8, b""),
        (b"allow: /private", 8, b""),
        (b"allow: /a\rallow: /b\rallow: /c\rallow: /d\r", 25, b"allow: /a\rallow: /b\r"),
        (b"\nallow: /private", 8, b"\n"),
        (b"\rallow: /private", 8, b"\r"),
    ],
    ids=[
        "all of it fits",
        "inside the last line",
        "inside the last line, CR",
        "inside the last line, CRLF",
        "just behind a line end",
        "just before a line end",
        "just before a CRLF",
        "inside the first line",
        "inside the only line",
        "inside one of many lines, CR",
        "inside the first line that is not blank",
        "inside the first line that is not blank, CR",
    ],
)
def test_the_line_that_the_cut_falls_into_is_left_out(
    body: bytes, max_size: int, expected: bytes
) -> None:
    assert within_limit(body, max_size) == expected


def test_nothing_but_a_line_end_behind_the_cut_makes_the_last_line_whole() -> None:
    whole, part = b"allow: /a\n", b"allow: /private"
    kept = {
        byte
        for byte in range(256)
        if within_limit(whole + part + bytes([byte]) + b"more", len(whole + part)) != whole
    }
    assert kept == set(b"\r\n")


@pytest.mark.clause("Draft 2019 2.5-1", "RFC 9309 2.5-2")
def test_the_smallest_limit_that_the_rfc_permits() -> None:
    assert MIN_PARSED_SIZE == 512_000


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=repr)
def test_all_whole_lines_before_the_limit_are_read(end: bytes) -> None:
    whole = end.join([b"User-agent: *", b"Disallow: /a", b""])
    assert within_limit(whole + b"Disallow: /private", len(whole) + 11) == whole
