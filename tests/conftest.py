"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_rep.tools.demo.server import LoopbackServers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--loop",
        default="asyncio",
        choices=["asyncio", "select", "reactorless"],
        help="the event loop of the crawls that tests/integration runs in processes",
    )


@pytest.fixture
def servers() -> Iterator[LoopbackServers]:
    with LoopbackServers() as servers:
        yield servers


@pytest.fixture(scope="session")
def loop(request: pytest.FixtureRequest) -> str:
    """The event loop of crawls in processes: see ``--loop``."""
    return str(request.config.getoption("--loop"))
