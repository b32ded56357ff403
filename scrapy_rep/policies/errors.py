"""Descriptions of failed fetches: the exception, and the code that raised it."""

from __future__ import annotations

import sys
import traceback

# An exception that only this code was involved in is about the network.
_OURS = frozenset({"scrapy_rep", "scrapy", "twisted"}) | sys.stdlib_module_names


class FetchFailed(Exception):
    """A limit ended a fetch, or its response cannot be read. The text is for logs."""


def describe(error: Exception) -> str:
    """*error* as text, with its location if code of a project or another package raised it."""
    if isinstance(error, FetchFailed):
        return str(error)
    place = raised_in(error)
    where = f" (in {place})" if place else ""
    # For several errors at once, Twisted would show only their repr.
    failures = getattr(error.__cause__ or error, "reasons", ())
    said = "; ".join(f"{type(each.value).__name__}: {each.value}" for each in failures)
    return f"{type(error).__name__}{where}: {said or error}"


def raised_in(error: Exception) -> str | None:
    """The first module and line in the traceback that belong neither to Scrapy nor to us.

    For example, a downloader middleware. ``None`` if there is none, as for most network errors.
    """
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _OURS:
            return f"{module}.{frame.f_code.co_name}, line {line}"
    return None
