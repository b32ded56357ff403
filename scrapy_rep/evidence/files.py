"""The files of the evidence: the audit log, and the archive."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING

from scrapy.utils.datatypes import LocalCache

from scrapy_rep.evidence.chain import FIRST, seal
from scrapy_rep.evidence.lines import digest_of_body
from scrapy_rep.exceptions import ConfigurationError
from scrapy_rep.observers.feed import Feed, new_file, with_parameters
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_rep.observers.observer import Exchange, Fetched
    from scrapy_rep.rep.caching.access import FetchResult
    from scrapy_rep.rep.caching.cache_entry import CacheEntry
    from scrapy_rep.rep.parsing.urls import Origin
    from scrapy_rep.settings import FeedSpec

logger = logging.getLogger(__name__)

#: Where records are in the archive: the first byte, how many bytes, and their SHA-256.
Region = tuple[int, int, str]

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")
_STANDARD = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class AuditLog(Feed):
    """The audit log of one crawl: each line is sealed and written at once."""

    def __init__(self, crawler: Crawler, spec: FeedSpec) -> None:
        super().__init__(crawler, spec, own_file=True)
        #: The digest of the last line.
        self.digest = FIRST

    def append(self, content: str) -> str:
        """Write a line with *content*, a JSON object, and return its digest."""
        line, digest = seal(self.digest, content)
        if self.write_line(line):
            self.digest = digest
        return digest


class Archive:
    """The archive of one crawl, a new file in *directory*.

    If it cannot be written, one line is logged, and the crawl continues without it. Raises
    :exc:`~scrapy_rep.exceptions.ConfigurationError` if warcio is not installed.
    """

    def __init__(self, crawler: Crawler, directory: str) -> None:
        try:
            from scrapy_rep.evidence.warc import MAX_BODIES, WarcWriter
        except ImportError as error:
            message = f"REP_ARCHIVE needs warcio ({error}): pip install warcio"
            raise ConfigurationError(message) from None
        self._crawler = crawler
        self._directory = directory
        self._warc = WarcWriter()
        self._path = Path()
        #: ``None`` while there is nothing to write to.
        self._file: IO[bytes] | None = None
        self._size = 0
        #: The answers of fetches under way.
        self._exchanges: defaultdict[Origin, list[Exchange]] = defaultdict(list)
        #: The SHA-256 of bodies in the archive, the latest last.
        self._bodies: LocalCache[str, None] = LocalCache(MAX_BODIES)

    @property
    def name(self) -> str:
        """The name of the file, without its directory."""
        return self._path.name

    def open(self, spider: Spider, software: str) -> Region | None:
        """Begin a file that nobody else has."""
        try:
            directory = Path(with_parameters(self._directory, spider))
            time = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
            name = f"robots-{_UNUSUAL.sub('-', spider.name)}-{time}"

            def path_of(number: str) -> Path:
                self._path = directory / f"{name}{number}.warc.gz"
                return self._path

            self._file = new_file(path_of)
        except Exception as error:
            self._fail(error)
            return None
        fields = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": _STANDARD,
            "description": "robots.txt files, as they were fetched",
        }
        return self._append(self._warc.info(self.name, fields))

    def add_answer(self, origin: Origin, exchange: Exchange) -> None:
        """Keep *exchange* until the fetch of the robots.txt of *origin* ends."""
        self._exchanges[origin].append(exchange)

    def add_fetch(self, fetched: Fetched) -> Region | None:
        """Append a fetch with its answers."""
        result, origin = fetched.result, fetched.entry.origin
        fields = {
            "outcome": result.detail,
            "failure": result.failure.value if result.failure else "",
            "accessResult": fetched.access.value,
        }
        self._has(result)
        exchanges = self._exchanges.pop(origin, [])
        return self._append(self._warc.fetch(origin.robots_url, exchanges, fields, fetched.now))

    def add_stored(self, entry: CacheEntry, now: float) -> Region | None:
        """Append the file in *entry*, which came from the store, unless the archive has it."""
        result = entry.stored.result if entry.stored else None
        if result is None or not result.body or self._has(result):
            return None
        return self._append(self._warc.resource(result.url, result.body, now))

    def _has(self, result: FetchResult) -> bool:
        """Whether the archive has the body of *result*. From now on it does."""
        digest = digest_of_body(result.body)
        has = digest in self._bodies
        self._bodies[digest] = None
        self._bodies.move_to_end(digest)
        return has

    def _append(self, records: bytes) -> Region | None:
        if self._file is None:
            return None
        try:
            self._file.write(records)
            self._file.flush()
        except OSError as error:
            self._fail(error)
            return None
        region = (self._size, len(records), sha256(records).hexdigest())
        self._size += len(records)
        return region

    def close(self) -> None:
        """Close the file."""
        count(self._crawler, "robotstxt/archive/record_count", self._warc.record_count)
        if self._file is not None:
            self._file.close()
            self._file = None
            message = "Stored %(size)d bytes in the archive %(path)s"
            self._log(logging.INFO, message, size=self._size)

    def _fail(self, error: Exception) -> None:
        self._file = None
        self._log(
            logging.ERROR,
            "Cannot write the archive %(path)s (%(error)s). The crawl continues without it.",
            error=printable(f"{type(error).__name__}: {error}"),
        )

    def _log(self, level: int, message: str, **values: object) -> None:
        values["path"] = printable(str(self._path if self.name else self._directory))
        logger.log(level, message, values, extra={"spider": self._crawler.spider})
