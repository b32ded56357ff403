"""What a report says of the crawl itself: agents, settings, versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import scrapy
from scrapy.settings import BaseSettings

from scrapy_rep import __version__
from scrapy_rep.rep.text import plural, printable
from scrapy_rep.settings import RepSettings, changed


def facts(
    scrapy_settings: BaseSettings,
    settings: RepSettings,
    agents: Mapping[tuple[str, ...], int] | None = None,
) -> tuple[tuple[str, str], ...]:
    """Names and values; *agents* are product tokens, and how many requests were made as these."""
    tokens = [
        ("product token", f"{printable(', '.join(names))} ({plural(count, 'request')})")
        for names, count in (agents or {}).items()
    ]
    differing = [(name, printable(value)) for name, value in changed(scrapy_settings).items()]
    return (
        *tokens,
        ("dialect", settings.dialect.name),
        *(differing or [("settings", "the defaults")]),
        ("scrapy-rep", __version__),
        ("Scrapy", scrapy.__version__),
        ("Python", platform.python_version()),
    )
