"""What went wrong in a fetch, for people: the exception, and who raised it."""

from __future__ import annotations

import sys
import traceback

# Code between us and whoever raised: an exception from there is about the network.
_OURS = frozenset({"scrapy_rep", "scrapy", "twisted"}) | sys.stdlib_module_names


class FetchFailed(Exception):
    """A bound of ours ended a fetch, or its answer cannot be read. The text is for people."""


def describe(error: Exception) -> str:
    """*error* and, if code of a project or of another package raised it, where that is."""
    place = raised_in(error)
    where = f" (in {place})" if place else ""
    return f"{type(error).__name__}{where}: {_message(error)}"


def raised_in(error: Exception) -> str | None:
    """The module and line of the code that called what raised *error*.

    The first that is neither Scrapy's nor ours, such as a downloader middleware; ``None`` if
    there is none, as for most errors of the network.
    """
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _OURS:
            return f"{module}.{frame.f_code.co_name}, line {line}"
    return None


def _message(error: Exception) -> str:
    """What *error* says. Of several at once, Twisted would show how Python writes them."""
    failures = getattr(error.__cause__ or error, "reasons", ())
    said = "; ".join(f"{type(each.value).__name__}: {each.value}" for each in failures)
    return said or str(error)
