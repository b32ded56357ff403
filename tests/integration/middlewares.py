"""Middlewares of projects that meet ours."""

from __future__ import annotations

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response


class OwnRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's own, as a project might have changed it."""


class AsksAgain:
    """Repeats requests that are answered with 503, as projects do in their own ways."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        return request.replace(dont_filter=True) if response.status == 503 else response


class KeepsAway:
    """Lets nobody ask for a robots.txt."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("keep away")


class Breaks:
    """Has a bug."""

    def process_response(self, request: Request, response: Response) -> Response:
        raise ZeroDivisionError("a bug of the project")
