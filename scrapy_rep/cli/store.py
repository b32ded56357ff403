"""A command's work with the store of a project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scrapy_rep.cli.ending import Trouble
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store
from scrapy_rep.stores.open import open_store

_T = TypeVar("_T")


def store_place(settings: RepSettings) -> str:
    """Where the store of *settings* is, or would be.

    Raises :exc:`Trouble` for one in memory.
    """
    place = settings.store.place()
    if place is None:
        raise Trouble("REP_STORE = 'memory': nothing outlives a crawl, so nothing is kept")
    return place


def use_store(
    settings: RepSettings, use: Callable[[Store], Coroutine[Any, Any, _T]], otherwise: _T
) -> _T:
    """What *use* makes of the store of *settings*; *otherwise*, and no file is made,
    if there is none.

    What is there and is no store, such as a file that was named by mistake, is left alone.
    Raises :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    file = settings.store.file()
    if file is not None and not (file.exists() and file.stat().st_size):
        return otherwise
    return asyncio.run(_use(settings, use))


async def _use(settings: RepSettings, use: Callable[[Store], Coroutine[Any, Any, _T]]) -> _T:
    store = open_store(settings.store, settings.max_origins, sets_aside=False)
    try:
        return await use(store)
    finally:
        await store.close()
