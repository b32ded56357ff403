"""From what a store knows to a report."""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_rep.cli.known import Known, Reader
from scrapy_rep.cli.wording import span
from scrapy_rep.observers.report.file import NO_ROOM, ROOM, read_file, takes
from scrapy_rep.observers.report.model import UNKNOWN, CrawlReport, News, OriginReport
from scrapy_rep.rep.access import FetchResult, access_result
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import by_host
from scrapy_rep.stores.base import Store


async def read_report(store: Store, subject: str, reader: Reader) -> CrawlReport:
    """A report about the origins in *store*, which is called *subject*, as *reader* takes them.

    Raises :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    origins = sorted([origin async for origin in store.origins()], key=by_host)
    limit = reader.settings.max_origins
    reports = []
    room = ROOM
    for origin in origins[:limit]:
        entry = await store.read(origin)
        # Somebody may have forgotten it by now.
        if entry is not None:
            known = reader.read(entry)
            file = _file(known)
            fits = file is None or takes(file) <= room
            room -= takes(file) if file and fits else 0
            reports.append(_report(known, file if fits else None, () if fits else (NO_ROOM,)))
    notes = []
    if len(origins) > limit:
        notes = [f"Only the first {limit:,} of {len(origins):,} origins (REP_MAX_ORIGINS)."]
    return CrawlReport(subject, reader.now, tuple(reports), notes=tuple(notes))


def _file(known: Known) -> FetchResult | None:
    """The robots.txt that is known, whether or not it may still be used."""
    copy, settings = known.entry.copy, known.reader.settings
    if copy is None:
        return None
    access = access_result(copy.result, settings.dialect, settings.status_overrides)
    return copy.result if access is Access.SUCCESSFUL else None


def _report(known: Known, file: FetchResult | None, notes: tuple[str, ...]) -> OriginReport:
    news = tuple(sorted(_news(known), key=lambda news: news.at))
    return OriginReport(
        origin=printable(str(known.entry.origin)),
        access=known.access or UNKNOWN,
        status=known.last.status,
        entry=tuple(_facts(known)),
        file=read_file(file, known.reader.settings) if file else None,
        standing=known.standing,
        news=news,
        news_count=len(news),
        notes=notes,
    )


def _facts(known: Known) -> Iterator[tuple[str, str]]:
    yield "URL", printable(known.last.url)
    yield "last answer", printable(known.last.detail)
    yield "for a crawl", known.meaning
    if known.left:
        yield "for another", span(known.left)
    copy = known.entry.copy
    for name, value in copy.result.headers if copy else ():
        yield printable(name), printable(value)


def _news(known: Known) -> Iterator[News]:
    copy, outage = known.entry.copy, known.entry.outage
    if copy is not None:
        yield News(copy.fetched_at, printable(copy.result.detail))
        if copy.confirmed_at > copy.fetched_at:
            yield News(copy.confirmed_at, "confirmed by the server")
    if outage is not None:
        yield News(outage.since, "unreachable from then on")
        if outage.attempts > 1:
            detail = printable(outage.result.detail)
            yield News(outage.last_at, f"attempt {outage.attempts}: {detail}")
