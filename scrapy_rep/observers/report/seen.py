"""What a crawl has seen of one origin so far, within bounds."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scrapy_rep.observers.report.file import (
    MAX_LINES,
    NO_ROOM,
    digest,
    outage_report,
    read_file,
    takes,
)
from scrapy_rep.observers.report.model import (
    Decisions,
    Disagreement,
    Event,
    OriginReport,
    RefusedURL,
)
from scrapy_rep.observers.report.words import because
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import plural, printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import time_of

# These refuse everything, so one sentence is enough for all URLs.
_OF_ALL_URLS = {Reason.UNREACHABLE, Reason.DISALLOWED, Reason.UNREADABLE}
#: How many are kept of one origin: the first refused URLs and disagreements,
MAX_EXAMPLES = 10
#: and the last events.
MAX_EVENTS = 20


@dataclass(slots=True, eq=False)
class OriginSeen:
    """The last policy of an origin without its rules, and what was decided about requests."""

    #: What the last policy says.
    _report: OriginReport = field(init=False)
    #: The last robots.txt, if there was room for it.
    _file: FetchResult | None = None
    _body_hash: int | None = None
    _digest: str = ""
    #: How many different ones there were, one after the other.
    _files: int = 0
    #: How often each line of the last one has allowed, or refused.
    _lines: Counter[tuple[int, bool]] = field(default_factory=Counter)
    _decided: Counter[bool] = field(default_factory=Counter)
    #: Why all URLs were refused, and how often.
    _refused_all: Counter[str] = field(default_factory=Counter)
    _refused_urls: list[RefusedURL] = field(default_factory=list)
    _refused_url_count: int = 0
    _fetch_count: int = 0
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))
    _event_count: int = 0
    _disagreements: list[Disagreement] = field(default_factory=list)
    _disagreement_count: int = 0

    def use(self, policy: Policy, room: int) -> int:
        """*policy* holds from now on. Its file is kept if there is *room*; what is left of that."""
        last = policy.entry.last
        self._report = OriginReport(
            origin=printable(str(policy.origin)),
            access=policy.access.value,
            status=last.status,
            details=(("URL", printable(last.url)), ("last answer", printable(last.detail))),
            outage=outage_report(policy.entry),
        )
        file = _file_of(policy)
        if file is None or self._is_last(file):
            return room
        self._body_hash = hash(file.body)
        self._digest = digest(file)
        self._files += 1
        self._lines.clear()
        room += takes(self._file) if self._file else 0
        self._file = file if takes(file) <= room else None
        return room - takes(file) if self._file else room

    def learn(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """*policy* came by a fetch of *seconds*, or, *result* ``None``, from the store."""
        what = printable((result or policy.entry.last).detail)
        if result is None:
            what += " (from the store)"
        else:
            self._fetch_count += 1
        took = None if result is None else seconds
        failed = policy.entry.outage is not None
        self._event_count += 1
        self._events.append(Event(time_of(policy.entry), what, took, failed))

    def count(self, url: str, policy: Policy, verdict: Verdict) -> None:
        """*verdict* on *url* by *policy*."""
        self._decided[verdict.allowed] += 1
        if not verdict.allowed:
            self._count_refused(url, verdict)
        if self._file is None or not 0 < verdict.line <= MAX_LINES:
            return
        file = _file_of(policy)
        if file is not None and self._is_last(file):
            self._lines[verdict.line, verdict.allowed] += 1

    def _count_refused(self, url: str, verdict: Verdict) -> None:
        why = because(verdict.reason, printable(verdict.detail))
        if verdict.reason in _OF_ALL_URLS:
            self._refused_all[why] += 1
            if len(self._refused_all) > MAX_EXAMPLES:
                # Causes of failed fetches may differ each time.
                del self._refused_all[next(iter(self._refused_all))]
            return
        self._refused_url_count += 1
        if len(self._refused_urls) < MAX_EXAMPLES:
            rule = verdict.rule or verdict.record
            text = printable(str(rule)) if rule else why
            self._refused_urls.append(RefusedURL(printable(url), verdict.line, text))

    def compare(self, disagreement: Disagreement) -> None:
        """Another parser differs."""
        self._disagreement_count += 1
        if len(self._disagreements) < MAX_EXAMPLES:
            self._disagreements.append(disagreement)

    def report(self, settings: RepSettings) -> OriginReport:
        """All of it."""
        return replace(
            self._report,
            file=read_file(self._file, settings, self._lines) if self._file else None,
            digest=self._digest if self._has_rules else "",
            decisions=Decisions(self._decided[True], self._decided[False]),
            reasons=tuple(
                f"{plural(count, 'request')} refused: {why}"
                for why, count in self._refused_all.items()
            ),
            refused_urls=tuple(self._refused_urls),
            refused_url_count=self._refused_url_count,
            fetch_count=self._fetch_count,
            events=tuple(self._events),
            event_count=self._event_count,
            disagreements=tuple(self._disagreements),
            disagreement_count=self._disagreement_count,
            notes=tuple(self._notes()),
        )

    @property
    def _has_rules(self) -> bool:
        return self._report.access == Access.SUCCESSFUL.value

    def _notes(self) -> Iterator[str]:
        if self._files and self._file is None:
            yield NO_ROOM
        if self._file is not None and not self._has_rules:
            yield "The robots.txt shown is an earlier one. Its rules are not in use."
        if self._files > 1:
            yield (
                f"The robots.txt has changed: this is version {self._files}. Decisions by earlier "
                "versions are not counted by line."
            )

    def _is_last(self, file: FetchResult) -> bool:
        # The hash of bytes is worked out once, and cannot be aimed at.
        return self._body_hash == hash(file.body)


def _file_of(policy: Policy) -> FetchResult | None:
    """The robots.txt whose rules *policy* goes by, if it goes by rules."""
    if policy.access is Access.SUCCESSFUL and policy.stored is not None:
        return policy.stored.result
    return None
