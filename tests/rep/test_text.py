"""Untrusted bytes as text for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.rep.text import MAX_PRINTED, MAX_SHOWN, plural, printable, span


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"/plain path", "/plain path"),
        ("/café", "/café"),
        ("/café".encode(), "/café"),
        (b"/caf\xe9", "/caf\\xe9"),
        (b"\x1b[2J", "\\x1b[2J"),
        (b"a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
        (b"", ""),
    ],
    ids=ascii,
)
def test_what_is_not_printable_is_escaped(text: bytes | str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_cut_visibly() -> None:
    assert printable("a" * MAX_SHOWN) == "a" * MAX_SHOWN
    assert printable("a" * (MAX_SHOWN + 1)) == "a" * MAX_SHOWN + "…"


def test_nothing_shown_is_longer() -> None:
    assert len(printable("\U0010ffff" * (MAX_SHOWN + 1))) == MAX_PRINTED


@pytest.mark.clause("RFC 9309 3-4")
@given(st.binary() | st.text())
def test_the_result_is_always_one_printable_line(text: bytes | str) -> None:
    assert printable(text).isprintable()


def test_one_is_not_many() -> None:
    shown = [plural(count, "request") for count in (0, 1, 2, 1000)]
    assert shown == ["0 requests", "1 request", "2 requests", "1,000 requests"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text
