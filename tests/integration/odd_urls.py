"""Paths that URL libraries read, or write, in more than one way."""

from __future__ import annotations

import random

_PIECES = (
    *("a", "B", "7", "secret", "doc", "robots.txt", "index.html"),
    *("/", "/", "/", "//", "///", ".", "..", "/./", "/../", "/.", "/..", "..;"),
    *("?", "?", "??", "?id=1", "&", "=", "+", "?/a//b", "?;", "?.."),
    *(";", ";", ";;", ";v=1", ";?", ";/"),
    *("%", "%%", "%4", "%zz", "%%41", "%25", "%2541", "%u00e9"),
    *("%20", "%00", "%0A", "%7e", "%7E", "%41", "%2e", "%2E%2e", "%C3%A9", "%c3%a9", "%E9", "%ff"),
    *(f"%{ord(character):02X}" for character in "!#$&'()*+,/:;=?@[]\\^`{|}\"<>"),
    *(f"%{ord(character):02x}" for character in ",/:;=?[*"),
    *"!$&'()*+,:;=@[]\\^`{|}\"<>~-_ ",
    *("\u00e9", "\u65e5\u672c", "e\u0301", "\U0001f577", "\u00ad", "\u202e", "\u0130", "\uff0f"),
    *("#", "#?", "#;"),
)


def odd_paths(count: int, seed: int = 9309) -> list[str]:
    """So many paths with queries and fragments, the same each time."""
    rng = random.Random(seed)
    return ["/" + "".join(rng.choices(_PIECES, k=rng.randint(1, 8))) for _ in range(count)]
