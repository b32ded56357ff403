"""Untrusted bytes as text for people.

RFC 9309 §3: the content of a robots.txt is untrusted. It may be shown, but must not
control a terminal, a log file or a page.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

#: Longer values are cut when shown.
MAX_SHOWN = 200
#: The longest result of :func:`printable`: each character escaped, and a mark for the cut.
MAX_PRINTED = len(r"\U0010ffff") * MAX_SHOWN + 1


def listed(values: Collection[object], most: int = 10) -> str:
    """The first *most* of *values*, made :func:`printable`, and the number of the others.

    >>> listed("abc", most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(printable(str(value)) for value in islice(values, most))
    more = len(values) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def printable(text: bytes | str, most: int | None = MAX_SHOWN) -> str:
    """*text* on one line, with all characters that are not printable escaped.

    It is cut after *most* characters, unless that is ``None``.

    >>> printable(b"/caf\\xc3\\xa9\\x1b[2J")
    '/café\\\\x1b[2J'
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    cut = text[:most]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return shown if len(cut) == len(text) else shown + "…"


def plural(count: int, what: str) -> str:
    """*count* with a noun.

    >>> plural(1, "line"), plural(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def span(seconds: float | None, digits: int = 0) -> str:
    """*seconds* in the largest unit of which there are at least two.

    >>> span(86400), span(90.4), span(90.4, digits=1), span(None)
    ('24 h', '90 s', '90.4 s', '-')
    """
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds:.{digits}f} s"
