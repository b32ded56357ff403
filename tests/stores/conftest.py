"""What the tests of stores share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores.examples import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.sqlite"
