"""What the tests of throttling share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.blocking import LoopInThread


@pytest.fixture
def asyncio_thread() -> Iterator[LoopInThread]:
    with LoopInThread() as thread:
        yield thread
