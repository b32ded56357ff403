"""Records what a crawl fetches and decides, as it happens (``REP_AUDIT``, ``REP_ARCHIVE``)."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.utils.python import global_object_name

import scrapy_rep
from scrapy_rep.evidence import lines
from scrapy_rep.evidence.chain import to_json
from scrapy_rep.evidence.files import ArchiveFile, AuditLog, Region
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.observer import Exchange, Fetched, Observer
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.dialects import Access
from scrapy_rep.settings import DEFAULTS

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_rep.evidence.warc import WarcWriter
    from scrapy_rep.rep.caching.cache_entry import CacheEntry
    from scrapy_rep.rep.parsing.urls import Origin
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
_SCHEMES = ("http", "https")
# Bytes of bodies of the origins whose last line in the log is known.
_MAX_BYTES = 20 * 2**20
# Verdicts of one policy that are kept as text.
_MOST_VERDICTS = 32
_USERINFO = re.compile(r"(?<=//)[^/?#]*@")


@dataclass(slots=True)
class _Known:
    """The last line about an origin, with *digest*: that of *entry*.

    *rest* is the end of all lines about decisions by *policy*.
    """

    entry: CacheEntry
    digest: str
    policy: Policy | None = None
    rest: str = ""
    _verdicts: dict[tuple[object, ...], str] = field(default_factory=dict)

    def verdict_json(self, agents: tuple[str, ...], verdict: Verdict) -> str:
        """The fields about *verdict*, which is for *agents*: mostly they were needed before."""
        # What is compared is all that makes a difference, for one policy.
        key = (verdict.reason, verdict.line, agents, verdict.detail, verdict.sent_as)
        text = self._verdicts.get(key)
        if text is None:
            text = to_json({"agents": agents, **lines.verdict_fields(verdict)})[1:-1]
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = text
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
        self._archive = ArchiveFile(crawler, settings.archive) if settings.archive else None
        self._warc = _warc_writer() if settings.archive else None
        self.observes_allowed = self._log is not None
        #: Of fetches under way, what was answered.
        self._exchanges: defaultdict[Origin, list[Exchange]] = defaultdict(list)
        self._known: OrderedDict[Origin, _Known] = OrderedDict()
        self._known_bytes = 0
        #: The SHA-256 of bodies that are in the archive.
        self._archived: OrderedDict[str, None] = OrderedDict()
        self._package = f"scrapy-rep {scrapy_rep.__version__}"
        #: What is the same in all lines about decisions.
        self._constant = to_json(
            {
                "purposes": settings.honoured.purposes,
                "package": self._package,
                "dialect": settings.dialect.name,
            }
        )[1:]
        crawler.signals.connect(self._begin, signals.spider_opened)
        crawler.signals.connect(self._end, signals.spider_closed)

    # -- the beginning and the end --------------------------------------------------------

    def _begin(self, spider: Spider) -> None:
        region = None
        if self._archive is not None and self._warc is not None and self._archive.open(spider):
            fields = {
                "software": f"{self._package}, Scrapy {scrapy.__version__}",
                "format": "WARC File Format 1.1",
                "conformsTo": "http://iipc.github.io/warc-specifications/specifications/"
                "warc-format/warc-1.1/",
                "description": "robots.txt files, as they were fetched",
            }
            region = self._archive.append(self._warc.info(self._archive.name, fields))
        if self._log is not None:
            self._log.open(spider)
            self._log.append(self._start_fields(spider, region))

    def _start_fields(self, spider: Spider, region: Region | None) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "type": lines.START,
            "format": lines.FORMAT,
            "time": self._clock(),
            "spider": spider.name,
            "package": self._package,
            "scrapy": scrapy.__version__,
            "settings": self._deciding_settings(),
        }
        if region is not None and self._archive is not None:
            fields |= {"archive_file": self._archive.name, "archive": region}
        return fields

    def _deciding_settings(self) -> dict[str, Any]:
        settings = self._crawler.settings
        found = {name: settings[name] if name in settings else DEFAULTS[name] for name in DECIDING}
        overrides = found["REP_STATUS_OVERRIDES"]
        if isinstance(overrides, Mapping):
            # Scrapy makes an object of its own of it.
            found["REP_STATUS_OVERRIDES"] = dict(overrides)
        found["REP_PURPOSES"] = self._settings.honoured.purposes
        for name, parser in (
            ("ROBOTSTXT_PARSER", self._settings.parser),
            ("REP_FALLBACK_PARSER", self._settings.fallback_parser),
        ):
            found[name] = None if parser is None else global_object_name(parser)
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        found["DOWNLOAD_HANDLERS"] = {
            scheme: handlers[scheme]
            if isinstance(handlers[scheme], str)
            else global_object_name(handlers[scheme])
            for scheme in _SCHEMES
            if handlers.get(scheme) is not None
        }
        return found

    async def _end(self, reason: str) -> None:
        if self._archive is not None:
            self._archive.close()
        if self._warc is not None:
            count(self._crawler, "robotstxt/archive/record_count", self._warc.record_count)
        log = self._log
        if log is not None:
            fields = {"time": self._clock(), "reason": reason, "lines": log.line_count + 1}
            log.append({"type": lines.END, **fields})
            count(self._crawler, "robotstxt/audit/line_count", log.line_count)
            assert self._crawler.stats is not None
            self._crawler.stats.set_value("robotstxt/audit/digest", log.digest)
            await log.close()

    # -- fetches --------------------------------------------------------------------------

    def on_answer(self, origin: Origin, exchange: Exchange) -> None:
        """Keep the answer for the archive."""
        if self._archive is not None:
            self._exchanges[origin].append(exchange)

    def on_fetch(self, fetched: Fetched) -> None:
        """Archive the answers, and write the line about the fetch."""
        result, access, known, entry, now = fetched
        before = None if known is None else self._line_about(known, now)
        origin = entry.origin
        region = None
        if self._archive is not None and self._warc is not None:
            fields = {
                "outcome": result.detail,
                "failure": result.failure.value if result.failure else "",
                "accessResult": access.value,
            }
            exchanges = self._exchanges.pop(origin, [])
            records = self._warc.fetch(origin.robots_url, exchanges, fields, now)
            region = self._archive.append(records)
            self._is_archived_now(lines.digest_of_body(result.body))
        if self._log is None:
            return
        line: dict[str, Any] = {
            "type": lines.FETCH,
            "time": now,
            "origin": str(origin),
            "before": before,
            "result": lines.result_fields(result),
            "access": access.value,
            "entry": lines.entry_fields(entry),
        }
        if region is not None:
            line["archive"] = region
        self._remember(_Known(entry, self._log.append(line)))

    def _line_about(self, entry: CacheEntry, now: float) -> str | None:
        """The digest of the line about *entry*; it is written if there is none."""
        known = self._known.get(entry.origin)
        if known is not None and (known.entry is entry or known.entry == entry):
            return known.digest
        region = self._archive_stored(entry, now)
        if self._log is None:
            return None
        line: dict[str, Any] = {
            "type": lines.STORED,
            "time": now,
            "origin": str(entry.origin),
            "entry": lines.entry_fields(entry),
        }
        if region is not None:
            line["archive"] = region
        digest = self._log.append(line)
        self._remember(_Known(entry, digest))
        return digest

    def _archive_stored(self, entry: CacheEntry, now: float) -> Region | None:
        """Archive the file in *entry*, which came from the store, unless it is there."""
        if self._archive is None or self._warc is None or entry.stored is None:
            return None
        result = entry.stored.result
        if not result.body or not self._is_archived_now(lines.digest_of_body(result.body)):
            return None
        return self._archive.append(self._warc.resource(result.url, result.body, now))

    def _is_archived_now(self, digest: str) -> bool:
        """Remember that the body with *digest* is in the archive; whether that is news."""
        from scrapy_rep.evidence.warc import MAX_BODIES

        is_new = digest not in self._archived
        self._archived[digest] = None
        self._archived.move_to_end(digest)
        if len(self._archived) > MAX_BODIES:
            self._archived.popitem(last=False)
        return is_new

    def _remember(self, known: _Known) -> None:
        origin = known.entry.origin
        earlier = self._known.pop(origin, None)
        self._known_bytes += _size(known) - (_size(earlier) if earlier else 0)
        self._known[origin] = known
        while len(self._known) > self._settings.max_origins or (
            self._known_bytes > _MAX_BYTES and len(self._known) > 1
        ):
            self._known_bytes -= _size(self._known.popitem(last=False)[1])

    # -- decisions ------------------------------------------------------------------------

    def on_decision(
        self, request: Request, policy: Policy | None, agents: Sequence[str], verdict: Verdict
    ) -> None:
        """Write the line about a decision."""
        age = verdict.age
        if policy is None or age is None:
            fields = to_json({"agents": agents, **lines.verdict_fields(verdict)})[1:-1]
            self._decided(request, self._clock(), fields)
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
        self._log.append_json(
            f'{{"type":"{lines.DECISION}","time":{now!r},"url":{to_json(url)},'
            f"{fields},{self._constant}"
        )

    def _about(self, policy: Policy, now: float) -> _Known:
        """What lines about decisions by *policy* say about it."""
        known = self._known.get(policy.origin)
        if known is None or known.policy is not policy:
            digest = self._line_about(policy.entry, now)
            known = _Known(policy.entry, digest or "", policy, self._rest_of(policy, digest))
            self._remember(known)
        return known

    def _rest_of(self, policy: Policy, digest: str | None) -> str:
        is_file = policy.access is Access.SUCCESSFUL and policy.stored is not None
        fields = {
            "origin": str(policy.origin),
            "fetched_at": policy.fetched_at,
            "sha256": lines.digest_of_body(policy.stored.result.body)
            if is_file and policy.stored is not None
            else None,
            "rests_on": digest,
            "overrides": lines.overrides_of(
                policy, self._settings.status_overrides, self._settings.max_size
            ),
        }
        return f",{to_json(fields)[1:-1]}"


def _size(known: _Known) -> int:
    stored = known.entry.stored
    return 0 if stored is None else len(stored.result.body)


def _warc_writer() -> WarcWriter:
    try:
        from scrapy_rep.evidence.warc import WarcWriter
    except ImportError as error:
        raise ConfigurationError(
            f"REP_ARCHIVE needs warcio ({error}): pip install warcio"
        ) from None
    return WarcWriter()
