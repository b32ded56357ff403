"""What a crawl has seen of one origin so far, within bounds."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from scrapy_rep.observers.report.file import MAX_LINES, NO_ROOM, read_file, takes
from scrapy_rep.observers.report.model import (
    Decisions,
    Disagreement,
    News,
    OriginReport,
    RefusedURL,
)
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Verdict
from scrapy_rep.rep.text import printable
from scrapy_rep.stores.base import time_of

if TYPE_CHECKING:
    from scrapy_rep.settings import RepSettings

#: How many are kept of one origin: the first refused URLs and disagreements,
MAX_EXAMPLES = 10
#: and the last news.
MAX_NEWS = 20


class OriginSeen:
    """The last policy of an origin without what is large in it, and what became of requests."""

    __slots__ = (
        "_access",
        "_body_hash",
        "_decided",
        "_details",
        "_disagreement_count",
        "_disagreements",
        "_fetch_count",
        "_file",
        "_files",
        "_lines",
        "_news",
        "_news_count",
        "_refused_urls",
        "_status",
        "takes",
    )

    def __init__(self, policy: Policy, room: int) -> None:
        #: Of the room for files, what ours takes.
        self.takes = 0
        self._file: FetchResult | None = None
        self._body_hash: int | None = None
        #: How many different ones there were, one after the other.
        self._files = 0
        #: How often each line of the last one has allowed, or refused.
        self._lines: Counter[tuple[int, bool]] = Counter()
        self._decided: Counter[bool] = Counter()
        self._refused_urls: list[RefusedURL] = []
        self._fetch_count = 0
        self._news: deque[News] = deque(maxlen=MAX_NEWS)
        self._news_count = 0
        self._disagreements: list[Disagreement] = []
        self._disagreement_count = 0
        self.use(policy, room)

    def use(self, policy: Policy, room: int) -> None:
        """*policy* holds from now on. Its file is kept if it takes no more than *room*."""
        self._access = policy.access
        last = policy.entry.last
        self._status = last.status
        self._details = (("URL", printable(last.url)), ("last answer", printable(last.detail)))
        file = _file_of(policy)
        if file is None or self._is_last(file):
            return
        self._body_hash = hash(file.body)
        self._files += 1
        self._lines.clear()
        fits = takes(file) <= room
        self._file = file if fits else None
        self.takes = takes(file) if fits else 0

    def learn(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """*policy* came by a fetch of *seconds*, or, *result* ``None``, from the store."""
        at = time_of(policy.entry)
        self._news_count += 1
        if result is None:
            what = f"{printable(policy.entry.last.detail)} (from the store)"
            self._news.append(News(at, what))
        else:
            self._fetch_count += 1
            self._news.append(News(at, printable(result.detail), seconds))

    def count(self, url: str, policy: Policy, verdict: Verdict) -> None:
        """*verdict* on *url* by *policy*."""
        self._decided[verdict.allowed] += 1
        if not verdict.allowed and len(self._refused_urls) < MAX_EXAMPLES:
            why = str(verdict.rule or verdict)
            self._refused_urls.append(RefusedURL(printable(url), verdict.line, why))
        if self._file is None or not 0 < verdict.line <= MAX_LINES:
            return
        file = _file_of(policy)
        if file is not None and self._is_last(file):
            self._lines[verdict.line, verdict.allowed] += 1

    def compare(self, disagreement: Disagreement) -> None:
        """A second opinion that differs."""
        self._disagreement_count += 1
        if len(self._disagreements) < MAX_EXAMPLES:
            self._disagreements.append(disagreement)

    def report(self, origin: str, settings: RepSettings) -> OriginReport:
        """All of it, about *origin*."""
        file = self._file
        return OriginReport(
            origin=origin,
            access=self._access.value,
            status=self._status,
            details=self._details,
            file=read_file(file, settings, self._lines) if file else None,
            decisions=Decisions(self._decided[True], self._decided[False]),
            refused_urls=tuple(self._refused_urls),
            fetch_count=self._fetch_count,
            news=tuple(self._news),
            news_count=self._news_count,
            disagreements=tuple(self._disagreements),
            disagreement_count=self._disagreement_count,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> list[str]:
        notes = []
        if self._files and self._file is None:
            notes.append(NO_ROOM)
        if self._file is not None and self._access is not Access.SUCCESSFUL:
            notes.append("The robots.txt is the one of before; its rules are not in use.")
        if self._files > 1:
            notes.append(
                f"The robots.txt has changed: this is number {self._files}, and decisions "
                "of the ones before are not counted by line."
            )
        return notes

    def _is_last(self, file: FetchResult) -> bool:
        # The hash of bytes is worked out once, and cannot be aimed at.
        return self._body_hash == hash(file.body)


def _file_of(policy: Policy) -> FetchResult | None:
    """The robots.txt whose rules *policy* goes by, if it goes by rules."""
    if policy.access is Access.SUCCESSFUL and policy.copy is not None:
        return policy.copy.result
    return None
