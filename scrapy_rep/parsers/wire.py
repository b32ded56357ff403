"""The URLs that servers receive, where download handlers rewrite the URL of a request.

Here may live: which URLs a handler can rewrite, and what it makes of them. Here may
not live: what the rules say about them (:mod:`scrapy_rep.parsers.chain`).

RFC 9309 §2.2.2: "To evaluate if access to a URI is allowed, a crawler MUST match the
paths in "allow" and "disallow" rules against the URI." Scrapy's default handler asks for
``/secret`` where the URL of the request ends with ``/secret;``, so the rules for both
count. Each handler's own URL library says what it sends: a copy of its code would be
wrong with the next version of the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import quote, urldefrag, urlparse

from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_HANDLERS = "scrapy.core.downloader.handlers"
_SITE = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://[^/?#]*")

# Percent signs that a handler may encode or decode so that the path means something else:
# those that begin no encoded byte, and those of reserved characters.
_REWRITTEN_PERCENT = re.compile(
    r"%(?:2[1689ABCFabcf]|3[ABDFabdf]|40|(?![0-9A-Fa-f][0-9A-Fa-f]))", re.ASCII
)
# Everything that is not the same raw and encoded, and what begins a fragment. Not a
# backslash: in a URL it is a slash to whoever reads it, on the wire it is not.
_UNSAFE = re.compile(r"[^!-~]|#")
# An empty query, and what is not part of a URL at its end.
_ODD_ENDS = "?" + "".join(map(chr, range(0x21)))
# Where the path begins at the earliest: "//" before it is not part of the path.
_EARLIEST_PATH = len("https://")


def is_rewritten(url: str) -> bool:
    """Whether a download handler may send *url* as another URL; ``True`` also in doubt.

    A crawl asks this for each request that is allowed, so it is cheap for most URLs.

    >>> [is_rewritten(f"https://a.example{rest}") for rest in ("/a?b=c", "/a%20b", "/a%C3%A9")]
    [False, False, False]
    >>> [is_rewritten(f"https://a.example{rest}") for rest in ("/a;", "//a", "/%40", "/a/.", "/a?")]
    [True, True, True, True, True]
    """
    # Single characters are found much faster than pairs.
    return (
        ";" in url
        or "\\" in url
        or " " in url
        or url[-1:] in _ODD_ENDS
        or ("#" in url and "?#" in url)
        or ("%" in url and _REWRITTEN_PERCENT.search(url) is not None)
        or url.find("//", _EARLIEST_PATH) >= 0
        or "/." in url
    )


class Wire:
    """The URLs that the download handlers of one crawl send."""

    def __init__(self, settings: BaseSettings) -> None:
        self._settings = settings
        self._targets: dict[str, tuple[_Targets, ...]] = {}

    def spellings(self, url: str) -> tuple[str, ...]:
        """The URLs, other than *url*, that a request for *url* may be sent as.

        They are printable ASCII. Where the handler is not one of Scrapy's, they are those
        of all handlers of Scrapy.
        """
        if not is_rewritten(url):
            return ()
        site = _SITE.match(url.strip())
        if not site:
            return ()
        scheme = site.group(1).lower()
        if scheme not in self._targets:
            self._targets[scheme] = self._targets_of(scheme)
        targets = chain.from_iterable(sent_targets(each, url) for each in self._targets[scheme])
        # dict, as a set that keeps the order
        urls = dict.fromkeys(chain.from_iterable(map(url_paths, targets)))
        return tuple(each for path in urls if (each := f"{site.group()}{path}") != url)

    def _targets_of(self, scheme: str) -> tuple[_Targets, ...]:
        try:
            handler = self._settings.getwithbase("DOWNLOAD_HANDLERS")[scheme]
            return (TARGETS[global_object_name(load_object(handler))],)
        except Exception:
            # Scrapy itself reports a handler that cannot be loaded.
            return tuple(TARGETS.values())


#: The request targets that a handler may send for a URL.
_Targets = Callable[[str], Iterator[str]]


def sent_targets(targets: _Targets, url: str) -> tuple[str, ...]:
    """*targets* of *url*; none where the handler could not send it or is not installed."""
    try:
        return tuple(targets(url))
    except (ValueError, TypeError, ImportError):
        return ()


def url_paths(target: str) -> tuple[str, ...]:
    """The path of a URL that is compared as *target*, which may begin with no slash."""
    path = target if target.startswith("/") else f"/{target}"
    raw = _UNSAFE.sub(lambda found: quote(found.group(), errors="surrogatepass"), path)
    return tuple(dict.fromkeys((raw, raw.replace("\\", "%5C"))))


def _http11(url: str) -> Iterator[str]:
    from twisted.web.client import URI

    uri = URI.fromBytes(urldefrag(url)[0].encode("ascii"))  # type: ignore[no-untyped-call]
    yield uri.originForm.decode("ascii")


def _http2(url: str) -> Iterator[str]:
    # It forgets the parameters of the last segment.
    parsed = urlparse(url)
    yield f"{parsed.path}?{parsed.query}" if parsed.query else parsed.path


def _httpx(url: str) -> Iterator[str]:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx  # type: ignore[import-not-found,no-redef]
    try:
        yield httpx.URL(url).raw_path.decode("ascii")
    except httpx.InvalidURL:
        # It is not sent at all.
        return


def _aiohttp(url: str) -> Iterator[str]:
    from yarl import URL

    yield URL(url).raw_path_qs
    # With "verbatim_url" in the meta of the request.
    yield URL(url, encoded=True).raw_path_qs


#: Of each handler of Scrapy for HTTP.
TARGETS: dict[str, _Targets] = {
    f"{_HANDLERS}.http11.HTTP11DownloadHandler": _http11,
    f"{_HANDLERS}.http2.H2DownloadHandler": _http2,
    f"{_HANDLERS}._httpx.HttpxDownloadHandler": _httpx,
    f"{_HANDLERS}._aiohttp.AiohttpDownloadHandler": _aiohttp,
}
