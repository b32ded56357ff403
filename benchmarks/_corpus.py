"""Real robots.txt files, from an archive beside the checkout that is no part of it."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._tables import arguments

#: What is asked of every file, once.
FIRST_URL = "https://www.example.com/category/item-123/page.html?x=1"

_ARCHIVE = "shared/conformance/robots-corpus.zip"


def corpus_arguments(description: str | None) -> argparse.ArgumentParser:
    """The options of a script that reads the corpus."""
    parser = arguments(description)
    default = Path(__file__).resolve().parents[2] / _ARCHIVE
    parser.add_argument(
        "--corpus", type=Path, default=default, help="zip file of robots.txt files (%(default)s)"
    )
    return parser


def bodies(archive: Path) -> Iterator[bytes]:
    """The files, each read when its turn comes."""
    with zipfile.ZipFile(archive) as members:
        for name in sorted(members.namelist()):
            yield members.read(name)
