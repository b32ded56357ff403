"""Feed storages of projects, for REP_COMPARE_FEED."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Any

from scrapy.extensions.feedexport import BlockingFeedStorage


class InThread(BlockingFeedStorage):
    """Copies the feed to a file, in a thread, as the storages of clouds do it."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        self.path = Path(uri.removeprefix("thread:"))

    def _store_in_thread(self, file: IO[bytes]) -> None:
        file.seek(0)
        with self.path.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        file.close()


class Broken(InThread):
    """Takes everything, keeps nothing."""

    def _store_in_thread(self, file: IO[bytes]) -> None:
        raise ConnectionError("the cloud is gone")
