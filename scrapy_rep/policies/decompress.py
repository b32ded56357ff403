"""Decodes Content-Encoding up to a limit, in bounded memory.

Scrapy decodes a body completely, and drops a large one. Of a robots.txt, the first bytes count.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from importlib import import_module

from scrapy_rep.policies.errors import FetchFailed

# More than any real file has. Each member costs time, even an empty one.
_MAX_GZIP_MEMBERS = 100
# Values that are not compressions. Some servers send charsets in this header.
_NONE = frozenset({"", "identity", "none", "binary", "utf-8", "utf8", "iso-8859-1", "us-ascii"})


def decompress(body: bytes, encodings: Sequence[str], limit: int, *, cut: bool) -> bytes:
    """The first *limit* bytes of *body* after *encodings* are decoded.

    *encodings* are the values of the Content-Encoding header, in its order. *cut* says that *body*
    is only the start of the response. Raises :exc:`FetchFailed` if it cannot be decoded.
    """
    if not body:
        # An empty body is not encoded, even if the server says so.
        return body
    for encoding in reversed(encodings):
        name = encoding.strip().lower()
        if name in _NONE:
            continue
        if name not in _DECODERS:
            raise FetchFailed(f"unknown Content-Encoding {name!r}")
        try:
            body, complete = _DECODERS[name](body, limit)
        except Exception as error:
            # zlib.error, brotli.error, ZstdError, ImportError: each has its own.
            raise FetchFailed(f"cannot decode Content-Encoding {name!r}: {error}") from error
        if not complete and not cut and len(body) < limit:
            raise FetchFailed(f"the body is incomplete (Content-Encoding {name!r})")
    return body[:limit]


def _gunzip(data: bytes, limit: int) -> tuple[bytes, bool]:
    decoded = b""
    # RFC 1952 §2.2: a gzip file is one or more members. Other bytes after them are ignored.
    for _ in range(_MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        decoded += member.decompress(data, limit - len(decoded))
        data = member.unused_data
        if not data.startswith(b"\x1f\x8b") or len(decoded) >= limit:
            return decoded, member.eof
    # The other members may contain rules that refuse something.
    raise ValueError(f"more than {_MAX_GZIP_MEMBERS} gzip members")


def _inflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    # RFC 9110 §8.4.1.2: "deflate" is the zlib format. Some servers send the raw one instead.
    stream = zlib.decompressobj()
    try:
        return stream.decompress(data, limit), stream.eof
    except zlib.error:
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        return stream.decompress(data, limit), stream.eof


def _unbrotli(data: bytes, limit: int) -> tuple[bytes, bool]:
    stream = import_module("brotli").Decompressor()
    return stream.process(data, output_buffer_limit=limit), stream.is_finished()


def _unzstd(data: bytes, limit: int) -> tuple[bytes, bool]:
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    # RFC 9659: no Content-Encoding needs a window above 8 MB.
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    return stream.decompress(data, limit), stream.eof


# The request accepts only "identity", but some servers send the compressed file that they have on
# disk. The packages for Brotli and Zstandard are installed if Scrapy itself uses them.
_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
