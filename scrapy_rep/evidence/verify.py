"""Whether every line of an audit log follows from the archived bytes.

A log is not trusted: whatever is wrong with it is a :class:`Problem`.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO

from scrapy.settings import BaseSettings
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.evidence import lines
from scrapy_rep.evidence.chain import FIRST, digest_of, is_sealed
from scrapy_rep.evidence.lines import NotAsClaimed
from scrapy_rep.evidence.logged_crawl import LoggedCrawl
from scrapy_rep.evidence.replay import replay
from scrapy_rep.evidence.warc import WarcReader
from scrapy_rep.rep.caching.access import access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import update, validators
from scrapy_rep.rep.decision import Admit, Fetch, RequestFacts, decide
from scrapy_rep.rep.parsing.urls import Origin, is_robots_txt
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason, Verdict, origin_or_verdict
from scrapy_rep.rep.text import printable

# Entries that are kept in memory as objects, and policies.
_MOST_KEPT = 1_000
# What the time of a decision may be off: floating point, and a clock that is put right.
_SLACK = 1.0
_STOPPING = "the crawl is stopping"
# The fields of a decision that are about its policy, and the words for them.
_POLICY_FIELDS = {
    "overrides": "its settings that override",
    "sha256": "the SHA-256 of its robots.txt",
    "fetched_at": "the time of its copy",
}
_VERDICT_FIELDS = frozenset(
    {"allowed", "reason", "rule", "line", "group", "merged", "sent_as", "detail"}
)

_Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the line *number*, from 1; 0 for the archive, or for what is missing."""

    number: int
    what: str


@dataclass(slots=True)
class Summary:
    """What a log has, as far as it was checked."""

    lines: int = 0
    fetches: int = 0
    decisions: int = 0
    #: Decisions that were recomputed from archived bytes.
    recomputed: int = 0
    digest: str = FIRST


class Verifier:
    """Checks one log against its *archive*, a binary file; against none if ``None``.

    *project* are the settings of the project, which has the parsers that the log names. A log that
    is *unfinished*, because its crawl was killed, has no last line, or half of one.
    """

    def __init__(
        self, archive: BinaryIO | None, project: BaseSettings, *, unfinished: bool = False
    ) -> None:
        self._archive = archive
        self._archive_size = archive.seek(0, os.SEEK_END) if archive is not None else 0
        self._project = project
        self._unfinished = unfinished
        self.summary = Summary()
        self._warc = WarcReader()
        self._crawl: LoggedCrawl | None = None
        self._has_ended = False
        #: Where the records that the log names end.
        self._archive_end = 0
        #: By SHA-256, compressed: bodies of the archive.
        self._bodies: dict[str, bytes] = {}
        #: By digest, compressed: lines that decisions rest on.
        self._known: dict[str, bytes] = {}
        self._entries: LocalCache[str, tuple[CacheEntry, float]] = LocalCache(_MOST_KEPT)
        self._policies: LocalCache[tuple[str, float], Policy] = LocalCache(_MOST_KEPT)
        self._checks = {
            lines.START: self._start,
            lines.FETCH: self._fetch,
            lines.STORED: self._stored,
            lines.DECISION: self._decision,
            lines.END: self._end,
        }

    def check(self, log: Iterable[bytes]) -> Iterator[Problem]:
        """The problems of *log*, the lines of a file with their ends."""
        for number, line in enumerate(log, 1):
            self.summary.lines = number
            has_end = line.endswith(b"\n")
            if not has_end and self._unfinished:
                break
            if not has_end:
                # One problem, or two: the line itself may have been changed as well.
                yield Problem(number, "the line has no end: the end of the log is missing")
            yield from self._check_line(number, line.removesuffix(b"\n"))
        if not self.summary.lines:
            yield Problem(0, "the log is empty")
        elif not self._has_ended and not self._unfinished:
            yield Problem(
                0,
                "the log has no last line: the crawl was killed, or the end of the log was cut "
                "off (--unfinished accepts this)",
            )
        if self._archive_end < self._archive_size and not self._unfinished:
            yield Problem(0, f"no line is about the archive from byte {self._archive_end:,} on")

    def _check_line(self, number: int, line: bytes) -> Iterator[Problem]:
        if not is_sealed(self.summary.digest, line):
            yield Problem(number, "the line was changed, or what stood before it")
        self.summary.digest = digest_of(line) or FIRST
        try:
            self._check_content(line)
        except NotAsClaimed as wrong:
            yield Problem(number, printable(str(wrong), most=1000))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            detail = printable(f"{type(error).__name__}: {error}")
            yield Problem(number, f"the line cannot be read ({detail})")

    def _check_content(self, line: bytes) -> None:
        fields = json.loads(line)
        kind = fields["type"]
        if self._has_ended:
            raise NotAsClaimed("there is a line after the last one")
        if (kind == lines.START) != (self.summary.lines == 1):
            raise NotAsClaimed(f"a line of the type {kind!r} at this place")
        if kind not in self._checks:
            raise NotAsClaimed(f"unknown type {kind!r}")
        if kind in (lines.FETCH, lines.STORED):
            self._known[self.summary.digest] = zlib.compress(line, 1)
        self._checks[kind](fields)

    # -- the start and the end ----------------------------------------------------------

    def _start(self, fields: _Fields) -> None:
        self._crawl = LoggedCrawl(fields["settings"], fields["time"], self._project)
        if fields["format"] != lines.FORMAT:
            raise NotAsClaimed(f"format {fields['format']}, and this version reads {lines.FORMAT}")
        self._records(fields)

    @property
    def _running(self) -> LoggedCrawl:
        if self._crawl is None:
            raise NotAsClaimed("the settings in the first line cannot be used")
        return self._crawl

    def _end(self, fields: _Fields) -> None:
        self._has_ended = True
        written, number = fields["lines"], self.summary.lines
        if written != number:
            raise NotAsClaimed(f"{written} lines were written, and this is line {number}")

    # -- the archive --------------------------------------------------------------------

    def _records(self, fields: _Fields) -> bytes | None:
        """The records of a line; ``None`` where it names none, or there is no archive."""
        if "archive" not in fields or self._archive is None:
            return None
        start, size, digest = fields["archive"]
        expected, self._archive_end = self._archive_end, start + size
        if start != expected:
            raise NotAsClaimed(f"its records begin at byte {start:,}, not {expected:,}")
        if size < 0 or self._archive_end > self._archive_size:
            raise NotAsClaimed(f"the archive ends before byte {self._archive_end:,}")
        self._archive.seek(start)
        records = self._archive.read(size)
        if sha256(records).hexdigest() != digest:
            where = f"in the {size:,} bytes from byte {start:,} on"
            raise NotAsClaimed(f"the archive was changed {where}")
        return records

    def _keep_body(self, body: bytes) -> None:
        self._bodies[lines.digest_of_body(body)] = zlib.compress(body, 1)

    def _body(self, digest: str) -> bytes:
        if digest not in self._bodies:
            what = f"the robots.txt with the SHA-256 {digest}"
            raise NotAsClaimed(f"the archive does not have {what}")
        return zlib.decompress(self._bodies[digest])

    # -- fetches ------------------------------------------------------------------------

    def _fetch(self, fields: _Fields) -> None:
        self.summary.fetches += 1
        records = self._records(fields)
        if self._archive is None:
            return
        if records is None:
            raise NotAsClaimed("the fetch is not in the archive")
        settings, origin = self._running.settings, Origin.of(fields["origin"])
        answers, said = self._warc.read(records), fields["result"]
        limits = (settings.max_redirects, settings.max_size)
        result = replay(origin.robots_url, answers, said, *limits)
        self._keep_body(result.body)
        _compare("the result of the fetch", lines.result_fields(result), said)
        access = access_result(result, settings.dialect, settings.status_overrides)
        _compare("the access result", access.value, fields["access"])
        before = fields["before"] and self._entry(fields["before"], origin)[0]
        conditional = bool(validators(before))
        entry = update(before, origin, result, access, fields["time"], conditional=conditional)
        _compare("what is known after the fetch", lines.entry_fields(entry), fields["entry"])

    def _stored(self, fields: _Fields) -> None:
        records = self._records(fields)
        for answer in self._warc.read(records) if records is not None else ():
            self._keep_body(answer.body)

    def _entry(self, digest: str, origin: Origin) -> tuple[CacheEntry, float]:
        """The entry in the earlier line with this *digest*, and the time of that line."""
        if digest not in self._entries:
            if digest not in self._known:
                raise NotAsClaimed(f"no earlier line has the digest {digest}")
            fields = json.loads(zlib.decompress(self._known[digest]))
            of = Origin.of(fields["origin"])
            entry = lines.read_entry(of, fields["entry"], self._body)
            self._entries[digest] = entry, fields["time"]
        entry, made_at = self._entries[digest]
        if entry.origin != origin:
            raise NotAsClaimed("the line that it rests on is about another origin")
        return entry, made_at

    # -- decisions ----------------------------------------------------------------------

    def _decision(self, fields: _Fields) -> None:
        self.summary.decisions += 1
        crawl = self._running
        if fields["reason"] == Reason.RESERVED.value:
            # The page itself refuses, and is not in the archive.
            if fields["allowed"]:
                raise NotAsClaimed("a page that refuses is allowed")
        elif "rests_on" not in fields:
            _check_without_policy(fields, crawl)
        elif self._archive is None:
            if fields["rests_on"] not in self._known:
                raise NotAsClaimed("no earlier line has the digest that it rests on")
        else:
            self._recompute(fields, crawl)
            self.summary.recomputed += 1

    def _recompute(self, fields: _Fields, crawl: LoggedCrawl) -> None:
        facts = RequestFacts(fields["url"], tuple(fields["agents"]))
        now, digest = fields["time"], fields["rests_on"]
        origin = origin_or_verdict(facts.url)
        if not isinstance(origin, Origin):
            raise NotAsClaimed("its URL has no robots.txt")
        policy = self._policy(digest, origin, crawl, now)
        ours = lines.policy_fields(policy, digest, crawl.settings)
        for name, what in _POLICY_FIELDS.items():
            _compare(what, ours[name], fields[name])
        decision = decide(policy, facts, crawl.settings.terms, now)
        assert not isinstance(decision, Fetch)
        if isinstance(decision, Admit):
            verdict = policy.verdict(facts.url, facts.agents, now)
        else:
            verdict = decision.verdict
        said = {name: fields[name] for name in fields if name in _VERDICT_FIELDS}
        _compare("its verdict", lines.verdict_fields(verdict), said)
        age = verdict.age or 0.0
        if "age" in fields and abs(age - fields["age"]) > _SLACK:
            raise NotAsClaimed(f"its copy was {age:.3f} s old, and not {fields['age']} s")

    def _policy(self, digest: str, origin: Origin, crawl: LoggedCrawl, now: float) -> Policy:
        """The policy by the line with the *digest*, as it was at the time *now* of a decision."""
        entry, made_at = self._entry(digest, origin)
        if now < made_at - _SLACK:
            raise NotAsClaimed("it was made before the line that it rests on")
        evaluation = crawl.evaluate(entry, now)
        if evaluation.access is None and now <= made_at + crawl.settings.max_wait + _SLACK:
            # A request that waited for a policy may use it once, even if it has expired.
            evaluation = crawl.evaluate(entry, made_at)
        if evaluation.access is None:
            raise NotAsClaimed("what it rests on was too old, and had to be fetched again first")
        key = (digest, evaluation.until)
        if key not in self._policies:
            self._policies[key] = crawl.policy(entry, evaluation)
        return self._policies[key]


def _check_without_policy(fields: _Fields, crawl: LoggedCrawl) -> None:
    """Check a decision that rests on no robots.txt."""
    allowed, reason, url = fields["allowed"], fields["reason"], fields["url"]
    if reason == lines.DONT_OBEY:
        if not allowed or fields["overrides"] != [lines.DONT_OBEY]:
            raise NotAsClaimed("a request that obeys no robots.txt says otherwise")
    elif reason == Reason.ROBOTS_TXT_ITSELF.value:
        if not allowed or not is_robots_txt(url, crawl.settings.dialect):
            raise NotAsClaimed("its URL is not that of a robots.txt")
    elif allowed or fields.get("detail") != _STOPPING:
        verdict = origin_or_verdict(url)
        if not isinstance(verdict, Verdict):
            raise NotAsClaimed("it names no line that it rests on")
        _compare("its verdict", [verdict.allowed, verdict.reason.value], [allowed, reason])


def _compare(what: str, ours: object, said: object) -> None:
    # As JSON, which has no tuples.
    ours = json.loads(json.dumps(ours))
    if ours != said:
        shown, claimed = (printable(json.dumps(value)) for value in (ours, said))
        raise NotAsClaimed(f"{what} is {shown}, and the log says {claimed}")
