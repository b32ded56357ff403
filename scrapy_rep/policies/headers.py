"""Which headers of an answer are kept: few, and of those a few kilobytes.

A download handler may hand over megabytes of them. What does not fit is as if the server
had not sent it, and never makes a copy live longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scrapy_rep.rep.caching.freshness import KEPT_HEADERS

#: Bytes of all headers together that are kept.
MAX_KEPT = 7 * 1024
# What a line has beside its name and value: a colon, a space and an end.
_AROUND = 4
#: Without this one, a redirect leads nowhere: it is read first.
LOCATION = "location"
_NAMES = (LOCATION, *sorted(KEPT_HEADERS))
# RFC 9111 §4.2.1: "the most restrictive directive should be honored". It may be among
# those that are not kept.
_MOST_RESTRICTIVE = ("cache-control", "no-cache")

#: The values of the header with a name, a line each.
Lines = Callable[[str], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class KeptHeaders:
    """What is kept of the headers of one answer; names are in lower case.

    *is_cut* says that some lines did not fit.
    """

    fields: tuple[tuple[str, str], ...]
    is_cut: bool = False

    def first(self, name: str) -> str | None:
        """The value of the first line with this *name*."""
        return next((value for key, value in self.fields if key == name), None)

    @property
    def caching(self) -> tuple[tuple[str, str], ...]:
        """Those that say for how long a copy may be used, and how to ask again."""
        fields = tuple(field for field in self.fields if field[0] in KEPT_HEADERS)
        return (*fields, _MOST_RESTRICTIVE) if self.is_cut else fields


def keep(lines: Lines) -> KeptHeaders:
    """Of the headers that are read here, in this order, the *lines* that fit in."""
    left = MAX_KEPT
    fields = []
    is_cut = False
    for name in _NAMES:
        for value in lines(name):
            size = len(name) + len(value) + _AROUND
            if size > left:
                is_cut = True
                break
            left -= size
            fields.append((name, value.decode("latin-1")))
    return KeptHeaders(tuple(fields), is_cut)
