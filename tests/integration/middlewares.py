"""Middlewares of projects that meet ours."""

from __future__ import annotations

import time
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from scrapy_rep import RepMiddleware
from scrapy_rep.policies.cache import steady


class OwnRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's own, as a project might have changed it."""


class HourOffAhead(RepMiddleware):
    """Ours, in a process whose clock is wrong."""

    hours = 1

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler, steady(lambda: time.time() + 3600 * self.hours))


class HourOffBehind(HourOffAhead):
    """The same the other way."""

    hours = -1


class AsksAgain:
    """Repeats requests that are answered with 503, as projects do in their own ways."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        return request.replace(dont_filter=True) if response.status == 503 else response


class AsksBefore:
    """Asks for a page of its own before each one, as those do that log in or get a token.

    The pages that it asks for are to another path of the same host.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AsksBefore:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            token = Request(request.url.rpartition("/")[0] + "/token", dont_filter=True)
            assert self._crawler.engine is not None
            await self._crawler.engine.download_async(token)


class KeepsAway:
    """Lets nobody ask for a robots.txt."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("keep away")


class Breaks:
    """Has a bug."""

    def process_response(self, request: Request, response: Response) -> Response:
        raise ZeroDivisionError("a bug of the project")


class TellsWhenAllHaveCome:
    """Makes the file ALL_HAVE_COME when requests for all of AWAITED have come."""

    def __init__(self, crawler: Crawler) -> None:
        self._awaited = set(crawler.settings.getlist("AWAITED"))
        self._file = Path(crawler.settings["ALL_HAVE_COME"])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TellsWhenAllHaveCome:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        self._awaited.discard(request.url)
        if not self._awaited:
            self._file.touch()
