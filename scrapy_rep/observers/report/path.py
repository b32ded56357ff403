"""From the value of ``REP_REPORT`` to the file of a crawl's report."""

from __future__ import annotations

import glob
import os
import time
from dataclasses import dataclass
from pathlib import Path

_ACCEPTED = (
    "accepted: the path of a file, in which %(name)s is the spider's name, %(time)s when the "
    "crawl began, and %% a percent sign; or None for no report"
)


@dataclass(frozen=True, slots=True)
class ReportPath:
    """A path with ``%(name)s`` and ``%(time)s`` in it, as in Scrapy's feeds."""

    template: str

    def path(self, name: str, began_at: float) -> Path:
        """The file for a crawl of the spider *name* that *began_at* (seconds since the epoch)."""
        began = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(began_at))
        return Path(self.template % {"name": name, "time": began})

    def previous(self, name: str) -> Path | None:
        """The newest file for a crawl of the spider *name*, whenever that began."""
        template = glob.escape(self.template)
        any_time = {"name": glob.escape(name), "time": "????-??-??T??-??-??"}
        found = (Path(file) for file in glob.glob(template % any_time))  # noqa: PTH207
        # By name where they are equally old, for the time may be in it.
        return max(found, key=lambda file: (file.stat().st_mtime, file), default=None)


def parse_path(value: object) -> ReportPath:
    """The file that *value*, of ``REP_REPORT``, names.

    Raises :exc:`ValueError` that says what is accepted.

    >>> parse_path("reports/%(name)s.html").path("books", 0.0).as_posix()
    'reports/books.html'
    """
    template = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(template, str) or "\0" in template:
        raise ValueError(_ACCEPTED)
    if "://" in template:
        raise ValueError(f"no URL, the file is written on this machine; {_ACCEPTED}")
    path = ReportPath(template)
    try:
        has_name = bool(path.path("spider", 0.0).name) and not template.endswith(("/", "\\"))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{type(error).__name__}: {error}; {_ACCEPTED}") from None
    if not has_name:
        raise ValueError(f"names no file; {_ACCEPTED}")
    return path
