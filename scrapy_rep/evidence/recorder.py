"""Records what a crawl fetches and decides, as it happens (``REP_AUDIT``, ``REP_ARCHIVE``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.utils.python import global_object_name

import scrapy_rep
from scrapy_rep.evidence import lines
from scrapy_rep.evidence.chain import to_json
from scrapy_rep.evidence.files import Archive, AuditLog, Region
from scrapy_rep.observers.observer import Exchange, Fetched, Observer
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.caching.recently_used import RecentlyUsed
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import DEFAULTS

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.caching.cache_entry import CacheEntry
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.rep.rules.verdict import Verdict
    from scrapy_rep.settings import RepSettings

#: The settings that decide about requests, and so are in the log.
DECIDING = (
    "REP_CONTENT_USE",
    "REP_CRAWL_DELAY",
    "REP_DIALECT",
    "REP_MAX_AGE",
    "REP_MAX_REDIRECTS",
    "REP_MAX_SIZE",
    "REP_MAX_WAIT",
    "REP_MIN_AGE",
    "REP_PURPOSES",
    "REP_REQUEST_RATE",
    "REP_RETRY_DELAY",
    "REP_RETRY_MAX_DELAY",
    "REP_STATUS_OVERRIDES",
    "REP_UNREACHABLE",
    "REP_UNREACHABLE_GRACE",
    "REP_VISIT_TIME",
)
# Bytes of bodies of the origins whose last line in the log is known.
_MAX_BYTES = 20 * 2**20
# Verdicts of one policy that are kept as text.
_MOST_VERDICTS = 32
_PACKAGE = f"scrapy-rep {scrapy_rep.__version__}"
_USERINFO = re.compile(r"(?<=//)[^/?#]*@")


@dataclass(slots=True)
class _Known:
    """The last line about an origin, with *digest*: that of *entry*.

    *rest* is the end of all lines about decisions by *policy*.
    """

    entry: CacheEntry
    digest: str | None
    policy: Policy | None = None
    rest: str = ""
    _verdicts: dict[tuple[object, ...], str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the body in the entry."""
        return len(self.entry.stored.result.body) if self.entry.stored else 0

    def verdict_json(self, agents: tuple[str, ...], verdict: Verdict) -> str:
        """The fields about *verdict*, which is for *agents*: mostly they were needed before."""
        # What is compared is all that makes a difference, for one policy.
        key = (verdict.reason, verdict.line, agents, verdict.detail, verdict.sent_as)
        text = self._verdicts.get(key)
        if text is None:
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            text = self._verdicts[key] = _verdict_json(agents, verdict)
        return text


class EvidenceRecorder(Observer):
    """Writes the audit log and the archive of one crawl.

    *clock* gives seconds since the epoch. Raises
    :exc:`~scrapy_rep.exceptions.ConfigurationError` where warcio is not installed and an
    archive is asked for.
    """

    def __init__(self, crawler: Crawler, settings: RepSettings, clock: Callable[[], float]) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        self._log = AuditLog(crawler, settings.audit) if settings.audit else None
        self._archive = Archive(crawler, settings.archive) if settings.archive else None
        self.observes_allowed = self._log is not None
        self._known = RecentlyUsed[Origin, _Known](
            attrgetter("size"), _MAX_BYTES, settings.max_origins
        )
        #: What is the same in all lines about decisions.
        self._constant = to_json(
            {
                "purposes": settings.honoured.purposes,
                "package": _PACKAGE,
                "dialect": settings.dialect.name,
            }
        )[1:]
        crawler.signals.connect(self._begin, signals.spider_opened)
        crawler.signals.connect(self._end, signals.spider_closed)

    # -- the beginning and the end --------------------------------------------------------

    def _begin(self, spider: Spider) -> None:
        region, archive_file = None, {}
        if self._archive is not None:
            region = self._archive.open(spider, f"{_PACKAGE}, Scrapy {scrapy.__version__}")
            archive_file = {"archive_file": self._archive.name} if region else {}
        if self._log is not None:
            self._log.open(spider)
        self._write(
            lines.START,
            region,
            format=lines.FORMAT,
            time=self._clock(),
            spider=spider.name,
            package=_PACKAGE,
            scrapy=scrapy.__version__,
            settings=self._deciding_settings(),
            **archive_file,
        )

    def _deciding_settings(self) -> dict[str, Any]:
        settings = self._crawler.settings
        found = {name: settings[name] if name in settings else DEFAULTS[name] for name in DECIDING}
        overrides = found["REP_STATUS_OVERRIDES"]
        if isinstance(overrides, Mapping):
            # Scrapy makes an object of its own of it.
            found["REP_STATUS_OVERRIDES"] = dict(overrides)
        found["REP_PURPOSES"] = self._settings.honoured.purposes
        found["ROBOTSTXT_PARSER"] = _name(self._settings.parser)
        found["REP_FALLBACK_PARSER"] = _name(self._settings.fallback_parser)
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        found["DOWNLOAD_HANDLERS"] = {
            scheme: _name(handlers[scheme])
            for scheme in ("http", "https")
            if handlers.get(scheme) is not None
        }
        return found

    async def _end(self, reason: str) -> None:
        if self._archive is not None:
            self._archive.close()
        log = self._log
        if log is not None:
            number = log.line_count + 1
            self._write(lines.END, None, time=self._clock(), reason=reason, lines=number)
            count(self._crawler, "robotstxt/audit/line_count", log.line_count)
            assert self._crawler.stats is not None
            self._crawler.stats.set_value("robotstxt/audit/digest", log.digest)
            await log.close()

    def _write(self, kind: str, region: Region | None, **fields: object) -> str | None:
        """Write a line of the type *kind*, whose records are in *region*; its digest."""
        if self._log is None:
            return None
        archive = {} if region is None else {"archive": region}
        return self._log.append(to_json({"type": kind, **fields, **archive}))

    # -- fetches --------------------------------------------------------------------------

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """Keep the answer for the archive."""
        if self._archive is not None:
            self._archive.add_answer(origin, exchange)

    def on_fetch(self, fetched: Fetched) -> None:
        """Archive the answers, and write the line about the fetch."""
        result, access, known, entry, now = fetched
        before = None if known is None else self._line_about(known, now)
        digest = self._write(
            lines.FETCH,
            self._archive.add_fetch(fetched) if self._archive else None,
            time=now,
            origin=str(entry.origin),
            before=before,
            result=lines.result_fields(result),
            access=access.value,
            entry=lines.entry_fields(entry),
        )
        self._known.put(entry.origin, _Known(entry, digest))

    def _line_about(self, entry: CacheEntry, now: float) -> str | None:
        """The digest of the line about *entry*; it is written if there is none."""
        known = self._known.get(entry.origin)
        if known is not None and (known.entry is entry or known.entry == entry):
            return known.digest
        digest = self._write(
            lines.STORED,
            self._archive.add_stored(entry, now) if self._archive else None,
            time=now,
            origin=str(entry.origin),
            entry=lines.entry_fields(entry),
        )
        self._known.put(entry.origin, _Known(entry, digest))
        return digest

    # -- decisions ------------------------------------------------------------------------

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Write the line about a decision."""
        age = verdict.age
        if self._log is None:
            return
        if policy is None or age is None:
            self._decided(request, self._clock(), _verdict_json(agents, verdict))
            return
        # The verdict may be older than this call: a refused request waits for its turn.
        now = policy.fetched_at + age if age else self._clock()
        known = self._about(policy, now)
        fields = known.verdict_json(tuple(agents), verdict)
        self._decided(request, now, f'"age":{age:.3f},{fields}{known.rest}')

    def on_exempt(self, request: Request, why: str) -> None:
        """Write the line about a request that is let through without a look at a robots.txt."""
        fields: dict[str, Any] = {"allowed": True, "reason": why}
        if why == lines.DONT_OBEY:
            fields["overrides"] = [why]
        self._decided(request, self._clock(), to_json(fields)[1:-1])

    def _decided(self, request: Request, now: float, fields: str) -> None:
        assert self._log is not None
        url = request.url
        if "@" in url:
            url = _USERINFO.sub("", url)
        # Not a dict: this is done for each request.
        self._log.append(
            f'{{"type":"{lines.DECISION}","time":{now!r},"url":{to_json(url)},'
            f"{fields},{self._constant}"
        )

    def _about(self, policy: Policy, now: float) -> _Known:
        """What lines about decisions by *policy* say about it."""
        known = self._known.get(policy.origin)
        if known is None or known.policy is not policy:
            digest = self._line_about(policy.entry, now)
            rest = to_json(lines.policy_fields(policy, digest, self._settings))[1:-1]
            known = _Known(policy.entry, digest, policy, f",{rest}")
            self._known.put(policy.origin, known)
        return known


def _verdict_json(agents: Sequence[str], verdict: Verdict) -> str:
    return to_json({"agents": agents, **lines.verdict_fields(verdict)})[1:-1]


def _name(found: type | str | None) -> str | None:
    return found if found is None or isinstance(found, str) else global_object_name(found)
