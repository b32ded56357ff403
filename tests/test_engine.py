"""What of Scrapy is not public, and what is done without it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.test import get_crawler

from scrapy_rep.engine import Engine


class Handlers:
    """As Scrapy has them."""

    def __init__(self, handler: Any) -> None:
        self.handler = handler

    def _get_handler(self, scheme: str) -> Any:
        return self.handler if scheme == "http" else None


def crawl_with(handler: Any) -> Any:
    return SimpleNamespace(engine=SimpleNamespace(downloader=SimpleNamespace(handlers=handler)))


def test_a_handler_without_a_limit() -> None:
    handler = HTTP11DownloadHandler(get_crawler(Spider))
    assert Engine(crawl_with(Handlers(handler))).widen_pools(200) == 200


def test_a_downloader_that_is_not_scrapys() -> None:
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=object()))
    assert Engine(crawler).widen_pools(200) == 200


@pytest.mark.parametrize(("pool", "fetches"), [(16, 8), (1, 1), (1000, 200)])
def test_a_limit_that_cannot_be_changed(pool: int, fetches: int) -> None:
    handler = SimpleNamespace(_pool_size_total=pool)
    assert Engine(crawl_with(Handlers(handler))).widen_pools(200) == fetches


def test_scrapys_downloader_reports_what_it_sends() -> None:
    class Own(Downloader):
        """A project's, made from Scrapy's."""

    for kind, reports in ((Downloader, True), (Own, True), (SimpleNamespace, False)):
        downloader = kind.__new__(kind)
        crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=downloader))
        assert Engine(crawler).reports_sent_requests is reports
