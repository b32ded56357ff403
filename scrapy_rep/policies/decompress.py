"""Content-Encoding undone within a limit.

Scrapy's HttpCompressionMiddleware undoes it whole, and drops a body that grows
over DOWNLOAD_MAXSIZE. A robots.txt needs the opposite: the first bytes of
whatever comes, and no more memory than they take.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence

from scrapy_rep.policies.errors import FetchFailed


def decompress(body: bytes, encodings: Sequence[str], limit: int, *, cut: bool) -> bytes:
    """At most *limit* bytes of what *body* is without *encodings*.

    *encodings* are those of the Content-Encoding header, in its order. *cut*
    says that *body* is only the start of what was sent. Raises
    :exc:`FetchFailed` where it cannot be undone.
    """
    if not body:
        # Nothing is nothing in every encoding; servers label it all the same.
        return body
    for encoding in reversed(encodings):
        name = encoding.strip().lower()
        if name in _NONE:
            continue
        decode = _DECODERS.get(name)
        if decode is None:
            raise FetchFailed(f"unknown Content-Encoding {name!r}")
        try:
            body, complete = decode(body, limit)
        except Exception as error:
            # zlib.error, brotli.error, ZstdError, ImportError: each has its own.
            raise FetchFailed(f"cannot decode Content-Encoding {name!r}: {error}") from error
        if not complete and not cut and len(body) < limit:
            raise FetchFailed(f"the body is incomplete (Content-Encoding {name!r})")
    return body


def _gunzip(data: bytes, limit: int) -> tuple[bytes, bool]:
    decoded = bytearray()
    complete = False
    # RFC 1952 §2.2: a gzip file is one or more members; what follows the last
    # one (zeros, often) is nobody's.
    for _ in range(_MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        decoded += member.decompress(data, limit - len(decoded))
        complete = member.eof
        data = member.unused_data
        if not data.startswith(b"\x1f\x8b") or len(decoded) >= limit:
            break
    else:
        # What is in the others may refuse something.
        raise ValueError(f"more than {_MAX_GZIP_MEMBERS} gzip members")
    return bytes(decoded), complete


def _inflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    # RFC 9110 §8.4.1.2: "deflate" is the zlib format. Some servers send the
    # raw one instead.
    try:
        stream = zlib.decompressobj()
        return stream.decompress(data, limit), stream.eof
    except zlib.error:
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        return stream.decompress(data, limit), stream.eof


def _unbrotli(data: bytes, limit: int) -> tuple[bytes, bool]:
    import brotli

    stream = brotli.Decompressor()
    # It does not grow the buffer beyond the limit, but fills what it has.
    decoded = stream.process(data, output_buffer_limit=limit)
    return decoded[:limit], stream.is_finished()


def _unzstd(data: bytes, limit: int) -> tuple[bytes, bool]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    # RFC 9659: no Content-Encoding needs a window above 8 MB.
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    return stream.decompress(data, limit), stream.eof


# More than anybody has; each costs time, however little is in it.
_MAX_GZIP_MEMBERS = 100

# Brotli and Zstandard come with Scrapy where it understands them itself. All
# are asked for by nobody: the request says "identity". Some servers answer with
# what they have on disk all the same.
_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}

# Values that say nothing about compression; charsets stray into this header.
_NONE = frozenset({"", "identity", "none", "binary", "utf-8", "utf8", "iso-8859-1", "us-ascii"})
