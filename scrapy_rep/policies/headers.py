"""The response headers that are stored: a few names, and at most a few kilobytes.

A download handler may return megabytes of headers. Headers that do not fit are ignored, and can
never extend the lifetime of a response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scrapy_rep.rep.caching.freshness import KEPT_HEADERS

#: The most bytes of headers that are stored.
MAX_KEPT = 7 * 1024
# The colon, the space and the line end of a header.
_AROUND = 4
#: It is read first, because a redirect needs it.
LOCATION = "location"
_NAMES = (LOCATION, *sorted(KEPT_HEADERS))
# RFC 9111 §4.2.1: "the most restrictive directive should be honored". It may be among
# those that did not fit.
_MOST_RESTRICTIVE = ("cache-control", "no-cache")

#: Returns the values of all headers with a name.
Lines = Callable[[str], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class KeptHeaders:
    """The stored headers of one response; names are in lower case.

    *is_cut* says that some headers did not fit.
    """

    fields: tuple[tuple[str, str], ...]
    is_cut: bool = False

    def first(self, name: str) -> str | None:
        """The value of the first header with this *name*."""
        return next((value for key, value in self.fields if key == name), None)

    @property
    def caching(self) -> tuple[tuple[str, str], ...]:
        """The headers that determine the lifetime of a response and its revalidation."""
        fields = tuple(field for field in self.fields if field[0] in KEPT_HEADERS)
        return (*fields, _MOST_RESTRICTIVE) if self.is_cut else fields


def keep(lines: Lines) -> KeptHeaders:
    """The headers of *lines* that are stored and fit, in the order of ``_NAMES``."""
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
