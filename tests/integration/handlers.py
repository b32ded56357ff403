"""The download handlers of Scrapy that can be tested here."""

from __future__ import annotations

from importlib.util import find_spec

_HANDLERS = "scrapy.core.downloader.handlers"
#: Those for http that this Scrapy has, and that what is installed can run.
HANDLERS = [
    f"{_HANDLERS}.{path}"
    for path, library in [
        ("http11.HTTP11DownloadHandler", "twisted"),
        ("_httpx.HttpxDownloadHandler", "httpx2"),
        ("_aiohttp.AiohttpDownloadHandler", "aiohttp"),
    ]
    if find_spec(f"{_HANDLERS}.{path.split('.')[0]}") and find_spec(library)
]
