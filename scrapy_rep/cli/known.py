"""What is known of an origin, as a crawl that begins now would take it.

Here may live: from entry to values that can be shown, as text or as JSON. Here may
not live: how they are laid out, and where they come from.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from scrapy_rep.rep.access import FetchResult
from scrapy_rep.rep.cache_entry import CacheEntry
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.freshness import Bounds, Evaluation, Freshness, evaluate, lifetime, retry_at
from scrapy_rep.rep.lines import split_lines, within_limit
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import time_of

#: The standing of an origin that is fresh, but is fetched again in the background.
DUE = "due"

_PAGES = {
    Access.SUCCESSFUL: "pages are allowed or refused by its rules",
    Access.UNAVAILABLE: "all pages are allowed",
    Access.DISALLOWED: "all pages are refused",
}
_WHILE_UNREACHABLE = {
    WhenUnreachable.DISALLOW: "all pages are refused",
    WhenUnreachable.DEFER: "requests for pages are kept",
    WhenUnreachable.ALLOW: "all pages are let through all the same",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """A crawl with *settings* that begins *now*, in seconds since the epoch."""

    settings: RepSettings
    now: float

    @property
    def bounds(self) -> Bounds:
        """What holds for times in that crawl."""
        return self.settings.bounds(started=self.now)

    def read(self, entry: CacheEntry) -> Known:
        """What *entry* are to that crawl."""
        evaluation = self._judge(entry, self.now)
        return Known(entry, evaluation, self._end(entry, evaluation), self)

    def _judge(self, entry: CacheEntry, now: float) -> Evaluation:
        settings = self.settings
        return evaluate(entry, settings.dialect, settings.status_overrides, self.bounds, now)

    def _end(self, entry: CacheEntry, evaluation: Evaluation) -> float:
        """When it is used no longer, if nothing is fetched until then."""
        if evaluation.access is None or evaluation.due:
            return evaluation.until
        # Until then it is not even due; from then on, it is used until the end.
        return self._judge(entry, evaluation.until).until


@dataclass(frozen=True, slots=True)
class Known:
    """*entry*, what they come to, and when that ends; for *reader*."""

    entry: CacheEntry
    evaluation: Evaluation
    end: float
    reader: Reader

    @property
    def standing(self) -> str:
        """Where the origin stands: the values of :class:`Freshness`, or :data:`DUE`."""
        standing = self.evaluation.standing
        if standing is Freshness.FRESH and self.evaluation.due:
            return DUE
        if standing is Freshness.ABSENT:
            # A copy to whoever wrote it, but not to this reader.
            standing = Freshness.STALE
        return str(standing.value)

    @property
    def access(self) -> str | None:
        """What a crawl may do; ``None`` where it has to ask first."""
        return self.evaluation.access.value if self.evaluation.access else None

    @property
    def last(self) -> FetchResult:
        """How the last fetch ended that was not just a confirmation."""
        return self.entry.last

    @property
    def age(self) -> float:
        """Seconds since the copy came or was confirmed, or, without one, since the last try."""
        copy = self.entry.copy
        at = copy.confirmed_at if copy else time_of(self.entry)
        return max(0.0, self.reader.now - at)

    @property
    def left(self) -> float | None:
        """Seconds until it is used no longer; ``None`` for as long as the crawl runs."""
        return None if math.isinf(self.end) else max(0.0, self.end - self.reader.now)

    @property
    def octets(self) -> int | None:
        """Octets of the body of the copy, if there is one."""
        return len(self.entry.copy.result.body) if self.entry.copy else None

    @property
    def lifetime(self) -> float | None:
        """Seconds that the copy may be used from when it was confirmed, if it ends at all."""
        if self.entry.copy is None:
            return None
        seconds = lifetime(self.entry.copy, self.reader.settings.dialect, self.reader.bounds)
        return None if math.isinf(seconds) else seconds

    @property
    def retry_at(self) -> float | None:
        """When it is asked again, in an outage."""
        outage = self.entry.outage
        return None if outage is None else retry_at(outage, self.reader.bounds)

    @property
    def meaning(self) -> str:
        """What it means for the pages of the origin, in words."""
        access = self.evaluation.access
        if access is None:
            return "a page waits until robots.txt has been fetched again"
        if access is Access.UNREACHABLE:
            words = _WHILE_UNREACHABLE[self.reader.settings.when_unreachable]
        else:
            words = _PAGES[access]
        return f"{words}; robots.txt is fetched again" if self.evaluation.due else words

    def lines(self) -> list[str]:
        """The lines of the copy, as far as a crawl reads them, safe to print."""
        if self.entry.copy is None:
            return []
        settings = self.reader.settings
        body = within_limit(self.entry.copy.result.body, settings.max_size)
        return [printable(line) for line in split_lines(body, settings.dialect)]

    def summary(self) -> dict[str, Any]:
        """The least that is to be told, as JSON."""
        return {
            "origin": str(self.entry.origin),
            "standing": self.standing,
            "access": self.access,
            "status": self.last.status,
            "age": round(self.age, 3),
            "left": None if self.left is None else round(self.left, 3),
            "octets": self.octets,
        }

    def everything(self) -> dict[str, Any]:
        """All of it, as JSON."""
        copy, outage = self.entry.copy, self.entry.outage
        value = self.summary() | {"meaning": self.meaning, "copy": None, "outage": None}
        if copy is not None:
            value["copy"] = _result(copy.result) | {
                "fetched_at": iso(copy.fetched_at),
                "confirmed_at": iso(copy.confirmed_at),
                "lifetime": self.lifetime,
                "cut": copy.result.cut,
                "body": copy.result.body.decode("utf-8", "backslashreplace"),
            }
        if outage is not None:
            value["outage"] = _result(outage.result) | {
                "since": iso(outage.since),
                "last_at": iso(outage.last_at),
                "attempts": outage.attempts,
                "retry_at": iso(retry_at(outage, self.reader.bounds)),
            }
        return value


def _result(result: FetchResult) -> dict[str, Any]:
    return {
        "url": result.url,
        "redirects": result.redirects,
        "status": result.status,
        "failure": result.failure.value if result.failure else None,
        "detail": result.detail,
        "headers": [list(field) for field in result.headers],
    }


def iso(at: float) -> str:
    """The time *at*, in seconds since the epoch, as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
