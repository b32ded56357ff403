"""Lines that carry the digest of all lines before them."""

from __future__ import annotations

import json
from random import Random

import pytest

from scrapy_rep.evidence.chain import FIRST, digest_of, is_sealed, seal, to_json

VALUES: list[dict[str, object]] = [
    {"type": "start"},
    {"url": "https://é.example/\"'\\", "line": 3},
    {"n": [1.5, None]},
]


def sealed() -> list[bytes]:
    lines = []
    digest = FIRST
    for value in VALUES:
        line, digest = seal(digest, to_json(value))
        lines.append(line)
    return lines


def unsealed(lines: list[bytes]) -> list[int]:
    """The numbers of the lines, from 0, that are not as they were written."""
    found = []
    digest = FIRST
    for number, line in enumerate(lines):
        if not is_sealed(digest, line):
            found.append(number)
        digest = digest_of(line) or FIRST
    return found


def test_a_line_is_json_with_its_digest() -> None:
    lines = sealed()
    assert [json.loads(line) for line in lines] == [
        {**value, "digest": digest_of(line)} for value, line in zip(VALUES, lines, strict=True)
    ]
    assert unsealed(lines) == []
    assert len({digest_of(line) for line in lines}) == 3


@pytest.mark.parametrize("number", range(3))
def test_every_changed_byte_is_found_at_its_line(number: int) -> None:
    random = Random(number)
    lines = sealed()
    for place in range(len(lines[number])):
        changed = bytearray(lines[number])
        changed[place] ^= random.randrange(1, 256)
        found = unsealed([*lines[:number], bytes(changed), *lines[number + 1 :]])
        assert found
        assert found[0] == number


@pytest.mark.parametrize("number", range(2))
def test_a_missing_line_is_found_at_the_next_one(number: int) -> None:
    lines = sealed()
    del lines[number]
    assert unsealed(lines) == [number]


def test_swapped_and_repeated_lines_are_found() -> None:
    first, second, third = sealed()
    assert unsealed([second, first, third])
    assert unsealed([first, second, second, third]) == [2]


@pytest.mark.parametrize("line", [b"", b"{}", b"x" * 80, b'{"digest":"' + b"0" * 64 + b'"}'])
def test_what_is_not_sealed_is_not(line: bytes) -> None:
    assert not is_sealed(FIRST, line)


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"time": float("inf")})
