"""A feed of JSON Lines in one of Scrapy's feed storages."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING

from scrapy import Spider, signals
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import build_from_crawler

from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedStorageProtocol

    from scrapy_rep.settings import FeedSpec

logger = logging.getLogger(__name__)

_PARAMETER = re.compile(r"%\((\w+)\)s")
# User and password of a storage must not be logged.
_USERINFO = re.compile(r"//[^/]*@")


class JsonLinesFeed:
    """Written to the storage of *spec*: opened when the crawl starts, stored when it ends.

    It is stored even if it is empty. If the storage fails, one line is logged, and the crawl
    continues without the feed.
    """

    def __init__(self, crawler: Crawler, spec: FeedSpec) -> None:
        self._crawler = crawler
        self._storage_class = spec.storage
        self._uri = spec.uri
        self._storage: FeedStorageProtocol | None = None
        #: ``None`` while the feed is not open.
        self._file: IO[bytes] | None = None
        self._items = 0
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._store, signals.spider_closed)

    def write(self, item: dict[str, object]) -> None:
        """Write one line."""
        if self._file is None:
            return
        try:
            # As JsonLinesItemExporter does it, in a sixth of the time.
            self._file.write(json.dumps(item).encode("ascii") + b"\n")
            self._items += 1
        except Exception as error:
            self._fail(error)

    def _open(self, spider: Spider) -> None:
        try:
            self._uri = _with_parameters(self._uri, spider)
            self._storage = build_from_crawler(
                self._storage_class,
                self._crawler,
                self._uri,
                feed_options={"format": "jsonlines"},
            )
            self._file = self._storage.open(spider)
        except Exception as error:
            self._fail(error)

    async def _store(self) -> None:
        file, self._file = self._file, None
        if self._storage is None or file is None:
            return
        try:
            await ensure_awaitable(self._storage.store(file))
        except Exception as error:
            self._fail(error)
        else:
            self._log(logging.INFO, "Stored %(items)d lines in %(uri)s", items=self._items)

    def _fail(self, error: Exception) -> None:
        # Not closed: its buffer cannot be written, and it may be stdout.
        self._file = None
        self._log(
            logging.ERROR,
            "Cannot write the feed %(uri)s (%(error)s). The crawl continues without it.",
            error=printable(f"{type(error).__name__}: {error}"),
        )

    def _log(self, level: int, message: str, **values: object) -> None:
        values["uri"] = printable(_USERINFO.sub("//", self._uri))
        logger.log(level, message, values, extra={"spider": self._crawler.spider})


def _with_parameters(uri: str, spider: Spider) -> str:
    """*uri* with its parameters replaced, as in FEEDS: ``%(time)s``, and any attribute
    of *spider*, such as ``%(name)s``."""
    time = datetime.now(timezone.utc).isoformat(timespec="seconds").replace(":", "-")
    return _PARAMETER.sub(
        lambda found: time if found[1] == "time" else str(getattr(spider, found[1])), uri
    )
