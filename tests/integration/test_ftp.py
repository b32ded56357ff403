"""Pages on FTP servers: real ones, by pyftpdlib."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

from tests.integration.crawling import RULES, Job, pages

logging.getLogger("pyftpdlib").setLevel(logging.ERROR)


@contextmanager
def ftp_server(folder: Path, password: str | None = None) -> Iterator[str]:
    """The URL of an FTP server for *folder*; anonymous where there is no *password*."""
    authorizer = DummyAuthorizer()
    if password is None:
        authorizer.add_anonymous(str(folder))
    else:
        authorizer.add_user("user", password, str(folder))
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer, "auth_failed_timeout": 0})
    server = FTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"timeout": 0.05})
    thread.start()
    try:
        yield f"ftp://127.0.0.1:{server.address[1]}"
    finally:
        server.close_all()
        thread.join()


def crawl(url: str, loop: str, *, time_limit: float = 15, **meta: str) -> list[str]:
    """What becomes of /yes and /no."""
    urls = [f"{url}/yes", f"{url}/no"]
    result = Job(pages(*urls, **meta), loop, {"REP_FETCH_TIMEOUT": time_limit}).run()
    return [result.outcome(url) for url in urls]


def fill(folder: Path, robots: bytes | None = None) -> Path:
    for name in ("yes", "no"):
        (folder / name).write_bytes(b"a page")
    if robots is not None:
        (folder / "robots.txt").write_bytes(robots)
    return folder


def has_ftp(loop: str) -> bool:
    """Scrapy's FTP handler needs a reactor; without one, what cannot be asked is refused."""
    return loop != "reactorless"


@pytest.mark.clause("Google location-3", "Google location-5", "RFC 9309 2.3-5")
def test_rules_on_an_ftp_server_are_obeyed(tmp_path: Path, loop: str) -> None:
    with ftp_server(fill(tmp_path, RULES)) as url:
        expected = ["fetched", "refused"] if has_ftp(loop) else ["refused", "refused"]
        assert crawl(url, loop) == expected


def test_no_such_file_on_an_ftp_server_allows(tmp_path: Path, loop: str) -> None:
    with ftp_server(fill(tmp_path)) as url:
        expected = ["fetched", "fetched"] if has_ftp(loop) else ["refused", "refused"]
        assert crawl(url, loop) == expected


@pytest.mark.clause("Google location-5")
def test_the_login_of_the_page_is_used(tmp_path: Path, loop: str) -> None:
    with ftp_server(fill(tmp_path, RULES), password="secret") as url:
        expected = ["fetched", "refused"] if has_ftp(loop) else ["refused", "refused"]
        assert crawl(url, loop, ftp_user="user", ftp_password="secret") == expected


def test_trouble_with_an_ftp_server_refuses(tmp_path: Path, loop: str) -> None:
    with ftp_server(fill(tmp_path), password="secret") as url:
        # Nobody may log in without it.
        assert crawl(url, loop) == ["refused", "refused"]
    # And now there is no server any more.
    assert crawl(url, loop) == ["refused", "refused"]


def test_an_ftp_server_that_says_nothing_refuses_and_holds_nobody_up(loop: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        # Scrapy's FTP handler itself would wait for good.
        url = f"ftp://127.0.0.1:{silent.getsockname()[1]}"
        outcomes = crawl(url, loop, time_limit=2)
    assert outcomes == ["refused", "refused"]
