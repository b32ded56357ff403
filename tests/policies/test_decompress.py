"""Content-Encoding undone within a limit."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import brotli
import pytest

from scrapy_rep.policies.decompress import decompress
from scrapy_rep.policies.errors import FetchFailed

TEXT = b"User-agent: *\nDisallow: /private\n"
LIMIT = 1000


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def zstd_compress(data: bytes) -> bytes:
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    compressed: bytes = import_module(module).compress(data)
    return compressed


ENCODINGS = pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("br", brotli.compress),
        ("zstd", zstd_compress),
    ],
    ids=["gzip", "x-gzip", "deflate", "raw deflate", "br", "zstd"],
)


@ENCODINGS
class TestEncodings:
    def test_is_undone(self, encoding: str, compress: Any) -> None:
        assert decompress(compress(TEXT), [encoding], LIMIT, cut=False) == TEXT
        assert decompress(compress(TEXT), [f" {encoding.upper()} "], LIMIT, cut=False) == TEXT

    def test_is_undone_up_to_the_limit(self, encoding: str, compress: Any) -> None:
        assert decompress(compress(TEXT), [encoding], 20, cut=False) == TEXT[:20]
        assert decompress(compress(TEXT), [encoding], len(TEXT), cut=False) == TEXT

    def test_of_a_body_that_ends_too_early_is_broken(self, encoding: str, compress: Any) -> None:
        half = compress(TEXT)[:-5]
        with pytest.raises(FetchFailed):
            decompress(half, [encoding], LIMIT, cut=False)

    def test_of_a_body_that_was_cut_is_undone_as_far_as_it_goes(
        self, encoding: str, compress: Any
    ) -> None:
        whole = bytes(range(256)) * 100
        start = decompress(compress(whole)[:-5], [encoding], 100_000, cut=True)
        assert whole.startswith(start)

    def test_of_something_else_is_broken(self, encoding: str, compress: Any) -> None:
        compress(b"")  # skips where it is not installed
        with pytest.raises(FetchFailed):
            decompress(b"User-agent: *\n" * 10, [encoding], LIMIT, cut=False)

    @pytest.mark.once
    def test_of_a_bomb_costs_no_more_memory_than_the_limit(
        self, encoding: str, compress: Any
    ) -> None:
        bomb = compress(b"\0" * 50_000_000)
        tracemalloc.start()
        try:
            body = decompress(bomb, [encoding], 512_001, cut=False)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert body == b"\0" * 512_001
        assert peak < 5_000_000


def test_a_bomb_in_a_bomb() -> None:
    bomb = gzip.compress(gzip.compress(b"\0" * 50_000_000))
    body = decompress(bomb, ["gzip", "gzip"], 512_001, cut=False)
    assert body == b"\0" * 512_001


@pytest.mark.parametrize("encodings", [[], [""], ["identity"], ["Identity ", ""]], ids=repr)
def test_no_encoding_leaves_the_body_alone(encodings: list[str]) -> None:
    assert decompress(TEXT, encodings, LIMIT, cut=False) == TEXT
    assert decompress(TEXT, encodings, 5, cut=False) == TEXT[:5]


def test_encodings_are_undone_from_the_last_to_the_first() -> None:
    body = gzip.compress(zlib.compress(TEXT))
    assert decompress(body, ["deflate", "gzip"], LIMIT, cut=False) == TEXT
    with pytest.raises(FetchFailed):
        decompress(body, ["gzip", "deflate"], LIMIT, cut=False)


@pytest.mark.parametrize("encoding", ["compress", "rot13", "gzip;q=1", "\x1b[2J"])
def test_an_unknown_encoding_is_broken(encoding: str) -> None:
    with pytest.raises(FetchFailed, match="unknown Content-Encoding") as raised:
        decompress(TEXT, [encoding], LIMIT, cut=False)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(("encoding", "module"), [("br", "brotli"), ("zstd", "backports.zstd")])
def test_an_encoding_without_its_library_is_broken(
    encoding: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "backports", None)
    with pytest.raises(FetchFailed, match=f"cannot decode Content-Encoding '{encoding}'"):
        decompress(TEXT, [encoding], LIMIT, cut=False)


def test_a_zstd_body_may_not_ask_for_a_large_window() -> None:
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    for window, fails in ((23, False), (24, True)):
        compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window})
        # Before it is known how much there is.
        body = compressor.compress(TEXT, compressor.FLUSH_BLOCK) + compressor.flush()
        with pytest.raises(FetchFailed) if fails else nullcontext():
            assert decompress(body, ["zstd"], LIMIT, cut=False) == TEXT


class TestGzipMembers:
    def test_all_of_them_are_read(self) -> None:
        body = gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(TEXT)
        assert decompress(body, ["gzip"], LIMIT, cut=False) == TEXT * 2

    def test_what_follows_the_last_is_ignored(self) -> None:
        assert decompress(gzip.compress(TEXT) + b"\0" * 10, ["gzip"], LIMIT, cut=False) == TEXT

    def test_the_limit_holds_over_all_of_them(self) -> None:
        assert decompress(gzip.compress(TEXT) * 3, ["gzip"], 40, cut=False) == (TEXT * 2)[:40]

    @pytest.mark.parametrize("first", [LIMIT // 2, LIMIT - 1, LIMIT])
    def test_a_bomb_in_a_later_one_costs_no_more_memory_than_the_limit(self, first: int) -> None:
        body = gzip.compress(b"a" * first) + gzip.compress(b"\0" * 1_000_000) * 20
        tracemalloc.start()
        try:
            assert len(decompress(body, ["gzip"], LIMIT, cut=False)) == LIMIT
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 200_000

    def test_nothing_is_read_beyond_the_limit(self) -> None:
        next_one = b"\x1f\x8b, but no gzip"
        body = decompress(gzip.compress(TEXT) + next_one, ["gzip"], len(TEXT), cut=False)
        assert body == TEXT
        # Nor in the member in which it is.
        wrong = bytearray(gzip.compress(b"b" * 6))
        wrong[-8] ^= 1
        body = decompress(gzip.compress(b"a" * 5) + wrong, ["gzip"], 10, cut=False)
        assert body == b"a" * 5 + b"b" * 5

    def test_no_more_than_a_hundred_are_read(self) -> None:
        # Each may be a few bytes that stand for none.
        body = gzip.compress(b"a") * 99 + gzip.compress(TEXT)
        assert decompress(body, ["gzip"], LIMIT, cut=False) == b"a" * 99 + TEXT
        # What is in the last one may refuse something.
        with pytest.raises(FetchFailed, match="more than 100 gzip members"):
            decompress(gzip.compress(b"a") + body, ["gzip"], LIMIT, cut=False)

    def test_the_last_may_not_be_cut_short(self) -> None:
        with pytest.raises(FetchFailed):
            decompress(
                gzip.compress(TEXT) * 2 + gzip.compress(TEXT)[:15], ["gzip"], 1000, cut=False
            )

    def test_a_wrong_checksum_is_broken(self) -> None:
        body = bytearray(gzip.compress(TEXT))
        body[-8] ^= 1
        with pytest.raises(FetchFailed):
            decompress(bytes(body), ["gzip"], LIMIT, cut=False)
