"""From what a crawl learns and decides to a report, written when it ends.

What is kept is bounded: ``REP_MAX_ORIGINS`` origins, and of each some examples. The rest is
counted, and the page says so.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.observer import Observer
from scrapy_rep.observers.report.facts import facts
from scrapy_rep.observers.report.file import MAX_LINES, NO_ROOM, ROOM, digest, read_file, takes
from scrapy_rep.observers.report.model import (
    CrawlReport,
    Decisions,
    Disagreement,
    Event,
    OriginReport,
    PreviousReport,
    RefusedURL,
    SlowSite,
)
from scrapy_rep.observers.report.path import ReportPath
from scrapy_rep.observers.report.previous import read_previous
from scrapy_rep.observers.report.words import because
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin, by_host
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict
from scrapy_rep.rep.text import plural, printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import pause, time_of

logger = logging.getLogger(__name__)

# Seconds of work at the end before others get their turn.
_TURN = 0.05
# So many sets of product tokens are told apart.
_MAX_AGENTS = 20
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


class Recorder(Observer):
    """Writes a report to *path*.

    *clock* gives seconds since the epoch. Raises
    :exc:`~scrapy_rep.exceptions.ConfigurationError` if Jinja2 is not installed.
    """

    # Lines that allow are counted, too.
    observes_allowed = True

    def __init__(
        self, crawler: Crawler, settings: RepSettings, path: ReportPath, clock: Callable[[], float]
    ) -> None:
        try:
            from scrapy_rep.observers.report.page import write_page
        except ImportError as error:
            message = f"REP_REPORT needs Jinja2 ({error}): pip install jinja2"
            raise ConfigurationError(message) from None
        self._write = write_page
        self._crawler = crawler
        self._settings = settings
        self._path = path
        self._clock = clock
        self._began_at = clock()
        self._origins: dict[Origin, OriginSeen] = {}
        #: By product tokens, how many requests were made as these.
        self._agents: Counter[tuple[str, ...]] = Counter()
        self._decided: Counter[bool] = Counter()
        self._refusals: Counter[str] = Counter()
        # Requests that belong to none of the origins.
        self._unlisted = 0
        # What is left for robots.txt files.
        self._room = ROOM
        crawler.signals.connect(self._close, signals.spider_closed)

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        """Add it to the history of its origin."""
        if seen := self._seen(policy):
            self._room = seen.use(policy, self._room)
            seen.learn(policy, result, seconds)

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Count it for its origin and for the totals."""
        self._decided[verdict.allowed] += 1
        if not verdict.allowed:
            self._refusals[verdict.reason.value] += 1
        if agents and (tuple(agents) in self._agents or len(self._agents) < _MAX_AGENTS):
            self._agents[tuple(agents)] += 1
        if policy is not None and (seen := self._seen(policy)):
            seen.count(request.url, policy, verdict)
        else:
            self._unlisted += 1

    def compared(self, policy: Policy, disagreement: Disagreement) -> None:
        """A second opinion on a URL of the origin of *policy* that differs from ours."""
        if seen := self._seen(policy):
            seen.compare(disagreement)

    def _seen(self, policy: Policy) -> OriginSeen | None:
        """What was seen of the origin of *policy*; ``None`` where there is no place for it."""
        seen = self._origins.get(policy.origin)
        if seen is None and len(self._origins) < self._settings.max_origins:
            report = OriginReport(printable(str(policy.origin)))
            seen = self._origins[policy.origin] = OriginSeen(report)
            self._room = seen.use(policy, self._room)
        return seen

    async def _close(self) -> None:
        name = self._crawler.spider.name if self._crawler.spider else ""
        subject = f"Crawl of the spider {printable(name)}"
        path = self._path.path(name, self._began_at)
        extra = {"spider": self._crawler.spider}
        try:
            # Before its place is taken by the new one.
            previous = read_previous(self._path.previous(name), subject)
            # As for feeds and stores; that it is missing would show when the crawl is over.
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, await self._report(subject, previous))
        except OSError as error:
            logger.error("Cannot write the report %s: %s", path, error, extra=extra)
        except Exception as error:
            logger.debug("The report failed", exc_info=True, extra=extra)
            logger.error("Cannot make the report %s: %r", path, error, extra=extra)
        else:
            logger.info("Wrote the report on robots.txt to %s", path, extra=extra)

    async def _report(self, subject: str, previous: PreviousReport | None) -> CrawlReport:
        settings, stats = self._settings, self._crawler.stats
        assert stats is not None
        origins = []
        turn_ends = time.monotonic() + _TURN
        for origin in sorted(self._origins, key=by_host):
            origins.append(self._origins[origin].finish(settings))
            if time.monotonic() > turn_ends:
                # Other crawls in this process go on.
                await pause(0)
                turn_ends = time.monotonic() + _TURN
        unlisted = (
            f"{self._unlisted} requests are in the totals only: their origin is not known, or not "
            f"among the first {settings.max_origins} (REP_MAX_ORIGINS)."
        )
        return CrawlReport(
            subject=subject,
            began_at=self._began_at,
            made_at=self._clock(),
            origins=tuple(origins),
            decisions=Decisions(self._decided[True], self._decided[False]),
            refusals=tuple(self._refusals.most_common()),
            slow_sites=tuple(
                SlowSite(**site) for site in stats.get_value("robotstxt/slowest_sites", [])
            ),
            when_unreachable=settings.when_unreachable.value,
            previous=previous,
            facts=facts(self._crawler.settings, settings, self._agents),
            notes=(unlisted,) if self._unlisted else (),
        )
