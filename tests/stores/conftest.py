"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.blocking import LoopInThread
from tests.stores.examples import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.sqlite"


@pytest.fixture
def asyncio_thread() -> Iterator[LoopInThread]:
    with LoopInThread() as thread:
        yield thread
