"""The files of the evidence: the audit log, and the archive.

Here may live: what is appended to which file. Here may not live: what it says.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from scrapy_rep.evidence.chain import FIRST, seal, to_json
from scrapy_rep.observers.feed import Feed, new_file, with_parameters
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import FeedSpec

logger = logging.getLogger(__name__)

#: Where records are in the archive: the first byte, how many bytes, and their SHA-256.
Region = tuple[int, int, str]

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")


class AuditLog:
    """The audit log of one crawl: each line is sealed and written at once."""

    def __init__(self, crawler: Crawler, spec: FeedSpec) -> None:
        self._feed = Feed(crawler, spec, own_file=True)
        #: That of the last line.
        self.digest = FIRST
        self.line_count = 0

    def open(self, spider: Spider) -> None:
        """Begin the log."""
        self._feed.open(spider)

    def append(self, fields: dict[str, Any]) -> str:
        """Write a line with *fields*; its digest."""
        return self.append_json(to_json(fields))

    def append_json(self, content: str) -> str:
        """Write a line with *content*, a JSON object; its digest."""
        line, digest = seal(self.digest, content)
        if self._feed.write_line(line):
            self.digest = digest
            self.line_count += 1
        return digest

    async def close(self) -> None:
        """Store the log."""
        await self._feed.close()


class ArchiveFile:
    """The file of one crawl in *directory*, to which records are appended.

    Where it cannot be written, one line is logged, and the crawl goes on without it.
    """

    def __init__(self, crawler: Crawler, directory: str) -> None:
        self._crawler = crawler
        self._directory = directory
        self._path = Path()
        #: ``None`` while there is nothing to write to.
        self._file: IO[bytes] | None = None
        self.size = 0

    @property
    def name(self) -> str:
        """The name of the file, without its directory."""
        return self._path.name

    def open(self, spider: Spider) -> bool:
        """Begin a file that nobody else has; whether that is done."""
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
        return self._file is not None

    def append(self, records: bytes) -> Region | None:
        """Write *records*; where they are, ``None`` if they could not be written."""
        if self._file is None:
            return None
        try:
            self._file.write(records)
            self._file.flush()
        except OSError as error:
            self._fail(error)
            return None
        region = (self.size, len(records), sha256(records).hexdigest())
        self.size += len(records)
        return region

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            message = "Stored %(size)d bytes in the archive %(path)s"
            self._log(logging.INFO, message, size=self.size)

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
