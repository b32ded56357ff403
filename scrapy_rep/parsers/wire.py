"""The URLs that servers receive if a download handler rewrites the URL of a request.

RFC 9309 §2.2.2: "To evaluate if access to a URI is allowed, a crawler MUST match the
paths in "allow" and "disallow" rules against the URI." Scrapy's default handler requests
``/secret`` if the URL of the request ends with ``/secret;``, so the rules for both count. The URL
library of each handler computes its URLs here too: a copy of its code would get out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urldefrag, urlparse

from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

_HANDLERS = "scrapy.core.downloader.handlers"
_SITE = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://[^/?#]*")

# Percent signs that a handler may encode or decode so that the path means something else:
# those that begin no encoded byte, and those of reserved characters.
_REWRITTEN_PERCENT = re.compile(
    r"%(?:2[1689ABCFabcf]|3[ABDFabdf]|40|(?![0-9A-Fa-f][0-9A-Fa-f]))", re.ASCII
)
# Characters that must be encoded, and the start of a fragment. Without the backslash: clients read
# it as a slash in a URL, but not in a request target.
_UNSAFE = re.compile(r"[^!-~]|#")
# An empty query, and characters that are removed from the end of a URL.
_ODD_ENDS = "?" + "".join(map(chr, range(0x21)))
# Where the path begins at the earliest: "//" before it is not part of the path.
_EARLIEST_PATH = len("https://")


def is_rewritten(url: str) -> bool:
    """Whether a download handler may send *url* as another URL; ``True`` if that is uncertain.

    It is called for each allowed request, so it is fast for most URLs.

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


#: The request targets that a handler may send for a URL.
_Targets = Callable[[str], Iterator[str]]


def spellings(handlers: Mapping[str, object], url: str) -> tuple[str, ...]:
    """The other URLs that a request for *url* may be sent as, in printable ASCII.

    *handlers* are those of DOWNLOAD_HANDLERS. For one that is not Scrapy's, the URLs are those of
    all Scrapy's handlers.
    """
    site = _SITE.match(url.strip()) if is_rewritten(url) else None
    if site is None:
        return ()
    handler: Any = handlers.get(site.group(1).lower())
    try:
        chosen = [TARGETS[global_object_name(load_object(handler))]]
    except Exception:
        # Scrapy itself reports a handler that cannot be loaded.
        chosen = [*TARGETS.values()]
    paths = [
        path for each in chosen for sent in sent_targets(each, url) for path in url_paths(sent)
    ]
    # A dict is an ordered set.
    urls = dict.fromkeys(f"{site.group()}{path}" for path in paths)
    return tuple(each for each in urls if each != url)


def sent_targets(targets: _Targets, url: str) -> tuple[str, ...]:
    """The *targets* of *url*; none if the handler cannot send it or is not installed."""
    try:
        return tuple(targets(url))
    except (ValueError, TypeError, ImportError):
        return ()


def url_paths(target: str) -> tuple[str, ...]:
    """The forms of *target* as the path of a URL. *target* may lack the first slash."""
    path = target if target.startswith("/") else f"/{target}"
    raw = _UNSAFE.sub(lambda found: quote(found.group(), errors="surrogatepass"), path)
    return tuple(dict.fromkeys((raw, raw.replace("\\", "%5C"))))


def _http11(url: str) -> Iterator[str]:
    from twisted.web.client import URI

    uri = URI.fromBytes(urldefrag(url)[0].encode("ascii"))  # type: ignore[no-untyped-call]
    yield uri.originForm.decode("ascii")


def _http2(url: str) -> Iterator[str]:
    # It drops the parameters of the last segment.
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
        # The handler cannot send it.
        return


def _aiohttp(url: str) -> Iterator[str]:
    from yarl import URL

    yield URL(url).raw_path_qs
    # With "verbatim_url" in the meta of the request.
    yield URL(url, encoded=True).raw_path_qs


#: The request targets of each HTTP handler of Scrapy.
TARGETS: dict[str, _Targets] = {
    f"{_HANDLERS}.http11.HTTP11DownloadHandler": _http11,
    f"{_HANDLERS}.http2.H2DownloadHandler": _http2,
    f"{_HANDLERS}._httpx.HttpxDownloadHandler": _httpx,
    f"{_HANDLERS}._aiohttp.AiohttpDownloadHandler": _aiohttp,
}
