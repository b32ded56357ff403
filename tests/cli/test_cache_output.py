"""What ``scrapy robots cache`` and ``report`` make of entries, without a process."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from scrapy.settings import Settings

from scrapy_rep.cli import cache, report
from scrapy_rep.cli.output import Printer
from scrapy_rep.cli.store import state_of
from scrapy_rep.observers.report.file import NO_ROOM, takes
from scrapy_rep.observers.report.model import CrawlReport
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.memory import MemoryStore
from tests.cli.stored import RULES, copied, failing
from tests.stores.examples import HOUR, NOON, run

URL = "https://a.example"


def response(body: bytes = RULES, status: int = 200, confirmed_at: float = NOON) -> StoredResponse:
    stored = copied(URL, NOON, body, status).stored
    assert stored is not None
    return replace(stored, confirmed_at=confirmed_at)


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        (None, response(), "new"),
        (response(), response(), "same"),
        (response(), response(confirmed_at=NOON + 1), "confirmed"),
        (response(), response(b""), "changed"),
        (response(status=404), response(status=410), "changed"),
    ],
)
def test_outcomes_of_a_refresh(
    old: StoredResponse | None, new: StoredResponse, outcome: str
) -> None:
    assert cache.outcome_of(old, new) == outcome


@pytest.mark.parametrize(("before", "now"), [(0, 2001), (2001, 0)])
def test_long_files_are_not_compared_line_by_line(before: int, now: int) -> None:
    out = io.StringIO()
    cache.show_difference(["line"] * before, ["line"] * now, Printer(out))
    assert out.getvalue() == f"\n{before} lines before, {now} now\n"


@pytest.mark.parametrize(("max_size", "is_cut"), [(len(RULES), False), (len(RULES) - 1, True)])
def test_a_file_of_just_the_size_that_is_read(max_size: int, is_cut: bool) -> None:
    settings = replace(RepSettings.read(Settings()), max_size=max_size)
    out = io.StringIO()
    cache.show_file(state_of(copied(URL, NOON), settings, NOON), Printer(out))
    assert ("The rest of the file is not read" in out.getvalue()) is is_cut


# -- reports ---------------------------------------------------------------------


def entry_confirmed_after_an_outage() -> CacheEntry:
    known = failing(copied(URL, NOON - 3 * HOUR), NOON - 2 * HOUR, NOON, 2)
    assert known.stored is not None
    return replace(known, stored=replace(known.stored, confirmed_at=NOON - HOUR))


def read(*entries: CacheEntry) -> CrawlReport:
    store = MemoryStore(10)

    async def filled() -> CrawlReport:
        for entry in entries:
            await store.write(entry)
        return await report.read_report(store, "a store", RepSettings.read(Settings()))

    return run(filled())


def test_events_are_in_the_order_of_time() -> None:
    (origin,) = read(entry_confirmed_after_an_outage()).origins
    assert [event.at for event in origin.events] == [
        NOON - 3 * HOUR,
        NOON - 2 * HOUR,
        NOON - HOUR,
        NOON,
    ]


def test_files_fill_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = copied(URL, NOON), copied("https://b.example", NOON)
    assert one.stored is not None
    monkeypatch.setattr(report, "ROOM", 2 * takes(one.stored.result) - 1)
    first, second = read(one, two).origins
    assert (first.file is not None, first.notes) == (True, ())
    assert (second.file, second.notes) == (None, (NO_ROOM,))
