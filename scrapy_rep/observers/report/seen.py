"""What a crawl has seen of one origin so far, within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from scrapy_rep.observers.report.file import MAX_LINES, NO_ROOM, digest, read_file, takes
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
    """The *report* on an origin, and what is not in it before the end."""

    report: OriginReport
    #: The last robots.txt, if there was room for it, and in any case the hash of its body.
    _file: FetchResult | None = None
    _body_hash: int | None = None
    #: How many different ones there were, one after the other.
    _files: int = 0
    #: How often each line of the last one has allowed, or refused.
    _lines: Counter[tuple[int, bool]] = field(default_factory=Counter)
    _decided: Counter[bool] = field(default_factory=Counter)
    #: Why all URLs were refused, and how often.
    _refused_all: Counter[str] = field(default_factory=Counter)

    def use(self, policy: Policy, room: int) -> int:
        """*policy* holds from now on. Its file is kept if there is *room*; what is left of that."""
        last, file, report = policy.entry.last, policy.file, self.report
        report.access, report.status = policy.access.value, last.status
        report.details = (("URL", printable(last.url)), ("last answer", printable(last.detail)))
        report.outage = policy.entry.outage
        report.digest = digest(file) if file else ""
        if file is None or self._is_last(file):
            return room
        self._body_hash = hash(file.body)
        self._files += 1
        self._lines.clear()
        room += takes(self._file) if self._file else 0
        self._file = file if takes(file) <= room else None
        return room - takes(file) if self._file else room

    def learn(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """*policy* came by a fetch of *seconds*, or, *result* ``None``, from the store."""
        what = printable((result or policy.entry.last).detail)
        failed, report = policy.entry.outage is not None, self.report
        if result is None:
            event = Event(time_of(policy.entry), f"{what} (from the store)", None, failed)
        else:
            event = Event(time_of(policy.entry), what, seconds, failed)
            report.fetch_count += 1
        report.event_count += 1
        report.events = [*report.events, event][-MAX_EVENTS:]

    def count(self, url: str, policy: Policy, verdict: Verdict) -> None:
        """*verdict* on *url* by *policy*."""
        self._decided[verdict.allowed] += 1
        if not verdict.allowed:
            self._count_refused(url, verdict)
        if self._file and 0 < verdict.line <= MAX_LINES and self._is_last(policy.file):
            self._lines[verdict.line, verdict.allowed] += 1

    def _count_refused(self, url: str, verdict: Verdict) -> None:
        why, report = because(verdict.reason, printable(verdict.detail)), self.report
        if verdict.reason in _OF_ALL_URLS:
            self._refused_all[why] += 1
            if len(self._refused_all) > MAX_EXAMPLES:
                # Causes of failed fetches may differ each time.
                del self._refused_all[next(iter(self._refused_all))]
            return
        report.refused_url_count += 1
        if len(report.refused_urls) < MAX_EXAMPLES:
            rule = verdict.rule or verdict.record
            text = printable(str(rule)) if rule else why
            report.refused_urls.append(RefusedURL(printable(url), verdict.line, text))

    def compare(self, disagreement: Disagreement) -> None:
        """Another parser differs."""
        self.report.disagreement_count += 1
        if len(self.report.disagreements) < MAX_EXAMPLES:
            self.report.disagreements.append(disagreement)

    def finish(self, settings: RepSettings) -> OriginReport:
        """The report with all that is in it."""
        report = self.report
        report.file = read_file(self._file, settings, self._lines) if self._file else None
        report.decisions = Decisions(self._decided[True], self._decided[False])
        refused_all = self._refused_all.items()
        report.reasons = [f"{plural(n, 'request')} refused: {why}" for why, n in refused_all]
        report.notes = list(self._notes())
        return report

    def _notes(self) -> Iterator[str]:
        if self._files and self._file is None:
            yield NO_ROOM
        if self._file is not None and self.report.access != Access.SUCCESSFUL.value:
            yield "The robots.txt shown is an earlier one. Its rules are not in use."
        if self._files > 1:
            yield (
                f"The robots.txt has changed: this is version {self._files}. Decisions by earlier "
                "versions are not counted by line."
            )

    def _is_last(self, file: FetchResult | None) -> bool:
        # The hash of bytes is worked out once, and cannot be aimed at.
        return file is not None and self._body_hash == hash(file.body)
