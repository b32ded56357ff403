"""The versions of a robots.txt that the store of a project has."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.cli.sources import Session
from scrapy_rep.cli.store import use_store
from scrapy_rep.rep.caching.cache_entry import StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.rules.robotstxt import RobotsTxt
from scrapy_rep.stores.base import Store
from scrapy_rep.stores.history import copies_of


@dataclass(frozen=True, slots=True)
class Version:
    """One version: *number* 1 is the newest. *robots* has no lines if there was no file."""

    number: int
    copy: StoredResponse
    robots: RobotsTxt


def versions_in_store(session: Session, origin: Origin) -> list[Version]:
    """The versions of the robots.txt of *origin*, the newest first.

    Raises :exc:`~scrapy_rep.cli.errors.CommandError` for a store in memory, and
    :exc:`~scrapy_rep.stores.base.StoreError`.
    """

    async def read(store: Store) -> list[StoredResponse]:
        entry = await store.read(origin)
        return [] if entry is None else copies_of(entry)

    return [
        Version(number, copy, session.parse(copy.result))
        for number, copy in enumerate(use_store(session.settings, read) or (), 1)
    ]
