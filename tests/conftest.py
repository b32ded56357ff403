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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With another loop, run what that makes a difference to."""
    if config.getoption("--loop") != "asyncio":
        kept = [item for item in items if "loop" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.fixture
def servers() -> Iterator[LoopbackServers]:
    with LoopbackServers() as servers:
        yield servers


@pytest.fixture(scope="session")
def loop(request: pytest.FixtureRequest) -> str:
    """The event loop of crawls in processes: see ``--loop``."""
    return str(request.config.getoption("--loop"))
