"""The names of Scrapy that are not public: where they are used, and what happens without."""

from __future__ import annotations

import ast
import logging
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.test import get_crawler

import scrapy_rep
from scrapy_rep.engine import Engine, has_no_headers

PACKAGE = Path(scrapy_rep.__file__).parent
#: Names of Scrapy's engine, downloader, download slots, handlers and requests.
NOT_PUBLIC = {
    *("_slot", "running", "downloader", "scraper", "inprogress", "nextcall", "add_request"),
    *("remove_request", "total_concurrency", "active", "slots", "get_slot_key", "handlers"),
    *("free_transfer_slots", "transferring", "lastseen", "latercall", "per_slot_settings"),
    *("_get_handler", "_pool_size_total", "_session", "connector", "_limits", "_headers"),
    *("_default_client", "_make_client", "needs_backout", "randomize_delay", "domain_concurrency"),
}
_BY_TEXT = {"getattr", "hasattr", "setattr"}


def names_used(path: Path) -> set[str]:
    """Of these names, those that *path* uses: as attributes, or as text for getattr()."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            used |= set() if is_own else {node.attr}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _BY_TEXT:
            used |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    return used & NOT_PUBLIC


def test_no_other_file_uses_them() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    using = {name for name, path in files.items() if names_used(path)}
    assert using == {"engine.py"}


def test_the_adapter_uses_all_of_them_or_none_is_left_over() -> None:
    text = (PACKAGE / "engine.py").read_text(encoding="utf-8")
    own = {*("scraper", "inprogress", "transferring", "lastseen", "latercall", "needs_backout")}
    own |= {"per_slot_settings", "randomize_delay", "domain_concurrency"}
    assert {name for name in NOT_PUBLIC - own if name not in text} == set()


def scrapys(**downloader: Any) -> Any:
    """A crawler with the names that are looked for; what is ``None`` it does not have."""
    names = {
        "total_concurrency": 16,
        "active": set(),
        "slots": {},
        "get_slot_key": lambda request: "a",
        "handlers": Handlers(None),
        **downloader,
    }
    slot = SimpleNamespace(
        closing=None, add_request=print, remove_request=print, nextcall=SimpleNamespace()
    )
    engine = SimpleNamespace(
        running=True,
        _slot=slot,
        downloader=SimpleNamespace(**{k: v for k, v in names.items() if v is not None}),
    )
    return SimpleNamespace(engine=engine, spider=None)


def test_all_are_there(caplog: pytest.LogCaptureFixture) -> None:
    Engine(scrapys()).warn()
    assert caplog.messages == []


def test_one_warning_names_all_that_are_missing(caplog: pytest.LogCaptureFixture) -> None:
    Engine(scrapys(active=None, total_concurrency=None, slots=None)).warn()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "Scrapy or its downloader lacks downloader.total_concurrency, downloader.active, "
        "downloader.slots: held requests keep their share of CONCURRENT_REQUESTS; robots.txt "
        "requests wait behind the pages in their download slot. The crawl continues."
    )


def test_what_is_in_something_that_is_missing_is_not_named() -> None:
    crawler = scrapys()
    del crawler.engine.__dict__["_slot"]
    assert Engine(crawler).missing() == ["engine._slot"]
    assert not Engine(crawler).is_closing
    # Neither fails.
    Engine(crawler).keep_open(0)
    Engine(crawler).raise_concurrency(1)


def test_no_concurrency_is_released_where_nobody_knows_what_counts() -> None:
    crawler = scrapys(active=None)
    Engine(crawler).raise_concurrency(5)
    assert crawler.engine.downloader.total_concurrency == 16
    assert Engine(crawler).concurrency == 0


def test_the_engine_looks_for_work_when_concurrency_is_released() -> None:
    """Else in some seconds only."""
    crawler = scrapys()
    looks: list[int] = []
    crawler.engine.__dict__["_slot"].nextcall.schedule = lambda: looks.append(1)
    Engine(crawler).raise_concurrency(2)
    assert crawler.engine.downloader.total_concurrency == 18
    assert looks == [1]
    Engine(crawler).raise_concurrency(0)
    assert looks == [1]


def test_a_request_goes_to_the_front_of_its_slot() -> None:
    requests = [Request("http://a/", meta={"download_slot": "a"}) for _ in range(3)]
    slot = SimpleNamespace(queue=deque((request, None) for request in requests))
    engine = Engine(scrapys(slots={"a": slot}))
    for _ in range(2):
        assert engine.move_to_front(requests[2])
        assert [request for request, _ in slot.queue] == [requests[2], requests[0], requests[1]]
    assert not engine.move_to_front(Request("http://a/", meta={"download_slot": "a"}))
    assert not engine.slot_is_free("a")


def test_wanted_requests_are_taken_out_of_the_queue() -> None:
    requests = [Request("http://a/", meta={"download_slot": "a"}) for _ in range(4)]
    slot = SimpleNamespace(
        queue=deque((request, number) for number, request in enumerate(requests))
    )
    engine = Engine(scrapys(slots={"a": slot}))
    taken = engine.take_queued(requests[0], lambda request: request in requests[1:3])
    assert taken == [(requests[1], 1), (requests[2], 2)]
    assert list(slot.queue) == [(requests[0], 0), (requests[3], 3)]


@pytest.mark.parametrize(("free", "is_free"), [(0, False), (1, True)])
def test_a_slot_is_free_if_nothing_is_queued_and_it_may_transfer(free: int, is_free: bool) -> None:
    slot = SimpleNamespace(queue=deque(), free_transfer_slots=lambda: free)
    engine = Engine(scrapys(slots={"a": slot}))
    assert engine.slot_is_free("a") is is_free
    slot.queue.append((Request("http://a/"), None))
    assert not engine.slot_is_free("a")


def test_the_slot_of_a_request_is_what_the_downloader_says() -> None:
    request = Request("http://a/")
    assert Engine(scrapys(get_slot_key=lambda asked: "b")).slot_key(request) == "b"
    assert Engine(scrapys(get_slot_key=None)).slot_key(request) is None


@pytest.mark.parametrize(
    ("running", "closing", "is_closing"),
    [(True, None, False), (True, object(), True), (False, None, True)],
)
def test_a_crawl_is_closing(running: bool, closing: object, is_closing: bool) -> None:
    crawler = scrapys()
    crawler.engine.running = running
    crawler.engine.__dict__["_slot"].closing = closing
    assert Engine(crawler).is_closing is is_closing


def test_a_crawl_is_kept_open_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[tuple[float, Any, Request]] = []
    monkeypatch.setattr("scrapy_rep.engine.call_later", lambda *call: later.append(call))
    crawler = scrapys()
    inprogress: set[Request] = set()
    slot = crawler.engine.__dict__["_slot"]
    slot.add_request, slot.remove_request = inprogress.add, inprogress.remove
    Engine(crawler).keep_open(0.25)
    ((delay, remove, request),) = later
    assert delay == 0.25
    assert inprogress == {request}
    remove(request)
    assert inprogress == set()


def test_without_slots_every_request_starts_at_once() -> None:
    request = Request("http://a/", meta={"download_slot": "a"})
    for slots in (None, {}, {"a": object()}):
        engine = Engine(scrapys(slots=slots))
        assert engine.slot_is_free("a")
        assert not engine.move_to_front(request)


def test_where_active_requests_are_not_known_all_are() -> None:
    request = Request("http://a/")
    assert Engine(scrapys(active=None)).is_active(request)
    assert not Engine(scrapys()).is_active(request)
    assert Engine(scrapys(active={request})).is_active(request)


def test_headers_that_nobody_has_asked_for() -> None:
    assert not has_no_headers(Request("http://a/", headers={"A": "b"}))
    assert not has_no_headers(SimpleNamespace())  # type: ignore[arg-type]


# -- connections for fetches, in download handlers that have a limit of their own -----


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


def test_the_handlers_of_both_schemes_are_asked() -> None:
    handlers = {scheme: SimpleNamespace(_pool_size_total=16) for scheme in ("http", "https")}
    for handler in handlers.values():
        handler._pool_size_total = 6  # noqa: SLF001
        assert Engine(crawl_with(SimpleNamespace(_get_handler=handlers.get))).widen_pools(200) == 3
        handler._pool_size_total = 1000  # noqa: SLF001


def test_the_limit_of_the_handler_for_aiohttp_is_raised() -> None:
    connector = SimpleNamespace(_limit=16)
    session = SimpleNamespace(connector=connector)
    handler = SimpleNamespace(_pool_size_total=16, _session=session)
    assert Engine(crawl_with(Handlers(handler))).widen_pools(200) == 200
    assert connector._limit == 216  # noqa: SLF001


def test_the_handler_for_httpx_gets_a_client_with_a_higher_limit() -> None:
    @dataclass
    class Limits:
        max_connections: int
        max_keepalive_connections: int

    handler = SimpleNamespace(
        _pool_size_total=16, _limits=Limits(16, 8), _default_client=None, _session=None
    )
    handler._make_client = lambda: replace(handler._limits)  # noqa: SLF001
    assert Engine(crawl_with(Handlers(handler))).widen_pools(200) == 200
    assert handler._default_client == Limits(216, 8)  # noqa: SLF001


def test_scrapys_downloader_reports_what_it_sends() -> None:
    class Own(Downloader):
        """A project's, made from Scrapy's."""

    for kind, reports in ((Downloader, True), (Own, True), (SimpleNamespace, False)):
        downloader = kind.__new__(kind)
        crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=downloader))
        assert Engine(crawler).reports_sent_requests is reports
