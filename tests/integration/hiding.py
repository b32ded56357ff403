"""An add-on by which this package does not find names of Scrapy that are not public.

Scrapy itself goes on finding them: else it would be Scrapy that fails.
"""

from __future__ import annotations

import sys
from typing import Any

from scrapy import Request
from scrapy.core import downloader, engine
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.settings import BaseSettings

_OWNERS: dict[str, type] = {
    "engine": engine.ExecutionEngine,
    "engine._slot": engine._Slot,  # noqa: SLF001
    "downloader": downloader.Downloader,
    "downloader.handlers": DownloadHandlers,
    "slot": downloader.Slot,
    "request": Request,
}


class Hides:
    """Hides the names in the setting HIDDEN, such as ``downloader.active``.

    For the rest of the life of the process.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        for name in settings.getlist("HIDDEN"):
            owner, _, attribute = name.rpartition(".")
            _hide(_OWNERS[owner], attribute)


def _hide(owner: Any, attribute: str) -> None:
    find = owner.__getattribute__

    def find_unless_hidden(self: Any, name: str) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
        if name == attribute and asking == "scrapy_rep.engine":
            raise AttributeError(f"{name} is hidden")
        return find(self, name)

    owner.__getattribute__ = find_unless_hidden
